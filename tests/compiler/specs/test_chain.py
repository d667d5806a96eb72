"""Maps that read other elements of maps: one launch computes the rows of the first in bands, with
the same bits."""

import numpy as np
import pytest
from compiler.fusion.support import plan_of
from compiler.specs.test_sources import _constants
from fuzz.executors import as_bytes, run_plan_as_plain_python

import accnp
import accnp.numpy as jnp


def blurred(x, axis, taps=5):
    """Return weighted sums of `taps` neighbors along an axis, too expensive to be recomputed."""
    n = x.shape[axis] - taps + 1
    parts = [x[(slice(None),) * axis + (slice(k, k + n),)] for k in range(taps)]
    return sum(p * (k + 1) for k, p in enumerate(parts))


def wide(x):
    y = blurred(x, 1)
    return y[2:-1] * y[:-3] + y[3:] * x[:-3, 4:] + y[1:-2]


CHAINS = {
    "rows, then columns": lambda x: blurred(blurred(x, 1), 0),
    "columns, then rows": lambda x: blurred(blurred(x, 0), 1),
    "columns twice": lambda x: blurred(blurred(x, 0), 0, 7),
    "not the first rows": lambda x: blurred(blurred(x, 1)[3:], 0),
    "with the operand": wide,
    "and back": lambda x: blurred(blurred(x, 1)[:, ::-1], 0),
    "a part": lambda x: blurred(blurred(x, 1), 0)[5:9],
}


def padded(x, *widths):
    """Pad each axis with the given numbers of zeros before and after."""
    return np.pad(x, widths) if isinstance(x, np.ndarray) else jnp.pad(x, widths)


def stencil_gradient(x):
    """Like the gradient of a stencil, add parts at the positions that they were read from."""
    y = x[1:-1, :-2] * 2 + x[1:-1, 2:] * 3 + x[:-2, 1:-1] * 4 + x[2:, 1:-1] * 5
    y = y + x[1:-1, 1:-1] * x[2:, 2:] - x[:-2, :-2]
    z = padded(y, (2, 0), (1, 1)) + padded(y, (0, 2), (1, 1))
    return z + padded(y, (1, 1), (2, 0)) + padded(y, (1, 1), (0, 2))


def joined(x):
    """Halves of unlike sums, one below the other, then sums across: what is made has cells."""
    half, together = x.shape[0] // 2, np if isinstance(x, np.ndarray) else jnp
    y = together.concatenate([blurred(x, 1)[:half], blurred(x * x, 1)[half:] * 2])
    return blurred(y, 0)


# The reader, or both of them, in cells: of several rows and columns, or of one.
CUT = {
    "a gradient": stencil_gradient,
    "rolled": lambda x: padded(blurred(blurred(x, 1), 0), (2, 2)),
    "more rows before than behind": lambda x: (
        padded(blurred(x, 1), (4, 1)) * 2 + padded(blurred(x, 1), (1, 4))
    ),
    "joined, then one map": joined,
    "joined, then cells": lambda x: padded(joined(x), (1, 1)),
}


def numbers(*shape):
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(40, 30), (700, 333), (20, 5000), (60, 9, 8)])
@pytest.mark.parametrize("name", CHAINS)
def test_intermediate_is_computed_in_bands(name, shape):
    f, x = CHAINS[name], numbers(*shape)
    plan = plan_of(f, x)
    assert len(plan.steps) == 1
    actual = np.asarray(accnp.jit(f)(jnp.asarray(x)))
    np.testing.assert_allclose(actual, f(x), rtol=1e-5, atol=1e-4)
    both = accnp.jit(lambda x: (f_between(f, x), f(x)))(jnp.asarray(x))
    np.testing.assert_array_equal(actual, np.asarray(both[1]))


def f_between(f, x):
    """What the second map reads, as a result: then it is stored whole."""
    return blurred(x, 0 if f in (CHAINS["columns, then rows"], CHAINS["columns twice"]) else 1)


