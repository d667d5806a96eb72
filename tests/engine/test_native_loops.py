"""Control flow compiled to one native function.

The tests check the number of launches, which arrays are copied, and that values agree with JAX.
"""

from collections.abc import Callable

import jax
import numpy as np
import pytest
from kernel_counts import count_made_kernels

import accnp as jnp
from accnp import engine, lax
from accnp.compiler.cache_state import counters
from accnp.engine import blocked


def launches(f, *args):
    f = jnp.jit(f)
    jnp.block_until_ready(f(*args))
    before = counters.launches
    jnp.block_until_ready(f(*args))
    return counters.launches - before


def kernels(f, *args):
    return jnp.inspect(f)(*args).kernels


def body_moves(source):
    """Return the lines of the innermost loop that copy arrays."""
    inside = source.split("        for i in range(")[-1]
    return [line for line in inside.splitlines() if line.strip().startswith("move(")]


X = np.linspace(0.1, 2.0, 7, dtype=np.float32)


def newton(m):
    def f(x):
        return m.lax.while_loop(
            lambda s: (abs(s[0] * s[0] - x) > 1e-4) & (s[1] < 50),
            lambda s: (0.5 * (s[0] + x / s[0]), s[1] + 1),
            (x, 0),
        )

    return m.vmap(f)


ELEMENTWISE: dict[str, Callable[..., Callable[..., object]]] = {
    "fori": lambda m: lambda x: m.lax.fori_loop(0, 9, lambda i, y: m.numpy.sin(y) * x + i, x * 2),
    "scan": lambda m: (
        lambda x: m.lax.scan(
            lambda c, s: ((c[0] * s + c[1], c[0] + 1.0), c[0] - c[1]),
            (x, x + 1),
            m.numpy.arange(5.0),
        )
    ),
    "scan of rows": lambda m: (
        lambda x: m.lax.scan(
            lambda c, row: (c * 0.5 + row, c), x, m.numpy.stack([x, x * 2, x * 3]), reverse=True
        )
    ),
    "while with a counter": lambda m: (
        lambda x: m.lax.while_loop(
            lambda s: s[1] < 5, lambda s: (s[0] * 1.5 - s[1], s[1] + 1), (x, 0)
        )
    ),
    "while of each": newton,
    "while of each, twice": lambda m: lambda x: m.vmap(newton(m))(m.numpy.stack([x, x + 3])),
    "swapped": lambda m: (
        lambda x: m.lax.fori_loop(0, 5, lambda _, s: (s[1], s[0] + 1), (x, x * 10))
    ),
    "two alike": lambda m: (
        lambda x: m.lax.fori_loop(0, 5, lambda _, s: (s[0] + s[1], s[0] + s[1]), (x, x * 10))
    ),
    "unchanged": lambda m: (
        lambda x: m.lax.fori_loop(0, 5, lambda _, s: (s[0], s[0] + s[1]), (x, x * 10))
    ),
    "no step": lambda m: lambda x: m.lax.fori_loop(3, 3, lambda _, s: s * 2, x),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("block", [None, 3], ids=["whole", "blocks of 3"])
def test_elementwise_loops_match_jax(name, block, monkeypatch):
    if block is not None:
        monkeypatch.setattr(blocked, "LEAST", 2)
        monkeypatch.setattr(blocked, "BLOCK", block)
    engine._plans.clear()
    actual = jnp.jit(ELEMENTWISE[name](jnp))(X)
    expected = jax.jit(ELEMENTWISE[name](jax))(X)
    for a, b in zip(jnp.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    loop_kernels = kernels(ELEMENTWISE[name](jnp), X)
    if block is not None and name not in ("unchanged", "no step"):
        assert any("for u in range(lo, hi)" in k.source for k in loop_kernels)
    engine._plans.clear()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.fori_loop(0, 50, lambda i, c: c * 0.9 + i, x),
        lambda x: lax.scan(lambda c, r: (c + r, c.sum()), x, x[None] * x[:, None]),
        lambda x: lax.while_loop(lambda c: c[0] < 100, lambda c: c * 1.5 + 1, x),
        lambda x: lax.cond(x[0] > 0, lambda x: x * 2, lambda x: x / 3, x),
        lambda x: lax.fori_loop(
            0, 4, lambda i, c: lax.fori_loop(0, i + 1, lambda j, d: d * 0.5 + j, c), x
        ),
        lambda x: lax.fori_loop(0, 7, lambda i, c: c.at[i].set(c[i] + c.sum()), x),
    ],
    ids=["fori", "scan", "while", "cond", "nested", "updates"],
)
def test_a_loop_is_one_launch(f):
    x = jnp.asarray(X)
    assert launches(f, x) <= 2
    assert any("native loop" in line for line in str(jnp.inspect(f)(x)).splitlines())


def test_an_update_in_a_loop_copies_nothing():
    def f(x):
        return lax.fori_loop(0, 7, lambda i, c: c.at[i].set(c[i] * 2 + 1), x)

    (k,) = kernels(f, jnp.asarray(X))
    assert "move(" not in k.source.split("for i in range(n")[-1]
    np.testing.assert_allclose(jnp.jit(f)(X), X * 2 + 1)


