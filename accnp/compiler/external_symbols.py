"""Addresses of the functions that machine code calls outside of its own object files.

These are library kernels, routines of LAPACK, NumPy and SciPy, and users' functions that Numba
compiles. The loader of object files and Numba's linker ask for them here. A library kernel may have
to be compiled first, by the kernel cache, which is a higher layer. `kernel_cache.py` therefore
installs the functions that find them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["address_of", "find_symbols", "install_finders"]

_Addresses = tuple[dict[str, int], Sequence[object]]
_finders: list[tuple[Callable[[bytes], _Addresses], Callable[[str], int | None]]] = []


def install_finders(
    find: Callable[[bytes], _Addresses], address: Callable[[str], int | None]
) -> None:
    """Set the functions that `find_symbols` and `address_of` call."""
    _finders[:] = [(find, address)]


def find_symbols(data: bytes) -> tuple[dict[str, int], Sequence[object]]:
    """Return the addresses of the symbols to which object files refer, and the kernels that must
    stay loaded for them."""
    return _finders[0][0](data)


def address_of(symbol: str) -> int | None:
    """Return the address of one symbol; None if it is unknown."""
    return _finders[0][1](symbol)
