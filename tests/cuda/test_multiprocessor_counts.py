"""Kernels for GPUs with different numbers of multiprocessors: the number of blocks changes, but
results are bitwise the same.
"""

import numpy as np
import pytest
from cuda.fake import gpus
from cuda.kernel_cases import Case, kernel_specs
from cuda.support import same_bits

import accnp as jnp
from accnp.compiler.grid_kernels import build_grid_kernel
from accnp.compiler.specs.launches import build_generated

WAVES = {"H200": 132 * 8, "A100": 108 * 8, "L4": 58 * 6, "RTX 3050": 20 * 6, "T4": 40 * 4}


def broadcast_array(*shape):
    """Return a large array that uses no memory."""
    return np.broadcast_to(np.float32(1), shape)


def expensive_expression(x):
    return jnp.exp(x) * jnp.log(x) + jnp.tanh(x) * jnp.sin(x)


# Functions, operands, and the waves of blocks that they have at most.
MANY = {
    "chain": (lambda x: x * 2 + 1, broadcast_array(1 << 25), 16),
    "long expression": (expensive_expression, broadcast_array(1 << 25), 4),
    "short rows": (lambda x: x / x.sum(1, keepdims=True), broadcast_array(1 << 20, 33), None),
}


@pytest.mark.parametrize("name", MANY)
def test_block_count_depends_on_the_gpu(name):
    f, x, waves = MANY[name]
    ((spec,),) = kernel_specs(f, x)
    kernels = {card: build_grid_kernel(spec, wave) for card, wave in WAVES.items()}
    assert len({t.source for t in kernels.values()}) == 1  # one PTX for all cards
    for card, text in kernels.items():
        if waves is not None:
            assert text.blocks == waves * WAVES[card]
        else:
            assert text.blocks >= 2 * WAVES[card]


@pytest.mark.usefixtures("cpu_formulas")
@pytest.mark.parametrize("wave", [8, *WAVES.values()])
def test_sums_of_columns_have_the_same_bits(wave):
    """The number of multiprocessors determines whether parts of the rows have their own blocks."""
    ((spec,),) = kernel_specs(lambda x: (x * 2).sum(0), np.zeros((5000, 96), np.float32))
    case, text = Case(spec, 3), build_grid_kernel(spec, wave)
    assert bool(text.then) == (wave > 12)
    expected = case.run_on_cpu(build_generated(spec))
    assert all(same_bits(a, b).all() for a, b in zip(case.interpret(text), expected, strict=True))


def test_launch_uses_block_count_of_its_gpu():
    x = np.ones((300_000, 3), np.float32)  # no limit but that of launches
    for wave in (4, 1056):
        with gpus() as (fake,):
            fake.wave = wave
            on = jnp.device_put(x, jnp.devices("gpu")[0])
            (kernel,) = jnp.inspect(lambda x: x[:, ::-1] * 2)(on).kernels
            assert kernel.blocks == min(64 * wave, -(-900_000 // (4 * 256)))