def test_the_argument_of_a_loop_that_updates_in_place_survives():
    x = jnp.asarray(X) + 0
    x.block_until_ready()
    y = jnp.jit(lambda x: lax.fori_loop(0, 7, lambda i, c: c.at[i].set(0.0), x))(x)
    np.testing.assert_array_equal(y, np.zeros(7))
    np.testing.assert_array_equal(x, X)


def test_carry_read_elsewhere_in_body_is_not_overwritten_early():
    def f(x):
        def body(i, c):
            a, b = c
            return a.at[i].set(-1.0), b + a  # b is of the values before the update

        return lax.fori_loop(0, 7, body, (x, x * 0))

    def g(x):
        def body(i, c):
            a, b = c
            return a.at[i].set(-1.0), b + a

        return jax.lax.fori_loop(0, 7, body, (x, x * 0))

    for a, b in zip(jnp.jit(f)(X), jax.jit(g)(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_equal_initial_carries_get_separate_buffers():
    def f():
        return lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] + 2), (jnp.zeros(3), jnp.zeros(3)))

    for g in (f, jnp.jit(f)):
        a, b = g()
        np.testing.assert_array_equal(a, [3.0, 3.0, 3.0])
        np.testing.assert_array_equal(b, [6.0, 6.0, 6.0])


def test_library_call_keeps_loop_on_host():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: jnp.fft.fft(c).real, x)

    assert "because fft is a library call" in str(jnp.inspect(f)(jnp.eye(3)))


def test_large_kernels_in_a_body_keep_their_threads():
    x = jnp.ones((2000, 2000))

    def f(x):
        return lax.fori_loop(0, 2, lambda i, c: c + jnp.roll(jnp.sin(c), 1, 0), x)

    before = jnp.config.threads
    jnp.config.update("threads", 2)
    try:
        assert "large enough for several threads" in str(jnp.inspect(f)(x))
    finally:
        jnp.config.update("threads", before)


def jacobi(x):
    y = 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
    return x.at[1:-1, 1:-1].set(y)


def some_times(x):
    def go_on(c):
        return (c[1] < 4) & (jnp.max(c[0]) > 0.1)

    return lax.while_loop(go_on, lambda c: (jacobi(c[0]), c[1] + 1), (x, 0))


SHARED: dict[str, Callable] = {
    "fori": lambda x: lax.fori_loop(0, 5, lambda i, c: jacobi(c), x),
    "scan": lambda x: lax.scan(lambda c, r: (jnp.tanh(c @ x * 0.1) + r, c.sum()), x, x[:3]),
    "while": some_times,
    "nested": lambda x: lax.fori_loop(
        0, 2, lambda i, c: lax.fori_loop(0, 3, lambda j, d: jacobi(d) * 0.9, c) + 1, x
    ),
    "cond": lambda x: lax.cond(x[0, 0] > 0, jacobi, lambda x: x * 2, x),
}


@pytest.mark.parametrize("name", SHARED)
def test_threads_share_large_kernels_inside_a_loop(name):
    x = jnp.asarray(np.random.default_rng(0).uniform(0.1, 1, (401, 401)).astype(np.float32))
    f = SHARED[name]
    runs = []
    for n in (1, 2, 3):
        with jnp.threads(n):
            assert any("parallel_for(" in k.source for k in kernels(f, x)) == (n > 1)
            runs.append([np.asarray(y) for y in jax.tree.leaves(jnp.jit(lambda x: f(x))(x))])
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_loop_runs_with_another_number_of_threads_than_planned():
    x = jnp.ones((500, 500)) * 0.5
    f = jnp.jit(SHARED["fori"])
    with jnp.threads(2):
        expected = np.asarray(f(x))
    for n in (1, 4):
        with jnp.threads(n):
            np.testing.assert_array_equal(f(x), expected)


def test_new_loop_length_reuses_kernels():
    def f(x):
        return lax.fori_loop(0, x.shape[0], lambda i, c: c.at[i].multiply(2.0), x)

    f = jnp.jit(f)
    f(np.ones(6, np.float32)).block_until_ready()
    before = count_made_kernels()
    for n in (9, 30, 1000):
        np.testing.assert_array_equal(f(np.ones(n, np.float32)), np.full(n, 2.0))
    assert count_made_kernels() == before


