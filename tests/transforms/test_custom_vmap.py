"""`custom_vmap` and `sequential_vmap` compared with JAX: when the rule is called, and with which
arguments.
"""

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
    """sin(x) * y for one example, cos(x) * y * 10 for a batch."""
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
def test_custom_vmap_matches_jax(name: str) -> None:
    logs: tuple[Log, Log] = ([], [])
    expected = leaves(PROGRAMS[name](jax, function(jax, logs[0])))
    actual = leaves(PROGRAMS[name](accnp, function(accnp, logs[1])))
    for g, w in zip(actual, expected, strict=True):
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


Derivative = Callable[[Any, Any], Any]


def one(m: Any, log: Log, linear: bool = False) -> Any:
    """A function of one argument whose batching rule returns other values."""
    f = m.custom_batching.custom_vmap((lambda x: x * 2) if linear else m.numpy.sin)

    @f.def_vmap
    def rule(axis_size: int, in_batched: Any, x: Any) -> Any:
        log.append((axis_size, in_batched, x.shape))
        return (x * 3 if linear else m.numpy.cos(x)), in_batched[0]

    return f


FORWARD: dict[str, Derivative] = {
    "jvp": lambda m, f: m.jvp(f, (V,), (V,)),
    "only the tangent": lambda m, f: m.vmap(
        lambda x, t: m.jvp(f, (x,), (t,)), (None, 0), out_axes=(None, 0)
    )(np.float32(1), V),
    "only the primal": lambda m, f: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)), (0, None))(
        V, np.float32(1)
    ),
    "both": lambda m, f: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)))(V, V),
    "nested": lambda m, f: m.vmap(lambda t: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)))(V, t))(
        np.outer(V, V)
    ),
    "jvp of jvp": lambda m, f: m.vmap(
        lambda t: m.jvp(lambda x: m.jvp(f, (x,), (t,))[1], (V[0],), (t,))
    )(V),
    "jacfwd": lambda m, f: m.jacfwd(f)(V),
    "jit of jacfwd": lambda m, f: m.jit(m.jacfwd(f))(V),
    "jacfwd of jit": lambda m, f: m.jacfwd(m.jit(f))(V),
    "jacfwd of vmap": lambda m, f: m.jacfwd(m.vmap(f))(V),
    "vmap of jacfwd": lambda m, f: m.vmap(m.jacfwd(f))(M),
    "chain": lambda m, f: m.jacfwd(lambda x: f(f(x)) * x)(V),
    "scan": lambda m, f: m.jacfwd(
        lambda x: m.lax.scan(lambda c, _: (f(c), c), x, None, length=2)[0]
    )(V),
    "cond": lambda m, f: m.jacfwd(lambda x: m.lax.cond(x.sum() > 0, f, lambda y: y, x))(V),
    "checkpoint": lambda m, f: m.jacfwd(m.checkpoint(f))(V),
    "jacfwd of jacfwd": lambda m, f: m.jacfwd(m.jacfwd(lambda x: f(x).sum()))(V),
    "gradient of jacfwd": lambda m, f: m.grad(lambda x: m.jacfwd(f)(x).sum())(V),
    "two arguments": lambda m, f: m.jacfwd(lambda x, y: f(x) * y, (0, 1))(V, np.float32(2)),
    "aux": lambda m, f: m.jacfwd(lambda x: (f(x), x), has_aux=True)(V),
    "gradient of vmap": lambda m, f: m.grad(lambda x: m.vmap(f)(x).sum())(V),
    "other argument": lambda m, f: m.grad(lambda x, y: x * f(y))(2.0, 1.0),
    "value that stops": lambda m, f: m.grad(lambda x: x * f(m.lax.stop_gradient(x)))(1.0),
}


@pytest.mark.parametrize("name", FORWARD)
def test_derivatives_use_the_rule(name: str) -> None:
    logs: tuple[Log, Log] = ([], [])
    expected = leaves(FORWARD[name](jax, one(jax, logs[0])))
    actual = leaves(FORWARD[name](accnp, one(accnp, logs[1])))
    for g, w in zip(actual, expected, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-6)
        assert g.dtype == w.dtype
    # The batched branch of a cond is recorded once to find out which results are batched.
    assert set(map(str, logs[0])) == set(map(str, logs[1]))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(
    "derivative",
    [
        lambda m, f: m.grad(f)(1.0),
        lambda m, f: m.jit(m.grad(f))(1.0),
        lambda m, f: m.grad(m.jit(f))(1.0),
        lambda m, f: m.vmap(m.grad(f))(V),
        lambda m, f: m.jacrev(f)(V),
        lambda m, f: m.hessian(f)(1.0),
        lambda m, f: m.linearize(f, 1.0),
        lambda m, f: m.vjp(f, 1.0),
        lambda m, f: m.grad(m.checkpoint(f))(1.0),
        lambda m, f: m.grad(lambda x: m.lax.scan(lambda c, _: (f(c), c), x, None, 2)[0])(1.0),
    ],
)
def test_no_reverse_mode(derivative: Derivative, linear: bool) -> None:
    """Reverse mode would ignore the rule."""
    for m in (jax, accnp):
        with pytest.raises(ValueError, match="Linearization failed to produce known values"):
            derivative(m, one(m, [], linear))


