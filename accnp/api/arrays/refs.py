"""Mutable references to arrays: `new_ref`, and reading and writing by index.

In: arrays. Out: a `Ref`, whose content changes. A ref is a box for an array that never changes
itself: writing puts an updated array into the box. A program that is being traced sees the order in
which it does that; refs are therefore used in the trace in which they were made, and nowhere else.
"""

from __future__ import annotations

from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.values import node_of
from accnp.api.arrays.creation import arange, zeros
from accnp.array import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.aval import Aval
from accnp.ir.trace import state

__all__ = [
    "AbstractRef", "Ref", "Slice", "addupdate", "ds", "empty_ref", "free_ref", "freeze", "get",
    "new_ref", "set", "swap",
]  # fmt: skip


class AbstractRef:
    """The type of a reference: that of its content.

    Attributes are those of the content's type: shape, dtype, weak_type; others raise.

    >>> import accnp as jnp
    >>> jnp.ref.AbstractRef(jnp.typeof(jnp.zeros(2))).dtype.name
    'float32'
    """

    @api_boundary
    def __init__(self, inner_aval: Aval, memory_space: Any = None, kind: Any = None) -> None:
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the content."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the content."""
        return self.inner_aval.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval is other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_short()}}}"


class Slice:
    """`size` elements from `start` on, each `stride` after the other; `start` may be traced."""

    def __init__(self, start: Any, size: int, stride: int = 1) -> None:
        self.start, self.size, self.stride = start, size, stride

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size}, stride={self.stride})"


@api_boundary
def ds(start: Any, size: int | None = None, stride: int | None = None) -> Slice:
    """Say where to read or write in a reference: `size` elements from `start` on.

    Args:
        start: the first place; alone, the number of elements from the first on.
        size: how many, not traced.
        stride: from one to the next.

    Integers alone. A ValueError if the size is missing.

    Example:
        >>> import accnp as jnp
        >>> jnp.new_ref(jnp.arange(4))[jnp.ds(1, 2)]
        Array([1, 2], dtype=int32)
    """
    if size is None:
        if not isinstance(start, int):
            raise ValueError(f"ds: size is missing; got start={start!r}; pass both")
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


class Ref:
    """A box for an array: `ref[i]` reads, `ref[i] = x` writes. Made by `new_ref`.

    Shape and dtype are those of the content, and stay. Errors are those of arrays and `.at`: a
    TypeError or an IndexError for a bad index, a ValueError for values that do not broadcast.

    Example:
        >>> import accnp as jnp
        >>> ref = jnp.new_ref(jnp.zeros(3))
        >>> ref[1] = 5.0
        >>> ref[...]
        Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("_home", "_value")
    __hash__ = object.__hash__

    @api_boundary
    def __init__(self, aval: Any, refs: Any) -> None:
        self._value: Any = refs
        self._home = state.abstract

    def _content(self, function: str) -> Array:
        if self._value is None:
            raise ValueError(f"{function}: the reference was freed; got {self!r}; make a new one")
        if state.abstract is not self._home:
            raise NotImplementedError(
                f"{function}: a reference is used where it was made, not in another function that "
                f"is traced (jit, vmap, scan, cond); got {self.aval!r}; pass its value there and "
                "return the new one"
            )
        return self._value

    @property
    def aval(self) -> AbstractRef:
        """The type."""
        return AbstractRef(self._value._node.aval)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the content."""
        return self._value.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the content."""
        return self._value.dtype

    @property
    def ndim(self) -> int:
        """The rank of the content."""
        return self._value.ndim

    @property
    def size(self) -> int:
        """The number of elements of the content."""
        return self._value.size

    @property
    def sharding(self) -> Any:
        """How the content lies on devices."""
        return self._value.sharding

    @property
    def committed(self) -> bool:
        """Whether the content was put on its devices."""
        return self._value.committed

    @property
    def at(self) -> _At:
        """`ref.at[i]`: a view of a part, which can be read and written like the whole."""
        return _At(self)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the content."""
        return self._value.unsafe_buffer_pointer()

    @api_boundary
    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """Add to a part of the content."""
        addupdate(self, idx, value)

    @api_boundary
    def __len__(self) -> int:
        return len(self._value)

    @api_boundary
    def __getitem__(self, idx: Any) -> Array:
        return get(self, idx)

    @api_boundary
    def __setitem__(self, idx: Any, value: Any) -> None:
        set(self, idx, value)

    def __repr__(self) -> str:
        if self._value is None:
            return "Ref(freed)"
        return f"Ref({repr(self._value)[len('Array(') :]}"


