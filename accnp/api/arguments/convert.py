"""Conversion of operands to nodes, type promotion and broadcasting.

The public functions call `as_node`, `promote` or `promote_inexact` on the operands that users pass,
then `broadcast_nodes` or `to_shape`, and record an op with the resulting nodes. Lists are not
operands; `values.node_of` converts everything that `jnp.array` accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.non_numeric import Float0Operand, returns_float0
from accnp.array_type import Array, const_of, wrap
from accnp.config import config
from accnp.dtypes.names import NARROW, SUB_INTS, float0
from accnp.errors import (
    IncompatibleShapesError,
    KeyArrayError,
    TypePromotionError,
    warn,
)
from accnp.ir.node import LITERAL, Node, is_user_held_scalar, literal, refuse_float0
from accnp.ir.op import o
from accnp.ir.trace import DEAD, state
from accnp.lazy_imports import imported
from accnp.runtime.buffer import is_pooled

__all__ = [
    "as_node", "as_nodes", "broadcast_nodes", "cast", "cast_safely",
    "is_host_value", "promote", "promote_inexact", "to_shape", "without_float0", "wrap",
]  # fmt: skip

_SCALARS = (bool, int, float, complex)
_FROM = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def scalar_node(value: Any, dtype: Any = None, weak: bool = True) -> Node:
    """Return a literal node of a Python number, converted to `dtype` if one is given."""
    if dtype is None:
        dtype, weak = dtypes.value_type(value)
        if dtype.kind in "iu":
            _check_int(value, dtype)
    kind = dtype.kind if dtype.kind in "biufc" else "f"
    if kind in "iu" and isinstance(value, complex):
        value = value.real
    if kind not in "cb" and isinstance(value, complex):
        value = value.real
    if kind in "iu" and isinstance(value, float):
        value = _saturate(value, dtype)
    if dtype.name in SUB_INTS and not isinstance(value, bool):
        value = _saturate(value, dtype) if isinstance(value, float) else _wrap_around(value, dtype)
    return literal(_FROM[kind](value), dtype, weak)


def _saturate(value: float, dtype: np.dtype) -> int:
    """Convert as the kernels do: NaN becomes 0, values out of range become the nearest bound."""
    if value != value:
        return 0
    info = dtypes.iinfo(dtype)
    return int(min(max(value, info.min), info.max))


def _wrap_around(value: int, dtype: np.dtype) -> int:
    """Keep the low bits, as conversions between integer dtypes do."""
    info = dtypes.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    return (value - low) % (high - low + 1) + low


def _check_int(value: int, dtype: np.dtype) -> None:
    info = np.iinfo(dtype)
    if not info.min <= value <= info.max:
        raise OverflowError(
            f"Python int {value} too large to convert to {dtype.name}; no other operand has a "
            "wider dtype; pass it as an array of a dtype that holds it, or as a float"
        )


# Types that users registered as array-like, with the function that converts a value to an array.
canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: np.asarray}


# Types that describe arrays without values, with the function that makes a node of an instance.
WITHOUT_VALUE: dict[type, Callable[[Any, str], Node]] = {}


def as_node(x: Any, name: str = "jnp function") -> Node:  # noqa: C901
    """Return the node of an array, a Python or NumPy scalar, or a NumPy array.

    Raises:
        TypeError: `x` is something else (a list, a string, None).
    """
    if type(x) is Array:
        node = x._node
        if node.trace is not None and isinstance(node.trace, DEAD):
            raise node.trace.error()
        return node
    if isinstance(x, _SCALARS) and not isinstance(x, np.generic):
        return scalar_node(x)
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":
        dtype = dtypes.canonicalize_dtype(x.dtype)
        if dtype == x.dtype and dtypes.is_supported(dtype):
            return literal(x.item(), dtype, False)
    if isinstance(x, np.ndarray | np.generic):
        if type(x) is not np.ndarray and hasattr(x, "filled"):  # numpy.ma may not be loaded
            raise ValueError(
                f"{name}: numpy masked arrays are not supported as direct inputs to JAX functions; "
                f"got {x!r:.60}; use x.filled() to convert it to a standard numpy array"
            )
        return numpy_node(np.asarray(x), name)
    if hasattr(x, "__jax_array__"):
        return as_node(x.__jax_array__(), name)
    if type(x) in canonicalize_dtype_handlers:
        return numpy_node(np.asarray(canonicalize_dtype_handlers[type(x)](x)), name)
    if type(x) in WITHOUT_VALUE:
        return WITHOUT_VALUE[type(x)](x, name)
    if isinstance(x, Array):
        raise KeyArrayError(
            f"{name} does not accept dtype {x.dtype.name}: random keys are not numbers; got "
            f"{x.dtype.name}[{','.join(map(str, x.shape))}]; random.key_data(keys) returns the "
            "integers of the keys"
        )
    if state.lists and isinstance(x, list | tuple | range):
        return imported("accnp.api.arguments.values").node_of(x)
    advice = "pass an array or a number"
    if isinstance(x, list | tuple | set | range):
        advice = "convert lists and tuples with jnp.array first"
    elif hasattr(x, "__array__"):  # a Series or Index of pandas
        advice = "convert it with jnp.asarray first"
    if x is None or isinstance(x, list | tuple | dict | set):
        wrong = f"{name} requires ndarray or scalar arguments, got {type(x)}: {_short_repr(x)}"
    else:
        wrong = f"{name}: Error interpreting argument to {name} as an abstract array: "
        if isinstance(x, str):
            wrong += (
                f"Value {_short_repr(x)} with dtype {np.asarray(x).dtype} is not a valid JAX array "
            )
            wrong += "type: "
        wrong += f"Argument {_short_repr(x)} of type {type(x)}"
    raise TypeError(f"{wrong} is not a valid JAX type; {advice}")


def _short_repr(x: Any) -> str:
    text = repr(x)
    if "\n" in text:  # a table
        text = f"{getattr(x, 'dtype', '')}{list(getattr(x, 'shape', ()))}"
    return text if len(text) <= 80 else f"{text[:77]}..."


# Dtypes that are canonical whether or not 64-bit types are enabled.
_ALWAYS = frozenset(map(np.dtype, ("?", "i1", "i2", "i4", "u1", "u2", "u4", "f4", "c8")))


def can_change(x: np.ndarray) -> bool:
    """Return whether the memory of an array is writable, through `x` or through one of its bases.

    Files mapped for reading and the buffers of accnp's arrays are not writable. A file can still
    change by other means: another map of it, `write`, or another process. This is not detected,
    since there is no way to find out; the documentation tells users not to do it.
    """
    owner: Any = x
    while owner is not None:
        if isinstance(owner, np.ndarray):
            if owner.flags.writeable:
                return True
            owner = owner.base
        elif isinstance(owner, memoryview):
            owner = owner.obj
        elif is_pooled(owner):  # accnp does not write to shared buffers
            return False
        else:  # bytes, mapped files, memory of other libraries
            try:
                return not memoryview(owner).readonly
            except TypeError:
                return True
    return False


# Advice for NumPy dtypes that accnp does not support, by kind.
_FOREIGN = {
    "M": "; x.astype('int64') converts to units since 1970",
    "m": "; x.astype('int64') converts to a number of units",
    "O": "; convert with x.astype(float) if all elements are numbers",
}


def numpy_node(x: np.ndarray, name: str = "asarray", copy: bool | None = None) -> Node:
    """Return a constant node with the values of a NumPy array.

    The dtype becomes canonical and the byte order native. By default (`copy` is None) the array is
    copied only if its memory is writable; an array whose dtype or layout changes is always copied.
    """
    if copy is None:
        copy = can_change(x)
    source_dtype = x.dtype
    if source_dtype in _ALWAYS:
        return const_of(x, copy=copy)
    try:
        dtype = dtypes.canonicalize_dtype(source_dtype)
    except TypeError:
        dtype = None
    if dtype is None or not dtypes.is_supported(dtype):
        raise TypeError(
            f"{name}: Value '{str(x)[:80]}' with dtype {x.dtype} is not a valid JAX array type; "
            "only bool, integer, floating and complex dtypes are supported"
            f"{_FOREIGN.get(x.dtype.kind, '')}"
        )
    if (
        source_dtype == float0
        and not state.float0
        and state.abstract is None
        and returns_float0(name)
    ):
        raise Float0Operand(name)
    if source_dtype is not dtype and source_dtype != dtype:
        return const_of(np.ascontiguousarray(x.astype(dtype)).reshape(x.shape), copy=False)
    return const_of(x, copy=copy)


def is_host_value(x: Any) -> bool:
    """Return whether a leaf is a Python number or a NumPy array, and not an Array.

    NumPy arrays of non-native byte order, which JAX refuses, are converted to arrays instead.
    """
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.isnative
    return isinstance(x, bool | int | float | complex)


def as_nodes(name: str, *xs: Any) -> list[Node]:
    """Convert several arguments."""
    return [as_node(x, name) for x in xs]


def cast(x: Node, dtype: Any, weak: bool = False) -> Node:
    """Convert a node to a dtype and weak flag.

    Literals are converted immediately. A node that already has the type is returned unchanged.
    """
    a = x.aval
    if a.dtype == dtype and a.weak_type == weak:
        return x
    if x.op is LITERAL and not (state.named and is_user_held_scalar(x)):
        value = x.params["value"]
        if a.dtype.kind not in "biu" and not (
            a.weak_type and a.dtype in (dtypes.default_float(), dtypes.default_complex())
        ):
            with np.errstate(over="ignore"):  # round to the literal's dtype first
                value = a.dtype.type(value).item()
        if type(value) is int and dtype.kind in "iu":
            value = _wrap_around(value, np.dtype(dtype))
        elif type(value) is int and abs(value) > 2**53 and dtype.kind in "fc":
            value = np.asarray(value).astype(dtype).item()  # rounds once; float() would round first
        return scalar_node(value, np.dtype(dtype), weak)
    return o.convert_element_type(x, new_dtype=np.dtype(dtype), weak_type=weak)


def without_float0(x: Node, dtype: np.dtype) -> Node:
    """Return a node that can be converted to `dtype`: zeros in place of a float0 tangent."""
    if x.aval.dtype != dtypes.float0 or dtype == dtypes.float0:
        return x
    return to_shape(scalar_node(0, dtype), x.aval.shape, "astype")


def cast_safely(name: str, x: Node, dtype: np.dtype) -> Node:
    """Convert a node to a dtype that can represent all its values; raise an error otherwise."""
    a = x.aval
    if dtypes.promote(((a.dtype, a.weak_type), (dtype, False)))[0] != dtype:
        raise TypePromotionError(
            f"{name}: {dtype.name} cannot represent all values of a parameter; got {a.dtype.name}; "
            "convert the parameter, or pass a wider dtype"
        )
    return cast(x, dtype)


def promote(name: str, *xs: Any) -> list[Node]:
    """Convert arguments to nodes of one dtype by JAX's promotion rules, without broadcasting."""
    try:
        nodes = [x._node if type(x) is Array else as_node(x, name) for x in xs]
    except OverflowError:
        nodes = _promote_large_ints(name, xs)
    first = nodes[0].aval
    for n in nodes:
        if n.aval.dtype is not first.dtype or n.aval.weak_type is not first.weak_type:
            break
    else:
        return nodes
    try:
        dtype, weak = dtypes.promote(tuple([(n.aval.dtype, n.aval.weak_type) for n in nodes]))
    except TypePromotionError:
        refuse_float0(name, [n.aval for n in nodes])
        raise
    return [_convert_node(n, dtype, weak) for n in nodes]


