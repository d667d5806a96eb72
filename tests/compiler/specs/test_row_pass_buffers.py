"""Values that one pass over a row keeps for later passes are stored in separate buffers."""

import re

import numpy as np
import pytest
from compiler.fusion.support import plan_of

import accnp as jnp


def softmax(x, np=jnp):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def folds_of_what_is_kept(x, np=jnp):
    e = np.exp(x)
    total = e.sum(-1, keepdims=True)
    return e / ((e - total) ** 2).sum(-1, keepdims=True), (e * total).max(-1)


def texts(f, x):
    return [s.text.source for s in plan_of(f, x).steps]


def test_only_the_last_pass_writes_the_result():
    (text,) = texts(softmax, np.ones((7, 9), np.float32))
    assert len(re.findall(r"^ *a0\[.*\] = ", text, re.MULTILINE)) == 1
    assert "= a0[" not in text
    assert text.count("heap_f4(n1)") == text.count("release(") == 1


def test_long_rows_are_kept_in_the_result_buffer():
    (text,) = texts(softmax, np.ones((40, (1 << 17) + 1), np.float32))
    assert "heap" not in text


@pytest.mark.parametrize("shape", [(3, 5), (17, 64), (40, 1001), (5, 2, 1500), (6, 131072)])
@pytest.mark.parametrize("f", [softmax, folds_of_what_is_kept])
def test_values(f, shape):
    x = np.linspace(-3, 2, np.prod(shape), dtype=np.float32).reshape(shape)
    actual, expected = jnp.jit(f)(x), f(x.astype(np.float64), np)
    for g, w in zip(jnp.tree.leaves(actual), jnp.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-6)
