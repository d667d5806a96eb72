"""What a module does about a name that it does not have: it loads what few programs use, says what
serves today where jax or NumPy have had such a name (`accnp/gone.py`), or which names are near.

In: the module's names. Out: its `__getattr__`, which is set without an assignment in the module, so
that type checkers know the names that are written there and no others.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["install_getattr"]


def install_getattr(
    module: str, names: Iterable[str], later: Mapping[str, str] | None = None
) -> None:
    """Give a module a `__getattr__`: an AttributeError that offers the nearest names.

    `later` has names that are loaded when they are first used, and the modules that have them (or
    are them), with a colon and the name there if it is another one.
    """
    known = sorted(names)
    later = later or {}

    def missing(name: str) -> Any:
        if name in later:
            home, _, known_as = later[name].partition(":")
            found = importlib.import_module(home)
            value = found if home == f"{module}.{name}" else getattr(found, known_as or name)
            setattr(sys.modules[module], name, value)
            return value
        text = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("__"):
            today = importlib.import_module("accnp.gone").GONE.get(f"{module}.{name}", "")
            if today.startswith("="):
                home, _, known_as = today[1:].partition(":")
                return getattr(importlib.import_module(f"accnp.{home}"), known_as)
            if today:
                raise AttributeError(f"{text}: {today}")
            import difflib  # 5 ms, for errors only

            close = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
            whole = sys.modules.get("accnp")
            if module == "accnp.numpy" and name in getattr(whole, "__all__", ()):
                text += f"; it is accnp.{name}"
            elif close:
                text += f"; did you mean {' or '.join(map(repr, close))}?"
        raise AttributeError(text)

    vars(sys.modules[module])["__getattr__"] = missing
