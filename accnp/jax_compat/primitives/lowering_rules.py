"""Lowerings of user-defined primitives, and tables of the rules of built-in primitives.

A lowering is a traceable function (`mlir.lower_fun`). The rules of built-in primitives are derived
from accnp's transformations when they are looked up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.differentiation.derivatives import jvp, linear_transpose
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct
from accnp.api.jit.jit import jit
from accnp.api.mapping.vmap import vmap
from accnp.array_type import ArrayLike
from accnp.jax_compat.jaxprs import rules
from accnp.jax_compat.jaxprs.primitives import Primitive, is_builtin

__all__ = ["apply_primitive", "lower_fun", "register_lowering"]


class Lowering:
    """A traceable function from which a primitive is compiled."""

    __slots__ = ("fun", "multiple_results")

    def __init__(self, fun: Callable[..., Any], multiple_results: bool) -> None:
        self.fun = fun
        self.multiple_results = multiple_results


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Lowering:
    """Make a lowering rule from a function of arrays that can be traced.

    Parameters
    ----------
    fun : callable
        Function of the operands and parameters of the primitive.
    multiple_results : bool, optional
        Whether it returns a sequence of arrays. The default is True.

    Returns
    -------
    Lowering
        Rule for `register_lowering`.

    See Also
    --------
    interpreters.mlir.register_lowering : Set the rule of a primitive.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import mlir
    >>> square_p = jax.extend.core.Primitive("square_of")
    >>> _ = square_p.def_abstract_eval(lambda x: x)
    >>> lowering = mlir.lower_fun(lambda x: x * x, multiple_results=False)
    >>> _ = mlir.register_lowering(square_p, lowering)
    >>> float(jax.jit(square_p.bind)(3.0))
    9.0
    """
    return Lowering(fun, multiple_results)


def register_lowering(
    primitive: Primitive, lowering: Any, platform: str | None = None, **_: Any
) -> Any:
    """Set how a primitive is compiled.

    Parameters
    ----------
    primitive : Primitive
        Operation to compile.
    lowering : Lowering or callable
        Rule made by `lower_fun`, or a function that builds MLIR.
    platform : str, optional
        Platform of the rule. Rules for others than "cpu" are ignored.

    Returns
    -------
    Lowering or callable
        `lowering` itself.

    Raises
    ------
    TypeError
        If the rule is not callable.
    ValueError
        If it has another `multiple_results` than the primitive.

    See Also
    --------
    interpreters.mlir.lower_fun : Make a rule.

    Notes
    -----
    There is no MLIR in accnp. For a rule that builds MLIR, the implementation
    (`Primitive.def_impl`) is traced instead, or called on the host if it needs values.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import mlir
    >>> half_p = jax.extend.core.Primitive("half_of")
    >>> _ = half_p.def_abstract_eval(lambda x: x)
    >>> _ = mlir.register_lowering(half_p, mlir.lower_fun(lambda x: x / 2, False))
    >>> float(jax.jit(half_p.bind)(3.0))
    1.5
    """
    if not isinstance(lowering, Lowering):
        if not callable(lowering):
            raise TypeError(
                f"register_lowering: a lowering of {primitive} must be a function; got "
                f"{lowering!r}; pass mlir.lower_fun(function)"
            )
        primitive.records_impl = True
        return lowering
    if lowering.multiple_results != primitive.multiple_results:
        raise ValueError(
            f"register_lowering: {primitive} has multiple_results="
            f"{primitive.multiple_results}; got a lowering with {lowering.multiple_results}; "
            "pass it to lower_fun"
        )
    if platform in (None, "cpu"):
        primitive.lowering = lowering.fun
    return lowering


def apply_primitive(primitive: Primitive, *args: ArrayLike, **params: object) -> Any:
    """Evaluate a primitive by its lowering rule.

    Parameters
    ----------
    primitive : Primitive
        Operation to evaluate.
    *args : array_like
        Operands of the primitive.
    **params : object
        Parameters of the operation.

    Returns
    -------
    Array or list of Array
        Results.

    Raises
    ------
    NotImplementedError
        If the primitive has no rule.

    See Also
    --------
    interpreters.mlir.register_lowering : Set the rule.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import mlir, xla
    >>> next_p = jax.extend.core.Primitive("next_of")
    >>> _ = next_p.def_abstract_eval(lambda x: x)
    >>> _ = mlir.register_lowering(next_p, mlir.lower_fun(lambda x: x + 1, False))
    >>> float(xla.apply_primitive(next_p, 3.0))
    4.0
    """
    if primitive.lowering is None:
        raise NotImplementedError(
            f"translation rule for primitive '{primitive}' not found for platform cpu; "
            "set one with mlir.register_lowering"
        )
    return jit(functools.partial(primitive.lowering, **params))(*args)


# --- the rules of built-in primitives ------------------------------------------------------------


def _jvp_rule(primitive: Any) -> Callable[..., Any] | None:
    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        moving = [i for i, t in enumerate(tangents) if type(t) is not rules.Zero]

        def bind_moving(*xs: Any) -> Any:
            whole = list(primals)
            for i, x in zip(moving, xs, strict=True):
                whole[i] = x
            return primitive.bind(*whole, **params)

        if not moving:
            out = bind_moving()
            zero = [
                rules.Zero.from_primal_value(x)
                for x in (out if _has_multiple_results(primitive) else [out])
            ]
            return out, zero if _has_multiple_results(primitive) else zero[0]
        return jvp(bind_moving, [primals[i] for i in moving], [tangents[i] for i in moving])

    return rule if is_builtin(primitive) else None


def _transpose_rule(primitive: Any) -> Callable[..., Any] | None:
    def rule(ct: Any, *args: Any, **params: Any) -> Any:
        linear = [i for i, x in enumerate(args) if rules.is_undefined_primal(x)]

        def bind_linear(*xs: Any) -> Any:
            whole = list(args)
            for i, x in zip(linear, xs, strict=True):
                whole[i] = x
            return primitive.bind(*whole, **params)

        types = [ShapeDtypeStruct(args[i].aval.shape, args[i].aval.dtype) for i in linear]
        cts = [rules.instantiate_zeros(c) for c in ct] if _has_multiple_results(primitive) else ct
        cotangents = linear_transpose(bind_linear, *types)(cts)
        out: list[Any] = [None] * len(args)
        for i, x in zip(linear, cotangents, strict=True):
            out[i] = x
        return out

    return rule if is_builtin(primitive) else None


def _batch_rule(primitive: Any) -> Callable[..., Any] | None:
    def rule(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        out = vmap(functools.partial(primitive.bind, **params), in_axes=tuple(dims))(*args)
        return out, [0] * len(out) if _has_multiple_results(primitive) else 0

    return rule if is_builtin(primitive) else None


def _has_multiple_results(primitive: Any) -> bool:
    return primitive.multiple_results


rules.primitive_jvps.make_rule = _jvp_rule
rules.primitive_transposes.make_rule = _transpose_rule
rules.primitive_batchers.make_rule = _batch_rule
