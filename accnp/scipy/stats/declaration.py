"""Declaration of distributions: builds the module of a distribution from its functions.

The given functions take standardized values, for loc=0 and scale=1. `declare` adds location, scale
and the functions that follow from others (such as densities from their logarithms).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

import numpy as np

from accnp.api.arguments.convert import (
    as_nodes,
    broadcast_nodes,
    cast,
    promote_inexact,
    scalar_node,
    to_shape,
    wrap,
)
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.module_getattr import install_getattr
from accnp.numpy import ufuncs as uf
from accnp.numpy.selection import where
from accnp.primitives.kinds import wrong_dtype
from accnp.scipy.stats.descriptions import describe

__all__ = ["declare"]

Function = Callable[..., Any]
EMPTY: Mapping[str, Sequence[str]] = {}
_MOST = 2**31  # Python ints of smaller magnitude fit every integer dtype

_DERIVED = {"pdf": "logpdf", "pmf": "logpmf", "cdf": "logcdf", "sf": "logsf"}
_INVERSE = ("ppf", "isf")


def declare(
    name: str, what: str, shapes: str, first: str = "x", place: str = "loc=0, scale=1",
    plain: Sequence[str] = (), inverse: str = "q", strong: Sequence[str] = (),
    loose: Sequence[str] = (), shaped: Mapping[str, Sequence[str]] = EMPTY,
    pieces: bool = False, positive: bool = False, **functions: Function,
) -> ModuleType:  # fmt: skip
    """Build the module of a distribution.

    Args:
        name: the name of the distribution.
        what: a description, for docstrings.
        shapes: the names of its shape parameters.
        first: the name of the first argument, except for `ppf` and `isf`.
        place: which of loc and scale it has.
        plain: the names of functions without loc and scale.
        inverse: the name of the first argument of `ppf` and `isf`.
        strong: the names of functions whose results are strong even for Python numbers, as in JAX.
        loose: the names of functions whose results are weak for weak arguments of any shape, as in
            JAX. Results of the others are strong if the first argument has axes, since JAX's
            formulas contain constants of its shape.
        shaped: for each function, the names of further arguments whose axes have that effect.
        pieces: whether functions are piecewise: comparisons with nan would select a piece.
        positive: whether shape parameters that are not positive give nan, as in SciPy.
        functions: by name, functions of the standardized value and the shape parameters. `pdf`,
            `pmf`, `cdf` and `sf` may be omitted if their logarithms are given; None suppresses a
            function that would follow from others.
    """
    module = ModuleType(f"accnp.scipy.stats.{name}", f"{what[0].upper()}{what[1:]}.")
    definitions = dict(functions)
    for derived, log in _DERIVED.items():
        if log in definitions and derived not in definitions:
            definitions[derived] = lambda *xs, f=definitions[log]: uf.exp(f(*xs))
    keys = [key for key, function in definitions.items() if function is not None]
    for key, function in definitions.items():
        if function is not None:
            head = first if key not in _INVERSE else inverse
            names = [] if key == "entropy" else [head]
            names += shapes.split(", ") if shapes else []
            # As in JAX, entropies are never weak, since their formulas contain strong constants.
            never = key in strong or key == "entropy"
            its = "" if key in plain else place
            weak_where = () if key in loose else (*names[:1], *shaped.get(key, ()))
            flags = (never, weak_where, pieces, positive)
            setattr(module, key, _make(name, key, what, names, its, flags, function, keys))
    sys.modules[module.__name__] = module
    install_getattr(module.__name__, definitions)
    return module


# Formulas that are valid for complex numbers: distributions, or single functions of them.
_COMPLEX = frozenset(
    ["cauchy", "logistic", "norm.logpdf", "norm.pdf", "expon.ppf", "pareto.ppf", "uniform.ppf"]
)


# Distributions whose formula contains the square of the scale, as in JAX, so its sign is ignored.
_EVEN = ("norm", "t")
# Distributions with probabilities for negative scales, as in JAX: of the negated variable, or none.
_TURNED = (*_EVEN, "cauchy", "laplace", "logistic")


def _width(name: str, scale: Array) -> Array:
    """Return the divisor of a density; nan for negative scales."""
    if scale.dtype.kind == "c" or name not in _TURNED:
        return scale
    return uf.abs(scale) if name in _EVEN else where(scale < 0, np.nan, scale)


def _nan_unless_positive(x: Array) -> Array:
    """Return a parameter, with nan where it is not positive, as in SciPy."""
    return x if x.dtype.kind == "c" else where(x > 0, x, np.nan)


def _make(  # noqa: C901
    name: str, key: str, what: str, names: list[str], place: str,
    flags: tuple[bool, Sequence[str], bool, bool], function: Function, keys: Collection[str],
) -> Function:  # fmt: skip
    strong, shaped, pieces, positive = flags
    label = f"{name}.{key}"
    complexes = name in _COMPLEX or label in _COMPLEX
    extra = [p.split("=")[0] for p in place.split(", ")] if place else []
    kind = Parameter.POSITIONAL_OR_KEYWORD
    signature = Signature(
        [Parameter(n, kind) for n in names]
        + [Parameter(n, kind, default=int(n == "scale")) for n in extra]
    )

    def call(*args: Any, **kwargs: Any) -> Array:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        raw_nodes, nodes = converted(bound.arguments.values())
        if not complexes and nodes[0].aval.dtype.kind == "c":
            raise wrong_dtype(label, nodes[0].aval.dtype, "biuf")
        # Constants of a formula must not decide: what the operands promote to does, and whether
        # some of them have axes.
        weak = not strong and all(x.aval.weak_type for x in nodes)
        with_axes = {n for n, x in zip(bound.arguments, raw_nodes, strict=True) if x.aval.shape}
        weak = weak and with_axes.isdisjoint(shaped)
        nodes = broadcast_nodes(label, nodes)
        values = dict(zip(bound.arguments, map(wrap, nodes), strict=True))
        if positive:
            values |= {n: _nan_unless_positive(values[n]) for n in names[1:]}
        result = evaluated(values, bound.arguments.get("scale", 1))
        return wrap(cast(result._node, nodes[0].aval.dtype, weak))

    def converted(arguments: Iterable[Any]) -> tuple[list[Node], list[Node]]:
        """Return the nodes of arguments, and the nodes in one floating dtype. As in JAX, Python
        ints of any size become floats, although they may not fit the integer dtype."""
        values = list(arguments)
        large = [i for i, x in enumerate(values) if type(x) is int and not -_MOST <= x < _MOST]
        raw_nodes = as_nodes(label, *[0 if i in large else x for i, x in enumerate(values)])
        nodes = promote_inexact(label, *map(wrap, raw_nodes))
        for i in large:
            aval = nodes[i].aval
            nodes[i] = scalar_node(float(values[i]), aval.dtype, aval.weak_type)
        return raw_nodes, nodes

    def evaluated(values: dict[str, Array], scale_value: Any) -> Array:
        loc, scale = values.pop("loc", None), values.pop("scale", None)
        stated = isinstance(scale_value, int | float) and scale_value > 0
        if scale is not None and not stated and name not in _TURNED:
            scale = _nan_unless_positive(scale)
        value, *shapes = values.values() if key != "entropy" else (None, *values.values())
        if key in _INVERSE:
            result = function(value, *shapes)
            result = result if scale is None else result * scale
            result = result if loc is None else result + loc
            return known(result, [value, *shapes])
        if key == "entropy":
            result = known(function(*shapes), shapes)
            whole = np.broadcast_shapes(*[x.shape for x in (result, loc, scale) if x is not None])
            return wrap(to_shape(result._node, whole))
        moved = value if loc is None else value - loc
        moved = moved if scale is None else moved / scale
        return known(sized(function(moved, *shapes), scale, stated), [moved, *shapes])

    def known(result: Array, values: Sequence[Any]) -> Array:
        """Propagate nan from operands, since comparisons with nan would select a piece."""
        if not pieces:
            return result
        return where(functools.reduce(uf.logical_or, map(uf.isnan, values)), np.nan, result)

    def sized(result: Array, scale: Array | None, stated: bool) -> Array:
        if scale is None:
            return result
        if key.endswith("pdf") and not stated:
            scale = _width(name, scale)
        if key == "logpdf":
            scaled = result - uf.log(scale)  # outside of the support the scale has no effect
            return where(result == -np.inf, result, scaled) if pieces else scaled
        return result / scale if key == "pdf" else result

    public: Any = call
    if pieces:  # of many operations; those of a given scale depend on its sign
        call.__name__, call.__signature__ = label, signature  # type: ignore[attr-defined]
        arrays = [n for n in (*names, *extra) if n != "scale"]
        public = compiled_if_small(*arrays)(call)
    wrapper: Any = api_boundary(public)
    wrapper.__name__ = wrapper.__qualname__ = key
    wrapper.__module__ = f"accnp.scipy.stats.{name}"
    wrapper.__signature__ = signature
    wrapper.__doc__ = describe(name, key, what, list(signature.parameters), keys, not complexes)
    return wrapper
