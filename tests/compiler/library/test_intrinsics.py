"""Integers, casts, rounding, threefry and block reductions of compiled kernels; vector code; the
plain namespace."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiler.library.support import compiled, mapped, run, token
from jax import lax

from accnp.compiler.ir_tools import python_functions
from accnp.compiler.llvm.intrinsics.all import TABLE
from accnp.ir.op import OPS

INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float32, np.float64]


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def int_pairs(dtype):
    info = np.iinfo(dtype)
    x = np.unique(
        np.array([info.min, info.min + 1, 0, 1, 2, 5, 7, 100, info.max - 1, info.max], dtype)
    )
    if info.min < 0:
        x = np.concatenate([x, np.array([-1, -2, -7], dtype)])
    return [a.ravel() for a in np.meshgrid(x, x)]


def specials(dtype):
    info = np.finfo(dtype)
    values = [
        0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        1,
        -1,
        3.7,
        -3.7,
        1e10,
        -1e10,
        np.inf,
        -np.inf,
        np.nan,
    ]
    values += [info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal, 0.49999999]
    return np.array(values, dtype)


def flushed(x):
    """Without subnormals, which XLA treats as zero and we keep."""
    return x[~((x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny))]


def plainly(expression, dtype, *arrays):
    code = compile(expression, "expression", "eval")
    rows = zip(*arrays)
    cast = python_functions.NAMESPACE[token(dtype)]
    scope = python_functions.NAMESPACE
    return np.array(
        [cast(eval(code, dict(scope), {f"x{k}": v for k, v in enumerate(row)})) for row in rows],
        dtype,
    )


def same(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype.kind == "f":
        numbers = ~np.isnan(actual)
        np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))


def test_plain_python_defines_every_intrinsic():
    # `spread` is no function: the lowering writes the launch in its place. Functions of users are
    # in the table by names with a digest.
    own = {n for n, f in TABLE.items() if not f.gpu and not re.search(r"_[0-9a-f]{16}$", n)}
    own.remove("send_message")  # a kernel that runs as plain Python has no other processes
    for_gpus = {n for n, f in TABLE.items() if f.gpu}  # some of them have a plain version
    assert set(python_functions.NAMESPACE) - for_gpus == {
        *own,
        "nontemporal_requested",
        "parallel_for",
    }


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize(("name", "f"), [
    ("idiv", lax.div), ("rem", lax.rem), ("fmax", lax.max), ("fmin", lax.min),
    ("shift_left", lax.shift_left), ("shift_right_logical", lax.shift_right_logical),
    ("shift_right_arithmetic", lax.shift_right_arithmetic),
])  # fmt: skip
def test_integer_binary_functions_match_jax(name, f, dtype):
    x, y = int_pairs(dtype)
    expected = np.asarray(f(jnp.asarray(x), jnp.asarray(y)))
    same(mapped(f"{name}(x0, x1)", dtype, x, y), expected)
    same(plainly(f"{name}(x0, x1)", dtype, x, y), expected)


@pytest.mark.parametrize("dtype", [d for d in INTS if d().itemsize < 8])
def test_division_near_exact_quotients(dtype):
    """Quotients and remainders go by floating numbers: they are cut off at the right integer."""
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    y = rng.integers(info.min, info.max, 1 << 16, endpoint=True) >> rng.integers(
        0, info.bits, 1 << 16
    )
    x = (y * rng.integers(0, 300, y.size) + rng.integers(-1, 2, y.size)).astype(dtype)
    x[::4] = rng.integers(info.min, info.max, x[::4].size, endpoint=True)
    keep = y != 0
    x, y = x[keep].astype(np.int64), y[keep]
    quotient = np.abs(x) // np.abs(y) * np.sign(x) * np.sign(y)
    pair = x.astype(dtype), y.astype(dtype)
    same(mapped("idiv(x0, x1)", dtype, *pair), quotient.astype(dtype))
    same(mapped("rem(x0, x1)", dtype, *pair), (x - quotient * y).astype(dtype))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize(("name", "f"), [("clz", lax.clz), ("popcount", lax.population_count),
                                         ("sign", lax.sign), ("sq", lax.square)])  # fmt: skip
def test_integer_unary_functions_match_jax(name, f, dtype):
    x = int_pairs(dtype)[0]
    expected = np.asarray(f(jnp.asarray(x)))
    if name == "sign":  # of -0.0 it is 0.0: the array API standard's rule
        expected = expected + expected.dtype.type(0)
    same(mapped(f"{name}(x0)", dtype, x), expected)
    same(plainly(f"{name}(x0)", dtype, x), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "f"), [
    ("floor", lax.floor), ("ceil", lax.ceil), ("sign", lax.sign), ("abs", lax.abs),
    ("round_even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    ("round_away", lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)),
])  # fmt: skip
def test_rounding_matches_jax(name, f, dtype):
    x = flushed(specials(dtype))
    expected = np.asarray(f(jnp.asarray(x)))
    if name == "sign":  # of -0.0 it is 0.0: the array API standard's rule
        expected = expected + expected.dtype.type(0)
    same(mapped(f"{name}(x0)", dtype, x), expected)
    same(plainly(f"{name}(x0)", dtype, x), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "f"), [
    ("fmax", lax.max), ("fmin", lax.min), ("rem", np.fmod), ("nextafter", np.nextafter),
    ("copysign", np.copysign),
])  # fmt: skip
def test_float_binary_functions(name, f, dtype):
    values = (
        specials(dtype) if f in (np.fmod, np.nextafter, np.copysign) else flushed(specials(dtype))
    )
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.asarray(f(x, y))
    same(mapped(f"{name}(x0, x1)", dtype, x, y), expected)
    same(plainly(f"{name}(x0, x1)", dtype, x, y), expected)


@pytest.mark.parametrize("target", [bool, *INTS, *FLOATS])
@pytest.mark.parametrize("source", FLOATS)
def test_casts_from_floats_match_jax(source, target):
    ends = [127.5, 128, -128.9, -129, 255.9, 256, 2.0**31, 2.0**63, -(2.0**31), -(2.0**63), 2.0**64]
    x = np.concatenate([specials(source), np.array(ends, source)])
    x = flushed(x)
    with np.errstate(all="ignore"):
        expected = np.asarray(jnp.asarray(x).astype(target))
        plain_run = plainly(f"{token(target)}(x0)", target, x)
    same(mapped(f"{token(target)}(x0)", target, x), expected)
    same(plain_run, expected)


@pytest.mark.parametrize("target", [bool, *INTS, *FLOATS, np.complex64, np.complex128])
@pytest.mark.parametrize("source", [bool, *INTS])
def test_casts_from_integers_match_numpy(source, target):
    x = np.array([False, True]) if source is bool else int_pairs(source)[0]
    same(mapped(f"{token(target)}(x0)", target, x), x.astype(target))


def test_complex_casts_and_parts():
    z = np.array([1 - 2j, 0, 3e20 + 1j], np.complex128)
    same(mapped("f4(x0)", np.float32, z), z.real.astype(np.float32))
    same(mapped("b1(x0)", bool, z), z != 0)
    same(mapped("c8(x0)", np.complex64, z), z.astype(np.complex64))
    same(mapped("make_complex(x0, x0)", np.complex64, z.real.astype(np.float32)),
         (z.real + 1j * z.real).astype(np.complex64))  # fmt: skip


def test_bitcast_select_one_and_fma():
    x = specials(np.float32)
    same(mapped("bitcast_i4(x0)", np.int32, x), x.view(np.int32))
    same(mapped("bitcast_f4(bitcast_u4(x0))", np.float32, x), x)
    same(
        mapped("select(x0 > f4(0), x0, one(x0))", np.float32, x), np.where(x > 0, x, np.float32(1))
    )
    y = np.array([1 + 2.0**-52], np.float64)
    assert mapped("fma(x0, x0, -one(x0))", np.float64, y)[0] == 2.0**-51 + 2.0**-104
    same(mapped("is_finite(x0)", bool, x), np.isfinite(x))


def test_mistyped_call_names_the_function():
    with pytest.raises(Exception, match="no function exp of"):
        mapped("exp(x0)", np.int32, np.arange(3, dtype=np.int32))


def test_threefry_matches_jax():
    key = jax.random.key(42)
    k0, k1 = (np.uint32(v) for v in np.asarray(jax.random.key_data(key)))
    n = 1000
    low = np.arange(n, dtype=np.uint32)
    high = np.zeros(n, np.uint32)
    keys = [np.full(n, k, np.uint32) for k in (k0, k1)]
    bits = mapped("threefry_xor(x0, x1, x2, x3)", np.uint32, *keys, high, low)
    same(bits, np.asarray(jax.random.bits(key, (n,), jnp.uint32)))
    from jax.extend.random import threefry_2x32

    words = np.asarray(threefry_2x32(jnp.array([k0, k1]), jnp.asarray(np.concatenate([high, low]))))
    for name, expected in (("threefry_0", words[:n]), ("threefry_1", words[n:])):
        same(mapped(f"{name}(x0, x1, x2, x3)", np.uint32, *keys, high, low), expected)
        same(
            plainly(f"{name}(x0, x1, x2, x3)", np.uint32, *(a[:9] for a in (*keys, high, low))),
            expected[:9],
        )


def block(name, x, offset=0):
    out, count = np.empty(1, x.dtype), np.array([x.size - offset])
    source = f"""def kernel(lo, hi, a0, a1, o0):
    o0[0] = block_{name}(at(a0, {offset}), a1[0])
