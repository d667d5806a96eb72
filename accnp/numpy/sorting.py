"""Sorting, partitioning and the k largest elements.

All sorts are stable, and NaN sorts last.
"""

from __future__ import annotations

from math import ceil, log
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, promote_inexact, scalar_node
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_axis, as_int
from accnp.api.arguments.values import node_of
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, ArraySequence, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.numpy.manipulation import reshape_plain
from accnp.primitives.sort import permutation_of

__all__ = [
    "approx_max_k", "approx_min_k", "argpartition", "argsort", "lexsort", "partition", "sort",
    "sort_complex", "top_k",
]  # fmt: skip


# The longest axis that `partition` sorts, in a kernel of its own.
SORTED = 1024


def _prepare(a: Any, axis: int | None, function: str) -> tuple[Node, int]:
    x = as_node(a, function)
    if axis is None:
        return reshape_plain(x, (x.aval.size,)), 0
    return x, as_axis(axis, x.aval.ndim, function)


@api_boundary
@shown()
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return a sorted copy of an array.

    Parameters
    ----------
    {a}
    axis : int, optional
        Axis along which to sort. The default is the last axis; None sorts the flattened array.
    {kind_order}
    {stable}
    {descending}

    Returns
    -------
    Array
        Sorted array, with the shape and dtype of `a`.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `kind` or `order` is given.
    ValueError
        If the axis is out of bounds.

    See Also
    --------
    argsort : Indices that sort an array.
    lexsort : Sort by several keys.
    lax.sort : Sort several operands by the first ones.
    partition, lax.top_k : Smallest and largest elements.

    Notes
    -----
    nan counts as the largest number: it comes last, and first in falling order. Complex numbers are
    ordered by real part, then by imaginary part.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _no_kind(kind, order, "jnp.sort")
    x, d = _prepare(a, axis, "jnp.sort")
    out = o.sort(x, dimension=d, is_stable=bool(stable), num_keys=1)
    return wrap(o.rev(out, dimensions=(d,)) if descending else out)


def _no_kind(kind: Any, order: Any, function: str) -> None:
    if kind is not None:
        raise TypeError(f"{function}: 'kind' is not supported; got {kind!r}; use stable= instead")
    if order is not None:
        raise TypeError(
            f"{function}: 'order' is not supported; got {order!r}; "
            "leave it out, since dtypes have no fields"
        )


def argsort_node(x: Node, d: int, descending: bool = False) -> Node:
    """Return the indices that sort along an axis; equal elements keep their order either way."""
    if not descending:
        return permutation_of([x], d)
    index = o.rev(permutation_of([o.rev(x, dimensions=(d,))], d), dimensions=(d,))
    return o.sub(scalar_node(x.aval.shape[d] - 1, index.aval.dtype, False), index)


@api_boundary
@compiled_if_small("a")
@shown()
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the indices that sort an array.

    Parameters
    ----------
    {a}
    axis : int, optional
        Axis along which to sort. The default is the last axis; None sorts the flattened array.
    {kind_order}
    {stable}
    {descending}
    dtype : dtype_like, optional
        Integer dtype of the result. The default is int32 (int64 with `jax_enable_x64`).

    Returns
    -------
    Array
        Indices along the axis, with the shape of `a`; `take_along_axis` applies them.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `kind` or `order` is given.
    ValueError
        If the axis is out of bounds.

    See Also
    --------
    sort : Sorted array.
    argmax, argmin : Index of an extreme element.
    take_along_axis : Apply the indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _no_kind(kind, order, "jnp.argsort")
    x, d = _prepare(a, axis, "jnp.argsort")
    index_dtype = (
        dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "jnp.argsort")
    )
    return wrap(cast(argsort_node(x, d, descending), index_dtype))


@api_boundary
@shown()
def lexsort(keys: ArraySequence, axis: int = -1) -> Array:
    """Return the indices that sort by several keys.

    Parameters
    ----------
    keys : sequence of array_like
        Keys of one shape. The last one decides first, and the first one last.
    {axis_last}

    Returns
    -------
    Array
        Indices along the axis with the shape of a key, of dtype int32 (int64 with
        `jax_enable_x64`).

    Raises
    ------
    TypeError
        If no key is given, or one is neither an array nor a number.
    ValueError
        If the keys differ in shape, or the axis is out of bounds.

    See Also
    --------
    argsort : Indices for one key.
    lax.sort : Sort several operands by the first ones.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lexsort((jnp.array([2, 1]), jnp.array([0, 0])))
    Array([1, 0], dtype=int32)
    """
    nodes = [node_of(k, function="jnp.lexsort") for k in keys]
    if not nodes:
        raise TypeError(f"jnp.lexsort: keys must not be empty; got {keys!r}; pass arrays")
    if any(n.aval.shape != nodes[0].aval.shape for n in nodes):
        shapes = [n.aval.shape for n in nodes]
        raise ValueError(f"jnp.lexsort: all keys must have one shape; got {shapes}; broadcast them")
    if nodes[0].aval.ndim == 0:
        return wrap(scalar_node(0, dtypes.default_int(), False))
    d = as_axis(axis, nodes[0].aval.ndim, "jnp.lexsort")
    return wrap(cast(permutation_of(nodes[::-1], d), dtypes.default_int()))


