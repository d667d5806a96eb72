"""Elementwise ops that are not fused: gcd, and by a library Bessel functions, polygamma, zeta;
special identities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.kernel import Operand, dtype_code
from accnp.ir.node import Node
from accnp.ir.op import ZERO, o
from accnp.primitives.elementwise import like, like_full
from accnp.primitives.kinds import map_infer, move_batch_first, opaque, unary
from accnp.primitives.nests import Axis, Nest, Text, merged, total
from accnp.primitives.views import contiguous


def scipy_function(name: str) -> Callable[..., Any]:
    """Return a function of scipy.special, imported on first use; keeps its last operand's dtype."""

    def call(*xs: Any) -> Any:
        special = import_module("scipy.special")
        with np.errstate(all="ignore"):
            return np.asarray(getattr(special, name)(*xs)).astype(xs[-1].dtype)

    call.__name__ = name
    return call


def odd_function(name: str) -> Callable[..., Any]:
    """The same of a function that is odd; SciPy's gives 0 for -0."""
    call = scipy_function(name)

    def odd(x: Any) -> Any:
        return np.copysign(call(x), x)

    return odd


def _elementwise(
    name: str, dtypes: str, numpy: Callable[..., Any], jvp: Any, kernel: Any = None
) -> None:
    def batch(size: int, xs: Sequence[Node], batched: Sequence[bool], params: dict) -> Any:
        return getattr(o, name)(*move_batch_first(size, xs, batched)), True

    infer = map_infer(name, "same", dtypes)
    opaque(name, infer=infer, numpy=numpy, jvp=jvp, batch=batch, kernel=kernel)


def _gcd_kernel(operands: Sequence[Operand], results: Sequence[Aval], p: dict[str, Any]) -> Any:
    """Euclid's algorithm."""
    (out,) = results
    text = Text(3)
    strides = [x.strides if x.shape else (0,) * out.ndim for x in operands]
    nest = Nest(text, merged([
        Axis(n, steps) for n, *steps in zip(out.shape, *strides, contiguous(out.shape), strict=True)
    ]))  # fmt: skip
    for _ in nest.axes:
        nest.open()
    for k, name in enumerate("xy"):
        value = f"a{k}[{total(nest.walk(k))}]"
        if out.dtype.kind == "i":
            text.add(f"v = i8({value})", f"{name} = u8(v if v >= 0 else -v)")
        else:
            text.add(f"{name} = u8({value})")
    with text.block("while y > u8(0):"):
        text.add("r = rem(x, y)", "x = y", "y = r")
    text.add(f"a2[{total(nest.walk(2))}] = {dtype_code(out.dtype)}(x)")
    return nest.own(32 * out.dtype.itemsize)


_elementwise(
    "gcd", "iu", lambda a, b: np.gcd(a, b).astype(a.dtype), (ZERO, ZERO), _gcd_kernel
)  # fmt: skip
unary(
    "bessel_i0e",
    "f",
    scipy_function("i0e"),
    "bessel_i0e({0})",
    lambda t, y, x: o.mul(t, o.sub(o.bessel_i1e(x), o.mul(o.sign(x), y))),
    cost=40,
)


def _i1e_jvp(t: Node, y: Node, x: Node) -> Node:
    # The derivative i0e(x) - y * (sign(x) + 1/x) tends to 1/2 at 0.
    tiny = o.le(o.abs(x), like(x, float(ml_dtypes.finfo(x.aval.dtype).eps)))
    safe = o.select_n(tiny, x, like_full(x, 1))
    slope = o.sub(o.bessel_i0e(safe), o.mul(y, o.add(o.sign(safe), o.integer_pow(safe, y=-1))))
    return o.mul(t, o.select_n(tiny, slope, like_full(x, 0.5)))


unary(
    "bessel_i1e",
    "f",
    odd_function("i1e"),
    "copysign(bessel_i1e({0}), {0})",
    _i1e_jvp,
    cost=40,
)


def _not_by_order(name: str) -> Callable[..., Any]:
    def rule(*_: Any) -> Any:
        raise NotImplementedError(
            f"{name}: the derivative by the first operand, the order, is not known; got one that "
            "is differentiated; use stop_gradient, or give the function a rule with custom_jvp"
        )

    return rule


_elementwise("zeta", "f", scipy_function("zeta"), (_not_by_order("zeta"), lambda t, y, x, q: o.mul(
    t, o.mul(o.neg(x), o.zeta(o.add(x, like(x, 1)), q)))))  # fmt: skip
_elementwise(
    "polygamma",
    "f",
    lambda n, x: scipy_function("polygamma")(n.astype(np.float64), x),
    (_not_by_order("polygamma"), lambda t, y, n, x: o.mul(t, o.polygamma(o.add(n, like(n, 1)), x))),
)

# The value itself, but invisible to derivatives.
unary("stop_gradient", "biufc", np.array, "{0}", ZERO)


def _view_infer(x: Aval, *, new_dtype: Any) -> Aval:
    new = np.dtype(new_dtype)
    last = x.shape[-1] * x.dtype.itemsize // new.itemsize
    return make_aval((*x.shape[:-1], last), new)


# The bytes of the last axis under a dtype of another width.
opaque(
    "view_bytes",
    infer=_view_infer,
    numpy=lambda x, *, new_dtype: np.ascontiguousarray(x).view(new_dtype).copy(),
    jvp=(ZERO,),
    batch=lambda size, xs, batched, p: (o.view_bytes(xs[0], new_dtype=p["new_dtype"]), True),
)
opaque(
    "swap_bytes",
    infer=lambda x: make_aval(x.shape, x.dtype),
    numpy=lambda x: x.byteswap(),
    jvp=(ZERO,),
    batch=lambda size, xs, batched, p: (o.swap_bytes(xs[0]), True),
)
