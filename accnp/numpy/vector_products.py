"""Products of vectors with each other and with matrices: cross, kron, matvec and vecmat."""

from __future__ import annotations

from accnp.api.arguments.convert import (
    broadcast_nodes,
    broadcast_shapes,
    cast,
    promote,
    to_shape,
)
from accnp.api.arguments.shapes import as_axis
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.manipulation import cut, expand_node, reshape_plain, transpose_node
from accnp.numpy.products import _axis_last, matmul_nodes

__all__ = ["cross", "kron", "matvec", "vecmat"]


def _need_axes(name: str, *requirements: tuple[Node, int]) -> None:
    for k, (x, least) in enumerate(requirements, 1):
        if x.aval.ndim < least:
            raise ValueError(
                f"{name}: x{k} expected at least {least} axes; got {x.aval.shape}; reshape it"
            )


@api_boundary
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices with vectors.

    Parameters
    ----------
    x1 : array_like
        Matrices of shape (..., n, m).
    x2 : array_like
        Vectors of shape (..., m). Leading axes broadcast.

    Returns
    -------
    Array
        Vectors of shape (..., n), with the promoted dtype.

    Raises
    ------
    TypeError
        If the sizes do not fit, or an operand is neither an array nor a number.
    ValueError
        If `x1` has fewer than two axes, or `x2` has none.

    See Also
    --------
    vecmat : Multiply vectors with matrices.
    matmul : Multiply matrices.
    vecdot : Products of vectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.matvec(jnp.eye(2), jnp.arange(2))
    Array([0., 1.], dtype=float32)
    """
    x, y = promote("matvec", x1, x2)
    _need_axes("matvec", (x, 2), (y, 1))
    out = matmul_nodes(x, expand_node(y, (y.aval.ndim,)))
    return wrap(o.squeeze(out, dimensions=(out.aval.ndim - 1,)))


@api_boundary
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply conjugated vectors with matrices.

    Parameters
    ----------
    x1 : array_like
        Vectors of shape (..., n), which are conjugated.
    x2 : array_like
        Matrices of shape (..., n, m). Leading axes broadcast.

    Returns
    -------
    Array
        Vectors of shape (..., m), with the promoted dtype.

    Raises
    ------
    TypeError
        If the sizes do not fit, or an operand is neither an array nor a number.
    ValueError
        If `x1` has no axis, or `x2` has fewer than two.

    See Also
    --------
    matvec : Multiply matrices with vectors.
    matmul : Multiply matrices.
    vecdot : Products of vectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vecmat(jnp.arange(2), jnp.eye(2))
    Array([0., 1.], dtype=float32)
    """
    x, y = promote("vecmat", x1, x2)
    _need_axes("vecmat", (x, 1), (y, 2))
    x = o.conj(x) if x.aval.dtype.kind == "c" else x
    out = matmul_nodes(expand_node(x, (x.aval.ndim - 1,)), y)
    return wrap(o.squeeze(out, dimensions=(out.aval.ndim - 2,)))


@api_boundary
@shown(arrays=2)
@compiled_if_small("a", "b")
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the Kronecker product of two arrays.

    Parameters
    ----------
    a : array_like
        First factor, each element of which is replaced by its product with `b`.
    b : array_like
        Second factor. Missing axes of either factor are added in front.

    Returns
    -------
    Array
        Array whose axes are as long as those of `a` and `b` multiplied, with the promoted dtype.

    Raises
    ------
    TypeError
        If both are bool, or an operand is neither an array nor a number.

    See Also
    --------
    outer : Products of all pairs of elements.
    block : Assemble an array from blocks.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.kron(jnp.array([1, 2]), jnp.array([1, 1]))
    Array([1, 1, 2, 2], dtype=int32)
    """
    x, y = promote("kron", a, b)
    if x.aval.dtype.kind == "b":
        raise TypeError("kron: bool is not supported; got bool operands; convert one to a number")
    rank = max(x.aval.ndim, y.aval.ndim)
    x, y = (reshape_plain(v, (1,) * (rank - v.aval.ndim) + v.aval.shape) for v in (x, y))
    pairs = zip(x.aval.shape, y.aval.shape, strict=True)
    sizes = tuple([n * m for n, m in pairs])
    x = expand_node(x, tuple(range(1, 2 * rank, 2)))
    y = expand_node(y, tuple(range(0, 2 * rank, 2)))
    x, y = broadcast_nodes("kron", [x, y])
    return wrap(reshape_plain(o.mul(x, y), sizes))


@api_boundary
@shown(arrays=2)
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Compute the cross product of vectors of two or three components.

    Parameters
    ----------
    a : array_like
        First vectors. The other axes broadcast.
    b : array_like
        Second vectors. A missing third component counts as 0.
    axisa, axisb : int, optional
        Axes of the components in `a` and `b`. The default is the last axis.
    axisc : int, optional
        Axis of the components in the result. The default is the last axis.
    axis : int, optional
        Axis of the components in all three, instead of the others.

    Returns
    -------
    Array
        Vectors of three components, or the third component alone if all vectors have two, with the
        promoted dtype.

    Raises
    ------
    TypeError
        If the other axes do not broadcast, or an operand is neither an array nor a number.
    ValueError
        If vectors have neither two nor three components, or the axis is out of bounds.

    See Also
    --------
    linalg.cross : The same for three components.
    vecdot, outer : Other products of vectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    return run_small(_cross, (a, b), (axisa, axisb, axisc))


def _cross(a: ArrayLike, b: ArrayLike, axisa: int, axisb: int, axisc: int) -> Array:
    x, y = promote("cross", a, b)
    x, y = (_axis_last(v, as_axis(d, v.aval.ndim, "cross")) for v, d in ((x, axisa), (y, axisb)))
    sizes = x.aval.shape[-1], y.aval.shape[-1]
    if not set(sizes) <= {2, 3}:
        raise ValueError(
            f"cross: vectors must have 2 or 3 components; got {sizes}; "
            "pass the axes of components as axisa, axisb or axis"
        )
    outer_shape = broadcast_shapes("cross", [x.aval.shape[:-1], y.aval.shape[:-1]])

    def part(v: Node, k: int) -> Node | None:
        d = v.aval.ndim - 1
        if k >= v.aval.shape[d]:
            return None
        one = o.squeeze(cut(v, d, k, k + 1), dimensions=(d,))
        return to_shape(one, outer_shape)

    p, q = ([part(v, k) for k in range(3)] for v in (x, y))

    def minor(i: int, j: int) -> Node:
        terms = [
            None if u is None or w is None else o.mul(u, w) for u, w in ((p[i], q[j]), (p[j], q[i]))
        ]
        if terms[0] is None:
            assert terms[1] is not None
            return o.neg(terms[1])
        return terms[0] if terms[1] is None else o.sub(terms[0], terms[1])

    if sizes == (2, 2):
        return wrap(minor(0, 1))
    rank = len(outer_shape)
    parts = [expand_node(m, (rank,)) for m in (minor(1, 2), minor(2, 0), minor(0, 1))]
    out = o.concatenate(*parts, dimension=rank)
    to = as_axis(axisc, rank + 1, "cross")
    order = [*range(rank)]
    order.insert(to, rank)
    return wrap(cast(transpose_node(out, tuple(order)), out.aval.dtype))
