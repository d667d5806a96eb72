"""Find the rows and expressions of `rows.py` and of each `rows_<group>.py` in this folder, by
group.

New files are found by their names; they need no registration.
"""

import fnmatch
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.expressions import Expression
from benchmarks.harness import Row

__all__ = ["Group", "groups", "names", "select"]


@dataclass(frozen=True)
class Group:
    """The rows of one file; the rows in `slow` start processes and run for fewer rounds."""

    name: str
    rows: dict[str, Callable[[int], list[Row]]]
    slow: frozenset[str] = frozenset()
    expressions: dict[str, Expression] = field(default_factory=dict)


def names() -> list[str]:
    """Return the names of all groups without importing them."""
    here = Path(__file__).parent
    return ["main", *[p.stem.removeprefix("rows_") for p in sorted(here.glob("rows_*.py"))]]


def groups(selected: Iterable[str] | None = None) -> dict[str, Group]:
    """Return the selected groups (all of them if None); only their files are imported."""
    out = {}
    for name in names() if selected is None else selected:
        module = importlib.import_module(
            "benchmarks." + ("rows" if name == "main" else f"rows_{name}")
        )
        expressions = getattr(module, "EXPRESSIONS", {})
        slow = frozenset(getattr(module, "PROCESS_ROWS", ()))
        out[name] = Group(name, module.ROWS, slow, expressions)
    return out


def select(groups_by_name: dict[str, Group], words: Iterable[str]) -> list[tuple[Group, str]]:
    """Return the rows that match any of the words.

    A word is a group, a row, a row of a group such as `sort/unique`, or a pattern such as `sort*`
    of any of these.

    Raises:
        ValueError: a word matches nothing.
    """
    every = [(group, name) for group in groups_by_name.values() for name in group.rows]
    out: list[tuple[Group, str]] = []
    for word in words:
        fits = [
            (group, name)
            for group, name in every
            if any(
                fnmatch.fnmatchcase(text, word)
                for text in (group.name, name, f"{group.name}/{name}")
            )
        ]
        if not fits:
            known = "; ".join(f"{g.name}: {', '.join(g.rows)}" for g in groups_by_name.values())
            raise ValueError(f"no such row or group; got {word!r}; known are {known}")
        out += [pair for pair in fits if pair not in out]
    return out
