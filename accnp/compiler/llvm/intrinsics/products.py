"""Procedures for matrix products, and calls of the library kernels (`library.library`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.library.library import PREFIX, SHAPES, SIGNATURES
from accnp.compiler.library.sizes import LANES_BYTES, PANEL_VECTORS
from accnp.compiler.llvm.intrinsics.memory import stack_memory
from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.processor import VECTOR_BYTES
from accnp.compiler.llvm.scalars import gemm
from accnp.compiler.llvm.scalars.ir import I8, I32, I64, external
from accnp.compiler.loops.types import DTYPES, I4, DType, Pointer, Type

_Build = Callable[[ir.IRBuilder, Sequence[ir.Value]], None]
_MULTIPLY = "ipiipipiiii"  # kinds of the arguments of scalars.gemm.multiply
_INDIRECT = "ipttptptiii"  # kinds of the arguments of scalars.gemm.multiply_indirect
INT = DTYPES["i8"]
_TABLE = Pointer(INT)


def _vector(name: str, kinds: str, build: _Build) -> None:
    """Define a procedure of pointers to one type (p), tables (t) and integers (i)."""

    def rule(*types: Type) -> Resolved | None:
        pointers = {t for t, kind in zip(types, kinds, strict=True) if kind == "p"}
        if len(pointers) != 1 or not isinstance(p := pointers.pop(), Pointer):
            return None
        params = tuple([{"p": p, "t": _TABLE, "i": INT}[kind] for kind in kinds])
        return None, params, lambda b, *args: build(b, args)

    define(name, len(kinds), rule)


def _resolve_words(dst: Type, src: Type, n: Type) -> Resolved | None:
    if dst != Pointer(I4) or not isinstance(src, Pointer):
        return None
    signed = src.of.signed
    return None, (dst, src, INT), lambda b, *args: gemm.copy_words(b, args, signed)


def _define_stack_memory(name: str, of: DType, nbytes: int) -> None:
    """Define a function that returns memory on the stack."""
    kind = ir.ArrayType(I8, nbytes)
    define(name, 0, lambda: (Pointer(of), (), lambda b: stack_memory(b, of, kind, 64)))


def _library(name: str, tokens: Sequence[str]) -> None:
    """Define a call of the entry of a library kernel.

    The argument for a complex matrix is a pointer to complex numbers; the kernel takes pairs.
    """
    kinds = ["p" if token.endswith("*") else "i" for token in tokens]

    def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
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

    def rule(*types: Type) -> Resolved | None:
        if ["p" if isinstance(t, Pointer) else "i" for t in types] != kinds:
            return None
        return None, tuple([t if isinstance(t, Pointer) else INT for t in types]), emit

    define(name, len(kinds), rule)


_TILES = [(shape.tile_rows, vectors) for shape in SHAPES.values() for vectors in (1, 2)]
for _rows, _vectors in (*_TILES, (2, 4), (4, 2)):
    for _parts, _name in ((1, "multiply"), (2, "multiply_complex")):
        _vector(
            f"{_name}_{_rows}x{_vectors}",
            _MULTIPLY,
            lambda b, args, rows=_rows, vectors=_vectors, parts=_parts: gemm.multiply(
                b, rows, vectors, parts, args
            ),
        )
for _rows, _vectors in _TILES:
    _vector(
        f"multiply_indirect_{_rows}x{_vectors}",
        _INDIRECT,
        lambda b, args, rows=_rows, vectors=_vectors: gemm.multiply_indirect(
            b, rows, vectors, args
        ),
    )
for _shape in SHAPES.values():
    _vector(
        f"dots_{_shape.dot_rows}",
        "ippipii",
        lambda b, args, rows=_shape.dot_rows: gemm.dots(b, rows, args),
    )
_vector("add_scaled", "ppipii", lambda b, args: gemm.add_scaled(b, 1, args))
_vector("add_scaled_4", "ppipii", lambda b, args: gemm.add_scaled(b, 4, args))
_vector("add_scaled_8", "ppipii", lambda b, args: gemm.add_scaled(b, 8, args))
_vector("copy_vector", "ppii", gemm.copy_vector)
define("copy_words", 3, _resolve_words)
_vector("copy_complex_pairs", "pppii", gemm.copy_complex_pairs)
_vector("transpose_square", "pipi", gemm.transpose_square)
for _name in ("f4", "f8", "i4"):
    _define_stack_memory("panel_" + _name, DTYPES[_name], PANEL_VECTORS * VECTOR_BYTES)
for _name in ("f4", "f8"):
    _define_stack_memory("lanes_" + _name, DTYPES[_name], LANES_BYTES)
for _name, _tokens in SIGNATURES.items():
    _library(_name, _tokens)
