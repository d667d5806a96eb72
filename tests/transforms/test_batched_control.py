"""Control flow under `vmap`, compared with JAX and with a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from api.oracle import jax_result

import accnp

X = np.asarray([0.5, -1.0, 2.0, 3.5], np.float32)
K = np.asarray([3, 0, 5, 2], np.int32)
M = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
P = np.asarray([True, False, True, True])


def halve(m: Any) -> Callable[..., Any]:
    """Halve until the value is below 1, and count the steps."""
    return lambda x: m.lax.while_loop(lambda c: c[0] >= 1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))


def root(m: Any) -> Callable[..., Any]:
    """Newton steps until they are small; a row that continued after convergence would
    stay finite."""

    def f(x: Any) -> Any:
        return m.lax.while_loop(
            lambda c: m.numpy.abs(c * c - x) > 1e-3, lambda c: 0.5 * (c + x / c), x + 1.0
        )

    return f


def explode(m: Any) -> Callable[..., Any]:
    """A row that continued after its last step would overflow, then divide by zero."""
    return lambda x: m.lax.while_loop(lambda c: m.numpy.abs(c) < 50, lambda c: c**3 + 2, x)


def three(m: Any) -> list[Callable[..., Any]]:
    return [lambda x: x, lambda x: x * x, lambda x: m.numpy.sin(x)]


# name: (a function of jax or accnp that gives one of examples, in_axes, arguments)
PROGRAMS: dict[str, tuple[Callable[[Any], Callable[..., Any]], Any, list[Any]]] = {
    "cond, predicate": (
        lambda m: lambda p, x: m.lax.cond(p, lambda y: y * 2, lambda y: y - 1, x),
        0,
        [P, X],
    ),
    "cond, predicate alone": (
        lambda m: lambda p: m.lax.cond(p, lambda: 1.0, lambda: 2.0),
        0,
        [P],
    ),
    "cond, operand": (
        lambda m: lambda p, x: m.lax.cond(p, lambda y: (y, 1), lambda y: (y - 1, 2), x),
        (None, 0),
        [True, X],
    ),
    "cond, closure": (
        lambda m: lambda p, x: m.lax.cond(p, lambda: x * 2, lambda: x[::-1]),
        (0, 0),
        [P, M],
    ),
    "cond, tree": (
        lambda m: (
            lambda p, x: m.lax.cond(
                p, lambda t: {"a": t["a"], "b": t["a"] * 2}, lambda t: t, {"a": x, "b": x}
            )
        ),
        0,
        [P, X],
    ),
    "cond of log of what is not taken": (
        lambda m: lambda x: m.lax.cond(x > 0, m.numpy.log, lambda y: y, x),
        0,
        [X],
    ),
    "switch, index": (lambda m: lambda i, x: m.lax.switch(i, three(m), x), 0, [K - 1, X]),
    "switch, index alone": (lambda m: lambda i, x: m.lax.switch(i, three(m), x), (0, None), [K, M]),
    "switch, operand": (lambda m: lambda i, x: m.lax.switch(i, three(m), x), (None, 0), [1, X]),
    "while, rows end apart": (halve, 0, [X * 8]),
    "while, none begins": (halve, 0, [X * 0]),
    "while, frozen rows": (explode, 0, [X]),
    "while, Newton": (root, 0, [np.abs(X)]),
    "while, bound mapped": (
        lambda m: lambda n, x: m.lax.while_loop(lambda c: c < n, lambda c: c + x, 0.0),
        (0, None),
        [X, np.float32(0.3)],
    ),
    "while, step mapped": (
        lambda m: lambda n, x: m.lax.while_loop(lambda c: c < n, lambda c: c + x, 0.0),
        (None, 0),
        [np.float32(3), np.abs(X)],
    ),
    "while, carry partly mapped": (
        lambda m: (
            lambda x: m.lax.while_loop(
                lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * x, c[2] + 2), (0, 1.0, 5)
            )
        ),
        0,
        [X],
    ),
    "fori, bound mapped": (
        lambda m: lambda n, x: m.lax.fori_loop(0, n, lambda i, c: c * x + i, x),
        0,
        [K, X],
    ),
    "fori, static": (
        lambda m: lambda x: m.lax.fori_loop(0, 4, lambda i, c: c * x + i, x),
        0,
        [X],
    ),
    "fori, updates": (
        lambda m: lambda n, x: m.lax.fori_loop(0, n, lambda i, c: c.at[i % 3].add(i), x),
        0,
        [K, M],
    ),
    "scan, rows": (
        lambda m: lambda x: m.lax.scan(lambda c, v: (c + v, c * v), 0.0, x),
        0,
        [M],
    ),
    "scan, carry": (
        lambda m: lambda a, x: m.lax.scan(lambda c, v: (c + v, c * v), a, x),
        (0, None),
        [X, M[0]],
    ),
    "scan, constant, reverse": (
        lambda m: lambda a, x: m.lax.scan(lambda c, v: (c * a + v, c), 0.0, x, reverse=True),
        0,
        [X, M],
    ),
    "scan, result not mapped": (
        lambda m: lambda a, x: m.lax.scan(lambda c, v: (c + v, v * 2), 0.0, x)[1] + a,
        (0, None),
        [X, M[0]],
    ),
    "map": (lambda m: lambda x: m.lax.map(lambda v: v * v.sum(), x), 0, [M.reshape(2, 3, 2)]),
    "associative_scan": (
        lambda m: lambda x: m.lax.associative_scan(m.numpy.multiply, x),
        0,
        [M],
    ),
    "while in scan": (
        lambda m: lambda x: m.lax.scan(lambda c, v: (c + 1, halve(m)(v + c)), 0.0, x),
        0,
        [M * 8],
    ),
    "cond in while": (
        lambda m: (
            lambda x: m.lax.while_loop(
                lambda c: c < 20,
                lambda c: m.lax.cond(c > 3, lambda y: y * 2, lambda y: y + 1, c),
                x,
            )
        ),
        0,
        [X],
    ),
    "scan in cond": (
        lambda m: (
            lambda p, x: m.lax.cond(
                p, lambda: m.lax.scan(lambda c, v: (c + v, None), 0.0, x)[0], lambda: x.max()
            )
        ),
        0,
        [P, M],
    ),
    "grad of cond": (
        lambda m: m.grad(lambda x: m.lax.cond(x > 0, m.numpy.log, lambda y: y**2, x)),
        0,
        [X],
    ),
    "grad of scan": (
        lambda m: m.grad(
            lambda a, x: m.lax.scan(lambda c, v: (m.numpy.sin(c * v), c), a, x)[1].sum()
        ),
        0,
        [X, M],
    ),
    "jvp of while": (lambda m: lambda x: m.jvp(root(m), (x,), (1.0,)), 0, [np.abs(X)]),
    "collective in while": (
        lambda m: (
            lambda x: m.lax.while_loop(lambda c: m.lax.psum(c, "i") < 100, lambda c: c * 2 + 1, x)
        ),
        0,
        [np.abs(X)],
    ),
    "collective in scan": (
        lambda m: (
            lambda x: m.lax.scan(
                lambda c, v: (c + m.lax.pmean(v, "i"), m.lax.axis_index("i") + c), 0.0, x
            )
        ),
        0,
        [M],
    ),
    "axis_index alone in a loop": (
        lambda m: lambda x: m.lax.fori_loop(0, 3, lambda i, c: c + m.lax.axis_index("i"), 0) + x,
        0,
        [X],
    ),
    "axis_index alone in jit and cond": (
        lambda m: (
            lambda x: (
                m.jit(lambda: m.lax.cond(m.lax.axis_index("i") > 1, lambda: 5.0, lambda: 6.0))() + x
            )
        ),
        0,
        [X],
    ),
}


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def close(actual: Any, expected: Any) -> None:
    for g, w in zip(leaves(actual), leaves(expected), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_jax(name: str) -> None:
    make, axes, arrays = PROGRAMS[name]
    expected = jax_result(
        lambda: jax.jit(jax.vmap(make(jax), axes, axis_name="i"))(*arrays), make, arrays
    )
    f = accnp.vmap(make(accnp), axes, axis_name="i")
    close(f(*arrays), expected)
    close(accnp.jit(f)(*arrays), expected)


DEAD: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "cond": lambda m: lambda x: m.lax.cond(x > 0, m.numpy.log, lambda y: y * 2, x),
    "switch": lambda m: (
        lambda x: m.lax.switch((x > 0).astype(int), [lambda y: y * 2, m.numpy.log], x)
    ),
    "closure": lambda m: lambda x: m.lax.cond(x > 0, lambda: m.numpy.sqrt(x) / x, lambda: x * x),
}


@pytest.mark.parametrize("name", DEAD)
def test_derivatives_if_the_other_branch_has_none(name: str) -> None:
    """All branches are computed for all rows; non-finite values of branches not taken must not
    leak."""
    at = np.asarray([1.0, 0.0, 4.0, -1.0], np.float32)

    def run(m: Any) -> Any:
        f = DEAD[name](m)
        mapped = m.vmap(f)
        return (
            m.grad(lambda v: mapped(v).sum())(at),
            m.vmap(m.grad(f))(at),
            m.jvp(mapped, (at,), (at + 1,))[1],
            m.jit(m.hessian(lambda v: mapped(v).sum()))(at),
            m.vmap(m.grad(lambda v: mapped(v).sum()))(at[None]),
        )

    actual = run(accnp)
    assert all(np.isfinite(x).all() for x in leaves(actual))
    close(actual, run(jax))


TWICE = [name for name in PROGRAMS if "collective" not in name and "axis_index" not in name]


@pytest.mark.parametrize("name", TWICE)
def test_doubly_batched_control_flow_matches_jax(name: str) -> None:
    """Map once more, over one argument, reversed and not."""
    make, axes, arrays = PROGRAMS[name]
    wide = np.stack([arrays[0], np.flip(arrays[0])])
    outer = (0,) + (None,) * (len(arrays) - 1)

    def run(m: Any) -> Any:
        return m.jit(m.vmap(m.vmap(make(m), axes), outer))(wide, *arrays[1:])

    close(run(accnp), jax_result(lambda: run(jax), make, wide))


def test_a_predicate_for_all_stays_a_branch() -> None:
    def text(p: Any, axes: Any) -> str:
        f = accnp.vmap(lambda p, x: accnp.lax.cond(p, accnp.sin, accnp.cos, x), axes)
        return str(accnp.make_jaxpr(f)(p, X))

    assert "cond[" in text(True, (None, 0))
    assert "select_n" not in text(True, (None, 0))
    assert "cond[" not in text(P, (0, 0))
    assert "select_n" in text(P, (0, 0))


def test_bodies_are_traced_once() -> None:
    traces = []

    def body(c: Any) -> Any:
        traces.append(1)
        return c * 2

    accnp.vmap(lambda x: accnp.lax.while_loop(lambda c: c < 9, body, x))(np.abs(X))
    assert len(traces) == 1
