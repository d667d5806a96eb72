"""Names of Numba that are not part of its public API, for this back end and for users' kernels.

`tests/compiler/test_private_names.py` reports which of them a version of Numba has changed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from numba.core.compiler_lock import global_compiler_lock
from numba.core.typeconv.castgraph import Conversion

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher
    from numba.core.types import Type

__all__ = [
    "COMPILER_LOCK", "Conversion", "cuda_part", "fold_types", "global_compiler_lock",
    "helper_address",
]  # fmt: skip

# The lock inside of what Numba's functions are wrapped in: a fork takes and releases it.
COMPILER_LOCK = global_compiler_lock._lock


def fold_types(
    function: Dispatcher, positional: tuple[Type, ...], named: Mapping[str, Type]
) -> tuple[Type, ...]:
    """Return the types of all arguments of a compiled function, in the order of its signature."""
    return tuple(function._compiler.fold_argument_types(positional, named)[1])


def cuda_part(name: str) -> ModuleType:
    """Return a module of the implementation of `numba.cuda`."""
    return importlib.import_module(f"numba.cuda.{name}")


def helper_address(name: str) -> int | None:
    """Return the address of one of Numba's C functions; None if there is no such function."""
    addresses: dict[str, int] = importlib.import_module("numba._helperlib").c_helpers
    return addresses.get(name)
