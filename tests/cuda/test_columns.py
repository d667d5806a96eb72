"""Reductions along columns on GPUs, whose order of summation and bits match the CPU."""

import numpy as np
import pytest
from cuda.kernel_cases import Case, grid_kernels
from cuda.support import same_bits

import accnp as jnp
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.specs.launches import build_generated
from accnp.ir.generated import ScratchBuffer
from accnp.ir.kernel import ROWS

pytestmark = pytest.mark.usefixtures("cpu_formulas")


def f4(*shape):
    return np.zeros(shape, np.float32)


PROGRAMS = {
    "sum": (lambda x: x.sum(0), f4(100, 70)),
    "largest": (lambda x: (x.max(0), x.min(0)), f4(45, 33)),
    "of long rows": (lambda x: jnp.exp(x).sum(0), f4(3 * ROWS + 5, 40)),
    "sum of exponentials": (lambda x: jnp.nn.logsumexp(x, 0), f4(700, 40)),
    "parts apart": (lambda x: x.sum(0), f4(9 * ROWS + 40, 37)),
    "parts apart, then": (lambda x: (x.mean(0) * 2, x.max(0)), f4(9 * ROWS, 5)),
    "middle axis": (lambda x: x.sum(1), f4(3, 50, 40)),
    "two axes": (lambda x: x.sum((0, 1)), f4(6, 7, 50)),
    "two axes apart": (lambda x: x[:, ::2].sum((0, 1)), f4(6, 14, 50)),
    "few columns": (lambda x: x.sum(0), f4(700, 3)),
    "beside": (lambda x, y: (x * y).sum(0), f4(90, 50), f4(90, 1)),
    "doubles": (lambda x: x.sum(0), np.zeros((90, 50))),
    "complex": (lambda x: x.sum(0), np.zeros((90, 50), np.complex64)),
    "ints": (lambda x: (x.sum(0), x.max(0)), np.zeros((90, 50), np.int16)),
    "all": (lambda x: (x > 0).all(0), f4(5, 50)),
    "statistics": (lambda x: x.var(0), f4(200, 64)),
    "two dtypes": (lambda x: (x - x.mean(0)) / x.std(0), f4(2 * ROWS, 40)),
    "moments apart": (lambda x: (x.sum(0), (x * x).sum(0)), f4(9 * ROWS + 3, 5)),
}


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


def test_few_columns_of_many_rows_are_two_kernels():
    f, *arrays = PROGRAMS["parts apart"]
    ((_, text),) = grid_kernels(f, *arrays)
    (second,) = text.then
    assert text.blocks > 1
    assert text.pointers[-1] is second.pointers[-1]
    assert isinstance(second.pointers[-1], ScratchBuffer)
    assert second.pointers[-1].count == 37 * 10
