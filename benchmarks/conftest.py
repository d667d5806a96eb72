"""Fixtures of the pytest-benchmark suites: each library under its name. accnp's plugin waits for
results.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import accnp

LIBRARIES = {
    "numpy": SimpleNamespace(np=np, asarray=np.asarray, wrap=lambda f: f),
    "jax eager": SimpleNamespace(np=jax.numpy, asarray=jax.numpy.asarray, wrap=lambda f: f),
    "jax jit": SimpleNamespace(np=jax.numpy, asarray=jax.numpy.asarray, wrap=jax.jit),
    "accnp eager": SimpleNamespace(np=accnp.numpy, asarray=accnp.numpy.asarray, wrap=lambda f: f),
    "accnp jit": SimpleNamespace(np=accnp.numpy, asarray=accnp.numpy.asarray, wrap=accnp.jit),
}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    """Provide a library: `.np` is its array module, `.asarray`, and `.wrap(f)` the function to
    time."""
    return LIBRARIES[request.param]


@pytest.fixture
def normal() -> Callable[..., np.ndarray]:
    """Return reproducible normally distributed float32 numbers of the given shape."""
    return lambda *shape: np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
