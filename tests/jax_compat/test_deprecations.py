"""Uses that JAX 0.10.2 deprecates are accepted with a DeprecationWarning, as in JAX."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp

CALLS: list[tuple[Callable[[], Any], Any, str]] = [
    (lambda: jnp.ndim([1, 2]), 1, "ndim requires ndarray or scalar arguments, got <class 'list'>"),
    (lambda: jnp.shape((1, 2)), (2,), "shape requires ndarray or scalar arguments"),
    (lambda: jnp.size([[1], [2]]), 2, "size requires ndarray or scalar arguments"),
    (lambda: jnp.array([1], int, True, "K", 2).shape, (1, 1), "ndmin arguments to jnp.array"),
    (lambda: jnp.array([1], int, False).dtype, np.int32, "Passing the copy, order, and ndmin"),
    (lambda: jax.nn.one_hot(jnp.ones(1), 2).tolist(), [[0, 1]], "input should be integer-typed"),
    (lambda: jnp.array([1j]).astype("float32").tolist(), [0], "Casting from complex to real"),
]


@pytest.mark.parametrize(("call", "value", "words"), CALLS)
def test_deprecated(call: Callable[[], Any], value: Any, words: str) -> None:
    with pytest.warns(DeprecationWarning, match=words) as caught:
        assert call() == value
    assert [w.filename for w in caught] == [__file__]


def test_not_deprecated() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (jnp.ndim(2.0), jnp.shape(np.ones(3)), jnp.size(jnp.ones(3))) == (0, (3,), 3)
        assert jnp.array([1], int, copy=True, order="K", ndmin=2).shape == (1, 1)
        assert jax.nn.one_hot(jnp.array([1], "int4"), 2).tolist() == [[0, 1]]
        assert jax.nn.one_hot(1, 2).tolist() == [0, 1]


def test_too_many_positional_arguments() -> None:
    with pytest.raises(TypeError, match=r"^array: it takes from 1 to 5 positional arguments"):
        jnp.array([1], int, True, "K", 2, None)
