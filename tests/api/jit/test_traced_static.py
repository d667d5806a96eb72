"""Traced values and arrays in place of static arguments, compared with JAX.

Functions that JAX jits raise a ValueError for a traced value, others raise one of the errors about
traced values or a TypeError. The error that accnp raises is an instance of all these classes.
"""

import importlib

import jax
import numpy as np
import pytest

import accnp
from accnp import errors

X = np.linspace(0.1, 0.9, 9, dtype=np.float32).reshape(3, 3)
KEY = "key"

# (function, arguments, name of the static one, a value that it accepts)
CALLS = [
    ("numpy.tril", (X,), "k", 0),
    ("numpy.triu", (X,), "k", 1),
    ("numpy.diag", (X,), "k", 0),
    ("numpy.diagonal", (X,), "offset", 0),
    ("numpy.trace", (X,), "axis1", 0),
    ("numpy.cumsum", (X,), "axis", 0),
    ("numpy.cumulative_sum", (X,), "axis", 0),
    ("numpy.sum", (X,), "axis", 0),
    ("numpy.sum", (X,), "keepdims", True),
    ("numpy.mean", (X,), "axis", 0),
    ("numpy.var", (X,), "keepdims", True),
    ("numpy.argmax", (X,), "axis", 0),
    ("numpy.argmax", (X,), "keepdims", True),
    ("numpy.argsort", (X,), "axis", 0),
    ("numpy.argsort", (X,), "descending", True),
    ("numpy.sort", (X,), "axis", 0),
    ("numpy.partition", (X, 1), "axis", 0),
    ("numpy.median", (X,), "axis", 0),
    ("numpy.nanmax", (X,), "axis", 0),
    ("numpy.round", (X,), "decimals", 1),
    ("numpy.flip", (X,), "axis", 0),
    ("numpy.roll", (X, 1), "axis", 0),
    ("numpy.rot90", (X,), "k", 1),
    ("numpy.swapaxes", (X, 0), "axis2", 1),
    ("numpy.expand_dims", (X,), "axis", 0),
    ("numpy.stack", ((X, X),), "axis", 0),
    ("numpy.concatenate", ((X, X),), "axis", 0),
    ("numpy.split", (X, 3), "axis", 0),
    ("numpy.take", (X, np.array([0])), "axis", 0),
    ("numpy.diff", (X,), "n", 1),
    ("numpy.diff", (X,), "axis", 0),
    ("numpy.cross", (X, X), "axis", 0),
    ("numpy.angle", (X,), "deg", True),
    ("numpy.cov", (X,), "rowvar", True),
    ("numpy.linspace", (0, 1), "endpoint", True),
    ("numpy.isclose", (X, X), "equal_nan", True),
    ("numpy.reshape", (X,), "shape", 9),
    ("numpy.zeros", (), "shape", 3),
    ("numpy.linalg.norm", (X,), "axis", 0),
    ("numpy.linalg.cond", (X,), "p", 2),
    ("numpy.linalg.svd", (X,), "full_matrices", True),
    ("numpy.linalg.matrix_power", (X,), "n", 2),
    ("numpy.linalg.vecdot", (X, X), "axis", 0),
    ("lax.cumsum", (X,), "axis", 0),
    ("lax.sort", (X,), "dimension", 0),
    ("lax.top_k", (X, 2), "axis", 0),
    ("lax.linalg.qr", (X,), "full_matrices", True),
    ("numpy.intersect1d", (X, X), "size", 3),
    ("numpy.setxor1d", (X, X), "size", 3),
    ("nn.softmax", (X,), "axis", 0),
    ("nn.standardize", (X,), "axis", 0),
    ("random.choice", (KEY, X), "axis", 0),
    ("random.permutation", (KEY, X), "independent", True),
    ("scipy.linalg.hilbert", (), "n", 3),
    ("scipy.linalg.solve_triangular", (X, X), "lower", True),
    ("scipy.linalg.convolution_matrix", (X[0],), "n", 3),
    ("scipy.special.logsumexp", (X,), "axis", 0),
    ("scipy.signal.detrend", (X,), "axis", 0),
]
NAMES = [f"{name}({parameter})" for name, _, parameter, _ in CALLS]


