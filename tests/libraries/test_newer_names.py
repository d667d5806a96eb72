"""Names that JAX has had since 0.11, under `as_jax`: a list of the names, and tests of their
behavior.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import accnp
from accnp.as_jax import names


@pytest.fixture
def jax() -> Iterator[Any]:
    with accnp.as_jax(replace=True):  # other tests of this process have imported JAX
        importlib.import_module("jax.ad_checkpoint")
        yield importlib.import_module("jax")


NEWER = {
    "jax.Inline", "jax.custom_remat", "jax.checkpoint_policies.SaveOnlyTheseNames",
    "jax.checkpoint_policies.SaveAnyNamesButThese",
    "jax.checkpoint_policies.SaveAndOffloadOnlyTheseNames",
    *[f"jax.experimental.hijax.{name}" for name in (
        "HiPrimitive", "HiType", "MutableHiType", "aval_method", "aval_property", "register_hitype",
    )],
}  # fmt: skip


def test_names_that_jax_has_had_since_0_11(jax: Any) -> None:
    assert set(names.NEWER) == NEWER
    for name in NEWER:
        module, _, last = name.rpartition(".")
        assert getattr(importlib.import_module(module), last) is not None
        exec(f"from {module} import {last}")
    assert [p.name for p in jax.Inline] == [
        "JAX_EARLY", "JAX_LATE", "XLA_EARLY", "XLA_LATE", "AUTO",
    ]  # fmt: skip
    assert int(jax.jit(lambda x: x + 1, inline=jax.Inline.AUTO)(1)) == 2
    policies = jax.checkpoint_policies
    assert policies.save_only_these_names("a") == policies.SaveOnlyTheseNames(frozenset("a"))


def saving_sine(jax: Any, calls: list[Any]) -> Callable[[Any], Any]:
    """The example in JAX's documentation: a sine that saves its cosine, or recomputes it."""
    jnp, policies = jax.numpy, jax.checkpoint_policies

    def forward(policy: Any, x: Any) -> Any:
        calls.append(policy)
        saves = isinstance(policy, policies.SaveOnlyTheseNames) and "cos" in policy.saveable_names
        return jnp.sin(x), jnp.cos(x) if saves else None

    def again(cos: Any, x: Any) -> Any:
        return jnp.sin(x), jnp.cos(x) if cos is None else cos

    return jax.custom_remat(jnp.sin, forward, again, lambda cos, g: (cos * g,))


@pytest.mark.parametrize("form", ["jit", "nested jit", "loop"])
def test_custom_remat_in_inner_functions(jax: Any, form: str) -> None:
    """The rule receives the policy of the innermost `checkpoint`, even if inner functions were
    traced before with another policy, or with none.
    """
    jnp, policies = jax.numpy, jax.checkpoint_policies
    calls: list[Any] = []
    sin = saving_sine(jax, calls)
    inner = jax.jit(lambda x: sin(sin(x)))
    if form == "nested jit":
        once = jax.jit(sin)
        inner = jax.jit(lambda x: once(once(x)))
    elif form == "loop":
        inner = lambda x: jax.lax.scan(lambda c, _: (sin(c), None), x, length=2)[0]  # noqa: E731
    expected = jax.grad(lambda x: jnp.sin(jnp.sin(x)))(3.0)
    assert abs(float(jax.grad(inner)(3.0) - expected)) < 1e-6
    assert not calls
    saving = policies.save_only_these_names("cos")
    sizes: dict[Any, set[int]] = {}
    for policy in (saving, policies.nothing_saveable, None, saving, policies.nothing_saveable):
        f = jax.checkpoint(lambda x: inner(x) * 1.0, policy=policy)
        calls.clear()
        sizes.setdefault(id(policy), set()).add(len(jax.ad_checkpoint.saved_residuals(f, 3.0)))
        assert all(p is policy for p in calls)
        for way in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
            assert abs(float(way(3.0) - expected)) < 1e-6
    assert [len(s) for s in sizes.values()] == [1, 1, 1]
    saved, none, also_none = [s.pop() for s in sizes.values()]
    assert none == also_none
    assert saved > none or form == "loop"  # what loops save is decided for the whole loop
    assert abs(float(jax.grad(inner)(3.0) - expected)) < 1e-6


def test_one_trace_serves_all_policies_that_it_does_not_read(jax: Any) -> None:
    traces: list[int] = []

    def inner(x: Any) -> Any:
        traces.append(1)
        return jax.numpy.sin(x)

    jitted = jax.jit(inner)
    saving_sine(jax, [])  # the existence of rules does not matter
    for policy in (None, jax.checkpoint_policies.everything_saveable):
        jax.grad(jax.checkpoint(lambda x: jitted(x) * 2, policy=policy))(1.0)
    assert len(traces) == 1


def test_custom_remat(jax: Any) -> None:
    jnp, policies = jax.numpy, jax.checkpoint_policies
    calls: list[Any] = []
    sin = saving_sine(jax, calls)
    twice = lambda x: sin(sin(x))  # noqa: E731
    expected = jax.grad(lambda x: jnp.sin(jnp.sin(x)))(3.0)
    saving = policies.save_only_these_names("cos")
    for policy, saved_count in (
        (saving, 2),
        (policies.nothing_saveable, 0),
        (None, 0),
        (saving, 2),
    ):
        f = jax.checkpoint(twice, policy=policy)
        calls.clear()
        residuals = jax.ad_checkpoint.saved_residuals(f, 3.0)
        assert len(residuals) == 1 + saved_count
        assert calls in ([], [policy, policy])  # derivatives of a trace are made once
        for way in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
            assert abs(float(way(3.0) - expected)) < 1e-6
        assert abs(float(jax.vmap(jax.grad(f))(jnp.full(2, 3.0))[1] - expected)) < 1e-6
    calls.clear()
    assert abs(float(jax.grad(twice)(3.0) - expected)) < 1e-6
    assert abs(float(jax.jvp(twice, (3.0,), (1.0,))[1] - expected)) < 1e-6
    assert calls == []  # the rules are for `checkpoint`

    power = jax.custom_remat(
        lambda x, n, *, scale: x**n * scale,
        lambda _, x, n, scale: (x**n * scale, None),
        lambda _, x, n, scale: (x**n * scale, (x, n, scale)),
        lambda res, g: (g * res[1] * res[0] ** (res[1] - 1) * res[2],),
        static_argnums=1, static_argnames="scale",
    )  # fmt: skip
    assert float(jax.grad(jax.checkpoint(lambda x: power(x, 3, scale=2.0)))(2.0)) == 24.0
