"""What programs of several processes ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp.experimental.multihost_utils import process_allgather


def gather(y: Any) -> Any:
    """Return an array of which this process has the whole."""
    return y if y.is_fully_replicated else process_allgather(y, tiled=True)


def refused(kind: type[Exception], text: str, f: Callable[[], Any]) -> None:
    """Check that a call raises an error with this text."""
    try:
        f()
    except kind as error:
        if text not in str(error):
            raise
        return
    raise AssertionError(f"nothing was raised; wanted {kind.__name__}: {text}")
