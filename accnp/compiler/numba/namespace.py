"""The functions of kernels as intrinsics of Numba: ``NAMESPACE``, the globals of kernels that Numba
types and lowers, from the table of `compiler.intrinsics`.

Typing is one call of a rule and code generation writes LLVM IR at once, since type inference is
most of what compiling a kernel costs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import builtin_registry, lower_builtin
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template

from accnp.compiler.intrinsics.all import TABLE, resolve
from accnp.compiler.llvm.scalars.ir import I8
from accnp.compiler.loops.types import DTYPES, Pointer, Type
from accnp.compiler.numba.halves import E2, F2

__all__ = ["NAMESPACE", "OWN", "SCALARS", "Emit", "Rule", "define"]

NAMESPACE: dict[str, Any] = {}

SCALARS: dict[str, Any] = {
    "b1": types.boolean,
    "i1": types.int8,
    "i2": types.int16,
    "i4": types.int32,
    "i8": types.int64,
    "u1": types.uint8,
    "u2": types.uint16,
    "u4": types.uint32,
    "u8": types.uint64,
    "f2": F2,
    "e2": E2,
    "f4": types.float32,
    "f8": types.float64,
    "c8": types.complex64,
    "c16": types.complex128,
}
OWN = {kind: DTYPES[token] for token, kind in SCALARS.items()}

Emit = Callable[[Any, Any, Any, Any], Any]
Rule = Callable[..., "tuple[Any, tuple[Any, ...], Emit] | None"]


class _Handle:
    """What generated code refers to by name."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<intrinsic {self.__name__}>"


def _intrinsic(name: str, typed: Callable[..., Any]) -> _Handle:
    """As `numba.extending.intrinsic`, but the lowering goes straight to the registry that every
    target has: Numba would ask its own CPU target first, which loads its linear algebra (0.8 s).
    """
    handle = _Handle(name)
    template = make_intrinsic_template(handle, typed, name)
    template._get_target_registry = lambda self, reason: builtin_registry  # type: ignore[method-assign]
    infer(template)
    infer_global(handle, types.Function(template))
    return handle


def define(name: str, count: int, rule: Rule, into: dict[str, Any] = NAMESPACE) -> None:
    """Add an intrinsic: `rule` of Numba's types gives the type of the result, those of the
    arguments and the code, or None."""

    def typed(*args: Any) -> Any:
        found = rule(*[types.unliteral(a) for a in args])
        if found is None:
            got = ", ".join(str(a) for a in args)
            raise TypeError(
                f"{name}: no kernel code for these types; got ({got}); cast the arguments"
            )
        result, params, emit = found
        return result(*params), emit

    # Numba reads the number of arguments off the signature.
    names = ", ".join(f"x{k}" for k in range(count))
    into[name] = _intrinsic(
        name, eval(f"lambda typingctx, {names}: typed({names})", {"typed": typed})
    )


def _own(t: Any) -> Type | None:
    """The type of the loop IR for one of Numba's."""
    if isinstance(t, types.CPointer):
        of = OWN.get(t.dtype)
        return None if of is None else Pointer(of)
    return OWN.get(t)


def _of_numba(t: Type | None) -> Any:
    if t is None:
        return types.void
    return types.CPointer(SCALARS[t.of.token]) if isinstance(t, Pointer) else SCALARS[t.token]


def _rule(name: str) -> Rule:
    """A function of the table as a rule of Numba's types."""

    def rule(*given: Any) -> Any:
        kinds = [_own(t) for t in given]
        known = tuple([t for t in kinds if t is not None])
        found = resolve(name, known) if len(known) == len(kinds) else None
        if found is None:
            return None
        result, params, write = found

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            made = write(b, *args)
            return context.get_dummy_value() if result is None else made

        return _of_numba(result), tuple([_of_numba(t) for t in params]), emit

    return rule


def _asked() -> Any:
    """Whether results bypass the caches: kernels for GPUs do not."""
    return types.int64, (), lambda context, b, sig, args: ir.Constant(ir.IntType(64), 0)


@lower_builtin(operator.setitem, types.CPointer(types.boolean), types.Integer, types.Boolean)
def _store_bool(context: Any, b: Any, sig: Any, args: Any) -> None:
    """Numba stores the one-bit value itself, which does not fit a byte pointer."""
    p, k, value = args
    b.store(b.zext(value, I8), b.gep(p, [k]))


@lower_builtin(operator.getitem, types.CPointer(types.boolean), types.Integer)
def _load_bool(context: Any, b: Any, sig: Any, args: Any) -> Any:
    """The same in the other direction: a byte of 0 or 1 becomes the one-bit value."""
    p, k = args
    return b.icmp_unsigned("!=", b.load(b.gep(p, [k])), ir.Constant(I8, 0))


for _name, _found in TABLE.items():
    define(_name, _found.arity, _rule(_name))
define("asked", 0, _asked)
