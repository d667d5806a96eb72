"""Conversion of everything that `jnp.array` accepts to nodes, and checks of common arguments.

Numbers, NumPy arrays, nested lists, Arrays and objects with an array protocol become nodes of the
requested dtype, or of the dtype that promotion gives. The second half checks arguments that many
functions share: `precision`, `out`, `dtype`, callables and `unroll`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, numpy_node, promote_inexact, scalar_node
from accnp.array_type import Array, wrap
from accnp.config import MATMUL, config
from accnp.engine import array_of
from accnp.errors import IncompatibleShapesError, not_one_of, warn
from accnp.ir.aval import make_aval, on_devices
from accnp.ir.node import LITERAL, Node, const
from accnp.ir.op import o
from accnp.lazy_imports import imported
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import full as full_node
from accnp.runtime import device as devices
from accnp.runtime.buffer import overflow_warnings

__all__ = [
    "astype_node", "check_complex", "inexact_arrays", "no_out", "node_of", "node_on_gpu",
    "number_node", "precision_key", "to_dtype",
]  # fmt: skip

# Lists of at most this many pending Arrays are concatenated lazily; longer ones go through NumPy.
_STACK_LIMIT = 64
_SCALARS = (bool, int, float, complex)


def node_of(
    x: Any, dtype: Any = None, copy: bool | None = None, function: str = "jnp.asarray"
) -> Node:
    """Return the node of anything that `jnp.array` accepts; `copy` is as in `numpy_node`."""
    requested = None if dtype is None else dtypes.requested_dtype(dtype, function)
    if type(copy) is Array:
        copy = bool(copy)  # raises if traced, even where unused
    if type(x) is Array:
        node = as_node(x)
    elif isinstance(x, _SCALARS) and not isinstance(x, np.generic):
        if requested is not None:
            check_complex(x, requested, function)
        if requested is not None and requested.kind in "biufc":
            return (
                scalar_node(x, requested, False)
                if _fits_dtype(x, requested)
                else _reject_large(x, requested, function)
            )
        node = as_node(x, function)
    elif isinstance(x, np.ndarray | np.generic):
        value = np.asarray(x)
        if requested is not None and value.dtype != requested and value.dtype.kind not in "OSUMm":
            with np.errstate(all="ignore"):
                # Conversion to bool tests both parts of a complex number.
                takes_real = requested.kind != "b" and _drops_imaginary_part(value.dtype, requested)
                if takes_real:
                    _warn_imaginary_lost(value.dtype, requested)
                value = np.asarray(np.real(value) if takes_real else value).astype(requested)
            copy = False
        return numpy_node(value, function, copy if isinstance(x, np.ndarray) else False)
    elif isinstance(x, list | tuple | range):
        return _of_sequence(x, requested, function)
    else:
        node = _of_protocol(x, copy, function)
        if node is None:
            raise _not_numeric(x, function)
    return node if requested is None else to_dtype(node, requested)


def inexact_arrays(name: str, *xs: Any) -> list[Array]:
    """Convert array-likes, including lists, to arrays of one floating or complex dtype."""
    nodes = promote_inexact(name, *[wrap(node_of(x, function=name)) for x in xs])
    return [wrap(n) for n in nodes]


def number_node(x: Any, dtype: np.dtype, function: str) -> Node:
    """Return the node of a number or array that will be converted to `dtype`.

    A Python int may fit `dtype` and not the default integer dtype.
    """
    try:
        return as_node(x, function)
    except OverflowError:
        return node_of(x, dtype, None, function)


def to_dtype(node: Node, dtype: np.dtype) -> Node:
    """Convert to a strong dtype; conversion from complex to real discards the imaginary part."""
    if _drops_imaginary_part(node.aval.dtype, dtype):
        _warn_imaginary_lost(node.aval.dtype, dtype)
        if dtype.kind == "b" and node.op is not LITERAL:
            node = o.real(node)
    return cast(node, dtype)


def astype_node(node: Node, dtype: np.dtype, function: str) -> Node:
    """Convert as `Array.astype` does: complex numbers are true if either part is nonzero."""
    if node.aval.dtype.kind == "c" and dtype.kind == "b":
        return o.ne(node, like(node, 0))
    if _drops_imaginary_part(node.aval.dtype, dtype):
        warn(
            f"{function}: Casting from complex to real dtypes will be an error in the future, "
            f"since the imaginary parts are lost; got {node.aval.dtype.name} for {dtype.name}; use "
            "jnp.real or jnp.imag before",
            DeprecationWarning,
        )
    return cast(node, dtype)


def _warn_imaginary_lost(old: np.dtype, new: np.dtype) -> None:
    warn(
        "Casting complex values to real discards the imaginary part; got "
        f"{old.name} for {new.name}; take jnp.real first",
        np.exceptions.ComplexWarning,
    )


def check_complex(x: Any, dtype: np.dtype, function: str) -> None:
    """Raise TypeError for a Python complex number where a real dtype is requested."""
    if type(x) is complex and dtype.kind not in "cb":  # the truth value depends on both parts
        raise TypeError(
            f"{function}: {dtype.name} cannot hold the complex number {x}; "
            "pass its real part, or a complex dtype"
        )


def _drops_imaginary_part(old: np.dtype, new: np.dtype) -> bool:
    return old.kind == "c" and new.kind != "c"


def _fits_dtype(x: Any, dtype: np.dtype) -> bool:
    return (
        dtype.kind not in "iu"
        or not isinstance(x, int)
        or (np.iinfo(dtype).min <= x <= np.iinfo(dtype).max)
    )


def _reject_large(x: Any, dtype: np.dtype, function: str) -> Node:
    raise OverflowError(
        f"{function}: Python int {x} too large to convert to {dtype.name}; use a wider dtype"
    )


def _of_protocol(x: Any, copy: bool | None, function: str) -> Node | None:
    if isinstance(x, Array):  # random keys, for which as_node raises an error
        return as_node(x, function)
    if hasattr(x, "__jax_array__"):
        return node_of(x.__jax_array__(), None, copy, function)
    if hasattr(x, "__cuda_array_interface__"):
        return node_on_gpu(x, True)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return numpy_node(np.asarray(x), function, copy)
    if isinstance(x, bytes | str) or x is None:
        return None
    if isinstance(x, Sequence) and not isinstance(x, bytearray | memoryview):
        return _of_sequence(list(x), None, function)
    try:
        view = memoryview(x)
    except TypeError:
        return None
    return numpy_node(np.asarray(view), function, copy)


def node_on_gpu(x: Any, copy: bool | None) -> Node:
    """Return a node over another library's GPU array, in the canonical dtype."""
    exchange = imported("accnp.runtime.gpu_array_exchange")
    buffer, shape, dtype = exchange.import_gpu_array(x, copy)
    node = const(buffer, on_devices(make_aval(shape, dtype), (buffer.device,)))
    return cast(node, dtypes.canonicalize_dtype(dtype))


