"""Integers in the order of floats, in the source of kernels.

`primitives/reference.py` has the same function for arrays.
"""

from __future__ import annotations

__all__ = ["FLOATS", "largest_key", "ordered_bits"]

FLOATS = ("f4", "f8")  # types of floats with such keys


def largest_key(code: str) -> int:
    """Return the largest key of a type of floats, that of the NaN with all bits set."""
    return (1 << (8 * int(code[1]) - 1)) - 1


def ordered_bits(code: str, bits: str) -> str:
    """Return the expression of the key of a float with these bits, or of the bits of a float with
    this key: those of negative numbers are inverted, except the sign."""
    whole = f"i{code[1]}"
    shift = 8 * int(code[1]) - 1
    return f"{whole}({bits} ^ ({whole}({bits} >> {shift}) & {whole}({largest_key(code)})))"
