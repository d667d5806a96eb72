"""Matrix products on a GPU: the arguments for cuBLAS, loops of products that run without Python,
and CuPy's functions if cuBLAS cannot be called directly.
"""

from collections import Counter

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.runtime.device_buffer import driver_of

RNG = np.random.default_rng(0)


def draw(*shape, dtype="f4"):
    x = RNG.standard_normal(shape)
    x = x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x
    return x.astype(dtype)


A, B, S, T, V = draw(6, 8), draw(8, 5), draw(3, 6, 8), draw(3, 8, 5), draw(8)

LAYOUTS = {
    "rows": (lambda a, b: a @ b, A, B),
    "left turned": (lambda a, b: a.T @ b, A.T.copy(), B),
    "right turned": (lambda a, b: a @ b.T, A, B.T.copy()),
    "both turned": (lambda a, b: b.T @ a.T, A, B),
    "result turned": (lambda a, b: (a @ b).T + 1, A, B),
    "parts": (lambda a, b: a[1:4, 2:7] @ b[1:6, 1:], A, B),
    "every other": (lambda a, b: a[::2] @ b, A, B),
    "gaps along": (lambda a, b: a[:, ::2] @ b[::2], A, B),
    "backwards": (lambda a, b: a[::-1] @ b, A, B),
    "stacks": (lambda a, b: a @ b, S, T),
    "stack by one": (lambda a, b: a @ b, S, B),
    "one by stack": (lambda a, b: a @ b, A, T),
    "stacks in the middle": (lambda a, b: jnp.einsum("mbk,bkn->bmn", a, b), S.swapaxes(0, 1), T),
    "vector": (lambda a, b: a @ b, A, V),
    "vector first": (lambda a, b: a @ b, V, B),
    "outer of stacks": (lambda a, b: jnp.einsum("bm,bn->bmn", a, b), S[:, 0], T[:, 0]),
    "two sums": (lambda a, b: jnp.tensordot(a, b, 2), draw(4, 3, 8), draw(3, 8, 7)),
    "attention": (lambda q, k: jnp.einsum("thd,shd->hts", q, k), draw(5, 2, 4), draw(7, 2, 4)),
}


def put_on(gpu, *arrays):
    return [jax.device_put(x, gpu) for x in arrays]


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name, gpu):
    f, *arrays = LAYOUTS[name]
    expected = np.asarray(jax.jit(f)(*arrays))
    for call in (f, jax.jit(f)):
        np.testing.assert_allclose(call(*put_on(gpu, *arrays)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f8", "c8", "c16"])
def test_types(dtype, gpu):
    with jax.enable_x64(True):
        a, b = (jnp.asarray(draw(*shape, dtype="c16" if "c" in dtype else "f8")).astype(dtype)
                for shape in ((4, 30), (30, 5)))  # fmt: skip
        actual, expected = jnp.matmul(*put_on(gpu, a, b)), jnp.matmul(a, b)
        assert actual.dtype == expected.dtype
        bound = {"f2": 2e-3, "bfloat16": 2e-2, "c8": 1e-5}.get(dtype, 1e-13)
        wide = "c16" if expected.dtype.kind == "c" else "f8"
        actual, expected = (np.asarray(x).astype(wide) for x in (actual, expected))
        np.testing.assert_allclose(actual, expected, rtol=bound, atol=10 * bound)
        if "f" in dtype and dtype != "f8":  # sums of halves as float32
            single = jnp.matmul(*put_on(gpu, a, b), preferred_element_type="float32")
            assert single.dtype == "float32"
            np.testing.assert_allclose(single, expected, rtol=bound, atol=10 * bound)


def strided_operands(x, w):
    """Operands with gaps, reversed and broadcast axes, which cuBLAS's strides cannot express."""

    def body(i, h):
        stacks = jnp.einsum("bm,kn->bmn", h[:, ::2], w[::-1, :5])  # a sum of w's alone
        first = h[:, ::2] @ w[:3] + h[:, ::-1] @ w
        return (first + stacks[:, :1, :].sum(2)) / 9 + jnp.broadcast_to(w[0], (4, 6)) @ w[:, ::-1]

    return lax.fori_loop(0, 3, body, x)


def recurrent(x, w, u):
    def body(h, row):
        h = jnp.tanh(row @ u + h @ w)
        return h, h.sum()

    return lax.scan(body, jnp.zeros((4, 6)), x)


def power(a):
    def body(c):
        v, _, n = c
        w = a @ v
        size = jnp.sqrt((w * w).sum())
        return w / size, size, n + 1

    return lax.while_loop(lambda c: c[2] < 5, body, (jnp.eye(16)[:, :3], jnp.float32(0), 0))


def branch_on_sum(x, w):
    def body(i, h):
        return lax.cond(h.sum() > 0, lambda h: h @ w, lambda h: -(h @ w.T), h)

    return lax.fori_loop(0, 4, body, x)


def training_loop(x, y, w):
    def loss(w):
        return ((jnp.tanh(x @ w) - y) ** 2).mean()

    return lax.fori_loop(0, 3, lambda _, w: w - 0.1 * jax.grad(loss)(w), w)


X, W, U = draw(5, 4, 3), draw(6, 6), draw(3, 6)
LOOPS = {
    "recurrent": (recurrent, X, W, U),
    "power": (power, draw(16, 16)),
    "chosen": (branch_on_sum, draw(4, 6), W),
    "strided": (strided_operands, draw(4, 6), W),
    "trained": (training_loop, draw(7, 3), draw(7, 6), U),
    "gradient": (jax.grad(lambda x, w, u: recurrent(x, w, u)[1].sum(), (1, 2)), X, W, U),
}


@pytest.mark.parametrize("name", LOOPS)
def test_product_loops_run_without_python(name, gpu):
    f, *arrays = LOOPS[name]
    g, there = jax.jit(f), put_on(gpu, *arrays)
    expected = jax.jit(f)(*arrays)
    calls = getattr(driver_of(gpu), "calls", None)  # a fake one counts
    for _ in range(2):
        before = Counter(calls)
        actual = jax.block_until_ready(g(*there))
        if calls is not None:
            new_calls = Counter(calls) - before
            assert new_calls["product"] >= 3
            assert new_calls["launch"] == new_calls["launch from a table"]
            assert new_calls["enter"] == 1  # all of it is one call of machine code
            assert not new_calls["call"]
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), actual, expected
        )
    for x, y in zip(there, arrays, strict=True):
        np.testing.assert_array_equal(x, y)


