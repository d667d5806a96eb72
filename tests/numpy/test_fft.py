"""Fourier transforms compared with JAX: values, dtypes, shapes, errors, derivatives, batches,
jaxprs.
"""

# ruff: noqa: B023 (what jax is asked is asked at once)
import zlib

import jax
import jax.numpy as J
import numpy as np
import pytest
from api.oracle import jax_result

import accnp as jnp
from accnp import lax
from accnp.config import config
from accnp.ir.op import OPS

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
REAL = {"rfft", "ihfft", "rfft2", "rfftn"}
RNG = np.random.default_rng(0)


def numbers(shape, dtype):
    rng = np.random.default_rng(zlib.crc32(repr((shape, np.dtype(dtype).str)).encode()))
    x = rng.normal(size=shape) * 4
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def same(actual, ask, tol=2e-5):
    """Compare with JAX's result, which is stored under the source of `ask` and its closure."""
    expected = jax_result(ask, ask, [c.cell_contents for c in ask.__closure__ or ()])
    assert (actual.dtype, actual.shape, actual.weak_type) == (
        expected.dtype,
        expected.shape,
        expected.weak_type,
    )
    scale = max(1.0, float(np.abs(np.asarray(expected)).max(initial=0)))
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), atol=tol * scale)


WAYS = [
    {}, {"axis": 1, "n": 9}, {"n": 3, "axis": -2, "norm": "backward"}, {"norm": "ortho"},
    {"norm": "forward", "n": 4},
]  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_one_axis(name):
    x = numbers((3, 6, 5), "f4" if name in REAL else "c8")
    ours, theirs = getattr(jnp.fft, name), getattr(J.fft, name)
    for kw in WAYS:
        same(ours(x, **kw), lambda: theirs(x, **kw))


@pytest.mark.parametrize("name", ONE)
def test_dtypes(name):
    ours, theirs = getattr(jnp.fft, name), getattr(J.fft, name)
    for dtype in ("f4", "i4", "?", "u1") if name in REAL else ("f4", "f2", "i4", "?", "u1"):
        x = numbers(6, dtype)
        same(ours(x), lambda: theirs(x))
        same(jnp.jit(ours)(x), lambda: theirs(x))


@pytest.mark.parametrize("name", TWO + MANY)
def test_several_axes(name):
    x = numbers((3, 6, 5), "f4" if name in REAL else "c8")
    ours, theirs = getattr(jnp.fft, name), getattr(J.fft, name)
    for kw in ({}, {"s": (4, 8)}, {"s": (7, 3), "axes": (0, 2)}, {"axes": (1, 0), "norm": "ortho"},
               {"axes": (-1, -3), "norm": "forward"}):  # fmt: skip
        same(ours(x, **kw), lambda: theirs(x, **kw))


def test_degenerate_shapes():
    for shape in ((0,), (0, 4), (1,)):
        x = np.zeros(shape, "f4")
        same(jnp.fft.fft(x), lambda: J.fft.fft(x))
    same(jnp.fft.irfft(np.ones(1, "f4")), lambda: J.fft.irfft(np.ones(1, "f4")))
    same(jnp.fft.fftn(np.float32(3)), lambda: J.fft.fftn(np.float32(3)))
    same(
        jnp.fft.fftn(np.ones((2, 3), "f4"), axes=()),
        lambda: J.fft.fftn(np.ones((2, 3), "f4"), axes=()),
    )
    same(lax.fft(np.ones(3, "f4"), "rfft", ()), lambda: jax.lax.fft(np.ones(3, "f4"), "rfft", ()))


def test_double_precision():
    x = RNG.normal(size=64)
    with jnp.enable_x64(True):
        actual = jnp.fft.fft(x)
        assert actual.dtype == np.complex128
        np.testing.assert_allclose(actual, np.fft.fft(x), atol=1e-13)
        np.testing.assert_allclose(jnp.fft.irfft(jnp.fft.rfft(x)), x, atol=1e-14)
        np.testing.assert_allclose(jnp.fft.fftfreq(9, 0.3), np.fft.fftfreq(9, 0.3), rtol=1e-15)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [5, 6])
def test_derivatives(name, n):
    x = numbers((2, n), "f4" if name in REAL else "c8")

    def loss(m, x):
        y = getattr(m.fft, name)(x)
        return (m.abs(y) ** 2 * m.arange(1.0, y.shape[-1] + 1)).sum()

    same(jnp.grad(lambda x: loss(jnp, x))(x), lambda: jax.grad(lambda x: loss(J, x))(x), 1e-4)
    t = numbers(x.shape, x.dtype)
    tangent = jnp.jvp(lambda x: getattr(jnp.fft, name)(x), (x,), (t,))[1]
    same(tangent, lambda: getattr(J.fft, name)(t))


