"""Benchmark the recording of one operation, eagerly and while tracing."""

import jax
import pytest

import accnp

# Recording is what is timed: results stay pending.
pytestmark = [
    pytest.mark.accnp(wait=False),
    pytest.mark.filterwarnings("ignore::accnp.errors.PendingResultWarning"),
]

OPS = {
    "add": lambda np, x: x + x,
    "add a scalar": lambda np, x: x + 1.0,
    "sin": lambda np, x: np.sin(x),
    "sum": lambda np, x: x.sum(),
    "reshape": lambda np, x: x.reshape(4, 2),
    "item": lambda np, x: x[2],
    "promote": lambda np, x: x + 1,
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("library_", [accnp, jax], ids=["accnp", "jax"])
def test_one_op(benchmark, library_, name):
    benchmark.group = f"record one op: {name}"
    x = library_.numpy.arange(8.0).block_until_ready()
    benchmark(OPS[name], library_.numpy, x)


@pytest.mark.parametrize("library_", [accnp, jax], ids=["accnp", "jax"])
def test_trace_of_a_hundred_ops(benchmark, library_):
    benchmark.group = "make_jaxpr of 100 operations"

    def chain(x):
        for _ in range(50):
            x = library_.numpy.tanh(x) * 2.0
        return x

    x = library_.numpy.zeros(8)
    benchmark(lambda: library_.make_jaxpr(chain)(x))
