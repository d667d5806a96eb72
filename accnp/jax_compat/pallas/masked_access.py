"""Masked loads and stores of parts of references, and atomic operations.

A part that exceeds the array reads NaN or the smallest integer there, and writes nothing. The steps
of a grid run one after the other, so every operation is atomic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accnp.api.arguments.convert import as_node, cast
from accnp.api.arrays.reference_parts import Part, extents, update_part
from accnp.api.arrays.references import Ref
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.jax_compat.pallas.kernel_functions import uninitialized
from accnp.numpy.creation import arange
from accnp.numpy.manipulation import broadcast_to
from accnp.numpy.products import matmul
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import maximum, minimum, tanh

__all__ = [
    "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min",
    "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load", "load_at",
    "max_contiguous", "store", "store_at", "swap_at",
]  # fmt: skip


def _reference_and_index(ref: Any, function: str) -> tuple[Any, Any]:
    """Return the reference of a part, and the index in it."""
    if isinstance(ref, Part):
        return ref.of, ref.idx
    if isinstance(ref, Ref):
        return ref, ...
    raise ValueError(
        f"{function}: the first argument must be a reference; got {ref!r}; pass what the kernel got"
    )


class _Loose(NamedTuple):
    """A box that may exceed the array, as index arrays."""

    index: tuple[Any, ...]
    sizes: tuple[int, ...]
    dropped: tuple[int, ...]  # axes indexed with integers, which the part lacks

    @property
    def shown(self) -> list[int]:
        """The shape of the part."""
        return [n for i, n in enumerate(self.sizes) if i not in self.dropped]


def _unclipped_box(shape: tuple[int, ...], idx: Any) -> _Loose | None:
    """Return the box of an index that may exceed the array; None for plain indexing."""
    box = extents(shape, idx)
    if box is None:
        return None
    beyond = [
        not isinstance(start, int) or start + n > size
        for (start, n, _), size in zip(box, shape, strict=True)
    ]
    if not any(beyond):
        return None
    # A single index array keeps its axis in place; several form an open mesh.
    several = sum(beyond) > 1
    index: list[Any] = []
    for axis, (start, n, _) in enumerate(box):
        if several or beyond[axis]:
            at = (maximum(start, 0) if beyond[axis] else start) + arange(n)
            index.append(at.reshape((n,) + (1,) * (len(shape) - 1 - axis)) if several else at)
        else:
            index.append(slice(start, start + n))
    dropped = tuple([i for i, (_, _, drop) in enumerate(box) if drop])
    return _Loose(tuple(index), tuple([n for _, n, _ in box]), dropped)


def _load_masked(ref: Any, function: str) -> Array:
    of, idx = _reference_and_index(ref, function)
    content = of[...]
    box = _unclipped_box(content.shape, idx)
    if box is None:
        return of[idx]
    fill = uninitialized((), content.dtype)
    return content.at[box.index].get(mode="fill", fill_value=fill).reshape(box.shown)


def _store_masked(ref: Any, value: Any, mask: Any, function: str) -> None:
    of, idx = _reference_and_index(ref, function)
    node = as_node(value, function)
    if not node.aval.weak_type and node.aval.dtype != of.dtype:
        raise ValueError(
            f"{function}: values must have the dtype of the reference, {of.dtype}; got "
            f"{node.aval.dtype}; convert them with astype"
        )
    new = wrap(cast(node, np.dtype(of.dtype)))
    if mask is not None:
        new = where(mask, new, _load_masked(ref, function))
    content = of[...]
    box = _unclipped_box(content.shape, idx)
    if box is None:
        of[idx] = new
    else:
        new = broadcast_to(new, box.shown).reshape(box.sizes)
        of[...] = content.at[box.index].set(new, mode="drop")


@api_boundary
def load(
    ref: Any,
    *,
    mask: ArrayLike | None = None,
    other: ArrayLike | None = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Array:
    """Read a reference, or a part of one (`ref.at[i]`), where a mask is True.

    Parameters
    ----------
    ref : Ref
        Reference, or part of one, to read.
    mask : array_like of bool, optional
        Elements to read; it broadcasts to the shape of the reference.
    other : array_like, optional
        Result where the mask is False. The default is whatever the memory holds.
    cache_modifier : str, optional
        Ignored hint.
    eviction_policy : str, optional
        Ignored hint.
    volatile : bool, optional
        Ignored hint.

    Returns
    -------
    Array
        Content, of the dtype of the reference.

    Raises
    ------
    ValueError
        If it is not a reference, or the mask does not broadcast.

    See Also
    --------
    experimental.pallas.triton.store : Write with a mask.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.arange(5))
    >>> i = jnp.int32(3)
    >>> plgpu.load(ref.at[pl.ds(i, 4)], mask=i + jnp.arange(4) < 5, other=0)
    Array([3, 4, 0, 0], dtype=int32)
    """
    out = _load_masked(ref, "load")
    if mask is None:
        return out
    node = as_node(mask, "load")
    shape = np.broadcast_shapes(node.aval.shape, out.shape)
    if shape != out.shape:
        raise ValueError(
            f"load: cannot broadcast mask shape {node.aval.shape} to load shape {out.shape}"
        )
    if other is None:
        return out
    return where(mask, out, wrap(cast(as_node(other, "load"), np.dtype(out.dtype))))


@api_boundary
def store(
    ref: Any, val: ArrayLike, *, mask: ArrayLike | None = None, eviction_policy: str | None = None
) -> None:
    """Write to a reference, or to a part of one (`ref.at[i]`), where a mask is True.

    Parameters
    ----------
    ref : Ref
        Reference, or part of one, to write to.
    val : array_like
        Value of the dtype of the reference; it broadcasts to its shape.
    mask : array_like of bool, optional
        Elements to write; it broadcasts to the shape of the reference.
    eviction_policy : str, optional
        Ignored hint.

    Raises
    ------
    ValueError
        If it is not a reference, or the dtype or a shape does not match.

    See Also
    --------
    experimental.pallas.triton.load : Read with a mask.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.zeros(4))
    >>> plgpu.store(ref.at[pl.ds(1, 2)], jnp.ones(2), mask=jnp.array([True, False]))
    >>> ref[...]
    Array([0., 1., 0., 0.], dtype=float32)
    """
    _store_masked(ref, val, mask, "store")


# --- the forms of old, with the index apart ---


def load_at(ref: Any, idx: Any, *, mask: Any = None, other: Any = None, **hints: Any) -> Array:
    """`load(ref.at[idx], ...)`."""
    return load(ref.at[idx], mask=mask, other=other)


def store_at(ref: Any, idx: Any, val: Any, *, mask: Any = None, **hints: Any) -> None:
    """`store(ref.at[idx], ...)`."""
    store(ref.at[idx], val, mask=mask)


def swap_at(ref: Any, idx: Any, val: Any, *, mask: Any = None, **hints: Any) -> Array:
    """Like `store_at`, but return the old values."""
    before = load(ref.at[idx])
    store(ref.at[idx], val, mask=mask)
    return before


# --- reading and writing in one go ---


def _atomic(
    ref: Any, idx: Any, val: Any, mask: Any, how: str, combine: Callable[[Any, Any], Any]
) -> Array:
    name = f"atomic_{how}"
    of, whole = _reference_and_index(ref, name)
    if whole is not ... and idx is not None:
        of, whole = ref, idx
    elif whole is ...:
        whole = ... if idx is None else idx
    part = of.at[whole]
    before = _load_masked(part, name)
    new = combine(before, val)
    if how in ("add", "max", "min") and extents(of.shape, whole) is None:  # indices may be repeated
        neutral = 0 if how == "add" else before
        of[...] = update_part(
            of[...], whole, val if mask is None else where(mask, val, neutral), how
        )
    else:
        _store_masked(part, new, mask, name)
    return before


@api_boundary
def atomic_add(
    x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Array:
    """Add to a part of a reference, and return its previous content.

    Elements that are indexed twice are added to twice.

    Parameters
    ----------
    x_ref_or_view : Ref
        Reference, or part of one, to modify.
    idx : index
        Elements to add to.
    val : array_like
        Value of the dtype of the reference; it broadcasts to the part.
    mask : array_like of bool, optional
        Elements to modify; it broadcasts to the shape of the part.

    Returns
    -------
    Array
        Previous content.

    Raises
    ------
    ValueError
        If it is not a reference, or the dtype differs.

    See Also
    --------
    experimental.pallas.triton.store : Replace the content.
    ref.addupdate : Add without reading.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.arange(3))
    >>> plgpu.atomic_add(ref, 1, 5)
    Array(1, dtype=int32)
    >>> ref[...]
    Array([0, 6, 2], dtype=int32)
    """
    return _atomic(x_ref_or_view, idx, val, mask, "add", lambda x, y: x + y)


@api_boundary
def atomic_max(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Replace elements of a reference by their maximum with a value; return the old ones.

    Parameters
    ----------
    {atomic}

    Returns
    -------
    {returns_atomic}

    Raises
    ------
    {raises_atomic}

    See Also
    --------
    experimental.pallas.triton.atomic_min : Minimum.
    experimental.pallas.triton.atomic_add : Sum.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.arange(3))
    >>> old = plgpu.atomic_max(ref, 1, 5)
    >>> ref[...]
    Array([0, 5, 2], dtype=int32)
    """
    return _atomic(x_ref_or_view, idx, val, mask, "max", maximum)


