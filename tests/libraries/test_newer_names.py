"""Names that JAX has had since 0.11, under `as_jax`: against a list, and what they do."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
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


def test_custom_remat(jax: Any) -> None:
    """The documented example of JAX: a sine that saves its cosine, or recomputes it."""
    jnp, policies = jax.numpy, jax.checkpoint_policies
    calls: list[Any] = []

    def forward(policy: Any, x: Any) -> Any:
        calls.append(policy)
        saves = isinstance(policy, policies.SaveOnlyTheseNames) and "cos" in policy.saveable_names
        return jnp.sin(x), jnp.cos(x) if saves else None

    def again(cos: Any, x: Any) -> Any:
        return jnp.sin(x), jnp.cos(x) if cos is None else cos

    sin = jax.custom_remat(jnp.sin, forward, again, lambda cos, g: (cos * g,))
    twice = lambda x: sin(sin(x))  # noqa: E731
    want = jax.grad(lambda x: jnp.sin(jnp.sin(x)))(3.0)
    saving = policies.save_only_these_names("cos")
    for policy, kept in ((saving, 2), (policies.nothing_saveable, 0), (None, 0), (saving, 2)):
        f = jax.checkpoint(twice, policy=policy)
        calls.clear()
        residuals = jax.ad_checkpoint.saved_residuals(f, 3.0)
        assert len(residuals) == 1 + kept
        assert calls in ([], [policy, policy])  # derivatives of a trace are made once
        for way in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
            assert abs(float(way(3.0) - want)) < 1e-6
        assert abs(float(jax.vmap(jax.grad(f))(jnp.full(2, 3.0))[1] - want)) < 1e-6
    calls.clear()
    assert abs(float(jax.grad(twice)(3.0) - want)) < 1e-6
    assert abs(float(jax.jvp(twice, (3.0,), (1.0,))[1] - want)) < 1e-6
    assert calls == []  # the rules are for `checkpoint`

    power = jax.custom_remat(
        lambda x, n, *, scale: x**n * scale,
        lambda _, x, n, scale: (x**n * scale, None),
        lambda _, x, n, scale: (x**n * scale, (x, n, scale)),
        lambda res, g: (g * res[1] * res[0] ** (res[1] - 1) * res[2],),
        static_argnums=1, static_argnames="scale",
    )  # fmt: skip
    assert float(jax.grad(jax.checkpoint(lambda x: power(x, 3, scale=2.0)))(2.0)) == 24.0
