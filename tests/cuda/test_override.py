"""Generated GPU kernels as standalone files, and edited files that replace them."""

import runpy

import numpy as np
import pytest
from kernel_counts import count_made_kernels

import accnp as jax
import accnp.numpy as jnp
from accnp import lax

X = np.random.default_rng(0).normal(0, 1, (30, 40)).astype("f4")


def chain(x):
    return jnp.exp(x) * 2 + 1


def softmax(x):
    return jax.nn.softmax(x, axis=1)


def loop(x):
    return lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) * 0.5, jnp.tile(x.ravel(), 2))


@pytest.fixture
def x(fake):
    return jax.device_put(X, jax.devices("gpu")[0])


def test_edited_kernel_replaces_generated_one(x):
    kernel = jax.inspect(chain)(x).kernels[0]
    edited = kernel.source.replace("exp(", "abs(")
    expected, other = np.exp(X) * 2 + 1, np.abs(X) * 2 + 1
    function = jax.jit(chain)
    np.testing.assert_allclose(function(x), expected, rtol=1e-6)
    with jax.override(kernel, edited):
        np.testing.assert_allclose(function(x), other, rtol=1e-6)
        np.testing.assert_allclose(chain(x), other, rtol=1e-6)
        np.testing.assert_allclose(function(X), expected, rtol=1e-6)  # on the CPU
    np.testing.assert_allclose(function(x), expected, rtol=1e-6)
    mine = jax.override(kernel, edited)(chain)
    np.testing.assert_allclose(mine(x), other, rtol=1e-6)
    before = count_made_kernels()
    mine(x)
    assert count_made_kernels() == before


def test_in_loops(x):
    kernel = jax.inspect(loop)(x).kernels[-1]
    with jax.override(kernel, kernel.source.replace("sin(", "abs(")):
        expected = np.tile(np.abs(X).ravel() / 8, 2)
        np.testing.assert_allclose(jax.jit(loop)(x), expected, rtol=1e-6)


def test_a_report_compares_values_and_times(x):
    kernel = jax.inspect(softmax)(x).kernels[0]
    same = jax.override(kernel, kernel.source).report(softmax, x, runs=3)
    assert same.same
    assert same.original > 0
    assert same.edited > 0
    other = kernel.source.replace("exp_difference(", "exp_difference(f4(1.0000001) * ")
    report = jax.override(kernel, other).report(softmax, x, runs=2)
    assert not report.same
    assert 0 < report.ulp < 16
    with pytest.raises(ValueError, match="has no kernel like that"):
        jax.override(kernel, kernel.source).report(chain, x)


@pytest.mark.parametrize("f", [chain, softmax])
def test_a_kernel_is_a_file_that_runs_by_itself(x, f, tmp_path, capsys):
    kernel = jax.inspect(f)(x).kernels[-1]
    file = tmp_path / "kernel.py"
    file.write_text(kernel.source)
    runpy.run_path(str(file), run_name="__main__")
    output = capsys.readouterr().out
    assert output.startswith("fake: ")
    assert "median" in output
    assert "argument 0 (f4*, " in output
    assert jax.override(kernel, file).report(f, x, runs=2).same


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda s: "x = 1\n", "must define the function kernel"),
        (lambda s: "def kernel(a):\n    pass\n", "cannot take the place"),
        (lambda s: s.replace("exp(", "expo("), "name 'expo' is not defined"),
    ],
)
def test_errors_leave_kernels_unchanged(x, edit, text):
    kernel = jax.inspect(chain)(x).kernels[0]
    with pytest.raises(ValueError, match=f"override: .*{text}"):
        jax.override(kernel, edit(kernel.source))
    np.testing.assert_allclose(jax.jit(chain)(x), np.exp(X) * 2 + 1, rtol=1e-6)
