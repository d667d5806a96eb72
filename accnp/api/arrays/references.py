"""Mutable references to arrays: `new_ref`, and reading and writing by index.

A `Ref` holds an immutable array; writing replaces it by an updated array. A trace records these
updates in order. Nested traces (jit, vmap, bodies of loops and branches) take the content as an
input and return the updated content as an output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.api.arrays.reference_parts import At, Part, Slice, ds, read_part, update_part
from accnp.api.tracing.bodies import CapturedReference, Reference, write
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import UnexpectedTracerError, api_boundary
from accnp.ir.aval import AbstractValue, Aval, keeps_sharding, make_aval, on_devices
from accnp.ir.node import arg
from accnp.ir.trace import Trace, state
from accnp.numpy.creation import zeros

__all__ = [
    "AbstractRef", "Ref", "Slice", "addupdate", "ds", "empty_ref", "free_ref", "freeze", "get",
    "new_ref", "set", "swap",
]  # fmt: skip


class AbstractRef(AbstractValue):
    """Type of a reference, as `typeof` returns it.

    Its attributes are those of the type of its content: shape, dtype, ndim and weak_type.

    Parameters
    ----------
    inner_aval : ShapedArray
        Type of the content.
    memory_space : object, optional
        Kind of memory in JAX. It is accepted and has no effect.
    kind : object, optional
        Kind of reference in JAX. It is accepted and has no effect.

    Raises
    ------
    AttributeError
        If another attribute is read.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ref.AbstractRef(jnp.typeof(jnp.zeros(2))).dtype.name
    'float32'
    """

    @api_boundary
    def __init__(self, inner_aval: Aval, memory_space: Any = None, kind: Any = None) -> None:
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    def __getattr__(self, name: str) -> Any:
        if name == "inner_aval":  # unset while `copy` creates an instance
            raise AttributeError(name)
        return getattr(self.inner_aval, name)

    def str_short(self) -> str:
        """Return the type as text, such as "Ref{float32[2]}"."""
        return f"Ref{{{self.inner_aval.str_short()}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval is other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return self.str_short()


class Ref(Reference):
    """Mutable reference to an array: `ref[i]` reads and `ref[i] = x` writes.

    Made by `new_ref`. The shape and dtype of the content do not change.

    Parameters
    ----------
    aval : AbstractRef
        Type of the content, which is not used: `refs` has it.
    refs : Array
        The initial content of the reference.

    Raises
    ------
    TypeError, IndexError
        If an index is invalid, as for arrays and `.at`.
    ValueError
        If a value does not broadcast, or the reference was freed.
    UnexpectedTracerError
        If it is used after the trace in which it was made has ended.

    See Also
    --------
    new_ref : Make a reference.
    freeze : Return the content, after which the reference must not be used.

    Examples
    --------
    >>> import accnp as jnp
    >>> ref = jnp.new_ref(jnp.zeros(3))
    >>> ref[1] = 5.0
    >>> ref[...]
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("_home", "content")
    __hash__ = object.__hash__

    @api_boundary
    def __init__(self, aval: Any, refs: Any) -> None:
        self.content: Any = refs
        self._home = state.abstract

    def place(self, function: str) -> Ref | CapturedReference:
        """Return the holder of the content in the current trace: this reference, or a
        `CapturedReference`."""
        if self.content is None:
            raise ValueError(f"{function}: the reference was freed; got {self!r}; create a new one")
        here = state.abstract
        if here is self._home:
            return self
        if self._home is not None and not self._home.active:
            raise UnexpectedTracerError(
                f"{function}: a reference was used after its trace had ended; got {self.aval!r}, "
                f"made while tracing {self._home.info}; return its value from there, ref[...]"
            )
        outer = here
        while outer is not self._home:
            if outer is None or outer.captures is None:
                raise NotImplementedError(
                    f"{function}: a reference from outside cannot be used in this traced function; "
                    f"got {self.aval!r}; pass its value there and return the new one"
                )
            outer = outer.previous
        assert here is not None
        assert here.captures is not None
        if id(self) not in here.captures:
            here.captures[id(self)] = CapturedReference(self, arg(self.type, here))
        return here.captures[id(self)]

    def here(self, content: Array) -> Ref:
        """Return the reference that represents this one in a nested trace, with that content."""
        return Ref(None, content)

    @property
    def home(self) -> Trace | None:
        """The trace that created the reference; None outside of traces."""
        return self._home

    @property
    def type(self) -> Aval:
        """The type of the content as an input of a loop."""
        own, plain = self.content._node.aval, make_aval(self.shape, self.dtype)
        return on_devices(plain, own.devices) if keeps_sharding(own) else plain

    @property
    def aval(self) -> AbstractRef:
        """The type."""
        return AbstractRef(self.content._node.aval)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the content."""
        return self.content.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the content."""
        return self.content.dtype

    @property
    def ndim(self) -> int:
        """The rank of the content."""
        return self.content.ndim

    @property
    def size(self) -> int:
        """The number of elements of the content."""
        return self.content.size

    @property
    def sharding(self) -> Any:
        """The sharding of the content."""
        return self.content.sharding

    @property
    def committed(self) -> bool:
        """Whether the content is committed to its devices."""
        return self.content.committed

    @property
    def at(self) -> At:
        """`ref.at[i]`: a view of a part, which can be read and written like the whole."""
        return At(self)

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the content in memory."""
        return self.content.unsafe_buffer_pointer()

    @api_boundary
    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """Add to a part of the content.

        Parameters
        ----------
        value : array_like
            Summand, which broadcasts to the part.
        idx : index, optional
            Part to add to. The default is all.
        """
        addupdate(self, idx, value)

    @api_boundary
    def __len__(self) -> int:
        return len(self.content)

    @api_boundary
    def __iter__(self) -> Iterator[Array]:
        return iter(get(self))

    @api_boundary
    def __getitem__(self, idx: Any) -> Array:
        return get(self, idx)

    @api_boundary
    def __setitem__(self, idx: Any, value: Any) -> None:
        set(self, idx, value)

    def __repr__(self) -> str:
        if self.content is None:
            return "Ref(freed)"
        kind, _, rest = repr(self.content).partition("(")
        return f"Ref({rest}" if kind == "Array" else f"{kind}({self.aval!r})"


# --- functions ---


def _check_whole_reference(ref: Any, function: str) -> Ref:
    if isinstance(ref, Part):
        raise ValueError(
            f"{function}: expected a whole reference; got a part of shape {ref.shape}; use ref[...]"
        )
    return _check_reference(ref, function)


def _check_reference(ref: Any, function: str) -> Any:
    if not isinstance(ref, Ref | Part):
        raise ValueError(
            f"{function}: the first argument must be a reference; got {ref!r}; see new_ref"
        )
    return ref


@api_boundary
def new_ref(init_val: ArrayLike, *, memory_space: object = None, kind: object = None) -> Ref:
    """Make a mutable reference to an array.

    It is read and written by index, like arrays with `.at`, and can be differentiated through.
    Shape and dtype are those of the content and do not change.

    Parameters
    ----------
    init_val : array_like
        First content. It is not modified itself.
    memory_space : object, optional
        Ignored; present for compatibility with JAX.
    kind : object, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    Ref
        Reference to the content.

    Raises
    ------
    ValueError
        If the value is a reference itself.

    See Also
    --------
    empty_ref : Reference of a given type.
    freeze : Return the content, after which the reference must not be used.

    Notes
    -----
    Functions under `jit` and `vmap`, branches of `cond` and the rows of `scan` accept references as
    arguments. All of these and loops may also use one from outside. None of them may return one.

    Examples
    --------
    >>> import accnp as jnp
    >>> ref = jnp.new_ref(jnp.arange(3))
    >>> ref[0] += 7
    >>> jnp.freeze(ref)
    Array([7, 1, 2], dtype=int32)
    """
    if isinstance(init_val, Ref):
        raise ValueError(
            "new_ref: references to references are not supported; got one; use ref[...]"
        )
    return Ref(None, wrap(as_node(init_val, "new_ref")))


@api_boundary
def empty_ref(ty: Any, memory_space: object = None) -> Ref:
    """Make a reference to an array of a given type, filled with zeros.

    Parameters
    ----------
    ty : ShapeDtypeStruct or array
        Object with `shape` and `dtype`.
    memory_space : object, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    Ref
        Reference to an array of zeros. Do not rely on the zeros: JAX leaves the content undefined.

    Raises
    ------
    TypeError
        If `ty` has no shape and dtype.

    See Also
    --------
    new_ref : Reference to a given value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.empty_ref(jnp.ShapeDtypeStruct((2,), jnp.float32)).shape
    (2,)
    """
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise TypeError(
            f"empty_ref: expected a type with shape and dtype; got {ty!r}; "
            "pass jax.ShapeDtypeStruct(shape, dtype), or an array"
        )
    return Ref(None, zeros(ty.shape, ty.dtype))


@api_boundary
def get(ref: Any, idx: Any = None) -> Array:
    """Read a part of the content of a reference.

    Parameters
    ----------
    ref : Ref
        Reference, made by `new_ref`, or a part of one.
    idx : index, optional
        Index as arrays accept it, with `ds(...)` for a start from an array. The default, None, is
        the whole content.

    Returns
    -------
    Array
        Content at the index, with the shape and dtype that indexing an array gives.

    Raises
    ------
    ValueError
        If `ref` is not a reference.
    TypeError, IndexError
        If `idx` is not an index of the content.

    See Also
    --------
    set : Write a part.
    swap : Write a part and return its former content.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ref.get(jnp.new_ref(jnp.arange(3)), 1)
    Array(1, dtype=int32)
    """
    if isinstance(ref, Part):
        return ref[... if idx is None else idx]
    return read_part(_check_reference(ref, "ref.get").place("ref.get").content, idx)


@api_boundary
def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Write a part of the content of a reference, and return its former content.

    Parameters
    ----------
    ref : Ref
        Reference, made by `new_ref`, or a part of one.
    idx : index or None
        Index as arrays accept it. None is the whole content.
    value : array_like
        New content, which broadcasts to the part and has its dtype.

    Returns
    -------
    Array
        Former content of the part.

    Raises
    ------
    ValueError
        If `ref` is not a reference, or `value` has another dtype or does not broadcast.

    See Also
    --------
    get : Read a part.
    set : Write a part.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ref.swap(jnp.new_ref(jnp.arange(3)), 1, 5)
    Array(1, dtype=int32)
    """
    _check_reference(ref, _function_name)
    if isinstance(ref, Part):
        before = ref[... if idx is None else idx]
        ref[... if idx is None else idx] = value
        return before
    place = ref.place(_function_name)
    before = read_part(place.content, idx)
    value = _convert_to_content(place.content, value, _function_name)
    write(place, update_part(place.content, idx, value, "set"))
    return before