@api_boundary
def atomic_min(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Replace elements of a reference by their minimum with a value; return the old ones.

    Parameters
    ----------
    {atomic}

    Returns
    -------
    {returns_atomic}

    Raises
    ------
    {raises_atomic}

    See Also
    --------
    experimental.pallas.triton.atomic_max : Maximum.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.arange(3))
    >>> old = plgpu.atomic_min(ref, 2, 1)
    >>> ref[...]
    Array([0, 1, 1], dtype=int32)
    """
    return _atomic(x_ref_or_view, idx, val, mask, "min", minimum)


@api_boundary
def atomic_and(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Replace elements of a reference by their bitwise AND with a value; return the old ones.

    Parameters
    ----------
    {atomic}

    Returns
    -------
    {returns_atomic}

    Raises
    ------
    {raises_atomic}

    See Also
    --------
    experimental.pallas.triton.atomic_or : Bitwise OR.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.array([3, 5]))
    >>> old = plgpu.atomic_and(ref, 0, 6)
    >>> ref[...]
    Array([2, 5], dtype=int32)
    """
    return _atomic(x_ref_or_view, idx, val, mask, "and", lambda x, y: x & y)


@api_boundary
def atomic_or(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Replace elements of a reference by their bitwise OR with a value; return the old ones.

    Parameters
    ----------
    {atomic}

    Returns
    -------
    {returns_atomic}

    Raises
    ------
    {raises_atomic}

    See Also
    --------
    experimental.pallas.triton.atomic_and : Bitwise AND.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.array([3, 5]))
    >>> old = plgpu.atomic_or(ref, 0, 6)
    >>> ref[...]
    Array([7, 5], dtype=int32)
    """
    return _atomic(x_ref_or_view, idx, val, mask, "or", lambda x, y: x | y)


@api_boundary
def atomic_xor(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Replace elements of a reference by their bitwise XOR with a value; return the old ones.

    Parameters
    ----------
    {atomic}

    Returns
    -------
    {returns_atomic}

    Raises
    ------
    {raises_atomic}

    See Also
    --------
    experimental.pallas.triton.atomic_or : Bitwise OR.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.array([3, 5]))
    >>> old = plgpu.atomic_xor(ref, 0, 6)
    >>> ref[...]
    Array([5, 5], dtype=int32)
    """
    return _atomic(x_ref_or_view, idx, val, mask, "xor", lambda x, y: x ^ y)


