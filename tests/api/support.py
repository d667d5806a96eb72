"""Assertions that results of two functions have the same type, weak flag and values as JAX's.

Values are computed by the NumPy reference functions of the ops, without kernels: these tests check
which ops are recorded. Tests in tests/primitives and tests/compiler/library check op by op that
kernels agree with the reference functions.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from api.oracle import JaxArray, jax_result

import accnp
from accnp import engine
from accnp.api.jit import small_calls
from accnp.ir import node as recording
from accnp.ir.graph import toposort

TOLERANCE = {
    "float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6, "float64": 1e-13,
    "complex64": 5e-6, "complex128": 1e-12,
}  # fmt: skip


def value_of(x: Any) -> Any:
    """Compute an array, or each of several, by the ops' NumPy reference functions."""
    if isinstance(x, tuple | list):
        return type(x)(value_of(v) for v in x)
    if not isinstance(x, accnp.Array):
        return x
    values: dict[int, Any] = {}

    def ready(node: Any) -> Any:
        value = values.get(id(node))
        if value is not None:
            return value
        if isinstance(node.aval, tuple):
            parts = zip(node.value, node.aval)
            return [buffer.view(a.shape, a.dtype) for buffer, a in parts]
        return engine.array_of(node)

    for node in toposort([x._node], enter=lambda n: n.value is None):
        with np.errstate(all="ignore"):
            out = node.op.numpy(*[ready(v) for v in node.inputs], **node.params)
        if isinstance(node.aval, tuple):
            values[id(node)] = [np.asarray(v, a.dtype) for v, a in zip(out, node.aval)]
        else:
            out = np.asarray(out)
            assert out.shape == node.aval.shape, (node.op, out.shape, node.aval)
            values[id(node)] = out.astype(node.aval.dtype, copy=False)
    return ready(x._node)


@contextlib.contextmanager
def defer_computation() -> Iterator[None]:
    """Record operations without computing them, for `value_of`.

    Small calls do not run as compiled programs (`test_small_calls.py` tests these), and deep
    expressions are not computed early.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_calls, "_is_small", lambda arrays, static: False)
        patch.setattr(
            small_calls._SmallCalls, "run", lambda self, args, kw: self.function(*args, **kw)
        )
        patch.setattr(recording, "_on_deep", [lambda node: None])
        yield


def assert_same(ours: Any, theirs: Any, scale: float = 1.0) -> None:
    """Assert that a result has JAX's type, weak flag and values."""
    if isinstance(theirs, tuple | list):
        assert isinstance(ours, tuple | list)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same(a, b, scale)
        return
    if not isinstance(theirs, jax.Array | JaxArray):
        assert ours == theirs
        return
    assert isinstance(ours, accnp.Array), type(ours)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if theirs.dtype != bool:  # jax's flag of bools depends on how it happens to compute them
        assert ours.weak_type == theirs.weak_type
    a, b = value_of(ours), np.asarray(theirs)
    tolerance = TOLERANCE.get(b.dtype.name, 0) * scale
    if b.dtype.name in ("bfloat16", "float16"):
        a, b = a.astype(np.float32), b.astype(np.float32)
    if tolerance:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        np.testing.assert_array_equal(a, b)


def result_or_error(fn: Callable[[], Any]) -> Any:
    """Return the result, or the exception that was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn()
        except Exception as error:
            return error


def assert_agree(
    ours: Callable[..., Any], theirs: Callable[..., Any], *args: Any, **kw: Any
) -> None:
    """Assert that two functions agree on inputs: both refuse them, or their results are the
    same.

    NumPy arrays are passed as arrays of each library, everything else unchanged.
    """
    mine = [accnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]

    def ask() -> Any:
        other = [jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        return result_or_error(lambda: theirs(*other, **kw))

    a, b = result_or_error(lambda: ours(*mine, **kw)), jax_result(ask, args, kw)
    if isinstance(b, Exception):
        assert isinstance(a, Exception), f"jax raises {b!r}"
        assert isinstance(a, TypeError | ValueError | NotImplementedError | OverflowError)
        return
    if isinstance(a, Exception):
        raise AssertionError(f"jax returns {b}") from a
    assert_same(a, b)


def assert_same_type(
    ours: Callable[..., Any], theirs: Callable[..., Any], *args: Any, **kw: Any
) -> None:
    """Compare shape, dtype and weak flag only, so that JAX compiles nothing."""
    mine = [accnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    a = result_or_error(lambda: ours(*mine, **kw))
    b = result_or_error(lambda: jax.eval_shape(lambda: theirs(*args, **kw)))
    assert isinstance(a, Exception) == isinstance(b, Exception), (a, b)
    if isinstance(b, Exception):
        return
    for x, y in zip(_as_sequence(a), _as_sequence(b), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert x.weak_type == y.weak_type or y.dtype == bool


def _as_sequence(x: Any) -> Any:
    return x if isinstance(x, tuple | list) else (x,)
