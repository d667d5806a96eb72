"""The functions of `scipy.special` that are one op each, declared in a table.

In: arrays. Out: lazy Arrays of floating numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, broadcast_nodes, cast, promote_inexact, wrap
from accnp.api.arguments.values import node_of
from accnp.api.elements.elementwise import with_parameters
from accnp.api.special_functions import complex_gamma
from accnp.array import Array, ArrayLike
from accnp.errors import UnsupportedDtypeError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o

__all__ = [
    "beta", "betainc", "betaln", "complex_node", "dawsn", "digamma", "erf", "erfc", "erfcx",
    "erfinv", "exp1", "expi", "expn", "floating", "gamma", "gammainc", "gammaincc", "gammaln",
    "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "ndtri", "operands", "owens_t", "poch",
    "polygamma", "spence",
]  # fmt: skip

F32 = np.dtype(np.float32)


def operands(name: str, *xs: Any) -> list[Node]:
    """Return arguments of one real inexact dtype, broadcast against each other."""
    if name in _FLOATS:
        return [floating(name, *xs)]
    given = [wrap(node_of(x, function=f"special.{name}")) for x in xs] if name in _LISTS else xs
    nodes = broadcast_nodes(name, promote_inexact(f"special.{name}", *given))
    if nodes[0].aval.dtype.kind == "c":
        raise UnsupportedDtypeError(
            f"special.{name}: complex arguments are not supported; got {nodes[0].aval.dtype.name}; "
            "take real and imag apart"
        )
    return nodes


def floating(name: str, x: Any) -> Node:
    """Return an argument of a function that does not promote: float32, float64, lists as well."""
    node = node_of(x, function=f"special.{name}")
    dtype = node.aval.dtype
    if dtype not in (np.float32, np.float64):
        raise TypeError(
            f"special.{name}: takes 32-bit and 64-bit floating numbers; got {dtype.name}; "
            "convert with astype"
        )
    return node


# Functions whose results have a dtype of their own in jax, also where all arguments are weak.
_STRONG = {"beta", "dawsn", "erfcx", "exp1", "expi", "gamma", "ndtri", "spence"}
# Their first argument is an order.
_ORDERED = {"polygamma"}
# These are float32 for floating numbers of fewer bits, too.
_SINGLE = {"owens_t"}
# These take lists.
_LISTS = {"expn", "hyp1f1", "hyp2f1"}
# These take neither integers nor numbers of 16 bits.
_FLOATS = {"ndtri", "spence"}


def _taken(arguments: str) -> str:
    """What the docstring of a function of real arrays says of shapes, dtypes and errors."""
    many = "," in arguments
    given = "real arrays, which are promoted and broadcast" if many else "a real array"
    return (
        f"{arguments}: {given}. The result is floating: integers and bools give float32\n"
        "    (float64 with jax_enable_x64).\n\n"
        "    Differs from SciPy: no complex arguments, no lists; float32 stays float32.\n\n"
        "    Raises:\n        TypeError: no array or number is given, or a complex one"
        + (", or shapes do not broadcast." if many else ".")
    )


def complex_node(name: str, x: Any) -> Node | None:
    """Return a complex argument as a node, None for a real one."""
    (node,) = promote_inexact(f"special.{name}", x)
    return node if node.aval.dtype.kind == "c" else None


def _function(
    name: str,
    op: str,
    arguments: str,
    what: str,
    example: str = "",
    wide: Callable[[Node], Node] | None = None,
) -> Any:
    """Declare a function that is one op; `wide` records it for complex numbers."""
    plain: Callable[..., Node] = getattr(o, op)

    def strong(*xs: Node) -> Node:
        y = plain(*xs)
        return cast(y, y.aval.dtype)

    def single(*xs: Node) -> Node:
        return strong(*[cast(x, F32) if x.aval.dtype.itemsize < 4 else x for x in xs])

    record = single if name in _SINGLE else strong if name in _STRONG else plain

    def one(x: ArrayLike) -> Array:
        if wide is not None and (z := complex_node(name, x)) is not None:
            return wrap(cast(wide(z), z.aval.dtype))
        return wrap(record(*operands(name, x)))

    def two(x: ArrayLike, y: Any) -> Array:
        if name in _ORDERED and (kind := as_node(x, name).aval.dtype).kind not in "biu":
            raise ValueError(
                f"special.{name}: n must be an integer; got {kind.name}; use astype(int)"
            )
        return wrap(record(*operands(name, x, y)))

    def three(x: ArrayLike, y: Any, z: Any) -> Array:
        return wrap(record(*operands(name, x, y, z)))

    def four(x: ArrayLike, y: Any, z: Any, w: Any) -> Array:
        return wrap(record(*operands(name, x, y, z, w)))

    call = with_parameters((one, two, three, four)[arguments.count(",")], arguments)
    made: Any = api_boundary(call)
    made.__name__ = made.__qualname__ = name
    made.__module__ = "accnp.scipy.special"
    taken = _taken(arguments)
    if name in _LISTS | _FLOATS:
        taken = taken.replace(", no lists", "")
    if name in _FLOATS:
        taken = taken.replace(
            "The result is floating: integers and bools give float32\n"
            "    (float64 with jax_enable_x64).",
            "float32 and float64 stay, other dtypes are refused.",
        )
    if wide is not None:
        taken = (
            taken.replace("a real array", "a real or complex array")
            .replace(
                "no complex arguments, no lists; float32 stays float32",
                "no lists; float32 stays float32",
            )
            .replace(" is given, or a complex one.", " is given.")
        )
    made.__doc__ = f"{what}, elementwise.\n\n    {taken}\n"
    if example:
        call_text, value = example.split(" -> ")
        made.__doc__ += f"""
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.{call_text}), 5)
    {value}
    """
    return made


beta = _function(
    "beta", "beta", "a, b", "gamma(a) gamma(b) / gamma(a + b)", "beta(2.0, 3.0) -> 0.08333"
)
betaln = _function("betaln", "betaln", "a, b", "log |beta(a, b)|", "betaln(2.0, 3.0) -> -2.48491")
betainc = _function(
    "betainc", "regularized_incomplete_beta", "a, b, x",
    "The regularised incomplete beta function", "betainc(2.0, 3.0, 0.5) -> 0.6875",
)  # fmt: skip
dawsn = _function("dawsn", "dawsn", "x", "Dawson's integral", "dawsn(1.0) -> 0.53808")
digamma = _function(
    "digamma", "digamma", "x", "The derivative of log gamma", "digamma(1.0) -> -0.57722"
)
erf = _function("erf", "erf", "x", "The error function", "erf(1.0) -> 0.8427")
erfc = _function("erfc", "erfc", "x", "1 - erf(x)", "erfc(1.0) -> 0.1573")
erfcx = _function(
    "erfcx", "erfcx", "x", "exp(x**2) erfc(x)", "erfcx(1.0) -> 0.42758", complex_gamma.erfcx
)
erfinv = _function("erfinv", "erf_inv", "x", "The inverse of erf", "erfinv(0.5) -> 0.47694")
exp1 = _function(
    "exp1", "exp1", "x", "The integral of exp(-t) / t from x on", "exp1(1.0) -> 0.21938"
)
expi = _function(
    "expi", "expi", "x", "The integral of exp(t) / t up to x, a principal value",
    "expi(1.0) -> 1.89512",
)  # fmt: skip
expn = _function(
    "expn", "expn", "n, x", "The integral of exp(-x t) / t**n from 1 on", "expn(2, 1.0) -> 0.1485"
)
gamma = _function(
    "gamma", "gamma", "x", "The gamma function", "gamma(5.0) -> 24.0", complex_gamma.gamma
)
gammainc = _function(
    "gammainc", "igamma", "a, x", "The regularised lower incomplete gamma function",
    "gammainc(2.0, 1.0) -> 0.26424",
)  # fmt: skip
gammaincc = _function(
    "gammaincc", "igammac", "a, x", "The regularised upper incomplete gamma function",
    "gammaincc(2.0, 1.0) -> 0.73576",
)  # fmt: skip
gammaln = _function("gammaln", "lgamma", "x", "log |gamma(x)|", "gammaln(5.0) -> 3.17805")
hyp1f1 = _function(
    "hyp1f1", "hyp1f1", "a, b, x", "Kummer's confluent hypergeometric function",
    "hyp1f1(1.0, 2.0, 3.0) -> 6.36185",
)  # fmt: skip
hyp2f1 = _function(
    "hyp2f1", "hyp2f1", "a, b, c, x", "Gauss's hypergeometric function",
    "hyp2f1(1.0, 2.0, 3.0, 0.5) -> 1.54518",
)  # fmt: skip
i0 = _function(
    "i0", "bessel_i0", "x", "The modified Bessel function of order 0", "i0(1.0) -> 1.26607"
)
i0e = _function("i0e", "bessel_i0e", "x", "exp(-|x|) i0(x)", "i0e(1.0) -> 0.46576")
i1 = _function(
    "i1", "bessel_i1", "x", "The modified Bessel function of order 1", "i1(1.0) -> 0.56516"
)
i1e = _function("i1e", "bessel_i1e", "x", "exp(-|x|) i1(x)", "i1e(1.0) -> 0.20791")
ndtri = _function(
    "ndtri", "ndtri", "p", "The inverse of the normal distribution function",
    "ndtri(0.975) -> 1.95996",
)  # fmt: skip
owens_t = _function(
    "owens_t", "owens_t", "h, a", "Owen's T function", "owens_t(1.0, 2.0) -> 0.07847"
)
poch = _function("poch", "poch", "z, m", "gamma(z + m) / gamma(z)", "poch(2.0, 3.0) -> 24.0")
polygamma = _function(
    "polygamma", "polygamma", "n, x", "The derivative of order n of digamma",
    "polygamma(1, 2.0) -> 0.64493",
)  # fmt: skip
spence = _function(
    "spence",
    "spence",
    "x",
    "The integral of log(t) / (1 - t) from 1 to x",
    "spence(2.0) -> -0.82247",
)