"""
    run(source, 1, x, count, out)
    return out[0]


def lanes_sum(x):
    """The documented order, written in NumPy."""
    acc = np.zeros(32, x.dtype)
    for k in range(0, x.size, 32):
        part = x[k : k + 32]
        acc = acc + np.concatenate([part, np.zeros(32 - part.size, x.dtype)])
    while acc.size > 1:
        acc = acc[: acc.size // 2] + acc[acc.size // 2 :]
    return acc[0]


@pytest.mark.parametrize("dtype", [*FLOATS, np.complex64, np.complex128])
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000, 1024])
def test_block_sum_uses_documented_order(n, dtype):
    x = np.random.default_rng(n).standard_normal(n + 1).astype(dtype)
    if x.dtype.kind == "c":
        x += 1j * np.random.default_rng(9).standard_normal(n + 1).astype(dtype)
    assert block("sum", x, 1) == lanes_sum(x[1:])


@pytest.mark.parametrize("n", [0, 1, 31, 33, 1000, 1024])
def test_wide_sum_matches_sum_of_float64_copy(n):
    x = np.random.default_rng(n).standard_normal(n + 1).astype(np.float32)
    out = np.zeros(1)
    run(f"def kernel(lo, hi, x, o):\n    o[0] = block_wide_sum(at(x, 1), {n})\n", 1, x, out)
    assert out[0] == lanes_sum(x[1:].astype(np.float64))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_squares_are_those_of_references(dtype):
    parts = [0.0, -0.0, 1.0, -0.5, 2e-30, 3e38, -3e38, 1e19, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in parts for b in parts]).astype(dtype)
    z = np.append(z, dtype(complex(1 + 2**-12, 1)))
    out = np.zeros_like(z)
    run("def kernel(lo, hi, x, o):\n    for i in range(lo, hi):\n        o[i] = sq(x[i])\n",
        z.size, z, out)  # fmt: skip
    by_one = np.array([python_functions.NAMESPACE["sq"](v) for v in z], dtype)
    square, integer_pow = OPS["square"].numpy, OPS["integer_pow"].numpy
    assert square is not None
    assert integer_pow is not None
    for actual in (square(z), integer_pow(z, y=2), by_one):
        for a, b in ((np.real(actual), np.real(out)), (np.imag(actual), np.imag(out))):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(np.signbit(a[b == 0]), np.signbit(b[b == 0]))


FOLDS = [
    (name, dtype) for name in ("sum", "prod", "max", "min") for dtype in (*INTS, *FLOATS, bool)
]
FOLDS += [(name, dtype) for name in ("and", "or", "xor") for dtype in (*INTS, bool)]


@pytest.mark.parametrize(("name", "dtype"), FOLDS)
def test_block_reductions_match_plain_python(name, dtype):
    rng = np.random.default_rng(1)
    for n in (1, 5, 32, 77, 1024):
        x = rng.uniform(0.9, 1.1, n) if np.dtype(dtype).kind == "f" else rng.integers(-90, 90, n)
        x = x.astype(dtype)
        tolerance = 1e-5 if dtype == np.float32 else 1e-13
        expected = python_functions.NAMESPACE["block_" + name](x, n)
        np.testing.assert_allclose(
            block(name, x), expected, rtol=tolerance if x.dtype.kind == "f" else 0
        )


@pytest.mark.parametrize(("name", "dtype"), [f for f in FOLDS if f[0] != "xor"])
def test_column_reductions_match_plain_python_and_single_columns(name, dtype):
    """Whole squares and strips, and what is left of them; exact where blocks are asked."""
    rng = np.random.default_rng(2)
    for rows, wide in ((1, 1), (16, 16), (100, 70), (37, 300), (300, 20)):
        n = (rows + 3) * (wide + 3)
        x = rng.uniform(0.9, 1.1, n) if np.dtype(dtype).kind == "f" else rng.integers(-90, 90, n)
        x = x.astype(dtype)
        places = np.arange(rows) * (wide + 3) + 2
        actual = [np.ones(1024, dtype), np.ones(1024, dtype)]
        text = f"""def kernel(lo, hi, a0, a1, n0, o0, o1):
    columns_{name}(at(o0, 0), at(a0, 1), n0[0] + 3, n0[0], n0[1])
    strips_{name}(at(o1, 0), at(a0, 1), at(a1, 0), n0[0], n0[1])
