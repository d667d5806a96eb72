"""The table of `benchmarks.external`: its cases and the comparison of results, without timings."""

import numpy as np
import pytest

pytest.importorskip("jax")

from benchmarks import external


def test_names_of_cases_differ():
    names = [case.name for case in external.cases()]
    assert len(set(names)) == len(names) > 30


@pytest.mark.parametrize("shift", [0, 1])
def test_results_are_compared_with_those_of_jax(shift):
    def program(m):
        value = m.numpy.arange(4.0) + (shift if m.__name__ == "accnp" else 0)
        return lambda: m.block_until_ready(value)

    case = external.Case("", 1.0, program, lambda: np.arange(4.0))
    ratios, agree = external.measure(case, runs=2, rounds=1)
    assert len(ratios) == 2
    assert agree is (shift == 0)
