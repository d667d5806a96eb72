"""Diagonals, triangles, grids and index tables; `copy` and `astype`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, as_nodes, cast, numpy_node, without_float0
from accnp.api.arguments.non_numeric import accepts_keys, moves_elements
from accnp.api.arguments.shapes import as_axis, as_int, as_shape, as_size
from accnp.api.arguments.values import astype_node
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, DeviceLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary, not_one_of
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.creation import arange, as_diagonal, diagonal_mask
from accnp.primitives.kinds import broadcast_to
from accnp.primitives.kinds import full as full_node
from accnp.sharding.device_placement import new_array

__all__ = [
    "astype", "copy", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal",
    "indices", "ix_", "meshgrid", "tri", "tril", "tril_indices",
    "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip


@api_boundary
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Make a matrix of ones on and below a diagonal, and zeros above it.

    Parameters
    ----------
    N : int
        Number of rows, static.
    M : int, optional
        Number of columns, static. The default is `N`.
    {diagonal_k}
    {dtype_default_float}

    Returns
    -------
    Array
        Matrix of shape (N, M).

    Raises
    ------
    TypeError
        If a size is negative, traced or not an integer, `k`, which may be traced, is not an
        integer, or the dtype is unknown.

    See Also
    --------
    tril, triu : Triangles of a given matrix.
    eye : Ones on a diagonal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    shape = as_shape((N, N if M is None else M), "jnp.tri")
    kind = dtypes.requested_dtype(np.float32 if dtype is None else dtype, "jnp.tri")
    return wrap(cast(diagonal_mask(shape, as_diagonal(k, "jnp.tri"), "ge"), kind))


def _triangle(x: Any, k: int, upper: bool, name: str) -> Array:
    m = as_node(x, name)
    if m.aval.ndim < 2:
        raise ValueError(
            f"{name}: expected at least two axes; got {m.aval.ndim}; add axes with x[None]"
        )
    mask = diagonal_mask(m.aval.shape[-2:], as_int(k, name, "k") - upper, "ge")
    mask = broadcast_to(mask, m.aval.shape)
    zero = full_node(m.aval.shape, 0, m.aval.dtype, m.aval.weak_type)
    return wrap(o.select_n(mask, *((m, zero) if upper else (zero, m))))


@moves_elements()
@api_boundary
@compiled_if_small("m")
@shown()
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Keep the lower triangle of matrices and set the rest to zero.

    Parameters
    ----------
    m : array_like
        Array with at least two axes. Leading axes are a batch.
    {diagonal_k}

    Returns
    -------
    Array
        Elements on and below the diagonal, with the shape and dtype of `m`.

    Raises
    ------
    TypeError
        If `m` is neither an array nor a number, or `k` is not an integer.
    ValueError
        If there are fewer than two axes.

    See Also
    --------
    triu : Upper triangle.
    tri : Ones in the lower triangle.
    tril_indices : Indices of the lower triangle.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle(m, k, False, "jnp.tril")


@moves_elements()
@api_boundary
@compiled_if_small("m")
@shown()
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Keep the upper triangle of matrices and set the rest to zero.

    Parameters
    ----------
    m : array_like
        Array with at least two axes. Leading axes are a batch.
    {diagonal_k}

    Returns
    -------
    Array
        Elements on and above the diagonal, with the shape and dtype of `m`.

    Raises
    ------
    TypeError
        If `m` is neither an array nor a number, or `k` is not an integer.
    ValueError
        If there are fewer than two axes.

    See Also
    --------
    tril : Lower triangle.
    triu_indices : Indices of the upper triangle.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle(m, k, True, "jnp.triu")


@moves_elements()
@api_boundary
@shown()
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Take the diagonals of the matrices in two axes.

    Parameters
    ----------
    a : array_like
        Array with at least two axes. Lists and tuples are not accepted.
    offset : int, optional
        Number of the diagonal: 0, the default, is the main diagonal, positive numbers count to the
        right of it, and negative ones below it.
    axis1 : int, optional
        Axis of the rows. The default is 0.
    axis2 : int, optional
        Axis of the columns. The default is 1.

    Returns
    -------
    Array
        Array without the two axes and with the diagonal as a new last axis, with the dtype of `a`.

    Raises
    ------
    {raises_not_array}
    ValueError
        If there are fewer than two axes, or the axes are equal or out of bounds.

    See Also
    --------
    diag : Diagonal of a matrix, or a matrix from a diagonal.
    trace : Sum of a diagonal.
    linalg.diagonal : The same for the last two axes.

    Notes
    -----
    The result is not a view, as in NumPy, since arrays are immutable.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.diagonal(jnp.arange(4).reshape(2, 2))
    Array([0, 3], dtype=int32)
    """
    return wrap(diagonal_node(as_node(a, "jnp.diagonal"), offset, axis1, axis2, "jnp.diagonal"))