"""
        run(text, 1, x, places, np.array([rows, wide]), *actual)
        for kind, sums in zip(("columns_", "strips_"), actual, strict=True):
            expected = np.ones(wide, dtype)
            how = rows + 3 if kind == "columns_" else places
            python_functions.NAMESPACE[kind + name](expected, x[1:], how, rows, wide)
            rtol = 1e-5 if dtype == np.float32 else 1e-13
            rtol = rtol if x.dtype.kind == "f" else 0
            np.testing.assert_allclose(sums[:wide], expected, rtol=rtol)
        for c in (0, wide // 2, wide - 1):
            assert actual[1][c] == block(name, x[1 + places + c])


@pytest.mark.parametrize("dtype", FLOATS)
def test_column_reductions_keep_special_values(dtype):
    x = np.random.default_rng(4).standard_normal((40, 50)).astype(dtype)
    x[3, 7], x[20, 8], x[:, 9], x[0, 10], x[::2, 11] = np.nan, -np.inf, -0.0, 0.0, -0.0
    x[1::2, 11], x[1:, 10] = 0.0, -0.0
    for name, reduction in (("max", np.max), ("min", np.min), ("sum", np.sum)):
        down = np.full(
            1024, reduction(x[:0], initial={"max": -np.inf, "min": np.inf}.get(name, 0)), dtype
        )
        along = np.zeros(1024, dtype)
        text = f"""def kernel(lo, hi, a0, a1, a2, o0, o1):
    columns_{name}(at(o0, 0), at(a1, 0), 40, 40, 50)
    strips_{name}(at(o1, 0), at(a0, 0), at(a2, 0), 40, 50)