def _quote(x: Any) -> str:
    return f"'{str(x)[:80]}'"


def _not_numeric(x: Any, function: str) -> Exception:
    if x is None:
        return ValueError(f"{function}: None is not a valid value for jnp.array; pass numbers")
    return TypeError(
        f"{function}: Value {_quote(x)} of type {type(x)} is not a valid JAX array type; pass "
        "numbers, arrays or nested lists of them"
    )


def _of_sequence(x: Any, requested: Any, function: str) -> Node:
    """Return the node of nested lists, in the promoted dtype of all leaves.

    Lists of numbers are converted by NumPy; Arrays among the leaves are stacked.
    """
    kinds: set[Any] = set()
    nodes = _leaf_types(x, kinds, function)
    if requested is None:
        requested = dtypes.promote(tuple(kinds))[0] if kinds else dtypes.default_float()
    if not nodes and any(weak and kind.kind == "c" for kind, weak in kinds):
        check_complex(
            next((v for v in _iterate_flat(x) if type(v) is complex), None), requested, function
        )
    if nodes and (len(nodes) <= _STACK_LIMIT or any(n.trace is not None for n in nodes)):
        return _stack_nested(x, requested, function)
    try:
        with overflow_warnings(requested):
            value = np.array(
                _values(x) if nodes else x, dtype=None if requested.kind == "V" else requested
            )
    except ValueError as error:
        raise _array_error(x, function, error) from None
    except OverflowError as error:
        raise OverflowError(f"{function}: {error}; use a wider dtype") from None
    except TypeError:  # complex numbers into a real dtype
        value = np.real(np.array(_values(x) if nodes else x))
    return numpy_node(np.asarray(value.astype(requested)), function, copy=False)


def _array_error(x: Any, function: str, error: Exception) -> Exception:
    if "inhomogeneous" in str(error) or "sequence" in str(error):
        return IncompatibleShapesError(
            f"{function}: setting an array element with a sequence: the nested lists have an "
            f"inhomogeneous shape (ragged); got {str(x)[:80]}; give all lists of one level the "
            "same length"
        )
    return error


_MAX_DEPTH = 64  # the largest rank of NumPy arrays


