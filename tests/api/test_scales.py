"""Derivatives and norms at very small and very large numbers: no intermediate square overflows or
underflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import lax, nn
from accnp.scipy import linalg
from accnp.scipy.cluster import vq
from accnp.scipy.spatial.transform import Rotation
from accnp.scipy.stats import cauchy, t

SCALES = {"float32": (2.0**-120, 2.0**-90, 1.0, 2.0**90, 2.0**120),
          "float64": (2.0**-1000, 2.0**-700, 1.0, 2.0**700, 2.0**1000)}  # fmt: skip
V = np.array([3.0, -4.0, 1.5])
M = np.array([[3.0, 1.0], [4.0, 7.0]])
Q = np.array([0.1, -0.2, 0.3, 0.9])

# A function of its operands, and the power of a scale of these that its value has.
HOMOGENEOUS: list[tuple[Callable[..., Any], int, tuple[Any, ...]]] = [
    (jnp.arctan2, 0, (3.0, 4.0)),
    (jnp.arctan2, 0, (-4.0, 3.0)),
    (jnp.arctan2, 0, (2.0, -2.0)),
    (lax.atan2, 0, (-3.0, -4.0)),
    (jnp.hypot, 1, (3.0, 4.0)),
    (jnp.linalg.norm, 1, (V,)),
    (lambda x: jnp.linalg.norm(x, 3), 1, (V,)),
    (lambda x: jnp.linalg.norm(x, 1.5), 1, (V,)),
    (lambda x: jnp.linalg.norm(x, -2), 1, (V,)),
    (lambda x: jnp.linalg.norm(x, axis=0)[1], 1, (M,)),
    (lambda x: jnp.linalg.vector_norm(x), 1, (M,)),
    (lambda x: jnp.linalg.matrix_norm(x), 1, (M,)),
    (lambda x: (x / jnp.linalg.norm(x))[0], 0, (V,)),
    (lambda x, y: jnp.abs(lax.complex(x, y)), 1, (3.0, 4.0)),
    (lambda x, y: jnp.angle(lax.complex(x, y)), 0, (3.0, -4.0)),
    (lambda x, y: jnp.linalg.norm(lax.complex(x, y)), 1, (V, V[::-1].copy())),
    (lambda x, y: (lax.complex(x, y) / lax.complex(y, x)).real, 0, (3.0, 4.0)),
    (lambda x: jnp.linalg.svd(x)[0][0, 0], 0, (M,)),
    (lambda x: jnp.linalg.svd(x)[2][0, 1], 0, (M,)),
    (lambda x: Rotation.from_quat(x).as_matrix()[0, 1], 0, (Q,)),
    (lambda x: Rotation.from_quat(x).magnitude(), 0, (Q,)),
    (lambda x, y: vq.vq(x[None], y[None])[1][0], 1, (V, V[::-1].copy())),
]


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize(("f", "power", "operands"), HOMOGENEOUS)
def test_derivatives_of_scaled_operands(f: Any, power: int, operands: Any, dtype: str) -> None:
    with accnp.enable_x64():
        xs = [np.asarray(x, dtype) for x in operands]
        gradient = accnp.grad(f, tuple(range(len(xs))))
        value, unscaled_gradients = f(*xs), gradient(*xs)
        near = {"rtol": 1e-4 if dtype == "float32" else 1e-12}
        for scale in SCALES[dtype]:
            if power == 0 and scale < 1:  # the slopes are beyond the range without a small factor
                factor = np.asarray(scale, dtype)
                gradient = accnp.grad(lambda *v, c=factor: c * f(*v), tuple(range(len(xs))))
                wide = 1.0
            else:
                gradient = accnp.grad(f, tuple(range(len(xs))))
                wide = scale ** (power - 1)
            scaled = [x * np.asarray(scale, dtype) for x in xs]
            np.testing.assert_allclose(f(*scaled), value * scale**power, **near)
            for how in (gradient, accnp.jit(gradient)):
                for actual, expected in zip(how(*scaled), unscaled_gradients, strict=True):
                    np.testing.assert_allclose(actual, expected * wide, atol=wide * 1e-5, **near)


@pytest.mark.parametrize("dtype", SCALES)
def test_derivatives_at_large_numbers(dtype: str) -> None:
    large = SCALES[dtype][3]
    with accnp.enable_x64():
        x = np.asarray(large, dtype)
        for f, expected in [
            (jnp.arcsinh, 1 / large),
            (nn.gelu, 1.0),
            (nn.squareplus, 1.0),
            (lambda v: jnp.arctan(v) * x, 1 / large),
            (lambda x: cauchy.logpdf(x), -2 / large),
            (lambda x: t.logpdf(x, 2.5), -3.5 / large),
            (lambda x: jnp.arcsinh(lax.complex(x, x)).real, 1 / large),
        ]:
            np.testing.assert_allclose(accnp.grad(f)(x), expected, rtol=1e-5)
        for f in (jnp.arctan, jnp.arcsinh, lambda x: jnp.arctan2(x, 1.0)):
            assert accnp.grad(f)(np.asarray(np.inf, dtype)) == 0


def test_second_derivatives_at_moderate_numbers() -> None:
    with accnp.enable_x64():
        last = [[-0.06, 0], [0, -4 / 17**1.5]]
        for f, expected in [
            (lambda v: jnp.arctan2(v[0], v[1]), [[-0.0384, -0.0112], [-0.0112, 0.0384]]),
            (jnp.linalg.norm, [[0.128, -0.096], [-0.096, 0.072]]),
            (lambda v: jnp.arctan(v[0]) + jnp.arcsinh(v[1]), last),
        ]:
            x = [3.0, 4.0]
            np.testing.assert_allclose(
                accnp.hessian(f)(np.array(x)), expected, rtol=1e-9, atol=1e-12
            )
            np.testing.assert_allclose(
                accnp.jit(accnp.hessian(f))(np.array(x, np.float32)), expected, rtol=1e-5, atol=1e-6
            )


# A function, the power of a scale of its operand that its value has, and an operand.
R = np.random.default_rng(0).standard_normal((4, 6))
S = R @ R.T
VALUES: list[tuple[Callable[..., Any], int, Any]] = [
    (jnp.corrcoef, 0, R),
    (lambda x: jnp.corrcoef(x, x[::-1] ** 1, rowvar=False), 0, R),
    (lambda x: jnp.abs(jnp.corrcoef(lax.complex(x, x[::-1]))), 0, R),
    (lambda x: jnp.corrcoef(x[0], x[1]), 0, R),
    (lambda x: linalg.solve_sylvester(x, x, x), 0, S),
    (lambda x: linalg.funm(x, lambda w: w).real, 1, S),
]


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize(("f", "power", "operand"), VALUES)
def test_values_of_scaled_operands(f: Any, power: int, operand: Any, dtype: str) -> None:
    with accnp.enable_x64(dtype == "float64"):
        x = operand.astype(dtype)
        expected, near = np.asarray(f(x)), 1e-4 if dtype == "float32" else 1e-11
        for scale in SCALES[dtype]:
            for g in (f, accnp.jit(f)):
                actual = np.asarray(g(x * np.asarray(scale, dtype))) / scale**power
                np.testing.assert_allclose(actual, expected, rtol=near, atol=near)


def test_correlations_of_variables_of_other_scales() -> None:
    x = R[:3].astype(np.float32) * np.float32([[1], [1e30], [1e-30]])
    np.testing.assert_allclose(jnp.corrcoef(x), np.corrcoef(x.astype(float)), rtol=1e-5)
    gradient = accnp.grad(lambda x: jnp.corrcoef(x)[0, 1])(x)
    unit = accnp.grad(lambda x: jnp.corrcoef(x)[0, 1])(R[:3].astype(np.float32))
    np.testing.assert_allclose(gradient[:2], unit[:2] / np.float32([[1], [1e30]]), rtol=1e-4)
