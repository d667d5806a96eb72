"""Benchmark whole programs: SELU, norm and slow_f of the seed programs, and a training step."""

import jax
import numpy as np
import pytest

import accnp


def selu(np, x, alpha=1.67, lambda_=1.05):
    return lambda_ * np.where(x > 0, x, alpha * np.exp(x) - alpha)


def norm(np, x):
    x = x - x.mean(0)
    return x / x.std(0)


def slow_f(np, x):
    return x * x + x * 2.0


@pytest.mark.parametrize(
    ("program", "shape"),
    [(selu, (1_000_000,)), (norm, (10_000, 10)), (slow_f, (2000, 2000))],
    ids=["selu", "norm", "slow_f"],
)
def test_seed(benchmark, library, normal, program, shape):
    benchmark.group = f"{program.__name__} {shape}"
    f = library.wrap(lambda x: program(library.np, x))
    benchmark(f, library.asarray(normal(*shape)))


@pytest.mark.parametrize("library_", [accnp, jax], ids=["accnp", "jax"])
def test_train_step(benchmark, library_):
    benchmark.group = "train step 64-128-10, 256 rows"
    rng = np.random.default_rng(0)

    def array(*shape):
        return library_.numpy.asarray(rng.normal(size=shape).astype(np.float32) * 0.1)

    def loss(params, x, y):
        hidden = library_.numpy.tanh(x @ params["w1"] + params["b1"])
        return ((hidden @ params["w2"] - y) ** 2).mean()

    @library_.jit
    def step(params, x, y):
        gradient = library_.grad(loss)(params, x, y)
        return library_.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient)

    params = {"w1": array(64, 128), "b1": array(128), "w2": array(128, 10)}
    x, y = array(256, 64), array(256, 10)
    benchmark(step, params, x, y)
