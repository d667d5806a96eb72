"""Intended differences from JAX, read from `exceptions.txt` with the reason for each.

A line is `names | what differs | calls | why`, in the section of the test that reads it. Names and
calls are patterns; several names are separated by spaces.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

Line = tuple[str, str, str, str]


@cache
def exceptions(section: str) -> list[Line]:
    """Return the lines of a section, one for each name."""
    text = (Path(__file__).parent / "exceptions.txt").read_text()
    part = text.partition(f"\n[{section}]\n")[2].partition("\n[")[0]
    entries = []
    for line in part.splitlines():
        if line and not line.startswith("#"):
            names, what, calls, why = line.split(" | ")
            entries += [(name, what, calls, why) for name in names.split()]
    return entries
