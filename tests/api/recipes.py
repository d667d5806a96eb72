"""Recipes: how each function of the tables is called, and the test cases that follow from them.

The recipes are in `values/*.txt`, a file for each namespace (`scipy.stats` includes `norm.cdf`). A
line is

    names | arguments | parameter=value / value; parameter=value

The arguments name operands by letters (see `OPERAND_LETTERS`); the generator draws them in every
layout and dtype. Parameters of the signature that the line leaves out take the values of
`DEFAULT_PARAMETER_VALUES`.

A line that begins with `few | `, `single | ` or `fewest | ` draws fewer layouts and dtypes: its
functions take long to compile. Those of `single | ` and `fewest | ` have no pairs of parameters,
and those of `single | ` special values for one operand only, as parameters of distributions are
not all numbers. A name with several lines has the cases of all.

`cases(name)` returns the cases of a function; `compiled_cases(name)` returns those that
are compiled as one program and mapped.
"""

from __future__ import annotations

import ast
import itertools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from api.test_names import NAMES, parse_signature

FOLDER = Path(__file__).parent / "values"

# What an operand holds: any numbers, numbers above 0, within (-1, 1), whole numbers, truth values,
# the words of a random key.
ANY_NUMBER, POSITIVE, UNIT_INTERVAL, INTEGER, BOOLEAN, KEY = (
    "any",
    "above",
    "unit",
    "whole",
    "truth",
    "key",
)
# A letter is its contents and its shape in each layout.
GRID_SHAPES = {
    "base": (2, 3), "point": (), "empty": (0, 3), "line": (7,), "cube": (2, 3, 2),
    "turned": (2, 3), "strided": (2, 3),
}  # fmt: skip
VECTOR_SHAPES = {
    "base": (5,), "point": (), "empty": (0,), "line": (1,), "cube": (2, 5),
    "turned": (5,), "strided": (5,),
}  # fmt: skip
MATRIX_SHAPES = {
    "base": (3, 2), "point": (), "empty": (0, 2), "line": (3,), "cube": (2, 3, 2),
    "turned": (3, 2), "strided": (3, 2),
}  # fmt: skip
SQUARE_SHAPES = {
    "base": (3, 3), "point": (), "empty": (0, 0), "line": (3,), "cube": (2, 3, 3),
    "turned": (3, 3), "strided": (3, 3),
}  # fmt: skip
OPERAND_LETTERS = {
    **dict.fromkeys("ABC", (ANY_NUMBER, GRID_SHAPES)),
    **dict.fromkeys("PQR", (POSITIVE, GRID_SHAPES)),
    **dict.fromkeys("UW", (UNIT_INTERVAL, GRID_SHAPES)),
    **dict.fromkeys("IJ", (INTEGER, GRID_SHAPES)),
    **dict.fromkeys("KL", (BOOLEAN, GRID_SHAPES)),
    **dict.fromkeys("VX", (ANY_NUMBER, VECTOR_SHAPES)),
    "Y": (POSITIVE, VECTOR_SHAPES),
    "N": (INTEGER, VECTOR_SHAPES),
    **dict.fromkeys("MD", (ANY_NUMBER, MATRIX_SHAPES)),
    "S": ("regular", SQUARE_SHAPES),  # well conditioned
    "H": ("positive", SQUARE_SHAPES),  # Hermitian, positive definite
    "T": ("lower", SQUARE_SHAPES),  # triangular, well conditioned
    "Z": (KEY, dict.fromkeys(GRID_SHAPES, (2,))),
}
DEFAULT_DTYPES = {INTEGER: "int32", BOOLEAN: "bool"}
NARROW_DTYPES = (
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16",
    "float32", "complex64",
)  # fmt: skip
WIDE_DTYPES = ("int64", "uint64", "float64", "complex128")
LIMITED_VARIANTS = {
    "few": {
        "base", "point", "empty", "cube", "turned", "spread", "special", "mixed", "scalar",
        "int32", "bfloat16", "float32", "complex64", "float64",
    },
    "single": {
        "base", "point", "empty", "cube", "spread", "special", "mixed", "scalar",
        "bool", "int32", "bfloat16", "float32", "complex64", "float64",
    },
    "fewest": {"base", "cube", "special", "bfloat16", "float32", "float64"},
}  # fmt: skip
# The layouts and dtypes in which each function is compiled and mapped: compiling takes most of the
# time of these tests. Functions of `VARIED_NAMESPACES` also have others (`_additional_variants`).
# Those are the work of
# the kernels of ops, which tests/primitives and tests/compiler/library have in all of them.
VARIED_NAMESPACES = {"numpy", "numpy.linalg", "nn"}
COMPILED_VARIANTS = {
    "base", "cube", "turned", "special", "int32", "bfloat16", "float32", "complex64", "float64",
}  # fmt: skip
# What goes for parameters everywhere; a line of a recipe says otherwise where that makes no sense.
DEFAULT_PARAMETER_VALUES = {
    "axis": "0 / -1 / None / (1, 0) / 3",
    "keepdims": "True",
    "where": "np.array([[True, False, True], [False, True, True]]) / np.array([True, False, True])",
    "initial": "2",
    "dtype": "'float32' / 'int32' / 'complex64' / 'bfloat16'",
    "promote_integers": "False",
    "ddof": "1",
    "correction": "1",
    "precision": "'highest' / lax.Precision.HIGH",
    "preferred_element_type": "np.dtype('float32')",
    "rtol": "0.1",
    "atol": "0.5",
    "equal_nan": "True",
    "size": "4",
    "fill_value": "9",
    "order": "None",
    "copy": "True",
    "deg": "True",
    "overwrite_input": "False",
    "method": "'lower' / 'higher' / 'midpoint' / 'nearest'",
    "mode": "'same' / 'valid' / 'full'",
}
# Parameters without effect on values: one case each, no pairs.
INERT_PARAMETERS = {
    "overwrite_a": "True", "overwrite_b": "True", "overwrite_c": "True", "overwrite_data": "True",
    "check_finite": "False", "turbo": "False", "debug": "True", "lwork": "3",
}  # fmt: skip
# Refused when given (`test_out_is_refused`), or without a meaning on one machine.
SKIPPED_PARAMETERS = {"out", "device", "out_sharding"}


