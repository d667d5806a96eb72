"""Programs of statistical inference: marginal likelihoods, sampling, filters, optimal transport,
hidden states.

Each function takes a module with JAX's API, and returns a function of arrays and its arguments as
NumPy arrays.
"""

from typing import Any

import numpy as np
from programs.learning import Made, normal


def gaussian_process(m: Any) -> Made:
    """The marginal likelihood by `cholesky`, and its gradient in the logarithms of the
    parameters."""
    jnp = m.numpy

    def kernel(p, a, b):
        gap = (a[:, None] - b[None, :]) / jnp.exp(p["length"])
        return jnp.exp(2 * p["amplitude"]) * jnp.exp(-0.5 * (gap**2).sum(-1))

    def negative_log_likelihood(p, x, y):
        n = x.shape[0]
        noisy = kernel(p, x, x) + jnp.exp(2 * p["noise"]) * jnp.eye(n)
        factor = jnp.linalg.cholesky(noisy)
        whitened = jnp.linalg.solve(factor, y)
        log_det = 2 * jnp.log(jnp.diag(factor)).sum()
        return 0.5 * (whitened @ whitened + log_det + n * jnp.log(2 * jnp.pi))

    def predict(p, x, y, at):
        noisy = kernel(p, x, x) + jnp.exp(2 * p["noise"]) * jnp.eye(x.shape[0])
        across = kernel(p, at, x)
        mean = across @ jnp.linalg.solve(noisy, y)
        return mean, jnp.diag(kernel(p, at, at) - across @ jnp.linalg.solve(noisy, across.T))

    def run(p, x, y, at):
        value, gradient = m.value_and_grad(negative_log_likelihood)(p, x, y)
        return value, gradient, predict(p, x, y, at)

    p = {"length": np.zeros(2, np.float32), "amplitude": np.float32(0.1), "noise": np.float32(-1)}
    x = normal(0, 20, 2)
    return run, (p, x, np.sin(x[:, 0]) + normal(1, 20, scale=0.1), normal(2, 5, 2))


def hamiltonian(m: Any) -> Made:
    """Hamiltonian Monte Carlo: leapfrog in `fori_loop`, steps in `scan`, chains under `vmap`."""
    jnp = m.numpy

    def log_density(q):
        return -0.5 * (q[0] ** 2 / 2.0 + (q[1] - 0.3 * q[0] ** 2) ** 2)

    def leapfrog(q, p):
        gradient = m.grad(log_density)

        def leap(_, state):
            q, p = state
            p = p + 0.35 * gradient(q)
            q = q + 0.7 * p
            return q, p + 0.35 * gradient(q)

        return m.lax.fori_loop(0, 8, leap, (q, p))

    def step(q, key):
        key_p, key_u = m.random.split(key)
        p = m.random.normal(key_p, q.shape)
        q_new, p_new = leapfrog(q, p)
        gain = log_density(q_new) - log_density(q) - 0.5 * (p_new @ p_new - p @ p)
        accept = jnp.log(m.random.uniform(key_u)) < gain
        q = jnp.where(accept, q_new, q)
        return q, (q, accept)

    def chain(key, q):
        return m.lax.scan(step, q, m.random.split(key, 10))[1]

    def run(starts):
        keys = m.random.split(m.random.PRNGKey(7), starts.shape[0])
        positions, accepted = m.vmap(chain)(keys, starts)
        return positions, accepted.mean(), positions.mean((0, 1))

    return run, (normal(0, 4, 2),)


def kalman(m: Any) -> Made:
    """A Kalman filter by `scan`, and the gradient of the likelihood in the matrices of
    the model."""
    jnp = m.numpy

    def log_likelihood(model, seen):
        def step(state, y):
            mean, cov = state
            mean = model["a"] @ mean
            cov = model["a"] @ cov @ model["a"].T + jnp.diag(jnp.exp(model["q"]))
            error = y - model["c"] @ mean
            spread = model["c"] @ cov @ model["c"].T + jnp.diag(jnp.exp(model["r"]))
            gain = jnp.linalg.solve(spread, model["c"] @ cov).T
            sign_and_log = jnp.linalg.slogdet(spread)
            fit = -0.5 * (error @ jnp.linalg.solve(spread, error) + sign_and_log[1])
            mean = mean + gain @ error
            cov = cov - gain @ model["c"] @ cov
            return (mean, cov), (mean, fit)

        start = (jnp.zeros(3), jnp.eye(3))
        means, fits = m.lax.scan(step, start, seen)[1]
        return fits.sum(), means

    model = {
        "a": 0.8 * np.eye(3, dtype=np.float32) + normal(0, 3, 3, scale=0.1),
        "c": normal(1, 2, 3),
        "q": normal(2, 3, scale=0.1),
        "r": normal(3, 2, scale=0.1),
    }
    return m.value_and_grad(log_likelihood, has_aux=True), (model, normal(4, 15, 2))


