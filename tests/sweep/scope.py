"""The names in the expressions that the sweep prints: `from tests.sweep.scope import *`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1])]

from sweep.execution_modes import ModeRunner  # noqa: E402

import accnp as jax  # noqa: E402
import accnp.numpy as jnp  # noqa: E402
from accnp import lax, nn  # noqa: E402

__all__ = [
    "grad", "hvp", "jax", "jit", "jnp", "jvp", "lax", "nn", "np", "ranks", "strict", "vmap",
]  # fmt: skip
_runner = ModeRunner(jax)


def jit(f: Callable[..., Any], *xs: Any) -> Any:
    return _runner.jit(f, xs)


def vmap(f: Callable[..., Any], *xs: Any) -> Any:
    return _runner.vmap(f, xs)


def grad(f: Callable[..., Any], *xs: Any) -> Any:
    return _runner.grad(f, xs)


def jvp(f: Callable[..., Any], *xs: Any) -> Any:
    return _runner.jvp(f, xs)


def hvp(f: Callable[..., Any], *xs: Any) -> Any:
    return _runner.hvp(f, xs)


def ranks(f: Callable[..., Any], *xs: Any) -> Any:
    return _runner.ranks(f, xs)


def strict(f: Callable[..., Any], *xs: Any) -> Any:
    return _runner.strict(f, xs)
