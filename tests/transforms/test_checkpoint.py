"""Checkpointing: values and derivatives agree with JAX, as do the residuals, and memory use is
lower.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from api.oracle import jax_result
from jax._src.ad_checkpoint import saved_residuals as jax_saved_residuals
from jax.ad_checkpoint import checkpoint_name as jax_name

import accnp
import accnp as jnp
from accnp import engine
from accnp.ad_checkpoint import checkpoint_name, saved_residuals

X = np.linspace(-1.0, 1.5, 12, dtype=np.float32).reshape(3, 4)
W = np.linspace(-0.5, 0.7, 16, dtype=np.float32).reshape(4, 4)


# --- programs, for either library ----------------------------------------------------------------


def chain(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    return lambda w, x: n.sin(n.sin(x)) * n.cos(w).sum()


def layer(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        h = named(n.tanh(x @ w), "hidden")
        h = n.exp(-h * h)
        return named(n.sin(h @ w), "out") + x

    return f


def batched_products(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        y = n.einsum("bi,bij->bj", x, n.stack([w, n.sin(w), w * 2]))
        return n.tanh(y @ w) * x

    return f


def with_jit(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    inner = m.jit(lambda x, w: n.sin(n.tanh(x @ w)))
    return lambda w, x: inner(inner(x, w), w)


def with_scan(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        return m.lax.scan(lambda c, row: (n.tanh(c @ w) + row, n.sin(c)), x[0], x)[1]

    return f


def with_cond(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        return m.lax.cond(x[0, 0] < 0, lambda a: n.sin(a @ w), lambda a: a, n.sin(x))

    return f


def with_rules(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    @m.custom_vjp
    def clipped(x: Any) -> Any:
        return n.sin(x)

    clipped.defvjp(lambda x: (n.sin(x), n.cos(x)), lambda c, ct: (n.clip(ct * c, -0.5, 0.5),))

    @m.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvp(lambda p, t: (square(p[0]), 3 * p[0] * t[0]))
    return lambda w, x: square(clipped(n.sin(x))) @ w


def nested(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    inner = m.checkpoint(layer(m, n, named))
    return lambda w, x: n.sin(inner(w, n.sin(inner(w, x))))


def closed(m: Any, n: Any, named: Any) -> Callable[..., Any]:
    fixed = n.asarray(W) * 2

    def f(w: Any, x: Any) -> Any:
        return n.sin(n.sin(x @ fixed) @ w)

    return f


BODIES = [
    chain,
    layer,
    batched_products,
    with_jit,
    with_scan,
    with_cond,
    with_rules,
    nested,
    closed,
]
POLICIES = {
    "none": lambda p: None,
    "nothing": lambda p: p.nothing_saveable,
    "everything": lambda p: p.everything_saveable,
    "dots": lambda p: p.dots_saveable,
    "plain dots": lambda p: p.checkpoint_dots_with_no_batch_dims,
    "hidden": lambda p: p.save_only_these_names("hidden"),
    "but hidden": lambda p: p.save_any_names_but_these("hidden"),
    "either": lambda p: p.save_from_both_policies(
        p.dots_with_no_batch_dims_saveable, p.save_only_these_names("out")
    ),
    "own": lambda p: lambda prim, *avals, **params: str(prim) in ("cos", "tanh"),
}


def of_primitives(m: Any) -> Callable[..., Any]:
    """A policy that compares primitives by identity and returns objects."""
    recomputed = {m.lax.dot_general_p, m.lax.tanh_p}
    answers = m.ad_checkpoint.Saveable, m.ad_checkpoint.Recompute

    def policy(prim: Any, *avals: Any, **params: Any) -> Any:
        assert prim is not m.lax.dot_general_p or not params["dimension_numbers"][1][0]
        return answers[prim not in recomputed]

    return policy


def total(n: Any, f: Any) -> Callable[..., Any]:
    return lambda w, x: n.sum(f(w, x) ** 2)


def over_steps(m: Any, n: Any, f: Any) -> Any:
    def loss(ws: Any, x: Any) -> Any:
        return n.sum(m.lax.scan(lambda c, w: (f(w, c), None), x, ws)[0])

    return m.grad(loss, (0, 1))(n.stack([n.asarray(W), n.asarray(W) + 0.1]), X)


WAYS: dict[str, Callable[..., Any]] = {
    "value": lambda m, n, f: f(W, X),
    "grad": lambda m, n, f: m.value_and_grad(total(n, f), (0, 1))(W, X),
    "jit of grad": lambda m, n, f: m.jit(m.grad(total(n, f), (0, 1)))(W, X),
    "grad of jit": lambda m, n, f: m.grad(m.jit(total(n, f)))(W, X),
    "jvp": lambda m, n, f: m.jvp(f, (W, X), (W, X)),
    "second": lambda m, n, f: m.grad(lambda w, x: n.sum(m.grad(total(n, f), 1)(w, x) ** 2), (0, 1))(
        W, X
    ),
    "jvp of grad": lambda m, n, f: m.jvp(m.grad(total(n, f)), (W, X), (W, X)),
    "vmap of grad": lambda m, n, f: m.vmap(m.grad(total(n, f)), (None, 0))(W, n.stack([X, X * 2])),
    "grad of vmap": lambda m, n, f: m.grad(
        lambda w, x: n.sum(m.vmap(f, (0, None))(w, x) ** 2), (0, 1)
    )(n.stack([W, W * 2]), X),
    "scan of it": over_steps,
    "linearize": lambda m, n, f: m.linearize(f, W, X)[1](W, X),
    "jacrev": lambda m, n, f: m.jacrev(f, 1)(W, X),
}


# All policies for two programs, all ways for two others, and each program once in each respect.
@pytest.mark.parametrize(
    ("body", "policy"),
    [
        (b, p)
        for i, b in enumerate(BODIES)
        for j, p in enumerate(POLICIES)
        if i == j or b in (layer, with_scan)
    ],
)
def test_gradients_equal_jax(body: Any, policy: str) -> None:
    _compare(body, policy, "grad")


@pytest.mark.parametrize(
    ("body", "way"),
    [
        (b, w)
        for i, b in enumerate(BODIES)
        for j, w in enumerate(WAYS)
        if i == j % len(BODIES) or b in (with_jit, nested)
        if b is not with_rules or "jvp" not in w
    ],
)
def test_every_way_equals_jax(body: Any, way: str) -> None:
    _compare(body, "own" if way in ("scan of it", "jit of grad") else "none", way)


@pytest.mark.parametrize("way", ["jvp", "jvp of grad", "linearize"])
def test_forward_mode_stops_at_reverse_rules(way: str) -> None:
    f = jnp.checkpoint(with_rules(accnp, accnp.numpy, checkpoint_name))
    with pytest.raises(TypeError, match="forward-mode"):
        accnp.block_until_ready(WAYS[way](accnp, accnp.numpy, f))


def _compare(body: Any, policy: str, way: str) -> None:
    jax_body = body(jax, jax.numpy, jax_name)
    # Values do not depend on the policy: the oracle needs none.
    run = WAYS[way]
    expected: Any = jax_result(
        lambda: jax.tree.leaves(run(jax, jax.numpy, jax.checkpoint(jax_body))), run, body
    )
    chosen = POLICIES[policy](accnp.checkpoint_policies)
    f = jnp.checkpoint(body(accnp, accnp.numpy, checkpoint_name), policy=chosen)
    actual = accnp.tree_util.tree_leaves(WAYS[way](accnp, accnp.numpy, f))
    assert len(actual) == len(expected)
    for g, w in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-4, atol=2e-5)
        assert (g.dtype, g.shape, g.weak_type) == (w.dtype, w.shape, w.weak_type)


def shapes(residuals: Any) -> Counter[Any]:
    """Count the residuals of each shape, without scalars, whose number depends on the rules."""
    return Counter(tuple(aval.shape) for aval, _ in residuals if aval.shape)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("body", [chain, layer, batched_products, with_jit, closed])
def test_residuals_are_those_of_jax(body: Any, policy: str) -> None:
    f = jax.checkpoint(
        body(jax, jax.numpy, jax_name),
        policy=POLICIES[policy](jax.checkpoint_policies),
    )
    g = jnp.checkpoint(
        body(accnp, accnp.numpy, checkpoint_name),
        policy=POLICIES[policy](accnp.checkpoint_policies),
    )
    actual, expected = shapes(saved_residuals(g, W, X)), shapes(jax_saved_residuals(f, W, X))
    # Where all may be kept, our rules need fewer values than jax's.
    assert actual <= expected if policy == "everything" else actual == expected


def _same_residuals(body: Any, policy: Callable[[Any], Any], *arguments: np.ndarray) -> Any:
    """Check that both libraries save the same arrays; return how many of each shape."""
    f = jax.checkpoint(body(jax, jax.numpy, jax_name), policy=policy(jax))
    g = jnp.checkpoint(body(accnp, accnp.numpy, checkpoint_name), policy=policy(accnp))
    actual = shapes(saved_residuals(g, *arguments))
    assert actual == shapes(jax_saved_residuals(f, *arguments))
    return actual


def test_policies_get_primitives() -> None:
    assert _same_residuals(layer, of_primitives, W, X) == {(3, 4): 3, (4, 4): 1}
    seen: list[tuple[str, str]] = []

    def policy(prim: Any, *avals: Any, **params: Any) -> bool:
        seen.append((prim.name, type(prim).__name__))
        return False

    jnp.grad(total(jnp, jnp.checkpoint(with_scan(jnp, jnp, checkpoint_name), policy=policy)))(W, X)
    kinds = {type(p).__name__ for p in (jnp.lax.scan_p, jnp.lax.sin_p)}
    assert {kind for _, kind in seen} == kinds
    assert "scan" in dict(seen)


OFFLOADING = {
    "products": lambda m: m.checkpoint_policies.offload_dot_with_no_batch_dims(
        "device", "pinned_host"
    ),
    "names": lambda m: m.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["hidden"],
        names_which_can_be_offloaded=["out"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
}


@pytest.mark.parametrize("policy", OFFLOADING)
@pytest.mark.parametrize("body", [layer, batched_products])
def test_values_to_offload_are_saved(body: Any, policy: str) -> None:
    """There is only one memory, so they stay there."""
    same = {
        "products": lambda m: m.checkpoint_policies.dots_with_no_batch_dims_saveable,
        "names": lambda m: m.checkpoint_policies.save_only_these_names("hidden", "out"),
    }[policy]
    actual, expected = (
        shapes(
            saved_residuals(
                jnp.checkpoint(body(accnp, jnp, checkpoint_name), policy=p(accnp)), W, X
            )
        )
        for p in (OFFLOADING[policy], same)
    )
    assert actual == expected
    f = body(accnp, jnp, checkpoint_name)
    np.testing.assert_allclose(
        jnp.grad(total(jnp, jnp.checkpoint(f, policy=OFFLOADING[policy](accnp))))(W, X),
        jnp.grad(total(jnp, f))(W, X),
        rtol=1e-6,
    )


@pytest.mark.parametrize("policy", ["dots_saveable", "dots_with_no_batch_dims_saveable"])
def test_convolutions_are_saved_with_products(policy: str) -> None:
    def convolved(m: Any, n: Any, named: Any) -> Callable[..., Any]:
        def f(w: Any, x: Any) -> Any:
            y = m.lax.conv_general_dilated(n.sin(x), w, (1,), "SAME")
            return n.sin(n.sin(y))

        return f

    w, x = X.reshape(2, 2, 3), W.reshape(1, 2, 8)
    counts = _same_residuals(convolved, lambda m: getattr(m.checkpoint_policies, policy), w, x)
    assert counts[1, 2, 8] == (2 if policy == "dots_saveable" else 1)


def test_policies_for_products_do_not_load_convolutions() -> None:
    text = (
        "import sys, accnp as jnp\n"
        "f = lambda w: jnp.sin(jnp.sin(w @ w)).sum()\n"
        "g = jnp.grad(jnp.checkpoint(f, policy=jnp.checkpoint_policies.dots_saveable))\n"
        "g(jnp.ones((2, 2))).block_until_ready()\n"
        "assert 'accnp.primitives.convolution' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_printed_residuals(capsys: pytest.CaptureFixture[str]) -> None:
    def f(w: Any, x: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.sin(x @ w), "hidden"))

    policy = jnp.checkpoint_policies.save_only_these_names("hidden")
    accnp.ad_checkpoint.print_saved_residuals(jnp.checkpoint(f, policy=policy), W, X)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" from ")[0] for line in lines] == [
        "f32[4,4]",
        "f32[3,4]",
        "f32[3,4] named 'hidden'",
    ]
    assert lines[0].endswith("from the argument w")
    assert "test_checkpoint.py" in lines[2]


# --- tracing -------------------------------------------------------------------------------------


def test_program_text() -> None:
    def of(m: Any, n: Any, name: Any) -> tuple[str, str]:
        f = m.checkpoint(lambda x: n.sin(n.sin(x)))
        return str(m.make_jaxpr(f)(1.0)), str(m.make_jaxpr(lambda x: name(n.sin(x), "a"))(1.0))

    assert of(accnp, accnp.numpy, checkpoint_name) == of(jax, jax.numpy, jax_name)


def test_one_trace_serves_all_calls() -> None:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        return jnp.sin(x)

    for _ in range(3):
        jnp.grad(jnp.checkpoint(f))(1.0).block_until_ready()
        jnp.jit(jnp.grad(lambda x: jnp.checkpoint(f)(x)))(2.0)
    assert count == 1
    # A number that is kept from an earlier call and a new one are planned apart.
    plans = engine.counters["plans"]
    jnp.grad(jnp.checkpoint(f))(1.0).block_until_ready()
    assert engine.counters["plans"] == plans


def test_static_arguments() -> None:
    @functools.partial(jnp.checkpoint, static_argnums=(1,), static_argnames="scale")
    def f(x: Any, training: bool, scale: Any = None) -> Any:
        return jnp.sin(x) * (2.0 if training else 3.0) * (scale[0] if scale else 1.0)

    assert float(jnp.grad(f)(0.0, True)) == 2.0
    assert float(jnp.grad(f)(0.0, False)) == 3.0
    scale = [5.0]
    assert float(jnp.grad(f)(0.0, False, scale=scale)) == 15.0
    scale[0] = 7.0  # a list has no key: it is traced anew
    assert float(jnp.grad(f)(0.0, False, scale=scale)) == 21.0
    last = jnp.checkpoint(lambda x, k: x**k, static_argnums=-1)
    assert float(jnp.grad(last)(2.0, 3)) == 12.0


def test_methods_keywords_and_trees() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = jnp.arange(3.0)

        @jnp.checkpoint
        def loss(self, p: Any, shift: Any = 0.0) -> Any:
            return {"a": jnp.sin(p["x"] * 2.0 + shift), "b": (p["x"] ** 2,)}

    model = Model()
    f = jnp.checkpoint(lambda p, shift=0.0: {"a": jnp.sin(p["x"] + shift), "b": (p["x"] ** 2,)})
    gradient = jnp.grad(lambda p: jnp.sum(f(p, shift=1.0)["a"]) + jnp.sum(f(p)["b"][0]))(
        {"x": model.w}
    )
    np.testing.assert_allclose(
        gradient["x"], np.cos(np.arange(3) + 1.0) + 2.0 * np.arange(3), rtol=1e-6
    )


def test_integers_pass_through() -> None:
    @jnp.checkpoint
    def f(i: Any, x: Any) -> Any:
        return i + 1, x[i] * jnp.sin(x[i])

    x = np.arange(4.0, dtype=np.float32)
    i, y = jnp.value_and_grad(lambda x: f(2, x)[::-1], has_aux=True)(x)[0]
    gradient = jnp.grad(lambda x: f(2, x)[1])(x)
    assert (float(i), int(y)) == (pytest.approx(2 * np.sin(2), rel=1e-6), 3)
    np.testing.assert_allclose(gradient, [0, 0, np.sin(2) + 2 * np.cos(2), 0], rtol=1e-6)


def test_errors() -> None:
    f = lambda x: jnp.sin(x)  # noqa: E731
    with pytest.raises(NotImplementedError, match="static_argnums"):
        jnp.checkpoint(f, concrete=True)
    with pytest.raises(TypeError, match="static_argnums"):
        jnp.checkpoint(f, static_argnums="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="prevent_cse"):
        jnp.checkpoint(f, prevent_cse=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="only take integer values"):
        jnp.checkpoint(f, static_argnums=2)(1.0)
    with pytest.raises(TypeError, match="policy must return"):
        jnp.grad(jnp.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *_, **__: "yes"))(1.0)  # type: ignore[arg-type,return-value]
    policies = jnp.checkpoint_policies
    with pytest.raises(ValueError, match=r"should not intersect; got \['b'\] in both"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a", "b"],
            names_which_can_be_offloaded=["b"],
            offload_src="device",
            offload_dst="pinned_host",
        )
    offload = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    both = policies.save_from_both_policies(policies.everything_saveable, offload)
    with pytest.raises(ValueError, match=r"should be a boolean; got True and Recompute for cos"):
        jnp.grad(jnp.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=both))(1.0)
    with pytest.raises(accnp.errors.TracerBoolConversionError, match="static_argnums"):
        jnp.checkpoint(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(TypeError, match="checkpoint"):
        jnp.checkpoint(f)("text")


def test_barrier() -> None:
    x, y = np.float32(2.0), np.arange(3, dtype=np.float32)

    def f(m: Any, n: Any) -> Any:
        def g(x: Any, y: Any) -> Any:
            a, b = m.lax.optimization_barrier((n.sin(x), y * x))
            return a + b

        value = g(x, y)
        jitted = m.jit(m.grad(lambda x, y: g(x, y).sum(), (0, 1)))(x, y)
        pushed = m.jvp(g, (x, y), (x, y))
        many = m.vmap(g, (0, None))(y, y)
        return value, jitted, pushed, many

    actual = accnp.tree_util.tree_leaves(f(accnp, accnp.numpy))
    for g, w in zip(actual, jax.tree.leaves(f(jax, jax.numpy)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)
    f_jit = jnp.jit(lambda x: (jnp.sin(x), jnp.sin(jnp.lax.optimization_barrier(x))))
    assert "map kernel over [3]: sin %1, sin %4" in str(jnp.inspect(f_jit)(y))


def test_a_policy_that_is_no_function_is_refused_by_the_decorator():
    words = (
        r"policy must be a function such as checkpoint_policies\.dots_saveable; got 'dots'; pass"
    )
    with pytest.raises(TypeError, match=f"^checkpoint: {words}"):
        jnp.checkpoint(jnp.sin, policy="dots")  # type: ignore[arg-type]
    policies = jnp.checkpoint_policies
    with pytest.raises(TypeError, match="save_from_both_policies: policy_2 must be a function"):
        policies.save_from_both_policies(policies.dots_saveable, "dots")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "save_only_these_names",
        "save_any_names_but_these",
        "save_anything_except_these_names",
    ],
)
def test_policies_take_names_as_separate_arguments(name):
    words = rf"^{name}: names must be strings; got \['h'\]; pass the names as separate arguments"
    with pytest.raises(TypeError, match=words):
        getattr(jnp.checkpoint_policies, name)(["h"])
