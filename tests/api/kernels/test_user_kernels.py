"""`accnp.kernel`: user-defined functions as operations. The reference results are computed by
NumPy.
"""

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
import pytest

import accnp as jnp
from accnp import lax
from accnp.compiler.cache_state import counters
from accnp.errors import JaxRuntimeError

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 3
RNG = np.random.default_rng(0)
X = RNG.normal(0, 3, (4, 500)).astype(np.float32)


@numba.njit
def add_one(a):
    return a + np.float32(1)


@numba.njit
def piecewise(x):
    """A scalar function with the constructs that code generation must handle."""
    if x > LIMIT:
        return add_one(x) * np.float32(LIMIT)
    y = abs(x)
    if y < 1 and not y > 2:
        y = y * y
    elif y > math.inf:
        y = x
    return math.exp(-y) / np.sqrt(x**2 + np.float32(1)) if x < 2 else min(x, y)


def piecewise_numpy(x):
    y = np.where(abs(x) < 1, x * x, abs(x))
    with np.errstate(all="ignore"):
        rest = np.where(x < 2, np.exp(-y) / np.sqrt(x * x + 1), np.minimum(x, y))
    return np.where(x > LIMIT, (x + 1) * LIMIT, rest).astype(np.float32)


@numba.njit
def escape_steps(z, c):
    """A scalar function with a loop, so that its value cannot be computed without branches."""
    n = 0
    while z * z < 4 and n < 20:
        z = z * z + c
        n += 1
    return n


@jnp.kernel(out=lambda x, **_: x)
@numba.njit
def running_max(x, y, start=0):
    y[0] = max(x[0], start)
    for i in range(1, x.size):
        y[i] = max(x[i], y[i - 1])


@jnp.kernel(out=lambda x, y: (jnp.ShapeDtypeStruct((), "float32"), x))
@numba.njit
def total_and_sum(x, y):
    return x.sum() + y, x + y


def kernels_of(f, *args):
    return jnp.inspect(f)(*args).kernels


# --- functions of numbers ---


@pytest.mark.parametrize(
    "brought", [piecewise, piecewise.py_func, numba.vectorize(piecewise.py_func)]
)
def test_a_function_of_numbers_is_an_operation(brought):
    f = jnp.kernel(brought)
    for result in (f(X), jnp.jit(f)(X), f(jnp.asarray(X).T).T, jnp.vmap(f)(X)):
        assert result.dtype == np.float32
        np.testing.assert_allclose(np.asarray(result), piecewise_numpy(X), rtol=3e-6)


def test_elementwise_kernel_is_fused():
    f = jnp.kernel(piecewise)
    (kernel,) = kernels_of(lambda x: jnp.sum(f(x) * 2), X)
    assert kernel.operations == ["kernel_piecewise", "mul", "reduce_sum"]
    assert len(kernels_of(lambda x: jnp.exp(x).mean(1) + f(x).sum(1), X)) == 1
    x = jnp.asarray(X) + 0
    before = counters.launches
    total = float(jnp.jit(lambda x: jnp.sum(f(x) * 2))(x))
    assert counters.launches - before == 2  # `x` and the sum
    np.testing.assert_allclose(total, 2 * piecewise_numpy(X).sum(dtype=float), rtol=1e-6)


def test_fused_user_function_is_vectorized():
    """`math.exp` is replaced by the kernels' own function, and both branches of each `if` are
    computed.
    """
    f = jnp.kernel(piecewise)
    (kernel,) = kernels_of(lambda x: f(x), X)
    llvm = kernel.llvm()
    assert "expf" not in llvm
    assert "x float>" in llvm


def test_a_function_with_a_loop_is_called():
    f = jnp.kernel(escape_steps)
    c = np.linspace(-2, 0.5, 50, dtype=np.float32)
    expected = [escape_steps.py_func(np.float32(0), v) for v in c]
    assert len(kernels_of(lambda c: f(0.0, c) + 1, c)) == 1
    result = f(0.0, c)
    assert result.dtype == np.int32  # Numba's int64, as accnp has it
    np.testing.assert_array_equal(result, expected)


