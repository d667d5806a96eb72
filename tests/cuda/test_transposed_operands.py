"""Transposed operands in GPU kernels: threads of a warp read consecutive addresses, and reductions
keep the order of summation of the CPU."""

import numpy as np
import pytest
from cuda.kernel_cases import Case, grid_kernels
from cuda.support import same_bits

import accnp as jnp
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.specs.launches import build_generated

pytestmark = pytest.mark.usefixtures("cpu_formulas")


def f4(*shape):
    return np.zeros(shape, np.float32)


PROGRAMS = {
    "map": (lambda x: x.T + 1, f4(40, 70)),
    "map of two": (lambda x, y: x.T * y + x.T, f4(33, 65), f4(65, 33)),
    "map of three axes": (lambda x: x.transpose(0, 2, 1) * 2, f4(3, 40, 50)),
    "map of complex": (lambda x: x.T * 2, np.zeros((40, 33), np.complex64)),
    "row": (lambda x: (x.T * 2).sum(1), f4(300, 45)),
    "row of several blocks": (lambda x: jnp.exp(x.T).sum(1), f4(2100, 40)),
    "row extremes": (lambda x: (x.T.max(1), (x.T + 1).sum(1)), f4(1100, 40)),
    "row of a product": (lambda x, y: (x.T * y).sum(1), f4(300, 45), f4(45, 300)),
    "rows of a permuted array": (lambda x: x.transpose(0, 2, 1).sum(2) * 2, f4(3, 100, 40)),
    "row of doubles": (lambda x: x.T.sum(1), np.zeros((70, 45))),
    "row with a value of each": (
        lambda x, m: (x.T * jnp.exp(m)[:, None]).sum(1), f4(90, 45), f4(45)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_match_cpu_bitwise(name):
    f, *arrays = PROGRAMS[name]
    for spec, text in grid_kernels(f, *arrays):
        assert text.kernel is not None
        verify(text.kernel)
        case = Case(spec)
        expected = case.run_on_cpu(build_generated(spec))
        for blocks in (None, 1):
            actual = case.interpret(text, blocks)
            assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True)), blocks


def test_loads_and_stores_of_a_warp_are_coalesced():
    for f, x in ((lambda x: x.T + 1, f4(64, 96)), (lambda x: (x.T * 2).sum(1), f4(64, 96))):
        ((spec, text),) = grid_kernels(f, x)
        case = Case(spec)
        case.interpret(text)
        (machine,) = case.machines
        assert machine.sectors == machine.least
