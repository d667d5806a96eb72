"""The routines of LAPACK and BLAS, and NumPy's sorts, that kernels call.

The tables have their names, and their arguments for the code of an element type; the intrinsics in
`llvm/intrinsics/routines.py` and the plain Python versions in `python_lapack.py` are derived from
them. `address` returns the address of a routine for the loader of object files. Routines of LAPACK
come from SciPy, which is imported when a kernel first needs one, and sorts from the table of
functions that a NumPy dtype has. This module does not import Numba.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from accnp.compiler.library.special_calls import CALLS

__all__ = [
    "BLAS_THREAD_CALLS", "CODES", "MESSAGE", "PREFIX", "ROUTINES", "SORTS", "SORT_LIMITS",
    "STOPPED", "address", "sort_symbol", "special_symbol", "symbol",
]  # fmt: skip

PREFIX = "accnp_routine_"  # of the symbols of these functions in object files
CODES = ("f4", "f8", "c8", "c16")
REAL = {"f4": "f4", "f8": "f8", "c8": "f4", "c16": "f8"}

# Arguments by letter: c a character (by its number), i an integer, p a pointer to elements, r to
# real numbers, n to 32-bit integers. LAPACK's last argument, `info`, is left out: it is the result.
# Where complex matrices need other arguments, these come second.
ROUTINES: dict[str, tuple[str, ...]] = {
    "syevd": ("ccipirpini", "ccipirpirini"),
    "gesdd": ("ciipirpipipin", "ciipirpipipirn"),
    "geqrf": ("iipippi",) * 2,
    "orgqr": ("iiipippi",) * 2,
    "potrf": ("cipi",) * 2,
    "getrf": ("iipin",) * 2,
    "getrs": ("ciipinpi",) * 2,
    "gtsv": ("iippppi",) * 2,
    "trsm": ("cccciippipi",) * 2,
}
_COMPLEX_NAMES = {"syevd": "heevd", "orgqr": "ungqr"}
_BLAS = ("trsm",)

# Between the calls of these, which have no arguments, OpenBLAS has one thread. They belong to no
# library; `blas_threads.py` has their addresses.
BLAS_THREAD_CALLS = ("blas_alone", "blas_shared")

# The symbol of the function that tells loops whether to end (`_native/interrupts.c`).
STOPPED = "accnp_stopped"
# The symbol of the function with which loops send messages (`_native/messages.c`).
MESSAGE = "accnp_message"

# The types that NumPy sorts; NaN come last.
SORTS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
SORT_LIMITS = {"i4": 512, "i8": 256}  # elements that it sorts in registers, where they have AVX-512
# Places in NumPy's C interface, which do not change within a major version (and did not in 2.0):
# the function that gives a dtype's table, and the sorts in that table.
_GET_TABLE, _QUICK, _STABLE = 365, 33, 35


def kinds(routine: str, code: str) -> str:
    """Return the letters of the arguments of a routine."""
    return ROUTINES[routine][code[0] == "c"]


def has_info(routine: str) -> bool:
    """Return whether the routine has an `info` argument, which reports failures."""
    return routine not in _BLAS


def symbol(routine: str, code: str) -> str:
    """Return the name of a routine in object files."""
    name = _COMPLEX_NAMES.get(routine, routine) if code[0] == "c" else routine
    return PREFIX + {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[code] + name


def address(symbol: str, load: Callable[[str], ModuleType] = importlib.import_module) -> int:
    """Return the address of a routine; `load` loads the extension module of SciPy that has it."""
    name = symbol.removeprefix(PREFIX)
    if name.startswith("sort_"):
        return _sort_address(name.removeprefix("sort_"))
    if name.startswith("special_"):
        function = CALLS[name.removeprefix("special_")][2]
        return _capsule_address(importlib.import_module("scipy.special.cython_special"), function)
    library = "cython_blas" if name[1:] in _BLAS else "cython_lapack"
    return _capsule_address(load(f"scipy.linalg.{library}"), name)


def _capsule_address(module: ModuleType, name: str) -> int:
    """Return the address of a C function that a Cython module exports."""
    capsule: object = module.__pyx_capi__[name]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return pointer_of(capsule, name_of(capsule))


def special_symbol(name: str) -> str:
    """Return the name of a special function in object files."""
    return f"{PREFIX}special_{name}"


def sort_symbol(code: str) -> str:
    """Return the name of NumPy's sort of this type in object files: (start, count, null) -> 0."""
    return f"{PREFIX}sort_{code}"


def _sort_address(code: str) -> int:
    """Return the address of NumPy's fastest sort of a type: a radix sort up to 16 bits, and a
    vectorized sort of wider types."""
    dtype = np.dtype("?" if code == "b1" else code)
    numpy: Any = importlib.import_module("numpy._core._multiarray_umath")
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    interface = (ctypes.c_void_p * (_GET_TABLE + 1)).from_address(
        pointer_of(numpy._ARRAY_API, None)
    )
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(interface[_GET_TABLE])
    table = (ctypes.c_void_p * (_STABLE + 1)).from_address(get(dtype))
    return table[_STABLE if dtype.itemsize < 4 else _QUICK]
