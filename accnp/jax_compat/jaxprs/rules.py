"""Rules of user-defined primitives for differentiation, transposition and batching.

The tables `primitive_jvps`, `primitive_transposes` and `primitive_batchers` map primitives to
rules, and `defjvp`, `deflinear` and similar functions fill them; `primitives.py` reads them.

Rules get arrays. A zero tangent or cotangent is a `Zero`; an operand for which a transpose rule
returns a cotangent is an `UndefinedPrimal`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp.api.arguments.convert import as_node, wrap
from accnp.ir.aval import Aval
from accnp.ir.op import o
from accnp.primitives.kinds import broadcast_to
from accnp.primitives.kinds import zeros_like_aval as zeros_node
from accnp.pytree.register import register_pytree_node

__all__ = [
    "Rules", "UndefinedPrimal", "Zero", "add_tangents", "axis_primitive_batchers", "bdim_at_front",
    "broadcast",
    "defbilinear", "defbroadcasting", "defjvp", "defjvp2", "deflinear", "deflinear2",
    "defvectorized", "instantiate_zeros", "is_undefined_primal", "not_mapped",
    "primitive_batchers", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip

not_mapped = None  # the batch axis of an operand that has none


class Rules(dict):
    """A table of rules by primitive; those of built-in primitives are created when looked up."""

    def __init__(self) -> None:
        self.make_rule: Callable[[Any], Callable[..., Any] | None] = lambda primitive: None

    def __missing__(self, primitive: Any) -> Callable[..., Any]:
        rule = self.make_rule(primitive)
        if rule is None:
            raise KeyError(primitive)
        return rule

    def __contains__(self, primitive: object) -> bool:
        return super().__contains__(primitive) or self.make_rule(primitive) is not None

    def get(self, primitive: Any, default: Any = None) -> Any:
        try:
            return self[primitive]
        except KeyError:
            return default


primitive_jvps = Rules()
primitive_transposes = Rules()
primitive_batchers = Rules()
# Rules that get the size and name of the batch axis, and None, before operands and axes. The name
# is always None, since collectives over named axes are recorded as ops of their own.
axis_primitive_batchers: dict[Any, Callable[..., Any]] = {}


# --- derivatives ---------------------------------------------------------------------------------


class Zero:
    """Tangent or cotangent that is zero everywhere, for which nothing is computed.

    Parameters
    ----------
    aval : ShapedArray
        Shape and dtype of the zeros.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.interpreters.ad.Zero.from_primal_value(jax.numpy.ones(3))
    Zero(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(value: Any) -> Zero:
        """Return the zero tangent of a value."""
        return Zero(as_node(value).aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """Operand of a transpose rule with a type and no value: the one that needs a cotangent.

    Parameters
    ----------
    aval : ShapedArray
        Type of the missing operand.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.interpreters.ad.UndefinedPrimal(jax.core.ShapedArray((3,), "float32"))
    UndefinedPrimal(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(x: object) -> bool:
    """Return whether an operand of a transpose rule is one that needs a cotangent.

    Parameters
    ----------
    x : object
        Operand that the rule got.

    Returns
    -------
    bool
        True for an `UndefinedPrimal`.

    See Also
    --------
    interpreters.ad.UndefinedPrimal : Class of such operands.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.interpreters.ad.is_undefined_primal(jax.numpy.ones(3))
    False
    """
    return type(x) is UndefinedPrimal


def zeros_like_aval(aval: Aval) -> Any:
    """Return an array of zeros of a type.

    Parameters
    ----------
    aval : ShapedArray
        Type of the result.

    Returns
    -------
    Array
        Zeros.

    Raises
    ------
    AttributeError
        If the argument has no shape and dtype.

    See Also
    --------
    numpy.zeros : Zeros of a shape.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.interpreters.ad.zeros_like_aval(jax.core.ShapedArray((2,), "float32"))
    Array([0., 0.], dtype=float32)
    """
    return wrap(zeros_node(aval))


def instantiate_zeros(tangent: Any) -> Any:
    """Return a tangent as an array, replacing a symbolic zero by an array of zeros.

    Parameters
    ----------
    tangent : Array or Zero
        Derivative that may be a symbolic zero.

    Returns
    -------
    Array
        Zeros of the shape and dtype of the type, or the tangent itself.

    See Also
    --------
    interpreters.ad.Zero : Symbolic zero.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import ad
    >>> ad.instantiate_zeros(ad.Zero(jax.core.ShapedArray((2,), "float32")))
    Array([0., 0.], dtype=float32)
    """
    return zeros_like_aval(tangent.aval) if type(tangent) is Zero else tangent


def add_tangents(x: Any, y: Any) -> Any:
    """Add two tangents, each of which may be a symbolic zero.

    Parameters
    ----------
    x : Array or Zero
        First summand.
    y : Array or Zero
        Second summand, of the same type.

    Returns
    -------
    Array or Zero
        Sum; a symbolic zero if both are.

    Raises
    ------
    TypeError
        If a tangent is neither an array nor a symbolic zero.

    See Also
    --------
    interpreters.ad.Zero : Symbolic zero.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import ad
    >>> ad.add_tangents(jax.numpy.ones(2), ad.Zero(jax.core.ShapedArray((2,), "float32")))
    Array([1., 1.], dtype=float32)
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else wrap(o.add_any(as_node(x), as_node(y)))


def defjvp(primitive: Any, *rules: Callable[..., Any] | None) -> None:
    """Set a forward-mode derivative rule for each operand of a primitive.

    Parameters
    ----------
    primitive : Primitive
        Operation to differentiate.
    *rules : callable or None
        For each operand, a function `(tangent, *primals, **params)` that returns its part of the
        tangent; None if the derivative is zero.

    See Also
    --------
    interpreters.ad.defjvp2 : Rules that also get the result.
    interpreters.ad.deflinear : Rule for a linear primitive.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import ad
    >>> square_p = jax.extend.core.Primitive("square_with_rule")
    >>> _ = square_p.def_impl(lambda x: x * x)
    >>> _ = square_p.def_abstract_eval(lambda x: x)
    >>> ad.defjvp(square_p, lambda t, x: 2 * x * t)
    >>> float(jax.grad(square_p.bind)(3.0))
    6.0
    """
    primitive_jvps[primitive] = _sum_of(
        primitive, [r and (lambda t, y, *xs, r=r, **p: r(t, *xs, **p)) for r in rules]
    )


def defjvp2(primitive: Any, *rules: Callable[..., Any] | None) -> None:
    """Set forward-mode derivative rules that also get the result of the primitive.

    Parameters
    ----------
    primitive : Primitive
        Operation to differentiate.
    *rules : callable or None
        For each operand, a function `(tangent, result, *primals, **params)` that returns its part
        of the tangent; None if the derivative is zero.

    See Also
    --------
    interpreters.ad.defjvp : Rules that do not get the result.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import ad
    >>> exp_p = jax.extend.core.Primitive("exp_with_rule")
    >>> _ = exp_p.def_impl(jax.numpy.exp)
    >>> _ = exp_p.def_abstract_eval(lambda x: x)
    >>> ad.defjvp2(exp_p, lambda t, y, x: y * t)
    >>> float(jax.grad(exp_p.bind)(0.0))
    1.0
    """
    primitive_jvps[primitive] = _sum_of(primitive, rules)


def _sum_of(primitive: Any, rules: Any) -> Callable[..., Any]:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        y = primitive.bind(*primals, **params)
        total: Any = Zero.from_primal_value(y)
        for rule, t in zip(rules, tangents, strict=False):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, y, *primals, **params))
        return y, total

    return jvp