class CallLike(Protocol):
    """The attributes of a call that `Case` and the random calls of `tests/sweep` have in common."""

    @property
    def arguments(self) -> str: ...
    @property
    def layout(self) -> str: ...
    def operands(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Case:
    """One call: the layout and dtypes of its operands, and further arguments as source text."""

    text: str  # of the arguments
    layout: str
    dtype: str  # of the operands that have no dtype of their own; "mixed", "scalar"
    more: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        more = ", ".join(f"{k}={v}" for k, v in self.more)
        return f"({self.text}{', ' if more else ''}{more}) {self.layout} {self.dtype}"

    @property
    def arguments(self) -> str:
        return ", ".join([self.text, *(f"{k}={v}" for k, v in self.more)]).strip(", ")

    def operands(self) -> dict[str, Any]:
        return operands(self)


def operand_letters(text: str) -> list[str]:
    """Return the operand letters that a text contains, in alphabetical order."""
    return sorted(set(re.findall(r"(?<![\w.'\"])([A-Z])(?![\w'\"])", text)) & set(OPERAND_LETTERS))


@cache
def recipes() -> dict[str, list[tuple[str, dict[str, list[str]], str]]]:
    """Return the recipe lines of each name: the arguments, the values of parameters, and the
    keyword that limits the cases.
    """
    by_function: dict[str, list[tuple[str, dict[str, list[str]], str]]] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            first, _, others = line.partition(" | ")
            many = first if first in LIMITED_VARIANTS else ""
            names, text, *rest = (p.strip() for p in (others if many else line).split(" | "))
            values = {}
            for part in "".join(rest).split("; ") if rest else ():
                parameter, _, choices = part.partition("=")
                values[parameter.strip()] = [v.strip() for v in choices.split(" / ")]
            for name in names.split():
                by_function.setdefault(f"{path.stem}.{name}", []).append((text, values, many))
    return by_function


def recipe_file_of(name: str) -> str | None:
    """Return the recipe file of a name: that of its namespace, or of an enclosing one."""
    prefixes = [p.stem for p in FOLDER.glob("*.txt") if name.startswith(f"{p.stem}.")]
    return max(prefixes, key=len, default=None)


def optional_parameters(name: str) -> list[str]:
    """Return the optional parameters of the signature, without those that accnp refuses."""
    _, signature = NAMES[name]
    if not signature or signature in ("(*args, **kwargs)", "(*args, out=None, where=None)"):
        return []
    declared = parse_signature(signature)
    return [
        p
        for p, (way, default) in declared.items()
        if default is not None and p not in SKIPPED_PARAMETERS and not p.startswith("_")
    ]


@cache
def cases(name: str) -> tuple[Case, ...]:
    """Return the calls of a function: all layouts and dtypes, each parameter, and pairs of
    parameters.
    """
    lines = recipes()[name]
    all_cases = itertools.chain(
        *(filter(partial(_is_included, many=m), _recipe_cases(name, t, g, m)) for t, g, m in lines)
    )
    return tuple(dict.fromkeys(all_cases))


@cache
def compiled_cases(name: str) -> frozenset[Case]:
    """Return the cases that are compiled as one program, mapped, and differentiated.

    Each case sets at most one parameter, and adds a text, parameter, layout or dtype that no
    preceding case has.
    """
    chosen: set[Case] = set()
    variants = COMPILED_VARIANTS | (
        _additional_variants(name) if recipe_file_of(name) in VARIED_NAMESPACES else set()
    )
    had: set[str] = set()
    for case in cases(name):
        parts = {case.text, case.layout, case.dtype, *(p for p, _ in case.more)}
        if len(case.more) < 2 and {case.layout, case.dtype} <= variants and not parts <= had:
            chosen.add(case)
            had |= parts
    return frozenset(chosen)


def _additional_variants(name: str) -> set[str]:
    """Return one layout and two dtypes, selected by the name, that are compiled for this function
    only.
    """
    turn = zlib.crc32(name.encode())
    layouts = sorted({*GRID_SHAPES, "spread"} - COMPILED_VARIANTS)
    dtypes = sorted({*NARROW_DTYPES, *WIDE_DTYPES, "mixed", "scalar"} - COMPILED_VARIANTS)
    places = (turn // 8 % len(dtypes), (turn // 8 + len(dtypes) // 2) % len(dtypes))
    return {layouts[turn % len(layouts)], *(dtypes[i] for i in places)}


def _is_included(case: Case, many: str) -> bool:
    """Return whether a recipe line with the keyword `many` includes a case."""
    return not many or {case.layout, case.dtype} <= LIMITED_VARIANTS[many]


def _recipe_cases(
    name: str, text: str, specified: dict[str, list[str]], many: str
) -> Iterator[Case]:
    single, costly = many == "single", many in ("single", "fewest")
    letters = [x for x in operand_letters(text) if OPERAND_LETTERS[x][0] != KEY]
    contents = {OPERAND_LETTERS[x][0] for x in letters}
    natural = "int32" if contents <= {INTEGER, BOOLEAN} and letters else "float32"
    yield Case(text, "base", natural)
    if letters:
        for layout in GRID_SHAPES:
            yield Case(text, layout, natural)
        if len(letters) > 1:
            yield Case(text, "spread", natural)
        for dtype in (*NARROW_DTYPES, *WIDE_DTYPES):
            yield Case(text, "base", dtype)
        if len(letters) > 1:
            yield Case(text, "base", "mixed")
            yield Case(text, "base", "scalar")
        grids = all(OPERAND_LETTERS[x][1] is GRID_SHAPES for x in operand_letters(text))
        if (
            contents <= {ANY_NUMBER, POSITIVE, UNIT_INTERVAL, INTEGER}
            and grids
            and not (single and len(letters) > 1)
        ):
            kinds = ("float32", "bfloat16", "int32") if natural == "float32" else ("int32",)
            for dtype in kinds[:1] if costly else kinds:
                yield Case(text, "special", dtype)
    elif operand_letters(text):
        yield Case(text, "base", "float64")
    positional = {p for p in optional_parameters(name) if f"{p}=" in text}
    choices = {
        p: specified.get(p) or (INERT_PARAMETERS.get(p) or DEFAULT_PARAMETER_VALUES[p]).split(" / ")
        for p in dict.fromkeys(
            [*optional_parameters(name), *(g for g in specified if accepts_parameter(name, g))]
        )
        if p not in positional
        and (p in specified or p in INERT_PARAMETERS or p in DEFAULT_PARAMETER_VALUES)
        and not is_passed_by_position(name, text, p)
    }
    for p, values in choices.items():
        for value in values:
            yield Case(text, "base", natural, ((p, value),))
    paired = [p for p in choices if p not in INERT_PARAMETERS and not costly]
    for p, q in itertools.combinations(paired, 2):
        yield Case(text, "base", natural, ((p, choices[p][0]), (q, choices[q][0])))


def accepts_parameter(name: str, parameter: str) -> bool:
    """Return whether a function accepts a parameter, by name or by `**kwargs`."""
    declared = parse_signature(NAMES[name][1] or "()")
    return parameter in declared or "VAR_KEYWORD" in {way for way, _ in declared.values()}


def is_passed_by_position(name: str, text: str, parameter: str) -> bool:
    """Return whether a parameter is already passed by position."""
    places = [p for p, (way, _) in parse_signature(NAMES[name][1]).items() if way != "KEYWORD_ONLY"]
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return parameter in places[: len(call.args)]


def dtype_of(letter: str, case: Case, number: int) -> str:
    """Return the dtype of an operand: that of the case, except for boolean and integer operands."""
    contents = OPERAND_LETTERS[letter][0]
    if contents in (BOOLEAN, KEY):
        return "bool" if contents == BOOLEAN else "uint32"
    if contents == INTEGER and np.dtype(_numpy_dtype(case.dtype)).kind not in "iu":
        return "int32"
    if case.dtype == "mixed":
        return ("float32", "int32", "bfloat16")[number % 3]
    return "float32" if case.dtype == "scalar" else case.dtype


def _numpy_dtype(dtype: str) -> Any:
    return {"bfloat16": ml_dtypes.bfloat16, "mixed": "f4", "scalar": "f4"}.get(dtype, dtype)


def operands(case: Case) -> dict[str, Any]:
    """Return the operands of a case as NumPy arrays, or as Python numbers in the scalar cases."""
    values = {}
    everything = " ".join([case.text, *(v for _, v in case.more)])
    for number, letter in enumerate(operand_letters(everything)):
        if case.dtype == "scalar" and number and OPERAND_LETTERS[letter][0] != KEY:
            values[letter] = {INTEGER: 2, BOOLEAN: True}.get(OPERAND_LETTERS[letter][0], 0.5)
        else:
            values[letter] = _make_array(letter, case, number)
    return values


def _make_array(letter: str, case: Case, number: int) -> np.ndarray:
    contents, shapes = OPERAND_LETTERS[letter]
    dtype = np.dtype(_numpy_dtype(dtype_of(letter, case, number)))
    if contents == KEY:
        return np.array([7, 11], dtype)
    if case.layout == "special":
        values = special_values(dtype)
        pairs = np.stack(np.broadcast_arrays(values, values[:, None]))
        return np.ascontiguousarray(pairs[number % 2])
    shape = shapes["base" if case.layout == "spread" else case.layout]
    if case.layout == "spread" and len(shape) > 1:
        shape = ((shape[0], 1), (shape[1],), ())[number % 3] if shapes is GRID_SHAPES else shape
    if case.layout == "turned" and len(shape) > 1:
        drawn = draw_numbers(contents, dtype, shape[::-1], letter)
        return drawn.T if contents != "lower" else np.asarray(drawn.T[::-1, ::-1])
    if case.layout in ("strided", "turned") and shape:
        whole = np.zeros([2 * n + 1 for n in shape], dtype)
        view = whole[tuple(slice(2 * n - 1, None, -2) for n in shape)]
        view[...] = draw_numbers(contents, dtype, shape, letter)
        return view
    return draw_numbers(contents, dtype, shape, letter)


def draw_numbers(contents: str, dtype: np.dtype, shape: tuple[int, ...], letter: str) -> np.ndarray:
    """Draw numbers of a dtype that are multiples of 1/8, which all floating dtypes represent."""
    rng = np.random.default_rng(zlib.crc32(repr((contents, shape, letter)).encode()))
    kind = dtype.kind if dtype.name != "bfloat16" else "f"
    eighths = rng.integers(-36, 37, shape)
    if contents == BOOLEAN or kind == "b":
        return np.asarray(eighths > 0).astype(dtype)
    if contents in ("regular", "positive", "lower") and len(shape) > 1:
        return _make_matrix(contents, dtype, shape, eighths)
    if contents == POSITIVE:
        eighths = np.abs(eighths) + 1
    elif contents == UNIT_INTERVAL:
        eighths = eighths % 15 - 7
    elif kind == "u":
        eighths = np.abs(eighths)
    if kind in "iu":
        values = eighths if contents == UNIT_INTERVAL else -(-eighths // 8)
        return np.asarray(values).astype(dtype)
    values = eighths / 8.0
    if kind == "c":
        values = values + 1j * rng.integers(-7, 8, shape) / 8.0
    return np.asarray(values).astype(dtype)


def _make_matrix(
    contents: str, dtype: np.dtype, shape: tuple[int, ...], eighths: Any
) -> np.ndarray:
    n = shape[-1]
    full = eighths % 9 - 4 + 0j if dtype.kind == "c" else eighths % 9 - 4
    if dtype.kind == "c":
        full = full + 0.5j * (eighths % 5 - 2)
    if contents == "positive":
        full = full @ np.conj(np.swapaxes(full, -1, -2)) + 4 * np.eye(n)
    else:
        full = full + 16 * np.eye(n)
    if contents == "lower":
        full = np.tril(full)
    full = full if dtype.kind in "iu" else full / 8
    return np.asarray(full).astype(dtype)


def special_values(dtype: np.dtype) -> np.ndarray:
    """Return the special values of a dtype. JAX treats subnormal numbers as 0."""
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([low, low + 1, -1 % (high + 1) if low == 0 else -1, 0, 1, 2, high], dtype)
    limits = ml_dtypes.finfo(dtype)
    chosen = [-np.inf, -2.5, -1, -0.0, 0.0, 1, 3, np.inf, np.nan]
    return np.array([*chosen, -limits.tiny, limits.max, 0.5], dtype)
