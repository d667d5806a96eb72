"""Kernels that pad with gaps between the elements (gradients of strided slices and of diagonals).

Compiled and as plain Python, they agree with the reference for any layout, and loops that contain
them are native.
"""

import numpy as np
from fuzz.executors import same_values
from hypothesis import given
from hypothesis import strategies as st
from primitives.own_kernels import (
    DTYPES,
    OperandView,
    check_op,
    distinct_values,
    draw_settings,
    draw_view,
)

import accnp as jnp
from accnp import lax


@st.composite
def pads(draw):
    """Draw an array, a padding value, and a configuration with interior padding."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)))
    config = []
    for n in shape:
        mid = draw(st.integers(0, 3))
        inner = n + max(0, n - 1) * mid
        low = draw(st.integers(-min(2, inner), 3))
        config.append((low, draw(st.integers(-min(2, inner + min(low, 0)), 3)), mid))
    value = OperandView(distinct_values(draw, (), dtype))
    return [draw_view(draw, distinct_values(draw, shape, dtype)), value], tuple(config)


@draw_settings(50)
@given(pads())
def test_any_layout_gap_and_crop(case):
    operands, config = case
    check_op("pad", operands, {"padding_config": config}, same_values, kernels=False)


def test_loops_with_gradients_of_strided_parts_are_native():
    def loss(w, x):
        def step(c, row):
            c = jnp.tanh(c * w + row)
            return c + jnp.diagonal(c) + c[:, ::2].sum(), c[::2, 1]

        last, parts = lax.scan(step, x[0], x)
        return last.sum() + parts.sum()

    w, x = jnp.full((4, 4), 0.1), jnp.linspace(-1, 1, 96).reshape(6, 4, 4)
    step = jnp.jit(jnp.grad(loss))
    gradient = step(w, x)
    assert "library call" not in str(jnp.inspect(step)(w, x))
    eps = 1e-2
    for i, j in ((0, 0), (1, 3), (2, 1)):
        moved = [loss(w.at[i, j].add(e), x) for e in (eps, -eps)]
        np.testing.assert_allclose(gradient[i, j], (moved[0] - moved[1]) / (2 * eps), rtol=2e-2)
