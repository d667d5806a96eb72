"""`checking_leaks`: a tracer of jit, vmap or scan that outlives its trace raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax

RUN: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: jax.jit(f)(3.0),
    "vmap": lambda f: jax.vmap(f)(jnp.ones(3)),
    "scan": lambda f: lax.scan(lambda c, a: (c + f(a), a), 0.0, jnp.ones(3)),
    "nested": lambda f: jax.jit(jax.vmap(jax.grad(f)))(jnp.ones(3)),
}


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("keep", [lambda x: x, lambda x: x * 2])
def test_leak_raises(name: str, keep: Callable[[Any], Any]) -> None:
    leaked: list[Any] = []

    def leaking(x: Any) -> Any:
        leaked.append(keep(x))
        return x * 3

    with jax.checking_leaks(), pytest.raises(Exception, match=r"^Leaked trace"):
        RUN[name](leaking)


@pytest.mark.parametrize("name", RUN)
def test_program_without_leaks(name: str) -> None:
    with jax.checking_leaks():
        RUN[name](lambda x: jnp.sin(x) * 2)