def test_tiny_kernels_in_loops_are_specialized_for_their_sizes():
    """Kernels on few rows are specialized for their sizes; larger ones share one source."""

    def f(x):
        def step(c, _):
            gap = c[None] - c[:, None]
            c = c + 1e-2 * (gap / ((gap * gap).sum(-1, keepdims=True) + 1.0)).sum(1)
            return c, (c * c).sum()

        return lax.scan(step, x, None, length=5)

    def loop(n):
        x = np.linspace(-1, 1, n * 3, dtype=np.float32).reshape(n, 3)
        compiled, eager = jnp.jit(f)(x), f(jnp.asarray(x))
        for a, b in zip(compiled, eager, strict=True):
            np.testing.assert_array_equal(a, b)
        expected, sums = x.astype(np.float64), []
        for _ in range(5):
            gap = expected[None] - expected[:, None]
            expected = expected + 1e-2 * (gap / ((gap * gap).sum(-1, keepdims=True) + 1.0)).sum(1)
            sums.append((expected * expected).sum())
        np.testing.assert_allclose(compiled[0], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(compiled[1], sums, rtol=1e-5)
        return jnp.inspect(f)(x).kernels[0].source.split("\n}\n", 1)[1]

    text = loop(5)
    assert "for k in range(5)" in text
    assert "for j in range(3)" in text  # columns of what is folded are one vector,
    assert "for rb in" not in text  # and there is one block of rows
    large = [loop(n) for n in (40, 50)]
    assert large[0] == large[1]


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (3, 1, 7), (4, 4, 2), (1, 5), (31,), (5, 9)])
def test_loops_over_short_axes(shape):
    """Kernels specialized for their sizes: maps, pairs, and reductions of some axes and of all."""
    x = np.random.default_rng(8).standard_normal(shape).astype(np.float32)

    def step(m, x):
        gap = x[:, None] - x[None]
        near = m.sqrt((gap * gap).reshape(len(x), len(x), -1).sum(-1) + 1)
        scale = m.arange(x.shape[-1], dtype=m.float32) + 1
        x = x * 0.5 + m.swapaxes(m.swapaxes(x, 0, -1) * 0.25, 0, -1)
        return x / scale + near.sum(0).reshape(-1, *[1] * (x.ndim - 1)) * 0.01

    expected, sums = x, []
    for _ in range(4):
        expected = step(np, expected)
        sums.append((expected * expected * expected[:1]).sum())

    def body(x, _):
        x = step(jnp, x)
        return x, (x * x * x[:1]).sum()

    actual, stacked = jnp.jit(lambda x: lax.scan(body, x, None, length=4))(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    np.testing.assert_allclose(stacked, sums, rtol=1e-4)


def test_invariant_loads_are_hoisted_out_of_scalar_loops():
    def check(data):
        def bit(_, state):
            crc, byte = state
            return jnp.where((byte ^ crc) & 1, (crc >> 1) ^ 0x8408, crc >> 1), byte >> 1

        def byte(i, crc):
            return jnp.lax.fori_loop(0, 8, bit, (crc, data[i].astype("uint32")))[0]

        return ~jnp.lax.fori_loop(0, data.size, byte, jnp.uint32(0xFFFF)) & 0xFFFF

    f, data = jnp.jit(check), np.frombuffer(b"123456789", np.uint8)
    assert int(f(data)) == 0x906E  # the check value of CRC-16/X-25 in catalogues
    loop = max(jnp.inspect(f)(data).kernels, key=lambda k: len(k.source))
    blocks = {text.partition(":")[0]: text for text in loop.llvm().split("\n\n")}
    loops = [text for name, text in blocks.items() if f"label %{name}\n" in f"{text}\n"]
    (bits,) = [text for text in loops if text.count("lshr") == 2]
    assert " load " not in bits


BITS = {
    "masks": lambda m: lambda i, x: (x ^ (x >> 3)) | 5,
    "negative": lambda m: lambda i, x: (x & -3) ^ (x << 2),
    "compared": lambda m: lambda i, x: m.numpy.where((x & 1) != 0, x >> 1, x + 7),
    "equal": lambda m: lambda i, x: m.numpy.where(x == 5, 1, x - 1),
    "wide": lambda m: (
        lambda i, x: (
            m.lax.shift_left(x, m.numpy.full_like(x, 1)) ^ m.lax.shift_right_logical(x, x ^ x)
        )
    ),
}


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4"])
@pytest.mark.parametrize("case", BITS)
def test_loops_of_bit_operations_have_the_values_of_jax(case, dtype):
    for shape in ((), (5,)):
        x = np.arange(100, 100 + np.prod(shape, dtype=int), dtype=dtype).reshape(shape)
        theirs = jax.lax.fori_loop(0, 6, BITS[case](jax), jax.numpy.asarray(x))
        for ours in (lax.fori_loop, jnp.jit(lax.fori_loop, static_argnums=(0, 1, 2))):
            np.testing.assert_array_equal(np.asarray(ours(0, 6, BITS[case](jnp), x)), theirs)


def test_counts_and_masks_in_loops_are_constants_of_the_kernel():
    f = jnp.jit(lambda x: lax.fori_loop(0, 5, lambda i, x: (x ^ (x >> 3)) | 17, x))
    source = kernels(f, np.uint32(77))[0].source
    assert "u4(17)" in source
    assert "u4(3)" in source


def test_each_value_of_a_literal_has_its_own_loop():
    x = np.uint32(12345678)
    for k in (1, 2, 1):
        loop = lax.fori_loop(0, 5, lambda i, x, k=k: x ^ (x >> k), x)
        y = x
        for _ in range(5):
            y ^= y >> np.uint32(k)
        assert int(loop) == int(y)
