"""`custom_vmap` and `sequential_vmap` against jax: when the rule is called, and with what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

V = np.arange(1, 5, dtype=np.float32)
M = np.arange(12, dtype=np.float32).reshape(4, 3)
Log = list[Any]


def function(m: Any, log: Log) -> Any:
    """sin(x) * y for one, cos(x) * y * 10 for many."""
    jnp = m.numpy

    @m.custom_batching.custom_vmap
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
        log.append((axis_size, in_batched))
        return jnp.cos(x) * y * 10, True

    return f


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda m, f: f(2.0, 3.0),
    "jit": lambda m, f: m.jit(f)(2.0, 3.0),
    "vmap": lambda m, f: m.vmap(f)(V, V),
    "first": lambda m, f: m.vmap(f, (0, None))(V, 3.0),
    "second": lambda m, f: m.vmap(f, (None, 0))(2.0, V),
    "other axes": lambda m, f: m.vmap(f, (1, None), out_axes=1)(M, 2.0),
    "jit of vmap": lambda m, f: m.jit(m.vmap(f))(V, V),
    "vmap of jit": lambda m, f: m.vmap(m.jit(f))(V, V),
    "nested": lambda m, f: m.vmap(m.vmap(f))(M, M),
    "nested, mixed": lambda m, f: m.vmap(m.vmap(f, (0, None)))(M, V),
    "jvp": lambda m, f: m.jvp(f, (2.0, 3.0), (1.0, 0.5)),
    "jvp of vmap": lambda m, f: m.jvp(m.vmap(f), (V, V), (V, V)),
    "vmap of jvp": lambda m, f: m.vmap(lambda a, b: m.jvp(f, (a, b), (a, b)))(V, V),
    "grad of vmap": lambda m, f: m.grad(lambda v: m.vmap(f)(v, V).sum())(V),
    "scan": lambda m, f: m.lax.scan(lambda c, x: (c + f(x, x), f(c, x)), 0.0, V),
    "collective": lambda m, f: m.vmap(lambda x: f(x, m.lax.psum(x, "i")), axis_name="i")(V),
}


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_jax(name: str) -> None:
    logs: tuple[Log, Log] = ([], [])
    want = leaves(PROGRAMS[name](jax, function(jax, logs[0])))
    got = leaves(PROGRAMS[name](accnp, function(accnp, logs[1])))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-4)
    assert logs[0] == logs[1]


def test_in_a_mapped_scan() -> None:
    def run(m: Any) -> Any:
        f = function(m, [])
        return m.vmap(lambda v: m.lax.scan(lambda c, x: (c + f(x, x), f(c, x)), 0.0, v))(M)

    for g, w in zip(leaves(run(accnp)), leaves(run(jax)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4)


def test_constant_tangents_under_vmap() -> None:
    def run(m: Any) -> Any:
        f = function(m, [])
        return m.vmap(lambda a, b: m.jvp(lambda x: f(x, b), (a,), (1.0,)))(V, V)

    for g, w in zip(leaves(run(accnp)), leaves(run(jax)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5)


def test_reverse_mode_takes_the_function() -> None:
    """jax refuses; without a mapped axis the function is what it says."""
    f = function(accnp, [])
    np.testing.assert_allclose(accnp.grad(f)(2.0, 3.0), np.cos(2.0) * 3, rtol=1e-6)
    np.testing.assert_allclose(accnp.vmap(accnp.grad(f))(V, V), np.cos(V) * V, rtol=1e-5)


def tree_function(m: Any, log: Log) -> Any:
    @m.custom_batching.custom_vmap
    def g(p: Any, scale: Any = 2.0) -> Any:
        return {"s": p["a"] + p["b"], "c": 1.0 * scale}

    @g.def_vmap
    def rule(n: int, in_batched: Any, p: Any, scale: Any) -> Any:
        log.append((n, in_batched))
        which = in_batched[0]
        return {"s": p["a"] * 2 + p["b"], "c": 5.0}, {"s": which["a"] or which["b"], "c": False}

    return g


@pytest.mark.parametrize("outer", ["custom_vjp", "custom_jvp"])
def test_a_rule_set_through_a_function_with_derivatives(outer: str) -> None:
    """The names `def...` of an inner wrapper are those of the outer one, as in jax."""

    def results(m: Any) -> Any:
        f = getattr(m, outer)(m.custom_batching.custom_vmap(lambda x: x * 2))
        f.def_vmap(lambda size, batched, x: (x * 10, True))
        if outer == "custom_vjp":
            f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x,))
        else:
            f.defjvp(lambda p, t: (f(*p), p[0] * t[0]))
        assert not hasattr(f, "other")
        return float(f(3.0)), np.asarray(m.vmap(f)(V)).tolist(), float(m.grad(f)(3.0))

    assert results(accnp) == results(jax) == (6.0, (V * 10).tolist(), 3.0)


@pytest.mark.parametrize("axes", [{"a": 0, "b": 0}, {"a": 0, "b": None}, {"a": None, "b": 0}])
def test_trees(axes: Any) -> None:
    tree = {k: V if axis == 0 else np.float32(2) for k, axis in axes.items()}
    out_axes = {"s": 0, "c": None}
    found = []
    for m in (jax, accnp):
        log: Log = []
        g = tree_function(m, log)
        found.append((leaves(m.vmap(g, (axes,), out_axes)(tree)), str(log)))
    assert found[0][1] == found[1][1]
    for w, g in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_allclose(g, w)


def test_keywords_and_the_rule_calling_the_function() -> None:
    def run(m: Any) -> Any:
        @m.custom_batching.custom_vmap
        def f(x: Any, y: Any = 2.0) -> Any:
            return x * y

        @f.def_vmap
        def rule(n: int, in_batched: Any, x: Any, y: Any) -> Any:
            return f(x, y) + 1, True

        return m.vmap(lambda x: f(x, y=3.0))(V), m.vmap(f)(V), f(x=2.0)

    for g, w in zip(leaves(run(accnp)), leaves(run(jax)), strict=True):
        np.testing.assert_allclose(g, w)


def test_jaxpr() -> None:
    def f(m: Any) -> Any:
        return function(m, [])

    texts = [str(m.make_jaxpr(f(m))(2.0, 3.0)).split("rule=")[0] for m in (jax, accnp)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("rule", "error", "text"),
    [
        (lambda n, b, x: x, ValueError, "pair"),
        (lambda n, b, x: ((x, x), True), ValueError, "structure"),
        (lambda n, b, x: (x[:2], True), ValueError, r"shape \(4,\).*batched; got shape \(2,\)"),
        (lambda n, b, x: (x, False), ValueError, "not batched"),
        (lambda n, b, x: (x, (True, True)), ValueError, "prefix"),
    ],
)
def test_wrong_rules(rule: Any, error: type[Exception], text: str) -> None:
    f = accnp.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(rule)
    with pytest.raises(error, match=text):
        accnp.vmap(f)(V)


def test_no_rule() -> None:
    for m in (jax, accnp):
        f = m.custom_batching.custom_vmap(lambda x: x)
        for call in (f, m.vmap(f)):
            with pytest.raises(AttributeError, match="def_vmap"):
                call(V)


def test_a_mapped_closure_is_refused() -> None:
    def outer(c: Any) -> Any:
        f = accnp.custom_batching.custom_vmap(lambda x: x * c)
        f.def_vmap(lambda n, b, x: (x, True))
        return f(2.0)

    with pytest.raises(NotImplementedError, match="closes over a value that is mapped"):
        accnp.vmap(outer)(V)


def test_a_closure_under_jit() -> None:
    def run(m: Any) -> Any:
        def outer(c: Any) -> Any:
            f = m.custom_batching.custom_vmap(lambda x: x * c)
            f.def_vmap(lambda n, b, x: (x * c * 100, True))
            return m.vmap(f)(V)

        return m.jit(outer)(2.0)

    np.testing.assert_allclose(run(accnp), run(jax))


def test_sequential() -> None:
    def run(m: Any) -> Any:
        shapes = []

        @m.custom_batching.sequential_vmap
        def f(x: Any, y: Any) -> Any:
            shapes.append(x.shape)
            return x * y.sum(), y

        out = [m.vmap(f)(V, M), m.vmap(f, (0, None))(V, M)]
        out.append(m.vmap(m.vmap(f, (0, None)), (None, 0))(V, M))
        out.append(m.jvp(lambda v: m.vmap(f)(v, M)[0], (V,), (V,)))
        assert set(shapes) == {()}
        return out

    for g, w in zip(leaves(run(accnp)), leaves(run(jax)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_numbers_become_arrays() -> None:
    for m in (jax, accnp):
        f = m.custom_batching.custom_vmap(lambda x: x * 2)
        f.def_vmap(lambda size, batched, x: (x * 2, batched[0]))
        out = f(1.0)
        assert (str(out.dtype), out.weak_type) == ("float32", True)


def test_sequential_with_keys() -> None:
    def run(m: Any) -> Any:
        f = m.custom_batching.sequential_vmap(lambda k, s: m.random.uniform(k, (2,)) * s)
        return m.vmap(f)(m.random.split(m.random.key(3), 4), V)

    np.testing.assert_array_equal(run(accnp), run(jax))
