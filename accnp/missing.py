"""What a module says about a name that it does not have.

In: the module's names. Out: a module `__getattr__`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

__all__ = ["nearest"]


def nearest(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module: an AttributeError that offers the nearest names."""
    known = sorted(names)

    def missing(name: str) -> NoReturn:
        text = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("__"):
            import difflib  # 5 ms, for errors only

            close = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
            if close:
                text += f"; did you mean {' or '.join(map(repr, close))}?"
        raise AttributeError(text)

    return missing