def test_strided_operands_are_not_copied(fake):
    (gpu,) = jax.devices("gpu")
    for name in ("rows", "both turned", "parts", "stacks", "stack by one", "attention"):
        f, *arrays = LAYOUTS[name]
        before = Counter(fake.calls)
        np.asarray(jax.jit(f)(*put_on(gpu, *arrays)))
        new_calls = Counter(fake.calls) - before
        assert new_calls["product"] == 1, name
        assert not new_calls["call"], name


def test_other_layouts_are_copied_first(fake):
    (gpu,) = jax.devices("gpu")
    for name in ("gaps along", "backwards"):
        f, *arrays = LAYOUTS[name]
        for dtype in ("f4", "f2", "c8"):
            operands = [x.astype(dtype) for x in arrays]
            before = Counter(fake.calls)
            actual = np.asarray(jax.jit(f)(*put_on(gpu, *operands)))
            new_calls = Counter(fake.calls) - before
            assert (new_calls["product"], new_calls["call"]) == (1, 0), name
            expected = f(*[x.astype("c16") for x in operands])
            np.testing.assert_allclose(actual, expected, atol=0.02 if dtype == "f2" else 1e-5)


def test_missing_cublas_falls_back_to_cupy(fake):
    fake.gemm = False
    (gpu,) = jax.devices("gpu")
    x, w = put_on(gpu, draw(4, 6), W)
    np.testing.assert_allclose(
        jax.jit(branch_on_sum)(x, w), branch_on_sum(np.asarray(x), W), rtol=1e-5
    )
    assert fake.calls["call"] >= 4
    assert "product" not in fake.calls


def test_precision_selects_the_algorithm(fake, monkeypatch):
    compute_types, gemm = [], fake._gemm
    monkeypatch.setattr(fake, "_c_gemm", type(fake._c_gemm)(
        lambda *arguments: compute_types.append(arguments[-2]) or gemm(*arguments)))  # fmt: skip
    a, b = put_on(jax.devices("gpu")[0], A, B)
    for precision in (None, "highest", "high", "tensorfloat32"):
        np.asarray(jnp.matmul(a, b, precision=precision))
    assert compute_types == [68, 68, 77, 77]


def test_failure_names_a_workaround(fake, monkeypatch):
    monkeypatch.setattr(fake, "_c_gemm", type(fake._c_gemm)(lambda *_: 15))
    monkeypatch.setattr(fake, "failure", lambda code: RuntimeError(f"status {code & 0xFFFF}"))
    a, b = put_on(jax.devices("gpu")[0], A, B)
    with pytest.raises(RuntimeError, match="status 15"):
        (a @ b).block_until_ready()
