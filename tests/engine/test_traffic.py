"""The computed memory traffic of plan steps equals values derived by hand for each type of step."""

import numpy as np
import pytest

import accnp as jnp

N = 1000 * 400 * 4
IDX = np.array([0, 1, 2, 3, 4, 6, 9], dtype=np.int32)
CASES = {
    "map": (lambda x: x * x + 1, [2 * N + 4]),
    "two outputs": (lambda x: (x + 1, x * 2), [3 * N + 8]),
    "row": (lambda x: x / x.sum(1, keepdims=True), [2 * N]),
    "column": (lambda x: x.sum(0), [N + 1600]),
    "strided": (lambda x: x[::2, ::4] * 2, [N // 8 * 2 + 4]),
    "stencil": (lambda x: x[1:] + x[:-1], [2 * N - 1600]),
    "broadcast": (lambda x: x + x[0], [2 * N]),
    "gather": (lambda x: x[IDX], [2 * 7 * 1600 + 28 + 8]),
    "sort": (lambda x: jnp.sort(x, 0), [2 * N]),
}


@pytest.mark.parametrize("name", CASES)
def test_bytes_of_steps(name):
    f, expected = CASES[name]
    plan = jnp.inspect(f)(jnp.ShapeDtypeStruct((1000, 400), jnp.float32)).plan
    big = [step.nbytes for step in plan.steps if step.nbytes > 200]
    assert big == expected


def test_split_reduction_reads_operand_and_writes_partial_results():
    plan = jnp.inspect(jnp.sum)(jnp.ShapeDtypeStruct((400_000,), jnp.float32)).plan
    chunks = -(-400_000 // 32768)
    assert [step.nbytes for step in plan.steps] == [1_600_000 + 4, 8 * chunks + 4]


def test_update_traffic_counts_update_and_copy():
    x = jnp.ShapeDtypeStruct((1000, 400), jnp.float32)
    update_bytes = 400 * 4
    (alone,) = jnp.inspect(lambda x: x.at[3].set(2.0))(x).plan.steps[-1:]
    assert alone.nbytes == 2 * N + alone.moved
    (mine,) = jnp.inspect(lambda x: jnp.cumsum(x, 0).at[3].set(2.0))(x).plan.steps[-1:]
    assert 3 * update_bytes <= mine.nbytes == mine.moved < 4 * update_bytes
