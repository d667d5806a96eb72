"""Words to whoever set ACCNP_DEBUG. In: a text. Out: a line on stderr, or nothing."""

from __future__ import annotations

import sys

from accnp.config import config

__all__ = ["note"]


def note(text: str) -> None:
    """Say something to whoever set ACCNP_DEBUG."""
    if config.debug:
        print(f"accnp: {text}", file=sys.stderr)
