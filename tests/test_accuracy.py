"""Errors of elementwise functions stay within the limits on the accuracy page (for a sample of
arguments).
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import accnp
from benchmarks import accuracy_every
from benchmarks.accuracy import (
    TABLE,
    bar,
    errors,
    one_number,
    subnormal_points,
    worst_arguments,
)
from benchmarks.accuracy_case import BAR
from benchmarks.accuracy_cases import all_cases

CASES = all_cases()
NAMES = Path(__file__).parent / "api" / "names.tsv"

# Names in lax of functions that are measured under another name.
CALLED = {
    "erf_inv": "erfinv", "lgamma": "gammaln", "igamma": "gammainc", "igammac": "gammaincc",
    "bessel_i0e": "i0e", "bessel_i1e": "i1e", "sub": "subtract", "expit": "logistic",
    "div": "divide", "rem": "fmod", "pow": "power", "acos": "arccos", "acosh": "arccosh",
    "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "degrees": "rad2deg", "radians": "deg2rad", "mod": "remainder",
    "true_divide": "divide",
}  # fmt: skip

# Floating functions that are not measured, and why.
EXACT_NAMES = """abs absolute ceil conj conjugate copysign fabs floor floor_divide fmax fmin
heaviside max maximum min minimum neg nextafter positive rint sign spacing trunc flipud
stop_gradient stage"""
EXACT = "gives an argument, its sign, or a whole number: exact, compared bit for bit elsewhere"
NOT_MEASURED = {
    **dict.fromkeys(EXACT_NAMES.split(), EXACT),
    "igamma_grad_a": "a derivative, by differences in tests of gradients",
    "random_gamma_grad": "a derivative, by differences in tests of gradients",
    "bernoulli": "a table of SciPy's",
    "dot_product_attention": "products of matrices",
    "scaled_dot_general": "products of matrices",
    "scaled_matmul": "products of matrices",
    "get_scaled_dot_general_config": "a description",
    "one_hot": "zeros and ones",
    "standardize": "a sum over a row that cancels at its mean",
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_error(case, dtype):
    maxima = errors(case, dtype, 48, jax=False)
    assert maxima["accnp"] <= max(bar(case, maxima), case.allowed), maxima


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_at_subnormal_numbers(dtype):
    """For functions of one number that are cheap to evaluate in mpmath; the table lists the tanh
    form of gelu as "over"."""
    over = {}
    for case in CASES:
        cheap = case.share <= 2 and case.label != "nn.gelu"
        xs = subnormal_points(case, dtype) if cheap else None
        if xs:
            maxima = errors(case, dtype, 0, jax=False, xs=[x[::2] for x in xs])
            if maxima["accnp"] > bar(case, maxima):
                over[case.label] = maxima
    assert not over


def test_table_has_every_function():
    with TABLE.open(newline="", encoding="utf-8") as file:
        notes = {row["function"]: row["note"] for row in csv.DictReader(file)}
    for case in CASES:
        assert not notes[case.label] or case.allowed


def is_elementwise(module, name, signature):
    """Return whether a function takes only floating-point arrays and returns floats of
    their shape."""
    names = re.findall(r"(?:^|, )(x|y|x1|x2|a|b|q|m)(?=,|$)", signature.split(", *")[0])
    plain = re.fullmatch(r"(x|y|x1|x2|a|b|q|m|, |/|\*, accuracy=None|\*args|out=None|where=None)*",
                         signature)  # fmt: skip
    if plain is None:
        return False
    count = 2 if "*args" in signature else len(names)
    try:
        result = getattr(module, name)(*[np.array([0.25, 0.5, 0.75], np.float32)] * count)
        return result.shape == (3,) and result.dtype == np.float32
    except Exception:  # refuses floats: bits, matrices
        return False


def expected():
    for line in NAMES.read_text().splitlines():
        path, kind, signature, *_ = (*line.split("\t"), "", "")
        place, _, name = path.rpartition(".")
        if kind not in ("function", "ufunc"):
            continue
        where = {"numpy": accnp, "lax": accnp.lax}.get(place)
        is_covered = where and is_elementwise(where, name, signature.strip("()"))
        if is_covered or place in ("scipy.special", "nn"):
            yield path


def function(path):
    value = accnp
    for part in path.removeprefix("numpy.").split("."):
        value = getattr(value, part)
    return value


def test_every_function_is_measured():
    measured = {case.name for case in CASES}
    last = {name.rpartition(".")[2] for name in measured}
    functions = [function(name) for name in measured]
    names = list(expected())
    missing = [
        path
        for path in names
        if (name := path.rpartition(".")[2]) not in NOT_MEASURED
        and path not in measured
        and CALLED.get(name, name) not in last
        and not any(function(path) is f for f in functions)
    ]
    assert not missing
    assert len(names) > 120
    known = {path.rpartition(".")[2] for path in names}
    assert not [name for name in (*NOT_MEASURED, *CALLED) if name not in known]


def test_every_argument_is_measured():
    """A wrong value at one argument of the examined chunks is found, with the argument."""
    (case,) = [c for c in CASES if c.label == "exp"]

    def faulty(f):
        return lambda x: accnp.numpy.where(x == 3.5, f(x) * 1.000001, f(x)).astype(x.dtype)

    stride = 0x406  # of chunks: that of 3.5 is the next one that is looked at after the first
    (sound, _), _ = accuracy_every.largest_errors(case, stride)
    faults = case._replace(form=lambda f: lambda x: faulty(f)(x) if x.dtype == "float32" else f(x))
    (error, place), _ = accuracy_every.largest_errors(faults, stride)
    assert sound < 1.2
    assert place == 3.5
    assert error > 5


def test_worst_arguments_are_within_the_bars():
    """The stored worst float32 arguments, each of a function of the table."""
    cases = {case.label: case for case in CASES if one_number(case)}
    for label, places in worst_arguments().items():
        for place in places:
            assert place == "-" or float(place.split()[1]) <= BAR[cases[label].kind], label
