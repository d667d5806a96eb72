"""Concatenated arrays on GPUs: one launch writes all parts, and results match the CPU bitwise."""

import numpy as np
import pytest
from cuda.kernel_cases import Case, kernel_specs
from cuda.support import same_bits

import accnp as jnp
from accnp.compiler.grid_kernels import build_fused_grid_kernel
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.specs.horizontal_fusion import fuse_horizontally

pytestmark = pytest.mark.usefixtures("cpu_formulas")


def f4(*shape):
    return np.zeros(shape, np.float32)


PROGRAMS = {
    "concatenate": (lambda x, y: jnp.concatenate([x, y * 2], 0), f4(20, 32), f4(7, 32)),
    "along rows": (lambda x, y: jnp.concatenate([x, y], 1) + 1, f4(20, 5), f4(20, 9)),
    "stack": (lambda x, y: jnp.stack([x, y, x + y], 1), f4(50, 8), f4(50, 8)),
    "roll": (lambda x: jnp.roll(x, 3) * 2, f4(1000)),
    "turned": (lambda x, y: jnp.concatenate([x.T, y], 0), f4(40, 50), f4(9, 40)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_match_cpu_bitwise(name):
    f, *arrays = PROGRAMS[name]
    (specs,) = kernel_specs(f, *arrays)
    assert len(specs) > 1
    case = Case.for_specs(specs)
    expected = case.run_on_cpu(fuse_horizontally([[s] for s in specs]))
    text = build_fused_grid_kernel(specs)
    assert text is not None
    assert text.kernel is not None
    verify(text.kernel)
    for blocks in (None, 1, 5):
        actual = case.interpret(text, blocks)
        assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True))
