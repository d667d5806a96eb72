"""Random programs: eager = jitted = op by op to the bit = NumPy = the generated source run as plain Python.

`ACCNP_FUZZ=20` runs twenty times as many programs.
"""

import os

import numpy as np
import pytest
from fuzz import ways
from fuzz.programs import Drawn, Seeded, make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accnp import engine
from accnp.codegen import cpu
from accnp.passes import spaces

SCALE = int(os.environ.get("ACCNP_FUZZ", "1"))
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.fixture(scope="module")
def small_blocks():
    """Blocks, chunks and tiles of a few elements, so that small arrays have several of each."""
    engine._plans.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "BLOCK", 8)
        patch.setattr(cpu, "CHUNK", 32)
        patch.setattr(cpu, "ROWS", 4)
        patch.setattr(spaces, "CHUNK", 32)
        yield
    engine._plans.clear()


def check_source(p, seed=0):
    """The generated source, as plain Python with bounds checks and chunks in any order, means what NumPy means."""
    want = ways.by_numpy(p)
    for i, got in zip(p.outputs, ways.by_plain(p, seed), strict=True):
        np.testing.assert_array_equal(got, want[i], err_msg=f"v{i} of {p!r}", strict=True)


def check_runs(p):
    """Fused or not, traced or not: the same bits; and for exact programs those of NumPy."""
    want = ways.by_step(p)
    if p.exact:
        for i, (a, b) in enumerate(zip(ways.by_numpy(p), want, strict=True)):
            assert ways.same_values(a, b), f"NumPy has {a}, op by op {b}, for v{i} of {p!r}"
    found, held = ways.by_eager(p)
    for way, places, values in (
        ("eager", p.outputs, found),
        ("held", p.held, held),
        ("jit", p.outputs, ways.by_jit(p)),
    ):
        for i, got in zip(places, values, strict=True):
            assert ways.same_bits(want[i], got), (
                f"{way}: {got}, op by op {want[i]}, for v{i} of {p!r}"
            )


@pytest.mark.usefixtures("small_blocks")
class TestSource:
    @given(data=st.data())
    @settings(max_examples=150 * SCALE, deadline=None, suppress_health_check=QUIET)
    def test_drawn(self, data):
        check_source(make(Drawn(data.draw, st)))

    def test_short(self):
        for seed in range(600 * SCALE):
            check_source(make(Seeded(seed)), seed)

    def test_long(self):
        for seed in range(100 * SCALE):
            check_source(make(Seeded(seed), length=50), seed)


class TestRuns:
    @given(data=st.data())
    @settings(max_examples=20 * SCALE, deadline=None, suppress_health_check=QUIET)
    def test_drawn(self, data):
        check_runs(make(Drawn(data.draw, st), length=6))

    def test_exact(self):
        for seed in range(40 * SCALE):
            check_runs(make(Seeded(seed)))

    def test_inexact(self):
        for seed in range(25 * SCALE):
            check_runs(make(Seeded(seed), exact=False))