class _Part:
    """A part of a reference."""

    __slots__ = ("_idx", "_of")

    def __init__(self, of: Any, idx: Any) -> None:
        self._of, self._idx = of, idx

    @property
    def at(self) -> _At:
        return _At(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self[...].shape

    @property
    def dtype(self) -> Any:
        return self._of.dtype

    def __getitem__(self, idx: Any) -> Array:
        return _index(self._of[self._idx], idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        self._of[self._idx] = _updated(self._of[self._idx], idx, value, "set")


class _At:
    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getitem__(self, idx: Any) -> _Part:
        return _Part(self._of, idx)


def _plain(idx: Any) -> Any:
    """An index that arrays take: slices whose start is traced become places."""
    if idx is None:
        return ...
    if isinstance(idx, tuple):
        return tuple([_places(i) for i in idx])
    return _places(idx)


def _places(i: Any) -> Any:
    if not isinstance(i, Slice):
        return i
    if isinstance(i.start, int):
        return slice(i.start, i.start + i.size * i.stride, i.stride)
    return i.start + arange(i.size) * i.stride


def _index(x: Array, idx: Any) -> Array:
    return x[_plain(idx)]


def _updated(x: Array, idx: Any, value: Any, how: str) -> Array:
    return getattr(x.at[_plain(idx)], how)(value)


# --- functions ---


def _checked(ref: Any, function: str) -> Any:
    if not isinstance(ref, Ref | _Part):
        raise ValueError(
            f"{function}: the first argument must be a reference; got {ref!r}; see new_ref"
        )
    return ref


@api_boundary
def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None) -> Ref:
    """Make a mutable reference to an array.

    Reading and writing by index works as for arrays and `.at`. Derivatives go through it. It is
    used in the function that made it: `jit`, `vmap`, loops and branches take its value, not it.

    Args:
        init_val: an array: the first content. It does not change itself.
        memory_space: accepted for jax's sake.
        kind: accepted for jax's sake.

    Shape and dtype are those of the content, and stay.

    Raises:
        ValueError: it is a reference itself.

    Example:
        >>> import accnp as jnp
        >>> ref = jnp.new_ref(jnp.arange(3))
        >>> ref[0] += 7
        >>> jnp.freeze(ref)
        Array([7, 1, 2], dtype=int32)
    """
    if isinstance(init_val, Ref):
        raise ValueError(
            "new_ref: a reference to a reference is not possible; got one; use ref[...]"
        )
    return Ref(None, wrap(node_of(init_val, function="new_ref")))


@api_boundary
def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Make a reference to an array of a type (with `shape` and `dtype`), of zeros for now.

    A TypeError if it is no type.

    Example:
        >>> import accnp as jnp
        >>> jnp.empty_ref(jnp.ShapeDtypeStruct((2,), jnp.float32)).shape
        (2,)
    """
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise TypeError(f"empty_ref: a type with shape and dtype is needed; got {ty!r}")
    return Ref(None, zeros(ty.shape, ty.dtype))


@api_boundary
def get(ref: Any, idx: Any = None) -> Array:
    """Read a part of a reference's content, or all.

    Args:
        ref: the reference.
        idx: an index as arrays take it, with `ds(...)` where a start is traced.

    Shape and dtype are those of the array's part. A ValueError if `ref` is no reference, a
    TypeError or IndexError if idx is no index.

    Example:
        >>> import accnp as jnp
        >>> jnp.ref.get(jnp.new_ref(jnp.arange(3)), 1)
        Array(1, dtype=int32)
    """
    if isinstance(ref, _Part):
        return ref[... if idx is None else idx]
    return _index(_checked(ref, "ref.get")._content("ref.get"), idx)


@api_boundary
def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Write a part of a reference's content, and return what was there.

    Args:
        ref: the reference.
        idx: an index; None for all.
        value: broadcast to the part.

    Raises:
        ValueError: another dtype than the content's, or a shape that does not fit.

    Example:
        >>> import accnp as jnp
        >>> jnp.ref.swap(jnp.new_ref(jnp.arange(3)), 1, 5)
        Array(1, dtype=int32)
    """
    _checked(ref, _function_name)
    if isinstance(ref, _Part):
        before = ref[... if idx is None else idx]
        ref[... if idx is None else idx] = value
        return before
    content = ref._content(_function_name)
    before = _index(content, idx)
    ref._value = _updated(content, idx, _fitting(content, value, _function_name), "set")
    return before


def _fitting(content: Array, value: Any, function: str) -> Any:
    node = as_node(value, function)
    if not node.aval.weak_type and node.aval.dtype != content.dtype:
        raise ValueError(
            f"{function}: values must have the dtype of the reference, {content.dtype}; got "
            f"{node.aval.dtype}; convert them with astype"
        )
    return wrap(node)


@api_boundary
def set(ref: Any, idx: Any, value: Any) -> None:
    """Write a part of a reference's content: `ref[idx] = value`.

    Args:
        ref: the reference.
        idx: an index; None for all.
        value: broadcast to the part.

    The content's dtype stays. A ValueError if `ref` is no reference, or x does not broadcast.

    Example:
        >>> import accnp as jnp
        >>> ref = jnp.new_ref(jnp.zeros(2))
        >>> jnp.ref.set(ref, 0, 3.0)
        >>> ref[...]
        Array([3., 0.], dtype=float32)
    """
    swap(ref, idx, value, "ref.set")


@api_boundary
def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to a part of a reference's content; places that are named twice get both.

    Args:
        ref: the reference.
        idx: an index; None for all.
        x: broadcast to the part.

    The content's dtype stays. A ValueError if `ref` is no reference, or x does not broadcast.

    Example:
        >>> import accnp as jnp, numpy as np
        >>> ref = jnp.new_ref(jnp.zeros(2))
        >>> jnp.ref.addupdate(ref, np.array([0, 0]), 1.0)
        >>> ref[...]
        Array([2., 0.], dtype=float32)
    """
    _checked(ref, "ref.addupdate")
    if isinstance(ref, _Part):
        ref[...] = _updated(ref[...], idx, x, "add")
        return
    content = ref._content("ref.addupdate")
    value = _fitting(content, x, "ref.addupdate")
    ref._value = _updated(content, idx, value, "add")


@api_boundary
def freeze(ref: Ref) -> Array:
    """Return a reference's content; the reference is not to be used any more.

    Shape and dtype are those of the content. A ValueError if it is no reference.

    Example:
        >>> import accnp as jnp
        >>> jnp.freeze(jnp.new_ref(jnp.arange(2)))
        Array([0, 1], dtype=int32)
    """
    return _checked(ref, "freeze")._content("freeze")


@api_boundary
def free_ref(ref: Ref) -> None:
    """Let go of a reference's content.

    An array of any shape and dtype may be its content. A ValueError if it is no reference.

    Example:
        >>> import accnp as jnp
        >>> jnp.free_ref(jnp.new_ref(jnp.arange(2)))
    """
    _checked(ref, "free_ref")._value = None
