"""JAX's configuration options have the same effect in accnp, or warn once that they are ignored."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp.config import IgnoredOptionWarning

switches = sys.modules["accnp.config"]


@pytest.fixture(autouse=True)
def _restore(monkeypatch):
    before = jax.config.values()
    monkeypatch.setattr(switches, "_warned", set())
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_check_static_indices():
    x = jnp.zeros((2, 3))
    assert float(x[0, 4]) == 0  # remembered, before the option is set
    jax.config.update("jax_check_static_indices", True)
    for key in [(0, 4), (None, 2), (..., -4), (slice(None), 3)]:
        with pytest.raises(IndexError, match="out of bounds"):
            x[key]
    with pytest.raises(IndexError, match="out of bounds for axis 1 with size 3"):
        jax.jit(lambda v: v[0, 4])(x)
    assert x[None, -2, 2].shape == (1,)
    assert x[jnp.array([5])].shape == (1, 3)


def test_explicit_x64_dtypes():
    with pytest.warns(UserWarning, match="Explicitly requested dtype"):
        assert jnp.ones(1, "float64").dtype == np.float32
    jax.config.update("jax_explicit_x64_dtypes", "allow")
    assert jnp.array(1, dtype="int64").dtype == np.int64
    assert jnp.ones(2, "float64").dtype == np.float64
    assert jnp.zeros(2, float).dtype == np.float32
    assert jnp.asarray([1.0, 2.0]).dtype == np.float32
    jax.config.update("jax_explicit_x64_dtypes", "error")
    with pytest.raises(ValueError, match="Explicitly requested dtype float64"):
        jnp.ones(1, "float64")
    assert jnp.zeros(2, float).dtype == np.float32


def test_random_seed_offset():
    plain, moved = jax.random.key(17), jax.random.key(20)
    make_key = jax.jit(jax.random.key)
    make_key(17)
    jax.config.update("jax_random_seed_offset", 3)
    assert bool(jax.random.key(17) == moved)
    assert not bool(jax.random.key(17) == plain)
    assert bool(make_key(17) == moved)
    assert np.array_equal(jax.random.PRNGKey(17), jax.random.key_data(moved))


def test_allow_f16_reductions():
    x = jnp.ones((3, 1), "bfloat16")
    with jax.allow_f16_reductions(False):
        with pytest.raises(ValueError, match="not allowed when"):
            jax.lax.reduce_sum(x, [0])
        assert jax.lax.reduce_sum(x, [1]).shape == (3,)
        assert jax.lax.reduce_sum(x.astype("float32"), [0]).shape == (1,)
        assert float(x.sum()) == 3  # in float32


def test_no_execution():
    f = jax.jit(lambda x: x + 1)
    x = jnp.ones(2)
    f(x), f(x)
    pending = x * 3
    with jax.no_execution():
        with pytest.raises(RuntimeError, match="no_execution"):
            f(x)
        with pytest.raises(RuntimeError, match="no_execution"):
            np.asarray(x * 2)
        assert jax.eval_shape(f, x).shape == (2,)
        f.lower(x)
    assert float(f(x)[0]) == 2
    assert float(pending[0]) == 3


def test_options_without_effect_warn_once():
    jax.config.update("jax_pgle_profiling_runs", 3)  # jax's default
    with pytest.warns(IgnoredOptionWarning, match="the option optimization_level has no effect"):
        jax.config.update("jax_optimization_level", "O1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.config.update("jax_optimization_level", "O2")
    assert jax.config.jax_optimization_level == "O2"
    with pytest.warns(IgnoredOptionWarning, match="thread_guard"), jax.thread_guard(True):
        pass


def test_every_option_without_effect_warns():
    for name, default in switches._IGNORED.items():
        value = not default if isinstance(default, bool) else 7
        if switches.OPTIONS[name].kind is str:
            value = "7"
        with pytest.warns(IgnoredOptionWarning, match=name):
            jax.config.update(name, value)
        jax.config.update(name, default)


def test_options_are_set_before_they_warn():
    """A program that turns warnings into errors can continue."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(IgnoredOptionWarning):
            jax.config.update("jax_memory_fitting_level", "O0")
    assert jax.config.jax_memory_fitting_level == "O0"


def test_compiler_options_warn_once():
    for expected in (1, 0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f = jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})
        assert len(caught) == expected
        assert float(f(1.0)) == 2


def test_environment_variables_do_not_warn():
    code = "import accnp as jax; print(jax.config.jax_optimization_level)"
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "JAX_OPTIMIZATION_LEVEL": "O1"},
        capture_output=True,
        text=True,
    )
    assert process.stdout.strip() == "O1", process.stderr