def deflinear(primitive: Any, transpose: Callable[..., Any]) -> None:
    """Declare that a primitive is linear, with a transpose rule.

    Parameters
    ----------
    primitive : Primitive
        Linear operation.
    transpose : callable
        Rule `(cotangent, **params)` that returns the cotangents of the operands.

    See Also
    --------
    interpreters.ad.defjvp : Rules for operations that are not linear.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import ad
    >>> double_p = jax.extend.core.Primitive("double")
    >>> _ = double_p.def_impl(lambda x: 2 * x)
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear(double_p, lambda ct: [2 * ct])
    >>> jax.grad(double_p.bind)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda ct, *xs, **params: transpose(ct, **params))


def deflinear2(primitive: Any, transpose: Callable[..., Any]) -> None:
    """Declare that a primitive is linear, with a transpose rule that gets the operands.

    Parameters
    ----------
    primitive : Primitive
        Linear operation.
    transpose : callable
        Rule `(cotangent, *operands, **params)` that returns the cotangents of the operands.

    See Also
    --------
    interpreters.ad.deflinear : Rule that does not get the operands.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import ad
    >>> triple_p = jax.extend.core.Primitive("triple_with_rule")
    >>> _ = triple_p.def_impl(lambda x: 3 * x)
    >>> _ = triple_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear2(triple_p, lambda ct, x: [3 * ct])
    >>> float(jax.grad(triple_p.bind)(1.0))
    3.0
    """

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        y = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            zero = [
                Zero.from_primal_value(part)
                for part in (y if _has_multiple_results(primitive) else [y])
            ]
            return y, zero if _has_multiple_results(primitive) else zero[0]
        return y, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def defbilinear(primitive: Any, left: Callable[..., Any], right: Callable[..., Any]) -> None:
    """Declare that a primitive is linear in each of two operands, with a transpose rule for each.

    Parameters
    ----------
    primitive : Primitive
        Bilinear operation.
    left : callable
        Rule `(cotangent, x, y, **params)` that returns the cotangent of the first operand.
    right : callable
        Rule `(cotangent, x, y, **params)` that returns the cotangent of the second operand.

    See Also
    --------
    interpreters.ad.deflinear2 : Rule for a linear primitive.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters import ad
    >>> times_p = jax.extend.core.Primitive("times_with_rules")
    >>> _ = times_p.def_impl(lambda x, y: x * y)
    >>> _ = times_p.def_abstract_eval(lambda x, y: x)
    >>> ad.defbilinear(times_p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    >>> [float(g) for g in jax.grad(times_p.bind, (0, 1))(2.0, 3.0)]
    [3.0, 2.0]
    """
    defjvp(
        primitive,
        lambda t, x, y, **params: primitive.bind(t, y, **params),
        lambda t, x, y, **params: primitive.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x):
            return left(ct, x, y, **params), None
        return None, right(ct, x, y, **params)

    primitive_transposes[primitive] = transpose


def _has_multiple_results(primitive: Any) -> bool:
    return primitive.multiple_results


# Neither contains an array. As pytree nodes they pass unchanged through rules that map or compile
# the rule of another primitive.
register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))


# --- batching ------------------------------------------------------------------------------------


def bdim_at_front(x: Any, axis: int | None, size: int) -> Any:
    """Move the batch axis of an operand to the front, or repeat an operand that has none.

    Parameters
    ----------
    x : array_like
        Operand of a batching rule.
    axis : int or None
        Position of the batch axis; None if there is none.
    size : int
        Length of the batch axis.

    Returns
    -------
    Array
        Operand with the batch axis in front.

    Raises
    ------
    TypeError
        If the axis is out of range.

    See Also
    --------
    interpreters.batching.broadcast : Repeat an operand along a new axis.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.interpreters.batching.bdim_at_front(jax.numpy.ones((3, 2)), 1, 2).shape
    (2, 3)
    """
    node = as_node(x)
    if axis is None:
        return wrap(broadcast_to(node, (size, *node.aval.shape)))
    order = (axis, *[d for d in range(node.aval.ndim) if d != axis])
    return x if axis == 0 else wrap(o.transpose(node, permutation=order))


def broadcast(x: Any, size: int, axis: int) -> Any:
    """Repeat an operand along a new axis.

    Parameters
    ----------
    x : array_like
        Values to repeat.
    size : int
        Length of the new axis.
    axis : int
        Position of the new axis.

    Returns
    -------
    Array
        Operand with one more axis.

    Raises
    ------
    TypeError
        If the operand is not an array.

    See Also
    --------
    interpreters.batching.bdim_at_front : Move or add the batch axis.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.interpreters.batching.broadcast(jax.numpy.ones(3), 2, 0).shape
    (2, 3)
    """
    node = as_node(x)
    shape = node.aval.shape
    axis %= len(shape) + 1
    dims = tuple(d for d in range(len(shape) + 1) if d != axis)
    return wrap(broadcast_to(node, (*shape[:axis], size, *shape[axis:]), dims))


def defvectorized(primitive: Any) -> None:
    """Declare that a primitive of one operand works on each element, so that it batches as it is.

    Parameters
    ----------
    primitive : Primitive
        Elementwise operation.

    See Also
    --------
    interpreters.batching.defbroadcasting : Version for several operands.

    Examples
    --------
    >>> import accnp as jax
    >>> double_p = jax.extend.core.Primitive("double_of_each")
    >>> _ = double_p.def_impl(lambda x: 2 * x)
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.batching.defvectorized(double_p)
    >>> jax.vmap(double_p.bind)(jax.numpy.ones(2))
    Array([2., 2.], dtype=float32)
    """

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(*args, **params), dims[0]

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Any) -> None:
    """Declare that a primitive works on each element of operands of one shape.

    Parameters
    ----------
    primitive : Primitive
        Elementwise operation of several operands.

    See Also
    --------
    interpreters.batching.defvectorized : Version for one operand.

    Examples
    --------
    >>> import accnp as jax
    >>> sum_p = jax.extend.core.Primitive("sum_of_each")
    >>> _ = sum_p.def_impl(lambda x, y: x + y)
    >>> _ = sum_p.def_abstract_eval(lambda x, y: x)
    >>> jax.interpreters.batching.defbroadcasting(sum_p)
    >>> jax.vmap(sum_p.bind, (0, None))(jax.numpy.ones(2), jax.numpy.float32(1))
    Array([2., 2.], dtype=float32)
    """

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        rank = max(x.ndim - (d is not None) for x, d in zip(args, dims, strict=True))
        front = []
        for x, d in zip(args, dims, strict=True):
            node = as_node(bdim_at_front(x, d, size))
            shape = (size, *(1,) * (rank + 1 - node.aval.ndim), *node.aval.shape[1:])
            front.append(wrap(o.reshape(node, new_sizes=shape, dimensions=None)))
        return primitive.bind(*front, **params), 0

    primitive_batchers[primitive] = batch
