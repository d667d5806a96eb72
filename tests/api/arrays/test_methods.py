"""Operators, properties and methods of arrays, and operations of arrays with NumPy arrays, compared
with JAX.
"""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import jax
import numpy as np
import pytest
from api.support import assert_agree, assert_same

import accnp
import accnp.numpy as jnp

X = np.array([[3, -1, 2], [0, 5, -4]], np.int32)
F = X.astype(np.float32) / 2
PAIRS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.parametrize("name", PAIRS)
def test_operators(name: str) -> None:
    op = getattr(operator, name)
    a, b = jnp.asarray(F), jax.numpy.asarray(F)
    for value in (2, 0.5, F[1:], np.float32(3)):
        assert_same(op(a, value), op(b, value))
        assert_same(op(value, a), op(value, b))
    assert_same(op(a, a), op(b, b))


@pytest.mark.parametrize("name", BITS)
def test_bit_operators(name: str) -> None:
    op = getattr(operator, name)
    a, b = jnp.asarray(abs(X)), jax.numpy.asarray(abs(X))
    assert_same(op(a, a), op(b, b))
    assert_same(op(a, 1), op(b, 1))
    assert_same(op(2, a), op(2, b))


def test_imaginary_parts_are_lost_with_a_warning_at_the_users_line():
    x = jnp.array([1 + 2j])
    for convert in (lambda: x.astype(float), lambda: jnp.astype(x, int)):
        with pytest.warns(DeprecationWarning, match="imaginary") as caught:
            assert convert().tolist() == [1]
        assert caught[0].filename == __file__
    assert x.astype(bool).tolist() == [True]  # no warning


def test_other_operators() -> None:
    a, b = jnp.asarray(F), jax.numpy.asarray(F)
    for op in (operator.neg, operator.pos, abs, round, lambda x: round(x, 1), lambda x: x @ x.T):
        assert_same(op(a), op(b))
    assert_same(divmod(a, 2), divmod(b, 2))
    assert_same(divmod(7, a + 5), divmod(7, b + 5))
    assert_same(~jnp.asarray(X), ~jax.numpy.asarray(X))
    assert_same(F @ a.T, F @ b.T)
    for y in (2, -1, 0.5, 0):
        assert_same(a**y, b**y)
        assert_same(1.5 ** (a + y), 1.5 ** (b + y))
    assert 2.5 in a.reshape(-1)
    assert 77 not in a.reshape(-1)


METHODS: list[tuple[str, tuple, dict]] = [
    ("sum", (), {"axis": 1}),
    ("prod", (), {}),
    ("max", (0,), {}),
    ("min", (), {"keepdims": True}),
    ("mean", (), {"axis": -1}),
    ("var", (), {"ddof": 1}),
    ("std", (1,), {}),
    ("any", (), {}),
    ("all", (), {"axis": 0}),
    ("argmax", (1,), {}),
    ("argmin", (), {}),
    ("cumsum", (1,), {}),
    ("cumprod", (), {}),
    ("ptp", (), {}),
    ("reshape", (3, 2), {}),
    ("reshape", ((-1,),), {}),
    ("ravel", (), {}),
    ("flatten", (), {}),
    ("transpose", (), {}),
    ("transpose", (1, 0), {}),
    ("transpose", ((1, 0),), {}),
    ("swapaxes", (0, 1), {}),
    ("squeeze", (), {}),
    ("astype", ("float16",), {}),
    ("astype", (np.int8,), {}),
    ("clip", (-1, 2), {}),
    ("conj", (), {}),
    ("round", (1,), {}),
    ("copy", (), {}),
    ("sort", (), {}),
    ("argsort", (), {"axis": 0}),
    ("take", (np.array([0, 5]),), {}),
    ("repeat", (2,), {"axis": 1}),
    ("diagonal", (), {}),
    ("trace", (), {}),
    ("dot", (np.ones(3, np.float32),), {}),
    ("nonzero", (), {}),
    ("view", (np.int32,), {}),
    ("view", (np.int16,), {}),
    ("view", (np.uint8,), {}),
    ("compress", (np.array([True, False]),), {"axis": 0}),
    ("tolist", (), {}),
    ("byteswap", (), {}),
]


@pytest.mark.parametrize(("name", "args", "kw"), METHODS)
def test_methods(name: str, args: tuple, kw: dict) -> None:
    def call(x: Any) -> Any:
        return getattr(x, name)(*args, **kw)

    if name == "byteswap":  # which jax's arrays name but do not have
        np.testing.assert_array_equal(np.asarray(call(jnp.asarray(F))), F.byteswap())
        return
    assert_agree(call, call, F)


@pytest.mark.parametrize("name", ["T", "mT", "real", "imag"])
def test_properties(name: str) -> None:
    assert_agree(lambda x: getattr(x, name), lambda x: getattr(x, name), F)
    assert_agree(lambda x: getattr(x, name), lambda x: getattr(x, name), F * np.complex64(1 - 2j))