@numba.njit
def collatz(n):
    """A function that does not terminate for 0."""
    k = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k


@numba.njit
def collatz_length(n):
    return collatz(n) if n > 0 and n < 10 else -1


@numba.njit
def newton_root(a):
    x = a
    for k in range(1, 40):
        if k < 3:
            continue
        if abs(x * x - a) < np.float32(1e-6) * a:
            break
        x = np.float32(0.5) * (x + a / x)
    return x


@numba.njit
def int_or_float(x):
    """A variable with two types, for which compilation falls back to Numba."""
    y = 0
    if x > 0:
        y = x
    return y


@pytest.mark.parametrize("function", [collatz_length, newton_root, int_or_float])
def test_loops_and_branches_match_numba_semantics(function):
    x = np.arange(0, 12).astype(np.float32 if function is newton_root else np.int64)[
        function is newton_root :
    ]
    x = x.astype(np.float32) if function is int_or_float else x
    with jnp.enable_x64(True):
        actual = np.asarray(jnp.kernel(function)(x))
    expected = numba.vectorize(function.py_func)(x)
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == expected.dtype


def test_types_are_found_without_numbas_own_pipeline():
    """Loading Numba's type inference takes seconds."""
    program = (
        "import accnp as jnp, sys\n"
        "from numpy import exp\n"
        "def f(x):\n    return exp(x) if x > 1 else x\n"
        "print(jnp.kernel(f)(jnp.ones(3)).dtype, 'numba.np.linalg' in sys.modules)\n"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program)
        file.flush()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, file.name], env=environment, capture_output=True, text=True, check=True
        )
    assert done.stdout.split() == ["float32", "False"]


HALF = 1 / 2


@jnp.kernel
def halve(x):
    return x * jnp.float32(HALF)


def uses_accnp_functions(x):
    y = jnp.maximum(jnp.sin(x), jnp.float32(0)) + halve(x) * lax.exp(-x * x)
    return jnp.where(x > 1, y, jnp.clip(x, jnp.float32(-1), jnp.float32(jnp.pi)))


def uses_math_functions(x):
    y = max(math.sin(x), np.float32(0)) + x * np.float32(0.5) * math.exp(-x * x)
    return y if x > 1 else min(max(x, np.float32(-1)), np.float32(math.pi))


def test_functions_of_accnp_and_other_kernels_can_be_called():
    actual, expected = jnp.kernel(uses_accnp_functions)(X), jnp.kernel(uses_math_functions)(X)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(actual, expected)
    (kernel,) = kernels_of(jnp.kernel(uses_accnp_functions), X)
    assert kernel.operations == ["kernel_uses_accnp_functions"]
    half = jnp.kernel(uses_accnp_functions)(X.astype(np.float16))  # by way of Numba's `vectorize`
    np.testing.assert_allclose(half, expected, rtol=3e-2, atol=3e-3)


def test_lambdas_are_found_by_position():
    results = [jnp.kernel(f)(X) for f in LAMBDAS_ON_ONE_LINE]
    np.testing.assert_array_equal(results[0], np.where(X > 0, 1, 2))
    np.testing.assert_array_equal(results[1], np.where(X > 0, 2, 1))
    over_lines = jnp.kernel(
        lambda x, y: (
            x * y + HALF
        )
    )  # fmt: skip
    np.testing.assert_allclose(over_lines(X, X), X * X + 0.5, rtol=1e-6)
    assert over_lines.__name__ == "lambda_"


ROUNDED = [np.float64, np.float32]


