"""Iterative solvers: solutions and derivatives do not depend on the scale of the system."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp.experimental.sparse.linalg import lobpcg_standard
from accnp.scipy.sparse import linalg

N = 8
_RNG = np.random.default_rng(5)
_B = _RNG.normal(size=(N, N))
MATRICES = {"cg": _B @ _B.T / N + 2 * np.eye(N), "bicgstab": _B / 4 + 3 * np.eye(N)}
MATRICES["gmres"] = MATRICES["bicgstab"]
RIGHT = _RNG.normal(size=N)
SCALES = {"float32": (1e-30, 1e-22, 1e30), "float64": (1e-300, 1e-200, 1e300)}


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_scales_of_systems(name: str, preconditioned: bool, dtype: str) -> None:
    matrix = MATRICES[name]
    inverse, right = np.linalg.inv(matrix), RIGHT.astype(dtype)
    near: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-3}

    def solve(a: Any, b: Any) -> Any:
        m = (lambda v: v / jnp.diag(a)) if preconditioned else None
        return getattr(linalg, name)(a, b, tol=1e-6, M=m)[0]

    with accnp.enable_x64():
        gradient = accnp.jit(accnp.grad(lambda b, c: (c * solve(matrix.astype(dtype), b)).sum()))
        for scale in SCALES[dtype]:
            for strength in (1.0, scale):
                factor = np.asarray(strength, dtype)
                b = right * np.asarray(scale, dtype)
                actual = np.asarray(solve(jnp.asarray(matrix.astype(dtype) * factor), b), float)
                np.testing.assert_allclose(actual * (strength / scale), inverse @ RIGHT, **near)
            actual = np.asarray(gradient(right, np.asarray(scale, dtype)), float)
            np.testing.assert_allclose(actual / scale, inverse.T @ np.ones(N), **near)


def test_no_bit_depends_on_the_scale() -> None:
    a = MATRICES["cg"].astype(np.float32)
    b = RIGHT.astype(np.float32)
    solution = np.asarray(linalg.cg(a, b)[0])
    for power in (-60, 60):
        factor = np.float32(2.0**power)
        np.testing.assert_array_equal(np.asarray(linalg.cg(a, b * factor)[0]) / factor, solution)


def test_initial_guess_is_used_and_keeps_precision() -> None:
    a = MATRICES["cg"].astype(np.float32)
    b = RIGHT.astype(np.float32)
    exact = np.linalg.solve(MATRICES["cg"], RIGHT).astype(np.float32)
    np.testing.assert_allclose(linalg.cg(a, b, x0=exact, maxiter=0)[0], exact)
    for name in MATRICES:
        solver, m = getattr(linalg, name), MATRICES[name].astype(np.float32)
        start = np.ones(N, np.float32)
        tangent = b * np.float32(1e-20)
        moved = accnp.jvp(lambda v, s=solver, m=m, x=start: s(m, v, x0=x)[0], (b,), (tangent,))[1]
        expected = np.linalg.solve(MATRICES[name], RIGHT)
        np.testing.assert_allclose(np.asarray(moved, float) * 1e20, expected, atol=1e-3)


@pytest.mark.parametrize("dtype", SCALES)
def test_scales_of_eigenproblems(dtype: str) -> None:
    matrix = np.diag(np.arange(1.0, 41.0)) + 0.1
    start = np.random.default_rng(1).normal(size=(40, 3))
    expected = np.linalg.eigvalsh(matrix)[::-1][:3]
    with accnp.enable_x64():
        for scale in (*SCALES[dtype], 1.0):
            scaled = jnp.asarray(matrix.astype(dtype) * np.asarray(scale, dtype))
            eigenvalues = lobpcg_standard(scaled, jnp.asarray(start.astype(dtype)), 60)[0]
            np.testing.assert_allclose(np.asarray(eigenvalues, float) / scale, expected, rtol=1e-3)