def test_derivative_of_a_complex_transform_of_real_numbers():
    x = numbers((4, 6), "f4")
    w = numbers((4, 6), "c8")
    f = lambda m, x: m.abs(m.fft.fft2(x) * w).sum()  # noqa: E731
    same(jnp.grad(lambda x: f(jnp, x))(x), lambda: jax.grad(lambda x: f(J, x))(x), 1e-4)
    same(jnp.grad(jnp.jit(lambda x: f(jnp, x)))(x), lambda: jax.grad(lambda x: f(J, x))(x), 1e-4)


def test_batches():
    x = numbers((3, 4, 6), "c8")
    for axis in (0, 1, 2):
        actual = jnp.vmap(lambda v: jnp.fft.fft(v, axis=0), in_axes=axis)(x)
        same(actual, lambda: jax.vmap(lambda v: J.fft.fft(v, axis=0), in_axes=axis)(x))


def test_results_do_not_depend_on_jit_or_threads():
    x = numbers((64, 2048), "f4")
    eager = np.asarray(jnp.fft.fft(x))
    assert np.array_equal(eager, np.asarray(jnp.jit(jnp.fft.fft)(x)))
    before = config.threads
    try:
        config.update("threads", 1)
        assert np.array_equal(eager, np.asarray(jnp.fft.fft(x)))
    finally:
        config.update("threads", before)


