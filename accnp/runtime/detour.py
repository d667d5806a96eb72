"""Looking on at functions of the package while somebody wants to, at no cost otherwise.

In: a function, and another that is called in its place with the first as its first argument. While
a `Detour` is on, the function's code object is one that calls the other; every name under which the
function was imported leads there, and nothing in the function itself asks whether it is watched.
When it is off the function has its own code again.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

__all__ = ["Detour"]

_TEXT = "def detour(*args, **kwargs): return {name}(*args, **kwargs)"


class Detour:
    """`around(original, *args, **kwargs)` in place of `function(*args, **kwargs)`, on and off.

    The function must be a plain one that closes over nothing.
    """

    def __init__(self, function: Callable[..., Any], around: Callable[..., Any]) -> None:
        if not isinstance(function, FunctionType) or function.__closure__:
            raise TypeError(
                f"Detour: only functions without closures can be led round; got {function!r}"
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
        self._name = f"_detour_of_{id(function)}"
        names: dict[str, Any] = {}
        exec(compile(_TEXT.format(name=self._name), self._code.co_filename, "exec"), names)
        self._other = names["detour"].__code__.replace(
            co_name=self._code.co_name, co_qualname=self._code.co_qualname
        )
        original = self.original
        self._call = lambda *args, **kwargs: around(original, *args, **kwargs)

    def start(self) -> None:
        """Lead calls round from now on; those that are running go on as they were."""
        self._function.__globals__[self._name] = self._call
        self._function.__code__ = self._other

    def stop(self) -> None:
        """Give the function its own code back."""
        # The name stays in the globals: a call may be between the two.
        self._function.__code__ = self._code