@pytest.mark.parametrize(
    "name", ["shape", "ndim", "size", "itemsize", "nbytes", "dtype", "weak_type"]
)
def test_size_and_dtype_attributes(name: str) -> None:
    assert getattr(jnp.asarray(F), name) == getattr(jax.numpy.asarray(F), name)


def test_methods_match_those_of_jax() -> None:
    missing = [n for n in dir(jax.Array) if not n.startswith("_") and not hasattr(accnp.Array, n)]
    allowed = {
        "addressable_shards",
        "global_shards",
        "sharding",
        "format",
        "traceback",
        "flat",
        "platform",
        "device_buffer",
        "device_buffers",
        "layout",
    }
    assert set(missing) <= allowed


def test_item_assignment_names_at() -> None:
    with pytest.raises(TypeError, match=r"\.at\[index\]\.set"):
        jnp.ones(2)[0] = 1.0  # type: ignore[index]


def test_iteration() -> None:
    rows = list(jnp.asarray(X))
    assert [r.shape for r in rows] == [(3,), (3,)]
    assert_same(rows[1], jax.numpy.asarray(X)[1])
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(jnp.float32(1))


def test_conversions_to_python_scalars() -> None:
    assert bool(jnp.float32(2))
    assert int(jnp.int32(3)) == 3
    assert float(jnp.float32(0.5)) == 0.5
    assert complex(jnp.float32(1)) == 1
    assert [10, 20, 30][jnp.int32(1)] == 20
    with pytest.raises(ValueError, match="ambiguous"):
        bool(jnp.ones(2))
    with pytest.raises(TypeError, match="unhashable"):
        hash(jnp.ones(2))
    assert (jnp.ones(2) == None) is False  # noqa: E711


def test_numpy_operands_and_functions() -> None:
    x = jnp.asarray(F)
    assert isinstance(F + x, accnp.Array)
    assert isinstance(np.float32(2) * x, accnp.Array)
    assert isinstance(np.float64(2) ** x, accnp.Array)
    assert isinstance(np.sin(x), np.ndarray)
    assert np.asarray(x).flags.writeable is False
    np.testing.assert_array_equal(np.concatenate([x, x]), np.concatenate([F, F]))
    assert x.__array_namespace__() is jnp


def test_pickling_and_copying() -> None:
    x = jnp.asarray(F) * 2
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), F * 2)
    np.testing.assert_array_equal(copy.deepcopy(x), F * 2)
    assert np.from_dlpack(x).tolist() == (F * 2).tolist()


def test_view_refuses_unsuitable_shapes() -> None:
    with pytest.raises(ValueError, match="last axis"):
        jnp.ones((2, 3), jnp.int16).view(jnp.int32)


def test_scalar_types() -> None:
    one = jnp.float32(1)
    assert isinstance(one, accnp.Array)
    assert one.dtype == jnp.float32 == np.float32
    assert not one.weak_type
    assert np.zeros(1, jnp.int8).dtype == np.int8
    assert jnp.zeros(1, jnp.bfloat16).dtype == jnp.bfloat16
    assert {jnp.float32: 1}[np.float32] == 1
    assert isinstance(np.float32(1), jnp.float32)
    assert jnp.issubdtype(jnp.float32, jnp.floating)


@pytest.mark.parametrize(
    ("module", "wrong", "right"),
    [
        (jnp, "arrange", "arange"),
        (accnp, "value_and_gard", "value_and_grad"),
        (accnp.lax, "fori_lop", "fori_loop"),
        (accnp.nn, "sofmax", "softmax"),
        (accnp.scipy.stats.norm, "lgpdf", "logpdf"),
    ],
)
def test_misspelt_names(module: Any, wrong: str, right: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean .*'{right}'"):
        getattr(module, wrong)


def test_every_public_name_exists() -> None:
    for module in (accnp, jnp, accnp.lax, accnp.nn):
        assert len(set(module.__all__)) == len(module.__all__)
        for name in module.__all__:
            assert hasattr(module, name)
    assert set(jnp.__all__) <= set(accnp.__all__)


def test_counters_count() -> None:
    before = accnp.counters()
    jnp.sin(jnp.arange(5.0) * 1.25).block_until_ready()
    after = accnp.counters()
    assert after["launches"] > before["launches"]
    assert set(after) == {"traces", "compiles", "disk_hits", "launches", "kernels"}


def test_complex_truth_value_uses_both_parts():
    x = np.array([0, 1j, 1, -2j, np.nan, 1j * np.nan], np.complex64)
    for y in (jnp.asarray(x).astype(bool), jnp.astype(x, np.bool_), jnp.astype(x[::2], bool)):
        assert y.dtype == np.bool_
    np.testing.assert_array_equal(jnp.asarray(x).astype(bool), x.astype(bool))
    np.testing.assert_array_equal(accnp.jit(lambda z: z.astype(bool))(x), x.astype(bool))
