"""Compile users' GPU kernels, written for `numba.cuda`, to PTX.

The input is a kernel and the types of the arguments of its call; the output is PTX. Numba types and
lowers the kernel. As for generated kernels, LLVM's NVPTX target then writes the PTX, and `math.exp`
and similar functions are those of `llvm/scalars` instead of NVIDIA's libdevice. Neither libnvvm nor
a GPU is needed. `api/kernels/` imports this module by name when such a kernel is first used.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
import threading
import warnings
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import NumbaError, TypingError
from numba.np.numpy_support import from_dtype

from accnp.compiler.cache_state import counters, disk_cache
from accnp.compiler.llvm.intrinsics.all import resolve
from accnp.compiler.llvm.ptx import TRIPLE, emit
from accnp.compiler.llvm.registers import register_type
from accnp.compiler.loops.types import F4, F8
from accnp.compiler.numba import user_device
from accnp.compiler.numba.private import COMPILER_LOCK, cuda_part, global_compiler_lock
from accnp.compiler.numba.user_key import user_key
from accnp.compiler.ptx_code import NEWEST, Ptx
from accnp.forks import renewed

if TYPE_CHECKING:
    from numba.core.annotations.type_annotations import TypeAnnotation
    from numba.core.compiler import CompileResult
    from numba.core.dispatcher import Dispatcher
    from numpy.typing import ArrayLike

    _Scalar = types.Number | types.Boolean

__all__ = ["Argument", "number_word", "ptx_of_user"]


class Argument(NamedTuple):
    """The type of an argument of a kernel: an array in C order, or a number (of rank None)."""

    dtype: np.dtype
    rank: int | None
    readonly: bool = False


# Names of libdevice without `__nv_` and the f of float32, if kernels use other names.
_OTHER = {"fabs": "abs", "fmod": "rem", "tgamma": "gamma", "rint": "round_even"}
_CALLED = re.compile(r'^declare (float|double) @"?__nv_(\w+?)"?\(([^)]*)\)', re.MULTILINE)
_HEAD = re.compile(
    r'^((?:define|declare) [^@\n]*@(?!"?llvm\.)("[^"]+"|[\w.$]+)\(.*\))', re.MULTILINE
)
_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
_one = renewed(threading.RLock())
renewed(COMPILER_LOCK)


class _Layout:
    """The part of libnvvm's interface that Numba uses while it lowers."""

    data_layout = _LAYOUT

    def get_ir_version(self) -> tuple[int, int, int, int]:
        return 2, 0, 3, 1


class _Device:
    """The properties of the device that functions called by a kernel read."""

    def __init__(self, cc: tuple[int, int]) -> None:
        self.compute_capability = cc


def _row_stack(tup: Sequence[ArrayLike]) -> np.ndarray:
    return np.vstack(tup)


def _load_array_support() -> None:
    """Import numba-cuda's support for arrays. Its source (0.30.4) uses a function that NumPy 2.5 no
    longer has, which exists during the import only."""
    name = "numba.cuda.np.arrayobj"
    if hasattr(np, "row_stack") or name in sys.modules:
        return
    if importlib.util.find_spec("numba.cuda.np") is None:  # Numba's own numba.cuda has no such part
        return
    numpy: Any = np
    numpy.row_stack = _row_stack
    try:
        importlib.import_module(name)
    finally:
        del numpy.row_stack


@contextlib.contextmanager
def _without_device(cc: tuple[int, int]) -> Generator[None]:
    """Let Numba lower kernels without libnvvm and without a driver."""
    nvvm: Any = cuda_part("cudadrv.nvvm")
    dispatcher: Any = cuda_part("dispatcher")
    with _one:
        _load_array_support()
        before = nvvm.NVVM, dispatcher.get_current_device
        nvvm.NVVM, dispatcher.get_current_device = _Layout, lambda: _Device(cc)
        try:
            yield
        finally:
            nvvm.NVVM, dispatcher.get_current_device = before


