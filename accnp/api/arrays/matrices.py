"""Structured arrays: diagonals, triangles, grids, index tables; arrays of buffers and functions.

Sizes and arrays come in, lazy Arrays go out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, as_nodes, cast, numpy_node, without_float0
from accnp.api.arguments.shapes import as_axis, as_int, as_shape, as_size
from accnp.api.arguments.values import to_dtype
from accnp.api.arrays.creation import arange, as_diagonal, diagonal_mask
from accnp.api.arrays.placement import made
from accnp.api.compiled.named import shown
from accnp.array import Array, ArrayLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary, not_one_of, warn
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to
from accnp.primitives.kinds import full as full_node

__all__ = [
    "astype", "copy", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal",
    "indices", "ix_", "meshgrid", "tri", "tril", "tril_indices",
    "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip


@api_boundary
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Make a matrix of ones on and below a diagonal.

    The shape is (N, M), M is N by default; the dtype is float32 by default.

    Raises:
        TypeError: N or M is no static integer, or negative; k, which may be traced, is no integer;
            no such dtype.

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
        raise ValueError(f"{name}: two axes are needed; got {m.aval.ndim}; add axes with x[None]")
    mask = diagonal_mask(m.aval.shape[-2:], as_int(k, name, "k") - upper, "ge")
    mask = broadcast_to(mask, m.aval.shape)
    zero = full_node(m.aval.shape, 0, m.aval.dtype, m.aval.weak_type)
    return wrap(o.select_n(mask, *((m, zero) if upper else (zero, m))))


@api_boundary
@shown()
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Keep what is on and below a diagonal; the rest becomes zero.

    Shape and dtype stay; leading axes are a batch.

    Raises:
        ValueError: there are fewer than two axes.
        TypeError: m is a list or a text, or k no integer.

    >>> import accnp as jnp
    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle(m, k, False, "jnp.tril")


@api_boundary
@shown()
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Keep what is on and above a diagonal; the rest becomes zero.

    Shape and dtype stay; errors are those of `tril`.

    >>> import accnp as jnp
    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle(m, k, True, "jnp.triu")


@api_boundary
@shown()
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Take the diagonal of two axes; it becomes the last axis.

    The dtype stays. Unlike NumPy: no view of `a`, since arrays are immutable.

    Raises:
        ValueError: fewer than two axes, equal ones, or one out of bounds.
        TypeError: a is no array or number (a list, a text).

    >>> import accnp as jnp
    >>> jnp.diagonal(jnp.arange(4).reshape(2, 2))
    Array([0, 3], dtype=int32)
    """
    return wrap(diagonal_node(as_node(a, "jnp.diagonal"), offset, axis1, axis2, "jnp.diagonal"))


def diagonal_node(x: Node, offset: int, axis1: int, axis2: int, name: str) -> Node:
    """The diagonal as a chain of views: flatten the two axes and step by one more than a row."""
    k, rank = as_int(offset, name, "offset"), x.aval.ndim
    if rank < 2:
        raise ValueError(f"{name}: two axes are needed; got {rank}; add axes with x[None]")
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


@api_boundary
@shown("_diag")
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with `v` on a diagonal, or take the diagonal of a matrix.

    The dtype stays.

    Raises:
        ValueError: v has neither one nor two axes.
        TypeError: v is a list or a text, or k no static integer.

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


@api_boundary
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with the flattened `v` on a diagonal.

    For n elements the shape is (n + abs(k), n + abs(k)); the dtype stays.

    Raises:
        TypeError: v is a list or a text, or k no static integer.

    >>> import accnp as jnp
    >>> jnp.diagflat(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_node(v, "jnp.diagflat")
    flat = cast(o.reshape(x, new_sizes=(x.aval.size,), dimensions=None), x.aval.dtype)
    return diag(wrap(flat), k)


# --- grids and index tables ----------------------------------------------------------------------


@api_boundary
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Make coordinate matrices from coordinate vectors.

    Of n vectors come n arrays of n axes ('xy' swaps the first two); dtypes stay.

    Raises:
        ValueError: one is no vector (NumPy takes numbers), copy=False, or indexing is neither 'xy'
            nor 'ij'.
        TypeError: one is a list.

    >>> import accnp as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(2))[0]
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    name = "jnp.meshgrid"
    if not copy:
        raise ValueError(f"{name}: only copy=True is supported; leave it out")
    if indexing not in ("xy", "ij"):
        raise not_one_of(name, "indexing", indexing, ("xy", "ij"))
    nodes = [as_node(x, name) for x in xi]
    for x in nodes:
        if x.aval.ndim != 1:
            raise ValueError(f"{name}: each must be 1-d; got shape {x.aval.shape}; ravel it")
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


