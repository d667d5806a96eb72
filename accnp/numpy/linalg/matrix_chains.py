"""Powers and products of chains of matrices; tensorsolve and tensorinv."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.api.arguments.convert import as_node, promote_inexact
from accnp.api.arguments.shapes import as_axis, as_int
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy import products
from accnp.numpy.linalg.decompositions import inv, solve_nodes
from accnp.numpy.manipulation import expand_node, reshape_plain, transpose_node
from accnp.numpy.products import matmul_nodes
from accnp.primitives.linalg import batched_identity

if TYPE_CHECKING:
    from accnp.lax.enumerations import PrecisionLike

__all__ = ["matrix_power", "multi_dot", "tensorinv", "tensorsolve"]


@api_boundary
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solve the equation tensordot(a, x, x.ndim) = b.

    Parameters
    ----------
    a : array_like
        Coefficients. The leading axes are those of `b`, the others those of x, with the same number
        of elements.
    b : array_like
        Right-hand side, of any shape.
    axes : tuple of int, optional
        Axes of `a` to move to its end first.

    Returns
    -------
    Array
        Solution x, with the shape of the last axes of `a`. Integers give the default float dtype;
        other dtypes are unchanged, also float16 and bfloat16.

    Raises
    ------
    ValueError
        If shapes do not fit, or do not make a square matrix.
    TypeError
        If an operand is a list or a string.

    See Also
    --------
    tensordot : Contract axes.
    tensorinv : Inverse in this sense.
    solve : Solve linear equations.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.tensorsolve(2.0 * jnp.eye(2), jnp.array([2.0, 4.0]))
    Array([1., 2.], dtype=float32)
    """
    name = "linalg.tensorsolve"
    x, y = promote_inexact(name, a, b)
    if axes is not None:
        moved = [as_axis(d, x.aval.ndim, name) for d in axes]
        order = [d for d in range(x.aval.ndim) if d not in moved] + moved
        x = transpose_node(x, tuple(order))
    shape = x.aval.shape[y.aval.ndim :]
    n = int(np.prod(shape))
    if x.aval.shape[: y.aval.ndim] != y.aval.shape or n != y.aval.size:
        raise ValueError(
            f"{name}: the shape of a must be that of b, then as many elements; got shapes "
            f"{x.aval.shape} (axes moved) and {y.aval.shape}; reshape a, or pass axes="
        )
    matrix = reshape_plain(x, (y.aval.size, n))
    out = solve_nodes(matrix, reshape_plain(y, (y.aval.size,)), name)
    return wrap(reshape_plain(out, shape))


@api_boundary
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Compute the inverse of an array with respect to `tensordot` over some axes.

    Parameters
    ----------
    a : array_like
        Array whose leading axes have as many elements as the others.
    ind : int, optional
        Number of leading axes, positive. The default is 2.

    Returns
    -------
    Array
        Inverse, whose last axes are the leading ones of `a`. Integers give the default float dtype;
        other dtypes are unchanged, also float16 and bfloat16.

    Raises
    ------
    ValueError
        If `ind` is not positive, or the axes do not make a square matrix.
    TypeError
        If `a` is a list or a string.

    See Also
    --------
    tensorsolve : Solve equations.
    inv : Inverse of matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.tensorinv(2.0 * jnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    x = promote_inexact("linalg.tensorinv", a)[0]
    ind = as_int(ind, "linalg.tensorinv", "ind")
    if ind <= 0:
        raise ValueError(f"linalg.tensorinv: ind must be positive; got {ind}; pass 1 or more")
    shape = x.aval.shape
    rows = prod(shape[:ind])
    if rows != prod(shape[ind:]):
        raise ValueError(
            f"linalg.tensorinv: the first {ind} axes must have as many elements as the others; got "
            f"shape {shape}; pass ind=, or reshape"
        )
    out = inv(wrap(reshape_plain(x, (rows, x.aval.size // max(rows, 1)))))
    return wrap(reshape_plain(out._node, (*shape[ind:], *shape[:ind])))


@api_boundary
@shown()
@compiled_if_small("a")
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raise square matrices to an integer power.

    Parameters
    ----------
    {a_square}
    n : int
        Exponent. A negative one raises the inverses.

    Returns
    -------
    Array
        Powers of the shape and dtype of `a`. Integers to a negative power give the default float
        dtype.

    Raises
    ------
    TypeError
        If the matrices are not square, `n` is not an integer, or `a` is a list or a string.

    See Also
    --------
    matmul : Product of two matrices.
    scipy.linalg.expm : Matrix exponential.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.matrix_power(2 * jnp.eye(2), 3)
    Array([[8., 0.],
           [0., 8.]], dtype=float32)
    """
    name = "linalg.matrix_power"
    n = as_int(n, name, "n")
    x = as_node(a, name)
    shape = x.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError(
            f"{name}: Last 2 dimensions of the array must be square; got shape {shape}; "
            "pass square matrices in the last two axes"
        )
    if n < 0:
        x, n = inv(wrap(x))._node, -n
    result: Node | None = None
    while n:
        if n & 1:
            result = x if result is None else matmul_nodes(result, x)
        n >>= 1
        x = matmul_nodes(x, x) if n else x
    return wrap(batched_identity(x.aval) if result is None else result)


@api_boundary
def multi_dot(arrays: Sequence[Any], *, precision: PrecisionLike = None) -> Array:
    """Multiply a chain of matrices in the order that needs the fewest operations.

    Parameters
    ----------
    arrays : sequence of array_like
        At least two matrices. The first and the last one may be vectors.
    {precision}

    Returns
    -------
    Array
        Product of all operands, of the promoted dtype.

    Raises
    ------
    ValueError
        If there are fewer than two arrays, or shapes do not fit.
    TypeError
        If an operand is a list or a string.

    See Also
    --------
    matmul : Product of two matrices.
    numpy.einsum : Contractions by letters.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    if len(arrays) < 2:
        raise IncompatibleShapesError(
            f"linalg.multi_dot: expected at least two arrays; got {len(arrays)}; "
            "pass them as a list"
        )
    nodes = products.promote("linalg.multi_dot", *arrays)
    first, last = nodes[0].aval.ndim == 1, nodes[-1].aval.ndim == 1
    if first:
        nodes[0] = expand_node(nodes[0], (0,))
    if last:
        nodes[-1] = expand_node(nodes[-1], (1,))
    shapes = [n.aval.shape for n in nodes]
    if any(len(s) != 2 for s in shapes):
        raise ValueError(
            "linalg.multi_dot: expected matrices, and vectors at the ends only; got shapes "
            f"{shapes}; reshape the operands"
        )
    if any(a[1] != b[0] for a, b in itertools.pairwise(shapes)):
        raise ValueError(
            "linalg.multi_dot: last dimension of each array must match first dimension of "
            f"following array; got shapes {shapes}; transpose or slice one"
        )
    sizes = [n.aval.shape[0] for n in nodes] + [nodes[-1].aval.shape[1]]
    out = _chain(nodes, _cheapest(sizes), 0, len(nodes) - 1, precision)
    gone = tuple([d for d, used in ((0, first), (1, last)) if used])
    return wrap(o.squeeze(out, dimensions=gone) if gone else out)


def _cheapest(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split each run of the chain, by the matrix-chain dynamic program."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def _chain(nodes: list[Node], split: Any, i: int, j: int, precision: Any) -> Node:
    if i == j:
        return nodes[i]
    k = split[i, j]
    left = _chain(nodes, split, i, k, precision)
    return matmul_nodes(left, _chain(nodes, split, k + 1, j, precision), precision)
