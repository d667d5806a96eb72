"""Modules that are loaded on first use.

`imported` and `load_extension` return a module, which the first call loads: rarely used parts of
the package, and other libraries, which would make `import accnp` slower. `module_getattr.py` does
the same for public names. A fork waits for imports, an interrupt does not stop one, and an import
for which there is not enough memory raises MemoryError.
"""

from __future__ import annotations

import importlib
import mmap
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec
from typing import Any

from accnp.address_space import has_room, is_shortage, make_shortage_error, size_of_openblas
from accnp.forks import collection_paused, loading, run_uninterrupted

__all__ = ["has_scipy_blas", "imported", "load_extension", "load_module"]

_modules: dict[str, Any] = {}
_packages: set[str] = set()  # packages of which `load_extension` has loaded extension modules


def imported(name: str) -> Any:
    """Return a module, which the first call imports."""
    module = _modules.get(name)
    if module is None:
        module = _modules[name] = (
            load_module(name) if _loading_here() else run_uninterrupted(load_module, name)
        )
    return module


def load_module(name: str) -> Any:
    """Import a module on the calling thread.

    Raises:
        MemoryError: there is not enough memory to load it.
        Exception: what the module raises.
    """
    with loading, collection_paused:
        if name.startswith("scipy."):
            _require_room_of_openblas(name)
        try:
            return importlib.import_module(name)
        except Exception as error:
            _raise_shortage(name, error)
            raise


# The least room that a process has whose import failed for another reason than lack of memory.
_SPARE = 32 << 20


def has_scipy_blas() -> bool:
    """Return whether the BLAS library of SciPy has been loaded."""
    return "scipy.linalg.cython_blas" in sys.modules or "scipy.linalg" in _packages


def _require_room_of_openblas(name: str) -> None:
    """Raise MemoryError if OpenBLAS, which a module loads, would wait for memory."""
    if not has_scipy_blas() and not has_room(size_of_openblas()):
        what = f"import {name}: not enough memory for OpenBLAS"
        raise make_shortage_error(what, size_of_openblas())


def _raise_shortage(name: str, error: BaseException) -> None:
    """Raise MemoryError with the size of a module if it could not be loaded for lack of memory.

    Without memory, CPython's compiler raises SystemError and ValueError, too.
    """
    if isinstance(error, MemoryError) and error.args:
        return
    if is_shortage(error) or not has_room(_SPARE):
        what = f"import {name}: not enough memory to load this module, or one that it imports"
        raise make_shortage_error(what, _size_of(name)) from error


def _size_of(name: str) -> int:
    """Return the size of the file of a module; the least possible size if it cannot be found."""
    package, *rest = name.split(".")
    folders = list(getattr(sys.modules.get(package), "__path__", ()))
    try:
        if not folders:
            spec = PathFinder.find_spec(package)
            folders = list((spec and spec.submodule_search_locations) or ())
        for folder in folders:
            start = os.path.join(folder, *rest)
            for end in (".py", f"{os.sep}__init__.py", *EXTENSION_SUFFIXES):
                if os.path.exists(start + end):
                    return os.stat(start + end).st_size
    except (ImportError, OSError, MemoryError):
        pass
    return mmap.PAGESIZE


def load_extension(name: str) -> Any:
    """Return an extension module, which the first call loads without importing its packages.

    Importing `scipy.fft` takes 130 ms of CPU time and `scipy.linalg` 220 (EPYC, SciPy 1.17), mostly
    for Python code that is not needed here; their extension modules take 1 to 37 ms. The packages
    can still be imported later.

    Raises:
        ImportError: the module does not exist.
    """
    module = _modules.get(name) or sys.modules.get(name)
    if module is None:
        module = _modules[name] = (
            _extension(name) if _loading_here() else run_uninterrupted(_extension, name)
        )
        _packages.add(name.rpartition(".")[0])
    return module


def _extension(name: str) -> Any:
    package, *between, _ = name.split(".")
    with loading, collection_paused:
        root = PathFinder.find_spec(package)
        places = root.submodule_search_locations if root is not None else None
        spec = PathFinder.find_spec(name, [os.path.join(each, *between) for each in places or ()])
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            raise ImportError(f"import: no extension module of this name; got {name!r}", name=name)
        if name.startswith("scipy.linalg."):
            _require_room_of_openblas(name)
        known = name in sys.modules
        try:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
        except (ImportError, OSError) as error:  # the module needs its package, as on Windows
            sys.modules.pop(name, None)
            _raise_shortage(name, error)
            return importlib.import_module(name)
        if not known:  # importing the package adds it, and makes it an attribute
            sys.modules.pop(name, None)
        return module


def _loading_here() -> bool:
    """Return whether this thread is importing a module. Then it must not import on another thread,
    which would wait for the import lock of that module."""
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
