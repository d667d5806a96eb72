# ruff: noqa: F403
"""Types of the part of Numba that accnp uses. Numba has types for little of this part.

What is not in this folder has those of Numba, if there are any.
"""

from collections.abc import Callable
from typing import Any

from numba.core import types as types
from numba.core.types import *

# A decorator, or a function with the options of one. What it returns has the attributes of a
# dispatcher or of a compiled function.
def njit(function: Callable[..., Any] | None = None, /, **options: object) -> Any: ...
def cfunc(signature: object, /, **options: object) -> Callable[[Callable[..., Any]], Any]: ...
def vectorize(**options: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def typeof(value: object) -> types.Type: ...
def prange(stop: int) -> range: ...
def get_num_threads() -> int: ...