def _promote_large_ints(name: str, xs: tuple[Any, ...]) -> list[Node]:
    """Convert arguments among which a Python int does not fit the default integer dtype.

    The int takes the promoted dtype of the other operands if that is uint64 or a floating dtype.
    """
    ints = [type(x) is int for x in xs]
    nodes = [None if i else as_node(x, name) for x, i in zip(xs, ints, strict=True)]
    kinds = tuple([(n.aval.dtype, n.aval.weak_type) for n in nodes if n is not None])
    dtype, weak = dtypes.promote(kinds) if kinds else (dtypes.default_int(), True)
    if weak or dtype.kind not in "ufcV":
        dtype = dtypes.default_int()
    for x, i in zip(xs, ints, strict=True):
        if i and dtype.kind in "iu":
            _check_int(x, dtype)
    return [scalar_node(x, dtype) if n is None else n for x, n in zip(xs, nodes, strict=True)]


def _convert_node(x: Node, dtype: np.dtype, weak: bool) -> Node:
    # A weak operand that already has the dtype needs no conversion, since the weak flag of a result
    # depends on all operands. Jaxprs record the conversion nevertheless, as JAX's do.
    if x.aval.dtype == dtype and (
        x.aval.weak_type == weak or (x.aval.weak_type and state.abstract is None)
    ):
        return x
    # Literals stay weak, so that nodes can share them. In jaxprs, JAX writes the converted literal.
    stays = x.aval.weak_type and x.op is LITERAL and not state.named
    return cast(x, dtype, weak or stays)


