"""Placement of arrays on devices, compared with JAX with the same number of devices (see
conftest.py).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

V = np.arange(1, 5, dtype=np.float32)


def put(m: Any, i: int, x: Any = V) -> Any:
    return m.device_put(x, m.devices()[i])


WHERE: dict[str, Callable[[Any], Any]] = {
    "put": lambda m: put(m, 2),
    "a number": lambda m: put(m, 1, 2.0),
    "put twice": lambda m: m.device_put(put(m, 2), m.devices()[1]),
    "put without a device": lambda m: m.device_put(put(m, 2)),
    "a result": lambda m: put(m, 2) * 2 + V,
    "a pending result": lambda m: m.device_put(put(m, 2) * 2, m.devices()[3]) + 1,
    "not put": lambda m: m.numpy.asarray(V) + 1,
    "asarray": lambda m: m.numpy.array(m.numpy.asarray(put(m, 2))),
    "reductions": lambda m: put(m, 2).sum(),
    "products": lambda m: put(m, 2) @ V,
    "indexing": lambda m: put(m, 2)[1:],
    "several results": lambda m: m.numpy.linalg.qr(put(m, 1, np.eye(3, dtype=np.float32)))[1],
    "jit": lambda m: m.jit(lambda x: x * 2)(put(m, 2)),
    "vmap": lambda m: m.vmap(lambda x: x * 2)(put(m, 2)),
    "scan": lambda m: m.lax.scan(lambda c, x: (c + x, x), 0.0, put(m, 2))[0],
    "while": lambda m: m.lax.while_loop(lambda c: c < 9, lambda c: c * 2, put(m, 1, 1.0)),
    "cond": lambda m: m.jit(lambda x: m.lax.cond(x[0] > 0, lambda: x, lambda: -x))(put(m, 2)),
    "grad": lambda m: m.grad(lambda x: (x**3).sum())(put(m, 2)),
    "grad moves back": lambda m: m.grad(lambda x: (put(m, 1, x) ** 2).sum())(put(m, 2)),
    "jvp moves": lambda m: m.jvp(lambda x: put(m, 1, x) ** 2, (V,), (V,))[1],
    "hessian": lambda m: m.hessian(lambda x: (x**3).sum())(put(m, 2)),
    "a tree": lambda m: m.device_put({"a": V, "b": [1, 2]}, m.devices()[1])["b"][1],
    "a tree of devices": lambda m: m.device_put(
        {"a": V, "b": [1, 2]}, {"a": None, "b": m.devices()[3]}
    )["b"][0],
    "zeros_like": lambda m: m.numpy.zeros_like(put(m, 2)),
    "zeros_like on another device": lambda m: m.numpy.zeros_like(put(m, 2), device=m.devices()[1]),
    "zeros": lambda m: m.numpy.zeros(3, device=m.devices()[1]),
    "full": lambda m: m.numpy.full(3, 2.0, device=m.devices()[1]),
    "asarray with device": lambda m: m.numpy.asarray(V, device=m.devices()[1]),
    "array of an array": lambda m: m.numpy.array(m.numpy.ones(2), device=m.devices()[1]),
    "arange": lambda m: m.numpy.arange(1, 9, 2, device=m.devices()[1]),
    "eye": lambda m: m.numpy.eye(3, device=m.devices()[1]),
    "linspace": lambda m: m.numpy.linspace(0, 1, 5, device=m.devices()[1]),
    "to_device": lambda m: m.numpy.asarray(V).to_device(m.devices()[3]),
    "pickle": lambda m: pickle.loads(pickle.dumps(put(m, 2))),
}
MIXED: dict[str, Callable[[Any], Any]] = {
    "add": lambda m: put(m, 2) + put(m, 1),
    "where": lambda m: m.numpy.where(put(m, 2) > 1, put(m, 1), 0),
    "concatenate": lambda m: m.numpy.concatenate([put(m, 2), put(m, 1)]),
    "dot": lambda m: put(m, 2) @ put(m, 1),
    "results": lambda m: (put(m, 2) * 2).sum() + put(m, 1),
    "jit": lambda m: m.jit(lambda x, y: x * y)(put(m, 2), put(m, 1)),
    "grad": lambda m: m.grad(lambda x: (x * put(m, 1)).sum())(put(m, 2)),
    "cond": lambda m: m.jit(lambda p, x, y: m.lax.cond(p, lambda: x, lambda: y))(
        True, put(m, 2), put(m, 1)
    ),
}


@pytest.mark.parametrize("name", WHERE)
def test_devices_of_arrays(name: str) -> None:
    expected, actual = WHERE[name](jax), WHERE[name](accnp)
    assert str(actual.device) == str(expected.device)
    assert {*map(str, actual.devices())} == {*map(str, expected.devices())}
    assert actual.committed == expected.committed
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("name", MIXED)
def test_mixing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="incompatible devices"):
        MIXED[name](jax)
    with pytest.raises(
        ValueError, match=r"different devices; got .* on cpu:. and .* on cpu:.; .*device_put"
    ):
        MIXED[name](accnp)


def test_keys_can_be_put() -> None:
    key = accnp.device_put(accnp.random.key(0), accnp.devices()[1])
    assert {*map(str, key.devices())} == {"cpu:1"}
    assert accnp.random.uniform(key).device is accnp.devices()[1]


def test_wrong_devices() -> None:
    for m in (jax, accnp):
        with pytest.raises(ValueError, match=r"cpu"):
            m.device_put(V, "cpu")
        with pytest.raises(ValueError, match=r"device_put device"):
            m.device_put({"a": V}, {"b": m.devices()[0]})
    with pytest.raises(ValueError, match=r"must be a Device.*; use devices\('cpu'\)\[0\]"):
        accnp.zeros(3, device="cpu")


def test_values_are_not_copied() -> None:
    x = accnp.asarray(V) * 2
    x.block_until_ready()
    y = put(accnp, 1, x)
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def test_default_device() -> None:
    for m in (jax, accnp):
        with m.default_device(m.devices()[1]):
            assert str(m.numpy.ones(2).device) == "cpu:1"
        assert str(m.numpy.ones(2).device) == "cpu:0"