"""
        run(text, 1, x, np.ascontiguousarray(x.T), np.arange(40) * 50, down, along)
        np.testing.assert_allclose(down[:50], reduction(x, 0), rtol=1e-4)
        for c in range(50):
            assert along[c].tobytes() == block(name, np.ascontiguousarray(x[:, c])).tobytes()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_block_prod_of_complex(dtype):
    x = np.exp(1j * np.arange(77)).astype(dtype)
    np.testing.assert_allclose(
        block("prod", x), x.prod(), rtol=1e-5 if dtype == np.complex64 else 1e-13
    )


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [5, 77, 1024])
def test_block_prod_of_complex_that_overflows_on_the_way(dtype, n):
    """Lanes of large and of small numbers; of real ones the same bits."""
    big = 1e30 if dtype == np.complex64 else 1e250
    size = np.where(np.arange(n) % 2, big, 1 / big) * np.linspace(0.9, 1.1, n)
    exact = np.prod(size.astype(np.longdouble))
    turns = np.exp(1j * np.arange(n))
    for x, expected in (
        (size * turns, exact * turns.prod()),
        (size, exact),
        (size * 1j, exact * 1j**n),
    ):
        x = x.astype(dtype)
        rtol = 1e-4 if dtype == np.complex64 else 1e-11
        np.testing.assert_allclose(block("prod", x), complex(expected), rtol=rtol)
    assert block("prod", np.append(x, 0)) == 0
    assert block("prod", np.full(n, 1 / big, dtype)) == 0
    assert np.isinf(block("prod", np.full(n, big, dtype)).real)
    assert np.isnan(block("prod", np.append(x, np.nan)))
    part = "f4" if dtype == np.complex64 else "f8"
    assert block("prod", size.astype(dtype)).real == block("prod", size.astype(part))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("place", [0, 40, 76])
def test_block_max_and_min_propagate_nan(dtype, place):
    x = np.arange(77, dtype=dtype)
    assert block("max", x) == 76
    assert block("min", x) == 0
    x[place] = np.nan
    assert np.isnan(block("max", x))
    assert np.isnan(block("min", x))


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS, bool])
def test_block_find_returns_first_index(dtype):
    t = token(dtype)
    text = "def kernel(lo, hi, a0, w0, o0):\n    o0[0] = block_find(at(a0, 1), hi, w0[0])\n"
    out = np.zeros(1, np.int64)
    for n in (0, 1, 63, 64, 65, 200):
        x = np.zeros(n + 2, dtype)  # what is wanted also lies before the block and behind it
        expected = np.array([np.nan if x.dtype.kind == "f" and n % 2 else 1], dtype)
        for place in sorted({0, n // 2, n - 1, n}):
            x[:], x[0], x[n + 1] = 0, expected[0], expected[0]
            x[1 + max(place, 0) :] = expected[0]
            run(text, n, x, expected, out)
            assert (
                out[0]
                == max(place, 0)
                == python_functions.NAMESPACE["block_find"](x[1:], n, expected[0])
            ), (
                t,
                n,
            )


def test_stack_buffer_inside_a_loop():
    x = np.arange(5000, dtype=np.float64)
    out = np.zeros(5)
    run("""def kernel(lo, hi, a0, o0):
    for j in range(5):
        s = stack_f8()
        for i in range(1000):
            s[i] = a0[j * 1000 + i] * 2.0
        o0[j] = block_sum(s, 1000)
