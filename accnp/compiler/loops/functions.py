"""The closed set of scalar functions of the loop IR, with typing rules and NumPy references.

The operands of a function have the same type, unless its rule says otherwise. The back ends contain
the code of these functions: `llvm/functions.py` and `numba/functions.py`. The interpreter computes
with the references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from accnp.compiler.loops.types import B1, DTYPES, I8, DType, part_of
from accnp.ir.op import COMBINES, OPS
from accnp.lazy_imports import imported
from accnp.primitives.kinds import has_derivative

__all__ = [
    "ALLOCATE", "FUNCTIONS", "FUNCTIONS_OF_OPS", "INFIX", "KEEPS", "Function", "has_vector_form",
    "identity", "result_of",
]  # fmt: skip

Rule = Callable[[Sequence[DType]], DType | None]
Reference = Callable[..., np.generic | np.ndarray]


class Function(NamedTuple):
    """A scalar function; `simple` ones are one or two instructions."""

    arity: int
    rule: Rule
    reference: Reference
    simple: bool = True


def _same_type(*kinds: str) -> Rule:
    """Return a rule for operands of one type of these kinds, with a result of the same type."""

    def rule(of: Sequence[DType]) -> DType | None:
        return of[0] if of[0].kind in kinds and all(d == of[0] for d in of) else None

    return rule


def _test(*kinds: str) -> Rule:
    """Return the same rule with a result of type bool."""
    same = _same_type(*kinds)
    return lambda of: None if same(of) is None else B1


def _select(of: Sequence[DType]) -> DType | None:
    return of[1] if of[0] == B1 and of[1] == of[2] else None


def _index(of: Sequence[DType]) -> DType | None:
    return I8 if all(d == I8 for d in of) else None


def _complex_part(of: Sequence[DType]) -> DType | None:
    return part_of(of[0]) if of[0].kind == "complex" else None


_floats = _same_type("float")
_NUMBER = ("int", "uint", "float")
_SUMS = ("int", "uint", "float", "complex")
_WHOLE = ("int", "uint")
_BITS = ("bool", "int", "uint")
_ANY = ("bool", "int", "uint", "float")

# Functions that return memory on the heap.
ALLOCATE = frozenset([f"heap_{t}" for t in DTYPES])

# The operator of a function in Python.
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "floor_quotient": "//", "floor_remainder": "%",
}  # fmt: skip


def _or_half(rule: Rule) -> Rule:
    """Return a rule that also accepts operands of one half-precision type."""
    halves = _same_type("half")
    return lambda of: rule(of) or halves(of)


# Functions whose results for half-precision operands need no rounding to half precision.
KEEPS = frozenset(
    """abs floor ceil trunc round_even round_away sign fmax fmin rem copysign one select
    join_max join_min""".split()  # noqa: SIM905
)


def _quotient(x: np.integer, y: np.integer) -> np.integer:
    """Return the quotient rounded towards zero; -1 for a divisor of 0."""
    if y == 0:
        return x.dtype.type(-1)
    whole = abs(int(x)) // abs(int(y))
    quotient = np.array(whole if (x < 0) == (y < 0) else -whole).astype(x.dtype)
    return cast("np.integer", quotient[()])


def _floor_quotient(x: np.integer, y: np.integer) -> np.integer:
    """Return the quotient rounded down; 0 if the divisor is 0 or the quotient is too large."""
    largest = y == -1 and x == np.iinfo(x.dtype).min
    return x.dtype.type(0) if y == 0 or largest else x // y


def _floor_remainder(x: np.integer, y: np.integer) -> np.integer:
    """Return the remainder with the sign of y; 0 for a divisor of 0."""
    return x.dtype.type(0) if y == 0 else x % y


def _remainder(x: np.number, y: np.number) -> np.number:
    """Return the remainder with the sign of x; for integers and a divisor of 0, return x."""
    return x if x.dtype.kind in "iu" and y == 0 else np.fmod(x, y)


def _join_max(x: np.number, y: np.number) -> np.number:
    """Return the larger number; of equal ones the first, and NaN if there is one."""
    return cast("np.number", np.where((y > x) | (y != y), y, x)[()])


def _join_min(x: np.number, y: np.number) -> np.number:
    """Return the smaller number; of equal ones the first, and NaN if there is one."""
    return cast("np.number", np.where((y < x) | (y != y), y, x)[()])


def _multiply_add(x: np.number, y: np.number, z: np.number) -> np.number:
    return x * y + z


def _round_away(x: np.number) -> np.number:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _test_float(of: Sequence[DType]) -> DType | None:
    return B1 if _floats(of) else None


FUNCTIONS: dict[str, Function] = {
    "add": Function(2, _same_type(*_SUMS), np.add),
    "sub": Function(2, _same_type(*_SUMS), np.subtract),
    "mul": Function(2, _same_type(*_NUMBER), np.multiply),
    "div": Function(2, _floats, np.divide),
    "neg": Function(1, _same_type("half", *_SUMS), np.negative),
    "floordiv": Function(2, _index, np.floor_divide),
    "lt": Function(2, _test(*_ANY), np.less),
    "le": Function(2, _test(*_ANY), np.less_equal),
    "gt": Function(2, _test(*_ANY), np.greater),
    "ge": Function(2, _test(*_ANY), np.greater_equal),
    "eq": Function(2, _test(*_ANY, "complex"), np.equal),
    "ne": Function(2, _test(*_ANY, "complex"), np.not_equal),
    "and": Function(2, _same_type(*_BITS), np.bitwise_and),
    "or": Function(2, _same_type(*_BITS), np.bitwise_or),
    "xor": Function(2, _same_type(*_BITS), np.bitwise_xor),
    "not": Function(1, _same_type(*_BITS), np.invert),
    "select": Function(3, _select, np.where),
    "shl": Function(2, _same_type(*_WHOLE), np.left_shift),
    "shr": Function(2, _same_type(*_WHOLE), np.right_shift),
    "floor_quotient": Function(2, _same_type(*_WHOLE), _floor_quotient, simple=False),
    "floor_remainder": Function(2, _same_type(*_WHOLE), _floor_remainder, simple=False),
    "real": Function(1, _complex_part, np.real),
    "imag": Function(1, _complex_part, np.imag),
    "conj": Function(1, _same_type("complex"), np.conj),
    "sq": Function(1, _same_type(*_NUMBER), np.square),
    "abs": Function(1, _same_type(*_NUMBER), np.abs),
    "sign": Function(1, _same_type(*_NUMBER), np.sign),
    "fmax": Function(2, _same_type(*_ANY), np.maximum),
    "fmin": Function(2, _same_type(*_ANY), np.minimum),
    "join_max": Function(2, _same_type(*_NUMBER), _join_max),
    "join_min": Function(2, _same_type(*_NUMBER), _join_min),
    "rem": Function(2, _same_type(*_NUMBER), _remainder),
    "idiv": Function(2, _same_type(*_WHOLE), _quotient, simple=False),
    "fma": Function(3, _floats, _multiply_add),
    "is_finite": Function(1, _test_float, np.isfinite),
    "copysign": Function(2, _floats, np.copysign),
}
_ROUNDING: dict[str, Reference] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
    "round_away": _round_away,
}
FUNCTIONS.update({name: Function(1, _floats, reference) for name, reference in _ROUNDING.items()})
# The ops of these are logarithms with a parameter.
FUNCTIONS.update(
    log2=Function(1, _floats, np.log2, simple=False),
    log10=Function(1, _floats, np.log10, simple=False),
)
_OWN_FUNCTION = re.compile(r"(\w+)\((\{0\}(?:, \{\d\})*)\)")


def _functions_of_ops() -> Iterator[tuple[str, Function]]:
    """Yield the functions of floats that ops call by their own name in kernels, such as
    `sinh({0})`, with the NumPy reference of the op.

    Functions of ops that are loaded on first use are typed by the table of intrinsics.
    """
    imported("accnp.primitives.elementwise")
    for op in OPS.values():
        match = _OWN_FUNCTION.fullmatch(op.scalar) if isinstance(op.scalar, str) else None
        if match is None or match[1] != op.name or op.name in OPS.later:
            continue
        if set(op.dtypes) <= {"f", "c"} and has_derivative(op.jvp):
            assert op.numpy is not None
            yield op.name, Function(match[2].count("{"), _floats, op.numpy, simple=False)


FUNCTIONS_OF_OPS = {name: f for name, f in _functions_of_ops() if name not in FUNCTIONS}
FUNCTIONS.update(FUNCTIONS_OF_OPS)


for _name in KEEPS & FUNCTIONS.keys() - {"select"}:
    _function = FUNCTIONS[_name]
    FUNCTIONS[_name] = _function._replace(rule=_or_half(_function.rule))


def result_of(name: str, of: Sequence[DType]) -> DType | None:
    """Return the type of the result for operands of these types; None if they are not accepted."""
    function = FUNCTIONS.get(name)
    return function.rule(of) if function is not None and len(of) == function.arity else None


def has_vector_form(name: str, of: DType) -> bool:
    """Return whether processors have vector instructions for a function of operands of a type."""
    divides = name in ("idiv", "rem", "floordiv", "floor_quotient", "floor_remainder")
    return not (of.size == 8 and of.kind in ("int", "uint") and divides)


def identity(name: str, of: DType) -> bool | int | float:
    """Return the identity element of a reduction, which is its initial value."""
    combine = COMBINES[name]
    if of.kind == "bool" and combine.of_bools:
        combine = COMBINES[combine.of_bools]
    of_type = {"bool": bool, "float": float}.get(of.kind, int)
    return of_type(combine.identity(of.numpy))
