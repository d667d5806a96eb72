"""`custom_linear_solve`, `custom_root` and `platform_dependent`, compared with JAX."""

import jax
import jax.numpy
import numpy as np
import pytest

import accnp
import accnp.numpy

A = np.float32([[4, 1, 0], [1, 3, 0.5], [0.2, 0.5, 5]])
S = (A + A.T) / 2
V = np.float32([1, 2, 3])
Y = np.float32(2)


def close(actual, expected, tol=1e-4):
    a, b = accnp.tree.leaves(actual), jax.tree.leaves(expected)
    for x, y in zip(map(np.asarray, a), map(np.asarray, b), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, tol, tol)


# --- linear systems ---


def dense(b):
    """A solver that builds the matrix."""
    return lambda matvec, y: b.numpy.linalg.solve(b.jacobian(matvec)(y), y)


def conjugate_gradients(b):
    """A solver with a `while_loop`, which reverse mode cannot differentiate."""

    def solve(matvec, y):
        def step(c):
            x, r, p, k = c
            ap = matvec(p)
            a = r @ r / (p @ ap)
            s = r - a * ap
            return x + a * p, s, s + (s @ s) / (r @ r) * p, k + 1

        start = (b.numpy.zeros_like(y), y, y, 0)
        return b.lax.while_loop(lambda c: (c[3] < 9) & (c[1] @ c[1] > 1e-12), step, start)[0]

    return solve


def general(b, m, y):
    return b.lax.custom_linear_solve(lambda x: m @ x, y, dense(b), dense(b))


def symmetric(b, m, y):
    m = (m + m.T) / 2
    return b.lax.custom_linear_solve(lambda x: m @ x, y, conjugate_gradients(b), symmetric=True)


def in_loop(b, m, y):
    return b.lax.scan(lambda c, r: (general(b, m, c) + r, c), y, b.numpy.stack([y, y]))[0]


def with_aux(b, m, y):
    def solve(matvec, y):
        return dense(b)(matvec, y), {"twice": y * 2}

    x, aux = b.lax.custom_linear_solve(lambda x: m @ x, y, solve, solve, has_aux=True)
    return x + b.lax.stop_gradient(aux["twice"])


SYSTEMS = [general, symmetric, in_loop, with_aux]


@pytest.mark.parametrize("f", SYSTEMS)
def test_linear_systems(f):
    def everything(b):
        def total(m, y):
            return (f(b, m, y) ** 2).sum()

        def run(m, y):
            return (
                f(b, m, y),
                b.jvp(lambda m, y: f(b, m, y), (m, y), (m * 0.1, y)),
                b.grad(total, (0, 1))(m, y),
            )

        return run

    expected = jax.jit(everything(jax))(A, V)
    close(accnp.jit(everything(accnp))(A, V), expected)
    if f is symmetric:
        close(everything(accnp)(accnp.numpy.asarray(A), accnp.numpy.asarray(V)), expected)


@pytest.mark.parametrize("f", [general, symmetric])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_linear_systems_in_batches(f, axes):
    args = [np.stack([x, x * 2]) if a == 0 else x for x, a in zip((A, V), axes, strict=True)]

    def gradients(b):
        return b.vmap(b.grad(lambda m, y: (f(b, m, y) ** 3).sum(), (0, 1)), axes)

    close(accnp.jit(gradients(accnp))(*args), jax.jit(gradients(jax))(*args))


def test_second_derivatives_of_a_linear_system():
    def curvature(b):
        return b.jacfwd(b.jacrev(lambda m: (general(b, m, V) ** 3).sum()))

    expected = jax.jit(curvature(jax))(A)
    close(accnp.jit(curvature(accnp))(A), expected)

    def reverse(b):
        return b.jacrev(b.jacrev(lambda m: (general(b, m, V) ** 3).sum()))

    close(accnp.jit(reverse(accnp))(A), expected)


def test_a_system_of_trees():
    def f(b, s):
        return b.lax.custom_linear_solve(
            lambda x: {"a": s * x["a"], "b": 3 * x["b"]},
            {"a": V, "b": V[:2]},
            lambda _, y: {"a": y["a"] / s, "b": y["b"] / 3},
        )

    close(f(accnp, Y), f(jax, Y))
    close(accnp.jvp(lambda s: f(accnp, s), (Y,), (Y,)), jax.jvp(lambda s: f(jax, s), (Y,), (Y,)))


def test_the_transpose_of_a_solver_solves_the_transpose():
    actual = accnp.linear_transpose(lambda y: general(accnp, A, y), V)(V)[0]
    np.testing.assert_allclose(actual, np.linalg.solve(A.T, V), rtol=1e-5)


# --- roots ---


def newton(b):
    def solve(f, x):
        def step(c):
            x, _, k = c
            y, derivative = b.value_and_grad(f)(x)
            return x - y / derivative, y, k + 1

        def more(c):
            return (abs(c[1]) > 1e-7) & (c[2] < 30)

        return b.lax.while_loop(more, step, (x, f(x), 0))[0]

    return solve


