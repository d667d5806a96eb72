"""Routines of LAPACK and BLAS that kernels call: their names, their arguments, their addresses.

In: a name and the code of an element type. Out: for `lapack.py` and `plain.py` what the arguments
are, for the loader addresses, which come from SciPy, imported when a kernel first asks. Seen
without Numba.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

__all__ = ["CODES", "LAPACK", "ROUTINES", "address", "symbol"]

LAPACK = "accnp_lapack_"
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
    "trsm": ("cccciippipi",) * 2,
}
_COMPLEX_NAMES = {"syevd": "heevd", "orgqr": "ungqr"}
_BLAS = ("trsm",)


def kinds(routine: str, code: str) -> str:
    """The letters of the arguments."""
    return ROUTINES[routine][code[0] == "c"]


def has_info(routine: str) -> bool:
    """Whether the routine says how it went."""
    return routine not in _BLAS


def symbol(routine: str, code: str) -> str:
    """The name in object files."""
    name = _COMPLEX_NAMES.get(routine, routine) if code[0] == "c" else routine
    return LAPACK + {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[code] + name


def address(symbol: str) -> int:
    """The address of a routine."""
    name = symbol.removeprefix(LAPACK)
    library = "cython_blas" if name[1:] in _BLAS else "cython_lapack"
    capsule: Any = importlib.import_module(f"scipy.linalg.{library}").__pyx_capi__[name]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return pointer_of(capsule, name_of(capsule))