def sinkhorn(m: Any) -> Made:
    """Entropic optimal transport by Sinkhorn iterations in the log domain, in `fori_loop`."""
    jnp = m.numpy

    def cost(x, y):
        distance = jnp.sum((x[:, None] - y[None]) ** 2, -1)
        a, b = -jnp.log(x.shape[0]), -jnp.log(y.shape[0])

        def improve(_, potentials):
            f, g = potentials
            f = 0.5 * (a - m.nn.logsumexp((g[None] - distance) / 0.5, axis=1))
            g = 0.5 * (b - m.nn.logsumexp((f[:, None] - distance) / 0.5, axis=0))
            return f, g

        zero = jnp.zeros(x.shape[0]), jnp.zeros(y.shape[0])
        f, g = m.lax.fori_loop(0, 30, improve, zero)
        plan = jnp.exp((f[:, None] + g[None] - distance) / 0.5)
        return jnp.sum(plan * distance), plan

    run = m.value_and_grad(cost, argnums=(0, 1), has_aux=True)
    return run, (normal(0, 7, 2), normal(1, 9, 2))


def viterbi(m: Any) -> Made:
    """The most likely hidden states: scores by `scan`, backtracking by a reverse `scan`.

    The gradient of the forward algorithm gives the posterior of the states.
    """
    jnp = m.numpy

    def best(start, move, emit):
        def forth(score, e):
            candidates = score[:, None] + move
            return candidates.max(0) + e, candidates.argmax(0)

        last, came_from = m.lax.scan(forth, start + emit[0], emit[1:])
        end = last.argmax()

        def back(state, came):
            before = came[state]
            return before, before

        path = m.lax.scan(back, end, came_from, reverse=True)[1]
        return jnp.append(path, end), last.max()

    def log_evidence(emit, start, move):
        def forth(score, e):
            return m.nn.logsumexp(score[:, None] + move, axis=0) + e, None

        return m.nn.logsumexp(m.lax.scan(forth, start + emit[0], emit[1:])[0])

    def run(start, move, emit):
        start, move = m.nn.log_softmax(start), m.nn.log_softmax(move, axis=1)
        value, posterior = m.value_and_grad(log_evidence)(emit, start, move)
        return best(start, move, emit), value, posterior, posterior.sum(1)

    return run, (normal(0, 4), normal(1, 4, 4), normal(2, 11, 4, scale=2.0))


def mixture(m: Any) -> Made:
    """A Gaussian mixture fitted by expectation maximization in `while_loop` until it converges."""
    jnp = m.numpy

    def log_joint(p, x):
        share, centre, deviation = p
        gap = (x[:, None] - centre[None]) / deviation[None]
        return jnp.log(share) - jnp.log(deviation).sum(-1) - 0.5 * (gap**2).sum(-1)

    def fit(x, centre):
        def improve(state):
            p, last, _, count = state
            joint = log_joint(p, x)
            total = m.nn.logsumexp(joint, axis=1, keepdims=True)
            weight = jnp.exp(joint - total)
            mass = weight.sum(0)
            centre = weight.T @ x / mass[:, None]
            gap = (x[:, None] - centre[None]) ** 2
            deviation = jnp.sqrt(jnp.einsum("nk,nkd->kd", weight, gap) / mass[:, None] + 1e-3)
            return (mass / x.shape[0], centre, deviation), total.mean(), last, count + 1

        def going(state):
            _, now, last, count = state
            return (jnp.abs(now - last) > 1e-3) & (count < 50)

        start = (jnp.full(3, 1 / 3), centre, jnp.ones_like(centre))
        (share, centre, deviation), value, _, _ = m.lax.while_loop(
            going, improve, (start, -1e9, 0.0, 0)
        )
        return share, centre, deviation, value

    x = np.concatenate([normal(i, 15, 2, scale=0.5) + 2.5 * i for i in range(3)])
    return fit, (x, np.array([[0, 0.5], [2, 3], [4, 4]], np.float32))


PROGRAMS = [gaussian_process, hamiltonian, kalman, sinkhorn, viterbi, mixture]
