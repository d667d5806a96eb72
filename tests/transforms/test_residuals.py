"""The residuals that the forward pass of a scan saves, and the sums that its backward pass
computes.
"""

import numpy as np
import pytest

import accnp as jnp
from accnp import lax

STEPS = 10
X = np.linspace(-1, 1, STEPS * 4, dtype=np.float32).reshape(STEPS, 4)
H = np.ones(4, np.float32)
W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def scans(f, *args):
    """Return the scans of a function's gradient: (reverse, types of the carry, types of the stacked
    outputs)."""
    shapes = []
    for eqn in jnp.make_jaxpr(jnp.grad(f, tuple(range(len(args)))))(*args).jaxpr.eqns:
        if eqn.primitive.name == "scan":
            p, n = eqn.params, eqn.params["num_carry"]
            avals = [v.aval for v in eqn.outvars]
            shapes.append(
                (p["reverse"], [a.shape for a in avals[:n]], [a.shape for a in avals[n:]])
            )
    return shapes


def stacked_shapes(f, *args):
    """Return the shapes per step of the residuals that the forward pass stacks."""
    ((reverse, _, rows),) = [s for s in scans(f, *args) if not s[0]]
    assert not reverse
    return sorted(r[1:] for r in rows)


def loop(step, h, rows=X):
    return lax.scan(lambda h, r: (step(h, r), None), h, rows)[0].sum()


def test_constants_rows_and_results_are_not_kept_again():
    assert stacked_shapes(lambda w, h: loop(lambda h, r: jnp.tanh(h @ w + r), h), W, H) == [
        (4,),
        (4,),
    ]
    # The output is kept anyway, and the derivative of tanh is computed from it.
    rnn = lambda w, h: lax.scan(lambda h, r: (jnp.tanh(h @ w + r),) * 2, h, X)[1].sum()  # noqa: E731
    assert stacked_shapes(rnn, W, H) == [(4,), (4,)]


def test_loop_invariant_residuals_are_computed_once():
    f = lambda w, h: loop(lambda h, r: jnp.sin(h) * jnp.exp(w).sum(0) + r, h)  # noqa: E731
    assert stacked_shapes(f, W, H) == [(4,), (4,)]  # sin h and cos h, neither exp w nor its sum
    g = lambda s, h: loop(lambda h, r: jnp.sin(h) * (s * s) + r, h)  # noqa: E731
    assert stacked_shapes(g, np.float32(2), H) == [(4,), (4,)]
    eqns = jnp.make_jaxpr(jnp.grad(f))(W, H).jaxpr.eqns
    body = next(e for e in eqns if e.primitive.name == "scan").params["jaxpr"]
    assert "exp" not in str(body)


def test_views_of_small_values_are_kept_small():
    f = lambda w, h: loop(lambda h, r: h * h.sum() + (w * jnp.sin(h)[:, None]).sum(0), h)  # noqa: E731
    assert all(len(shape) < 2 for shape in stacked_shapes(f, W, H))


def test_truth_values_are_kept_instead_of_numbers():
    def f(h):
        return loop(lambda h, r: jnp.where(h > r, h * 2, h), h)

    eqns = jnp.make_jaxpr(jnp.grad(f))(H).jaxpr.eqns
    forward = next(e for e in eqns if e.primitive.name == "scan")
    assert [v.aval.dtype.name for v in forward.outvars[1:]] == ["bool"]


def test_operands_of_branches_are_not_kept():
    def f(w, h):
        return loop(lambda h, r: lax.cond(r[0] > 0, lambda: h @ w, lambda: jnp.sin(h)), h)

    assert stacked_shapes(f, W, H) == [(4,), (4,)]


def test_counters_are_kept_as_counters():
    f = lambda h: lax.fori_loop(0, STEPS, lambda i, h: h * i + jnp.sin(h), h).sum()  # noqa: E731
    assert stacked_shapes(f, H) == [(), (4,)]


def test_large_products_are_summed_after_the_loop():
    n, batch = 64, 8
    w = np.ones((n, n), np.float32) / n
    rows = np.linspace(-1, 1, STEPS * batch * n, dtype=np.float32).reshape(STEPS, batch, n)

    def f(w, h):
        return loop(lambda h, r: jnp.tanh(h @ w + r), h, rows)

    ((_, carry, _),) = [s for s in scans(f, w, rows[0]) if s[0]]
    assert (n, n) not in carry

    def unrolled(w, h):
        for r in rows:
            h = jnp.tanh(h @ w + r)
        return h.sum()

    actual = jnp.grad(f, (0, 1))(w, rows[0])
    expected = jnp.grad(unrolled, (0, 1))(w, rows[0])
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("unused", ["rows", "carry"])
def test_cotangents_that_are_zero_are_not_scanned(unused):
    def f(h):
        last, ys = lax.scan(lambda h, r: (jnp.sin(h) * r, h * h * r), h, X)
        return last.sum() if unused == "rows" else ys.sum()

    eqns = jnp.make_jaxpr(jnp.grad(f))(H).jaxpr.eqns
    backward = [e for e in eqns if e.primitive.name == "scan"][-1]
    stacked = [v for v in backward.invars if v.aval.shape[:1] == (STEPS,)]
    # cos h, h and the rows; the cotangent of the rows that are given, where there is one
    assert len(stacked) <= (3 if unused == "rows" else 4)
