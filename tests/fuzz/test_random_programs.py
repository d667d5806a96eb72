"""Random programs run eagerly, jitted and op by op with bitwise the same results. They are compared
with NumPy and with the generated source, run as plain Python.

`ACCNP_FUZZ=20` runs twenty times as many programs.
"""

import os
import random

import numpy as np
import pytest
from fuzz import executors
from fuzz.programs import HypothesisChoices, SeededChoices, make_program
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accnp import engine
from accnp.compiler.fusion import clusters, costs, fuse, lower, reasons, spaces
from accnp.compiler.specs import blocked_reductions, chunks, columns, short_axes, transposed_rows
from accnp.engine import execute, steps, table

SCALE = int(os.environ.get("ACCNP_FUZZ", "1"))
SUPPRESSED_CHECKS = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
]


@pytest.fixture(scope="module")
def small_blocks():
    """Use blocks, chunks and tiles of a few elements, so that small arrays have several of each."""
    engine._plans.clear()
    with pytest.MonkeyPatch.context() as patch:
        for module in (blocked_reductions, transposed_rows):
            patch.setattr(module, "BLOCK", 8)
        patch.setattr(columns, "ROWS", 4)
        # Columns of arrays as small as these would all be short.
        patch.setattr(short_axes, "COLUMNS", 3)
        patch.setattr(chunks, "CHUNK", 32)
        patch.setattr(spaces, "CHUNK", 32)
        yield
    engine._plans.clear()


@pytest.fixture(scope="module")
def random_fusion_limits():
    """Return a function that sets the limits of fusion at random. Kernels must be correct for all
    limits.
    """
    with pytest.MonkeyPatch.context() as patch:

        def shake(seed):
            r = random.Random(seed)
            patch.setattr(lower, "HEAVY", r.choice([1, 10]))
            patch.setattr(clusters, "MAX_MEMBERS", r.choice([2, 4, 8, 100]))
            patch.setattr(fuse, "MAX_REDUCTIONS", r.choice([1, 2, 8]))
            patch.setattr(clusters, "MAX_CELLS", r.choice([1, 4, 32]))
            patch.setattr(costs, "CHEAP", r.choice([0, 4, 100]))
            patch.setattr(costs, "AGAIN", r.choice([0, 32, 500]))
            patch.setattr(reasons, "MAX_STORES", r.choice([1, 2, 16]))

        yield shake


@pytest.fixture
def many_threads():
    """Split every kernel into the smallest parts for several threads, and run nothing inline."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "GRAIN", 1)
        patch.setattr(execute, "PARALLEL", 1)
        patch.setattr(steps, "BRIEF", 0)
        patch.setattr(table, "BRIEF", 0)
        patch.setattr(engine, "ASYNC", 1)
        engine._plans.clear()
        yield
        engine._plans.clear()


def check_source(p, seed=0):
    """Compare the generated source, run as plain Python with bounds checks and chunks in any order,
    with NumPy.
    """
    expected = executors.run_by_numpy(p)
    for i, actual in zip(p.outputs, executors.run_as_plain_python(p, seed), strict=True):
        np.testing.assert_array_equal(actual, expected[i], err_msg=f"v{i} of {p!r}", strict=True)


def check_runs(p):
    """Fused or not, traced or not, results are bitwise the same; exact programs also match
    NumPy.
    """
    expected = executors.run_step_by_step(p)
    if p.exact:
        for i, (a, b) in enumerate(zip(executors.run_by_numpy(p), expected, strict=True)):
            assert executors.same_values(a, b), f"NumPy has {a}, op by op {b}, for v{i} of {p!r}"
    outputs, held_values = executors.run_eagerly(p)
    for way, places, values in (
        ("eager", p.outputs, outputs),
        ("held", p.held, held_values),
        ("jit", p.outputs, executors.run_jitted(p)),
    ):
        for i, actual in zip(places, values, strict=True):
            assert executors.same_bits(expected[i], actual), (
                f"{way}: {actual}, op by op {expected[i]}, for v{i} of {p!r}"
            )


@pytest.mark.usefixtures("small_blocks")
class TestSource:
    @given(data=st.data())
    @settings(max_examples=150 * SCALE, deadline=None, suppress_health_check=SUPPRESSED_CHECKS)
    def test_drawn(self, data):
        check_source(make_program(HypothesisChoices(data.draw, st)))

    def test_short(self):
        for seed in range(400 * SCALE):
            check_source(make_program(SeededChoices(seed)), seed)

    def test_long(self, random_fusion_limits):
        for seed in range(200 * SCALE):
            random_fusion_limits(seed)
            check_source(make_program(SeededChoices(seed), length=30), seed)


class TestRuns:
    @given(data=st.data())
    @settings(max_examples=20 * SCALE, deadline=None, suppress_health_check=SUPPRESSED_CHECKS)
    def test_drawn(self, data):
        check_runs(make_program(HypothesisChoices(data.draw, st), length=6))

    def test_exact(self):
        for seed in range(30 * SCALE):
            check_runs(make_program(SeededChoices(seed)))

    def test_inexact(self):
        for seed in range(20 * SCALE):
            check_runs(make_program(SeededChoices(seed), exact=False))

    def test_large(self):
        for seed in range(6 * SCALE):
            check_runs(
                make_program(SeededChoices(seed), exact=bool(seed % 2), length=6, large=True)
            )

    @pytest.mark.usefixtures("many_threads")
    def test_on_several_threads(self):
        for seed in range(1000, 1000 + 12 * SCALE):
            check_runs(make_program(SeededChoices(seed), length=8, large=seed % 2 == 0))
