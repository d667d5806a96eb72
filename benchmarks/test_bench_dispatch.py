"""Benchmark the overhead of calls with small arrays."""

import jax
import pytest

import accnp

TREE = {"a": [1.0, 2.0], "b": {"w": 3.0, "b": 4.0}}


@pytest.mark.parametrize("library_", [accnp, jax], ids=["accnp", "jax"])
class TestCachedCall:
    def test_one_array(self, benchmark, library_):
        benchmark.group = "cached jit call: one array"
        f = library_.jit(lambda x: x + 1)
        x = library_.numpy.zeros(4)
        benchmark(f, x)

    def test_pytree(self, benchmark, library_):
        benchmark.group = "cached jit call: a tree of four"
        asarray = library_.numpy.asarray
        f = library_.jit(lambda tree: library_.tree_util.tree_map(lambda v: v + 1, tree))
        tree = library_.tree_util.tree_map(asarray, TREE)
        benchmark(f, tree)

    def test_new_shape(self, benchmark, library_):
        benchmark.group = "jit call with a new shape"
        f = library_.jit(lambda x: library_.numpy.tanh(x) + 1)
        shapes = iter(range(1, 100_000))

        def setup():
            return (library_.numpy.zeros(next(shapes)).block_until_ready(),), {}

        benchmark.pedantic(f, setup=setup, rounds=20)
