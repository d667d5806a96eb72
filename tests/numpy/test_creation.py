"""Array creation compared with JAX: values, dtypes, weak types, copies, and errors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from api.support import assert_same, value_of
from api.tables import compare_expression, split_cases

import accnp
import accnp.numpy as jnp
from accnp.runtime.buffer import pool_stats

X = np.arange(12, dtype=np.float32).reshape(3, 4)

MADE = """
array(1.0) | asarray(1) | asarray(True) | array([1, 2.5]) | array([1, 2.5, True])
array([1j, 1]) | array([]) | array(range(3)) | array([np.float16(1), 2])
array([np.int8(1), 1]) | array(1, dtype=float) | asarray(1.5, dtype=int)
array([2.5], dtype=np.int32) | array(memoryview(b"abc")) | array([[1, 2], [3, 4]])
array(jnp.asarray(1.0)) | array([jnp.asarray(1.0)]) | array([jnp.asarray(1), 2.5])
array([X[0], X[1]]) | array([[jnp.asarray(1), 2], [3, 4]]) | array(1.0, ndmin=2)
asarray(np.float64(2)) | array((X, X)) | zeros(2) | zeros((2, 3), int) | ones((2,), bool)
full((2,), 1.0) | full((2,), jnp.asarray(1.0)) | full((2, 3), np.array([1, 2, 3]))
full(3, 7, dtype="float16") | empty((0, 2)) | zeros(()) | ones([2, 1]) | zeros_like(1.0)
ones_like(jnp.asarray(1.0)) | full_like(X, 2) | full_like(jnp.asarray(1.0), 2) | empty_like(X)
zeros_like(X, dtype=int, shape=(2,)) | arange(3) | arange(3.0) | arange(2, 8, 3)
arange(0, 1, 0.3) | arange(5, 1, -2) | arange(5, 1) | arange(jnp.asarray(3))
arange(3, dtype="float16") | arange(1, 4, dtype=float) | linspace(0, 1, 5)
linspace(0, 1, 5, endpoint=False) | linspace(0, 1, 1) | linspace(2, 5, 0)
linspace(0, 9, 4, dtype=int) | linspace(X[0], X[1], 3, axis=1) | linspace(0, 1, 5, retstep=True)
linspace(-3.5, 7, 11) | logspace(0, 2, 3) | logspace(0, 3, 4, base=2.0) | geomspace(1, 1000, 4)
geomspace(-1, -1000, 4, endpoint=False) | geomspace(1.0, 8.0, 1) | eye(3) | eye(2, 4, 1)
eye(4, 2, k=-1, dtype=int) | identity(3, dtype=bool) | tri(3) | tri(3, 4, 1) | tri(3, 4, -1)
tril(X) | tril(X, -2) | triu(X) | triu(X, 1) | diag(X) | diag(X, 1) | diag(X, -1) | diag(X, 5)
diag(X[0]) | diag(X[0], 2) | diag(X[0], -1) | diagflat(X)
diagonal(X.reshape(2, 3, 2), 0, 0, 2) | diagonal(X.reshape(2, 3, 2), 1)
meshgrid(X[0], X[:, 0]) | meshgrid(X[0], X[:, 0], sparse=True)
meshgrid(X[0], X[:, 0], indexing="ij") | indices((2, 3)) | indices((2, 3), sparse=True)
vander(X[0]) | vander(X[0], 2, increasing=True) | tril_indices(3) | triu_indices(3, 1)
tril_indices_from(X[:, :3]) | diag_indices(3) | frombuffer(b"abcdefgh", dtype="int32")
ix_(X[0].astype(int), X[0].astype(int)) | copy(X) | astype(X, int)
fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype=int) | mask_indices(3, jnp.triu)
"""


@pytest.mark.parametrize("text", split_cases(MADE))
def test_as_jax(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, X=X)


def test_steps_of_whole_numbers_are_whole() -> None:
    """3/5 of 25 is 15.000001 if computed in float32, so 15 would fall into the previous bin."""
    for a, b, n in ((0, 25, 6), (-7, 14, 8), (3, 45, 15), (0, 100, 101)):
        actual = jnp.linspace(a, b, n)
        np.testing.assert_array_equal(actual, np.linspace(a, b, n, dtype=np.float32))
    np.testing.assert_array_equal(jnp.linspace(0, 10, 11, dtype=int), np.arange(11))
    x = np.array([1, 2, 3, 11, 14, 15, 17, 25, 0])
    np.testing.assert_array_equal(jnp.histogram(x, 5)[0], np.histogram(x, 5)[0])


def test_64_bit_types() -> None:
    with accnp.enable_x64(), jax.enable_x64(True):
        for text in (
            "array([1, 2.5])",
            "arange(3)",
            "asarray(2**40)",
            "zeros(2)",
            "linspace(0, 1, 3)",
        ):
            compare_expression(text, jnp, jax.numpy)


REFUSED = [
    (lambda: jnp.array([[1, 2], [3]]), TypeError, "ragged"),
    (lambda: jnp.array([jnp.arange(2), jnp.arange(3)]), TypeError, "ragged"),
    (lambda: jnp.array(["a"]), TypeError, "not a valid JAX array type"),
    (lambda: jnp.array("text"), TypeError, "not a valid JAX array type"),
    (lambda: jnp.array(np.array([None])), TypeError, "object"),
    (lambda: jnp.array(np.array(["2020-01-01"], "M8[D]")), TypeError, "datetime"),
    (lambda: jnp.array({"a": 1}), TypeError, "dict"),
    (lambda: jnp.array(None), ValueError, "None"),
    (lambda: jnp.array([2**40]), OverflowError, "int32"),
    (lambda: jnp.asarray(2**40), OverflowError, "int32"),
    (lambda: jnp.zeros(-1), ValueError, r"jnp.zeros: sizes cannot be negative; got shape \(-1,\)"),
    (lambda: jnp.ones((2, -3)), ValueError, "jnp.ones: sizes cannot be negative"),
    (lambda: jnp.zeros(2.0), TypeError, "integer"),
    (lambda: jnp.zeros((2, 3.0)), TypeError, "integer"),
    (lambda: jnp.zeros("ab"), TypeError, "Shapes must be 1D"),
    (lambda: jnp.zeros(2, dtype="S"), TypeError, "dtype"),
    (lambda: jnp.zeros(2, dtype=object), TypeError, "dtype"),
    (lambda: jnp.arange(0, 1, 0), ZeroDivisionError, "step"),
    (lambda: jnp.arange("a"), TypeError, "numbers"),
    (lambda: jnp.arange([1, 2]), TypeError, "numbers"),
    (lambda: jnp.arange(5, dtype=bool), TypeError, "bool"),
    (lambda: jnp.linspace(0, 1, -1), ValueError, "cannot be negative"),
    (lambda: jnp.full(3, [1, 2, 3]), TypeError, "list"),
    (lambda: jnp.full((3,), np.ones(2)), ValueError, "broadcast"),
    (lambda: jnp.tril(jnp.ones(3)), ValueError, "two axes"),
    (lambda: jnp.diag(jnp.ones((2, 2, 2))), ValueError, "1-d or 2-d"),
    (lambda: jnp.meshgrid(jnp.ones(2), indexing="ab"), ValueError, "indexing"),
    (lambda: jnp.zeros(2**62, "int8").block_until_ready(), MemoryError, "memory"),
]


@pytest.mark.parametrize(("make", "error", "text"), REFUSED)
def test_invalid_arguments_raise(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_traced_shape_names_function_and_argument() -> None:
    for fn, name in ((jnp.ones, "jnp.ones"), (jnp.zeros, "jnp.zeros"), (jnp.arange, "jnp.arange")):
        with pytest.raises(TypeError) as caught:
            accnp.jit(lambda length, fn=fn: fn(length))(3)
        assert name in str(caught.value)
        assert "Shapes must be 1D sequences" in str(caught.value)
        assert "length" in str(caught.value)
    assert accnp.jit(lambda n: jnp.ones((n,)), static_argnums=0)(3).shape == (3,)


def test_traced_values_in_lists_are_stacked() -> None:
    out = accnp.jit(lambda a, b: jnp.array([[a, 1], [b, 2]]))(3.0, 4.0)
    assert_same(out, jax.numpy.array([[3.0, 1], [4.0, 2]]))
    assert float(accnp.grad(lambda a: jnp.sum(jnp.array([a, 2.0]) ** 2))(3.0)) == 6


def test_arrays_are_copied_on_entry() -> None:
    x = np.arange(3)
    for copy in (jnp.array(x), jnp.asarray(x), jnp.asarray(x, copy=True), jnp.array([x, x])[0]):
        x[0] = 99
        assert value_of(copy)[0] == 0
        x[0] = 0


def frozen(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


READ_ONLY = {
    "bytes": np.frombuffer(bytes(range(64)), np.uint8),
    "frozen": frozen(np.arange(100_000.0, dtype=np.float32)),
    "a part of it": frozen(np.arange(1000.0, dtype=np.float32)).reshape(10, 100)[2:5],
}


@pytest.mark.parametrize("name", READ_ONLY)
def test_immutable_memory_is_not_copied(name: str) -> None:
    x = READ_ONLY[name]
    before = pool_stats()
    device = accnp.devices()[0]
    shared = [
        jnp.asarray(x), jnp.asarray(x, copy=False), jnp.asarray(x, x.dtype),
        jnp.asarray(x, device=device), jnp.array(x, copy=False), jnp.array(x, x.dtype, copy=None),
        accnp.device_put(x), accnp.device_put({"x": x}, device)["x"], jnp.ravel(x).reshape(x.shape),
    ]  # fmt: skip
    after = pool_stats()
    assert after["reuses"] == before["reuses"]
    assert after["allocations"] == before["allocations"]
    for y in shared:
        assert np.shares_memory(np.asarray(y), x)
        assert (np.asarray(y + 1) == x + 1).all()
    for y in (jnp.asarray(x, copy=True), jnp.array(x), jnp.array(x, x.dtype)):
        assert not np.shares_memory(np.asarray(y), x)


def test_read_only_view_of_mutable_memory_is_copied() -> None:
    x = np.arange(10.0, dtype=np.float32)
    part = frozen(x[2:])
    device = accnp.devices()[0]
    ways = [
        jnp.asarray,
        jnp.array,
        accnp.device_put,
        lambda v: accnp.device_put(v, device),
        jnp.negative,
    ]
    arrays = [way(part) for way in ways]
    x[:] = 0
    assert [abs(value_of(y)[0]) for y in arrays] == [2] * len(ways)


def test_copy_false_shares_what_it_can() -> None:
    x = np.arange(10.0, dtype=np.float32)
    assert np.shares_memory(np.asarray(jnp.asarray(x, copy=False)), x)
    assert np.shares_memory(np.asarray(jnp.array(x, copy=False)), x)
    for y in (x[::2], x.astype(np.float64), x[:4].view(np.uint8)[1:13].view(np.float32)):
        array = jnp.asarray(y, copy=False)
        assert not np.shares_memory(np.asarray(array), x)
        assert (np.asarray(array) == y).all()


def test_updates_of_shared_memory_are_made_in_a_copy() -> None:
    x = np.zeros(1000, np.float32)
    y = jnp.asarray(x, copy=False).at[3].set(1.0)
    assert value_of(y)[3] == 1
    assert not x.any()


def test_asarray_returns_arrays_as_they_are() -> None:
    x = jnp.arange(3)
    assert jnp.asarray(x) is x
    assert jnp.array(x, copy=False) is x


REAL = ["int32", "uint8", "float32", "bfloat16"]
FROM_COMPLEX = [
    lambda kind: jnp.asarray(1j, dtype=kind),
    lambda kind: jnp.array([[1, 2j]], dtype=kind),
    lambda kind: jnp.full((2,), 1j, dtype=kind),
    lambda kind: jnp.full_like(jnp.ones(2), 1j, dtype=kind),
    lambda kind: jnp.full_like(jnp.ones(2, dtype=kind), 1j),
    lambda kind: accnp.lax.full((2,), 1j, kind),
    lambda kind: accnp.lax.convert_element_type(1j, kind),
    lambda kind: getattr(jnp, kind)(1j),
]


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("make", FROM_COMPLEX)
def test_no_real_type_takes_a_python_complex_number(make: Any, kind: str) -> None:
    """JAX warns before it raises, so this case cannot be in `families/`."""
    with pytest.raises(TypeError, match=f"{kind} cannot hold the complex number [12]j; pass"):
        make(kind)


def test_bool_conversion_uses_both_parts_of_complex_numbers() -> None:
    assert bool(jnp.asarray(1j, dtype=bool))
    assert jnp.asarray([0j, 1j], dtype=bool).tolist() == [False, True]


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("jnp.zeros", lambda: jnp.zeros(2, "foo")),
        ("jnp.full", lambda: jnp.full(2, 1, 3)),
        ("jnp.array", lambda: jnp.array([1], "foo")),
        ("astype", lambda: jnp.ones(2).astype("foo")),
    ],
)
def test_invalid_dtypes_name_the_function(function: str, call: Any) -> None:
    with pytest.raises(TypeError, match=rf"{function}: .*dtype=.*pass a dtype"):
        call()


@pytest.mark.parametrize("dtype", ["i4,i4", "O", "S2", "U1", "M8[D]", "V3"])
def test_arrays_of_other_dtypes_than_numbers_are_refused(dtype):
    """Also structured arrays and raw bytes, which no operation accepts."""
    for make in (jnp.asarray, jnp.array, lambda x: jnp.add(x, 1)):
        with pytest.raises(TypeError, match="not a valid JAX array type"):
            make(np.zeros(2, dtype))


def test_bfloat16_goes_through_a_file(tmp_path):
    jnp.save(tmp_path / "x.npy", jnp.arange(3, dtype="bfloat16"))
    loaded = jnp.load(tmp_path / "x.npy")
    assert loaded.dtype == "bfloat16"
    assert loaded.tolist() == [0, 1, 2]


def test_integer_linspace_rounds_down():
    """Complex end points use the real part (it used to be truncated); the step has the precision of
    the dtype."""
    with pytest.warns(DeprecationWarning, match="Casting from complex to real"):
        points, step = jnp.linspace(-2.75 + 1j, 3, 4, dtype="int32", retstep=True)
    assert points.tolist() == [-3, -1, 1, 3]
    assert step.dtype == "float32"


def test_linspace_points_are_rounded_from_float64():
    """In float32, 2/5 of the way from -2 to 3 was 2e-16, and a histogram put its zeros into another
    bin."""
    assert float(jnp.linspace(-2.0, 3.0, 11)[4]) == 0.0
    for low, high, count in ((-2, 3, 11), (-1.5, 4.75, 26), (3, -3, 13), (0.125, 7, 30)):
        expected = np.linspace(low, high, count).astype(np.float32)
        np.testing.assert_array_equal(
            jnp.linspace(np.float32(low), np.float32(high), count), expected
        )
    x = np.arange(6).repeat([3, 1, 4, 1, 5, 9])
    np.testing.assert_array_equal(
        jnp.histogram(x, range=(-2, 3))[0], np.histogram(x, range=(-2, 3))[0]
    )


@pytest.mark.parametrize("kind", ["f4", "i2", "c8", "u4", "f2", "f8", "i8"])
def test_arrays_of_the_other_byte_order(kind: str) -> None:
    swapped = np.arange(-2, 4).astype(f">{kind}").reshape(2, 3)
    swapped = np.abs(swapped) if kind[0] == "u" else swapped
    native = swapped.astype(kind)
    with accnp.enable_x64():
        makers: list[Any] = [
            jnp.asarray, jnp.array, accnp.device_put, accnp.jit(lambda x: x),
            accnp.vmap(lambda x: x), lambda x: jnp.zeros(()) + x, lambda x: jnp.zeros_like(x) + x,
            lambda x: jnp.asarray(native, dtype=x.dtype), lambda x: jnp.asarray(x.T).T,
            lambda x: jnp.asarray(list(x)),
        ]  # fmt: skip
        for make in makers:
            converted = np.asarray(make(swapped))
            assert converted.dtype.isnative
            np.testing.assert_array_equal(converted, native)
        assert jnp.asarray(swapped).dtype == native.dtype
        assert jnp.result_type(swapped.dtype) == native.dtype
        assert jnp.zeros(2, swapped.dtype).dtype == native.dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("start", "stop", "num"), [(-3, 5, 777), (0, 1, 1000), (0, 1000, 3001)])
def test_positions_of_16_bits_are_rounded_once(dtype, start, stop, num):
    kind = jnp.dtype(dtype)
    expected = np.linspace(start, stop, num).astype(kind)
    ends = jnp.asarray(start, kind), jnp.asarray(stop, kind)
    for f in (jnp.linspace, accnp.jit(jnp.linspace, static_argnums=2)):
        actual = f(*ends, num)
        assert actual.dtype == kind
        np.testing.assert_array_equal(actual, expected)
    step = (stop - start) / num
    actual = jnp.arange(start, stop, step, dtype=kind)
    np.testing.assert_array_equal(actual, np.arange(start, stop, step).astype(kind))
    wide = jnp.linspace(jnp.float16(-60000), jnp.float16(60000), 5, retstep=True)
    np.testing.assert_array_equal(wide[0], [-60000, -30000, 0, 30000, 60000])
    assert wide[1] == 30000


def test_phases_of_16_bits():
    x = (np.arange(600) * 2.5 % (2 * np.pi)).astype(np.float16)
    expected = np.unwrap(x.astype(np.float32))
    np.testing.assert_allclose(jnp.unwrap(x), expected, rtol=1e-3)


Z = np.array([1 + 2j, 3], np.complex64)
DROPPED = {
    "asarray": lambda m: m.numpy.asarray(m.numpy.asarray(Z), "float32"),
    "array of NumPy's": lambda m: m.numpy.array(Z, np.int32),
    "array of a list": lambda m: m.numpy.array([m.numpy.asarray(Z)], "float32"),
    "in jit": lambda m: m.jit(lambda z: m.numpy.asarray(z, "float16"))(Z),
    "to bools": lambda m: m.numpy.asarray(m.numpy.asarray(Z * 1j), bool),
    "concatenate": lambda m: m.numpy.concatenate([m.numpy.asarray(Z)] * 2, dtype="float32"),
    "full_like": lambda m: m.numpy.full_like(m.numpy.ones(2), m.numpy.asarray(Z)[0]),
    "sum": lambda m: m.numpy.sum(Z, dtype="float32"),
    "prod": lambda m: m.numpy.prod(Z, dtype="int32"),
    "mean": lambda m: m.numpy.mean(Z, dtype="float32"),
    "cumsum": lambda m: m.numpy.cumsum(Z, dtype="float32"),
    "trace": lambda m: m.numpy.trace(Z[:, None] * Z, dtype="float32"),
    "lax.convert_element_type": lambda m: m.lax.convert_element_type(Z, "float32"),
}


@pytest.mark.parametrize("name", DROPPED)
def test_lost_imaginary_parts_are_reported(name: str) -> None:
    results = []
    for m in (accnp, jax):
        with pytest.warns(np.exceptions.ComplexWarning, match="Casting complex values to real"):
            results.append(DROPPED[name](m))
    assert results[0].dtype == results[1].dtype
    np.testing.assert_allclose(*results)
