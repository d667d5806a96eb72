"""Find the functions that kernels call outside of their own object file: library kernels, routines
of LAPACK and NumPy, and SciPy's special functions.

The input is object files, and the output is the addresses of the symbols that they refer to, with
the library kernels that must stay loaded. `elf_loader.py` uses it when it loads a kernel. The
sources of library kernels are in `accnp.compiler.library.library`, and the names of routines in
`accnp.compiler.library.routines`; both are imported by name on first use. `find_library_calls`
returns the library kernels that a source calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from accnp._native import MESSAGE, STOPPED
from accnp.blas_threads import follow, thread_calls
from accnp.forks import loading
from accnp.lazy_imports import imported, load_extension


class LoadedKernel(Protocol):
    """A kernel whose machine code is in memory."""

    address: int


_CALL = re.compile(r"\b\w+(?=\()")


def find_library_calls(source: str) -> set[str]:
    """Return the names of the library kernels that a kernel's source calls."""
    library = imported("accnp.compiler.library.library")
    return library.SIGNATURES.keys() & set(_CALL.findall(source))


def resolve_symbols(
    data: bytes, load: Callable[[str], LoadedKernel]
) -> tuple[dict[str, int], list[LoadedKernel]]:
    """Return the addresses of the symbols whose names are in `data`, object files or one name, and
    the kernels that must stay loaded for them. `load` returns a library kernel by its name."""
    library = imported("accnp.compiler.library.library")
    routines = imported("accnp.compiler.library.routines")
    addresses: dict[str, int] = {}
    kernels: list[LoadedKernel] = []
    if routines.STOPPED.encode() + b"\0" in data:  # as in the string table
        addresses[routines.STOPPED] = STOPPED
    if routines.MESSAGE.encode() + b"\0" in data:
        addresses[routines.MESSAGE] = MESSAGE
    if library.PREFIX.encode() in data:
        for name in library.SIGNATURES:
            symbol = library.PREFIX + name
            if symbol.encode() + b"\0" in data:
                kernel = load(name)
                addresses[symbol] = kernel.address
                kernels.append(kernel)
    if routines.PREFIX.encode() in data:
        with loading:  # of SciPy, unless it is loaded already
            for symbol_bytes in set(re.findall(routines.PREFIX.encode() + rb"\w+", data)):
                symbol = symbol_bytes.decode()
                name = symbol.removeprefix(routines.PREFIX)
                if name in routines.BLAS_THREAD_CALLS:
                    addresses[symbol] = thread_calls()[name]
                else:
                    addresses[symbol] = routines.address(symbol, load_extension)
        follow(loaded=True)
    return addresses, kernels
