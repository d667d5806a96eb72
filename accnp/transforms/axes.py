"""Names of mapped axes: which are bound while a mapped function is traced.

In: `bind(name, size)` around the trace. Out: `size_of(name)`, an error for unbound names.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["bind", "size_of"]


class _Bound(threading.local):
    def __init__(self) -> None:
        self.sizes: dict[Any, list[int]] = {}


_bound = _Bound()


@contextmanager
def bind(name: Any, size: int) -> Iterator[None]:
    """Bind a name (None binds nothing) for the length of a trace."""
    if name is None:
        yield
        return
    stack = _bound.sizes.setdefault(name, [])
    stack.append(size)
    try:
        yield
    finally:
        stack.pop()
        if not stack:
            del _bound.sizes[name]


def size_of(name: Any) -> int:
    """Return the size of the innermost axis of this name.

    Raises:
        NameError: no mapped function with this axis name is being traced.
    """
    found = _bound.sizes.get(name)
    if not found:
        raise NameError(
            f"unbound axis name: {name}. The following axis names are bound: "
            f"{list(_bound.sizes)}; use it inside vmap(..., axis_name={name!r})"
        )
    return found[-1]
