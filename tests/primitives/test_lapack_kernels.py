"""Kernels that call LAPACK, compared with the reference functions for any layout and batch, and
with JAX including the signs of vectors.

The tests also cover failures, native loops and kernels loaded from disk.
"""

import ctypes
import importlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as J
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primitives.linalg_cases import EIGH, SVD, qr
from primitives.own_kernels import (
    OperandView,
    check_op,
    draw_settings,
    draw_view,
    plan_op,
    run_native,
)
from primitives.test_linalg_kernels import SOLVES, close

import accnp as jnp
from accnp import lax
from accnp.compiler.library.linalg import small_matrices
from accnp.engine.steps import HostStep
from accnp.ir.op import OPS

REAL, COMPLEX = ["f4", "f8"], ["c8", "c16"]


def numbers(rng, shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def like(actual, expected):
    """Compare up to the signs of vectors, which depend on the build of LAPACK."""
    return close(np.abs(actual), np.abs(expected))


@st.composite
def matrices(draw, dtypes):
    """Draw regular square matrices with a batch, right-hand sides, and a function that returns
    views."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    dtype = draw(st.sampled_from(dtypes))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    n, r = draw(st.sampled_from([1, 2, 3, 5])), draw(st.integers(1, 4))
    a = numbers(rng, (*batch, n, n), dtype) + 4 * np.eye(n, dtype=dtype)
    b = numbers(rng, (*batch, n, r), dtype)

    def view(x):
        """Return a view that does not change the values."""
        array = draw_view(draw, x)
        return array if np.array_equal(array.value, x) else OperandView(x)

    return a.astype(dtype), b, view


@draw_settings(12)
@given(matrices(REAL + COMPLEX))
def test_eigenvectors(case):
    a, _, view = case
    for lower in (True, False):
        check_op("eigh", [view(a + adjoint(a))], {**EIGH, "lower": lower}, like)


@draw_settings(12)
@given(matrices(REAL + COMPLEX), st.sampled_from(["square", "wide", "tall"]), st.booleans())
def test_orthogonal_factors(case, form, full):
    a, b, view = case
    if form == "wide":
        a = np.concatenate([a, b], -1)
    elif form == "tall":
        a = np.concatenate([a, adjoint(b)], -2)
    for vectors in (True, False):
        check_op("svd", [view(a)], {**SVD, "full_matrices": full, "compute_uv": vectors}, like)
    check_op("qr", [view(a)], qr(full), close)


@draw_settings(12)
@given(matrices(REAL + COMPLEX), st.booleans())
def test_tridiagonal_systems(case, singular):
    a, b, view = case
    rows = [np.ascontiguousarray(x) for x in (a[..., 0], a.diagonal(0, -2, -1) + 9, a[..., -1, :])]
    rows = [np.zeros_like(x) for x in rows] if singular else rows
    agree = (lambda x, y: np.isnan(x).all() and np.isnan(y).all()) if singular else close
    check_op("tridiagonal_solve", [*map(view, rows), view(b)], {"perturb_singular": False}, agree)


@draw_settings(12)
@given(matrices(COMPLEX), st.sampled_from(SOLVES), st.booleans())
def test_complex_systems_and_factors(case, params, conjugate):
    a, b, view = case
    check_op("linear_solve", [view(a), view(b)], {}, close)
    check_op("cholesky", [view(a @ adjoint(a))], {}, close)
    check_op("lu", [view(a)], {}, close)
    check_op("det", [view(a)], {}, close)
    check_op("slogdet", [view(a)], {}, close)
    b = b if params["left_side"] else b.swapaxes(-1, -2).copy()
    check_op("triangular_solve", [view(a), view(b)], {**params, "conjugate_a": conjugate}, close)


@pytest.mark.parametrize("n", [33, 70])
def test_sizes_beyond_lapacks_blocks(n, monkeypatch):
    """Only very large real matrices are passed to LAPACK; the test lowers the limit to 20."""
    monkeypatch.setattr(small_matrices, "LARGE", 20)
    rng = np.random.default_rng(n)
    for dtype in ("f4", "c8", "f8"):
        a, b = numbers(rng, (n, n), dtype), numbers(rng, (n, n // 2), dtype)
        regular = (a / n + 2 * np.eye(n)).astype(dtype)
        for op, operands, params in (
            ("eigh", [a + adjoint(a)], EIGH),
            *[("svd", [x], {**SVD, "full_matrices": f}) for x in (b, b.T) for f in (False, True)],
            *[("qr", [x], qr(f)) for x in (b, b.T) for f in (False, True)],
            ("cholesky", [a @ adjoint(a) + np.eye(n, dtype=dtype)], {}),
            ("linear_solve", [regular, b], {}),
            ("lu", [regular], {}),
            ("slogdet", [regular], {}),
        ):
            drawn = [OperandView(x) for x in operands]
            plan = plan_op(op, drawn, params)
            assert not any(isinstance(step, HostStep) for step in plan.steps), op
            expected = OPS[op].numpy(*operands, **params)  # type: ignore[misc]
            actual = run_native(plan, drawn)
            for x, y in zip(
                actual, expected if isinstance(expected, tuple) else (expected,), strict=True
            ):
                scale = 1e-3 if dtype in ("f4", "c8") else 1e-10
                bound = scale * np.abs(y).max()
                np.testing.assert_allclose(np.abs(x), np.abs(y), atol=bound, err_msg=op)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_signs_and_failures_are_those_of_jax(dtype):
    rng = np.random.default_rng(0)
    a = numbers(rng, (6, 6), dtype)
    tall = numbers(rng, (2, 7, 4), dtype)
    nan = np.full((3, 3), np.nan, dtype)
    zero = np.zeros((2, 2), dtype)
    for f, x in (
        (lambda j, x: j.linalg.eigh(x), a),
        (lambda j, x: j.linalg.svd(x), tall),
        (lambda j, x: j.linalg.svd(x, full_matrices=False), tall.swapaxes(1, 2).copy()),
        (lambda j, x: j.linalg.qr(x), tall),
        (lambda j, x: j.linalg.qr(x, mode="complete"), tall),
        (lambda j, x: (j.linalg.cholesky(x @ x.conj().T),), a),
        (lambda j, x: j.linalg.slogdet(x), a),
        (lambda j, x: j.linalg.eigh(x), nan),
        (lambda j, x: j.linalg.svd(x), nan),
        (lambda j, x: (j.linalg.cholesky(x),), -a @ a.conj().T),
        (lambda j, x: j.linalg.slogdet(x), zero),
    ):
        for actual, expected in zip(f(jnp, jnp.asarray(x)), f(J, J.asarray(x)), strict=True):
            # The imaginary part of a NaN is not compared.
            if np.isnan(np.asarray(expected)).any():
                np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
            else:
                np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_infinite_matrices_have_no_singular_values(dtype):
    """LAPACK, and therefore JAX, never returns for this matrix."""
    a = np.array([[np.inf, 1, 0.5], [1, 3, -0.25], [0.5, -0.25, 4]], dtype)
    factors = jnp.linalg.svd(np.stack([a, np.eye(3, dtype=dtype)]))
    assert all(np.isnan(x[0]).all() and np.isfinite(x[1]).all() for x in map(np.asarray, factors))
    by_qr = jnp.lax.linalg.svd(jnp.asarray(a), algorithm=jnp.lax.linalg.SvdAlgorithm.QR)
    assert all(np.isnan(x).all() for x in map(np.asarray, by_qr))
    assert jnp.isnan(jnp.linalg.pinv(a)).all()


def test_loops_with_lapack_calls_are_native():
    rng = np.random.default_rng(1)
    a = rng.normal(size=(5, 5)).astype("f4")

    def f(j, loops, x):
        def body(i, q):
            q = j.linalg.qr(x @ q)[0]
            w, v = j.linalg.eigh(q.T @ (x + x.T) @ q)
            return v * j.linalg.svd(q, full_matrices=False)[1] + 0 * w

        return loops.fori_loop(0, 4, body, j.eye(5))

    actual = jnp.jit(lambda x: f(jnp, lax, x))(a)
    np.testing.assert_allclose(actual, f(J, jax.lax, J.asarray(a)), rtol=1e-3, atol=1e-3)
    assert "library call" not in str(jnp.inspect(lambda x: f(jnp, lax, x))(a))


@pytest.mark.parametrize(("shape", "alone"), [((4, 4), 0), ((50, 50), 1), ((300, 300), 0)])
@pytest.mark.parametrize("op", ["linear_solve", "cholesky", "eigh"])
def test_short_factorizations_have_one_thread(op, shape, alone):
    """OpenBLAS's threads gain nothing for these sizes, and wait for each other if the CPUs are
    busy."""
    a = np.eye(*shape, dtype="c16")
    operands = [OperandView(a)] * (2 if op == "linear_solve" else 1)
    with jnp.threads(2):
        (step,) = plan_op(op, operands, EIGH if op == "eigh" else {}).steps
    assert step.text.source.count("blas_alone()") == step.text.source.count("blas_shared()")
    assert step.text.source.count("blas_alone()") == alone


def test_openblas_threads_are_restored():
    """Also if several threads have called it at once."""
    module = ctypes.CDLL(importlib.import_module("scipy.linalg.cython_lapack").__file__)
    number = getattr(module, "scipy_openblas_get_num_threads", None)
    if number is None:
        pytest.skip("SciPy has another BLAS here")
    x = np.random.default_rng(0).normal(size=(4, 20, 20))
    before, eigh = number(), jnp.jit(lambda x: jnp.linalg.eigh(x + x.mT)[0])
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: np.asarray(eigh(x)), range(200)))
    np.testing.assert_allclose(results[-1], np.linalg.eigvalsh(x + x.mT), atol=1e-5)
    assert number() == before


def test_a_new_process_loads_the_routines_from_disk(tmp_path):
    code = (
        "import numpy as np, accnp as jnp, sys\n"
        "before = 'scipy' in sys.modules\n"
        "w, v = jnp.linalg.eigh(np.array([[2, 1], [1, 2]], np.float32))\n"
        "print(before, 'numba' in sys.modules, 'scipy' in sys.modules, *np.round(w, 3))\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"ACCNP_CACHE_DIR": str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert outputs[0][2:] == outputs[1][2:] == ["True", "1.0", "3.0"]
    assert outputs[1][:2] == ["False", "False"]
