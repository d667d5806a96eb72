"""Cached jitted calls, which run in machine code: their results, and the conditions under which
they fall back to Python.
"""

import inspect

import numpy as np
import pytest
from api.jit.short_calls import X, call_repeatedly

import accnp as jnp
from accnp import config, jit


def test_cached_calls_with_arrays_run_without_python(python_calls):
    f = jit(lambda x, y: x * y + 1.0)
    x = jnp.asarray(X)
    call_repeatedly(f, x, x)
    python_calls.clear()
    assert (np.asarray(f(x, x)) == X * X + 1).all()
    assert python_calls == []


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x + 1, x * 2),
        lambda x: {"a": x.sum(), "b": [x, x.T @ x]},
        lambda x: (x,),
        lambda x: x,
        lambda x: (x, x),
        lambda x: [x + 1],
        lambda x: (jnp.sort(x), x - jnp.ones(4)),
        lambda x: (jnp.exp(x).sum(axis=0), (x > 3).any(), x[::-1, 1:]),
        lambda x: jnp.zeros((0, 3)) + x.sum(),
        lambda x: jnp.linalg.norm(x @ x.T, axis=1),
        lambda x: jnp.tanh(x) @ jnp.ones((4, 2)) + 3.0,
    ],
)
def test_cached_calls_match_first_call(f):
    g = jit(f)
    result = call_repeatedly(g, jnp.asarray(X))
    plain = f(jnp.asarray(X))
    assert jnp.tree.structure(result) == jnp.tree.structure(plain)
    for a, b in zip(jnp.tree.leaves(result), jnp.tree.leaves(plain), strict=True):
        assert a.aval is b.aval
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_new_types_shapes_and_arity_miss_the_cache():
    f = jit(lambda x, y: x + y)
    ones = jnp.ones(3)
    arguments = [
        (ones, ones),
        (ones, jnp.ones(3, "int32")),
        (ones, jnp.ones((3, 1))),
        (jnp.asarray(2.0), jnp.ones(3)),  # weak
        (jnp.float32(2.0), jnp.ones(3)),
        (ones, 2.0),
        (ones, 2),
        (ones, np.ones(3, "float32")),
        (True, ones),
    ]
    for _ in range(3):
        for x, y in arguments:
            expected = x + y
            result = call_repeatedly(f, x, y)
            assert result.aval is expected.aval
            np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))
    np.testing.assert_array_equal(np.asarray(f(y=ones, x=ones)), 2)
    with pytest.raises(TypeError):
        f(ones)
    with pytest.raises(TypeError):
        f(ones, ones, ones)
    with pytest.raises(TypeError, match="array"):
        f(ones, "text")


def test_pending_and_deleted_arguments():
    f = jit(lambda x: x * 2.0)
    x = jnp.asarray(X)
    call_repeatedly(f, x)
    np.testing.assert_array_equal(np.asarray(f(x + 1)), (X + 1) * 2)  # recorded, not computed
    z = jnp.asarray(X) + 0
    z.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(z)
    give = jit(lambda x: x + 1, donate_argnums=0)
    z = jnp.asarray(X) + 0
    for _ in range(40):
        z = give(z)
    np.testing.assert_array_equal(np.asarray(z), X + 40)