""", 1, x, out)  # fmt: skip
    np.testing.assert_array_equal(out, 2 * x.reshape(5, 1000).sum(1))


VECTOR = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logistic", "sin", "cos",
          "tan", "sin_pi", "tanh", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh",
          "atanh",
          "cbrt", "erf", "erfc", "normal_cdf", "silu", "mish", "tanh_cdf", "tanh_gelu",
          "normal_gelu", "erf_inv", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "dawsn",
          "erfcx", "log_ndtr", "ndtri",
          "lgamma", "digamma", "rsqrt", "round_away"]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", VECTOR)
def test_loops_are_vector_code_without_library_calls(name, dtype):
    t = token(dtype)
    source = (
        f"def kernel(lo, hi, a0, o0):\n    for i in range(lo, hi):\n        o0[i] = {name}(a0[i])\n"
    )
    kernel = compiled(source, (t + "*", t + "*"))
    text = kernel.llvm()
    assert re.search(r"<(4|8|16|32|64) x (float|double)>", text)
    calls = re.findall(r"\bcall [^@\n]*@([\w.]+)", text)
    own = [c for c in calls if not c.startswith(("llvm.", "accnp."))]
    assert own == []
    assert not re.search(r"\b(fma|sin|cos|tan|exp|log|pow)f?@(PLT|GOT)", kernel.assembly())


def test_huge_arguments_are_one_masked_call_in_the_vector_loop():
    source = """def kernel(lo, hi, a0, o0):
    for i in range(lo, hi):
        o0[i] = sin(a0[i]) + cos(a0[i])
"""
    text = compiled(source, ("f4*", "f4*")).llvm()
    for name in ("sin", "cos"):
        assert re.search(rf"call [^\n]*<(8|32|64) x float> @accnp\.{name}\.f4\.x(8|32|64)", text)


def test_loop_of_int_casts_is_vector_code():
    source = "def kernel(lo, hi, a0, o0):\n    for i in range(lo, hi):\n        o0[i] = i4(a0[i])\n"
    assert re.search(r"<(8|16|32|64) x i32>", compiled(source, ("f4*", "i4*")).llvm())
