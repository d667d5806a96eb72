"""Intrinsics of products whose exponents are kept apart (`math/products.py`).

In: floats or complex numbers. Out: `odd(x)` in ``NAMESPACE``, whether a product is no normal
number; in that of kernels for GPUs what `apart_into` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from .factory import NAMESPACE, define
from .math.ir import I64, V
from .math.products import apart, is_odd, raised, whole


def _product(
    name: str,
    result: Callable[[Any], Any],
    act: Callable[..., Any],
    into: dict[str, Any] = NAMESPACE,
) -> None:
    """A step of a product: `act` of its one or two parts gives those of the result."""

    def rule(x: Any, *more: Any) -> Any:
        if not isinstance(x, (types.Float, types.Complex)):
            return None

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            if not isinstance(x, types.Complex):
                found = act(b, [args[0]], *args[1:])
                return found[0] if isinstance(found, list) else found
            z = context.make_complex(b, x, args[0])
            found = act(b, [z.real, z.imag], *args[1:])
            if not isinstance(found, list):
                return found
            z = context.make_complex(b, x)
            z.real, z.imag = found
            return z._getvalue()

        return result(x), (x, *[types.int64] * len(more)), emit

    define(name, 2 if name == "raised" else 1, rule, into)


def _exponent(b: Any, xs: list[Any]) -> Any:
    found = apart(b, xs)[1]
    return found if found.type == I64 else b.sext(found, I64)


def _raised(b: Any, xs: list[Any], power: Any) -> list[Any]:
    kind = whole(xs[0].type)
    power = V(b, power if kind == I64 else b.trunc(power, kind))
    return [raised(V(b, x), power).v for x in xs]


def apart_into(namespace: dict[str, Any]) -> None:
    """mantissa(x) and exponent(x), an int64; raised(m, e), the number again."""
    _product("mantissa", lambda t: t, lambda b, xs: apart(b, xs)[0], namespace)
    _product("exponent", lambda t: types.int64, _exponent, namespace)
    _product("raised", lambda t: t, _raised, namespace)


_product("odd", lambda t: types.boolean, is_odd)
