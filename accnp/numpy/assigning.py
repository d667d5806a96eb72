"""Item assignment, `x[key] = values`, and functions such as `put` that change their argument, which
the option `item_assignment` enables.

Nodes are immutable, so an assignment records the update `x.at[key].set(values)` and gives its node
to the array object `x`. All names of this object see the new values. Other arrays, including slices
and views that were made before, keep theirs. Values are converted and broadcast by NumPy's rules.

`Array.__setitem__` calls `setitem`. Traces give arrays from outside their values back when they end
(`Trace.rebound`), and `accnp.leaks` reports the assignment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import cast, to_shape
from accnp.api.arguments.values import check_complex, node_of, number_node, to_dtype
from accnp.array_type import Array, wrap
from accnp.config import config
from accnp.errors import api_boundary, warn
from accnp.ir.node import Node, user_site
from accnp.ir.trace import Rebinding, Trace, recorder_of
from accnp.key_array import PRNGKeyArray
from accnp.numpy import ufuncs
from accnp.numpy.index_updates import SET, shape_at, write
from accnp.numpy.manipulation import reshape_plain

__all__ = ["assign_in_place", "setitem"]

_NAME = "x[...] = y"


def setitem(x: Array, key: Any, values: Any, references: int) -> None:
    """Assign values to the elements of an array that a key selects.

    Parameters
    ----------
    x : Array
        Array to change, or keys.
    key : index
        Index of any kind that `x.at` accepts.
    values : array_like
        New values.
    references : int
        Reference count of `x` in the method `__setitem__`.

    Warns
    -----
    UserWarning
        If nothing else refers to `x`, as in `x[0][1] = y`, so that the assignment has no effect.
    """
    if references <= _TEMPORARY:
        warn(
            f"{_NAME}: the assignment has no effect, because x is a new array that has no other "
            f"name, such as the slice in x[i][j] = y; got {x.aval.str_short()}; use one index, as "
            "in x[i, j] = y",
            UserWarning,
        )
    if isinstance(x, PRNGKeyArray):
        _replace_values(x, x.at[key].set(values))
    else:
        _replace_values(x, wrap(assigned(x._node, key, values)))


def assign_in_place(
    function: str,
    x: Any,
    values: Any,
    references: int,
    update: Callable[[Any, Any], Any],
    error: type[Exception] = ValueError,
) -> Any:
    """Give an array the values of an updated copy, for a public function with `inplace=True`.

    Parameters
    ----------
    function : str
        Name of the public function.
    x : Array
        Array to change, or keys.
    values : array_like
        New values, which are converted to the dtype of `x`. None if there are none.
    references : int
        Reference count of `x` in the public function, which has an `api_boundary`. It is larger
        by one if `x` was passed by keyword; then no warning is given.
    update : callable
        Function of `x` and the converted values that returns the updated copy.
    error : type, optional
        Error for arrays that cannot be changed.

    Returns
    -------
    Array
        `x`.

    Raises
    ------
    Exception
        If the option `item_assignment` is off, or `x` is not an array of accnp.

    Warns
    -----
    UserWarning
        If nothing else refers to `x`, so that the assignment has no effect.
    """
    if not config.item_assignment:
        raise error(
            f"{function}: JAX arrays are immutable; pass inplace=False to get an updated copy, or "
            "set the option item_assignment"
        )
    if not isinstance(x, Array):
        raise error(
            f"{function}: only arrays of accnp can be changed; got {type(x).__name__}; pass "
            "inplace=False to get an updated copy"
        )
    if references <= _TEMPORARY_ARGUMENT:
        warn(
            f"{function}: the assignment has no effect, because the array has no other name, such "
            f"as a slice x[i]; got {x.aval.str_short()}; pass inplace=False and assign the result "
            "to the slice",
            UserWarning,
        )
    if values is not None and not isinstance(x, PRNGKeyArray):
        values = wrap(_convert_values(values, x.dtype))
    _replace_values(x, update(x, values))
    return x


def _replace_values(x: Array, updated: Array) -> None:
    if isinstance(updated, PRNGKeyArray):
        _rebind(x, "_base", updated._base)
    elif updated._node is not x._node:
        _rebind(x, "_node", updated._node)


def assigned(x: Node, key: Any, values: Any) -> Node:
    """Return the node of an array after an item assignment.

    Differences from `x.at[key].set(values)`: values of any dtype are converted to that of the array
    without a warning, except complex ones for a real array. Leading axes of length 1 are dropped. A
    mask may be traced, unless there is a value for each selected element.

    Raises:
        OverflowError: a Python number is out of the range of the dtype.
        TypeError: a Python complex number is assigned to an array of real numbers.
        ValueError: the values cannot be broadcast, or NaN is assigned to an array of integers.
    """
    a = x.aval
    y = _convert_values(values, a.dtype)
    mask = _mask(key, a.shape)
    if mask is not None:
        rest = a.ndim - mask.aval.ndim
        y = _without_leading(y, rest)
        if y.aval.ndim <= rest:  # the values do not depend on which elements are selected
            y = to_shape(y, a.shape[mask.aval.ndim :])
            mask = reshape_plain(mask, (*mask.aval.shape, *[1] * rest))
            out = ufuncs.where(wrap(mask), wrap(y), wrap(x))._node
            return cast(out, a.dtype, a.weak_type)
    elif y.aval.ndim and y.aval.shape[0] == 1:
        y = _without_leading(y, len(shape_at(a.shape, key)))
    return write(x, key, wrap(y), SET)


def _convert_values(values: Any, dtype: np.dtype) -> Node:
    """Return values in a dtype, converted as NumPy's assignment does."""
    check_complex(values, dtype, _NAME)
    if dtype.kind in "iu" and type(values) in (int, float):
        values = int(values)  # raises for NaN and infinities
        limits = np.iinfo(dtype)
        if not limits.min <= values <= limits.max:
            raise OverflowError(
                f"{_NAME}: Python integer {values} out of bounds for {dtype.name}; convert it first"
            )
    if values is None or isinstance(values, list | tuple):
        return to_dtype(node_of(values, function=_NAME), dtype)
    return to_dtype(number_node(values, dtype, _NAME), dtype)


