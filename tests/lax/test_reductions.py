"""`reduce`, `reduce_window`, `reduce_precision` and cumulative reductions, compared with JAX and
with loops.
"""

import itertools
from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest
from api.oracle import jax_result

import accnp
import accnp.numpy
from accnp import lax

RNG = np.random.default_rng(3)
M = RNG.normal(size=(3, 4)).astype(np.float32)
T = RNG.normal(size=(2, 7, 8)).astype(np.float32)
INF = np.inf


def assert_close(actual, expected, tol=2e-5):
    a, b = accnp.tree.leaves(actual), jax.tree.leaves(expected)
    assert accnp.tree.structure(actual).num_leaves == len(b)
    for x, y in zip(map(np.asarray, a), map(np.asarray, b), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), tol, tol)


# --- reduce ---

REDUCTIONS = {
    "add": lambda b, x: b.lax.reduce(x, 0.0, b.lax.add, (0,)),
    "max with its initial value": lambda b, x: b.lax.reduce(x, 0.5, b.lax.max, (1,)),
    "a sum by another name": lambda b, x: b.lax.reduce(x, 1.0, lambda p, q: q + p, (0, 1)),
    "not associative": lambda b, x: b.lax.reduce(x, 0.0, lambda p, q: p * 2 + q, (1,)),
    "all axes": lambda b, x: b.lax.reduce(x, 1.0, lambda p, q: b.numpy.sin(p) + q, (1, 0)),
    "no axes": lambda b, x: b.lax.reduce(x, 1.0, lambda p, q: b.numpy.sin(p) + q, ()),
    "a tuple": lambda b, x: b.lax.reduce(
        (x, x * 2), (0.0, 1.0), lambda p, q: (p[0] + q[0], p[1] * q[1]), (0,)
    ),
    "a tree that mixes": lambda b, x: b.lax.reduce(
        {"a": x, "b": x},
        {"a": 0.0, "b": 1.0},
        lambda p, q: {"a": p["a"] * q["b"] + 1, "b": p["b"] + q["a"]},
        (1,),
    ),
    "where the largest is": lambda b, x: b.lax.reduce(
        (x, b.lax.broadcasted_iota(np.int32, (3, 4), 1)),
        (np.float32(-INF), np.int32(-1)),
        lambda p, q: (b.lax.max(p[0], q[0]), b.lax.select(p[0] >= q[0], p[1], q[1])),
        (1,),
    ),
    "exclusive or": lambda b, x: b.lax.reduce(b.numpy.int32(x * 100), 5, b.lax.bitwise_xor, (0,)),
    "exclusive or of truth values": lambda b, x: b.lax.reduce_xor(x > 0, (0, 1)),
    "and": lambda b, x: b.lax.reduce(b.numpy.int32(x * 100), -1, b.lax.bitwise_and, (0,)),
    "nothing to fold": lambda b, x: b.lax.reduce(x[:0], 2.0, lambda p, q: p * q + 1, (0,)),
    "nothing left": lambda b, x: b.lax.reduce(x[:, :0], 2.0, lambda p, q: p * q + 1, (0,)),
}


@pytest.mark.parametrize("f", REDUCTIONS.values(), ids=REDUCTIONS)
def test_reduce(f):
    expected = jax_result(lambda: jax.jit(lambda x: f(jax, x))(M), f, M)
    assert_close(f(accnp, accnp.numpy.asarray(M)), expected)
    assert_close(accnp.jit(lambda x: f(accnp, x))(M), expected)


def test_reduce_with_any_function_under_grad_and_vmap():
    def reduction(b, x, first):
        return b.lax.reduce(x, first, lambda p, q: p * b.numpy.cos(q) + q, (0,))

    def plain(x, first):
        y = first + np.zeros(4, np.float32)
        for row in x:
            y = y * jax.numpy.cos(row) + row
        return y

    one = np.float32(0.5)
    expected = jax_result(lambda: jax.jacrev(plain, (0, 1))(M, one), plain, M, one)
    assert_close(accnp.jacrev(lambda x, i: reduction(accnp, x, i), (0, 1))(M, one), expected)
    assert_close(accnp.jacfwd(lambda x, i: reduction(accnp, x, i), (0, 1))(M, one), expected)
    many, firsts = np.stack([M, -M]), np.float32([0.5, 2.0])
    actual = accnp.vmap(lambda x, i: reduction(accnp, x, i))(many, firsts)
    assert_close(actual, jax_result(lambda: jax.vmap(plain)(many, firsts), plain, many, firsts))


