"""The import finder of modules below `jax` and `jaxlib`, and the modules that it creates.

It takes the names of modules that a program imports, and creates modules whose attributes come from
a module of accnp when they are first accessed (`names.py`).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import accnp
from accnp.as_jax import names

__all__ = ["AliasModule", "Finder", "is_jax"]

_TOPS = ("jax", "jaxlib")


def is_jax(name: str) -> bool:
    """Return whether a module is `jax`, `jaxlib`, or below these."""
    return name.partition(".")[0] in _TOPS


def base_of(name: str) -> str | None:
    """Return the module of accnp that a module of JAX stands for, "" for one that only has the
    names of the table, or None if there is none."""
    if name in names.MODULES:
        return names.MODULES[name]
    top, _, rest = name.partition(".")
    if top != "jax" or not _is_public(rest.partition(".")[0]):
        return None
    home = f"accnp.{rest}" if rest else "accnp"
    try:
        exists = importlib.util.find_spec(home) is not None
    except ModuleNotFoundError:
        return None
    except ValueError:  # a namespace without a file, such as scipy.stats.norm
        exists = True
    return home if exists else None


def _is_public(name: str) -> bool:
    """Return whether a name of `accnp` is that of a public module, or empty."""
    if name in accnp.__all__:
        return isinstance(getattr(accnp, name), ModuleType)
    return name in ("", "example_libraries")


_alias_modules: dict[str, AliasModule] = {}


def alias_module(name: str) -> AliasModule:
    """Return the module that stands for one of JAX; there is one, also if the switch is off.

    Raises
    ------
    ImportError
        If accnp has no such module.
    """
    if name not in _alias_modules:
        base = base_of(name)
        if base is None:
            raise ModuleNotFoundError(
                f"accnp.as_jax: accnp has no module {name}; {names.__file__} lists the private "
                "modules of jax that it serves",
                name=name,
            )
        _alias_modules[name] = AliasModule(name, base)
    return _alias_modules[name]


class AliasModule(ModuleType):
    """A module of JAX, with the names of a module of accnp.

    Its names never depend on the switch: modules that imported it keep it when the switch is off.
    """

    def __init__(self, name: str, base: str) -> None:
        super().__init__(name)
        self._base = importlib.import_module(base) if base else None
        self.__path__: list[str] = []
        # `from jax._src.x import y` shows this path in its error: the file that says what there is.
        self.__file__ = names.__file__
        self.__doc__ = getattr(self._base, "__doc__", None)

    def __getattr__(self, name: str) -> Any:
        home = names.NAMES.get(self.__name__, {}).get(name)
        below = f"{self.__name__}.{name}"
        if home is not None:
            value = _load(home)
        elif self._base is None and (name.startswith("__") or base_of(below) is None):
            raise AttributeError(
                f"accnp.as_jax: {self.__name__} has no {name}; {names.__file__} lists the private "
                "names of jax that it serves"
            )
        else:
            value = getattr(self._base, name, None)
            if (value is None or isinstance(value, ModuleType)) and base_of(below) is not None:
                value = alias_module(below)
            else:
                value = getattr(self._base, name)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        own = dir(self._base) if self._base is not None else ()
        return sorted({*own, *names.NAMES.get(self.__name__, ())})


def _load(home: str) -> Any:
    module, _, name = home.partition(":")
    value = importlib.import_module(module)
    return getattr(value, name) if name else value


class Finder(MetaPathFinder, Loader):
    """Finds the modules below `jax` and `jaxlib`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not is_jax(fullname):
            return None
        if base_of(fullname) is None:
            if not fullname.startswith("jax._src."):
                return None
            alias_module(fullname)  # raises the error
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return alias_module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are found when they are first used."""
