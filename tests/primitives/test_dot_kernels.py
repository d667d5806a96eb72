"""Kernels of `dot_general` compared with the reference function, for any dimension numbers, dtypes
and layouts.

The order of summation must not depend on the layout, tiles, threads or loops.
"""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primitives.own_kernels import (
    DTYPES,
    OperandView,
    check_op,
    distinct_values,
    draw_settings,
    draw_view,
    plan_op,
    run_native,
)

import accnp as jnp
from accnp import lax
from accnp.config import threads
from accnp.engine.steps import HostStep


def close(actual, expected):
    """Compare up to rounding; integers must be equal."""
    if actual.dtype.kind in "biu":
        return np.array_equal(actual, expected)
    eps = float(np.finfo(actual.dtype).eps)
    return np.allclose(actual, expected, rtol=50 * eps, atol=50 * eps, equal_nan=True)


@st.composite
def products(draw, sizes):
    """Draw two arrays and the dimension numbers of a product of them."""
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
    values = [
        distinct_values(draw, tuple(size[x] for x in order), dtype) for order in (order_a, order_b)
    ]
    return [draw_view(draw, x) for x in values], tuple(pairs), np.dtype(dtype)


def params(pairs, dtype):
    return {"dimension_numbers": pairs, "precision": None, "preferred_element_type": dtype}


@draw_settings(75)
@given(products(st.sampled_from([0, 1, 2, 2, 3, 3, 4, 5])))
def test_any_dimension_numbers_dtypes_and_layouts(case):
    operands, pairs, dtype = case
    check_op("dot_general", operands, params(pairs, dtype), close)


@draw_settings(15)
@given(products(st.integers(0, 3)), st.sampled_from(DTYPES))
def test_operands_are_converted_first(case, to):
    operands, pairs, dtype = case
    if dtype.kind == "c" and np.dtype(to).kind != "c":
        to = "c16"
    if dtype.kind in "fc" and np.dtype(to).kind in "biu":
        to = "f8"
    check_op("dot_general", operands, params(pairs, np.dtype(to)), close)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("shape", [(700, 310, 900), (3, 2000, 3000), (1, 700, 900), (2500, 400, 1)])
def test_large_products_are_cut_into_tasks(shape, dtype):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n)))
    plan = plan_op(
        "dot_general", [OperandView(a), OperandView(b)], params((((1,), (0,)), ((), ())), a.dtype)
    )
    assert plan.steps[0].extent > 1
    (product,) = run_native(plan, [OperandView(a), OperandView(b)])
    np.testing.assert_allclose(product, a @ b, atol=1e-4 * np.sqrt(k) if dtype != "f8" else 1e-11)


@pytest.mark.parametrize(
    ("k", "n", "dtype"), [(4200, 41, "f4"), (300, 9001, "f4"), (9000, 40, "f8")]
)
def test_vector_matrix_product_matches_bitwise_in_both_layouts(k, n, dtype):
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=k).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    results = []
    for count, axis in ((2, 1), (1, 0), (2, 0), (5, 0)):
        right = OperandView(b if axis == 0 else b.T.copy())
        with threads(count):
            plan = plan_op(
                "dot_general", [OperandView(x), right], params((((0,), (axis,)), ((), ())), b.dtype)
            )
            assert len(plan.steps) == 2 - axis
            results += run_native(plan, [OperandView(x), right])
    np.testing.assert_allclose(results[0], x @ b, atol=1e-3)
    for product in results:
        np.testing.assert_array_equal(product, results[0])


@pytest.mark.parametrize(("dtype", "to"), [("i4", "i4"), ("?", "?"), ("i8", "i8")])
def test_strided_right_operands_are_copied_to_rows(dtype, to):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-9, 9, s).astype(dtype) for s in ((2, 40, 30), (2, 50, 30)))
    p = params((((2,), (2,)), ((0,), (0,))), np.dtype(to))
    plan = check_op("dot_general", [OperandView(a), OperandView(b)], p, close)
    assert [s.kernel.source.count("a3[") for s in plan.steps] == [1, 1]
    few = check_op("dot_general", [OperandView(a[:, :3]), OperandView(b)], p, close)
    assert len(few.steps) == 1


@pytest.mark.parametrize(
    ("dtypes", "to"),
    [(("i1", "i1"), "i4"), (("u1", "i1"), "i4"), (("i2", "i2"), "i2"), (("?", "u1"), "u4"),
     (("i1", "i1"), "i1"), (("f4", "f4"), "f8"), (("i1", "f4"), "f4"), (("i4", "c8"), "c8")],
)  # fmt: skip
def test_operands_are_converted_by_the_tasks(dtypes, to):
    rng = np.random.default_rng(3)
    for m, n, k in ((9, 70, 1030), (300, 260, 33), (1, 300, 520), (270, 1, 31)):
        for turned in range(4):
            shapes = [(m, k)[:: -1 if turned & 1 else 1], (k, n)[:: -1 if turned & 2 else 1]]
            operands = []
            for shape, dtype in zip(shapes, dtypes, strict=True):
                low = -100 if np.dtype(dtype).kind != "u" else 0
                operands.append(OperandView(rng.integers(low, 100, shape).astype(dtype)))
            pairs = ((1 - (turned & 1),), (turned >> 1,)), ((), ())
            plan = plan_op("dot_general", operands, params(pairs, np.dtype(to)))
            (step,) = plan.steps
            (product,) = run_native(plan, operands)
            assert step.kernel.source.count("gemm_") == 1
            wide = "c16" if to[0] == "c" else "f8" if to[0] == "f" else "i8"
            left, right = (
                (x.value.T if turned >> i & 1 else x.value).astype(wide)
                for i, x in enumerate(operands)
            )
            assert np.allclose(
                product, (left @ right).astype(to), rtol=1e-4, atol=0.1 * (wide != "i8")
            )


