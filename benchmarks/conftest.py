"""What the pytest-benchmark suites share: a library by name and a way to wait for its result."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import accnp


def _ready(f: Callable) -> Callable:
    return lambda *arguments: f(*arguments).block_until_ready()


LIBRARIES = {
    "numpy": SimpleNamespace(np=np, asarray=np.asarray, wrap=lambda f: f),
    "jax eager": SimpleNamespace(np=jax.numpy, asarray=jax.numpy.asarray, wrap=_ready),
    "jax jit": SimpleNamespace(
        np=jax.numpy, asarray=jax.numpy.asarray, wrap=lambda f: _ready(jax.jit(f))
    ),
    "accnp eager": SimpleNamespace(np=accnp.numpy, asarray=accnp.numpy.asarray, wrap=_ready),
    "accnp jit": SimpleNamespace(
        np=accnp.numpy, asarray=accnp.numpy.asarray, wrap=lambda f: _ready(accnp.jit(f))
    ),
}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    """`.np` the array module, `.asarray`, `.wrap(f)` a call that waits for its result."""
    return LIBRARIES[request.param]


@pytest.fixture
def normal() -> Callable[..., np.ndarray]:
    """Float32 normal numbers of a shape, always the same."""
    return lambda *shape: np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