def test_reduce_closes_over_traced_values():
    f = accnp.jit(lambda x, k: lax.reduce(x, 0.0, lambda p, q: p + q * k, (0, 1)))
    assert_close(f(M, np.float32(3)), (M * 3).sum())


# --- windows ---

WINDOWS = [
    ((1, 3, 3), (1, 2, 2), "SAME", None, None),
    ((1, 2, 3), (1, 1, 3), "VALID", (1, 2, 1), (1, 1, 2)),
    ((2, 7, 8), None, "VALID", None, None),
    ((1, 4, 5), (1, 3, 2), ((0, 0), (2, 1), (0, 3)), None, (1, 2, 1)),
    ((1, 3, 1), (1, 2, 5), ((0, 0), (-1, 2), (3, -2)), (1, 1, 3), None),
    ((2, 2, 2), (2, 3, 1), "SAME_LOWER", None, None),
    ((1, 8, 9), (1, 1, 1), "same", None, None),
    ((1, 9, 1), (1, 1, 1), "VALID", None, None),
]
WINDOW_REDUCTIONS = {
    "add": (0.0, lambda b: b.lax.add),
    "max": (-INF, lambda b: b.lax.max),
    "min": (0.25, lambda b: b.lax.min),
    "mul": (1.0, lambda b: b.lax.mul),
    "own": (0.0, lambda b: lambda p, q: p + q + p * q),
}


CASES = [("add", where) for where in WINDOWS]
CASES += [("own", where) for where in WINDOWS[1:5]]
CASES += [(name, WINDOWS[k]) for name, k in [("max", 3), ("min", 1), ("mul", 0)]]


@pytest.mark.parametrize(("name", "where"), CASES)
def test_windows(name, where):
    first, f = WINDOW_REDUCTIONS[name]
    expected = jax.lax.reduce_window(T, first, f(jax), *where)
    assert_close(accnp.jit(lambda x: lax.reduce_window(x, first, f(accnp), *where))(T), expected)


def reduce_windows_with_loop(x, first, f, window, strides, pads, base, dilation):
    """Reduce the windows one by one, on JAX arrays."""
    dilated = {
        tuple(
            p + i * d for p, i, d in zip([low for low, _ in pads], index, base, strict=True)
        ): index
        for index in itertools.product(*map(range, x.shape))
    }
    shape = lax.reduce_window_shape_tuple(x.shape, window, strides, pads, base, dilation)
    values = []
    for place in itertools.product(*map(range, shape)):
        value = first
        for step in itertools.product(*map(range, window)):
            at = tuple(
                p * s + k * d for p, s, k, d in zip(place, strides, step, dilation, strict=True)
            )
            if at in dilated:
                value = f(value, x[dilated[at]])
        values.append(value)
    return jax.numpy.stack(values).reshape(shape)


@pytest.mark.parametrize(
    "where",
    [
        ((2, 3), (1, 2), ((1, 0), (0, 2)), (2, 1), (1, 2)),
        ((3, 2), (2, 1), ((0, 1), (1, 1)), (1, 2), (1, 1)),
    ],
)
@pytest.mark.parametrize(
    ("first", "f"),
    [(0.0, "add"), (-INF, "max"), (1.0, "mul"), (0.3, "own")],
)
def test_derivatives_of_windows(where, first, f):
    """JAX differentiates only sums and extrema; a loop is the reference for the others."""
    mine = {"own": lambda p, q: p * 0.5 + q * q}.get(f) or getattr(lax, f)
    theirs = {"own": lambda p, q: p * 0.5 + q * q}.get(f) or getattr(jax.lax, f)
    first = np.float32(first)
    shape = lax.reduce_window_shape_tuple(M.shape, *where)
    weights = np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)

    def ours(x, w):
        y = lax.reduce_window(x, first, mine, *where)
        return (accnp.numpy.where(accnp.numpy.isfinite(y), y, 0) * w).sum()

    def loop(x):
        y = reduce_windows_with_loop(x, first, theirs, *where)
        return (jax.numpy.where(jax.numpy.isfinite(y), y, 0) * weights).sum()

    tangent = np.cos(M)
    both = jax.jit(lambda x: (jax.value_and_grad(loop)(x), jax.jvp(loop, (x,), (tangent,))))
    expected: Any = jax_result(
        lambda: both(M), loop, reduce_windows_with_loop, where, first, f, weights, M
    )
    assert_close(accnp.jit(accnp.value_and_grad(ours))(M, weights), expected[0])
    assert_close(accnp.jvp(lambda x: ours(x, weights), (M,), (tangent,)), expected[1])