def diagonal_node(x: Node, offset: int, axis1: int, axis2: int, name: str) -> Node:
    """Return the diagonal as views: flatten the two axes, then slice with a step of m + 1."""
    k, rank = as_int(offset, name, "offset"), x.aval.ndim
    i, j = as_axis(axis1, rank, name), as_axis(axis2, rank, name)
    if i == j:
        raise ValueError(
            f"{name}: axis1 and axis2 must differ; got {axis1}, {axis2}; name two axes"
        )
    rest = [d for d in range(rank) if d not in (i, j)]
    x = o.transpose(x, permutation=(*rest, i, j)) if (i, j) != (rank - 2, rank - 1) else x
    *outer, n, m = x.aval.shape
    count = max(0, min(n, m - k) if k >= 0 else min(n + k, m))
    start = k if k >= 0 else -k * m
    flat = o.reshape(x, new_sizes=(*outer, n * m), dimensions=None)
    limit = start + (count - 1) * (m + 1) + 1 if count else start
    start = min(start, n * m)
    return o.slice(
        flat,
        start_indices=(*[0] * len(outer), start),
        limit_indices=(*outer, limit if count else start),
        strides=(*[1] * len(outer), m + 1),
    )


@moves_elements()
@api_boundary
@compiled_if_small("v", limit=256)
@shown("_diag")
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Take the diagonal of a matrix, or make a matrix from a diagonal.

    Parameters
    ----------
    v : array_like
        Matrix, or vector of the elements of the diagonal.
    {diagonal_k}

    Returns
    -------
    Array
        Vector for a matrix, and a square matrix with zeros beside the diagonal for a vector, with
        the dtype of `v`.

    Raises
    ------
    TypeError
        If `v` is neither an array nor a number, or `k` is not a static integer.
    ValueError
        If `v` has neither one nor two axes.

    See Also
    --------
    diagonal : Diagonals of arrays with more axes.
    diagflat : Matrix from the flattened input.
    eye : Ones on a diagonal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_node(v, "jnp.diag")
    k = as_int(k, "jnp.diag", "k")
    if x.aval.ndim == 2:
        return diagonal(v, k)
    if x.aval.ndim != 1:
        raise ValueError(
            f"jnp.diag: the input must be 1-d or 2-d; got {x.aval.ndim} dimensions; "
            "use jnp.diagonal for arrays of more axes"
        )
    n, weak = x.aval.shape[0] + abs(k), x.aval.weak_type
    zero = full_node((), 0, x.aval.dtype)
    if k:
        x = o.pad(x, zero, padding_config=((max(0, k), max(0, -k), 0),))
    wide = broadcast_to(x, (n, n), (1,))
    out = o.select_n(diagonal_mask((n, n), k), full_node((n, n), 0, x.aval.dtype), wide)
    return wrap(cast(out, x.aval.dtype, weak))


