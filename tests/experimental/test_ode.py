"""Ordinary differential equations, compared with SciPy, and adjoint derivatives, compared with
difference quotients.
"""

import numpy as np
import pytest
import scipy.integrate

import accnp
import accnp.numpy as jnp
from accnp.experimental.ode import odeint

TIMES = np.array([0.0, 0.5, 1.5, 3.0])
START = np.array([0.7, 0.2])


def pendulum(y, t, a):
    return jnp.stack([y[1], -a * jnp.sin(y[0]) - 0.1 * t * y[1]])


@pytest.fixture
def doubles():
    with accnp.enable_x64(True):
        yield


def test_matches_scipy(doubles):
    actual = odeint(pendulum, START, TIMES, 2.0)
    expected = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], -2 * np.sin(y[0]) - 0.1 * t * y[1]],
        (0, 3), START, t_eval=TIMES, rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(actual, expected.y.T, atol=1e-7)


def test_adjoint_derivatives(doubles):
    def loss(y, t, a):
        return (odeint(pendulum, y, t, a) ** 2).sum()

    at = [START, TIMES, np.array(2.0)]
    for k, gradient in enumerate(accnp.grad(loss, (0, 1, 2))(*at)):
        for place in np.ndindex(at[k].shape):
            step = np.zeros(at[k].shape)
            step[place] = 1e-5
            more, less = ([*at[:k], at[k] + s, *at[k + 1 :]] for s in (step, -step))
            expected = (float(loss(*more)) - float(loss(*less))) / 2e-5
            np.testing.assert_allclose(float(gradient[place]), expected, atol=1e-5)


def test_times_that_are_equal():
    actual = odeint(lambda y, t: -y, jnp.array([2.0]), jnp.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(actual[:, 0], [2, 2, 2 * np.exp(-1)], rtol=1e-5)


def test_integers_among_arguments():
    def loss(w):
        return odeint(lambda y, t, w, n: -w * y * n, 1.0, jnp.array([0.0, 1.0]), w, 2)[-1]

    np.testing.assert_allclose(accnp.grad(loss)(0.5), -2 * np.exp(-1), rtol=1e-4)


def test_too_few_steps():
    exact, few = (odeint(pendulum, START, TIMES, 2.0, mxstep=n) for n in (np.inf, 2))
    assert np.abs(exact - few).max() > 0.01
    still = odeint(pendulum, START, TIMES, 2.0, mxstep=0)
    np.testing.assert_array_equal(still, np.float32(np.broadcast_to(START, (4, 2))))
