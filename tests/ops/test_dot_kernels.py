"""Kernels of dot_general: any dimension numbers, dtypes and layouts against the reference function,
and the order of summation, which neither layout, tiles, threads nor loops may change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from ops.own_kernels import DTYPES, check, filled, many, shown

RUN = 256  # steps of one chain of multiply-adds


def close(got, want):
    """Equal but for rounding; integers exactly."""
    if got.dtype.kind in "biu":
        return np.array_equal(got, want)
    eps = float(np.finfo(got.dtype).eps)
    return np.allclose(got, want, rtol=50 * eps, atol=50 * eps, equal_nan=True)


@st.composite
def products(draw, sizes):
    """Two arrays and the dimension numbers of a product of them."""
    groups = [draw(st.integers(0, n)) for n in (2, 2, 2, 2)]
    labels = [f"{kind}{i}" for kind, n in zip("bmnk", groups, strict=True) for i in range(n)]
    size = {x: draw(sizes) for x in labels}
    order_a = draw(st.permutations([x for x in labels if x[0] in "bmk"]))
    order_b = draw(st.permutations([x for x in labels if x[0] in "bnk"]))
    pairs = []
    for kind in "kb":
        shared = draw(st.permutations([x for x in labels if x[0] == kind]))
        pairs.append(tuple(tuple(order.index(x) for x in shared) for order in (order_a, order_b)))
    dtype = draw(st.sampled_from(["f4", "f4", "f8", *DTYPES]))
    values = [filled(draw, tuple(size[x] for x in order), dtype) for order in (order_a, order_b)]
    return [shown(draw, x) for x in values], tuple(pairs), np.dtype(dtype)


def params(pairs, dtype):
    return {"dimension_numbers": pairs, "precision": None, "preferred_element_type": dtype}


@many(150)
@given(products(st.sampled_from([0, 1, 2, 2, 3, 3, 4, 5])))
def test_any_dimension_numbers_dtypes_and_layouts(case):
    operands, pairs, dtype = case
    check("dot_general", operands, params(pairs, dtype), close)


@many(30)
@given(products(st.integers(0, 3)), st.sampled_from(DTYPES))
def test_operands_are_converted_first(case, to):
    operands, pairs, dtype = case
    if dtype.kind == "c" and np.dtype(to).kind != "c":
        to = "c16"
    if dtype.kind in "fc" and np.dtype(to).kind in "biu":
        to = "f8"
    check("dot_general", operands, params(pairs, np.dtype(to)), close)
