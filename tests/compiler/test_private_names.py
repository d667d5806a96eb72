"""The names of Numba and llvmlite that are not public, which another version may have changed."""

import ast
import threading
from importlib.metadata import version
from pathlib import Path

import numba
import pytest
from llvmlite import binding, ir

import accnp
from accnp.compiler.llvm import private as llvm_private
from accnp.compiler.numba import private

NUMBA = f"numba {version('numba')}"
LLVMLITE = f"llvmlite {version('llvmlite')}"
COMPILER = Path(accnp.__file__).parent / "compiler"
# Methods of named tuples, and of locks of the standard library.
KNOWN = {"_replace", "_asdict", "_fields", "_is_owned"}


@pytest.mark.parametrize("folder", ["llvm", "numba"])
def test_private_names_are_in_one_file(folder):
    uses = []
    for path in sorted((COMPILER / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Attribute) or path.name == "private.py":
                continue
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            if private and not own and node.attr not in KNOWN:
                uses.append(f"{path.name}:{node.lineno}: {node.attr}")
    assert uses == []


def test_the_lock_of_the_compiler_is_reentrant():
    """A fork takes it, and asks whether this thread has it."""
    lock = private.COMPILER_LOCK
    assert isinstance(lock, type(threading.RLock())), NUMBA
    with lock:
        assert lock._is_owned(), NUMBA
    assert not lock._is_owned(), NUMBA


def test_conversions_have_an_order():
    kinds = private.Conversion
    assert kinds.promote < kinds.safe < kinds.unsafe, NUMBA


def test_fold_types_orders_keyword_arguments():
    function = numba.njit(lambda x, y=2: x + y)
    kinds = private.fold_types(function, (numba.float64,), {"y": numba.int64})
    assert kinds == (numba.float64, numba.int64), NUMBA


def test_functions_of_c_have_addresses():
    assert private.helper_address("frexp"), NUMBA
    assert private.helper_address("no_such_function") is None, NUMBA


def test_parts_of_numba_cuda():
    pytest.importorskip("numba.cuda")
    assert private.cuda_part("cudadrv.nvvm").NVVM, NUMBA
    assert private.cuda_part("dispatcher").get_current_device, NUMBA
    assert private.cuda_part("compiler").compile_cuda, NUMBA


def test_instructions_and_attributes_as_text():
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "f")
    llvm_private.add_attribute(function, '"some-attribute"="x"')
    b = ir.IRBuilder(function.append_basic_block())
    llvm_private.insert_line(b, "%x = add i32 1, 2")
    b.ret_void()
    text = str(binding.parse_assembly(str(module)))
    assert "%x = add i32 1, 2" in text, LLVMLITE
    assert '"some-attribute"="x"' in text, LLVMLITE


def test_the_lock_of_llvmlite():
    """Threads that compile side by side, and forks, need it."""
    assert llvm_private.find_lock() is not None, LLVMLITE
    replaced = []
    llvm_private.replace_locks(["ParseAssembly"], lambda lock: replaced.append(lock) or lock)
    assert len(replaced) == 1, LLVMLITE
