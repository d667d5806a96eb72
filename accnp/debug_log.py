"""Debug logging to stderr, controlled by ACCNP_DEBUG (`config.debug`)."""

from __future__ import annotations

import sys

from accnp.config import config

__all__ = ["note"]


def note(text: str) -> None:
    """Print a line on stderr if ACCNP_DEBUG is 1 or more."""
    if config.debug:
        # In one write: otherwise, another thread may write before the end of the line.
        print(f"accnp: {text}\n", end="", file=sys.stderr)