def _sort_for_partition(a: Any, kth: Any, axis: Any, name: str) -> tuple[Node, int, int]:
    x = as_node(a, name)
    if x.aval.dtype.kind == "c":
        raise NotImplementedError(
            f"{name}: complex elements are not supported; got {x.aval.dtype.name}; use jnp.sort"
        )
    d = as_axis(axis, x.aval.ndim, name)
    place = as_int(kth, name, "kth")
    return x, as_axis(place, x.aval.shape[d], name), d


@api_boundary
@shown()
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Move smaller elements in front of the one that is at a position when sorted.

    Parameters
    ----------
    a : array_like
        Array of real numbers; nan count as the largest ones.
    {kth}
    {axis_last}

    Returns
    -------
    Array
        Array with the shape and dtype of `a`, whose element at `kth` is that of the sorted array.
        The order on either side of it is not specified.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number.
    ValueError
        If `kth` or `axis` is out of bounds.
    NotImplementedError
        If `a` is complex.

    See Also
    --------
    argpartition : Indices that partition an array.
    sort : Sort all elements.
    lax.top_k : Largest elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.partition(jnp.array([3, 1, 2]), 1)
    Array([1, 2, 3], dtype=int32)
    """
    x, k, d = _sort_for_partition(a, kth, axis, "jnp.partition")
    if x.aval.shape[d] > SORTED:
        return wrap(o.partition(x, kth=k, axis=d))
    return wrap(o.sort(x, dimension=d, is_stable=True, num_keys=1))


@api_boundary
@shown()
@compiled_if_small("a")
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the indices that partition an array at a position.

    Parameters
    ----------
    a : array_like
        Array of real numbers; nan count as the largest ones.
    {kth}
    {axis_last}

    Returns
    -------
    Array
        Indices along the axis, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number.
    ValueError
        If `kth` or `axis` is out of bounds.
    NotImplementedError
        If `a` is complex.

    See Also
    --------
    partition : Partitioned array.
    argsort : Indices that sort an array.

    Notes
    -----
    The indices are those that sort the array.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)
    Array([1, 2, 0], dtype=int32)
    """
    x, _, d = _sort_for_partition(a, kth, axis, "jnp.argpartition")
    # The indices are int32 even if the default is int64, like those of `top_k`.
    return wrap(cast(argsort_node(x, d), np.dtype(np.int32), x.aval.weak_type))


@api_boundary
@shown()
@promotes_inside
@compiled_if_small("a")
def sort_complex(a: ArrayLike) -> Array:
    """Sort along the last axis and convert to a complex dtype.

    Parameters
    ----------
    {a}

    Returns
    -------
    Array
        Sorted array with the shape of `a`, of dtype complex64 (complex128 with `jax_enable_x64`).

    Raises
    ------
    {raises_not_array}

    See Also
    --------
    sort : Sort and keep the dtype.

    Notes
    -----
    Numbers are ordered by real part, then by imaginary part.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sort_complex(jnp.array([2, 1j]))
    Array([0.+1.j, 2.+0.j], dtype=complex64)
    """
    out = sort(a)
    if out.dtype.kind == "c":
        return wrap(cast(out._node, out.dtype))
    (reals,) = promote_inexact("jnp.sort_complex", out)
    return wrap(cast(reals, dtypes.result_type(reals.aval.dtype, np.complex64)))


@api_boundary
def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """Return the k largest elements along an axis and their indices.

    Parameters
    ----------
    operand : array_like
        Array of real numbers to search.
    k : int
        Number of elements to return.
    axis : int, optional
        Axis to search along. The default is the last one.

    Returns
    -------
    values : Array
        Largest elements in descending order, of the dtype of `operand`, with length k along the
        axis.
    indices : Array
        Their indices along the axis, of dtype int32.

    Raises
    ------
    ValueError
        If `k` is not between 0 and the length of the axis, `axis` is out of bounds, or the numbers
        are complex.

    See Also
    --------
    approx_max_k : The same by the name of an approximate method.
    sort : Sort all elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.top_k(jnp.array([3, 1, 2]), 2)
    [Array([3, 2], dtype=int32), Array([0, 2], dtype=int32)]
    """
    x, d = _prepare(operand, axis, "lax.top_k")
    if x.aval.dtype.kind == "c":
        raise ValueError(f"lax.top_k: complex numbers have no order; got {x.aval}; take abs")
    out = o.top_k(x, k=as_int(k, "lax.top_k", "k", "size"), axis=d)
    return [wrap(n) for n in items(out)]