def _mask(key: Any, shape: tuple[int, ...]) -> Node | None:
    """Return the mask if a key is one that covers leading axes, or None."""
    if type(key) is tuple and len(key) == 1:
        key = key[0]
    if not isinstance(key, Array | np.ndarray) or key.dtype != np.bool_ or not key.ndim:
        return None
    return node_of(key, function=_NAME) if key.shape == shape[: key.ndim] else None


def _without_leading(y: Node, rank: int) -> Node:
    """Drop leading axes of length 1 beyond a rank."""
    extra = max(y.aval.ndim - rank, 0)
    if extra and set(y.aval.shape[:extra]) == {1}:
        return reshape_plain(y, y.aval.shape[extra:])
    return y


def _rebind(x: Array, attribute: str, after: Any) -> None:
    """Set the attribute that holds the values, and note it if a trace has to undo that."""
    before = getattr(x, attribute)
    new, old = (v._node if isinstance(v, Array) else v for v in (after, before))
    trace = recorder_of(new.trace)
    if trace is not None and not _is_within(old.trace, trace):
        trace.rebound.append(Rebinding(x, attribute, before, user_site()))
    setattr(x, attribute, after)


def _is_within(inner: Trace | None, outer: Trace) -> bool:
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


def _reference_count_without_name(named: int, temporary: int) -> int:
    """Return the reference count of an object without a name.

    It is -1 if objects with a name can have the same count, as in Python 3.14, where a local
    variable lends its reference to the interpreter's stack.
    """
    return temporary if temporary < named else -1


def _references_of_temporary() -> int:
    """Return the reference count that `__setitem__` finds for an object without a name."""
    counts: list[int] = []

    class Probe:
        def __setitem__(self, key: Any, value: Any) -> None:
            counts.append(sys.getrefcount(self))

    named = Probe()
    Probe()[0] = named[0] = None
    return _reference_count_without_name(counts[1], counts[0])


def _references_of_argument() -> int:
    """Return the reference count that a public function finds for an argument without a name."""

    @api_boundary
    def references(x: object) -> int:
        return sys.getrefcount(x)

    named = object()
    return _reference_count_without_name(references(named), references(object()))


_TEMPORARY = _references_of_temporary()
_TEMPORARY_ARGUMENT = _references_of_argument()
