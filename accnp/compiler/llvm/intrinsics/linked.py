"""Functions of users that only Numba can compile, as LLVM modules linked to the kernels that call
them.

`define_linked` adds a function to the table of intrinsics. `linked_modules` returns the modules
that define given symbols; the lowering calls it for the symbols that a kernel uses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from llvmlite import ir

from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.registers import from_memory, memory_type, split_parts
from accnp.compiler.llvm.scalars.ir import I8, I32, call_external
from accnp.compiler.loops.types import DType, Type

__all__ = ["LinkedFunction", "define_linked", "linked_modules"]

_MODULES: dict[str, str] = {}
_BYTES = I8.as_pointer()


class LinkedFunction(NamedTuple):
    """The code of a function for some types, in the calling convention of Numba: the addresses of
    the result and of an exception, and the arguments; a bool is a byte, the parts of a complex
    number are two arguments."""

    symbol: str
    module: str
    result: DType


def define_linked(
    name: str, arity: int, compiled: Callable[[tuple[DType, ...]], LinkedFunction]
) -> None:
    """Add a function to the table of intrinsics; `compiled` gives its code for some types."""

    def rule(*of: Type) -> Resolved | None:
        numbers = tuple([t for t in of if isinstance(t, DType)])
        if len(numbers) != len(of):
            return None
        function = compiled(numbers)
        _MODULES[function.symbol] = function.module

        def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
            return _write_call(b, function, numbers, args)

        return function.result, of, emit

    define(name, arity, rule)


def linked_modules(symbols: Collection[str]) -> list[str]:
    """Return the texts of the modules that define what a module calls."""
    return [_MODULES[s] for s in symbols if s in _MODULES]


def _write_call(
    b: ir.IRBuilder, function: LinkedFunction, of: tuple[DType, ...], args: tuple[ir.Value, ...]
) -> ir.Value:
    """Call a function. What it returns after an exception is 0."""
    passed: list[ir.Value] = []
    for t, v in zip(of, args, strict=True):
        if t.kind == "complex":
            passed += split_parts(b, v)
        else:
            passed.append(b.zext(v, I8) if t.kind == "bool" else v)
    kind = memory_type(function.result)
    with b.goto_entry_block():
        result, error = b.alloca(kind), b.alloca(_BYTES)
    b.store(ir.Constant(kind, None), result)
    call_external(b, function.symbol, I32, [result, error, *passed])
    value = b.load(result)
    return from_memory(function.result, b, value)