def _approximate(
    name: str, operand: Any, k: Any, axis: Any, recall: Any, length: Any, whole: bool
) -> Node:
    x = as_node(operand, f"lax.{name}")
    if x.aval.dtype.kind not in "fV":
        raise ValueError(
            f"lax.{name}: operand must be a floating type; got {x.aval.dtype.name}; cast it"
        )
    if not x.aval.ndim:
        raise TypeError(
            f"lax.{name}: expected at least one axis; got {x.aval.shape}; add one with x[None]"
        )
    d, count = as_axis(axis, x.aval.ndim, f"lax.{name}"), as_int(k, f"lax.{name}", "k", "shape")
    if count <= 0:
        raise ValueError(f"lax.{name}: k cannot be negative; got {count}; pass 0 or more")
    if x.aval.shape[d] < count:
        raise ValueError(
            f"lax.{name}: k must be smaller than the size of reduction_dim {x.aval.shape[d]}, "
            f"got {count}; pass a smaller k"
        )
    if not 0 < recall <= 1:
        raise ValueError(
            f"lax.{name}: recall_target must be between 0 and 1; got {recall}; pass a fraction"
        )
    if not whole:
        n = x.aval.shape[d]
        whole_length = n if length < 0 else as_int(length, f"lax.{name}")
        if whole_length < n:
            raise ValueError(
                f"lax.{name}: reduction_input_size_override must be {n} or more; got {length}; "
                "pass the length of the whole axis"
            )
        count = min(_candidates(n, x.aval.ndim, count, recall, whole_length), n)
    return o.top_k(x if name == "approx_max_k" else o.neg(x), k=count, axis=d)


def _candidates(n: int, rank: int, k: int, recall: float, whole: int) -> int:
    """Return how many of n elements XLA's first pass keeps, so that all parts of an axis of length
    `whole` contain the largest k with this recall (approx_topk_shape.cc)."""
    tile = 1024 if rank == 1 else 128
    if n <= tile:
        return n
    if k == 1:
        return tile
    least = whole if recall == 1 else min(max(int((1 - k) / log(recall)), tile), whole)
    if whole // least < 2:
        return n
    halvings = min((whole // least).bit_length() - 1, (n // tile - 1).bit_length())
    return ceil(ceil(n / tile) / 2**halvings) * tile


@api_boundary
def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return the k largest elements along an axis and their indices, for floating dtypes.

    Parameters
    ----------
    {approx_k}

    Returns
    -------
    values : Array
        Largest elements in descending order, of the dtype of `operand`.
    indices : Array
        Their indices along the axis, of dtype int32.

    Raises
    ------
    ValueError
        If `operand` is not floating, `k` is not between 1 and the length of the axis, or the whole
        axis is shorter than its part.

    See Also
    --------
    approx_min_k : The smallest elements.
    top_k : The same for any real dtype.

    Notes
    -----
    All of the largest elements are found, whatever recall is requested, as by `top_k`. Without
    `aggregate_to_topk` there are more elements, as many as XLA returns, but no more than there are.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.approx_max_k(jnp.array([3.0, 1.0, 2.0]), 2)[1]
    Array([0, 2], dtype=int32)
    """
    name = "approx_max_k"
    how = recall_target, reduction_input_size_override, aggregate_to_topk
    out = _approximate(name, operand, k, reduction_dimension, *how)
    return [wrap(n) for n in items(out)]


@api_boundary
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return the k smallest elements along an axis and their indices, for floating dtypes.

    Parameters
    ----------
    {approx_k}

    Returns
    -------
    values : Array
        Smallest elements in ascending order, of the dtype of `operand`.
    indices : Array
        Their indices along the axis, of dtype int32.

    Raises
    ------
    ValueError
        If `operand` is not floating, `axis` is out of bounds, or `k` is not between 1 and its
        length.

    See Also
    --------
    approx_max_k : The largest elements.
    top_k : The largest elements of any real dtype.

    Notes
    -----
    All of the smallest elements are found, whatever recall is requested. See `approx_max_k`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.approx_min_k(jnp.array([3.0, 1.0, 2.0]), 2)[0]
    Array([1., 2.], dtype=float32)
    """
    name = "approx_min_k"
    how = recall_target, reduction_input_size_override, aggregate_to_topk
    out = _approximate(name, operand, k, reduction_dimension, *how)
    values, places = items(out)
    return [wrap(o.neg(values)), wrap(places)]