MIRRORED = [
    ((7,), 1), ((8,), 1), ((1,), 1), ((2, 1, 1), 3), ((3, 5, 6), 2), ((4, 3, 8), 3), ((2, 9001), 1),
    ((9002,), 1), ((3, 40, 512), 2), ((5, 1, 3, 4), 2),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axes"), MIRRORED)
def test_transforms_of_real_numbers_are_mirrored(shape, axes):
    x = RNG.integers(-1, 2, size=shape).astype("f4")  # many zeros in the result
    axes = tuple(range(-axes, 0))
    for f in (jnp.fft.fftn, jax.jit(J.fft.fftn, static_argnames="axes")):
        y = np.asarray(f(x, axes=axes))
        expected = np.fft.fftn(x.astype("f8"), axes=axes)
        np.testing.assert_allclose(y, expected, atol=2e-6 * np.abs(expected).max())
        assert not np.signbit(y.imag[y.imag == 0]).any()


def test_the_mirrored_half_is_a_kernel():
    x = numbers((3, 4, 10), "f4")
    text = str(jnp.inspect(lambda x: jnp.fft.fft2(x))(x))
    assert "fft_mirror" in text
    assert "no kernel: fft is" in text
    half = np.fft.rfft2(x).astype("c8")
    expected = np.fft.fft2(x)
    actual = OPS["fft_mirror"].numpy(half, fft_lengths=(4, 10))
    np.testing.assert_allclose(actual, expected, atol=1e-4)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_threads_share_examples(name):
    x = jnp.asarray(numbers((3, 300, 512), "f4" if name == "rfft" else "c8"))
    results = []
    for n in (1, 2, 3):
        with jnp.threads(n):
            results.append(np.asarray(getattr(jnp.fft, name)(x)))
    assert all(np.array_equal(results[0], other) for other in results[1:])
    expected = getattr(np.fft, name)(np.asarray(x))
    np.testing.assert_allclose(results[0], expected, atol=2e-6 * np.abs(expected).max())


LARGE = [
    ((1026, 514), 2), ((2, 771, 1024), 2), ((37, 99, 130), 2), ((90, 100, 101), 3), ((5, 60000), 1),
    ((1 << 19,), 1),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axes"), LARGE)
@pytest.mark.parametrize("name", MANY)
def test_large_transforms_in_parts(name, shape, axes):
    """The numbers of rows are not multiples of a vector; libraries may round the remaining rows
    differently."""
    x = jnp.asarray(numbers(shape, "f4" if name == "rfftn" else "c8"))
    axes = tuple(range(-axes, 0))
    results = []
    for n in (1, 2, 3):
        with jnp.threads(n):
            results.append(np.asarray(getattr(jnp.fft, name)(x, axes=axes)))
    assert all(np.array_equal(results[0], other) for other in results[1:])
    expected = getattr(np.fft, name)(np.asarray(x), axes=axes)
    np.testing.assert_allclose(results[0], expected, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("length", [300_000, 500_000])
def test_large_inverse_transforms_truncate_or_pad(length):
    x = numbers(200_001, "c8")
    actual = np.asarray(lax.fft(jnp.asarray(x), "IRFFT", (length,)))
    expected = np.fft.irfft(x, length)
    np.testing.assert_allclose(actual, expected, atol=2e-6 * np.abs(expected).max())


def test_large_inverses_of_real_numbers():
    x = numbers((1025, 515), "f4")
    actual = np.asarray(lax.fft(jnp.asarray(x), "IFFT", x.shape))
    expected = np.fft.ifft2(x)
    np.testing.assert_allclose(actual, expected, atol=2e-6 * np.abs(expected).max())


def test_frequencies_and_shifts():
    for n in (1, 2, 5, 8):
        for kw in ({}, {"d": 0.25}, {"dtype": "f2"}, {"dtype": "c8"}):
            same(jnp.fft.fftfreq(n, **kw), lambda: J.fft.fftfreq(n, **kw))
            same(jnp.fft.rfftfreq(n, **kw), lambda: J.fft.rfftfreq(n, **kw))
    same(jnp.fft.fftfreq(5, dtype="i4"), lambda: J.fft.fftfreq(5, dtype="i4"))
    x = numbers((4, 5), "f4")
    for axes in (None, 0, -1, (0, 1), (1,)):
        same(jnp.fft.fftshift(x, axes), lambda: J.fft.fftshift(x, axes))
        same(jnp.fft.ifftshift(x, axes), lambda: J.fft.ifftshift(x, axes))


ERRORS = [
    "m.fft.fft(z(4), axis=1)", "m.fft.fft(z(4), norm='x')", "m.fft.fft(z(4), n=0)",
    "m.fft.rfft(z(4, 'c8'))", "m.fft.rfft(z(4, 'f2'))", "m.fft.fft([1, 2.])",
    "m.fft.fft2(z((3, 3)), axes=(0,))", "m.fft.fftn(z((3, 3)), axes=(0, 0))",
    "m.fft.fftn(z((3, 3)), s=(2,), axes=(0, 1))", "lax.fft(z((3, 3)), 'FFT', (4,))",
    "lax.fft(z(3), 'FFT', (3, 3))", "lax.fft(z(3), 'X', (3,))", "lax.fft(z(3), 2.5, (3,))",
    "m.fft.fft(z(4), axis=(0,))", "m.fft.fftfreq([3])", "m.fft.fftfreq(3, d=[1.])",
    "m.fft.rfftfreq([3])", "m.fft.ihfft(z(4, 'c8'))", "lax.fft(z((3, 3), 'c8'), 'IRFFT', (4, 4))",
]  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    z = lambda shape, dtype="f4": np.zeros(shape, dtype)  # noqa: E731
    with pytest.raises(Exception) as jax_error:  # noqa: PT011
        eval(text, {"m": J, "lax": jax.lax, "z": z})
    with pytest.raises(type(jax_error.value)):
        eval(text, {"m": jnp, "lax": lax, "z": z})


def test_jaxpr_matches_jax():
    x = np.ones((4, 6), "f4")
    for name in ("fft", "rfft", "ifft2", "irfft"):
        jaxpr = str(jnp.make_jaxpr(getattr(jnp.fft, name))(x))
        assert jaxpr == str(jax.make_jaxpr(getattr(J.fft, name))(x))


def test_every_name_exists():
    assert set(jnp.fft.__all__) == {n for n in dir(J.fft) if not n.startswith("_")}


def test_the_median_of_spectra_keeps_the_dtype():
    x = np.sin(np.arange(40, dtype=np.float32))
    with jnp.enable_x64():
        assert jnp.scipy.signal.welch(x, nperseg=8, average="median")[1].dtype == "float32"
        assert jnp.scipy.signal.csd(x, x, nperseg=8, average="median")[1].dtype == "complex64"


@pytest.mark.parametrize("n", [np.arange(3), 2.5, "8"])
def test_the_number_of_samples_is_an_integer(n):
    for frequencies in (jnp.fft.fftfreq, jnp.fft.rfftfreq):
        with pytest.raises(TypeError, match=r"integer as the number of samples; got .*; convert"):
            frequencies(n)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")  # of jax itself
def test_integer_frequencies_are_truncated_as_in_jax():
    for d in (1.0, 0.1):
        frequencies = jnp.fft.fftfreq(8, d, dtype=int)
        assert frequencies.tolist() == jax.numpy.fft.fftfreq(8, d, dtype=int).tolist()