def test_equal_extremes_in_a_window_give_the_derivative_to_the_first():
    x = np.zeros((4, 4), np.float32)
    x[1, 1] = 1
    weights = np.arange(1.0, 10.0, dtype=np.float32).reshape(3, 3)

    def gradient(b, f, first):
        def g(x):
            return (weights * b.lax.reduce_window(x, first, f, (2, 2))).sum()

        return b.grad(g)(x)

    assert_close(gradient(accnp, lax.max, -INF), gradient(jax, jax.lax.max, -INF))
    assert_close(gradient(accnp, lax.min, INF), gradient(jax, jax.lax.min, INF))


def test_nan_stays_in_its_windows():
    x = np.float32([1, np.nan, 0, 2, 3])
    actual = lax.reduce_window(x, -INF, lax.max, (2,))
    np.testing.assert_array_equal(np.asarray(actual), [np.nan, np.nan, 2, 3])


def test_windows_of_several_operands():
    def f(b, x):
        return b.lax.reduce_window(
            (x, x), (0.0, -INF), lambda p, q: (p[0] + q[0], b.lax.max(p[1], q[1])), (2, 2)
        )

    assert_close(f(accnp, M), f(jax, M))
    assert_close(accnp.vmap(lambda x: f(accnp, x))(T), jax.vmap(lambda x: f(jax, x))(T))


@pytest.mark.parametrize(
    ("x", "first", "f"),
    [
        (M > 0, False, "bitwise_or"),
        (M > 0, False, "bitwise_xor"),
        (np.int32(M * 10), 0, "add"),
        (np.int32(M * 10), np.iinfo(np.int32).min, "max"),
        (M.astype(np.float16), 0, "add"),
    ],
)
def test_windows_of_other_dtypes(x, first, f):
    expected = jax.lax.reduce_window(
        x, x.dtype.type(first), getattr(jax.lax, f), (2, 2), (1, 1), "SAME"
    )
    actual = lax.reduce_window(x, x.dtype.type(first), getattr(lax, f), (2, 2), None, "SAME")
    assert_close(actual, expected, 1e-3)


def test_a_window_of_n_takes_log_n_operations():
    text = str(
        accnp.make_jaxpr(lambda x: lax.reduce_window(x, 0.0, lax.add, (1000,)))(np.ones(5000))
    )
    assert 9 <= text.count(" add ") <= 20


def test_paddings_by_name():
    for name in ("SAME", "SAME_LOWER", "VALID"):
        args = (5, 6, 1), (2, 3, 4), (1, 2, 3), name
        assert lax.padtype_to_pads(*args) == [tuple(p) for p in jax.lax.padtype_to_pads(*args)]


# --- errors ---

