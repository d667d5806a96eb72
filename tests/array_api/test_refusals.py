"""Calls that the array API standard requires to be refused, with the error class that it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import accnp.numpy as jnp

ONES = jnp.ones((2, 3))
REFUSED: list[tuple[type[Exception], Callable[[], Any]]] = [
    (IndexError, lambda: jnp.expand_dims(ONES, axis=3)),
    (IndexError, lambda: jnp.expand_dims(ONES, axis=-4)),
    (ValueError, lambda: jnp.expand_dims(ONES, axis=(0, 0))),
    (ValueError, lambda: jnp.squeeze(ONES, 0)),
    (ValueError, lambda: jnp.squeeze(jnp.ones((1, 2)), (0, 1))),
    (IndexError, lambda: ONES[jnp.ones(3, bool)]),
    (IndexError, lambda: ONES[jnp.ones((2, 3, 1), bool)]),
    (ValueError, lambda: jnp.broadcast_shapes((2,), (3,))),
    (ValueError, lambda: jnp.broadcast_to(ONES, (2,))),
    (ValueError, lambda: ONES.__array_namespace__(api_version="2020.01")),
    (ValueError, lambda: jnp.nonzero(jnp.asarray(1))),
    (ValueError, lambda: jnp.cumulative_sum(ONES)),
    (ValueError, lambda: jnp.cumulative_prod(ONES)),
    (ValueError, lambda: jnp.vecdot(jnp.ones(3), jnp.ones(1))),
    (ValueError, lambda: jnp.linalg.vecdot(jnp.ones((3, 2)), jnp.ones((3, 1)))),
    (ValueError, lambda: jnp.matmul(jnp.asarray(1.0), ONES)),
    (ValueError, lambda: jnp.ones(3).mT),
    (ValueError, lambda: jnp.isdtype(jnp.float32, "floating")),
    (ValueError, lambda: jnp.__array_namespace_info__().dtypes(kind="float")),
    (ValueError, lambda: jnp.repeat(jnp.ones(3), jnp.asarray([1, 2]))),
    (ValueError, lambda: jnp.moveaxis(ONES, (0,), (0, 1))),
    (ValueError, lambda: jnp.concat([])),
    (ValueError, lambda: jnp.max(jnp.ones(0))),
    (ValueError, lambda: jnp.argmin(jnp.ones(0))),
    (TypeError, lambda: float(jnp.asarray(1j))),
    (TypeError, lambda: int(jnp.asarray(1j))),
    (TypeError, lambda: range(3)[jnp.asarray(1.0)]),
    (OverflowError, lambda: jnp.asarray(2**64)),
    (OverflowError, lambda: jnp.ones(2, jnp.int32) + 2**64),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call"), REFUSED)
def test_invalid_arguments_raise(error: type[Exception], call: Callable[[], Any]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("size", [1, 4])
def test_cross_products_are_of_three_numbers(axis: int, size: int) -> None:
    shape = [2, 2]
    shape[axis] = size
    with pytest.raises((TypeError, ValueError)):
        jnp.linalg.cross(jnp.ones(shape), jnp.ones(shape), axis=axis)


@pytest.mark.parametrize("device", [d for d in jnp.__array_namespace_info__().devices() if d])
def test_creation_functions_accept_device(device: Any) -> None:
    x = jnp.ones(2)
    arrays = [
        jnp.zeros(2, device=device), jnp.ones(2, device=device), jnp.empty(2, device=device),
        jnp.full(2, 1, device=device), jnp.arange(2, device=device), jnp.eye(2, device=device),
        jnp.linspace(0, 1, 3, device=device), jnp.asarray([1], device=device),
        jnp.zeros_like(x, device=device), jnp.ones_like(x, device=device),
        jnp.empty_like(x, device=device), jnp.full_like(x, 2, device=device),
        jnp.astype(x, jnp.int32, device=device), jnp.from_dlpack(x, device=device),
        jnp.fft.fftfreq(3, device=device), jnp.fft.rfftfreq(3, device=device), x.to_device(device),
    ]  # fmt: skip
    assert all(m.device == device for m in arrays)
