"""Kernels of triangular systems and factorizations.

Batches, layouts and sizes around the block sizes are compared with the reference functions
(LAPACK), and failures with JAX. Results must not depend on loops and vmap, to the bit.
"""

import jax
import jax.numpy as J
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primitives.own_kernels import (
    OperandView,
    check_op,
    draw_settings,
    draw_view,
    plan_op,
    run_native,
)

import accnp as jnp
from accnp import lax
from accnp.array_type import wrap
from accnp.engine.steps import HostStep
from accnp.ir.op import OPS, o

SIZES = [1, 2, 3, 5, 8, 17, 33]
SOLVES = [
    {
        "left_side": bool(k & 1),
        "lower": bool(k & 2),
        "transpose_a": bool(k & 4),
        "conjugate_a": False,
        "unit_diagonal": bool(k & 8),
    }
    for k in range(16)
]


def close(actual, expected):
    if actual.dtype.kind in "iu":
        return np.array_equal(actual, expected)
    eps = float(np.finfo(actual.dtype).eps)
    size = np.abs(expected).max(initial=1)
    return np.allclose(actual, expected, rtol=1000 * eps, atol=1000 * eps * size, equal_nan=True)


def regular(rng, batch, n, dtype):
    """Return well-conditioned matrices whose rows are not exchanged by pivoting."""
    x = rng.normal(size=(*batch, n, n)) / np.sqrt(n)
    return (x + 3 * np.eye(n)).astype(dtype)


@st.composite
def systems(draw, sizes=(1, 2, 3, 5, 6)):
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    dtype = draw(st.sampled_from(["f4", "f8"]))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    n, r = draw(st.sampled_from(sizes)), draw(st.integers(1, 4))
    a = regular(rng, batch, n, dtype)
    b = rng.normal(size=(*batch, n, r)).astype(dtype)

    def view(x):
        """Return a view that does not change the values, so that matrices stay regular."""
        array = draw_view(draw, x)
        return array if np.array_equal(array.value, x) else OperandView(x)

    return a, b, view


@draw_settings(20)
@given(systems(), st.sampled_from(SOLVES))
def test_triangular_systems(case, params):
    a, b, view = case
    b = b if params["left_side"] else np.swapaxes(b, -1, -2).copy()
    check_op("triangular_solve", [view(a), view(b)], params, close)


@draw_settings(12)
@given(systems())
def test_linear_systems(case):
    a, b, view = case
    check_op("linear_solve", [view(a), view(b)], {}, close)


@draw_settings(12)
@given(systems())
def test_cholesky(case):
    a, _, view = case
    check_op("cholesky", [view(a @ np.swapaxes(a, -1, -2))], {}, close)


@draw_settings(12)
@given(systems(), st.sampled_from(["square", "wide", "tall"]), st.booleans())
def test_factors_and_determinants(case, form, mixed):
    a, b, view = case
    a = a[..., ::-1, :].copy() if mixed else a  # every row must be exchanged
    check_op("det", [view(a)], {}, close)
    check_op("slogdet", [view(a)], {}, close)
    if form == "wide":
        a = np.concatenate([a, b], -1)
    elif form == "tall":
        a = np.concatenate([a, np.swapaxes(b, -1, -2)], -2)
    check_op("lu", [view(a)], {}, close)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [31, 32, 33, 64, 100, 130])
def test_sizes_around_the_blocks(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n)).astype(dtype)
    b = rng.normal(size=(n, n + 3)).astype(dtype)
    s = regular(rng, (), n, dtype)
    for op, operands, params in (
        ("cholesky", [s @ s.T], {}),
        ("linear_solve", [s, b], {}),
        ("lu", [a], {}),
        ("lu", [b], {}),
        ("lu", [b.T], {}),
        *[("triangular_solve", [s, b if p["left_side"] else b.T], p) for p in SOLVES],
    ):
        drawn = [OperandView(x) for x in operands]
        plan = plan_op(op, drawn, params)
        assert not any(isinstance(step, HostStep) for step in plan.steps)
        expected = OPS[op].numpy(*operands, **params)  # type: ignore[misc]
        for x, y in zip(
            run_native(plan, drawn),
            expected if isinstance(expected, tuple) else (expected,),
            strict=True,
        ):
            assert close(x, y.astype(x.dtype)), op


def test_failures_are_those_of_jax():
    singular, zero = np.array([[1, 2], [2, 4]], "f4"), np.zeros((3, 3), "f4")
    right = np.array([1, 1], "f4")
    for f, xs in (
        (lambda j, a, b: j.linalg.solve(a, b), (singular, right)),
        (lambda j, a: j.linalg.inv(a), (zero,)),
        (lambda j, a: j.linalg.det(a), (zero,)),
        (lambda j, a: j.linalg.slogdet(a)[1], (zero,)),
        (lambda j, a: j.linalg.cholesky(a), (singular - 3,)),
        (lambda j, a: j.linalg.cholesky(a), (np.stack([np.eye(2, dtype="f4"), singular - 3]),)),
        (lambda j, a: j.linalg.cholesky(a), (np.full((3, 3), np.nan, "f4"),)),
    ):
        expected = np.asarray(f(J, *[J.asarray(x) for x in xs]))
        np.testing.assert_array_equal(np.asarray(f(jnp, *[jnp.asarray(x) for x in xs])), expected)


def test_complex_systems_and_failures_go_to_lapack():
    rng = np.random.default_rng(7)
    a = (regular(rng, (2,), 4, "f4") + 1j * rng.normal(size=(2, 4, 4)) / 4).astype("c8")
    b = (rng.normal(size=(2, 4, 2)) + 1j).astype("c8")
    for params in SOLVES:
        params = {**params, "conjugate_a": True}
        y = b if params["left_side"] else b.swapaxes(1, 2)
        actual = wrap(o.triangular_solve(jnp.asarray(a)._node, jnp.asarray(y)._node, **params))
        expected = jax.lax.linalg.triangular_solve(a, y, **params)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    zero = np.zeros((2, 2), "c8")
    assert not np.isfinite(np.asarray(jnp.linalg.inv(zero))).all()


def test_results_do_not_depend_on_batch_loop_or_jit():
    rng = np.random.default_rng(8)
    a, b = regular(rng, (5,), 20, "f4"), rng.normal(size=(5, 20, 3)).astype("f4")
    whole = np.asarray(jnp.linalg.solve(a, b))
    by_jit = np.asarray(jnp.jit(jnp.linalg.solve)(a, b))
    by_vmap = np.asarray(jnp.vmap(jnp.linalg.solve)(a, b))
    by_loop = np.asarray(lax.map(lambda x: jnp.linalg.solve(x[0], x[1]), (a, b)))
    for other in (
        by_jit,
        by_vmap,
        by_loop,
        np.stack([jnp.linalg.solve(x, y) for x, y in zip(a, b, strict=True)]),
    ):
        np.testing.assert_array_equal(whole, other)