def _leaf_types(x: Any, kinds: set[Any], function: str) -> list[Node]:
    """Collect the (dtype, weak) pairs of all leaves of nested lists; return the Arrays."""
    nodes: list[Node] = []
    seen: set[type] = set()
    stack, depths = [x], [1]
    while stack:
        depth = depths.pop()
        if depth > _MAX_DEPTH:
            raise ValueError(
                f"{function}: the lists are nested deeper than {_MAX_DEPTH} levels, or one "
                "contains itself; got a list of lists; pass an array of fewer dimensions"
            )
        for item in stack.pop():
            kind = type(item)
            if kind in seen:
                continue
            if kind is Array:
                nodes.append(item._node)
                kinds.add((item.dtype, item.weak_type))
            elif kind in (list, tuple, range) or isinstance(item, list | tuple):
                stack.append(item)
                depths.append(depth + 1)
            elif isinstance(item, np.ndarray):
                _numeric(item.dtype, item, function)
                kinds.add((dtypes.canonicalize_dtype(item.dtype), False))
            elif isinstance(item, np.generic | int | float | complex):
                if isinstance(item, np.generic):
                    _numeric(item.dtype, item, function)
                kinds.add(dtypes.value_type(item))
                seen.add(kind)
            elif hasattr(item, "__jax_array__") or isinstance(item, Array):
                nodes.append(as_node(item, function))
                kinds.add((nodes[-1].aval.dtype, nodes[-1].aval.weak_type))
            elif hasattr(item, "__array__"):
                kinds.add((dtypes.canonicalize_dtype(np.asarray(item).dtype), False))
            else:
                raise _not_numeric(item, function)
    return nodes


def _numeric(dtype: np.dtype, x: Any, function: str) -> None:
    if dtype.kind in "OSUMm":
        raise _not_numeric(x, function)


def _iterate_flat(x: Any) -> Iterator[Any]:
    for item in x:
        if isinstance(item, list | tuple):
            yield from _iterate_flat(item)
        else:
            yield item


def _values(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_values(item) for item in x]
    return array_of(x._node) if type(x) is Array else x


def _stack_nested(x: Any, dtype: np.dtype, function: str) -> Node:
    if not isinstance(x, list | tuple | range):
        return node_of(x, dtype, None, function)
    if not len(x):
        return full_node((0,), 0, dtype)
    parts = [_stack_nested(item, dtype, function) for item in x]
    shape = parts[0].aval.shape
    if any(p.aval.shape != shape for p in parts):
        raise IncompatibleShapesError(
            f"{function}: the parts of a list have different shapes (ragged); got "
            f"{', '.join(str(p.aval.shape) for p in parts[:8])}; give all the same shape"
        )
    wide = [o.reshape(p, new_sizes=(1, *shape), dimensions=None) for p in parts]
    return wide[0] if len(wide) == 1 else o.concatenate(*wide, dimension=0)


_PRECISIONS = (
    "default", "high", "highest", "fastest", "float32", "bfloat16", "bfloat16_3x", "tensorfloat32",
    "DEFAULT", "F32_F32_F32", "F64_F64_F64",  # algorithms that CPUs support
)  # fmt: skip


def precision_key(precision: Any) -> Any:
    """Return a hashable form of a precision argument; None means the configured default.

    The CPU always computes in full precision.
    """
    if precision is None:
        return config.default_matmul_precision
    several = type(precision) in (tuple, list)  # algorithms are subclasses of tuple
    for p in precision if several else (precision,):
        if hasattr(p, "check"):  # an algorithm of `lax`
            p.check()
        elif not (
            isinstance(p, Enum) or p in _PRECISIONS or (devices.gpu_possible and p in MATMUL)
        ):
            raise not_one_of("lax.Precision", "precision", p, _PRECISIONS)
    if several and len(precision) != 2:
        raise ValueError(
            f"lax.Precision: a pair needs one precision for each operand; got {precision!r}; "
            "pass two"
        )
    return tuple(precision) if isinstance(precision, list) else precision


def no_out(out: Any, name: str) -> None:
    """Raise NotImplementedError if `out` is given."""
    if out is not None:
        raise NotImplementedError(
            f"{name}: the 'out' argument is not supported, since arrays are immutable; "
            f"got {type(out).__name__}; use the result"
        )


def check_callable(name: str, value: Any) -> None:
    """Raise TypeError if an argument is not callable."""
    if not callable(value):
        raise TypeError(
            f"{name}: Expected a callable value, got {value!r} of type {type(value).__name__}; "
            "pass a function"
        )


def rule_setter(self: Any, name: str) -> Any:
    """Serve as `__getattr__` of wrappers: `def...` methods are those of the wrapped function."""
    if name.startswith("def"):
        return getattr(self.fun, name)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def needs_dtype(name: str, dtype: Any) -> None:
    """Raise ValueError if a required dtype is missing."""
    if dtype is None:
        raise ValueError(f"{name}: a dtype is required; got None; pass one, such as 'float32'")


def unroll_steps(name: str, unroll: Any) -> int:
    """Return the unroll factor of a loop as an int."""
    if not isinstance(unroll, int | np.integer) or unroll < 0:
        kind = ValueError if isinstance(unroll, int | np.integer) else TypeError
        raise kind(f"{name}: unroll must be a number of steps or a bool; got {unroll!r}; pass 1")
    return int(unroll)