@pytest.mark.parametrize("dtype", ROUNDED)
def test_numpy_functions_match_numba_semantics(dtype):
    """Types are inferred without loading Numba."""
    x = np.array([-np.inf, -2.5, -0.0, 0.0, 1.5, 2.5, 1e5, np.inf, np.nan], dtype)
    a, b = (v.ravel() for v in np.meshgrid(x, x))
    finite = x[np.isfinite(x)]
    with jnp.enable_x64(True), np.errstate(all="ignore"):
        for f in (
            lambda x, y: np.maximum(x, y),
            lambda x, y: np.minimum(x, y),
            lambda x, y: max(x, y),
            lambda x, y: min(x, 1),
            lambda x, y: np.floor(x) + np.ceil(y) * np.trunc(x),
            lambda x, y: np.isnan(x) + 2.0 * np.isinf(y) + 4.0 * np.isfinite(x),
            lambda x, y: np.square(x),
        ):
            actual, expected = jnp.kernel(f)(a, b), numba.vectorize(f)(a, b)
            assert actual.dtype == expected.dtype
            np.testing.assert_array_equal(np.asarray(actual).view("u1"), expected.view("u1"))
        for g in (lambda x: math.floor(x), lambda x: math.ceil(x) + math.trunc(x)):
            np.testing.assert_array_equal(jnp.kernel(g)(finite), numba.vectorize(g)(finite))


def test_operands_are_broadcast_and_keep_their_dtypes():
    f = jnp.kernel(lambda_free)
    a, b = X[:, :1], X[0]
    np.testing.assert_allclose(f(a, b), a * 2 + b, rtol=1e-6)
    assert f(np.int32(3), np.int32(4)).dtype == np.int32
    assert int(f(np.int32(3), np.int32(4))) == 10
    assert f(X[0].astype(np.float16), X[0].astype(np.float16)).dtype == np.float32
    assert f(np.zeros((0, 3), np.float32), 1.0).shape == (0, 3)
    with jnp.enable_x64(True):
        assert f(np.float64(3), np.int64(4)).dtype == np.float64


def lambda_free(a, b):
    return 2 * a + b


@pytest.mark.parametrize("out", ["float16", np.int8, bool, np.dtype("complex64")])
def test_the_dtype_of_the_result_can_be_declared(out):
    f = jnp.kernel(lambda_free, out)
    result = f(X, 0.0)
    assert result.dtype == np.dtype(out)
    expected = np.trunc(np.clip(2 * X, -128, 127)) if out is np.int8 else 2 * X
    np.testing.assert_allclose(result, expected.astype(out), rtol=1e-3)


