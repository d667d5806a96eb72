"""The exception of what the loop IR does not express: its callers try another way."""

from __future__ import annotations

__all__ = ["Unsupported"]


class Unsupported(Exception):
    """What the loop IR does not express yet."""
