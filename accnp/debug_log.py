"""Debug logging, controlled by ACCNP_DEBUG. In: a text. Out: a line on stderr, or nothing."""

from __future__ import annotations

import sys

from accnp.config import config

__all__ = ["note"]


def note(text: str) -> None:
    """Print a line on stderr if ACCNP_DEBUG is 1 or more."""
    if config.debug:
        print(f"accnp: {text}", file=sys.stderr)
