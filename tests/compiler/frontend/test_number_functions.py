"""Functions of accnp and NumPy in functions of numbers: each has the values of the function on
arrays, for every type and both settings of `enable_x64`.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accnp as jnp
import accnp.numpy
import accnp.scipy.special
from accnp import lax
from accnp.api.kernels.texts import ScalarText

ONE = [
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "cbrt",
    "square",
    "reciprocal",
    "sign",
    "absolute",
    "fabs",
    "negative",
    "positive",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "logical_not",
    "invert",
    "deg2rad",
    "rad2deg",
    "degrees",
    "radians",
]
TWO = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "floor_divide",
    "remainder",
    "mod",
    "fmod",
    "power",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "copysign",
    "nextafter",
    "logaddexp",
    "logaddexp2",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "gcd",
    "lcm",
]
OF_LAX = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "lgamma",
    "log",
    "log1p",
    "nextafter",
    "reciprocal",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
]
FLOATS = [-2.5, -1.5, -0.5, -0.0, 0.0, 0.25, 0.5, 0.49999997, 1.0, 1.5, 2.5, 7.0, np.inf, np.nan]
WITH = [-2.0, 2.0, 0.5, 3.0, -3.0, -1.0, 1.5, 2.0, 0.25, -3.0, 2.0, 2.5, 3.0, 1.0]
INTEGERS, DIVISORS = [-7, -7, 7, 7, -1, 0, 1, 2, 5, 9], [-2, 2, -2, 2, 5, 3, 1, 2, -4, 2]
UNSIGNED, UNSIGNED_DIVISORS = [0, 1, 2, 5, 7, 100, 128, 200, 255], [2, 3, 1, 2, 5, 7, 9, 1, 4]
TYPES = ["int32", "int64", "uint8", "float32", "float64"]


def operands(dtype: str, count: int) -> list[np.ndarray]:
    table = {"f": (FLOATS, WITH), "i": (INTEGERS, DIVISORS), "u": (UNSIGNED, UNSIGNED_DIVISORS)}
    return [np.array(x, dtype) for x in table[np.dtype(dtype).kind][:count]]


CASES = [
    *[("np", accnp.numpy, name, 1) for name in [*ONE, "round"]],
    *[("np", accnp.numpy, name, 2) for name in TWO],
    *[("lax", lax, name, 2 if name in TWO or name in ("atan2", "nextafter") else 1)
      for name in OF_LAX],
    *[("special", accnp.scipy.special, name, 1) for name in ("erf", "erfc", "gamma", "gammaln")],
    *[("NumPy", np, name, 2) for name in ("fmod", "maximum", "minimum", "add")],
    *[("NumPy", np, name, 1) for name in ("sign", "floor", "exp", "square")],
]  # fmt: skip


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    ("module", "name", "count"),
    [case[1:] for case in CASES],
    ids=[f"{home}-{name}" for home, _, name, _ in CASES],
)
def test_values_match_array_functions(module: ModuleType, name: str, count: int, x64: bool) -> None:
    f, compared = getattr(module, name), 0
    one, two = lambda v: f(v), lambda v, w: f(v, w)
    kernel = jnp.kernel(one if count == 1 else two)
    with jnp.enable_x64(x64), np.errstate(all="ignore"):
        for dtype in TYPES:
            if not x64 and dtype in ("int64", "float64"):
                continue
            arrays = operands(dtype, count)
            if name in ("power", "left_shift", "right_shift", "gcd", "lcm"):
                arrays[1] = abs(arrays[1])  # negative exponents and shifts have no meaning
            xs = arrays if module is np else [jnp.asarray(x) for x in arrays]
            try:
                expected = np.asarray(f(*xs))
            except (TypeError, ValueError):
                continue  # a function of other types
            result = kernel(*xs)
            if expected.dtype == np.float16:
                continue  # NumPy's results for uint8; those of kernels are float32
            # A float64 that a float32 cannot hold is infinite there.
            actual = (
                np.asarray(result).astype(expected.dtype) if expected.dtype.kind == "f" else result
            )
            kinds = {np.dtype(dtype).kind, expected.dtype.kind}
            if kinds == {"f"} and module is not np:
                assert result.dtype == expected.dtype
            assert result.dtype.kind == expected.dtype.kind
            np.testing.assert_allclose(
                np.asarray(actual, float), np.asarray(expected, float), rtol=2e-5, atol=1e-6
            )
            compared += 1
    assert compared


def test_zeros_keep_their_signs() -> None:
    x = jnp.asarray([-0.0, 0.0, -0.3, 0.3], jnp.float32)
    for f in (lambda v: lax.round(v), lambda v: jnp.round(v), lambda v: jnp.fmod(v, v + v - v - 4)):
        np.testing.assert_array_equal(np.signbit(jnp.kernel(f)(x)), np.signbit(f(x)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: lax.round(v, 1), "lax.round takes one number"),
        (lambda v: lax.conj(v), "a function of arrays"),
        (lambda v: jnp.spacing(v), "a function of arrays"),
        (lambda v: lax.reduce_precision(v, 5, 2), "a function of arrays"),
    ],
)
def test_functions_with_different_semantics_are_refused(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jnp.kernel(function)


def test_a_function_of_the_user_is_not_taken_for_one_of_accnp() -> None:
    def sin(v):
        return v + 1

    def round(v):
        return v * 2

    np.testing.assert_array_equal(jnp.kernel(lambda v: sin(v) + round(v))(jnp.ones(2)), [4, 4])


def renamed(np, np_, range):
    math = jnp.sin(np) + np_
    for numpy in jnp_range(3):
        math += numpy * 0
    return math + min(range, 0.0)


jnp_range = range


def test_variables_with_the_names_of_modules() -> None:
    x = jnp.asarray([0.5, 1.5], jnp.float32)
    np.testing.assert_allclose(jnp.kernel(renamed)(x, x, x), np.sin(x) + x, rtol=1e-6)

    def local(x):
        np = x * 2
        math = jnp.exp(np)
        return math

    np.testing.assert_allclose(jnp.kernel(local)(x), np.exp(2 * np.asarray(x)), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("f = lambda a: a + 1\n", "f = lambda a: a + 2\n"),
        ("f = lambda a: np.sin(a)\n", "f = lambda a: np.cos(a)\n"),
        ("def f(a):\n    return a + 1\n", "def f(a):\n    return a - 1\n"),
        ("def f(a):\n    return a + 1\n", "def f(a):\n    return a + 1.0\n"),
        ("def f(a):\n    b = a\n    return b\n", "def f(a):\n    b = 2\n    return b\n"),
    ],
)
def test_an_edited_file_is_an_error(text: str, edited: str, tmp_path: Any) -> None:
    file = tmp_path / "edited_functions.py"
    scope: dict[str, Callable[..., Any]] = {}
    file.write_text(text)
    exec(compile("import numpy as np; " + text if text[0] == "f" else text, file, "exec"), scope)
    if text[0] != "f":
        assert jnp.kernel(scope["f"])(jnp.ones(2)).shape == (2,)
    file.write_text(edited)
    linecache.checkcache(str(file))
    with pytest.raises(ValueError, match=r"its (file has changed|source is not available)"):
        jnp.kernel(scope["f"])


def test_closures_and_methods_are_recognized_as_unchanged() -> None:
    scale, shift = 2.0, 1.0

    def inner(v):
        """A text.

        With lines.
        """
        return v * scale + shift if v > sys.maxsize * 0 else jnp.where(v > 0, v, -shift)

    np.testing.assert_array_equal(jnp.kernel(inner)(jnp.asarray([-1.0, 2.0])), [-1, 5])


def calls_itself(x):
    return calls_itself(x - 1) if x > 0 else 0.0


def test_recursive_functions_are_recognized_as_unchanged() -> None:
    def of_a_test(x):
        return of_a_test(x - 1) if x > 0 else 0.0

    for f in (calls_itself, of_a_test):
        assert ScalarText(f).name.startswith(f.__name__)
