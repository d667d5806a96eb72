"""The functions of `scipy.special` that are one op each, declared in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, overload

import numpy as np

from accnp.api.arguments.convert import as_node, broadcast_nodes, cast, promote_inexact, wrap
from accnp.api.arguments.values import node_of
from accnp.array_type import Array, ArrayLike
from accnp.errors import UnsupportedDtypeError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.ufunc_factories import with_parameters
from accnp.scipy.special import complex_gamma

__all__ = [
    "beta", "betainc", "betaln", "complex_node", "dawsn", "digamma", "erf", "erfc", "erfcx",
    "erfinv", "exp1", "expi", "expn", "floating", "gamma", "gammainc", "gammaincc", "gammaln",
    "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "ndtri", "operands", "owens_t", "poch",
    "polygamma", "spence",
]  # fmt: skip

F32 = np.dtype(np.float32)


if TYPE_CHECKING:  # types of the generated functions, by their parameters

    class FunctionOfX(Protocol):
        def __call__(self, x: ArrayLike) -> Array: ...

    class FunctionOfP(Protocol):
        def __call__(self, p: ArrayLike) -> Array: ...

    class FunctionOfAB(Protocol):
        def __call__(self, a: ArrayLike, b: ArrayLike) -> Array: ...

    class FunctionOfAX(Protocol):
        def __call__(self, a: ArrayLike, x: ArrayLike) -> Array: ...

    class FunctionOfHA(Protocol):
        def __call__(self, h: ArrayLike, a: ArrayLike) -> Array: ...

    class FunctionOfNX(Protocol):
        def __call__(self, n: ArrayLike, x: ArrayLike) -> Array: ...

    class FunctionOfZM(Protocol):
        def __call__(self, z: ArrayLike, m: ArrayLike) -> Array: ...

    class FunctionOfABX(Protocol):
        def __call__(self, a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array: ...

    class FunctionOfABCX(Protocol):
        def __call__(self, a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array: ...


def operands(name: str, *xs: Any, accepts_lists: bool = False) -> list[Node]:
    """Return arguments of one real inexact dtype, broadcast against each other."""
    arrays = [wrap(node_of(x, function=f"special.{name}")) for x in xs] if accepts_lists else xs
    nodes = broadcast_nodes(name, promote_inexact(f"special.{name}", *arrays))
    if nodes[0].aval.dtype.kind == "c":
        raise UnsupportedDtypeError(
            f"special.{name}: complex arguments are not supported; got {nodes[0].aval.dtype.name}; "
            "take real and imag apart"
        )
    return nodes


def floating(name: str, x: Any) -> Node:
    """Return an argument of a function that does not promote: float32, float64, or lists."""
    node = node_of(x, function=f"special.{name}")
    dtype = node.aval.dtype
    if dtype not in (np.float32, np.float64):
        raise TypeError(
            f"special.{name}: takes 32-bit and 64-bit floating numbers; got {dtype.name}; "
            "convert with astype"
        )
    return node


class Dtypes(NamedTuple):
    """What a function accepts and returns, as in JAX, if it differs from most functions.

    Attributes:
        strong: the result has its own dtype, even if all arguments are weak.
        single: the result is float32 for narrower floating dtypes; it is strong.
        integer_order: the first argument is an order, of an integer dtype.
        accepts_lists: arguments may be lists.
        floats_only: arguments are neither integers nor 16-bit numbers; they may be lists.
    """

    strong: bool = False
    single: bool = False
    integer_order: bool = False
    accepts_lists: bool = False
    floats_only: bool = False


_USUAL = Dtypes()
_STRONG = Dtypes(strong=True)
_STRONG_FLOATS = Dtypes(strong=True, floats_only=True)
_OF_LISTS = Dtypes(accepts_lists=True)


# Descriptions of operands, by function and name.
_ROLES = {
    "beta": {"a": "First real argument, of any shape.", "b": "Second one, which broadcasts."},
    "betaln": {"a": "First real argument, of any shape.", "b": "Second one, which broadcasts."},
    "betainc": {
        "a": "First parameter, positive.",
        "b": "Second parameter, positive.",
        "x": "Upper limit of the integral, between 0 and 1.",
    },
    "expi": {"x": "Upper limit of the integral."},
    "exp1": {"x": "Lower limit of the integral."},
    "expn": {"n": "Order, a whole number.", "x": "Factor in the exponent."},
    "gammainc": {"a": "Order, positive.", "x": "Upper limit of the integral, not negative."},
    "gammaincc": {"a": "Order, positive.", "x": "Lower limit of the integral, not negative."},
    "hyp1f1": {
        "a": "Parameter in the numerators of the series.",
        "b": "Parameter in the denominators of the series.",
        "x": "Variable of the power series.",
    },
    "hyp2f1": {
        "a": "First parameter in the numerators of the series.",
        "b": "Second parameter in the numerators.",
        "c": "Parameter in the denominators of the series.",
        "x": "Variable of the power series.",
    },
    "ndtri": {"p": "Probability, between 0 and 1."},
    "owens_t": {
        "h": "Distance of the region from the origin.",
        "a": "Slope of the border of the region.",
    },
    "poch": {
        "z": "Base of the rising factorial.",
        "m": "Distance to its upper end.",
    },
    "polygamma": {
        "n": "Order of the derivative, an integer.",
        "x": "Points to evaluate it at.",
    },
    "spence": {"x": "Upper limit of the integral, not negative."},
}


def _make_docstring(
    name: str, names: list[str], what: str, related: str, complexes: bool, dtypes: Dtypes
) -> str:
    """Return the docstring of a function without its example."""
    kind = "Real or complex" if complexes else "Real"
    roles = _ROLES.get(name, {})
    lines = [f"Compute {what}, elementwise.", "", "Parameters", "----------"]
    for parameter in names:
        role = roles.get(parameter)
        lines += [f"{parameter} : array_like"]
        lines += [f"    {role or f'{kind} array or number, of any shape.'}"]
    shape = "to which the arguments broadcast" if names[1:] else f"of `{names[0]}`"
    lines += [
        "",
        "Returns",
        "-------",
        "Array",
        f"    Values of the function, with the shape {shape}.",
    ]
    if dtypes.floats_only:
        lines += ["    The dtype is float32 or float64, as that of the argument."]
    else:
        lines += [
            "    The dtype is floating: integers and bools give float32 (float64 with",
            "    `jax_enable_x64`).",
        ]
    refused = "is not an array or a number"
    if dtypes.floats_only:
        refused += ", or is neither float32 nor float64"
    elif not complexes:
        refused += ", or is complex"
    lines += ["", "Raises", "------", "TypeError", f"    If an argument {refused}."]
    lines += ["    Also if shapes do not broadcast."] if names[1:] else []
    if dtypes.integer_order:
        lines += ["ValueError", f"    If `{names[0]}` does not have an integer dtype."]
    differs = [] if complexes else ["there are no complex arguments"]
    differs += [] if dtypes.accepts_lists or dtypes.floats_only else ["lists are not accepted"]
    differs += ["float32 stays float32"]
    text = ", and ".join([", ".join(differs[:-1]), differs[-1]] if differs[1:] else differs)
    lines += ["", "See Also", "--------", related]
    lines += ["", "Notes", "-----", f"Unlike SciPy, {text}."]
    return "\n    ".join(lines).replace("\n    \n", "\n\n")


def complex_node(name: str, x: Any) -> Node | None:
    """Return a complex argument as a node, None for a real one."""
    (node,) = promote_inexact(f"special.{name}", x)
    return node if node.aval.dtype.kind == "c" else None


@overload
def _function(
    name: str, op: str, arguments: Literal["x"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfX: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["p"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfP: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["a, b"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfAB: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["a, x"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfAX: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["h, a"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfHA: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["n, x"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfNX: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["z, m"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfZM: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["a, b, x"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfABX: ...  # fmt: skip
@overload
def _function(
    name: str, op: str, arguments: Literal["a, b, c, x"], what: str, example: str, related: str,
    wide: Callable[[Node], Node] | None = None, dtypes: Dtypes = ...,
) -> FunctionOfABCX: ...  # fmt: skip
def _function(
    name: str,
    op: str,
    arguments: str,
    what: str,
    example: str,
    related: str,
    wide: Callable[[Node], Node] | None = None,
    dtypes: Dtypes = _USUAL,
) -> Any:
    """Declare a function that is one op; `wide` records it for complex numbers.

    The docstring says `what` it computes, has an `example` "call -> value", and the names of
    `related` functions.
    """
    called, value = example.split(" -> ")
    plain: Callable[..., Node] = getattr(o, op)

    def strong(*xs: Node) -> Node:
        y = plain(*xs)
        return cast(y, y.aval.dtype)

    def single(*xs: Node) -> Node:
        return strong(*[cast(x, F32) if x.aval.dtype.itemsize < 4 else x for x in xs])

    record = single if dtypes.single else strong if dtypes.strong else plain

    def convert(*xs: ArrayLike) -> list[Node]:
        if dtypes.floats_only:
            return [floating(name, *xs)]
        return operands(name, *xs, accepts_lists=dtypes.accepts_lists)

    def one(x: ArrayLike) -> Array:
        if wide is not None and (z := complex_node(name, x)) is not None:
            return wrap(cast(wide(z), z.aval.dtype))
        return wrap(record(*convert(x)))

    def two(x: ArrayLike, y: ArrayLike) -> Array:
        if dtypes.integer_order and (kind := as_node(x, name).aval.dtype).kind not in "biu":
            raise ValueError(
                f"special.{name}: n must be an integer; got {kind.name}; use astype(int)"
            )
        return wrap(record(*convert(x, y)))

    def three(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
        return wrap(record(*convert(x, y, z)))

    def four(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> Array:
        return wrap(record(*convert(x, y, z, w)))

    call = with_parameters((one, two, three, four)[arguments.count(",")], arguments)
    function: Any = api_boundary(call)
    function.__name__ = function.__qualname__ = name
    function.__module__ = "accnp.scipy.special"
    function.__doc__ = _make_docstring(
        name, arguments.split(", "), what, related, wide is not None, dtypes
    ) + (
        "\n\n    Examples\n    --------\n    >>> import accnp as jnp\n"
        f"    >>> round(float(jnp.scipy.special.{called}), 5)\n    {value}\n    "
    )
    return function


beta = _function(
    "beta", "beta", "a, b", "the beta function gamma(a) gamma(b) / gamma(a + b)",
    "beta(2.0, 3.0) -> 0.08333", "betaln, betainc, gamma",
    dtypes=_STRONG,
)  # fmt: skip
betaln = _function(
    "betaln", "betaln", "a, b", "the logarithm of the absolute value of the beta function",
    "betaln(2.0, 3.0) -> -2.48491", "beta, gammaln",
)  # fmt: skip
betainc = _function(
    "betainc", "regularized_incomplete_beta", "a, b, x",
    "the regularized incomplete beta function", "betainc(2.0, 3.0, 0.5) -> 0.6875",
    "beta, gammainc",
)  # fmt: skip
dawsn = _function(
    "dawsn", "dawsn", "x", "Dawson's integral", "dawsn(1.0) -> 0.53808", "erf, wofz", dtypes=_STRONG
)
digamma = _function(
    "digamma", "digamma", "x", "the derivative of the logarithm of the gamma function",
    "digamma(1.0) -> -0.57722", "gammaln, polygamma",
)  # fmt: skip
erf = _function("erf", "erf", "x", "the error function", "erf(1.0) -> 0.8427", "erfc, erfinv, ndtr")
erfc = _function(
    "erfc", "erfc", "x", "the complementary error function 1 - erf(x)", "erfc(1.0) -> 0.1573",
    "erf, erfcx",
)  # fmt: skip
erfcx = _function(
    "erfcx", "erfcx", "x", "the scaled complementary error function exp(x**2) erfc(x)",
    "erfcx(1.0) -> 0.42758", "erfc, wofz", complex_gamma.erfcx,
    dtypes=_STRONG,
)  # fmt: skip
erfinv = _function(
    "erfinv", "erf_inv", "x", "the inverse of the error function", "erfinv(0.5) -> 0.47694",
    "erf, ndtri",
)  # fmt: skip
exp1 = _function(
    "exp1", "exp1", "x", "the integral of exp(-t) / t from x to infinity", "exp1(1.0) -> 0.21938",
    "expi, expn",
    dtypes=_STRONG,
)  # fmt: skip
expi = _function(
    "expi", "expi", "x", "the principal value of the integral of exp(t) / t up to x",
    "expi(1.0) -> 1.89512", "exp1, expn",
    dtypes=_STRONG,
)  # fmt: skip
expn = _function(
    "expn", "expn", "n, x", "the integral of exp(-x t) / t**n from 1 to infinity",
    "expn(2, 1.0) -> 0.1485", "exp1, expi",
    dtypes=_OF_LISTS,
)  # fmt: skip
gamma = _function(
    "gamma", "gamma", "x", "the gamma function", "gamma(5.0) -> 24.0",
    "gammaln, loggamma, factorial", complex_gamma.gamma,
    dtypes=_STRONG,
)  # fmt: skip
gammainc = _function(
    "gammainc", "igamma", "a, x", "the regularized lower incomplete gamma function",
    "gammainc(2.0, 1.0) -> 0.26424", "gammaincc, gamma",
)  # fmt: skip
gammaincc = _function(
    "gammaincc", "igammac", "a, x", "the regularized upper incomplete gamma function",
    "gammaincc(2.0, 1.0) -> 0.73576", "gammainc, gamma",
)  # fmt: skip
gammaln = _function(
    "gammaln", "lgamma", "x", "the logarithm of the absolute value of the gamma function",
    "gammaln(5.0) -> 3.17805", "gamma, loggamma, gammasgn",
)  # fmt: skip
hyp1f1 = _function(
    "hyp1f1", "hyp1f1", "a, b, x", "Kummer's confluent hypergeometric function",
    "hyp1f1(1.0, 2.0, 3.0) -> 6.36185", "hyp2f1",
    dtypes=_OF_LISTS,
)  # fmt: skip
hyp2f1 = _function(
    "hyp2f1", "hyp2f1", "a, b, c, x", "Gauss's hypergeometric function",
    "hyp2f1(1.0, 2.0, 3.0, 0.5) -> 1.54518", "hyp1f1",
    dtypes=_OF_LISTS,
)  # fmt: skip
i0 = _function(
    "i0", "bessel_i0", "x", "the modified Bessel function of order 0", "i0(1.0) -> 1.26607",
    "i0e, i1",
)  # fmt: skip
i0e = _function("i0e", "bessel_i0e", "x", "exp(-abs(x)) i0(x)", "i0e(1.0) -> 0.46576", "i0, i1e")
i1 = _function(
    "i1", "bessel_i1", "x", "the modified Bessel function of order 1", "i1(1.0) -> 0.56516",
    "i1e, i0",
)  # fmt: skip
i1e = _function("i1e", "bessel_i1e", "x", "exp(-abs(x)) i1(x)", "i1e(1.0) -> 0.20791", "i1, i0e")
ndtri = _function(
    "ndtri", "ndtri", "p", "the inverse of the normal distribution function",
    "ndtri(0.975) -> 1.95996", "ndtr, erfinv",
    dtypes=_STRONG_FLOATS,
)  # fmt: skip
owens_t = _function(
    "owens_t", "owens_t", "h, a", "Owen's T function", "owens_t(1.0, 2.0) -> 0.07847", "ndtr",
    dtypes=Dtypes(single=True),
)  # fmt: skip
poch = _function(
    "poch", "poch", "z, m", "the rising factorial gamma(z + m) / gamma(z)",
    "poch(2.0, 3.0) -> 24.0", "gamma, factorial",
)  # fmt: skip
polygamma = _function(
    "polygamma", "polygamma", "n, x", "the derivative of order n of the digamma function",
    "polygamma(1, 2.0) -> 0.64493", "digamma, zeta",
    dtypes=Dtypes(integer_order=True),
)  # fmt: skip
spence = _function(
    "spence", "spence", "x", "the integral of log(t) / (1 - t) from 1 to x",
    "spence(2.0) -> -0.82247", "expi",
    dtypes=_STRONG_FLOATS,
)  # fmt: skip