@moves_elements()
@api_boundary
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with the flattened input on a diagonal.

    Parameters
    ----------
    v : array_like
        Elements of the diagonal, n in number; several axes are flattened.
    {diagonal_k}

    Returns
    -------
    Array
        Matrix of shape (n + abs(k), n + abs(k)), with the dtype of `v`.

    Raises
    ------
    TypeError
        If `v` is neither an array nor a number, or `k` is not a static integer.

    See Also
    --------
    diag : Matrix from a vector, or diagonal of a matrix.
    fill_diagonal : Fill the diagonal of a given matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.diagflat(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_node(v, "jnp.diagflat")
    flat = cast(o.reshape(x, new_sizes=(x.aval.size,), dimensions=None), x.aval.dtype)
    return diag(wrap(flat), k)


# --- grids and index tables ----------------------------------------------------------------------


@moves_elements("xi")
@api_boundary
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Make coordinate matrices from coordinate vectors.

    Parameters
    ----------
    *xi : array_like
        Vectors of the coordinates along each axis.
    copy : bool, optional
        Has to be True, the default; present for compatibility with NumPy.
    sparse : bool, optional
        If True, the results have length 1 along all axes but one, so that they broadcast. The
        default is False.
    indexing : {'xy', 'ij'}, optional
        Whether the first coordinate varies along the second axis ('xy', Cartesian, the default) or
        along the first axis ('ij', matrix indexing).

    Returns
    -------
    list of Array
        n arrays with n axes for n vectors, each with the dtype of its vector.

    Raises
    ------
    TypeError
        If a coordinate is a list.
    ValueError
        If an argument is not a vector (NumPy accepts numbers), `copy` is False, or the
        indexing is unknown.

    See Also
    --------
    indices : Indices of a grid.
    mgrid, ogrid : Grids by slices.
    ix_ : Index arrays of an open mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(2))[0]
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    name = "jnp.meshgrid"
    if not copy:
        raise ValueError(f"{name}: only copy=True is supported; got {copy} (copy); leave it out")
    if indexing not in ("xy", "ij"):
        raise not_one_of(name, "indexing", indexing, ("xy", "ij"))
    nodes = [as_node(x, name) for x in xi]
    for x in nodes:
        if x.aval.ndim != 1:
            raise ValueError(f"{name}: inputs must be 1-d; got shape {x.aval.shape}; ravel them")
    where = list(range(len(nodes)))
    if indexing == "xy" and len(nodes) >= 2:
        where[0], where[1] = 1, 0
    full_shape = [0] * len(nodes)
    for x, d in zip(nodes, where, strict=True):
        full_shape[d] = x.aval.shape[0]
    out = []
    for x, d in zip(nodes, where, strict=True):
        shape = [x.aval.shape[0] if i == d and sparse else 1 for i in range(len(nodes))]
        out.append(wrap(broadcast_to(x, tuple(shape if sparse else full_shape), (d,))))
    return out


