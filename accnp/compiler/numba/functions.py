"""The functions that printed kernels call, for Numba: scalar functions, conversions, and memory.

    from accnp.compiler.numba.functions import *

They are intrinsics with the code that `llvm` has for them, so both back ends give the same bits.
Conversions have the names of types: `f4(x)`. Pointers are those of `numba.types.CPointer`.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic, lower_builtin

from accnp.compiler.external_symbols import address_of
from accnp.compiler.llvm.casts import write_cast
from accnp.compiler.llvm.functions import write_call
from accnp.compiler.llvm.intrinsics.all import TABLE, resolve
from accnp.compiler.llvm.intrinsics.memory import write_reduce_columns, write_reduce_elements
from accnp.compiler.llvm.private import add_attribute
from accnp.compiler.llvm.registers import from_memory, memory_type
from accnp.compiler.llvm.scalars import block
from accnp.compiler.llvm.scalars.heap import free_aligned, malloc_aligned
from accnp.compiler.llvm.scalars.ir import fetch
from accnp.compiler.loops.functions import FUNCTIONS, INFIX, result_of
from accnp.compiler.loops.stack_lengths import STACK_LENGTHS
from accnp.compiler.loops.types import B1, DTYPES, F4, F8, DType, Pointer, Type
from accnp.compiler.numba.halves import E2, F2
from accnp.compiler.numba.vector_forms import vectorized_function
from accnp.compiler.processor import WIDE
from accnp.ir.op import COMBINES, for_each_combine

if TYPE_CHECKING:
    from types import FunctionType

    from numba.core.base import BaseContext as Context
    from numba.core.dispatcher import Dispatcher
    from numba.core.typing import Signature

    Values = Sequence[ir.Value]
    Code = Callable[[Context, ir.IRBuilder, Signature, Values], ir.Value]
    # The signature and the code of an intrinsic; None if it does not take such arguments.
    Typed = tuple[Signature, Code] | None

__all__ = ["ENTRIES", "NUMBA_TYPES"]

# Addresses of the entries of kernels whose steps threads share, by the functions.
ENTRIES: weakref.WeakKeyDictionary[Dispatcher, int] = weakref.WeakKeyDictionary()

# By token.
NUMBA_TYPES: dict[str, types.Type] = {
    "b1": types.boolean,
    **{t: getattr(types, f"int{8 * d.size}") for t, d in DTYPES.items() if d.kind == "int"},
    **{t: getattr(types, f"uint{8 * d.size}") for t, d in DTYPES.items() if d.kind == "uint"},
    "f4": types.float32,
    "f8": types.float64,
    "f2": F2,
    "e2": E2,
    "c8": types.complex64,
    "c16": types.complex128,
}
_OF = {n: DTYPES[t] for t, n in NUMBA_TYPES.items()}


def _dtype(t: types.Type) -> DType | None:
    return _OF.get(types.unliteral(t))


def _link_external(typed: Callable[..., Typed]) -> Callable[..., Typed]:
    """Return a typing rule whose code also registers with LLVM the symbols outside of the module
    that it calls, because Numba ends the process if a symbol is missing."""

    def rule(*args: types.Type) -> Typed:
        typing = typed(*args)
        if typing is None:
            return None
        signature, code = typing

        def write(
            context: Context, b: ir.IRBuilder, signature: Signature, values: Values
        ) -> ir.Value:
            before = len(b.module.globals)
            result = code(context, b, signature, values)
            for function in list(b.module.globals.values())[before:]:
                _make_known(function)
            return result

        return signature, write

    return rule


def _make_known(function: ir.GlobalValue) -> None:
    name = function.name
    if not isinstance(function, ir.Function) or not function.is_declaration:
        return
    if name.startswith("llvm.") or binding.address_of_symbol(name) is not None:
        return
    address = address_of(name)
    if address is None:
        raise NotImplementedError(f"a call of {name}, which no library has")
    binding.add_symbol(name, address)


def _define(name: str, arity: int, typed: Callable[..., Typed]) -> None:
    """Add an intrinsic; `typed` gives its signature and its code for the types of arguments."""
    # Numba reads the number of arguments from the signature.
    names = ", ".join([f"x{k}" for k in range(arity)])
    comma = ", " if names else ""
    function: FunctionType = eval(
        f"lambda typingctx{comma}{names}: typed({names})", {"typed": _link_external(typed)}
    )
    function.__name__ = function.__qualname__ = name
    globals()[name] = intrinsic(function)
    __all__.append(name)


def _scalar(name: str, arity: int) -> None:
    def typed(*args: types.Type) -> Typed:
        of = [_dtype(a) for a in args]
        known = [d for d in of if d is not None]
        result = result_of(name, known) if len(known) == len(of) else None
        if result is None:
            return _type_intrinsic(name, args)

        def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
            function = vectorized_function(b.module, name, known)
            return (
                write_call(name, known, b, values) if function is None else b.call(function, values)
            )

        params = [NUMBA_TYPES[d.token] for d in known]
        return NUMBA_TYPES[result.token](*params), code

    _define(name, arity, typed)


def _conversion(to: DType) -> None:
    def typed(x: types.Type) -> Typed:
        of = _dtype(x)
        if of is None:
            return None

        def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
            return values[0] if of == to else write_cast(of, to, b, values[0])

        return NUMBA_TYPES[to.token](NUMBA_TYPES[of.token]), code

    _define(to.token, 1, typed)


def _element(p: types.Type) -> DType | None:
    return _dtype(p.dtype) if isinstance(p, types.CPointer) else None


def _stack(kind: str, count: int, of: DType) -> None:
    """A buffer on the stack."""
    pointer = types.CPointer(NUMBA_TYPES[of.token])

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        with b.goto_entry_block():
            place = b.alloca(ir.ArrayType(memory_type(of), count))
            place.align = 64
            return b.bitcast(place, memory_type(of).as_pointer())

    _define(f"{kind}_{of.token}", 0, lambda: (pointer(), code))


def _heap(of: DType) -> None:
    """A buffer on the heap of some elements."""
    pointer = types.CPointer(NUMBA_TYPES[of.token])

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        place = malloc_aligned(b, b.mul(values[0], ir.Constant(values[0].type, of.size)))
        return b.bitcast(place, memory_type(of).as_pointer())

    def typed(n: types.Type) -> Typed:
        return pointer(types.int64), code

    _define(f"heap_{of.token}", 1, typed)


def _release(p: types.Type) -> Typed:
    """Free a buffer on the heap."""

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        free_aligned(b, values[0])
        return context.get_dummy_value()

    return None if _element(p) is None else (types.void(p), code)


def _prefetch(p: types.Type) -> Typed:
    """Prefetch the cache line of an address."""

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        fetch(b, values[0])
        return context.get_dummy_value()

    return None if _element(p) is None else (types.void(p), code)


def _type_intrinsic(name: str, args: Sequence[types.Type]) -> Typed:
    """Return the signature and the code of a function or procedure of the table of intrinsics."""
    of = [_element(a) if isinstance(a, types.CPointer) else _dtype(a) for a in args]
    if None in of:
        return None
    pairs = zip(args, of, strict=True)
    kinds = [Pointer(d) if isinstance(a, types.CPointer) else d for a, d in pairs if d]
    resolved = resolve(name, tuple(kinds))
    if resolved is None:
        return None
    result, params, write = resolved

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        value = write(b, *values)
        if result is None:
            return context.get_dummy_value()
        assert value is not None, name
        return value

    return (types.void if result is None else _numba_type(result))(
        *[_numba_type(p) for p in params]
    ), code


def _intrinsic(name: str) -> None:
    """Define a function or procedure of the table of intrinsics for Numba."""
    _define(name, TABLE[name].arity, lambda *args: _type_intrinsic(name, args))


def scope() -> dict[str, object]:
    """Return the functions by name, with those that were added to the table since."""
    for name in TABLE.keys() - globals().keys():
        if name.isidentifier() and not TABLE[name].gpu:
            _intrinsic(name)
    return {name: globals()[name] for name in __all__}


def _numba_type(t: Type) -> types.Type:
    """Return the type of Numba for one of the loop IR."""
    if isinstance(t, Pointer):
        return types.CPointer(NUMBA_TYPES[t.of.token])
    return NUMBA_TYPES[t.token]


def _can_reduce(name: str, of: DType) -> bool:
    """Return whether kernels can reduce numbers of a type with a function."""
    return of.kind != "float" or "f" in COMBINES[name].kinds


def _declare_strip_reduction(combine: str) -> None:
    def typed(
        to: types.Type, source: types.Type, places: object, rows: object, columns: object
    ) -> Typed:
        of = _element(to)
        if of is None or source != to or not _can_reduce(combine, of):
            return None

        def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
            write_reduce_columns(combine, of, b, values)
            return context.get_dummy_value()

        i = types.int64
        return types.void(to, to, types.CPointer(i), i, i), code

    _define(f"strips_{combine}", 5, typed)


def _type_offset_pointer(p: types.Type, k: types.Type) -> Typed:
    """Return the signature and the code of `at`, the pointer to element k."""

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        return b.gep(values[0], [values[1]])

    return None if _element(p) is None else (p(p, types.int64), code)


def _declare_block_reduction(combine: str) -> None:
    def typed(p: types.Type, n: types.Type) -> Typed:
        of = _element(p)
        if of is None or not _can_reduce(combine, of):
            return None

        def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
            return write_reduce_elements(combine, of, b, *values)

        return NUMBA_TYPES[of.token](p, types.int64), code

    _define(f"block_{combine}", 2, typed)


def _wide_sum(p: types.Type, n: types.Type) -> Typed:
    """Return the signature and the code of the sum of float32 numbers in float64."""

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        return block.block_wide_sum(b, *values)

    return None if _element(p) != F4 else (NUMBA_TYPES[F8.token](p, types.int64), code)


@intrinsic
def parallel_for(
    typingctx: object,
    kernel: types.Dispatcher,
    sharer: types.Type,
    pool: types.Type,
    helpers: types.Type,
    count: types.Type,
    chunk: types.Type,
    *args: types.Type,
) -> Typed:
    """Share `count` steps of a kernel among threads, in parts of `chunk`, by the thread pool."""
    entry = ENTRIES[kernel.dispatcher]

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        _, sharer, pool, helpers, count, chunk, packed = values
        word = ir.IntType(64)
        with b.goto_entry_block():
            room = b.alloca(word, len(args))
        for k in range(len(args)):
            a = b.extract_value(packed, k)
            a = b.ptrtoint(a, word) if isinstance(a.type, ir.PointerType) else a
            b.store(a, b.gep(room, [word(k)]))
        kinds = [word, word.as_pointer(), *[word] * 4]
        kind = ir.FunctionType(ir.VoidType(), kinds)
        share = b.inttoptr(sharer, kind.as_pointer())
        b.call(share, [word(entry), room, count, chunk, pool, helpers])
        return context.get_dummy_value()

    return types.void(kernel, *[types.int64] * 5, types.StarArgTuple(args)), code


def _distinct_buffers() -> Typed:
    """Return the signature and the code of `distinct_buffers`, which declares to LLVM that no two
    buffers of the calling kernel overlap, as in the loop IR, and that vectors are as long as those
    of the LLVM back end."""

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        for a in b.function.args:
            if isinstance(a.type, ir.PointerType):
                a.add_attribute("noalias")
        if WIDE:
            add_attribute(b.function, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), code


def _type_nontemporal_request() -> Typed:
    """Return the signature and the code of `nontemporal_requested`: always 0 with Numba."""

    def code(context: Context, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(), code


@lower_builtin(operator.setitem, types.CPointer(types.boolean), types.Integer, types.Boolean)
def _store_bool(context: object, b: ir.IRBuilder, signature: object, values: Values) -> None:
    """Store a one-bit value as a byte; Numba would store one bit through the byte pointer."""
    p, k, value = values
    b.store(b.zext(value, ir.IntType(8)), b.gep(p, [k]))


@lower_builtin(operator.getitem, types.CPointer(types.boolean), types.Integer)
def _load_bool(context: object, b: ir.IRBuilder, signature: object, values: Values) -> ir.Value:
    """Load a byte of 0 or 1 as a one-bit value."""
    p, k = values
    return from_memory(B1, b, b.load(b.gep(p, [k])))


for _name, _function in FUNCTIONS.items():
    if _name not in INFIX and _name not in ("neg", "not"):
        _scalar(_name, _function.arity)
for _to in _OF.values():
    _conversion(_to)
    for _kind, _count in STACK_LENGTHS.items():
        _stack(_kind, _count, _to)
    _heap(_to)
for_each_combine(_declare_block_reduction)
for_each_combine(_declare_strip_reduction)
for _name in TABLE:
    if _name not in globals() and _name.isidentifier() and not TABLE[_name].gpu:
        _intrinsic(_name)
__all__.append("parallel_for")
_define("distinct_buffers", 0, _distinct_buffers)
_define("nontemporal_requested", 0, _type_nontemporal_request)
_define("at", 2, _type_offset_pointer)
_define("release", 1, _release)
_define("prefetch", 1, _prefetch)
_define("block_wide_sum", 2, _wide_sum)
