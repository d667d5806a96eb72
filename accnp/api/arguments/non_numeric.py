"""Declarations of the functions that accept elements that are not numbers: random keys, and float0.

Functions of arrays accept numbers, and raise `KeyArrayError` for random keys. A function that only
moves elements says so with the decorator `moves_elements` above `api_boundary`, and then accepts
both. A function that does something else with keys names a function of `random/key_functions.py`
with `accepts_keys`. `api_boundary` calls what is declared only after an error, so that calls with
numbers have no overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from accnp.errors import KeyArrayError, recover_with
from accnp.lazy_imports import imported

__all__ = [
    "KEY_HANDLERS", "Float0Operand", "accepts_keys", "apply_to_keys", "install_key_functions",
    "moves_elements", "moves_float0", "returns_float0",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Function = Callable[..., Any]


class Float0Operand(Exception):
    """Raised and caught within the library: a function that moves elements got a NumPy array of
    float0."""


KEY_HANDLERS: set[str] = set()  # all functions that `accepts_keys` names
_float0_names: set[str] = set()  # functions that return host arrays of float0 for such arrays
_load: list[Callable[[], ModuleType]] = []  # one, set by `install_key_functions`


def install_key_functions(load: Callable[[], ModuleType]) -> None:
    """Set the function that imports `random/key_functions.py`; this package must not import it."""
    _load[:] = [load]


def moves_elements(*parameters: str) -> Callable[[F], F]:
    """Declare that a function moves elements without computing with them.

    Random keys are then moved like numbers, and the result for NumPy arrays of float0 is one, too.
    `parameters` are the names of those that hold elements, by default the first parameter.
    """

    def declare(function: F) -> F:
        _float0_names.add(function.__name__)
        recover_with(function, partial(_move, parameters))
        return function

    return declare


def moves_float0(function: F) -> F:
    """Declare that a function returns NumPy arrays of float0 for such arrays."""
    _float0_names.add(function.__name__)
    recover_with(function, _move_float0)
    return function


def accepts_keys(handler: str) -> Callable[[F], F]:
    """Declare the function of `random/key_functions.py` that computes the result for keys.

    It is called with the name and the implementation of the public function, the arguments and the
    keywords, and returns NotImplemented to refuse them.
    """

    def declare(function: F) -> F:
        KEY_HANDLERS.add(handler)
        recover_with(function, partial(_handle, handler))
        return function

    return declare


def apply_to_keys(
    handler: str, name: str, function: Function, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Call a handler as `accepts_keys` describes."""
    return getattr(_load[0](), handler)(name, function, args, kwargs)


def returns_float0(name: str) -> bool:
    """Return whether a function returns host arrays of float0 for such arrays; the name may begin
    with that of a module."""
    return name.rpartition(".")[2] in _float0_names


def _move(
    parameters: tuple[str, ...],
    error: Exception,
    public: Function,
    function: Function,
    args: tuple,
    kwargs: dict[str, Any],
) -> Any:
    """Apply a function that moves elements to random keys, or to host arrays of float0."""
    if type(error) is KeyArrayError:
        move = _load[0]().apply_to_words
        return move(public.__qualname__, parameters, function, args, kwargs)
    return _move_float0(error, public, function, args, kwargs)


def _move_float0(
    error: Exception, public: Function, function: Function, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Apply a function that moves elements to host arrays of float0."""
    if type(error) is not Float0Operand:
        return NotImplemented
    return imported("accnp.api.arguments.float0_operands").call_with_float0(function, args, kwargs)


def _handle(
    handler: str,
    error: Exception,
    public: Function,
    function: Function,
    args: tuple,
    kwargs: dict[str, Any],
) -> Any:
    """Call the function for random keys that a public function names."""
    if type(error) is not KeyArrayError:
        return NotImplemented
    return apply_to_keys(handler, public.__qualname__, function, args, kwargs)
