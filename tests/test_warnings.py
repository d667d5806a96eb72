"""Warnings name the line of the user's program, not a line of accnp further down the stack."""

import ast
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import accnp as jnp
from accnp import errors, lax
from accnp.config import scope, warn_once
from accnp.experimental import sparse

PACKAGE = Path(errors.PACKAGE_DIR)
X = np.ones((3, 4), np.float32)


def test_warnings_are_issued_by_one_function_only():
    """A `stacklevel` would depend on the callers of the function that warns."""
    calls = [
        f"{file.relative_to(PACKAGE)}:{n.lineno}"
        for file in PACKAGE.rglob("*.py")
        for n in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(n, ast.Call) and ast.unparse(n.func) in ("warnings.warn", "warn_explicit")
    ]
    assert [f.rpartition(":")[0] for f in calls] == ["errors.py"]  # of threads without such a line


@jnp.jit
def traced(x):
    return x.astype("float64") + jnp.asarray(x, "int64")


def raw_key():
    with scope("legacy_prng_key", "warn"):
        return jnp.random.uniform(np.zeros(2, np.uint32))


def ranks():
    with jnp.numpy_rank_promotion("warn"):
        return jnp.add(X, X[0]), jnp.asarray(X) + X[0]


CASES = {
    "dtype of zeros": lambda: jnp.zeros(3, "float64"),
    "dtype of arange": lambda: jnp.arange(3, dtype=np.int64),
    "dtype of array": lambda: jnp.array([1, 2], dtype="int64"),
    "dtype of a method": lambda: jnp.asarray(X).astype("float64"),
    "dtype of a sum": lambda: jnp.sum(X, dtype="float64"),
    "dtype of a cumulative sum": lambda: jnp.asarray(X).cumsum(0, dtype="float64"),
    "dtype under jit": lambda: traced(X),
    "dtype under vmap": lambda: jnp.vmap(lambda x: x.astype("float64"))(X),
    "dtype in a loop": lambda: lax.fori_loop(0, 2, lambda i, x: x + jnp.zeros(4, "float64"), X),
    "dtype of random numbers": lambda: jnp.random.normal(jnp.random.key(0), (3,), "float64"),
    "convert_element_type": lambda: lax.convert_element_type(X + 1j, np.float32),
    "complex parts": lambda: jnp.asarray(X[0] + 1j).astype(np.float32),
    "scatter": lambda: jnp.arange(3).at[0].set(1.5),
    "scatter by add": lambda: jnp.arange(3).at[jnp.array([0])].add(1.5),
    "one_hot": lambda: jnp.nn.one_hot(X[0], 3),
    "shape of a list": lambda: jnp.shape([1, 2]),
    "positional": lambda: jnp.array([1, 2], None, True),
    "donated": lambda: jnp.jit(lambda x: x.sum(), donate_argnums=0)(jnp.asarray(X) + 0).item(),
    "keys": raw_key,
    "ranks": ranks,
    "segments": lambda: jnp.scipy.signal.welch(X[0], nperseg=100),
    "eig": lambda: lax.linalg.eig(np.eye(3, dtype="f4"), use_magma=False),
    "sparse": lambda: sparse.bcoo_update_layout(
        sparse.BCOO.fromdense(X), n_batch=1, on_inefficient="warn"
    ),
    "overflow of a scalar": lambda: jnp.float16(70000.0),
    "overflow of a list": lambda: jnp.array([80000.0, 1], "float16"),
    "ignored option": lambda: warn_once("an option", "name for a test"),
}


@pytest.mark.parametrize("case", CASES)
def test_warnings_name_the_users_line(case):
    traced.clear_cache()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[case]()
    assert caught
    assert {w.filename for w in caught} == {__file__}, [str(w.message) for w in caught]
    lines = Path(__file__).read_text(encoding="utf-8").split("\n")
    for w in caught:
        assert "def " not in lines[w.lineno - 1]


def test_a_filter_can_name_the_users_module():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        jnp.zeros(3, "float64")
    assert sys.modules[__name__]


def test_numpys_settings_apply_to_overflows():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(over="ignore"):
            assert jnp.float16(1e5) == np.inf
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            jnp.float16(1.1e5)
