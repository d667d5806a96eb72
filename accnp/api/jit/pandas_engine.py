"""`jit` as a pandas engine: `series.map(f, engine=accnp.jit)` and `frame.apply(f, ...)`.

pandas looks up the attribute `__pandas_udf__` of an engine and calls its methods `map` and `apply`
(`pandas.api.executors.BaseExecutionEngine`). They map the user's function over elements, columns or
rows with `vmap`, and compile that. This module does not import pandas.

64-bit columns keep their dtypes, since the functions are called with `enable_x64`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array
from accnp.config import enable_x64

__all__ = ["apply", "map_elements"]

_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lshift", "rshift",
)  # fmt: skip
_OTHER_OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = ("neg", "pos", "abs", "invert")


class LabelledArray:
    """Row or column of a frame: an array whose elements can be accessed by their labels.

    Attributes:
        array: the elements.
        places: the position of each label, or None if labels are positions.
    """

    __slots__ = ("array", "places")

    def __init__(self, array: Array, places: dict[Hashable, int] | None) -> None:
        self.array = array
        self.places = places

    def __jax_array__(self) -> Array:
        return self.array

    def __getitem__(self, key: Any) -> Array:
        if self.places is not None and isinstance(key, Hashable) and key in self.places:
            return self.array[self.places[key]]
        if isinstance(key, str):
            raise KeyError(key)
        return self.array[key]

    def __getattr__(self, name: str) -> Any:
        if self.places is not None and name in self.places and not hasattr(Array, name):
            return self.array[self.places[name]]
        return getattr(self.array, name)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.array)


def _operator(name: str) -> Callable[..., Any]:
    def method(self: LabelledArray, *others: Any) -> Any:
        return getattr(self.array, name)(*map(_unlabel, others))

    method.__name__ = name
    return method


for _name in (*_OPERATORS, *[f"r{x}" for x in _OPERATORS], *_OTHER_OPERATORS, *_UNARY):
    setattr(LabelledArray, f"__{_name}__", _operator(f"__{_name}__"))


def _unlabel(x: Any) -> Any:
    return x.array if isinstance(x, LabelledArray) else x


def map_elements(
    data: Any,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    decorator: Callable[..., Any],
    skip_na: bool,
) -> np.ndarray:
    """Apply a scalar function to each element of a Series, a DataFrame or a NumPy array.

    If `skip_na` is true, missing values remain missing.
    """
    values = _values_as_numbers(data, "map")
    result = _run(_map_elements, func, args, kwargs, decorator, (values.ndim,), values)
    if skip_na and values.dtype.kind in "fc" and (missing := np.isnan(values)).any():
        result = np.where(missing, values, result)
    return result


def _map_elements(func: Callable[..., Any], ndim: int) -> Callable[..., Any]:
    for _ in range(ndim):
        func = vmap(func)
    return func


def apply(
    data: Any,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    decorator: Callable[..., Any],
    axis: int | str,
) -> Any:
    """Apply a function to each column (axis 0) or row (axis 1) of a frame.

    `data` is a DataFrame, or a NumPy array if pandas was given `raw=True`. The result is of the
    same class, or a Series if the function returns numbers.
    """
    values = _values_as_numbers(data, "apply")
    by_rows = axis not in (0, "index")
    if isinstance(data, np.ndarray):
        return _run(_map_lines, func, args, kwargs, decorator, (by_rows, None), values)
    along, across = (data.columns, data.index) if by_rows else (data.index, data.columns)
    labels = None if _are_positions(along) else tuple(along)
    result = _run(_map_lines, func, args, kwargs, decorator, (by_rows, labels), values)
    if result.ndim == 1:
        return sys.modules["pandas"].Series(result, index=across)
    if result.ndim != 2:
        raise ValueError(
            f"apply: the function must return a number or a vector; got shape {result.shape[1:]} "
            "for each column or row; reduce it"
        )
    kept_labels = along if result.shape[1 if by_rows else 0] == len(along) else None
    index, columns = (across, kept_labels) if by_rows else (kept_labels, across)
    return type(data)(result, index=index, columns=columns)


def _map_lines(
    func: Callable[..., Any], by_rows: bool, labels: tuple[Hashable, ...] | None
) -> Callable[..., Any]:
    places = None if labels is None else {label: i for i, label in enumerate(labels)}

    def apply_to_line(line: Array) -> Any:
        return _unlabel(func(LabelledArray(line, places)) if places is not None else func(line))

    return vmap(apply_to_line, in_axes=0 if by_rows else 1, out_axes=0 if by_rows else -1)


def _are_positions(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _run(
    mapped: Callable[..., Any],
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    decorator: Callable[..., Any],
    key: tuple[Any, ...],
    values: np.ndarray,
) -> np.ndarray:
    """Map a function, compile it, and call it."""

    def with_arguments(x: Any) -> Any:
        return func(x, *args, **kwargs)

    try:
        if args or kwargs:  # these may be of any type, and become constants of the program
            run = decorator(mapped(with_arguments, *key))
        else:
            run = _compile_function(mapped, func, decorator, key)
    except TypeError:  # the function or a label is not hashable
        run = decorator(mapped(func, *key))
    with enable_x64():
        return np.asarray(run(values))


@functools.lru_cache(64)
def _compile_function(
    mapped: Callable[..., Any],
    func: Callable[..., Any],
    decorator: Callable[..., Any],
    key: tuple[Any, ...],
) -> Callable[..., Any]:
    """Return the compiled function; cached, since pandas calls the engine for each frame."""
    return decorator(mapped(func, *key))


def _values_as_numbers(data: Any, name: str) -> np.ndarray:
    """Return the values of a Series, a DataFrame or a NumPy array as numbers.

    Missing values of nullable dtypes become NaN.
    """
    values = data if isinstance(data, np.ndarray) else data.to_numpy()
    if values.dtype.kind == "O" and not isinstance(data, np.ndarray):
        kinds = {getattr(x, "kind", "O") for x in np.atleast_1d(np.array(data.dtypes, object))}
        if kinds <= set("biuf"):
            values = data.to_numpy(dtype=np.float64, na_value=np.nan)
    if values.dtype.kind not in "biufc":
        raise TypeError(
            f"{name}: the engine accnp.jit computes numbers; got dtype {values.dtype}; convert the "
            "data with astype, or use the default engine"
        )
    return values
