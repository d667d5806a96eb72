"""The `__getattr__` of public modules, for names that a module does not contain.

`install_getattr` gives a module a `__getattr__` that loads rarely used names on first use, forwards
or explains names that JAX or NumPy have had (`accnp/removed_names.py`), and suggests similar names
otherwise. The function is set without an assignment in the module, so that type checkers know only
the names that are written there.
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
    """Set the `__getattr__` of a module, whose AttributeError suggests similar `names`.

    `later` maps names that are loaded on first use to the modules that contain them (or are them).
    A colon and a name follow the module if the object has another name there.
    """
    known = sorted(names)
    later = later or {}

    def get_attribute(name: str) -> Any:
        if name in later:
            home, _, known_as = later[name].partition(":")
            found = importlib.import_module(home)
            value = found if home == f"{module}.{name}" else getattr(found, known_as or name)
            setattr(sys.modules[module], name, value)
            return value
        text = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("__"):
            removed_names = importlib.import_module("accnp.removed_names")
            replacement = removed_names.REMOVED_NAMES.get(f"{module}.{name}", "")
            if replacement.startswith("="):
                home, _, known_as = replacement[1:].partition(":")
                return getattr(importlib.import_module(f"accnp.{home}"), known_as)
            if replacement:
                raise AttributeError(f"{text}: {replacement}")
            import difflib  # takes 5 ms, so it is imported for errors only

            close = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
            whole = sys.modules.get("accnp")
            if module == "accnp.numpy" and name in getattr(whole, "__all__", ()):
                text += f"; it is accnp.{name}"
            elif close:
                text += f"; did you mean {' or '.join(map(repr, close))}?"
        raise AttributeError(text)

    vars(sys.modules[module])["__getattr__"] = get_attribute