def _convert_to_content(content: Array, value: Any, function: str) -> Any:
    node = as_node(value, function)
    if not node.aval.weak_type and node.aval.dtype != content.dtype:
        raise ValueError(
            f"{function}: values must have the dtype of the reference, {content.dtype}; got "
            f"{node.aval.dtype}; convert them with astype"
        )
    return wrap(node)


@api_boundary
def set(ref: Any, idx: Any, value: Any) -> None:
    """Write a part of the content of a reference, as `ref[idx] = value` does.

    Parameters
    ----------
    ref : Ref
        Reference, made by `new_ref`, or a part of one.
    idx : index or None
        Index as arrays accept it. None is the whole content.
    value : array_like
        New content, which broadcasts to the part and has its dtype.

    Raises
    ------
    ValueError
        If `ref` is not a reference, or `value` has another dtype or does not broadcast.

    See Also
    --------
    get : Read a part.
    addupdate : Add to a part.

    Examples
    --------
    >>> import accnp as jnp
    >>> ref = jnp.new_ref(jnp.zeros(2))
    >>> jnp.ref.set(ref, 0, 3.0)
    >>> ref[...]
    Array([3., 0.], dtype=float32)
    """
    swap(ref, idx, value, "ref.set")


@api_boundary
def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to a part of the content of a reference.

    Parameters
    ----------
    ref : Ref
        Reference, made by `new_ref`, or a part of one.
    idx : index or None
        Index as arrays accept it. None is the whole content.
    x : array_like
        Summands of the dtype of the content, which broadcast to the part.

    Raises
    ------
    ValueError
        If `ref` is not a reference, or `x` has another dtype or does not broadcast.

    See Also
    --------
    set : Replace a part.
    numpy.add : Add arrays.

    Notes
    -----
    Elements that the index names several times receive all of their summands.

    Examples
    --------
    >>> import accnp as jnp, numpy as np
    >>> ref = jnp.new_ref(jnp.zeros(2))
    >>> jnp.ref.addupdate(ref, np.array([0, 0]), 1.0)
    >>> ref[...]
    Array([2., 0.], dtype=float32)
    """
    _check_reference(ref, "ref.addupdate")
    if isinstance(ref, Part):
        ref[...] = update_part(ref[...], idx, x, "add")
        return
    place = ref.place("ref.addupdate")
    value = _convert_to_content(place.content, x, "ref.addupdate")
    write(place, update_part(place.content, idx, value, "add"))


@api_boundary
def freeze(ref: Ref) -> Array:
    """Return the content of a reference, which must not be used any more.

    Parameters
    ----------
    ref : Ref
        Reference that `new_ref` made.

    Returns
    -------
    Array
        Content, of the shape and dtype of the reference.

    Raises
    ------
    ValueError
        If it is not a reference, or only a part of one.

    See Also
    --------
    new_ref : Make a reference.
    free_ref : End the use of a reference without reading it.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.freeze(jnp.new_ref(jnp.arange(2)))
    Array([0, 1], dtype=int32)
    """
    return _check_whole_reference(ref, "freeze").place("freeze").content


@api_boundary
def free_ref(ref: Ref) -> None:
    """Release the content of a reference, which must not be used any more.

    Parameters
    ----------
    ref : Ref
        Reference to an array of any shape and dtype.

    Raises
    ------
    ValueError
        If it is not a reference, or only a part of one.

    See Also
    --------
    freeze : Return the content, too.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.free_ref(jnp.new_ref(jnp.arange(2)))
    """
    _check_whole_reference(ref, "free_ref").content = None
