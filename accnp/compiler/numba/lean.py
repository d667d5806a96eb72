"""Numba contexts with only what scalar kernels need; `TYPING` and `TARGET` go out.

Numba's own contexts load linear algebra, strings, containers and a run-time library before their
first compilation (0.35 s), and resolve the type of `float32 + float32` anew each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import cpu, fastmathpass, types, typing
from numba.core.typing import cmathdecl, mathdecl, npydecl, templates
from numba.cpython import builtins, cmathimpl, mathimpl, numbers, rangeobj, tupleobj
from numba.misc import literal

# Imported for what they register in Numba's tables.
_REGISTERED = (builtins, numbers, rangeobj, tupleobj, literal)
_OVERLOADS = (templates._OverloadFunctionTemplate, templates._OverloadAttributeTemplate)


def _is_overload(entry: Any) -> bool:
    """Whether a registration is Python code to compile; each one loads Numba's whole target."""
    if isinstance(entry, tuple):
        kind = entry[1]
        if not isinstance(kind, types.Function):
            return False
        return any(map(_is_template_of_overload, kind.templates))
    return isinstance(entry, type) and _is_template_of_overload(entry)


def _is_template_of_overload(template: type) -> bool:
    # Not issubclass: templates are abstract base classes, and each check that fails leaves an entry
    # in the caches of all subclasses of the base. They were 70 % of the objects of a process, and
    # its garbage collections took 0.1 s each.
    return any(base in template.__mro__ for base in _OVERLOADS)


class _Loader(templates.RegistryLoader):
    def new_registrations(self, name: str) -> Iterator[Any]:
        return (entry for entry in super().new_registrations(name) if not _is_overload(entry))


class LeanTyping(typing.Context):  # type: ignore[misc]
    """Typing without overloads, which remembers how calls were resolved."""

    def __init__(self) -> None:
        self._resolved: dict[tuple, Any] = {}
        super().__init__()

    def load_additional_registries(self) -> None:
        for module in (mathdecl, cmathdecl, npydecl):
            self.install_registry(module.registry)

    def install_registry(self, registry: Any) -> None:
        if registry not in self._registries:
            self._registries[registry] = _Loader(registry)
        super().install_registry(registry)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if isinstance(func, types.Dispatcher):
            return super().resolve_function_type(func, args, kws)
        key = (func, tuple(args), tuple(sorted(kws.items())) if kws else ())
        found = self._resolved.get(key)
        if found is None:
            found = super().resolve_function_type(func, args, kws)
            if found is not None:
                self._resolved[key] = found
        return found


class LeanTarget(cpu.CPUContext):
    """Lowering for scalars, pointers and ranges."""

    def load_additional_registries(self) -> None:
        for module in (mathimpl, cmathimpl):
            self.install_registry(module.registry)

    def init(self) -> None:
        super().init()
        self._sizes: dict[str, int] = {}

    def post_lowering(self, mod: Any, library: Any) -> None:
        """As Numba's, but nothing is linked: kernels count no references."""
        if self.fastmath:
            fastmathpass.rewrite_module(mod, self.fastmath)

    def get_abi_sizeof(self, ty: Any) -> int:
        key = str(ty)
        size = self._sizes.get(key)
        if size is None:
            size = self._sizes[key] = super().get_abi_sizeof(ty)
        return size


TYPING = LeanTyping()
TARGET = LeanTarget(TYPING)