def caller(library, name, args, parameter):
    module, function = name.rsplit(".", 1)
    function = getattr(importlib.import_module(f"{library.__name__}.{module}"), function)
    values = [library.random.key(0) if x is KEY else x for x in args]
    return lambda value: function(*values, **{parameter: value})


@pytest.mark.parametrize(("name", "args", "parameter", "value"), CALLS, ids=NAMES)
def test_traced_values_raise_the_classes_of_jax(name, args, parameter, value):
    with pytest.raises((TypeError, ValueError)) as theirs:
        jax.jit(caller(jax, name, args, parameter)).lower(value)
    with pytest.raises((TypeError, ValueError)) as mine:
        accnp.jit(caller(accnp, name, args, parameter))(value)
    classes = {c.__name__ for c in type(mine.value).__mro__}
    expected = {c.__name__ for c in type(theirs.value).__mro__ if c.__name__ != "_JAXErrorMixin"}
    assert expected <= classes
    for phrase in ("Non-hashable static arguments are not supported", "Shapes must be 1D sequ"):
        assert (phrase in str(mine.value)) or phrase not in str(theirs.value)
    assert "depends on the value of the argument" in str(mine.value)
    assert "static_argnums" in str(mine.value)


@pytest.mark.parametrize(("name", "args", "parameter", "value"), CALLS, ids=NAMES)
def test_arrays_that_are_not_traced_are_accepted(name, args, parameter, value):
    call = caller(accnp, name, args, parameter)
    actual, expected = call(accnp.numpy.asarray(value)), call(value)
    for a, b in zip(*map(accnp.tree.leaves, (actual, expected)), strict=True):
        np.testing.assert_array_equal(a, b)


USERS = {
    "if": (lambda x: 1 if x else 2, errors.TracerBoolConversionError),
    "range": (lambda x: list(range(x)), errors.TracerIntegerConversionError),
    "float": (lambda x: float(x), errors.ConcretizationTypeError),
    "in": (lambda x: 3 in accnp.numpy.arange(3) + x, errors.TracerBoolConversionError),
    "bool itself": (bool, errors.TracerBoolConversionError),
    "map": (lambda x: accnp.tree.map(bool, x), errors.TracerBoolConversionError),
    "branch": (lambda x: accnp.lax.cond(True, bool, bool, x), errors.TracerBoolConversionError),
    "condition": (
        lambda x: accnp.lax.while_loop(lambda c: 1 < c < 3, lambda c: c + 1, x),
        errors.TracerBoolConversionError,
    ),
}


@pytest.mark.parametrize("name", USERS)
def test_errors_in_user_conversions_do_not_blame_static_arguments(name):
    function, expected = USERS[name]
    with pytest.raises(expected) as caught:
        accnp.jit(function)(1)
    assert type(caught.value) is expected
    assert "Non-hashable" not in str(caught.value)


MODES = {
    "correlate": lambda m, v: m.numpy.correlate(X[0], X[1], v),
    "convolve": lambda m, v: m.numpy.convolve(X[0], X[1], v),
    "array of a list": lambda m, v: m.numpy.array([1.0, 2.0], copy=v),
    "array": lambda m, v: m.numpy.array(m.numpy.ones(2), copy=v),
}


@pytest.mark.parametrize("name", MODES)
def test_traced_modes_and_flags(name):
    with pytest.raises((TypeError, ValueError)) as theirs:
        jax.jit(lambda v: MODES[name](jax, v)).lower(True)
    with pytest.raises((TypeError, ValueError)) as mine:
        accnp.jit(lambda v: MODES[name](accnp, v))(True)
    expected = {c.__name__ for c in type(theirs.value).__mro__ if c.__name__ != "_JAXErrorMixin"}
    assert expected <= {c.__name__ for c in type(mine.value).__mro__}


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 3, 3)])
def test_polar_takes_a_traced_number_of_iterations(shape):
    a = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    traced = accnp.jit(lambda k: accnp.scipy.linalg.polar(a, max_iterations=k))
    for k in (0, 1, 3, 12):
        known = accnp.scipy.linalg.polar(a, max_iterations=k)
        for x, y in zip(traced(k), known, strict=True):
            np.testing.assert_array_equal(x, y)
    expected = jax.jit(lambda k: jax.scipy.linalg.polar(a, max_iterations=k))(12)
    for x, y in zip(traced(12), expected, strict=True):
        np.testing.assert_allclose(x, y, atol=2e-6)