def promote_inexact(name: str, *xs: Any) -> list[Node]:
    """Like `promote`, but integers and booleans become the default floating dtype.

    Each operand is converted separately: -2 combined with uint8 becomes -2.0.
    """
    try:
        nodes = as_nodes(name, *xs)
    except OverflowError:
        nodes = _promote_large_ints(name, xs)
    try:
        dtype, weak = dtypes.promote(tuple([(n.aval.dtype, n.aval.weak_type) for n in nodes]))
    except TypePromotionError:
        refuse_float0(name, [n.aval for n in nodes])
        raise
    if dtype.kind in "biuV":  # V: integers of fewer than 8 bits
        refuse_float0(name, [n.aval for n in nodes])
        return [cast(n, dtypes.to_inexact(dtype), weak) for n in nodes]
    nodes = promote(name, *map(wrap, nodes))
    a = nodes[0].aval
    if a.dtype in NARROW and not config.x64:  # created while 64-bit types were enabled
        return [cast(n, NARROW[a.dtype], n.aval.weak_type) for n in nodes]
    return nodes


def to_shape(x: Node, shape: tuple[int, ...], name: str = "broadcast_to") -> Node:
    """Broadcast by NumPy's rules: trailing axes align, axes of length 1 stretch."""
    a = x.aval.shape
    if a == shape:
        return x
    extra = len(shape) - len(a)
    dims = tuple(range(extra, len(shape)))
    if extra < 0 or any(n not in (1, m) for n, m in zip(a, shape[extra:], strict=True)):
        raise ValueError(
            f"{name}: Incompatible shapes for broadcasting: {a} and requested shape {shape}; "
            "trailing axes must be equal, or 1 in the first"
        )
    return o.broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def broadcast_shapes(
    name: str, shapes: list[tuple[int, ...]], elementwise: bool = False
) -> tuple[int, ...]:
    """Return the broadcast of several shapes; `elementwise` selects the wording of the error."""
    rank = max(map(len, shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, n in enumerate(s, rank - len(s)):
            if n != 1:
                if out[i] not in (1, n):
                    listed = ", ".join(map(str, shapes))
                    wrong = (  # JAX words it by whether ranks are equal
                        f"{name} got incompatible shapes for broadcasting: {listed}"
                        if elementwise and len(set(map(len, shapes))) == 1
                        else f"{name}: Incompatible shapes for broadcasting: shapes=[{listed}]"
                    )
                    raise IncompatibleShapesError(f"{wrong}; make trailing axes equal, or 1")
                out[i] = n
    return tuple(out)


def broadcast_nodes(name: str, nodes: list[Node], any_ranks: bool = False) -> list[Node]:
    """Broadcast nodes against each other; rank-0 nodes are kept, since elementwise ops accept them.

    With `any_ranks` the option numpy_rank_promotion does not apply.
    """
    first = nodes[0].aval.shape
    for n in nodes:
        if n.aval.shape != first:
            break
    else:
        return nodes
    if config.numpy_rank_promotion != "allow" and not any_ranks:
        check_ranks(name, [n.aval.shape for n in nodes if n.aval.shape])
    shape = broadcast_shapes(name, [n.aval.shape for n in nodes], elementwise=len(nodes) == 2)
    return [n if n.aval.shape == () else to_shape(n, shape, name) for n in nodes]


def check_ranks(name: str, shapes: list[tuple[int, ...]]) -> None:
    """Warn about operands of different ranks, or raise, as the option numpy_rank_promotion says."""
    if config.numpy_rank_promotion == "allow" or len({len(s) for s in shapes}) < 2:
        return
    listed = " ".join(map(str, shapes))
    text = (
        f"on shapes {listed}; add axes with x[None], or set the config option "
        "jax_numpy_rank_promotion to 'allow'"
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(
            f"{name}: Operands could not be broadcast together for {name} {text}; it is 'raise'"
        )
    warn(f"{name}: Following NumPy automatic rank promotion for {name} {text}")


__all__ += ["broadcast_shapes", "check_ranks", "numpy_node", "scalar_node"]
