"""Where accnp differs from jax on purpose, and why: the lines of `exceptions.txt`.

A line is `names | what differs | calls | why` in the section of the test that reads it; names and
calls are patterns, several names have spaces between.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

Line = tuple[str, str, str, str]


@cache
def exceptions(section: str) -> list[Line]:
    """The lines of a section, one for each of their names."""
    text = (Path(__file__).parent / "exceptions.txt").read_text()
    part = text.partition(f"\n[{section}]\n")[2].partition("\n[")[0]
    entries = []
    for line in part.splitlines():
        if line and not line.startswith("#"):
            names, what, calls, why = line.split(" | ")
            entries += [(name, what, calls, why) for name in names.split()]
    return entries
