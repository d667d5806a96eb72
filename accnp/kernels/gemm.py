"""Intrinsics of matrix products, and calls of the kernels in ``library.py``.

In: ``types.CPointer(dtype)``, strides and counts. Out: entries of ``NAMESPACE``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

from .factory import SCALARS, define
from .library import CHAINS, PREFIX, RUN, SHAPES, SIGNATURES, STRIP
from .math import cold, gemm
from .math.heap import external, free_aligned, malloc_aligned
from .math.ir import I32, I64

_Build = Callable[[Any, Sequence[Any]], None]
_TILE = "ipiipipiiii"  # which arguments are pointers: see math.gemm.multiply
_APART = "ipttptptiii"  # and tables: see math.gemm.multiply_apart
_TABLE = types.CPointer(types.int64)


def _vector(name: str, kinds: str, build: _Build) -> None:
    """An intrinsic on pointers of one element type (p), tables (t) and integers (i), without a
    result."""

    def rule(*given: Any) -> Any:
        pointers = {t for t, kind in zip(given, kinds, strict=True) if kind == "p"}
        if len(pointers) != 1 or not isinstance(p := pointers.pop(), types.CPointer):
            return None
        params = tuple({"p": p, "t": _TABLE, "i": types.int64}[kind] for kind in kinds)

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            build(b, args)
            return context.get_dummy_value()

        return types.void, params, emit

    define(name, len(kinds), rule)


def _words(dst: Any, src: Any, n: Any) -> Any:
    if dst != types.CPointer(types.int32) or not isinstance(src, types.CPointer):
        return None
    t = src.dtype
    signed = getattr(t, "signed", False)

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        gemm.lay_words(b, args, signed)
        return context.get_dummy_value()

    return types.void, (dst, src, types.int64), emit


def _room(name: str, t: Any, nbytes: int) -> None:
    """Memory on the stack."""
    pointer = types.CPointer(t)

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        with b.goto_entry_block():
            p = b.alloca(ir.ArrayType(ir.IntType(8), nbytes))
            p.align = 64
            return b.bitcast(p, context.get_value_type(pointer))

    define(name, 0, lambda: (pointer, (), emit))


def _heap(name: str, t: Any) -> None:
    """Memory from the C library, from an address that suits vectors; `release` gives it back."""
    pointer = types.CPointer(t)

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        size = ir.Constant(I64, context.get_abi_sizeof(context.get_data_type(t)))
        start = malloc_aligned(b, b.mul(args[0], size))
        return b.bitcast(start, context.get_value_type(pointer))

    define("heap_" + name, 1, lambda n: (pointer, (types.int64,), emit))


def _release(p: Any) -> Any:
    if not isinstance(p, types.CPointer):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        free_aligned(b, args[0])
        return context.get_dummy_value()

    return types.void, (p,), emit


def _library(name: str, tokens: Sequence[str]) -> None:
    """A call of a library kernel, through the entry function that every kernel has.

    A complex matrix is given by a pointer of its own type, and taken as one of pairs.
    """
    kinds = ["p" if token.endswith("*") else "i" for token in tokens]

    def rule(*given: Any) -> Any:
        pointers = [isinstance(t, types.CPointer) for t in given]
        if pointers != [kind == "p" for kind in kinds]:
            return None

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            words = I64.as_pointer()
            callee = external(b, PREFIX + name, ir.VoidType(), [words, words, I64, I64])
            with b.goto_entry_block():
                block = b.alloca(I64, size=ir.Constant(I32, len(args) + 1))
            for k, (arg, token) in enumerate(zip(args, kinds, strict=True)):
                word = b.ptrtoint(arg, I64) if token == "p" else arg
                b.store(word, b.gep(block, [ir.Constant(I64, k)]))
            counter = b.gep(block, [ir.Constant(I64, len(args))])
            b.store(ir.Constant(I64, 0), counter)
            b.call(callee, [block, counter, ir.Constant(I64, 1), ir.Constant(I64, 1)])
            return context.get_dummy_value()

        params = tuple(
            t if kind == "p" else types.int64 for t, kind in zip(given, kinds, strict=True)
        )
        return types.void, params, emit

    define(name, len(kinds), rule)


_TALL = [(shape.tall, vectors) for shape in SHAPES.values() for vectors in (1, 2)]
for _rows, _vectors in (*_TALL, (2, 4), (4, 2)):
    for _parts, _name in ((1, "tile"), (2, "twin")):
        _vector(
            f"{_name}_{_rows}x{_vectors}",
            _TILE,
            lambda b, args, rows=_rows, vectors=_vectors, parts=_parts: gemm.multiply(
                b, rows, vectors, parts, args
            ),
        )
for _rows, _vectors in _TALL:
    _vector(
        f"apart_{_rows}x{_vectors}",
        _APART,
        lambda b, args, rows=_rows, vectors=_vectors: gemm.multiply_apart(b, rows, vectors, args),
    )
for _shape in SHAPES.values():
    _vector(
        f"dots_{_shape.dots}",
        "ippipii",
        lambda b, args, rows=_shape.dots: gemm.dots(b, rows, args),
    )
_vector("add_scaled", "ppipii", lambda b, args: gemm.add_scaled(b, 1, args))
_vector("add_scaled_4", "ppipii", lambda b, args: gemm.add_scaled(b, 4, args))
_vector("add_scaled_8", "ppipii", lambda b, args: gemm.add_scaled(b, 8, args))
_vector("lay", "ppii", gemm.lay)
define("lay_words", 3, _words)
_vector("lay_pairs", "pppii", gemm.lay_pairs)
_vector("turn", "pipi", gemm.turn)
for _name in ("f4", "f8", "i4"):
    _room("panel_" + _name, SCALARS[_name], RUN * 4 * cold.vector_bytes)
for _name in ("f4", "f8"):
    _room("lanes_" + _name, SCALARS[_name], (CHAINS + 8) * STRIP + 64)
for _name in SCALARS:
    _heap(_name, SCALARS[_name])
define("release", 1, _release)
for _name, _tokens in SIGNATURES.items():
    _library(_name, _tokens)
