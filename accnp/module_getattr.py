"""The `__getattr__` and `__dir__` of public modules, which load names on first use.

The imports under `if TYPE_CHECKING:` of a public module say which names it has and where they are
defined. `accnp/public_names.py` is generated from them; `install_getattr` finds names there, so
that importing a package loads nothing that it re-exports. It also forwards or explains names that
JAX or NumPy have had (`accnp/removed_names.py`), and suggests similar names otherwise. The
functions are set without an assignment in the module, so that type checkers know only the names
that are written there.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from typing import Any

from accnp.lazy_imports import load_module
from accnp.public_names import HOMES

__all__ = ["install_getattr"]

_names: dict[str, list[str]] = {}  # those of each public module


def install_getattr(module: str, names: Iterable[str]) -> None:
    """Set `__getattr__` and `__dir__` of a public module.

    Names without a value are looked up in `accnp/public_names.py`. `names` are those that `dir`
    lists, and that an AttributeError suggests if they are similar.
    """
    names = _names[module] = sorted(names)
    homes: dict[str, tuple[str, str]] = {}

    def get_attribute(name: str) -> Any:
        if not homes and module in HOMES:
            homes.update(_find_definitions(module))
        if name in homes:
            home, attribute = homes[name]
            if home == module:  # a module of this package
                value = load_module(f"{module}.{attribute}")
            else:
                value = getattr(load_module(home), attribute)
            setattr(sys.modules[module], name, value)
            return value
        return _removed_name(module, name, names)

    def list_names() -> list[str]:
        special = [name for name in vars(sys.modules[module]) if name.startswith("__")]
        return sorted({*special, *names})

    vars(sys.modules[module]).update(__getattr__=get_attribute, __dir__=list_names)


def _find_definitions(module: str) -> dict[str, tuple[str, str]]:
    """Return the names of a module: the module where each is defined, and its name there."""
    definitions: dict[str, tuple[str, str]] = {}
    for home, names in HOMES[module].items():
        for entry in names.split():
            name, _, defined_as = entry.partition("=")
            definitions[name] = home, defined_as or name
    return definitions


def _is_module(package: str, name: str) -> bool:
    """Return whether a package has a module of this name, which is not loaded.

    `from package import module` asks the package for the attribute before it loads the module, and
    needs no advice about names.
    """
    path = getattr(sys.modules[package], "__path__", None)
    return path is not None and PathFinder.find_spec(f"{package}.{name}", path) is not None


def _removed_name(module: str, name: str, names: list[str]) -> Any:
    """Return what replaces a name that is not in a module, or raise an error that explains it."""
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("__") or _is_module(module, name):
        raise AttributeError(text)
    removed_names = load_module("accnp.removed_names")
    replacement = removed_names.REMOVED_NAMES.get(f"{module}.{name}", "")
    if replacement.startswith("="):
        home, _, attribute = replacement[1:].partition(":")
        return getattr(importlib.import_module(f"accnp.{home}"), attribute)
    if replacement:
        raise AttributeError(f"{text}: {replacement}")
    raise AttributeError(_TextWithSuggestions(text, module, name, names))


class _TextWithSuggestions(str):
    """The text of an error. When it is printed, it also suggests similar names.

    Comparing a name with all names of `accnp.numpy` takes 3 ms, which `hasattr` must not need.
    """

    __slots__ = ("_name",)

    def __new__(cls, text: str, *name: Any) -> _TextWithSuggestions:
        self = super().__new__(cls, text)
        self._name = name
        return self

    def __str__(self) -> str:
        import difflib  # takes 5 ms, so it is imported for errors only

        module, name, names = self._name
        text = self[:]
        if module == "accnp.numpy" and name in _names.get("accnp", ()):
            return f"{text}; it is accnp.{name}"
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.7)
        return f"{text}; did you mean {' or '.join(map(repr, close))}?" if close else text

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)
