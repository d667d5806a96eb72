"""Expressions of `families/*.txt`, grouped by families of functions, compared with JAX.

A line is a comment or an expression over the names of the namespace, `np`, `jnp`, `jax` and arrays
that are defined above it (`X = N(3, 4)`; N draws normal numbers, `D("uint8", 3)` is an array of
numbers of a dtype, `S` of its special values). Files named `*_64` are evaluated with 64-bit types.
The results of JAX are stored in `expected/families_*.json`; `ACCNP_ORACLE=1 pytest
tests/api/test_families.py` runs JAX again.

Each expression is evaluated by the NumPy reference functions of the ops. Because kernels take long
to compile, jitted kernels evaluate a quarter of the expressions (all in `make test-full`), and
eager kernels an eighth, which must match jit bitwise. The prefix `~ ` marks expressions that need
concrete values, which jit refuses, and `! ` those that JAX refuses.
"""

import contextlib
import importlib
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from api.oracle import stored_result
from api.support import defer_computation, value_of
from sampling import in_sample

import accnp

TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-11, "complex128": 1e-11}
EXACT = ("int64", "uint64")  # whose numbers a float does not hold
FOLDER = Path(__file__).parent / "families"


def normal(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def draw_numbers(dtype, *shape):
    """Draw small numbers of a dtype, reals as multiples of 1/4, which all floating dtypes
    represent.
    """
    rng = np.random.default_rng(zlib.crc32(repr((dtype, shape)).encode()))
    kind = accnp.numpy.dtype(dtype)
    drawn = rng.integers(0 if kind.kind in "bu" else -9, 10, shape)
    if kind.kind == "b":
        return np.asarray(drawn > 4)
    if kind.kind == "c":
        return np.asarray(drawn / 4 + 0.25j * rng.integers(-9, 10, shape), kind)
    return np.asarray(drawn if kind.kind in "iu" else drawn / 4).astype(kind)


def specials(dtype):
    """Return the special values of a dtype."""
    kind = accnp.numpy.dtype(dtype)
    if kind.kind in "iu":
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        return np.array([3, high, 0, low, high - 1, 1, low + 1], kind)
    reals = np.array([1.5, np.nan, -0.0, np.inf, -2, 0.0, -np.inf, 3])
    if kind.kind != "c":
        return reals.astype(kind)
    both = np.zeros(len(reals), kind)
    both.real, both.imag = reals, reals[::-1]
    return both


def read(path):
    """Return the cases of a file, each with the definitions above it."""
    definitions = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = re.match(r"([A-Z]\w*) = (.*)", line)
        if match:
            definitions = {**definitions, match[1]: match[2]}
        else:
            yield line, definitions


LINES = [
    (path.stem, line, definitions)
    for path in sorted(FOLDER.glob("*.txt"))
    for line, definitions in read(path)
]
CASES = [pytest.param(*case, id=f"{case[0]}: {case[1]}") for case in LINES]
JITTED = [
    pytest.param(*case, id=f"{case[0]}: {case[1]}", marks=[] if small else [pytest.mark.full])
    for case in LINES
    if case[1][:2] not in ("! ", "~ ")
    for small in [in_sample(case[1], 4)]
]


def expression_scope(jax, definitions):
    """Return the names that an expression may use, for JAX or accnp."""
    jnp = importlib.import_module(f"{jax.__name__}.numpy")
    names = {
        **{n: getattr(jnp, n) for n in dir(jnp)},
        "np": np,
        "jnp": jnp,
        "jax": jax,
        "N": normal,
        "D": lambda *of: jnp.asarray(draw_numbers(*of)),
        "S": lambda dtype: jnp.asarray(specials(dtype)),
    }
    names["importlib"] = importlib
    for name, text in definitions.items():
        names[name] = eval(text, names)
    return names


def to_plain_data(x, look: Any = np.asarray) -> Any:
    """Return a result as data: arrays as (dtype, weak type, shape, values), trees as lists."""
    if isinstance(x, tuple | list):
        return [to_plain_data(v, look) for v in x]
    if x is None or isinstance(x, str | type):
        return str(x)
    if not hasattr(x, "dtype"):
        return repr(x)
    if str(x.dtype).startswith("key<"):
        jax = accnp if isinstance(x, accnp.Array) else importlib.import_module("jax")
        words = np.asarray(look(jax.random.key_data(x))).tolist()
        return {"type": [str(x.dtype), False, list(x.shape)], "values": words}
    value = np.asarray(look(x))
    kind = value.dtype.name
    if value.dtype.kind == "c":
        value = np.stack([value.real, value.imag], -1)
    values = np.asarray(value, np.float64 if kind not in EXACT else None).tolist()
    return {"type": [kind, bool(getattr(x, "weak_type", False)), list(x.shape)], "values": values}


def values_to_plain_data(x):
    return to_plain_data(x, value_of)


def evaluate(text, jax, definitions, look: Any = to_plain_data) -> Any:
    try:
        return look(eval(text, expression_scope(jax, definitions)))
    except Exception as error:
        kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
        return {"error": type(error).__name__, "builtin": kinds[0], "kinds": kinds}


def enable_wide_types(jax, family):
    """Enable 64-bit types for the families that need them."""
    return jax.enable_x64(True) if family.endswith("_64") else contextlib.nullcontext()


def run_on_jax(text, definitions, family):
    def run():
        jax = importlib.import_module("jax")
        with enable_wide_types(jax, family):
            return evaluate(text, jax, definitions)

    return run


def assert_agree(actual, expected, text):
    if isinstance(expected, list):
        assert isinstance(actual, list), text
        assert len(actual) == len(expected), text
        for a, b in zip(actual, expected, strict=True):
            assert_agree(a, b, text)
    elif isinstance(expected, dict) and "type" in expected:
        assert isinstance(actual, dict), text
        assert actual.get("type") == expected["type"], (text, actual, expected)
        assert_close(actual["values"], expected["values"], expected["type"][0], text)
    else:
        assert actual == expected, text


def assert_close(actual, expected, kind, text):
    if kind in EXACT or kind.startswith("key<"):
        np.testing.assert_array_equal(actual, expected, err_msg=text)
        return
    a, b = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    rough = TOLERANCES.get(kind, 2e-5)
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
    np.testing.assert_allclose(a, b, rtol=rough, atol=rough * 0.1 * scale, err_msg=text)


def stored_expectation(family, line, definitions):
    """Return the expression of a line, its prefix, and the stored result of JAX."""
    mark, text = (line[0], line[2:]) if line[:2] in ("! ", "~ ") else ("", line)
    expected = stored_result(
        f"families_{family}", line + repr(definitions or ""), run_on_jax(text, definitions, family)
    )
    return mark, text, expected


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize(("family", "line", "definitions"), CASES)
def test_family(family, line, definitions):
    mark, text, expected = stored_expectation(family, line, definitions)
    with enable_wide_types(accnp, family), defer_computation():
        actual = evaluate(text, accnp, definitions, values_to_plain_data)
    if mark == "!":
        assert "error" in expected, f"jax does not refuse {text}: {expected}"
        assert expected["builtin"] in actual.get("kinds", ()), (actual, expected)
        return
    assert not (isinstance(expected, dict) and "error" in expected), f"jax refuses {text}"
    assert_agree(actual, expected, text)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize(("family", "line", "definitions"), JITTED)
def test_kernels(family, line, definitions):
    _, text, expected = stored_expectation(family, line, definitions)
    with enable_wide_types(accnp, family):
        if in_sample(text, 8):
            actual = evaluate(text, accnp, definitions)
            assert_agree(actual, expected, text)
            expected = actual
        assert_agree(evaluate_jitted(text, definitions), expected, f"under jit: {text}")


def evaluate_jitted(text, definitions):
    trees = []

    def traced():
        result = eval(text, expression_scope(accnp, definitions))
        leaves, tree = accnp.tree.flatten(result)
        trees.append(tree)
        return [accnp.numpy.asarray(v) for v in leaves]

    leaves = accnp.jit(traced)()
    return to_plain_data(accnp.tree.unflatten(trees[0], leaves))