@pytest.mark.parametrize("shape", [(20, 9), (40, 30), (703, 333), (20, 5000)])
@pytest.mark.parametrize("name", CUT)
def test_cells_are_done_in_bands(name, shape):
    f, x = CUT[name], numbers(*shape)
    (step,) = plan_of(f, x).steps
    assert step.chained is not None
    actual = np.asarray(accnp.jit(f)(jnp.asarray(x)))
    np.testing.assert_allclose(actual, f(x), rtol=1e-5, atol=1e-4)
    with accnp.threads(1):
        alone = np.asarray(accnp.jit(f)(jnp.asarray(x)))
    np.testing.assert_array_equal(actual, alone)


def test_lines_are_done_in_bands():
    x = numbers(300_000)
    plan = plan_of(lambda x: blurred(blurred(x, 0, 9), 0, 9), x)
    assert len(plan.steps) == 1
    assert plan.steps[0].extent > 2
    actual = accnp.jit(lambda x: blurred(blurred(x, 0, 9), 0, 9))(jnp.asarray(x))
    np.testing.assert_array_equal(
        np.asarray(actual),
        np.asarray(blurred(jnp.asarray(np.asarray(blurred(jnp.asarray(x), 0, 9))), 0, 9)),
    )


def test_no_full_size_temporary_is_allocated():
    """A blur of 16 MB takes bands, which are a part of the second cache for each task."""
    (step,) = plan_of(lambda x: blurred(blurred(x, 1), 0), numbers(2000, 2000)).steps
    result, bands = [n for _, n in step.allocs]
    assert result == 1996 * 1996 * 4
    assert bands <= 16 << 19
    assert 0 <= step.nbytes - 2000 * 2000 * 4 - result < 100  # and a few literals


NOT = {
    "a result, too": lambda x: (y := blurred(x, 1), blurred(y, 0)),
    "read by two": lambda x: (blurred(y := blurred(x, 1), 0), y.sum()),
    "other axes": lambda x: blurred(blurred(x, 1).T, 0),
    "every second row": lambda x: blurred(blurred(x, 1)[::2], 0),
    "rows backwards": lambda x: blurred(blurred(x, 1)[::-1], 0),
    "the last row with the first": lambda x: jnp.roll(blurred(x, 1), 1, 0) + blurred(x, 1),
    "one row for all": lambda x: (
        blurred(x, 1) * 2 + blurred(x * x * x + 1, 1)[3] * jnp.exp(x[:, 4:])
    ),
}


@pytest.mark.parametrize("name", NOT)
def test_other_readers_force_storing(name):
    x = numbers(70, 80)
    plan = plan_of(NOT[name], x)
    assert all(step.chained is None for step in plan.steps)
    actual = accnp.jit(NOT[name])(jnp.asarray(x))
    expected = NOT[name](jnp.asarray(x))
    for a, b in zip(
        *[v if isinstance(v, tuple) else (v,) for v in (actual, expected)], strict=True
    ):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_bands_source_runs_as_plain_python():
    x = numbers(30, 20)

    f = CHAINS["rows, then columns"]
    plan = plan_of(f, x)
    ((data, seen),) = run_plan_as_plain_python(plan, [as_bytes(x), *_constants(f, x)])
    n = 26 * 16 * 4
    assert seen[:n].all()
    np.testing.assert_allclose(
        data[:n].view(np.float32).reshape(26, 16), f(x), rtol=1e-5, atol=1e-5
    )


def test_bands_in_a_loop_are_part_of_its_kernel():
    def step(_, x):
        y = blurred(blurred(x, 1), 0) / 100
        return x.at[2:-2, 2:-2].set(y)

    x = numbers(50, 60)
    actual = accnp.jit(lambda x: accnp.lax.fori_loop(0, 5, step, x))(jnp.asarray(x))
    expected = x.astype(np.float64)
    for _ in range(5):
        expected[2:-2, 2:-2] = blurred(blurred(expected, 1), 0) / 100
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-3)


def test_inspect_shows_both():
    text = str(accnp.inspect(CHAINS["rows, then columns"])(jnp.asarray(numbers(100, 100))))
    assert "step 0: map kernel over [100, 96]" in text
    assert "step 0: map kernel over [96, 96]" in text
    assert "1 steps" in text


def test_a_reader_of_one_element_is_no_chain():
    """Its loops have no axis left of which rows could be parts."""
    x = jnp.arange(2)
    assert jnp.extract(jnp.array([True, False]), x).tolist() == [0]
