"""`Array`, the lazy array type of users.

An array holds a node of the recorded graph. It knows its shape and dtype, and the engine computes
its values on demand, for example for `print` or `np.asarray`. Operators, methods and indexing are
added by `api/arrays/methods.py` from one table. This module also converts between nodes, NumPy
arrays and `Array`.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from accnp import engine
from accnp._native import ArrayBase, install_arrays, wrap
from accnp.dtypes import canonicalize_dtype, float0
from accnp.dtypes.names import DTypeLike
from accnp.errors import UnexpectedTracerError, api_boundary, array_types, hide_frames
from accnp.ir.aval import Aval, make_aval, mesh_sharding, spans_processes
from accnp.ir.node import CONST, EMPTY, MARK, Node, const, owning_trace, site_text, user_site
from accnp.ir.op import o
from accnp.ir.trace import Deleted, Escaped, Trace
from accnp.lazy_imports import imported
from accnp.pytree import INNER, LEAVES, Inner, PyTreeDef
from accnp.runtime import buffer as pool
from accnp.runtime.buffer import Buffer
from accnp.trace_fn import conversion_error, traced_repr, unmapped

__all__ = [
    "Array", "ArrayLike", "concrete_node", "concrete_value", "const_of", "escape", "from_numpy",
    "is_traced", "with_float0", "wrap",
]  # fmt: skip


if TYPE_CHECKING:
    from accnp.ir.aval import Devices
    from accnp.primitives.index import GatherScatterMode
    from accnp.runtime.device import Device

if TYPE_CHECKING:  # `Array.at`: the classes of numpy/index_updates.py as type checkers see them

    class At:
        def __getitem__(self, index: Any, /) -> AtIndex: ...

    class AtIndex:
        def get(
            self, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: IndexMode = None, fill_value: ArrayLike | None = None,
            out_sharding: ShardingLike = None, wrap_negative_indices: bool = True,
        ) -> Array: ...  # fmt: skip
        def set(
            self, values: ArrayLike, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: IndexMode = None, out_sharding: ShardingLike = None,
            wrap_negative_indices: bool = True,
        ) -> Array: ...  # fmt: skip

        add = subtract = multiply = mul = divide = power = min = max = set

        def apply(
            self, func: Callable[[Array], ArrayLike], *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: IndexMode = None,
            wrap_negative_indices: bool = True,
        ) -> Array: ...  # fmt: skip


class Array(ArrayBase):
    """Immutable array of a known shape and dtype, whose values are computed on demand.

    Arrays are made by `array`, `asarray`, `zeros` and other functions, never by calling the class.
    Operations are recorded and computed together when values are needed, for example by `print` or
    `numpy.asarray`.

    Raises
    ------
    TypeError
        If the class is called.

    See Also
    --------
    array : Make an array from values.
    Array.block_until_ready : Wait for the values.
    Array.at : Updated copies.

    Notes
    -----
    An error in a computation is raised where values are needed, and names the line that recorded
    the operation.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(3) * 2
    >>> x.shape, x.dtype.name
    ((3,), 'int32')
    >>> x
    Array([0, 2, 4], dtype=int32)
    """

    __slots__ = ()
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]
    _node: Node

    if TYPE_CHECKING:  # declares for type checkers what api/arrays/methods.py adds to the class

        def _binary(self, other: Any, /) -> Array: ...
        def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __getitem__(self, key: Any, /) -> Array: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __contains__(self, value: Any, /) -> bool: ...
        def __round__(self, ndigits: int | None = None) -> Array: ...
        def __divmod__(self, other: Any, /) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: Any, /) -> tuple[Array, Array]: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
        def nonzero(
            self, *, size: int | None = None, fill_value: ArrayLike | None = None
        ) -> tuple[Array, ...]: ...
        def tobytes(self, order: str = "C") -> bytes: ...
        def unsafe_buffer_pointer(self) -> int: ...

        T: Array
        mT: Array
        real: Array
        imag: Array
        at: At
        sharding: Any
        format: Any
        addressable_shards: Any
        global_shards: Any
        is_fully_addressable: bool
        is_fully_replicated: bool
        flat: Any
        device_buffer: Any
        device_buffers: Any
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _binary
        __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = _binary
        __rpow__ = __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = _binary
        __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary

        def all(
            self,
            axis: Any = None,
            out: None = None,
            keepdims: bool = False,
            *,
            where: ArrayLike | None = None,
        ) -> Array: ...

        any = all

        def argmax(
            self, axis: int | None = None, out: None = None, keepdims: bool | None = None
        ) -> Array: ...

        argmin = argmax

        def argpartition(self, kth: int, axis: int = -1) -> Array: ...
        def argsort(
            self,
            axis: int | None = -1,
            *,
            kind: None = None,
            order: None = None,
            stable: bool = True,
            descending: bool = False,
            dtype: DTypeLike | None = None,
        ) -> Array: ...
        def astype(
            self, dtype: DTypeLike, copy: bool = False, device: DeviceLike = None
        ) -> Array: ...
        def byteswap(self) -> Array: ...

        clone = conj = conjugate = copy = byteswap

        def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Array: ...
        def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array: ...
        def compress(
            self,
            condition: ArrayLike,
            axis: int | None = None,
            *,
            out: None = None,
            size: int | None = None,
            fill_value: ArrayLike = 0,
        ) -> Array: ...
        def cumprod(
            self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
        ) -> Array: ...

        cumsum = cumprod

        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
        def dot(
            self,
            b: ArrayLike,
            *,
            precision: Any = None,
            preferred_element_type: DTypeLike | None = None,
            out_sharding: ShardingLike = None,
        ) -> Array: ...
        def flatten(self, order: str = "C", *, out_sharding: ShardingLike = None) -> Array: ...
        def max(
            self,
            axis: Any = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array: ...

        min = max

        def mean(
            self,
            axis: Any = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            *,
            where: ArrayLike | None = None,
        ) -> Array: ...
        def prod(
            self,
            axis: Any = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
            promote_integers: bool = True,
        ) -> Array: ...

        sum = prod

        def ptp(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Array: ...
        def ravel(self, order: str = "C", *, out_sharding: ShardingLike = None) -> Array: ...
        def repeat(
            self,
            repeats: ArrayLike,
            axis: int | None = None,
            *,
            total_repeat_length: int | None = None,
            out_sharding: ShardingLike = None,
        ) -> Array: ...
        def reshape(
            self, *args: Shape, order: str = "C", out_sharding: ShardingLike = None
        ) -> Array: ...
        def round(self, decimals: int = 0, out: None = None) -> Array: ...
        def searchsorted(
            self,
            v: ArrayLike,
            side: str = "left",
            sorter: ArrayLike | None = None,
            *,
            method: str = "scan",
        ) -> Array: ...
        def sort(
            self,
            axis: int | None = -1,
            *,
            kind: None = None,
            order: None = None,
            stable: bool = True,
            descending: bool = False,
        ) -> Array: ...
        def squeeze(self, axis: Any = None) -> Array: ...
        def std(
            self,
            axis: Any = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            ddof: ArrayLike = 0,
            keepdims: bool = False,
            *,
            where: ArrayLike | None = None,
            mean: ArrayLike | None = None,
            correction: Any = None,
        ) -> Array: ...

        var = std

        def swapaxes(self, axis1: int, axis2: int) -> Array: ...
        def take(
            self,
            indices: ArrayLike,
            axis: int | None = None,
            out: None = None,
            mode: str | None = None,
            unique_indices: bool = False,
            indices_are_sorted: bool = False,
            fill_value: ArrayLike | None = None,
        ) -> Array: ...
        def to_device(self, device: DeviceLike, *, stream: Any = None) -> Array: ...
        def trace(
            self,
            offset: int = 0,
            axis1: int = 0,
            axis2: int = 1,
            dtype: DTypeLike | None = None,
            out: None = None,
        ) -> Array: ...
        def transpose(self, *args: Shape | None) -> Array: ...
        def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array: ...
        def addressable_data(self, index: int) -> Array: ...
        def on_device_size_in_bytes(self) -> int: ...

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            "Array: arrays are made by jnp.array, jnp.asarray and the other jnp functions"
        )

    # --- what is known without computing ---

    @property
    def aval(self) -> Aval:
        """Abstract value of the array: its shape, dtype and weak type."""
        return self._node.aval

    @property
    def _trace(self) -> Any:
        """The trace of the value, or None if it is concrete. Other libraries use this name."""
        return owning_trace(self._node)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._node.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the elements."""
        return self._node.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._node.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._node.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype comes from a Python scalar and adapts to others in promotion."""
        return self._node.aval.weak_type

    @property
    def itemsize(self) -> int:
        """Number of bytes of one element."""
        return self._node.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Number of bytes of all elements."""
        return self._node.aval.nbytes

    def __len__(self) -> int:
        try:
            shape = self.shape
            if not shape:
                raise TypeError("len() of unsized object")
            return shape[0]
        except TypeError as error:
            hide_frames(error)
            raise

    # --- waiting and reading values ---

    def block_until_ready(self) -> Array:
        """Compute the values, or wait for them, and return the array itself.

        Returns
        -------
        Array
            The same array, whose shape and dtype do not change.

        Raises
        ------
        Exception
            Any error of the computation, for example if memory runs out.

        See Also
        --------
        block_until_ready : The same for a pytree of arrays.

        Examples
        --------
        >>> import accnp as jnp
        >>> (jnp.arange(2) + 1).block_until_ready()
        Array([1, 2], dtype=int32)
        """
        node = self._node
        if type(node.value) is not Buffer and not is_traced(node):
            try:
                engine.wait_for_value(node)
            except Exception as error:
                hide_frames(error)
                raise
        return self

    def is_ready(self) -> bool:
        """Return whether the values are computed, so that reading them would not wait.

        Returns
        -------
        bool
            False while the computation is pending.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(2).block_until_ready().is_ready()
        True
        """
        return engine.is_ready(self._node)

    @api_boundary
    def copy_to_host_async(self) -> None:
        """Start computing the values without waiting for them: `x.copy_to_host_async()`.

        Examples
        --------
        >>> import accnp as jnp
        >>> x = jnp.arange(3) * 2
        >>> x.copy_to_host_async()
        >>> x.tolist()
        [0, 2, 4]
        """
        if not is_traced(self._node):
            engine.materialize([self._node])

    def is_deleted(self) -> bool:
        """Tell whether the buffer was donated or deleted.

        Returns
        -------
        bool
            True after `delete`, and after the array was donated to a compiled function.

        Examples
        --------
        >>> import accnp as jnp
        >>> x = jnp.arange(3)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        return self._node.value is engine.DELETED

    @api_boundary
    def delete(self) -> None:
        """Free the buffer of the array.

        Operations on the array raise a RuntimeError from then on, which names the line of this
        call.

        Raises
        ------
        ConcretizationTypeError
            If the array is traced, and therefore has no buffer.

        Examples
        --------
        >>> import accnp as jnp
        >>> x = jnp.arange(2)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        if not self.is_deleted():
            engine.ready(concrete_node(self._node, "item", "Array.delete"))
            self._forget("Array.delete was called", user_site())

    def _forget(self, what: str, site: tuple[Any, int] | None) -> None:
        """Mark the array as deleted. Errors will say `what` happened to it, and at which line.

        Pending operations that use the value refer to its old node, which keeps it.
        """
        aval = self._node.aval
        node = self._node = const(engine.DELETED, aval)
        node.trace = Deleted(f"{aval.dtype.name}{list(aval.shape)}".replace(" ", ""), what, site)

    def _concrete_value(self, kind: str) -> np.ndarray:
        return concrete_value(self._node, kind)

    def _buffer(self, kind: str) -> Any:
        """Return the buffer on its device; on a GPU, its values may still be computed."""
        return engine.ready(concrete_node(self._node, kind))

    @api_boundary
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        _failed_export.raise_again(self)
        value = self._concrete_value("array")
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(
                    f"Array.__array__: copy=False, but {value.dtype} must be converted to {dtype}"
                )
            return value.astype(dtype)
        return value.copy() if copy else value

    def _values(self) -> np.ndarray:
        """Return the values for the buffer protocol."""
        _failed_export.error = None
        try:
            return self.__array__()
        except BaseException as error:
            _failed_export.note(self, error)
            raise

    @api_boundary
    def to_numpy(self) -> np.ndarray:
        """Return the values as a read-only NumPy array, like `numpy.asarray`.

        Returns
        -------
        numpy.ndarray
            Array of the same shape and dtype, which shares memory where possible.

        Raises
        ------
        TracerArrayConversionError
            If the array is traced.

        Notes
        -----
        matplotlib recognizes arrays of other libraries by this method. Without it, a matrix would
        be taken for a list of its rows.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.array([1, 2]).to_numpy().tolist()
        [1, 2]
        """
        return self._concrete_value("array")

    @api_boundary
    def item(self, *args: int) -> Any:
        """Return one element as a Python scalar.

        Parameters
        ----------
        *args : int
            Flat position of the element, or one index for each axis. They may be left out if there
            is one element.

        Returns
        -------
        scalar
            Python bool, int, float or complex.

        Raises
        ------
        ValueError
            If there are several elements and no position is given.
        IndexError
            If the position is out of bounds.
        ConcretizationTypeError
            If the array is traced.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).item(2)
        2
        """
        return self._concrete_value("item").item(*args)

    @api_boundary
    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars.

        Returns
        -------
        list or scalar
            One level of lists for each axis; a scalar if there are no axes.

        Raises
        ------
        ConcretizationTypeError
            If the array is traced.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.array([[1, 2]]).tolist()
        [[1, 2]]
        """
        return self._concrete_value("item").tolist()

    @api_boundary
    def __bool__(self) -> bool:
        if self.size != 1:
            few = (
                "an empty array is" if self.size == 0 else "an array with more than one element is"
            )
            raise ValueError(
                f"bool(x): The truth value of {few} ambiguous; got shape {self.shape}; "
                "use x.any() or x.all()"
            )
        return bool(self._concrete_value("bool"))

    def _scalar(self, kind: str) -> Any:
        if self.ndim != 0:
            raise TypeError(
                f"{kind}(x): Only scalar arrays can be converted to Python scalars; got shape "
                f"{self.shape}; index it, or reduce it"
            )
        return self._concrete_value(kind)

    @api_boundary
    def __int__(self) -> int:
        return int(self._scalar("int"))

    @api_boundary
    def __float__(self) -> float:
        return float(self._scalar("float"))

    @api_boundary
    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    @api_boundary
    def __index__(self) -> int:
        if self.ndim != 0 or self.dtype.kind not in "iu":
            raise TypeError(
                "index: Only integer scalar arrays can be converted to a scalar index; "
                f"got {self.dtype.name}{self.shape}; use int(x)"
            )
        return int(self._concrete_value("index"))

    @api_boundary
    def __repr__(self) -> str:
        node = _node_to_print(self._node)
        if node is None:
            trace = self._node.trace
            if trace is None or not trace.abstract:  # other processes hold parts of the array
                return f"Array(shape={self.shape}, dtype={self.dtype.name})"
            return traced_repr(self._node)
        value = engine.array_of(node)
        weak = ", weak_type=True" if self.weak_type else ""
        dtype = f"dtype={self.dtype.name}{weak})"
        if 0 in self.shape:
            return f"Array([], shape={self.shape}, {dtype}"
        body = np.array2string(value, separator=", ", prefix="Array(", suffix=",")
        last = len(body) - (body.rfind("\n") + 1)
        width = np.get_printoptions()["linewidth"]
        glue = ", " if last + 3 + len(dtype) <= width else ",\n      "
        return f"Array({body}{glue}{dtype}"

    @api_boundary
    def __str__(self) -> str:
        node = _node_to_print(self._node)
        return repr(self) if node is None else str(engine.array_of(node))

    @api_boundary
    def __format__(self, spec: str) -> str:
        node = _node_to_print(self._node)
        if node is None:
            return str(self)
        value = engine.array_of(node)
        return format(value[()] if value.ndim == 0 else value, spec)

    # --- protocols ---

    @api_boundary
    def __buffer__(self, flags: int, /) -> memoryview:
        """Return a read-only buffer (called by Python 3.12 and newer)."""
        return memoryview(self._concrete_value("array"))  # type: ignore[arg-type]

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The interface for sharing memory that Pillow requires; NumPy uses the buffer protocol.

        It contains a buffer, not an address, so that the memory is kept if the array changes.
        """
        # A dtype of ml_dtypes may have the kind "f" (float8_e5m2); isbuiltin is 2 for all of them.
        known = type(self) is Array and not is_traced(self._node) and self.dtype.isbuiltin == 1
        if not known or self._devices()[0].platform != "cpu":
            raise AttributeError(
                "Array.__array_interface__: the array has no memory in a format of NumPy; got "
                f"{self.aval.str_short()}; use np.asarray(x)"
            )
        _failed_export.raise_again(self)
        value = self._concrete_value("array")
        data = memoryview(value)  # type: ignore[arg-type]
        return {"shape": value.shape, "typestr": value.dtype.str, "data": data, "version": 3}

    @api_boundary
    def __arrow_array__(self, type: Any = None) -> Any:
        """Return an array of pyarrow with the values of a vector (called by `pyarrow.array`)."""
        return importlib.import_module("pyarrow").array(self._concrete_value("array"), type=type)

    @api_boundary
    def __bytes__(self) -> bytes:
        return self._concrete_value("array").tobytes()

    @api_boundary
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        self._buffer("array")
        value = engine.on_device(self._node)
        if type(value) is not Buffer:
            if dl_device is not None and dl_device[0] == 1:
                return self._concrete_value("array").__dlpack__(max_version=max_version)
            known = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
            options = {k: v for k, v in known.items() if v is not None}
            return _gpu_exchange().to_dlpack(value, self.shape, self.dtype, stream, **options)
        # DLPack before version 1 has no read-only flag, and NumPy does not export read-only arrays
        # then. Consumers must not write to the array nevertheless.
        writeable = max_version is None or max_version < (1, 0)
        array = value.view(self.shape, self.dtype, writeable)
        return pool.to_dlpack(array, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        where = self._devices()[0]
        return (1, 0) if where.platform == "cpu" else (2, where.id)

    @api_boundary
    def __reduce__(self) -> Any:
        return _rebuild, (np.array(self._concrete_value("item")), self.weak_type)

    @api_boundary
    def __copy__(self) -> Array:
        """Return an array with its own value, which is kept if this array is donated or deleted."""
        return wrap(self._node if is_traced(self._node) else o.copy(self._node))

    def __deepcopy__(self, memo: Any) -> Array:
        return self.__copy__()

    @property
    def committed(self) -> bool:
        """Whether the array was put on its devices explicitly; operations on it run there."""
        return self._node.aval.devices is not None

    @property
    def device(self) -> Any:
        """Device that holds the values, or a tuple of devices if the array is split over them."""
        where = self._devices()
        return where[0] if len(where) == 1 else where

    def platform(self) -> str:
        """Return the name of the platform on which the array lies.

        Returns
        -------
        str
            Name of the platform, "cpu" or "gpu".

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).platform()
        'cpu'
        """
        return next(iter(self.devices())).platform

    @property
    def traceback(self) -> Any:
        """Source line that recorded the operation, or None."""
        site = self._node.site
        return None if site is None else site_text(self._node)

    @property
    def __cuda_array_interface__(self) -> Any:
        """Interface for sharing an array on an NVIDIA GPU with other libraries."""
        where = self._devices()[0]
        if where.platform == "cpu" or is_traced(self._node):
            place = "a traced array" if is_traced(self._node) else f"an array on {where}"
            raise AttributeError(
                "Array.__cuda_array_interface__: the array is not in the memory of a GPU; got "
                f"{place}; use np.asarray(x)"
            )
        value = engine.on_device(self._node)
        return _gpu_exchange().cuda_array_interface(self, value, self.shape, self.dtype)

    def devices(self) -> set[Any]:
        """Return the devices that hold the values.

        Returns
        -------
        set of Device
            One device, or several for an array that is split over them.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).devices()
        {CpuDevice(id=0)}
        """
        return set(self._devices())

    def _devices(self) -> tuple[Any, ...]:
        devices = self._node.aval.devices
        return devices if devices is not None else (engine.device_of(self._node),)


array_types.append(Array)


def _gpu_exchange() -> Any:
    return imported("accnp.runtime.gpu_array_exchange")  # loaded with the first GPU


# Arguments that stand for an array.
ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
# Arguments that stand for several arrays.
ArraySequence = Array | np.ndarray | Sequence[ArrayLike]
# Arguments that stand for a shape: sizes, or one of them.
Shape = SupportsIndex | Sequence[SupportsIndex]

if TYPE_CHECKING:

    class Convertible(Protocol):
        """An object that NumPy converts to an array."""

        def __array__(self) -> np.ndarray: ...

    class ConvertsItself(Protocol):
        """An object that converts itself to an `Array`."""

        def __jax_array__(self) -> Any: ...

    class SupportsShapeDtype(Protocol):
        """An object with a shape and a dtype."""

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> Any: ...

    class Placed(Protocol):
        """A sharding, a partition spec or a format: it determines which devices hold values."""

        def placed(self, shape: tuple[int, ...], function: str) -> Devices: ...

    # Arguments of `asarray`: arrays, objects that can be converted, and nested sequences of those.
    ArrayData: TypeAlias = (
        "ArrayLike | Convertible | ConvertsItself | memoryview | Sequence[ArrayData]"
    )
    # Arguments for the placement of a result, and for the treatment of indices out of bounds.
    ShardingLike: TypeAlias = "Placed | None"
    DeviceLike: TypeAlias = "Device | Placed | None"
    IndexMode: TypeAlias = "str | GatherScatterMode | None"
else:
    ArrayData = SupportsShapeDtype = ShardingLike = DeviceLike = IndexMode = object

_new = Array.__new__
LEAVES.add(Array)


install_arrays(Array)


class Float0Leaf:
    """In structures of results: a value of float0, which users receive as a NumPy array."""


def _float0_zeros(_: None, x: Any) -> Any:
    return np.zeros(x.shape, float0) if type(x) is Array else x


INNER[Float0Leaf] = Inner(lambda x, add: add(x), _float0_zeros)


def with_float0(leaves: Sequence[Any], spec: PyTreeDef) -> PyTreeDef:
    """Return a structure that converts results of float0 to NumPy arrays."""
    is_float0 = [getattr(x, "dtype", None) == float0 for x in leaves]
    if not any(is_float0):
        return spec
    rest = iter(is_float0)

    def put(node: Any) -> Any:
        if node is None:
            return (Float0Leaf, None, (None,)) if next(rest) else None
        return node[0], node[1], tuple([put(x) for x in node[2]])

    return PyTreeDef(put(spec._node), spec.num_leaves)


def escape(handles: list[Any], trace: Trace) -> None:
    """Make further operations an error for arguments of a differentiated function that outlive its
    call."""
    dead = Escaped(trace)
    for x in handles:
        # Three references are the list, the variable, and the argument of `getrefcount`.
        if type(x) is not Array or sys.getrefcount(x) <= 3:
            continue
        node = x._node
        x._node = Node(MARK, (node,), EMPTY, node.aval, node.value, dead, node.depth, node.site)


def is_traced(node: Node) -> bool:
    """Return whether a node has no concrete value, because it is being traced.

    Raises UnexpectedTracerError for a node that leaked from its trace.
    """
    trace = node.trace
    if trace is None:
        return False
    if not trace.active:
        if isinstance(trace, Escaped):
            return trace.abstract
        trace = owning_trace(node)
    return trace is not None and trace.abstract


def concrete_node(node: Node, kind: str, function: str = "") -> Node:
    """Return a node with a concrete value: the node itself, or its counterpart outside of `vmap`.

    Raises:
        ConcretizationTypeError: it is traced. `kind` (of `errors.CONVERSION_KINDS`) says what the
            function needs the value for.
    """
    if not is_traced(node):
        return local_node(node, kind, function) if spans_processes(node.aval) else node
    outside = unmapped(node)
    if outside is None:
        raise conversion_error(kind, node, function)
    return outside


class _FailedExport(threading.local):
    """The exception that ended a thread's last export of values by the buffer protocol.

    NumPy drops all exceptions of this protocol, also KeyboardInterrupt, and calls `__array__` next,
    which would compute the values again. It raises the exception instead.
    """

    error: BaseException | None = None
    array = 0  # the id of the array

    def note(self, array: Array, error: BaseException) -> None:
        """Keep an exception, unless computing the values again would raise it again."""
        if not isinstance(error, TypeError | ValueError | RuntimeError | ArithmeticError):
            self.error, self.array = error, id(array)

    def raise_again(self, array: Array) -> None:
        """Raise the exception if it ended the export of this array."""
        error, self.error = self.error, None
        if error is not None and self.array == id(array):
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame


_failed_export = _FailedExport()


def local_node(node: Node, kind: str = "array", function: str = "") -> Node:
    """Return the local value of an array that is replicated over several processes.

    Raises:
        RuntimeError: other processes hold parts of it.
    """
    if not mesh_sharding(node.aval).is_fully_replicated:
        raise RuntimeError(
            f"{function or kind}: Fetching value for `jax.Array` that spans non-addressable (non "
            f"process local) devices is not possible; got {node.aval.str_short()} over "
            f"{mesh_sharding(node.aval)}; use addressable_shards for the shard of this process, "
            "or multihost_utils.process_allgather for all of it"
        )
    return imported("accnp.primitives.shards").local_of(node)


def concrete_value(node: Node, kind: str, function: str = "") -> np.ndarray:
    """Return the value of a node as a NumPy array; raises the errors of `concrete_node`."""
    return engine.array_of(concrete_node(node, kind, function))


def _node_to_print(node: Node) -> Node | None:
    """Return the node whose value `repr` shows, or None if it has none or leaked from its trace."""
    with suppress(UnexpectedTracerError):
        owning_trace(node)
    if node.value is not None or node.trace is None or not node.trace.abstract:
        if not spans_processes(node.aval):
            return node
        return local_node(node) if mesh_sharding(node.aval).is_fully_replicated else None
    return unmapped(node) if node.trace.active else None


def const_of(value: np.ndarray, weak_type: bool = False, copy: bool = True) -> Node:
    """Return the node of the array that `from_numpy` returns."""
    flags = value.flags
    shared = not copy and flags.c_contiguous and flags.aligned
    buffer = pool.wrap(value) if shared else pool.copy_in(value)
    return Node(
        CONST, (), EMPTY, make_aval(value.shape, value.dtype, weak_type), buffer, None, 0, None
    )


def from_numpy(value: np.ndarray, weak_type: bool = False, copy: bool = True) -> Array:
    """Return an array with the values of a NumPy array. If `copy` is false, it shares the memory if
    possible."""
    return wrap(const_of(value, weak_type, copy))


def rows_of_numpy(values: np.ndarray, weak_type: bool) -> Iterator[Array]:
    """Yield the rows of a C-contiguous, read-only NumPy array as arrays that share its memory."""
    aval = make_aval(values.shape[1:], values.dtype, weak_type)
    for buffer in pool.wrap_rows(values):
        a = _new(Array)
        a._node = Node(CONST, (), EMPTY, aval, buffer, None, 0, None)
        yield a


def _rebuild(value: np.ndarray, weak_type: bool) -> Array:
    """Rebuild a pickled array, with 32 bits if 64-bit dtypes are not enabled now."""
    return from_numpy(value.astype(canonicalize_dtype(value.dtype), copy=False), weak_type)
