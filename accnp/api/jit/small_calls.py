"""Compilation of small eager calls of functions that consist of many operations.

Recording an operation takes 2 to 5 us, and control flow more, so for small arrays a function of
many operations is faster as a program that was traced before. For large arrays the operations are
recorded, so that they fuse with neighboring operations. In traces they are recorded as well, since
a call would have to be inlined again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from math import isinf, prod
from types import NoneType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp.api.jit.jit import JitFunction, jit
from accnp.array_type import Array
from accnp.config import config
from accnp.errors import JAXIndexError, JAXTypeError
from accnp.ir.trace import state
from accnp.key_array import PRNGKeyArray

__all__ = ["compiled_if_small", "run_small"]

# The limit for the elements of all operands. Storing that many takes as long as recording about 30
# operations (development machine, 2026-11).
SMALL = 1 << 16
INT32 = 1 << 31
P = ParamSpec("P")
R = TypeVar("R")
_UNSIZED = (bool, str, NoneType, np.dtype, type)
_TRACING = (JAXTypeError, JAXIndexError)  # tracing needed a concrete value
_EMPTY = inspect.Parameter.empty


def run_small(function: Callable[..., R], arrays: tuple[Any, ...], static: tuple[Any, ...]) -> R:
    """Return `function(*arrays, *static)`, as a call of a compiled program if that is faster.

    The function must be defined once, in a module, and read nothing but its arguments.
    """
    if state.abstract is None and not state.named and _is_small(arrays, static):
        return _jit_function(function, len(arrays), len(static))(*arrays, *static)
    return function(*arrays, *static)


def _is_small(arrays: tuple[Any, ...], static: tuple[Any, ...]) -> bool:
    size = 0
    for x in arrays:
        if type(x) is Array or type(x) is np.ndarray:
            size += x.size
        elif type(x) is not float and not _is_int32(x):
            return False  # lists, keys and large ints are left to the function
    return size <= SMALL and all(_static_length(x) >= 0 for x in static) and not config.no_execution


def _is_int32(x: object) -> bool:
    return type(x) is int and abs(x) < INT32


def _static_length(x: Any) -> int:
    """Return the number of elements that a static value may stand for; -1 if compilation for it is
    not worthwhile."""
    kind = type(x)
    if kind is int:
        return abs(x)
    if kind is tuple:
        return abs(prod(x)) if all(type(n) is int for n in x) else -1
    if kind is float:  # such as orders of norms; tolerances vary between calls
        return 0 if isinf(x) or x.is_integer() else -1
    return 0 if isinstance(x, _UNSIZED) else -1


@cache
def _jit_function(function: Callable[..., Any], arrays: int, static: int) -> JitFunction[..., Any]:
    return jit(function, static_argnums=tuple(range(arrays, arrays + static)))


def compiled_if_small(
    *arrays: str, or_counts: str = "", limit: int = SMALL
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions whose small eager calls run as compiled programs.

    Parameters
    ----------
    *arrays : str
        Names of the parameters that are arrays, numbers or keys. All others are static, as are
        values that are the default. A call with a value of another type (lists, arrays for static
        parameters) is not compiled.
    or_counts : str, optional
        Name of one of them that is static if it is a number. Calls with a scalar array for it are
        not compiled.
    limit : int, optional
        Largest number of elements of the operands, and of shapes and counts that are static.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        calls: _SmallCalls | None = None  # made by the first call

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            nonlocal calls
            if state.abstract is not None or state.named or config.no_execution:
                return function(*args, **kwargs)
            if calls is None:
                calls = _SmallCalls(function, frozenset(arrays), or_counts, limit)
            return calls.run(args, kwargs)

        return wrapper

    return decorate


class _SmallCalls:
    """The compiled programs of one function, by the positions of its dynamic arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        arrays: frozenset[str],
        or_counts: str,
        limit: int,
    ) -> None:
        parameters = inspect.signature(function).parameters
        kinds = [p.kind for p in parameters.values()]
        by_place = inspect.Parameter.POSITIONAL_ONLY
        self.function = function
        self.limit = limit
        self.names = tuple(parameters)
        self.number = {n: i for i, n in enumerate(self.names) if kinds[i] is not by_place}
        self.defaults = [p.default for p in parameters.values()]
        self.positional = sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds)
        self.dynamic = [name in arrays for name in parameters]
        self.count = self.number.get(or_counts, -1)
        self.has_key = "key" in arrays
        self.programs: dict[tuple[int, ...], JitFunction[..., Any]] = {}

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = self._positional(args, kwargs)
        static = None if values is None else self._static_positions(values)
        if values is None or static is None or self._checks_raw_keys():
            return self.function(*args, **kwargs)
        program = self.programs.get(static)
        if program is None:
            program = self.programs.setdefault(static, self._program(static))
        try:
            return program(*values)
        except _TRACING:
            pass
        # The function needs a concrete value. Called directly, it works, or raises its own error.
        return self.function(*args, **kwargs)

    def _checks_raw_keys(self) -> bool:
        """Return whether each call with a raw key warns or raises."""
        return self.has_key and config.legacy_prng_key != "allow"

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """Return the values of all parameters, or None if the call does not match the signature."""
        n = len(args)
        if n > self.positional:
            return None
        values = [*args, *self.defaults[n:]]
        for name, value in kwargs.items():
            i = self.number.get(name, -1)
            if i < n:
                return None
            values[i] = value
        return values

    def _static_positions(self, values: list[Any]) -> tuple[int, ...] | None:
        """Return the positions of static values; None if the call is large or has other types."""
        size = 0
        static = []
        for i, (x, default) in enumerate(zip(values, self.defaults, strict=True)):
            kind = type(x)
            if x is default:
                if x is _EMPTY:
                    return None
                static.append(i)
            elif (
                self.dynamic[i] and x is not None and not (i == self.count and kind in (int, float))
            ):
                if kind is Array or kind is np.ndarray:
                    size += x.size
                    if i == self.count and not x.ndim:
                        return None
                elif kind is PRNGKeyArray:
                    size += x._base.size
                elif kind is not float and kind is not bool and not _is_int32(x):
                    return None
            else:
                length = _static_length(x)
                if length < 0:
                    return None
                size = max(size, length)
                static.append(i)
        return tuple(static) if size <= self.limit else None

    def _program(self, static: tuple[int, ...]) -> JitFunction[..., Any]:
        function, n, names = self.function, self.positional, self.names[self.positional :]

        def call(*values: Any) -> Any:
            return function(*values[:n], **dict(zip(names, values[n:], strict=True)))

        call.__name__, call.__qualname__ = function.__name__, function.__qualname__
        call.__module__ = function.__module__
        return jit(call, static_argnums=static)
