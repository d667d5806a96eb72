"""`minimize` compared with SciPy in float64, also where line searches must backtrack."""

import numpy as np
import pytest
import scipy.optimize

import accnp
import accnp.numpy as jnp
from accnp.scipy.optimize import minimize

METHODS = ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"]


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(p):
    return (p[0] ** 2 + p[1] - 11) ** 2 + (p[0] + p[1] ** 2 - 7) ** 2


# From zeros the first step is bracketed, and the better end of the bracket is the far one: a search
# that takes the bracket's length with its sign gives up there.
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("function", "start"),
    [(rosenbrock, np.zeros(2)), (himmelblau, np.zeros(2))],
)
def test_minimize_matches_scipy(function, start, method):
    with accnp.enable_x64(True):
        result = minimize(function, jnp.asarray(start), method=method, options={"ftol": 1e-16}
                         if "l-bfgs" in method else None)  # fmt: skip
        expected = scipy.optimize.minimize(function, start, method="BFGS", jac=accnp.grad(function))
        assert bool(result.success)
        assert int(result.status) == 0
        np.testing.assert_allclose(result.x, expected.x, rtol=1e-5)
        assert float(result.fun) == float(function(result.x))
        assert float(np.max(np.abs(result.jac))) < 1e-5


def test_bfgs_approximates_the_inverse_hessian():
    with accnp.enable_x64(True):
        result = minimize(rosenbrock, jnp.zeros(2), method="BFGS")
        exact = np.linalg.inv(np.asarray(accnp.hessian(rosenbrock)(result.x)))
        np.testing.assert_allclose(result.hess_inv, exact, rtol=0.05)
        np.testing.assert_allclose(result.hess_inv, np.asarray(result.hess_inv).T, rtol=1e-12)


def test_float32_converges():
    result = minimize(rosenbrock, jnp.zeros(2), method="BFGS")
    np.testing.assert_allclose(result.x, [1, 1], rtol=1e-4)


def test_derivative_of_a_minimum():
    def at(a):
        return minimize(lambda x: ((x - a) ** 2).sum(), jnp.zeros(2), method="BFGS").x

    _, tangent = accnp.jvp(at, (jnp.array([1.0, 2.0]),), (jnp.array([1.0, 0.0]),))
    np.testing.assert_allclose(tangent, [1, 0], atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_units_of_values_and_positions_do_not_matter(method, dtype):
    far = 1e30 if dtype == "float32" else 1e300
    near = np.asarray([1 / far, 1, far])
    with accnp.enable_x64(dtype == "float64"):

        @accnp.jit
        def solve(value, length, gtol):
            options = {"gtol": gtol} | ({} if method == "BFGS" else {"ftol": 0.0})
            start = jnp.asarray([-1.0, 2.0, 0.5], dtype) * length
            return minimize(
                lambda x: rosenbrock(x / length) * value, start, method=method, options=options
            )

        for value in near.astype(dtype):
            for length in near.astype(dtype):
                gtol = 1e-3 * float(value) / float(length)
                if 1e-3 / far < gtol < far:
                    out = solve(value, length, np.asarray(gtol, dtype))
                    assert bool(out.success)
                    np.testing.assert_allclose(np.asarray(out.x) / length, np.ones(3), rtol=1e-2)
                    np.testing.assert_array_less(np.abs(out.jac), gtol)


@pytest.mark.parametrize("start", [0.0, 1e-30, -1e-10])
def test_start_close_to_zero_does_not_set_the_scale(start):
    out = minimize(rosenbrock, jnp.full(2, start), method="BFGS")
    np.testing.assert_allclose(out.x, [1, 1], rtol=1e-3)
