"""GPU kernels built as loop IR: their printed source computes the same results, and they use few
registers.
"""

import re
import subprocess
import sys

import numpy as np
import pytest
from cuda import test_ptx_statistics
from cuda.assembler import assembler_errors, ptxas
from cuda.kernel_cases import Case, grid_kernels, kernel_specs
from cuda.support import same_bits
from cuda.test_maps import PROGRAMS, f4, ints

import accnp as jnp
from accnp.compiler.grid_kernels import build_grid_kernel
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.llvm.ptx import write_program
from accnp.compiler.pipeline import Target, run_passes
from accnp.compiler.ptx import ptx_of
from accnp.compiler.ptx_code import Ptx
from accnp.compiler.specs.launches import build_generated
from accnp.ir.generated import GeneratedKernel
from tests.compiler.renaming import rename_randomly

MORE_PROGRAMS = {
    "gelu": (test_ptx_statistics.gelu, f4(4096)),
    "half": (lambda x: x * 2 + 1, f4(1003).astype(np.float16)),
    "complex double": (lambda x, y: x * y, f4(77) + 1j, f4(77) + 2j),
    "words": (lambda x, y: x * y + 3, ints(1003, dtype=np.int64), ints(1003, dtype=np.int64)),
    "every third": (lambda x: x[::3] * 2, f4(1003)),
    "chosen": (lambda x, i: jnp.exp(x[i]), f4(50), ints(200) * 7 % 50),
    "costly": (lambda x, y: jnp.arctan2(jnp.sin(x), jnp.log1p(y * y)) ** y, f4(999), f4(999)),
}
ROWS = {
    "norms": (lambda x: jnp.sqrt((x**2).sum(1)), f4(333, 3)),
    "short rows": (lambda x: x / jnp.sqrt((x**2).sum(1, keepdims=True)), f4(333, 3)),
    "short rows of axes": (lambda x: (x * x).sum(2), ints(33, 10, 3)),
    "short rows of bools": (lambda x: (x > 0.5).any(1), f4(333, 3)),
}
ALL = PROGRAMS | MORE_PROGRAMS | ROWS
TEXT = 0  # kernels of the tests of maps and facts that are Python text
# Up to 32 registers, as many threads as there can be are on a multiprocessor.
REGISTERS = {"flat": 32, "gelu": 40, "double": 32, "bytes": 32, "costly": 64, "complex": 32,
             "short rows": 32, "stencil": 40, "transposed": 32, "column beside": 32,
             "odd rows": 32}  # fmt: skip
CCS = [(7, 0), (8, 0), (9, 0)]


def make_kernel(name):
    """Return the description of a kernel, and the kernel."""
    f, *arrays = ALL[name]
    with jnp.enable_x64(True):
        ((spec,),) = kernel_specs(f, *arrays)
    return spec, build_grid_kernel(spec)


def ptx(text: GeneratedKernel, cc=(9, 0)) -> Ptx:
    how = {"tasks": text.tasks, "threads": text.threads, "cc": cc}
    return ptx_of(text.source, text.signature, program=text.kernel, **how)


def resources(text: str) -> tuple[int, int]:
    """Return the registers of a thread, and the bytes that it spills."""
    target = re.search(r"^\.target (\w+)", text, re.MULTILINE)
    assembler = ptxas()
    assert target is not None
    assert assembler is not None
    done = subprocess.run(
        [assembler, "-v", f"-arch={target[1]}", "-", "-o", "/dev/null"],
        input=text, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    registers = re.search(r"Used (\d+) registers", done.stderr)
    assert registers is not None
    return int(registers[1]), sum(map(int, re.findall(r"(\d+) bytes spill", done.stderr)))


@pytest.mark.parametrize("name", ALL)
def test_maps_and_short_rows_are_loop_ir(name):
    _, text = make_kernel(name)
    assert text.kernel is not None
    assert not text.tasks
    verify(text.kernel)


LONG = {
    "softmax": (test_ptx_statistics.softmax, f4(5, 200)),
    "softmax of blocks": (test_ptx_statistics.softmax, f4(2, 3000)),
    "sum": (lambda x: x.sum(), f4(5000)),
    "product": (lambda x: x.prod(1), f4(3, 20)),
    "columns": (lambda x: x.sum(0), f4(700, 40)),
    "rows across": (lambda x: x.T.sum(1), f4(300, 45)),
}


@pytest.mark.parametrize("name", [*ALL, *LONG])
def test_variable_names_do_not_affect_code(name):
    """The PTX does not depend on the names of variables and buffers."""
    f, *arrays = (ALL | LONG)[name]
    with jnp.enable_x64(True):
        ((_, text),) = grid_kernels(f, *arrays)
    other = rename_randomly(text.kernel, 1)._replace(name=text.kernel.name)
    verify(other)
    texts = [
        write_program(run_passes(k, Target(0, False)), "sm_90", "entry", "")
        for k in (text.kernel, other)
    ]
    assert texts[0] == texts[1]


def test_share_of_source_kernels_does_not_grow():
    pairs = [p for f, *arrays in (PROGRAMS | test_ptx_statistics.PROGRAMS).values()
             for p in grid_kernels(f, *arrays)]  # fmt: skip
    assert sum([text.kernel is None for _, text in pairs]) == TEXT


@pytest.mark.parametrize("name", ALL)
def test_printed_source_computes_the_same(name, cpu_formulas):
    spec, new = make_kernel(name)
    case = Case(spec)
    expected = case.run_on_cpu(build_generated(spec))
    for program in (new.kernel, None):
        new.kernel = program
        for blocks, shift in ((None, 0), (3, 0), (2, 8)):
            case.machines = []
            actual = case.interpret(
                new, blocks, shift=shift, cc=(8, 0) if program is None else (9, 0)
            )
            assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True))


@pytest.mark.skipif(not ptxas(), reason="NVIDIA has no assembler for this machine")
@pytest.mark.parametrize("name", REGISTERS)
def test_assembled_kernels_use_few_registers(name):
    _, new = make_kernel(name)
    for cc in CCS:
        assert assembler_errors([ptx(new, cc).text]) == []
    registers, spilled = resources(ptx(new).text)
    assert spilled == 0
    assert registers <= REGISTERS[name]


CHILD_PROGRAM = """
import sys
import numpy as np
from cuda.kernel_cases import kernel_specs
from accnp.compiler.grid_kernels import build_grid_kernel
from accnp.compiler.llvm.ptx import write_program
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.pipeline import Target, run_passes
from accnp.compiler.ptx import ptx_of
import accnp as jnp
x = np.linspace(0, 1, 999, dtype=np.float32)
((spec,),) = kernel_specs(lambda x: jnp.tanh(x) * 2, x)
text = build_grid_kernel(spec)
made = ptx_of(text.source, text.signature, program=text.kernel)
print("ex2.approx" in made.text, "numba" in sys.modules)
"""


def test_functions_have_the_forms_of_gpus_and_numba_is_not_loaded(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CHILD_PROGRAM], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": ":".join(sys.path), "ACCNP_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "True False\n"), done.stderr