@api_boundary
def atomic_xchg(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
    """Write elements of a reference and return the old ones.

    Parameters
    ----------
    {atomic}

    Returns
    -------
    {returns_atomic}

    Raises
    ------
    {raises_atomic}

    See Also
    --------
    experimental.pallas.triton.atomic_cas : Write after a comparison.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.arange(3))
    >>> plgpu.atomic_xchg(ref, 1, 5)
    Array(1, dtype=int32)
    """
    return _atomic(x_ref_or_view, idx, val, mask, "xchg", lambda x, y: y)


@api_boundary
def atomic_cas(ref: Any, cmp: Any, val: Any) -> Array:
    """Write a scalar reference if it holds an expected value, and return what it held.

    Parameters
    ----------
    ref : Ref
        Reference to a scalar.
    cmp : array_like
        Expected content.
    val : array_like
        New content.

    Returns
    -------
    Array
        Previous content.

    Raises
    ------
    TypeError
        If it is not a reference.

    See Also
    --------
    experimental.pallas.triton.atomic_xchg : Write without a comparison.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> ref = jnp.new_ref(jnp.array(1))
    >>> old = plgpu.atomic_cas(ref, 1, 7)
    >>> int(old), int(ref[...])
    (1, 7)
    """
    before = ref[...]
    ref[...] = where(before == cmp, val, before)
    return before


# --- hints, and names for what arrays do ---


@api_boundary
def approx_tanh(x: Any) -> Array:
    """Compute the hyperbolic tangent, exactly even though an approximation is allowed.

    Parameters
    ----------
    x : array_like
        Hyperbolic angles of any shape.

    Returns
    -------
    Array
        Hyperbolic tangent of each element.

    Raises
    ------
    {raises_x}

    See Also
    --------
    numpy.tanh : The same function.

    Examples
    --------
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> float(plgpu.approx_tanh(0.0))
    0.0
    """
    return tanh(x)


@api_boundary
def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Array:
    """Multiply two matrices, of which either may be transposed, with float32 sums.

    Parameters
    ----------
    a : array_like
        Left factor.
    b : array_like
        Right factor.
    trans_a : bool, optional
        Whether to transpose `a`. The default is False.
    trans_b : bool, optional
        Whether to transpose `b`. The default is False.
    allow_tf32 : bool, optional
        Ignored hint.
    precision : Precision, optional
        Ignored hint.

    Returns
    -------
    Array
        Product, of dtype float32 for floats.

    Raises
    ------
    TypeError
        If the shapes do not match.

    See Also
    --------
    numpy.matmul : Product of matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> plgpu.dot(jnp.ones((1, 2)), jnp.ones((1, 2)), trans_b=True)
    Array([[2.]], dtype=float32)
    """
    a, b = (wrap(as_node(x, "dot")) for x in (a, b))
    return matmul(
        a.T if trans_a else a,
        b.T if trans_b else b,
        precision=precision,
        preferred_element_type=np.float32 if a.dtype.kind not in "iu" else np.int32,
    )


@api_boundary
def max_contiguous(x: Any, values: Any) -> Array:
    """Return an array unchanged: a hint about contiguous elements.

    Parameters
    ----------
    x : array_like
        Integers that the hint is about.
    values : int or sequence of int
        Numbers of contiguous elements; not used.

    Returns
    -------
    Array
        `x` as an array.

    Raises
    ------
    {raises_x}

    See Also
    --------
    experimental.pallas.multiple_of : Another hint.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> plgpu.max_contiguous(jnp.int32(8), 4)
    Array(8, dtype=int32)
    """
    return wrap(as_node(x, "max_contiguous"))


@api_boundary
def debug_barrier() -> None:
    """Do nothing, since the steps of a grid run one after the other.

    See Also
    --------
    debug.print : Print values.

    Examples
    --------
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> plgpu.debug_barrier()
    """