A = accnp.numpy.ones((2, 3))
WRONG = [
    (lambda: lax.reduce(A, 0.0, 5, (0,)), TypeError, "callable"),
    (lambda: lax.reduce((A, A), 0.0, lax.add, (0,)), ValueError, "tree structure"),
    (lambda: lax.reduce(A, A, lax.add, (0,)), ValueError, r"scalars.*\(2, 3\)"),
    (lambda: lax.reduce(A, 1, lax.add, (0,)), TypeError, "int32 for operands of float32"),
    (lambda: lax.reduce((A, A[0]), (0.0, 0.0), lax.add, (0,)), ValueError, r"operands\[1\]"),
    (lambda: lax.reduce(A, 0.0, lax.add, (2,)), ValueError, "axis 2"),
    (lambda: lax.reduce(A, 0.0, lax.add, (-1,)), ValueError, "cannot be negative"),
    (lambda: lax.reduce(A, 0.0, lax.add, (0, 0)), ValueError, "duplicate value in 'axis'"),
    (lambda: lax.reduce(A, 0.0, lambda p, q: (p, q), (0,)), TypeError, "structure"),
    (
        lambda: lax.reduce(A, 0.0, lambda p, q: accnp.numpy.int32(p), (0,)),
        TypeError,
        r"int32\[\].*float32\[\]",
    ),
    (
        lambda: lax.reduce({"w": A}, {"w": 0.0}, lambda p, q: {"w": A}, (0,)),
        TypeError,
        r"\['w'\].*float32\[2,3\].*float32\[\]",
    ),
    (lambda: lax.reduce(A, 0.0, lambda p, q: "x", (0,)), TypeError, "str"),
    (lambda: lax.reduce_window(A, 0.0, lax.add, (2,)), TypeError, "window_dimensions"),
    (lambda: lax.reduce_window(A, 0.0, lax.add, (2, 0)), TypeError, "positive"),
    (lambda: lax.reduce_window(A, 0.0, lax.add, (2, 2), (1,)), TypeError, "window_strides"),
    (lambda: lax.reduce_window(A, 0.0, lax.add, (2, 2), None, "MOST"), ValueError, "MOST"),
    (lambda: lax.reduce_window(A, 0.0, lax.add, (2, 2), None, ((0, 1),)), ValueError, "pair"),
    (
        lambda: lax.reduce_window(A, 0.0, lax.add, (2, 2), None, "SAME", (0, 1)),
        TypeError,
        "base_dilation",
    ),
    (lambda: lax.reduce_xor(A, (0,)), TypeError, "float32"),
    (lambda: lax.reduce_precision(A, 0, 3), ValueError, "exponent_bits=0"),
    (lambda: lax.reduce_precision(A, 5, -1), ValueError, "mantissa_bits=-1"),
    (lambda: lax.reduce_precision(accnp.numpy.arange(3), 5, 3), TypeError, "int32"),
    (lambda: lax.cumsum(A, axis=2), ValueError, "axis 2"),
    (lambda: lax.cummax(A > 0), TypeError, "bool"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_use_raises_helpful_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


# --- fewer bits ---


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_reduce_precision(dtype):
    x = np.concatenate(
        [
            RNG.normal(size=40),
            np.exp(RNG.normal(size=40) * 20),
            [0, -0.0, INF, -INF, np.nan, 65519, 65520, 1e-40, 6e-8, 1e-45],
        ]
    ).astype(np.float32)
    with np.errstate(all="ignore"):
        x = np.asarray(jax.numpy.asarray(x).astype(dtype))
    for bits in [(5, 10), (8, 7), (2, 3), (8, 0), (1, 0), (12, 60), (4, 3), (8, 23)]:
        actual = np.asarray(lax.reduce_precision(x, *bits)).astype(np.float32)
        expected = np.asarray(jax.lax.reduce_precision(x, *bits)).astype(np.float32)
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


def test_reduce_precision_is_linear_to_derivatives():
    def f(b, x):
        return b.lax.reduce_precision(x, 5, 3) * np.float32(1.1)

    assert_close(
        accnp.vmap(accnp.grad(lambda x: f(accnp, x)))(T[0, 0]), np.full(8, 1.125, np.float32)
    )
    actual = accnp.jvp(lambda x: f(accnp, x), (M,), (M / 7,))
    assert_close(actual, jax.jvp(lambda x: f(jax, x), (M,), (M / 7,)), 0)


# --- cumulative folds ---

ROWS = np.float32([[1, 1, 1, 2, 2, 0], [0, 0, 1, 0, 2, 2], [-1000, 0, 3, 3, -5, 7]])


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_of_cumulative_reductions(name, reverse):
    w = np.arange(1.0, 7.0, dtype=np.float32)

    def both(b):
        def f(x):
            return getattr(b.lax, name)(x, 1, reverse=reverse)

        ws = np.stack([w, w, w])
        return b.jit(lambda x: (b.vjp(f, x)[1](ws), b.jvp(f, (x,), (ws,))))(ROWS)

    assert_close(both(accnp), jax_result(lambda: both(jax), both, w, ROWS))


def test_derivatives_of_long_cumulative_reductions_need_little_memory():
    x = np.linspace(0.99, 1.01, 20_000, dtype=np.float32)
    gradient = accnp.grad(lambda x: lax.cumprod(x)[-1])(x)
    np.testing.assert_allclose(np.asarray(gradient), x.astype(np.float64).prod() / x, rtol=1e-3)


def test_prefixes_keep_minus_zero():
    x = np.float32([-0.0, -0.0, -0.0, -0.0, -0.0])
    actual = lax.associative_scan(accnp.numpy.add, x)
    assert np.signbit(np.asarray(actual)).all()