def ptx_of_user(
    function: Dispatcher,
    arguments: Sequence[Argument],
    threads: int,
    cc: tuple[int, int] = (9, 0),
) -> Ptx:
    """Return the PTX of a `numba.cuda` kernel for arguments of these types, from the disk cache if
    it has the PTX. A launch passes the address and the shape of an array, or `number_word`.

    Raises:
        NotImplementedError: it calls a function that GPUs do not have.
        numba.core.errors.NumbaError: it does not compile.
    """
    cc = min(cc, NEWEST)
    name = "kernel_" + re.sub(r"\W", "_", function.py_func.__name__)
    disk, key = disk_cache(), user_key(function)
    place = ""
    if disk is not None and key is not None:
        descriptions = [f"{a.dtype.str} {a.dtype.name} {a.rank} {a.readonly}" for a in arguments]
        place = disk.key(("user", name, key, *descriptions, str(threads)), f"sm_{cc[0]}{cc[1]}")
        data = disk.get(place)
        if data is not None:
            counters.disk_hits += 1
            return Ptx(name, data.decode(), threads)
    text = _compile_to_ptx(function, name, arguments, threads, cc)
    counters.compiles += 1
    if disk is not None and place:
        disk.put(place, text.encode())
    return Ptx(name, text, threads)


def _compile_to_ptx(
    function: Dispatcher,
    name: str,
    arguments: Sequence[Argument],
    threads: int,
    cc: tuple[int, int],
) -> str:
    """Return the PTX text of a kernel that is not in a cache."""
    kinds = [_numba_type(a) for a in arguments]
    ranks = [a.rank for a in arguments]
    with warnings.catch_warnings(), global_compiler_lock, _without_device(cc):
        warnings.simplefilter("ignore")  # numba.cuda as a part of Numba is deprecated
        compilation = _compile_with_numba(function, arguments, kinds, cc)
        own = compilation.fndesc.llvm_func_name
        texts = [_strip_layout(t, own) for t in compilation.library.llvm_strs]
    first, *others = texts
    mine = user_device.find_declared(texts)
    called = {m for text in texts for m in _CALLED.findall(text) if f"__nv_{m[1]}" not in mine}
    beside = [_definitions(sorted(called))] if called else []
    beside += [user_device.define_functions(mine)] if mine else []
    entry = _entry(own, name, kinds, ranks, threads)
    try:
        return emit(f"{first}\n{entry}", [*others, *beside], f"sm_{cc[0]}{cc[1]}")
    except NotImplementedError as error:
        message = str(error).split(";")[0]
        raise NotImplementedError(
            f"{message}, which is a part of NVIDIA's toolkit; write it out in the kernel"
        ) from None


def _compile_with_numba(
    function: Dispatcher,
    arguments: Sequence[Argument],
    kinds: Sequence[_Scalar],
    cc: tuple[int, int],
) -> CompileResult:
    """Return the result of Numba's compilation of a kernel."""
    compiler = cuda_part("compiler")
    options = {"fastmath": bool(function.targetoptions.get("fastmath")), "opt": 3}

    def attempt(strict: bool) -> CompileResult:
        signature = tuple([
            k if a.rank is None else types.Array(k, a.rank, "C", readonly=strict and a.readonly)
            for k, a in zip(kinds, arguments, strict=True)
        ])  # fmt: skip
        compilation = compiler.compile_cuda(
            function.py_func,
            types.void,
            signature,
            nvvm_options=options,
            cc=cc,
            **_fastmath_options(options),
        )
        _check_atomics(compilation.type_annotation)
        return compilation

    try:
        return attempt(True)
    except NumbaError as error:
        if "Cannot modify readonly array" in str(error):
            raise
        # A function with a user-defined signature may require writable arrays.
        with contextlib.suppress(NumbaError):
            return attempt(False)
        raise


def _check_atomics(annotation: TypeAnnotation) -> None:
    """Refuse atomic operations on read-only arrays, which Numba accepts."""
    for call, signature in annotation.calltypes.items():
        if getattr(call, "op", "") != "call" or not (signature and signature.args):
            continue
        key = getattr(annotation.typemap[call.func.name], "typing_key", None)
        atomic = getattr(key, "__qualname__", "").startswith("atomic.")
        x = signature.args[0]
        if atomic and isinstance(x, types.Array) and not x.mutable:
            raise TypingError(f"Cannot modify readonly array of type: {x}", call.loc)


def _numba_type(argument: Argument) -> _Scalar:
    """Return Numba's type for the dtype of an argument; only arrays may be complex."""
    dtype, known = argument.dtype, "biuf" if argument.rank is None else "biufc"
    if dtype.isbuiltin != 1 or dtype.kind not in known:
        raise NotImplementedError(f"numbers of type {dtype} cannot be passed to numba.cuda")
    number = from_dtype(dtype)
    assert isinstance(number, types.Number | types.Boolean)
    return number