@api_boundary
def indices(dimensions: Any, dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """Make the indices of a grid, one array for each axis.

    The shape is (axes, *dimensions); with sparse=True a tuple of arrays that broadcast. The dtype
    is int32 (int64 with jax_enable_x64) by default.

    Raises:
        TypeError: a size is negative or no static integer.

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
    """Turn sequences into index arrays of an open mesh.

    The n-th has all elements along axis n; dtypes stay.

    Raises:
        ValueError: one is no vector.
        NotImplementedError: one is bool (NumPy takes it).

    >>> import accnp as jnp
    >>> jnp.ix_(jnp.array([0, 1]), jnp.array([2]))[0]
    Array([[0],
           [1]], dtype=int32)
    """
    out = []
    for d, x in enumerate(map(wrap, as_nodes("jnp.ix_", *args))):
        if x.ndim != 1:
            raise ValueError(f"jnp.ix_: each index has one axis; got shape {x.shape}; ravel it")
        if x.dtype == bool:
            raise NotImplementedError("jnp.ix_: got bool; masks are not supported; use nonzero")
        shape = tuple(x.size if i == d else 1 for i in range(len(args)))
        node = x._node if x.size else full_node((0,), 0, dtypes.default_int())  # of no dtype
        out.append(wrap(o.reshape(node, new_sizes=shape, dimensions=None)))
    return tuple(out)


def _pairs(mask: np.ndarray) -> tuple[Array, Array]:
    i, j = np.nonzero(mask)
    return wrap(numpy_node(i, copy=False)), wrap(numpy_node(j, copy=False))


def _below(function: str, n: Any, k: Any, m: Any) -> np.ndarray:
    """Which elements of a matrix lie on the k-th diagonal or below it."""
    rows, columns = (as_size(v, function, "each size") for v in (n, n if m is None else m))
    return np.tri(rows, columns, as_int(k, function, "k"), dtype=bool)


@api_boundary
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the row and column indices of the lower triangle.

    The dtype is int32 (int64 with jax_enable_x64); the shape of the matrix is (n, m).

    Raises:
        TypeError: n or k is no static integer.

    >>> import accnp as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _pairs(_below("jnp.tril_indices", n, k, m))


@api_boundary
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the row and column indices of the upper triangle.

    Shapes, dtype and errors are those of `tril_indices`.

    >>> import accnp as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _pairs(~_below("jnp.triu_indices", n, as_int(k, "jnp.triu_indices", "k") - 1, m))


def _matrix_shape(arr: Any, k: int, function: str) -> tuple[int, int, int]:
    shape = as_node(arr, function).aval.shape
    if len(shape) != 2:
        raise ValueError(
            f"{function}: arr must have two axes; got shape {shape}; "
            "use its last two axes one by one, or tril_indices with sizes"
        )
    return shape[0], k, shape[1]


@api_boundary
def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a matrix.

    The dtype is that of `tril_indices`; a ValueError is raised unless arr has two axes.

    >>> import accnp as jnp
    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return tril_indices(*_matrix_shape(arr, k, "jnp.tril_indices_from"))


@api_boundary
def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a matrix.

    The dtype is that of `tril_indices`; a ValueError is raised unless arr has two axes.

    >>> import accnp as jnp
    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return triu_indices(*_matrix_shape(arr, k, "jnp.triu_indices_from"))


@api_boundary
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal, a vector for each axis.

    The dtype is int32 (int64 with jax_enable_x64).

    Raises:
        ValueError: n or ndim is negative.
        TypeError: one is no static integer.

    >>> import accnp as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = as_int(n, "jnp.diag_indices", "n"), as_int(ndim, "jnp.diag_indices", "ndim")
    if n < 0 or ndim < 0:
        raise ValueError(f"jnp.diag_indices: sizes are 0 or more; got {n} and {ndim}; pass such")
    return (arange(n),) * ndim


@api_boundary
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array whose axes are equally long.

    The dtype is that of `diag_indices`; a ValueError is raised where axes differ or there is one.

    >>> import accnp as jnp
    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = as_node(arr, "jnp.diag_indices_from").aval.shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(
            f"jnp.diag_indices_from: axes must be equally long; got {shape}; "
            "use jnp.diag_indices with one length"
        )
    return diag_indices(shape[0], len(shape))


@api_boundary
@shown()
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Make the matrix of powers of the elements of a vector.

    The shape is (len(x), N); the dtype stays.

    Raises:
        ValueError: x is no vector, or N negative.
        TypeError: x is bool or a list.

    >>> import accnp as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    v = as_node(x, "jnp.vander")
    if v.aval.ndim != 1:
        raise ValueError(f"jnp.vander: x must be 1-dimensional; got shape {v.aval.shape}; ravel it")
    n = v.aval.shape[0] if N is None else as_int(N, "jnp.vander", "N", "shape")
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


@api_boundary
def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy; arrays never change, so this matters to donation only.

    Shape and dtype stay.

    Raises:
        NotImplementedError: order is neither 'K' nor 'C'.
        TypeError: a is a list or a text.

    >>> import accnp as jnp
    >>> jnp.copy(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    if order not in (None, "K", "C"):
        raise NotImplementedError(
            f"jnp.copy: order must be 'K' or 'C'; got {order!r}; "
            "leave it out, since layouts are not the user's here"
        )
    return wrap(o.copy(as_node(a, "jnp.copy")))


@api_boundary
def astype(
    x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Any = None
) -> Array:
    """Convert to a dtype.

    The shape stays. Unlike NumPy: floats beyond an integer's bounds become the nearest bound, nan
    0. Complex numbers lose their imaginary parts, with a DeprecationWarning, as in jax.

    Raises:
        TypeError: x is a list or a text, or there is no such dtype.

    >>> import accnp as jnp
    >>> jnp.astype(jnp.array([1.5]), int)
    Array([1], dtype=int32)
    """
    node = as_node(x, "jnp.astype")
    kind = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "astype")
    if kind == dtypes.bool_ and node.aval.dtype.kind == "c":
        node = o.ne(node, like(node, 0))  # not its real part alone, as other types take it
    elif node.aval.dtype.kind == "c" and kind.kind != "c":
        warn(
            "astype: Casting from complex to real dtypes will be an error in the future, since the "
            f"imaginary parts are lost; got {node.aval.dtype.name} for {kind.name}; use jnp.real "
            "or jnp.imag before",
            DeprecationWarning,
        )
    node = to_dtype(without_float0(node, kind), kind)
    return made(o.copy(node) if copy else node, device)