def test_partially_batched_arguments() -> None:
    """One primal is mapped without its tangent, another one with its tangent; the result has one
    axis."""
    f = function(accnp, [])
    value, gradient = accnp.vmap(
        lambda x, y, u: accnp.jvp(f, (x, y), (np.float32(1), u)), in_axes=(0, 0, 0)
    )(V, V, V)
    np.testing.assert_allclose(value, np.cos(V) * V * 10, rtol=1e-5)
    np.testing.assert_allclose(gradient, 10 * (np.cos(V) - np.sin(V)) * V, rtol=1e-5)


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
    """The methods `def...` of an inner wrapper are those of the outer one, as in JAX."""

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
    outcomes = []
    for m in (jax, accnp):
        log: Log = []
        g = tree_function(m, log)
        outcomes.append((leaves(m.vmap(g, (axes,), out_axes)(tree)), str(log)))
    assert outcomes[0][1] == outcomes[1][1]
    for w, g in zip(outcomes[0][0], outcomes[1][0], strict=True):
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
        (lambda n, b, x: x, ValueError, "must return the results"),
        (lambda n, b, x: ((x, x), True), ValueError, "structure"),
        (lambda n, b, x: (x[:2], True), ValueError, r"batched.* length 4; got shape \(2,\)"),
        (lambda n, b, x: (x, (True, True)), ValueError, "structure of output value and output ba"),
        (lambda n, b, x: (x, (True,)), ValueError, "structure of output value and output ba"),
    ],
)
def test_wrong_rules(rule: Any, error: type[Exception], text: str) -> None:
    f = accnp.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(rule)
    with pytest.raises(error, match=text):
        accnp.vmap(f)(V)


@pytest.mark.parametrize(
    "rule",
    [
        lambda n, b, x: (x, False),
        lambda n, b, x: (x.sum(), False),
        lambda n, b, x: [x[:, None] * x, True],
        lambda n, b, x: (2.0, False),
        lambda n, b, x: (x.astype("int32"), True),
    ],
)
def test_results_of_another_type(rule: Any) -> None:
    """As in jax, a rule may return other shapes and dtypes than the function."""
    results = []
    for m in (jax, accnp):
        f = m.custom_batching.custom_vmap(lambda x: x)
        f.def_vmap(rule)
        results.append([np.asarray(g(V)) for g in (m.vmap(f), m.jit(m.vmap(f)), m.vmap(m.jit(f)))])
    for w, g in zip(*results, strict=True):
        np.testing.assert_array_equal(g, w)
        assert g.dtype == w.dtype


@pytest.mark.parametrize(
    "rule", [lambda n, b, x: (x[:, None] * x, True), lambda n, b, x: (x > 0, True)]
)
def test_a_loop_whose_carry_changes(rule: Any) -> None:
    def scan(m: Any, f: Any) -> Any:
        return m.vmap(lambda x: m.lax.scan(lambda c, _: (f(c), None), x, None, 2))(V)

    def loop(m: Any, f: Any) -> Any:
        return m.vmap(
            lambda x: m.lax.while_loop(
                lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (np.int32(0), x)
            )
        )(V)

    for m in (jax, accnp):
        f = m.custom_batching.custom_vmap(lambda x: x)
        f.def_vmap(rule)
        for run in (scan, loop) if m is accnp else (scan,):
            with pytest.raises(TypeError, match="carry input and carry output must have equal"):
                run(m, f)


def test_no_rule() -> None:
    for m in (jax, accnp):
        f = m.custom_batching.custom_vmap(lambda x: x)
        for call in (f, m.vmap(f)):
            with pytest.raises(
                AttributeError,
                match="No batching rule defined for custom_vmap function",
            ):
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


def test_jacobian_of_a_sequential_function() -> None:
    f = accnp.custom_batching.sequential_vmap(accnp.numpy.sin)
    np.testing.assert_allclose(accnp.jacfwd(f)(V), np.diag(np.cos(V)), rtol=1e-6)


def test_keyword_only_arguments() -> None:
    for m in (jax, accnp):
        f = m.custom_batching.custom_vmap(lambda x, *, y=1: x)
        f.def_vmap(lambda size, batched, x: (x, True))
        for keywords in ({"y": 2}, {"z": 2}):
            with pytest.raises(TypeError, match=r"could not be resolved|unexpected key"):
                f(1.0, **keywords)


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