def square_root(b, y):
    guess = b.numpy.float32(1)
    return b.lax.custom_root(lambda x: x * x - y, guess, newton(b), lambda g, v: v / g(1.0))


def derivatives(b, f):
    one = b.grad(f)
    two = b.grad(one)
    return lambda y: (f(y), one(y), two(y), b.jvp(one, (y,), (y,)))


def test_roots_of_a_number():
    def run(b):
        return derivatives(b, lambda y: square_root(b, y))

    expected = jax.jit(run(jax))(Y)
    close(run(accnp)(Y), expected)
    close(accnp.jit(run(accnp))(Y), expected)
    ys = np.float32([2, 3, 4])
    close(accnp.vmap(run(accnp))(ys), jax.vmap(run(jax))(ys))


def test_roots_of_a_vector():
    def find(f, x, b):
        def step(_, x):
            return x - b.numpy.linalg.solve(b.jacobian(f)(x), f(x))

        return b.lax.fori_loop(0, 20, step, x)

    def root(b, m, y):
        return b.lax.custom_root(
            lambda x: m @ x + b.numpy.tanh(x) - y,
            b.numpy.zeros(3),
            lambda f, x: find(f, x, b),
            dense(b),
        )

    def run(b):
        def f(m, y):
            return root(b, m, y)

        return lambda m, y: (f(m, y), b.jacrev(f, (0, 1))(m, y), b.jacfwd(f, (0, 1))(m, y))

    close(accnp.jit(run(accnp))(A, V), jax.jit(run(jax))(A, V))
    many = np.stack([A, A * 2])
    actual = accnp.vmap(lambda m: root(accnp, m, V))(many)
    close(actual, jax.vmap(lambda m: root(jax, m, V))(many))


def test_auxiliary_results_of_root_solvers():
    def f(b, y):
        def solve(f, x):
            return newton(b)(f, x), {"guess": x * 3}

        return b.lax.custom_root(
            lambda x: x * x - y, y, solve, lambda g, v: v / g(1.0), has_aux=True
        )

    close(f(accnp, Y), f(jax, Y))
    gradients = [b.jit(b.grad(lambda y, b=b: f(b, y)[0]))(Y) for b in (accnp, jax)]
    close(*gradients)


def test_roots_within_control_flow():
    def f(b, y):
        def step(c, r):
            c = b.lax.cond(c > 0, lambda c: square_root(b, c * y + r), lambda c: c, c)
            return c, c

        return b.lax.scan(step, y, np.float32([1, 2]))[0]

    close(accnp.jit(accnp.grad(lambda y: f(accnp, y)))(Y), jax.grad(lambda y: f(jax, y))(Y))


# --- platforms ---


def test_platform_dependent_selects_the_platform():
    f = accnp.lax.platform_dependent
    assert f(1.0, cpu=lambda x: x + 1, default=lambda x: x) == 2.0
    assert f(1.0, tpu=lambda x: x + 1, default=lambda x: x) == 1.0
    assert float(accnp.jit(lambda x: f(x, cuda=lambda x: x * 2, cpu=lambda x: x * 3))(2.0)) == 6.0


# --- errors ---

lax = accnp.lax


def same(_, y):
    return y


WRONG = [
    (lambda: lax.custom_linear_solve(3, V, same), TypeError, "matvec must be callable"),
    (lambda: lax.custom_linear_solve(lambda x: x, V, 3), TypeError, "solve must be callable"),
    (lambda: lax.custom_linear_solve(lambda x: (x, x), V, same), TypeError, "matvec.*structure"),
    (
        lambda: lax.custom_linear_solve(lambda x: x[:2], V, same),
        TypeError,
        r"matvec.*float32\[2\].*float32\[3\]",
    ),
    (
        lambda: lax.custom_linear_solve(lambda x: x, {"w": V}, lambda _, y: {"w": y["w"][:2]}),
        TypeError,
        r"\['w'\].*float32\[2\].*float32\[3\]",
    ),
    (
        lambda: lax.custom_linear_solve(lambda x: x, V, same, has_aux=True),
        TypeError,
        "pair",
    ),
    (
        lambda: accnp.grad(lambda y: lax.custom_linear_solve(lambda x: x, y, same).sum())(V),
        TypeError,
        "transpose_solve",
    ),
    (lambda: lax.custom_root(3, Y, same, same), TypeError, "f must be callable"),
    (lambda: lax.custom_root(lambda x: (x, x), Y, same, same), TypeError, "f.*structure"),
    (
        lambda: lax.custom_root(lambda x: x, Y, same, lambda g, y: (y, y)),
        TypeError,
        "tangent_solve.*structure",
    ),
    (lambda: lax.platform_dependent(1.0, cpu=3), TypeError, "'cpu'"),
    (lambda: lax.platform_dependent(1.0, tpu=same), NotImplementedError, "'cpu'.*tpu"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_use_raises_helpful_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