def _strip_layout(text: str, own: str) -> str:
    """Return the text of a module from Numba without its data layout. Its own function is inlined
    into the entry. Calls of its other functions are not moved, since threads may synchronize in
    them."""
    text = re.sub(r"target datalayout = .*", "", text)
    text = user_device.rename_intrinsics(text.replace("= common global", "= internal global"))
    text = _HEAD.sub(r"\1 convergent", text)
    head = re.compile(rf'define (?:linkonce_odr )?(i32 @"{re.escape(own)}"\(.*\))')
    return head.sub(r"define internal \1 alwaysinline", text)


def _fastmath_options(options: Mapping[str, object]) -> dict[str, bool]:
    return {"fastmath": True} if options["fastmath"] else {}


def number_word(value: ArrayLike) -> int:
    """Return the 64-bit word that a launch passes for a number."""
    return int.from_bytes(np.asarray(value).tobytes().ljust(8, b"\0"), "little")


def _entry(
    device: str, name: str, kinds: Sequence[_Scalar], ranks: Sequence[int | None], threads: int
) -> str:
    """Return the launched function, which makes Numba's arrays from addresses and shapes."""
    lines: list[str] = []
    words: list[str] = []
    passed: list[str] = ["i8** %ret"]
    for k, (kind, rank) in enumerate(zip(kinds, ranks, strict=True)):
        code = _llvm(kind)
        if rank is None:
            words.append(f"i64 %w{k}")
            lines += _convert_word(k, code)
            passed.append(f"{code} %a{k}")
            continue
        size = kind.bitwidth // 8 if kind is not types.boolean else 1
        words += [f"{code}* %a{k}", *[f"i64 %n{k}.{d}" for d in range(rank)]]
        step = str(size)
        strides: list[str] = []
        for d in reversed(range(rank)):
            strides.insert(0, step)
            lines.append(f"  %s{k}.{d} = mul i64 {step}, %n{k}.{d}")
            step = f"%s{k}.{d}"
        lines.append(f"  %t{k} = sdiv i64 {step}, {size}")
        passed += ["i8* null", "i8* null", f"i64 %t{k}", f"i64 {size}", f"{code}* %a{k}"]
        passed += [f"i64 %n{k}.{d}" for d in range(rank)] + [f"i64 {s}" for s in strides]
    return "\n".join([
        f"define ptx_kernel void @{name}({', '.join(words)}) #770 {{",
        "  %ret = alloca i8*",
        *lines,
        f'  %status = call i32 @"{device}"({", ".join(passed)})',
        "  ret void",
        "}",
        f'attributes #770 = {{ nounwind "nvvm.maxntid"="{threads}" }}',
        "",
    ])  # fmt: skip


def _llvm(kind: _Scalar) -> str:
    if kind is types.boolean:
        return "i8"
    if isinstance(kind, types.Complex):
        part = _llvm(kind.underlying_float)
        return f"{{{part}, {part}}}"
    known: dict[types.Type, str] = {types.float32: "float", types.float64: "double"}
    return known.get(kind, f"i{kind.bitwidth}")


def _convert_word(k: int, code: str) -> list[str]:
    if code == "i64":
        return [f"  %a{k} = add i64 %w{k}, 0"]
    if code == "double":
        return [f"  %a{k} = bitcast i64 %w{k} to double"]
    if code == "float":
        return [f"  %b{k} = trunc i64 %w{k} to i32", f"  %a{k} = bitcast i32 %b{k} to float"]
    return [f"  %a{k} = trunc i64 %w{k} to {code}"]


def _definitions(called: Sequence[tuple[str, str, str]]) -> str:
    """Return a module that defines functions of libdevice by the functions of generated kernels."""
    module = ir.Module("libdevice")
    module.triple = TRIPLE
    for result, name, arguments in called:
        single = result == "float"
        own = _OTHER.get(name[:-1] if single else name, name[:-1] if single else name)
        of = (F4 if single else F8,) * (int(arguments.count(",")) + 1)
        resolved = resolve(own, of)
        if resolved is None:
            continue  # reported by name if nothing defines it
        code = register_type(of[0])
        function = ir.Function(module, ir.FunctionType(code, [code] * len(of)), f"__nv_{name}")
        function.linkage = "linkonce_odr"
        function.attributes.add("alwaysinline")
        builder = ir.IRBuilder(function.append_basic_block())
        value = resolved[2](builder, *function.args)
        assert value is not None, own
        builder.ret(value)
    return str(module)