@pytest.mark.parametrize(("dtype", "to"), [("f4", "f4"), ("i2", "f4")])
def test_many_small_products_are_unrolled(dtype, to):
    rng = np.random.default_rng(4)
    for m, n, k in ((3, 3, 3), (4, 2, 1), (1, 4, 4), (2, 1, 3)):
        a, b = (rng.normal(size=s).astype(dtype) for s in ((70, m, k), (70, n, k)))
        plan = plan_op(
            "dot_general",
            [OperandView(a), OperandView(b)],
            params((((2,), (2,)), ((0,), (0,))), np.dtype(to)),
        )
        (actual,) = run_native(plan, [OperandView(a), OperandView(b)])
        wide = [x.astype(to) for x in (a, b)]
        np.testing.assert_allclose(actual, np.einsum("bij,bkj->bik", *wide), rtol=1e-5, atol=1e-5)
        some = [np.array(x[:9]) for x in (a, b)]
        np.testing.assert_array_equal(lax.dot_general(
            *[jnp.asarray(x) for x in some], (((2,), (2,)), ((0,), (0,))),
            preferred_element_type=np.dtype(to),
        ), actual[:9])  # fmt: skip


@pytest.mark.parametrize(
    ("dtypes", "to"),
    [("ee", "e"), ("hh", "h"), ("ee", "f"), ("ef", "f"), ("eh", "f"), ("be", "e")],
)
def test_half_precision_is_multiplied_as_float32_and_rounded_once(dtypes, to):
    rng = np.random.default_rng(3)
    left, right, out = (
        np.dtype(ml_dtypes.bfloat16) if x == "e" else np.dtype(x) for x in (*dtypes, to)
    )
    eps = {"e": 2.0**-8, "h": 2.0**-11, "f": 1e-4}[to]
    for m, n, k in (
        (64, 64, 64),
        (3, 3, 3),
        (33, 70, 1025),
        (1, 300, 77),
        (300, 1, 513),
        (1, 1, 9),
    ):
        a, b = rng.normal(size=(m, k)) * 3, rng.normal(size=(k, n)) * 3
        a, b = a.astype(left), b.astype(right)
        exact = a.astype("f8") @ b.astype("f8")
        p = params((((1,), (0,)), ((), ())), out)
        plan = plan_op("dot_general", [OperandView(a), OperandView(b)], p)
        assert not any(isinstance(step, HostStep) for step in plan.steps)
        (product,) = run_native(plan, [OperandView(a), OperandView(b)])
        error = np.abs(product.astype("f8") - exact)
        assert (error <= 1.05 * eps * (np.abs(exact) + 0.05 * np.sqrt(k))).all()
        turned = jnp.asarray(np.array(a.T)).T, jnp.asarray(np.array(b.T)).T
        other_paths = [lax.dot_general(*turned, p["dimension_numbers"], preferred_element_type=out)]
        for number in (1, 5):
            with threads(number):
                other_paths.append(jnp.jit(lax.dot_general, static_argnums=(2, 3, 4))(
                    a, b, p["dimension_numbers"], None, out
                ))  # fmt: skip
        for other in other_paths:
            np.testing.assert_array_equal(np.asarray(other), product)


def test_results_do_not_depend_on_layout_threads_or_loops():
    rng = np.random.default_rng(1)
    for m, k, n in ((300, 600, 200), (1, 300, 400), (70, 5, 3), (3, 4, 2)):
        a, b = (jnp.asarray(rng.normal(size=s).astype("f4")) for s in ((m, k), (k, n)))
        whole = np.asarray(a @ b)
        turned = jnp.asarray(np.asarray(a).T), jnp.asarray(np.asarray(b).T)
        product = jnp.jit(lambda x, y: x @ y)
        results = [
            jnp.jit(lambda x, y: x.T @ y.T)(*turned),
            (turned[1] @ turned[0]).T,
            lax.fori_loop(0, 2, lambda i, c, a=a, b=b: a @ b, jnp.zeros((m, n))),
            lax.map(lambda x, b=b: x @ b, jnp.stack([a, a]))[1],
        ]
        if m > 1:  # else there would be another shape: two rows
            results.append(jnp.vmap(lambda x, b=b: x @ b)(jnp.stack([a, a]))[0])
        for number in (1, 2, 5):
            with threads(number):
                results += [product(a, b), a @ b]
        for other in results:
            np.testing.assert_array_equal(np.asarray(other), whole)


def test_attention_copies_nothing():
    rng = np.random.default_rng(2)
    q, k, v = (rng.normal(size=(2, 9, 3, 5)).astype("f4") for _ in range(3))
    scores = {"dimension_numbers": (((3,), (3,)), ((0, 2), (0, 2)))}
    values = {"dimension_numbers": (((3,), (1,)), ((0, 1), (0, 2)))}
    w = np.einsum("bqhd,bkhd->bhqk", q, k)
    for x, y, dims in ((q, k, scores), (w, v, values)):
        p = {**dims, "precision": None, "preferred_element_type": np.dtype("f4")}
        plan = check_op("dot_general", [OperandView(x), OperandView(y)], p, close)
        assert len(plan.steps) == 1
    out = jnp.einsum("bhqk,bkhd->bqhd", jnp.einsum("bqhd,bkhd->bhqk", q, k), v)
    np.testing.assert_allclose(out, np.einsum("bhqk,bkhd->bqhd", w, v), rtol=1e-4, atol=1e-4)