def test_integers_and_divisions_by_zero():
    def quotient(a, b):
        return a // b if b != 0 else -1

    f = jnp.kernel(quotient)
    a, b = np.arange(-5, 5, dtype=np.int32), np.array([0, 2] * 5, np.int32)
    np.testing.assert_array_equal(f(a, b), np.where(b == 0, -1, a // np.maximum(b, 1)))


def test_closed_over_values_are_read_at_each_call():
    scale = 2.0

    def scaled(x):
        return x * scale

    first = jnp.kernel(scaled)
    scale = 3.0
    second = jnp.kernel(scaled)
    assert (float(first(1.0)), float(second(1.0))) == (2.0, 3.0)


def test_half_precision_goes_through_float32():
    f = jnp.kernel(piecewise, "bfloat16")
    x = jnp.asarray(X[0]).astype("bfloat16")
    actual = np.asarray(f(x).astype("float32"))
    np.testing.assert_allclose(actual, piecewise_numpy(np.asarray(x.astype("float32"))), rtol=1e-2)


# --- functions of arrays ---


def test_a_function_of_arrays_writes_to_its_results():
    x = np.array([1, 3, 2, 5, 4], np.int32)
    expected = np.maximum.accumulate(x)
    np.testing.assert_array_equal(running_max(x), expected)
    np.testing.assert_array_equal(jnp.jit(lambda x: running_max(x * 2) + 1)(x), expected * 2 + 1)
    np.testing.assert_array_equal(running_max(x, start=3), np.maximum(expected, 3))


def test_a_function_of_arrays_returns_its_results():
    total, both = total_and_sum(X[0], 2.0)
    np.testing.assert_allclose(total, X[0].sum() + 2, rtol=1e-5)
    np.testing.assert_array_equal(both, X[0] + np.float32(2))
    strided = total_and_sum(jnp.asarray(X).T[::2, 1], 2.0)[1]
    np.testing.assert_array_equal(strided, X.T[::2, 1] + np.float32(2))


def test_in_loops():
    x = np.array([1, 3, 2, 5, 4], np.int32)
    f = jnp.kernel(lambda_free)
    actual = jnp.lax.fori_loop(0, 3, lambda i, x: running_max(x) + f(i, 1), x)
    expected = x
    for i in range(3):
        expected = np.maximum.accumulate(expected) + 2 * i + 1
    np.testing.assert_array_equal(actual, expected)
    actual = jnp.jit(lambda x: jnp.lax.while_loop(lambda x: x[0] < 9, lambda x: f(x, 1), x))(x)
    expected = x
    while expected[0] < 9:
        expected = 2 * expected + 1
    np.testing.assert_array_equal(actual, expected)
    _carry, rows = jnp.lax.scan(lambda c, r: (c + 1, running_max(r)), 0, jnp.asarray(X))
    np.testing.assert_array_equal(rows, np.maximum.accumulate(X, 1))


def test_vmap_uses_rule_or_loop():
    expected = np.maximum.accumulate(X, 1)
    np.testing.assert_array_equal(jnp.vmap(running_max)(X), expected)
    np.testing.assert_array_equal(jnp.jit(jnp.vmap(running_max, 1, 1))(X.T), expected.T)
    sums, both = jnp.vmap(total_and_sum, (None, 0))(X[0], X[1, :3])
    np.testing.assert_allclose(sums, X[0].sum() + X[1, :3], rtol=1e-4)
    np.testing.assert_array_equal(both, X[0] + X[1, :3, None])
    alone, _batch = jnp.vmap(lambda i: (total_and_sum(X[0], 2.0)[0], i))(jnp.arange(3))
    assert alone.shape == (3,)

    seen = []

    def rule(size, batched, x):
        seen.append((size, batched))
        return jnp.lax.cummax(x, 1), True

    mapped = jnp.kernel(running_max.function, lambda x: x, vmap=rule)
    np.testing.assert_array_equal(jnp.vmap(mapped)(X), expected)
    assert seen == [(4, [True])]


def test_user_kernel_runs_asynchronously():
    @jnp.kernel(out=lambda x: x)
    def slow(x, y):
        for k in range(x.size):
            y[k] = x[k]
        for _ in range(300):
            for k in range(x.size):
                y[k] = y[k] * np.float32(0.5) + x[k]

    x = jnp.zeros(1 << 20) + 1
    x.block_until_ready()
    result = slow(x) * 2
    waiting = not result.is_ready()
    np.testing.assert_allclose(result[:3], 4, rtol=1e-6)
    assert waiting


def test_results_can_start_with_a_value():
    @jnp.kernel(out=jnp.ShapeDtypeStruct((5,), "int32"), fill=7)
    def one(x, counts):
        counts[x] += 1

    np.testing.assert_array_equal(one(2), [7, 7, 8, 7, 7])


# --- derivatives ---


def test_derivatives_by_rules():
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return cube(x), 3 * x * x * t

    cube = jnp.kernel(lambda_cube, jvp=rule)
    x = jnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(jnp.grad(lambda x: cube(x).sum())(x), 3 * x**2)
    np.testing.assert_allclose(jnp.jit(jnp.grad(jnp.grad(lambda x: cube(x))))(2.0), 12)
    np.testing.assert_allclose(jnp.vmap(jnp.grad(cube))(x), 3 * x**2)
    _, t = jnp.jvp(cube, (x,), (x,))
    np.testing.assert_allclose(t, 3 * x**3)

    def forward(x, start=0):
        return largest(x, start=start), x

    def backward(x, ct, start=0):
        return (jnp.where(x == running_max(x, start=start), ct, 0),)

    largest = jnp.kernel(running_max.function, lambda x, **_: x, vjp=(forward, backward))
    x = jnp.array([1.0, 3.0, 2.0, 5.0])
    gradient = jnp.jit(jnp.grad(lambda x: largest(x, start=2).sum()))(x)
    np.testing.assert_array_equal(gradient, [0, 1, 0, 1])
    np.testing.assert_array_equal(largest(x, start=2), [2, 3, 3, 5])


def lambda_cube(x):
    return x * x * x


def test_without_a_rule_a_derivative_is_an_error():
    for f in (jnp.kernel(piecewise), running_max):
        with pytest.raises(
            NotImplementedError, match=r"no derivative of .* is known.*jvp= or vjp="
        ):
            jnp.grad(lambda x, f=f: f(x).sum())(X[0])
    assert jnp.grad(lambda x: running_max(jnp.lax.stop_gradient(x)).sum() + x[0])(X[0])[0] == 1


# --- how it looks, and errors ---


def test_jaxpr_of_user_kernel():
    text = str(jnp.make_jaxpr(lambda x: jnp.kernel(piecewise)(running_max(x, start=2)))(X[0]))
    assert "kernel_running_max[start=2] a" in text
    assert "= kernel_piecewise b" in text
    with pytest.raises(NotImplementedError, match=r"export: .*kernel_piecewise"):
        jnp.export.export(jnp.jit(jnp.kernel(piecewise)))(X[0]).serialize()


def reads_an_array(x):
    return x + TABLE[0]


TABLE = np.zeros(3)


def raises(x):
    if x < 0:
        raise ValueError("negative")
    return x


def prints(x):
    print(x)
    return x


def returns_two(x):
    return x, x


def returns_at_times(x):
    if x > 0:
        return x


def makes_a_list(x):
    both = [x, x]
    return both[0]


def makes_an_array(x):
    t = np.zeros(3)
    t[0] = x
    return t.sum()


def calls_what_is_not(x):
    y = x + 1
    return y.nothing(2)


def writes_to_an_operand(x, y):
    y[0] = 1
    x[0] = 2


def wrong_rank(x):
    return x.sum()


def wrong_shape(x):
    return x[1:]


def needs_positive(x, y):
    if x[0] < 0:
        raise ValueError("negative")
    y[:] = x


def calls_a_reduction(x):
    return jnp.sum(x)


def never_ends(x):
    for i in range(0, 3, ZERO):
        x += i
    return x


def misses_a_name(x):
    return math.floot(x)


def calls_arrays(x):
    return running_max(x)


@numba.njit
def calls_itself(x):
    return calls_itself(x - 1) if x > 0 else 0.0


ZERO = 0
LIKE = lambda x: x  # noqa: E731
LAMBDAS_ON_ONE_LINE = [lambda x: 1 if x > 0 else 2, lambda x: 2 if x > 0 else 1]  # on one line


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: jnp.kernel(3), TypeError, "needs a function that Numba compiles; got 3"),
        (lambda: jnp.kernel(reads_an_array), ValueError, "it reads TABLE, a ndarray.*: return "),
        (lambda: jnp.kernel(raises), ValueError, r"raise has no meaning .*got raise V.*py:\d+: "),
        (lambda: jnp.kernel(prints), ValueError, r"print has no meaning .*; got .*: print"),
        (lambda: jnp.kernel(returns_two)(X), TypeError, r"kernel: returns_two .*got .*Tuple"),
        (lambda: jnp.kernel(returns_at_times)(X), TypeError, "nothing on some path; got O"),
        (lambda: jnp.kernel(makes_a_list)(X), TypeError, "compile makes_a_list .*make no arrays"),
        (lambda: jnp.kernel(makes_an_array)(X), TypeError, "compile makes_an_array .*results with"),
        (lambda: jnp.kernel(calls_a_reduction), ValueError, r"jnp.sum, .* of arrays.*: return jnp"),
        (lambda: jnp.kernel(never_ends), ValueError, r"range must not be zero.*: for i in"),
        (lambda: jnp.kernel(misses_a_name), ValueError, "math.floot is not defined.*: return"),
        (lambda: jnp.kernel(calls_arrays), ValueError, "it reads running_max, a .*: return"),
        (lambda: jnp.kernel(calls_itself)(X), TypeError, "itself with numbers of other types"),
        (lambda: jnp.kernel(eval("lambda x: x")), ValueError, "its source is not available"),
        (
            lambda: jnp.kernel(piecewise, jvp=LIKE, vjp=(LIKE, LIKE)),
            ValueError,
            "there can be one rule",
        ),
        (lambda: jnp.kernel(piecewise, fill=0), ValueError, "has no use for fill and vmap"),
        (lambda: jnp.kernel(piecewise)(X, X), TypeError, "function of 1 numbers; got 2 operands"),
        (
            lambda: jnp.kernel(calls_what_is_not)(X),
            TypeError,
            r"cannot compile calls_what_is_not .*float32\[\].*'nothing'.*: return y.nothing\(2\)",
        ),
        (lambda: jnp.kernel(writes_to_an_operand, LIKE)(X[0]), TypeError, "it writes to an op"),
        (
            lambda: jnp.kernel(wrong_rank, LIKE)(X[0]),
            TypeError,
            "returns float32 of rank 0; out declares",
        ),
        (lambda: jnp.kernel(wrong_shape, LIKE)(X[0]), JaxRuntimeError, r"32\[499\] for result"),
        (lambda: running_max(X[0], X[0], X[0], X[0]), TypeError, "has the parameters x, y, start"),
        (lambda: running_max(X[0], nothing=1), TypeError, "got 1 operands and .'nothing'. by name"),
        (lambda: running_max(X[0], start=X), TypeError, "given by name is static"),
        (lambda: running_max(X[0].astype(np.float16)), TypeError, "no arithmetic .* operand 0"),
        (lambda: jnp.kernel(wrong_shape, lambda x: 3)(X[0]), ValueError, "must have a shape and a"),
        (lambda: jnp.kernel(wrong_shape, ())(X[0]), ValueError, "must declare a result"),
        (lambda: jnp.kernel(piecewise, LIKE)(X[0], X[0], X[0]), TypeError, "has the parameters x;"),
    ],
)  # fmt: skip
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        jnp.block_until_ready(make())


def test_runtime_errors_name_the_line():
    f = jnp.kernel(needs_positive, LIKE)
    with pytest.raises(JaxRuntimeError, match="raised ValueError: negative") as info:
        f(-(X[0] ** 2)).block_until_ready()
    assert any("test_user_kernels.py" in note for note in info.value.__notes__)
    np.testing.assert_array_equal(f(X[0] ** 2), X[0] ** 2)
    with pytest.raises(TypeError, match="cannot compile"):
        f("no" and jnp.ones((2, 2), "complex64"))
    np.testing.assert_array_equal(f(X[1] ** 2), X[1] ** 2)


def test_a_later_process_finds_the_kernel_on_disk(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import accnp as jnp, sys\n"
        "def f(x):\n    return x * x if x > 1 else x\n"
        "g = jnp.kernel(f)\n"
        "print(str(g(jnp.array([3.0, 0.5])) + 1), jnp.counters()['compiles'])\n"
    )
    environment = {"ACCNP_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "PYTHONPATH": str(ROOT)}
    for compiles in (True, False):
        done = subprocess.run(
            [sys.executable, program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("[10.   1.5]")
        assert (done.stdout.split()[-1] != "0") == compiles
