"""How an intrinsic is made: ``define`` turns a typing rule into a Numba intrinsic and lists it in
``NAMESPACE``.

In: a name, a number of arguments and a rule. Out: ``NAMESPACE`` filled by ``scalars.py`` and
``blocks.py``. Typing is one call of the rule and code generation writes LLVM IR at once, since
type inference is most of what compiling a kernel costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba.core import types
from numba.core.imputils import builtin_registry
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template

from .halves import E2, F2, Half
from .math import cold
from .math.ir import F32, F64, V

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
_features = binding.get_host_cpu_features()
cold.permutes = bool(_features.get("avx2"))
cold.halves = bool(_features.get("f16c"))
if _features.get("avx512f"):
    cold.vector_bytes = 64

Emit = Callable[[Any, Any, Any, Any], Any]
Rule = Callable[..., "tuple[Any, tuple[Any, ...], Emit] | None"]

# Of operands of half precision these make a number of half precision: there is nothing to round.
_KEEPS = frozenset(
    """abs floor ceil trunc round_even round_away sign fmax fmin rem copysign one select
    join_max join_min""".split()  # noqa: SIM905
)


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


def define(
    name: str, count: int, rule: Rule, into: dict[str, Any] = NAMESPACE, halves: bool = False
) -> None:
    """``rule`` of the argument types gives (result type, argument types, emit), or None.

    Numbers of half precision are float32 to it, unless it asks for `halves`.
    """

    def typed(*args: Any) -> Any:
        kinds = [types.unliteral(a) for a in args]
        small = {k for k in kinds if isinstance(k, Half)}
        wide = [types.float32 if k in small and not halves else k for k in kinds]
        found = rule(*wide)
        if found is None:
            got = ", ".join(str(a) for a in args)
            raise TypeError(
                f"{name}: no kernel code for these types; got ({got}); cast the arguments"
            )
        result, params, emit = found
        if name in _KEEPS and len(small) == 1 and {*kinds} <= {*small, types.boolean}:
            (result,) = small
        return result(*params), emit

    # Numba reads the number of arguments off the signature.
    names = ", ".join(f"x{k}" for k in range(count))
    into[name] = _intrinsic(
        name, eval(f"lambda typingctx, {names}: typed({names})", {"typed": typed})
    )


def simple(build: Callable[..., V]) -> Emit:
    """An emitter that only wraps and unwraps values."""

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return build(*(V(b, a) for a in args)).v

    return emit


def widest(*ts: Any) -> Any:
    """The type of operands that differ; generated code casts, so this is for literals."""
    kinds = (types.Boolean, types.Integer, types.Float, types.Complex)
    rank = [next((k for k, c in enumerate(kinds) if isinstance(t, c)), 0) for t in ts]
    best = max(rank)
    same = [t for t, r in zip(ts, rank, strict=True) if r == best]
    return max(same, key=lambda t: t.bitwidth if hasattr(t, "bitwidth") else 1)


def parts(context: Any, b: Any, t: Any, value: Any) -> tuple[V, V]:
    z = context.make_complex(b, t, value)
    return V(b, z.real).to(F64), V(b, z.imag).to(F64)


def joined(context: Any, b: Any, t: Any, re: V, im: V) -> Any:
    z = context.make_complex(b, t)
    part = F32 if t is types.complex64 else F64
    z.real, z.imag = re.to(part).v, im.to(part).v
    return z._getvalue()


def complex_emit(build: Callable[..., tuple[V, V]]) -> Emit:
    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        xs = [parts(context, b, t, a) for t, a in zip(sig.args, args, strict=True)]
        return joined(context, b, sig.return_type, *build(*xs))

    return emit


def context_type(t: Any) -> Any:
    if isinstance(t, types.Float):
        return F32 if t is types.float32 else F64
    return ir.IntType(1 if t is types.boolean else t.bitwidth)
