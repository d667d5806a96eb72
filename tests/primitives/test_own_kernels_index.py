"""Kernels of gather, scatter and dynamic slices agree with the reference functions, compiled and as
plain Python, for any dimension numbers, mode, dtype and layout.
"""

from unittest import mock

import numpy as np
import pytest
from fuzz.executors import same_values
from hypothesis import assume, given
from hypothesis import strategies as st
from primitives.own_kernels import (
    DTYPES,
    INDEX,
    OperandView,
    check_op,
    distinct_values,
    draw_initial_operand,
    draw_settings,
    draw_view,
    is_near,
)

import accnp
from accnp.compiler.library.indexing import scatters
from accnp.ir.op import OPS
from accnp.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)

MODES = [
    GatherScatterMode.CLIP,
    GatherScatterMode.FILL_OR_DROP,
    GatherScatterMode.PROMISE_IN_BOUNDS,
]


def indices(draw, shape, top):
    """Draw indices with a random dtype, some of them outside 0..top."""
    dtype = np.dtype(draw(st.sampled_from(INDEX)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    wide = draw(st.booleans())
    low, high = (-3, top + 3) if wide else (0, top)
    low = max(low, np.iinfo(dtype).min)
    x = rng.integers(low, max(high, low) + 1, shape).astype(dtype)
    if wide and x.size and draw(st.booleans()):
        x.flat[0] = draw(st.sampled_from([np.iinfo(dtype).min, np.iinfo(dtype).max]))
    return x


@st.composite
def places(draw, empty=True):
    """Draw a shape, start indices, dimension numbers, window sizes and the shape of all windows."""
    rank = draw(st.integers(0, 4))
    shape = tuple(
        draw(st.integers(0 if empty and draw(st.integers(0, 9)) == 0 else 1, 5))
        for _ in range(rank)
    )
    roles = [draw(st.sampled_from(["batch", "one", "window", "window"])) for _ in range(rank)]
    batching = [d for d in range(rank) if roles[d] == "batch"][:2]
    roles = ["one" if r == "batch" and d not in batching else r for d, r in enumerate(roles)]
    outer = [
        draw(st.integers(0 if empty and draw(st.integers(0, 19)) == 0 else 1, 4))
        for _ in range(draw(st.integers(0, 2)))
    ]
    where = []
    for d in batching:
        at = draw(st.integers(0, len(outer)))
        outer.insert(at, shape[d])
        where = [w + (w >= at) for w in where] + [at]
    free = [d for d in range(rank) if d not in batching]
    mapped = tuple(d for d in draw(st.permutations(free)) if draw(st.integers(0, 3)))
    sizes = tuple(
        1
        if roles[d] in ("one", "batch")
        else (
            n
            if draw(st.booleans())
            else draw(st.integers(0 if empty else 1, n) if n else st.just(0))
        )
        for d, n in enumerate(shape)
    )
    inner = [sizes[d] for d in range(rank) if roles[d] == "window"]
    total = len(outer) + len(inner)
    offset = tuple(sorted(draw(st.permutations(range(total)))[: len(inner)]))
    it, out = iter(inner), iter(outer)
    windows = tuple(next(it) if i in offset else next(out) for i in range(total))
    starts = indices(draw, (*outer, len(mapped)), max(shape, default=1))
    ones = tuple(d for d in range(rank) if roles[d] == "one")
    dims = (offset, ones, mapped, tuple(batching), tuple(where))
    return shape, starts, dims, sizes, windows


@draw_settings(40)
@given(st.data(), places())
def test_gather(data, place):
    shape, starts, dims, sizes, _ = place
    draw = data.draw
    x = draw_view(draw, distinct_values(draw, shape, draw(st.sampled_from(DTYPES))))
    fill = draw(st.sampled_from([None, None, 0, 1, 7]))
    params = {
        "dimension_numbers": GatherDimensionNumbers(*dims),
        "slice_sizes": sizes,
        "indices_are_sorted": False,
        "unique_indices": False,
        "mode": draw(st.sampled_from(MODES)),
        "fill_value": fill,
    }
    check_op("gather", [x, draw_view(draw, starts)], params, kernels=0 not in shape)


def alone(shape, starts, updates, params):
    """Return whether no element is written twice."""
    ones = {**params, "unique_indices": False}
    count = OPS["scatter_add"].numpy(np.zeros(shape, int), starts, np.ones(updates, int), **ones)
    return int(np.max(count, initial=0)) <= 1


@pytest.mark.parametrize(
    "op", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"]
)
@pytest.mark.parametrize("limits", [{}, {"MANY": 1, "BLOCK": 1}, {"COLUMNS": 1, "BLOCK": 8}])
@draw_settings(12)
@given(st.data(), places())
def test_scatter(op, limits, data, place):
    shape, starts, dims, sizes, windows = place
    assume(all(k <= n for k, n in zip(sizes, shape, strict=True)))
    draw = data.draw
    dtype = draw(st.sampled_from([d for d in DTYPES if "c" not in d or "m" not in op[-3:]]))
    x = draw_initial_operand(draw, distinct_values(draw, shape, dtype))
    updates = draw_view(draw, distinct_values(draw, windows, dtype))
    starts = draw_view(draw, starts)
    params = {
        "dimension_numbers": ScatterDimensionNumbers(*dims),
        "indices_are_sorted": False,
        "unique_indices": False,
        "mode": draw(st.sampled_from(MODES)),
    }
    if alone(shape, starts.value, windows, params):
        params["unique_indices"] = draw(st.booleans())
    # As kernels of large ones are: places, columns are shared out, few places have copies.
    with mock.patch.dict(vars(scatters), limits), accnp.threads(2):
        check_op(
            op,
            [x, starts, updates],
            params,
            is_near if op[-3:] not in ("min", "max") else same_values,
        )


@draw_settings(20)
@given(st.data())
def test_dynamic_slices(data):
    draw = data.draw
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    sizes = tuple(n if draw(st.booleans()) else draw(st.integers(0, n)) for n in shape)
    dtype = draw(st.sampled_from(DTYPES))
    x = draw_view(draw, distinct_values(draw, shape, dtype))
    starts = [OperandView(indices(draw, (), n)) for n in shape]
    check_op("dynamic_slice", [x, *starts], {"slice_sizes": sizes})
    x, update = (
        draw_initial_operand(draw, x.value),
        draw_view(draw, distinct_values(draw, sizes, dtype)),
    )
    with mock.patch.object(scatters, "BLOCK", draw(st.sampled_from([1, 8, 1 << 16]))):
        check_op("dynamic_update_slice", [x, update, *starts], {})
