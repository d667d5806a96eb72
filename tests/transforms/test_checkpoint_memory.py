"""Checkpointing reduces the bytes in buffers while a program with a gradient runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accnp as jnp
from accnp.runtime import buffer


def peak_memory(fn: Callable[..., Any], *args: Any) -> int:
    """Return the peak of the bytes in buffers while `fn` runs, beyond those in use before."""
    jnp.block_until_ready(fn(*args))
    before = buffer._pool.peak = buffer._pool.live
    jnp.block_until_ready(fn(*args))
    return buffer._pool.peak - before


ROWS, WIDTH, DEPTH = 1024, 32, 10  # more than eager records take, whose buffers are not met here
UNIT = ROWS * WIDTH * 4  # bytes of one activation


def block(w: Any, x: Any) -> Any:
    """A layer whose backward pass needs six arrays of the size of x."""
    h = jnp.tanh(x @ w)
    h = jnp.sin(h) * x
    return jnp.exp(-h * h) @ w


def make_unrolled_loss(f: Any) -> Any:
    def loss(ws: Any, x: Any) -> Any:
        for k in range(DEPTH):
            x = f(ws[k], x)
        return jnp.sum(x * x)

    return loss


def make_scanned_loss(f: Any) -> Any:
    def loss(ws: Any, x: Any) -> Any:
        return jnp.sum(jnp.lax.scan(lambda c, w: (f(w, c), None), x, ws)[0] ** 2)

    return loss


@pytest.mark.parametrize("jitted", [True, False], ids=["jit", "eager"])
@pytest.mark.parametrize("net", [make_unrolled_loss, make_scanned_loss])
def test_checkpointing_reduces_memory(net: Any, jitted: bool) -> None:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((ROWS, WIDTH)), jnp.float32)
    ws = jnp.asarray(rng.standard_normal((DEPTH, WIDTH, WIDTH)) / 6, jnp.float32)

    def units(f: Any) -> float:
        gradient = jnp.grad(net(f))
        return peak_memory(jnp.jit(gradient) if jitted else gradient, ws, x) / UNIT

    policies = jnp.checkpoint_policies
    plain = units(block)
    nothing = units(jnp.checkpoint(block))
    dots = units(jnp.checkpoint(block, policy=policies.dots_saveable))
    everything = units(jnp.checkpoint(block, policy=policies.everything_saveable))
    # One activation for each layer, the working set of one layer, and the gradients.
    assert nothing < DEPTH + 14
    assert nothing < dots < plain
    # Some rules ask for a value and for a function of it, so this may be more than without.
    assert everything > 0.9 * plain
    assert plain > 4 * DEPTH


@pytest.mark.parametrize("transform", ["vmap", "nested", "checkpoint of scan"])
def test_checkpointing_reduces_memory_under_transformations(transform: str) -> None:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((ROWS, WIDTH)), jnp.float32)
    ws = jnp.asarray(rng.standard_normal((DEPTH, WIDTH, WIDTH)) / 6, jnp.float32)
    if transform == "vmap":

        def of(f: Any) -> Any:
            return jnp.vmap(jnp.grad(make_unrolled_loss(f), 1), (None, 0))

        x = x.reshape(4, ROWS // 4, WIDTH)
    elif transform == "nested":

        def of(f: Any) -> Any:
            def half(ws: Any, x: Any) -> Any:
                return functools.reduce(lambda c, k: f(ws[k], c), range(DEPTH // 2), x)

            outer = half if f is block else jnp.checkpoint(half)
            return jnp.grad(lambda ws, x: jnp.sum(outer(ws[5:], outer(ws[:5], x)) ** 2), 1)
    else:

        def of(f: Any) -> Any:
            def steps(ws: Any, x: Any) -> Any:
                return jnp.lax.scan(lambda c, w: (f(w, c), None), x, ws)[0]

            outer = steps if f is block else jnp.checkpoint(steps)
            return jnp.grad(lambda ws, x: jnp.sum(outer(ws[5:], outer(ws[:5], x)) ** 2), 1)

    plain = peak_memory(jnp.jit(of(block)), ws, x) / UNIT
    less = peak_memory(jnp.jit(of(jnp.checkpoint(block))), ws, x) / UNIT
    # Nested: the arguments of two halves, and of five layers of one of them.
    assert less < (DEPTH + 12 if transform == "vmap" else DEPTH / 2 + 16)
    assert plain > 4 * DEPTH


def test_without_prevention_common_subexpressions_are_merged() -> None:
    x = jnp.linspace(0.0, 1.0, 4096)

    def wave(x: Any) -> Any:
        for _ in range(3):
            x = jnp.sin(x) * jnp.exp(-x * x) + jnp.tanh(x)
        return x

    def peak(f: Any) -> float:
        return peak_memory(jnp.jit(jnp.grad(lambda x: jnp.sum(f(f(f(f(x))))))), x) / x.nbytes

    assert peak(jnp.checkpoint(wave)) < 7
    assert peak(jnp.checkpoint(wave, prevent_cse=False)) > 20
    assert peak(jnp.checkpoint(wave, prevent_cse=(False,))) > 20
