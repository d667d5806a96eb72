"""Programs past `config.fusion_limit`: each operation is a kernel of its own, and says why."""

import numpy as np
import pytest
from compiler.fusion.support import plan_of

import accnp as jnp
from accnp.compiler.fusion.describe import why_stored
from accnp.compiler.fusion.reasons import UNFUSED
from accnp.config import scope

X = np.linspace(0.1, 2, 12, dtype=np.float32).reshape(3, 4)


def chain(x, n=6):
    for i in range(n):
        x = jnp.sin(x) * 1.5 + x / (1 + i)
    return x


def rows(x):
    return x / x.sum(1, keepdims=True) - x.mean(0) + jnp.max(x)


def pieces(x):
    y = jnp.concatenate([jnp.exp(x), x[:1] * 2])
    return y[1:] + y[:-1] + jnp.arange(4.0), y.T.reshape(-1), y[jnp.array([1, 2, 0])] * 3


def loops(x):
    return jnp.lax.fori_loop(0, 3, lambda i, c: jnp.cos(c) * i + c, x).sum()


def half(x):
    return jnp.sum((x.astype(jnp.float16) * 1.3 + 0.7) * x.astype(jnp.float16))


PROGRAMS = {
    "chain": chain,
    "rows": rows,
    "pieces": pieces,
    "loops": loops,
    "half": half,
    "gradient": jnp.grad(lambda x: (chain(x) * rows(x)).sum()),
    "integers": lambda x: jnp.cumsum((x * 10).astype(int) % 3) + jnp.sort(x.ravel()).argmax(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_fused_code(name):
    f = PROGRAMS[name]
    fused = jnp.jit(f)(X)
    with scope("fusion_limit", 0):
        apart = jnp.jit(f)(X)
    fused, apart = (x if isinstance(x, tuple) else (x,) for x in (fused, apart))
    for a, b in zip(fused, apart, strict=True):
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def texts(n):
    return {step.text.source for step in plan_of(lambda x: chain(x, n), X).steps}


def test_the_number_of_kernels_is_that_of_the_kinds_of_operations():
    with scope("fusion_limit", 40):
        assert len(texts(5)) == 1  # fused: 20 operations
        assert len(texts(20)) == len(texts(60)) == 4  # sin, mul, div, add


def test_inspect_shows_the_fusion_limit():
    with scope("fusion_limit", 3):
        looked = jnp.inspect(chain)(X)
    inner = [v for v in looked.program.values if v not in looked.program.outputs]
    assert inner
    assert all(why_stored(v) == [UNFUSED] for v in inner)
    assert UNFUSED in str(looked)