@overload
def indices(
    dimensions: Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    sparse: Literal[False] = False,
) -> Array: ...
@overload
def indices(
    dimensions: Sequence[SupportsIndex], dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[SupportsIndex], dtype: DTypeLike | None = None, sparse: bool = False
) -> Any: ...
@api_boundary
def indices(
    dimensions: Sequence[SupportsIndex], dtype: DTypeLike | None = None, sparse: bool = False
) -> Any:
    """Make the indices of all positions of a grid.

    Parameters
    ----------
    dimensions : sequence of int
        Shape of the grid, static.
    dtype : dtype_like, optional
        Dtype of the result. The default is int32 (int64 with `jax_enable_x64`).
    sparse : bool, optional
        If True, the result is a tuple of arrays that broadcast against each other. The default is
        False.

    Returns
    -------
    Array or tuple of Array
        Array of shape (len(dimensions), *dimensions), whose i-th slice holds the index along axis
        i.

    Raises
    ------
    TypeError
        If `dimensions` is not a sequence, or a size is negative, traced or not an integer.

    See Also
    --------
    meshgrid : Coordinates from vectors.
    fromfunction : Evaluate a function on a grid.
    lax.broadcasted_iota : The index along one axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.indices((2, 2))[1]
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    name = "jnp.indices"
    if isinstance(dimensions, int | np.integer):
        raise TypeError(
            f"{name}: dimensions must be a sequence of integers; got {dimensions!r}; "
            f"pass ({dimensions!r},)"
        )
    shape = as_shape(dimensions, name)
    kind = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, name)
    if sparse:
        return tuple(
            wrap(
                o.iota(
                    dtype=kind,
                    shape=tuple(n if i == d else 1 for i in range(len(shape))),
                    dimension=d,
                )
            )
            for d, n in enumerate(shape)
        )
    if not shape:
        return wrap(full_node((0,), 0, kind))
    parts = [o.iota(dtype=kind, shape=(1, *shape), dimension=d + 1) for d in range(len(shape))]
    return wrap(o.concatenate(*parts, dimension=0))


@api_boundary
def ix_(*args: Any) -> tuple[Array, ...]:
    """Convert vectors to index arrays of an open mesh.

    Parameters
    ----------
    *args : array_like of int
        Vectors of indices, one for each axis.

    Returns
    -------
    tuple of Array
        Arrays that broadcast against each other: the n-th has its elements along axis n. Dtypes
        are unchanged.

    Raises
    ------
    TypeError
        If an argument is a list.
    ValueError
        If an argument is not a vector.
    NotImplementedError
        If an argument is bool, which NumPy accepts.

    See Also
    --------
    meshgrid : Coordinate matrices.
    nonzero : Indices where a condition holds.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ix_(jnp.array([0, 1]), jnp.array([2]))[0]
    Array([[0],
           [1]], dtype=int32)
    """
    out = []
    for d, x in enumerate(map(wrap, as_nodes("jnp.ix_", *args))):
        if x.ndim != 1:
            raise ValueError(f"jnp.ix_: indices must be 1-d; got shape {x.shape}; ravel them")
        if x.dtype == bool:
            raise NotImplementedError("jnp.ix_: masks are not supported; got bool; use nonzero")
        shape = tuple(x.size if i == d else 1 for i in range(len(args)))
        node = x._node if x.size else full_node((0,), 0, dtypes.default_int())  # may be float
        out.append(wrap(o.reshape(node, new_sizes=shape, dimensions=None)))
    return tuple(out)


def _pairs(mask: np.ndarray) -> tuple[Array, Array]:
    i, j = np.nonzero(mask)
    return wrap(numpy_node(i, copy=False)), wrap(numpy_node(j, copy=False))


def _lower_triangle_mask(function: str, n: Any, k: Any, m: Any) -> np.ndarray:
    """Return a mask of the elements on and below the k-th diagonal."""
    rows, columns = (as_size(v, function, "each size") for v in (n, n if m is None else m))
    return np.tri(rows, columns, as_int(k, function, "k"), dtype=bool)


@api_boundary
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a matrix of a given shape.

    Parameters
    ----------
    n : int
        Number of rows, static.
    {diagonal_k}
    m : int, optional
        Number of columns, static. The default is `n`.

    Returns
    -------
    tuple of Array
        Indices of rows and columns, of dtype int32 (int64 with `jax_enable_x64`), in row-major
        order.

    Raises
    ------
    TypeError
        If `n`, `k` or `m` is not a static integer.

    See Also
    --------
    triu_indices : Indices of the upper triangle.
    tril_indices_from : The same for a given matrix.
    tril : Lower triangle of a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _pairs(_lower_triangle_mask("jnp.tril_indices", n, k, m))


@api_boundary
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a matrix of a given shape.

    Parameters
    ----------
    n : int
        Number of rows, static.
    {diagonal_k}
    m : int, optional
        Number of columns, static. The default is `n`.

    Returns
    -------
    tuple of Array
        Indices of rows and columns, of dtype int32 (int64 with `jax_enable_x64`), in row-major
        order.

    Raises
    ------
    TypeError
        If `n`, `k` or `m` is not a static integer.

    See Also
    --------
    tril_indices : Indices of the lower triangle.
    triu_indices_from : The same for a given matrix.
    triu : Upper triangle of a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _pairs(
        ~_lower_triangle_mask("jnp.triu_indices", n, as_int(k, "jnp.triu_indices", "k") - 1, m)
    )


def _matrix_shape(arr: Any, k: int, function: str) -> tuple[int, int, int]:
    shape = as_node(arr, function).aval.shape
    if len(shape) != 2:
        raise ValueError(
            f"{function}: arr must have two axes; got shape {shape}; use tril_indices with sizes"
        )
    return shape[0], k, shape[1]


@api_boundary
def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a given matrix.

    Parameters
    ----------
    arr : array_like
        Matrix whose shape is used.
    {diagonal_k}

    Returns
    -------
    tuple of Array
        Indices of rows and columns, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    ValueError
        If `arr` does not have two axes.

    See Also
    --------
    tril_indices : The same for a given shape.
    tril : Lower triangle of a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return tril_indices(*_matrix_shape(arr, k, "jnp.tril_indices_from"))


@api_boundary
def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a given matrix.

    Parameters
    ----------
    arr : array_like
        Matrix whose shape is used.
    {diagonal_k}

    Returns
    -------
    tuple of Array
        Indices of rows and columns, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    ValueError
        If `arr` does not have two axes.

    See Also
    --------
    triu_indices : The same for a given shape.
    triu : Upper triangle of a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return triu_indices(*_matrix_shape(arr, k, "jnp.triu_indices_from"))


@api_boundary
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array of a given size.

    Parameters
    ----------
    n : int
        Length of each axis, static.
    ndim : int, optional
        Number of axes, static. The default is 2.

    Returns
    -------
    tuple of Array
        One vector for each axis, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `n` or `ndim` is not a static integer.
    ValueError
        If `n` or `ndim` is negative.

    See Also
    --------
    diag_indices_from : The same for a given array.
    diagonal : Elements of a diagonal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = as_int(n, "jnp.diag_indices", "n"), as_int(ndim, "jnp.diag_indices", "ndim")
    if n < 0 or ndim < 0:
        raise ValueError(
            f"jnp.diag_indices: sizes cannot be negative; got {n} and {ndim}; pass 0 or more"
        )
    return (arange(n),) * ndim


@api_boundary
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of a given array.

    Parameters
    ----------
    arr : array_like
        Array with at least two axes, all of one length.

    Returns
    -------
    tuple of Array
        One vector for each axis, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    ValueError
        If there are fewer than two axes, or they differ in length.

    See Also
    --------
    diag_indices : The same for a given size.
    diagonal : Elements of a diagonal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = as_node(arr, "jnp.diag_indices_from").aval.shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(
            f"jnp.diag_indices_from: all axes must have the same length; got {shape}; "
            "use jnp.diag_indices with one length"
        )
    return diag_indices(shape[0], len(shape))


@api_boundary
@shown()
@compiled_if_small("x")
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Make the Vandermonde matrix of a vector: the powers of its elements.

    Parameters
    ----------
    x : array_like
        Vector of the bases. Lists and tuples are not accepted.
    N : int, optional
        Number of columns, static. The default is the length of `x`.
    increasing : bool, optional
        If True, the exponents rise from 0 on. If False, the default, they fall to 0.

    Returns
    -------
    Array
        Matrix of shape (len(x), N), with the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is bool or a list.
    ValueError
        If `x` is not a vector, or `N` is negative.

    See Also
    --------
    polyfit : Fit a polynomial.
    polyval : Evaluate a polynomial.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    v = as_node(x, "jnp.vander")
    if v.aval.ndim != 1:
        raise ValueError(f"jnp.vander: x must be 1-dimensional; got shape {v.aval.shape}; ravel it")
    n = v.aval.shape[0] if N is None else as_int(N, "jnp.vander", "N", "size")
    if n < 0:
        raise ValueError(
            f"jnp.vander: N cannot be negative; got {n}; pass 0 or more, or None for a square"
        )
    order = range(n) if increasing else range(n - 1, -1, -1)
    cols = [
        o.reshape(o.integer_pow(v, y=p), new_sizes=(v.aval.size, 1), dimensions=None) for p in order
    ]
    if not cols:
        return wrap(full_node((v.aval.size, 0), 0, v.aval.dtype))
    return wrap(cast(o.concatenate(*cols, dimension=1), v.aval.dtype))


# --- from elsewhere ------------------------------------------------------------------------------


@moves_elements()
@api_boundary
def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of an array with a buffer of its own.

    Parameters
    ----------
    {a}
    {order_kc}

    Returns
    -------
    Array
        Copy with the shape and dtype of `a`. It stays valid if `a` is donated or deleted.

    Raises
    ------
    {raises_not_array}
    NotImplementedError
        If `order` is 'F'.

    See Also
    --------
    array : Make an array, by default a copy.
    Array.copy : The method of arrays.

    Notes
    -----
    Arrays are immutable, so that a copy matters only for donation and deletion.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.copy(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    if order not in (None, "K", "C"):
        raise NotImplementedError(
            f"jnp.copy: order must be 'K' or 'C'; got {order!r}; "
            "leave it out, since all arrays are row-major"
        )
    return wrap(o.copy(as_node(a, "jnp.copy")))


@accepts_keys("convert_keys")
@api_boundary
def astype(
    x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: DeviceLike = None
) -> Array:
    """Convert an array to a dtype.

    Parameters
    ----------
    x : array_like
        Array or number to convert. Lists and tuples are not accepted.
    dtype : dtype_like
        Dtype to convert the elements to. None means the default float dtype.
    copy : bool, optional
        Has no effect on arrays, which are immutable. The default is False.
    device : Device or Sharding, optional
        Where to put the result. By default it stays on the device of `x`.

    Returns
    -------
    Array
        Converted array, with the shape of `x`.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number, or the dtype is unknown.

    See Also
    --------
    Array.astype : The method of arrays.
    can_cast : Whether a conversion keeps all values.
    lax.bitcast_convert_type : Interpret the bits as another dtype.

    Notes
    -----
    Floats out of the range of an integer dtype give its nearest bound, and nan gives 0, where
    NumPy's result is undefined. Complex numbers lose their imaginary parts, with a
    DeprecationWarning, as in JAX.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.astype(jnp.array([1.5]), int)
    Array([1], dtype=int32)
    """
    node = as_node(x, "jnp.astype")
    kind = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "astype")
    node = astype_node(without_float0(node, kind), kind, "astype")
    return new_array(o.copy(node) if copy else node, device)
