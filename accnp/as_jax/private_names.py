"""Private names of JAX that libraries import, and the version of JAX.

Each of them implements the part of JAX's behavior that these libraries use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from accnp import errors, tree_util
from accnp.array_type import Array, from_numpy
from accnp.as_jax.names import VERSION
from accnp.ir.aval import Aval
from accnp.ir.trace import innermost

__all__ = [
    "VERSION", "VERSION_INFO", "LiteralArray", "Out", "TypedNdArray", "api_boundary", "backends",
    "excluded_paths", "flatten_one_level", "include_frame", "physical_aval", "reconstruct_array",
    "registered_classes", "trace_state_clean",
]  # fmt: skip

_F = TypeVar("_F", bound=Callable[..., Any])

VERSION_INFO = tuple(int(part) for part in VERSION.split("."))
Out = TypeVar("Out")  # the type of the result of a checked function
backends: dict[str, Any] = {}  # JAX's that are initialized, by name; those of accnp need no such


class LiteralArray:
    """JAX's type of constants of a trace. Those of accnp are arrays, so it has no instances."""


class TypedNdArray:
    """JAX's type of NumPy arrays with weak types. accnp has arrays only: it has no instances."""


def reconstruct_array(
    make: Callable[..., np.ndarray], arguments: tuple[Any, ...], state: Any, aval: dict[str, Any]
) -> Array:
    """Return an array that was pickled under JAX: a NumPy array, and whether its type is weak."""
    value = make(*arguments)
    value.__setstate__(state)
    return from_numpy(value, bool(aval.get("weak_type")))


def trace_state_clean() -> bool:
    """Return whether nothing is being traced."""
    return innermost() is None


def physical_aval(aval: Aval) -> Aval:
    """Return the shape and dtype of the memory of an array, which are its own."""
    return aval


class _ExcludedPaths:
    """The files and folders whose lines errors do not show, as a list."""

    def __iter__(self) -> Iterator[str]:
        return iter(errors.hidden)

    def __contains__(self, path: str) -> bool:
        return path in errors.hidden

    def append(self, path: str) -> None:
        errors.hidden = (*errors.hidden, path)

    def remove(self, path: str) -> None:
        paths = list(errors.hidden)
        paths.remove(path)
        errors.hidden = tuple(paths)


excluded_paths = _ExcludedPaths()


def include_frame(frame: FrameType) -> bool:
    """Return whether errors show the lines of a frame."""
    return not frame.f_code.co_filename.startswith(errors.hidden)


def api_boundary(fun: _F, **_: Any) -> _F:
    """Return the function: which frames errors show depends on their files only."""
    return fun


class _RegisteredClasses:
    """The classes whose instances are nodes of pytrees, as a container."""

    def __contains__(self, kind: type) -> bool:
        return tree_util.default_registry.is_node(kind)


registered_classes = _RegisteredClasses()


def flatten_one_level(tree: Any) -> tuple[Any, Any]:
    """Return the children of a node, and what it needs to be made again.

    Raises
    ------
    ValueError
        If it is a leaf.
    """
    result = tree_util.default_registry.flatten_one_level(tree)
    if result is None:
        raise ValueError(f"flatten_one_level: expected a node of a pytree, got {type(tree)}")
    return result
