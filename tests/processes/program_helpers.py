"""Helper functions for the programs that several processes run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp.experimental.multihost_utils import process_allgather


def gather(y: Any) -> Any:
    """Return the whole array on this process."""
    return y if y.is_fully_replicated else process_allgather(y, tiled=True)


def assert_raises(kind: type[Exception], text: str, f: Callable[[], Any]) -> None:
    """Check that a call raises an error with this text."""
    try:
        f()
    except kind as error:
        if text not in str(error):
            raise
        return
    raise AssertionError(f"nothing was raised; expected {kind.__name__}: {text}")
