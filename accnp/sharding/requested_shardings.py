"""The sharding that the caller of an operation requests for its result (`out_shardings.py`).

It is set for the current thread while the operation is recorded.

`out_shardings.py` sets it for each thread, and the rules of operations read it. This is a separate
module because `einsum` imports it and must not load meshes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["RequestedSharding", "requested", "requested_in_order", "requesting"]

Entries = list[tuple[Any, ...]]


class RequestedSharding:
    """The sharding that a caller requests while an operation is recorded.

    `entries` are the mesh axes that divide each dimension of the result. They are None for
    operations that compute only an intermediate value of it.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: Entries | None) -> None:
        self.entries = entries


class _State(threading.local):
    def __init__(self) -> None:
        self.requested: RequestedSharding | None = None


_state = _State()


def requested() -> RequestedSharding | None:
    """Return the request of the caller of the operation that is being recorded, or None."""
    return _state.requested


@contextmanager
def requesting(request: RequestedSharding) -> Iterator[None]:
    before = _state.requested
    _state.requested = request
    try:
        yield
    finally:
        _state.requested = before


@contextmanager
def requested_in_order(order: Sequence[int] | None) -> Iterator[None]:
    """Record an operation whose dimensions become those of the result in another order.

    Dimension d of the operation is dimension `order[d]` of the result. None is for operations that
    compute only an intermediate value.
    """
    own = _state.requested
    if own is None:
        yield
        return
    entries = own.entries
    if entries is not None:
        entries = None if order is None else [entries[d] for d in order]
    with requesting(RequestedSharding(entries)):
        yield
