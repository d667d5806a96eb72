"""Docstrings of made functions: shapes, dtypes and errors, said from the declarations.

In: what a function computes, its kind, an example. Out: a docstring.
`tests/test_docstrings.py` asks each elementwise function whether it does what is said here.
"""

from __future__ import annotations

from accnp.api.elements.elementwise import documented

__all__ = ["REFUSED", "fold_doc", "refused", "running_doc", "ufunc_doc"]

# Kinds of dtypes -> functions that refuse them.
REFUSED = {
    "b": "negative sign subtract gcd lcm",
    "f": "bitwise_not bitwise_count gcd lcm bitwise_and bitwise_or bitwise_xor left_shift "
    "right_shift",
    "c": "fabs i0 cbrt floor ceil trunc signbit frexp floor_divide remainder fmod divmod hypot "
    "copysign nextafter heaviside bitwise_not bitwise_count gcd lcm bitwise_and bitwise_or "
    "bitwise_xor left_shift right_shift",
}
_KINDS = {"b": "bool", "f": "floating", "c": "complex"}
_OWN = {  # results of other dtypes than the operands
    "abs": "The dtype is that of x, of its parts if x is complex.",
    "real": "The dtype is that of x, of its parts if x is complex.",
    "imag": "The dtype is that of x, of its parts if x is complex.",
    "rint": "Integers and bools become the default float, other dtypes stay.",
    "frexp": "The mantissa is of the dtype of x, the exponent int32.",
    "bitwise_count": "The dtype is uint8.",
}


def refused(name: str) -> str:
    """Return the kinds of dtypes that a function refuses, of "bfc"."""
    return "".join([kind for kind, names in REFUSED.items() if name in names.split()])


def ufunc_doc(name: str, what: str, prepare: str, arity: int, example: str) -> str:
    """Return the docstring of a function whose operands `prepare` (by name) makes one dtype."""
    shapes = "The shape is that of x." if arity == 1 else "Shapes broadcast; dtypes promote."
    result = example.split(" -> ")[1]
    truths = "T" in result or "F" in result
    to_floats = prepare in ("inexact", "real_inexact", "_real_strong", "_logs") and not truths
    kinds = refused(name)
    if name in _OWN:
        types = _OWN[name]
    elif truths:
        types = "The dtype is bool."
    elif to_floats:
        types = "Floating dtypes stay." if "c" in kinds else "Floating and complex dtypes stay."
    elif prepare == "numeric" and "b" not in kinds:
        types = "Bools become int32, other dtypes stay."
    else:
        types = "The dtype is that of x." if arity == 1 else "The result has the promoted dtype."
    lines = [f"{what}, elementwise.", "", f"{shapes} {types}"]
    if to_floats:
        lines += [
            "Unlike NumPy: integers and bools of any width become the default float, float32",
            "(float64 with jax_enable_x64); there is no out=, where= or dtype=.",
        ]
    else:
        wide = "" if arity == 1 or "f" in kinds else "int32 and float32 make float32; "
        lines += [f"Unlike NumPy: {wide}there is no out=, where= or dtype=."]
    wrong = "no array or number (a list)"
    lines += ["", "Raises:"]
    if name in ("gcd", "lcm"):
        lines += ["    ValueError: the promoted dtype is no integer."]
    elif kinds:
        wrong = f"of a {' or '.join([_KINDS[kind] for kind in kinds])} dtype, or {wrong}"
    lines += [f"    TypeError: {'x' if arity == 1 else 'an operand'} is {wrong}."]
    if arity == 2:
        lines += ["    TypeError, also a ValueError: shapes do not broadcast."]
    return documented(_joined(lines), name, example)


_MASK = "where= is not bool"
_ONE = "initial= is no single number"
# Kinds of reductions -> what is said of dtypes, and when there is which error.
_FOLDS = {
    "total": (
        "Bools, narrow integers become int32, unsigned ones uint32 (64-bit with jax_enable_x64);\n"
        "other dtypes stay, and float16 and bfloat16 are computed in float32.\n"
        "Unlike NumPy: promote_integers=False keeps narrow integers.",
        {"ValueError": f"{_MASK}, or {_ONE}"},
    ),
    "extreme": (
        "The dtype stays. Complex numbers are ordered by real part, then by imaginary part.",
        {"ValueError": f"there is no element, or where= and no initial=; {_ONE}"},
    ),
    "truth": ("The dtype is bool.", {"ValueError": _MASK}),
    "place": (
        "The dtype is the default integer, int32 (int64 with jax_enable_x64); with axis=None the\n"
        "index counts in the flattened array.",
        {"ValueError": "there is no element", "TypeError": "the dtype is complex, unlike in NumPy"},
    ),
}


def fold_doc(what: str, kind: str, name: str, example: str) -> str:
    """Return the docstring of a reduction of one of the kinds above."""
    types, errors = _FOLDS[kind]
    lines = [
        what,
        "",
        "The result has the shape without these axes; with keepdims=True they are 1 long.",
    ]
    lines += [*types.split("\n"), "", "Raises:"]
    lines += [f"    {error}: {when}." for error, when in errors.items()]
    lines += [
        "    TypeError: a is no array or number (a list, a text).",
        "    ValueError, also an IndexError: an axis is out of bounds.",
        "    NotImplementedError: out= is given, unlike NumPy, since arrays are immutable.",
    ]
    return documented(_joined(lines), name, example)


def running_doc(what: str, name: str, example: str) -> str:
    """Return the docstring of a fold that keeps each step."""
    lines = [
        what,
        "",
        "The shape is that of a; with axis=None, of the flattened a. Bools become int32 (int64",
        "with jax_enable_x64), other dtypes stay; unlike NumPy, int8 and int16 do, too.",
        "",
        "Raises:",
        "    TypeError: a is no array or number (a list, a text), or axis no int.",
        "    ValueError, also an IndexError: the axis is out of bounds.",
        "    NotImplementedError: out= is given, unlike NumPy, since arrays are immutable.",
    ]
    return documented(_joined(lines), name, example)


def _joined(lines: list[str]) -> str:
    return "\n    ".join(lines).replace("\n    \n", "\n\n")