def test_config_options_are_part_of_the_cache_key():
    f = jit(lambda x: x * 2)
    x = np.arange(3)
    call_repeatedly(f, jnp.asarray(x, "int32"))
    with jnp.enable_x64():
        wide = jit(lambda x: x * 2 + jnp.ones(3))
        y = jnp.asarray(x, "float32")
        assert call_repeatedly(wide, y).dtype == np.float64
    assert call_repeatedly(wide, jnp.asarray(x, "float32")).dtype == np.float32
    log = jit(lambda x: jnp.log(x))
    bad = jnp.asarray(-1.0)
    call_repeatedly(log, bad)
    with jnp.debug_nans(True), pytest.raises(FloatingPointError):
        log(bad)
    config.update("debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            log(bad)
    finally:
        config.update("debug_nans", False)
    assert np.isnan(float(log(bad)))
    calls = []
    noted = jit(lambda x: (calls.append(1), x + 1)[1])
    call_repeatedly(noted, jnp.asarray(X))
    assert len(calls) == 1
    with jnp.disable_jit():
        noted(jnp.asarray(X))
    assert len(calls) == 2


def test_traced_arguments_inside_transformations():
    f = jit(lambda x: (x * x).sum())
    x = jnp.asarray(X)
    call_repeatedly(f, x)
    for _ in range(20):
        np.testing.assert_array_equal(np.asarray(jnp.grad(f)(x)), 2 * X)
        np.testing.assert_array_equal(np.asarray(jnp.vmap(f)(x)), (X * X).sum(1))
        assert float(jit(lambda x: f(x) + f(x))(x)) == 2 * (X * X).sum()
    inner_results = []

    def under(y):
        inner_results.append(f(x))  # a value that does not depend on the argument
        return f(y)

    call_repeatedly(jnp.grad(under), x)
    assert all(float(k) == (X * X).sum() for k in inner_results)


def test_signature_inspection():
    f = jit(lambda x, y=1: x)
    call_repeatedly(f, jnp.asarray(X))
    assert list(inspect.signature(f).parameters) == ["x", "y"]
    assert list(inspect.signature(f.__call__).parameters) == ["args", "kwargs"]


class Model:
    @jit
    def twice(self, x):
        return x * 2

    @staticmethod
    @jit
    def thrice(x):
        return x * 3


def test_methods():
    x = jnp.asarray(X)
    call_repeatedly(Model.thrice, x)
    call_repeatedly(Model().thrice, x)
    with pytest.raises(TypeError):
        Model().twice(x)  # an instance is no array


def test_alternating_signatures(python_calls):
    f = jit(lambda x: x + 1)
    inputs = [jnp.zeros(n) for n in (1, 2, 3)]
    for x in inputs:
        call_repeatedly(f, x)
    python_calls.clear()
    for _ in range(5):
        for x in inputs:
            assert f(x).shape == x.shape
    assert python_calls == []


def test_explain_sees_calls():
    f = jit(lambda x: x + 1)
    x = jnp.asarray(X)
    call_repeatedly(f, x)
    with jnp.explain() as explanation:
        f(x)
        f(x)
    assert "2" in str(explanation)


def test_closed_over_arrays_are_not_matched_as_arguments(python_calls):
    a, b = jnp.asarray(X), jnp.asarray(X + 5)
    f = jit(lambda x, y: (x - a * y, b / (1 + y)))
    x, y = jnp.asarray(X + 1), jnp.asarray(X * 3)
    for _ in range(40):
        results = f(x, y)
    np.testing.assert_array_equal(results[0], (X + 1) - X * (X * 3))
    np.testing.assert_array_equal(results[1], (X + 5) / (1 + X * 3))
    python_calls.clear()
    step = f(y, x)
    np.testing.assert_array_equal(step[0], X * 3 - X * (X + 1))
    assert python_calls == []


def test_invalid_arguments_after_many_calls_are_named():
    f = jit(lambda x, k: x * k)
    x = jnp.ones(3)
    call_repeatedly(f, x, 2)
    for bad in (np.array(["a"]), np.array([None]), np.zeros(2, "i4,i4"), np.longdouble(1)):
        with pytest.raises(TypeError, match=r"jit\(.* as an abstract array: k: an array of"):
            f(x, bad)
        with pytest.raises(TypeError, match=r"jit\(.* as an abstract array: k: an array of"):
            f(x, k=bad)
    with pytest.raises(OverflowError, match=r"jit\(.*argument k: Python int .* to int32"):
        f(x, 2**40)
    with pytest.raises(OverflowError, match=r"argument x\['a'\]\[0\]: Python int"):
        f({"a": [2**40]}, 1)
    np.testing.assert_array_equal(np.asarray(f(x, 3)), 3)
