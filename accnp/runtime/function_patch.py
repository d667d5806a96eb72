"""Wrap functions of the package temporarily, without cost while they are not wrapped.

`FunctionPatch` takes a function, and a wrapper that is called instead, with the original function
as its first argument. `start` replaces the code object of the function by one that calls the
wrapper. The function object stays the same, so this works in every module that has imported it.
`stop` restores the code object. `explain` and the profiler use this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

__all__ = ["FunctionPatch"]

_TEXT = "def patched(*args, **kwargs): return {name}(*args, **kwargs)"


class FunctionPatch:
    """Calls `around(original, *args, **kwargs)` in place of `function(*args, **kwargs)`.

    It is inactive until `start` is called. The function must be a Python function without closure.
    """

    def __init__(self, function: Callable[..., Any], around: Callable[..., Any]) -> None:
        if not isinstance(function, FunctionType) or function.__closure__:
            raise TypeError(
                "FunctionPatch: the function must be a Python function without closure; "
                f"got {function!r}"
            )
        self._function = function
        self._code = function.__code__
        self.original = FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
        )
        self.original.__kwdefaults__ = function.__kwdefaults__
        self._name = f"_patch_of_{id(function)}"
        names: dict[str, Any] = {}
        exec(compile(_TEXT.format(name=self._name), self._code.co_filename, "exec"), names)
        self._other = names["patched"].__code__.replace(
            co_name=self._code.co_name, co_qualname=self._code.co_qualname
        )
        self._call = functools.partial(around, self.original)

    def start(self) -> None:
        """Replace the code of the function. Calls that are running are not affected."""
        self._function.__globals__[self._name] = self._call
        self._function.__code__ = self._other

    def stop(self) -> None:
        """Restore the code of the function."""
        # The name stays in the globals, since a running call may still read it.
        self._function.__code__ = self._code
