"""Large factorizations and linear systems by cuSOLVER and cuBLAS, single and batched, compared with
the CPU. Loops call the functions by address, without Python.
"""

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from cuda.support import check_no_python

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.compiler.library.linalg import block_factors, large_factors
from accnp.engine import device_factors, device_table
from accnp.runtime.device_buffer import driver_of

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Use no block kernels, and treat matrices of more than 5 rows as large."""
    monkeypatch.setattr(block_factors, "CLASSES", ())
    monkeypatch.setattr(device_factors, "MAX_SMALL_SYSTEM", 5)


def draw(*shape, dtype="f4"):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def positive(*shape, dtype="f4"):
    x = draw(*shape, dtype=dtype)
    return (x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def compare(f: Callable[..., object], *args, close=1e-5, gpu=None, calls=None):
    """Compare a function on the GPU with the CPU, and check that Python calls nothing."""
    gpu = gpu or jax.devices("gpu")[0]
    with jax.enable_x64(any(x.dtype.itemsize // (1 + (x.dtype.kind == "c")) > 4 for x in args)):
        expected = jax.tree.leaves(jax.jit(f)(*map(jnp.asarray, args)))
        counts = getattr(driver_of(gpu), "calls", {})
        before = Counter(counts)
        actual = jax.block_until_ready(jax.tree.leaves(jax.jit(f)(*jax.device_put(args, gpu))))
        new_calls = Counter(counts) - before
    if counts:
        assert not {"call", "copy_out"} & {*new_calls}
        assert calls is None or {k: new_calls[k] for k in new_calls if "?" in k} == calls
    for a, b in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        scale = np.nanmax(np.abs(np.where(np.isfinite(b), b, 0)), initial=1)
        np.testing.assert_allclose(a, b, rtol=0, atol=close * scale)


SHAPES = {"one": (7, 7), "few": (2, 3, 7, 7), "a stack": (3, 4, 4)}


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("which", SHAPES)
def test_types_and_stacks(gpu, which, dtype):
    shape, close = SHAPES[which], 1e-5 if dtype in ("f4", "c8") else 1e-13
    a, b = positive(*shape, dtype=dtype), draw(*shape[:-1], 3, dtype=dtype)
    count, stack = int(np.prod(shape[:-2])), which == "a stack"
    form, times = "Batched" if stack else "", 1 if stack else count
    calls = {f"cusolverDn?potrf{form}": times}
    compare(jnp.linalg.cholesky, a, close=close, gpu=gpu, calls=calls)
    lu = {"cublas?getrfBatched" if stack else "cusolverDn?getrf": times}
    a = draw(*shape, dtype=dtype)
    compare(lax.linalg.lu, a, close=close, gpu=gpu, calls=lu)
    compare(jnp.linalg.det, a, close=close, gpu=gpu, calls=lu)
    compare(jnp.linalg.slogdet, a, close=close, gpu=gpu, calls=lu)
    solve = lu | {"cublas?getrsBatched" if stack else "cusolverDn?getrs": times}
    compare(jnp.linalg.solve, a, b, close=10 * close, gpu=gpu, calls=solve)
    compare(jnp.linalg.inv, a, close=10 * close, gpu=gpu, calls=solve)
    compare(lambda a, b: jnp.linalg.solve(a, b[..., :1]), a, b, close=10 * close, gpu=gpu)


@pytest.mark.parametrize("which", SHAPES)
@pytest.mark.parametrize("layout", ["by rows", "by columns", "with gaps", "one for all"])
def test_triangles(gpu, which, layout):
    dtype = "f4" if (which, layout) == ("one", "by rows") else "c8"
    shape = SHAPES[which]
    a, b = draw(*shape, dtype=dtype), draw(*shape[:-1], 3, dtype=dtype)
    a = a / 9 + 2 * np.eye(shape[-1], dtype=dtype)
    lay = {
        "by rows": lambda a: a,
        "by columns": lambda a: a.swapaxes(-1, -2),
        "with gaps": lambda a: jnp.repeat(a, 2, -1)[..., ::2],
        "one for all": lambda a: jnp.broadcast_to(a.reshape(-1, *a.shape[-2:])[0], a.shape),
    }[layout]
    names = "left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"

    def f(a, b):
        solutions = []
        for how in itertools.product([False, True], repeat=5):
            right = b if how[0] else b.swapaxes(-1, -2)
            solutions.append(
                lax.linalg.triangular_solve(lay(a), right, **dict(zip(names, how, strict=True)))
            )
        return solutions

    compare(f, a, b, gpu=gpu)


def test_cholesky_of_indefinite_matrix_is_nan(gpu):
    a = positive(4, 7, 7)
    a[1] -= 40 * np.eye(7, dtype="f4")
    a[2, 3, 1] = np.nan
    a[3, 1, 3] = np.nan  # the upper triangle is not looked at

    def f(x):
        return lax.linalg.cholesky(x, symmetrize_input=False)

    for shape in (a, a[:, :4, :4].copy()):
        actual = np.asarray(jax.jit(f)(jax.device_put(shape, gpu)))
        expected = np.linalg.cholesky(positive_part(shape))
        np.testing.assert_allclose(actual[[0, 3]], expected[[0, 3]], atol=1e-5)
        lower = np.tril(np.ones(shape.shape[1:], bool))
        assert np.isnan(actual[2][lower]).all()
        assert (actual[2][~lower] == 0).all()
        if len(lower) == 7:
            assert np.isnan(actual[1][lower]).all()


def positive_part(x):
    x = np.tril(x) + np.tril(x, -1).swapaxes(-1, -2)
    return np.where(np.isin(np.arange(len(x)), [0, 3])[:, None, None], x, np.eye(x.shape[-1]))


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (2, 7, 3), (2, 2, 2, 3)])
@pytest.mark.parametrize("room", [6000, 3])
def test_matrices_that_are_not_square(gpu, shape, room, monkeypatch):
    monkeypatch.setattr(large_factors, "SHARED", room)
    compare(lax.linalg.lu, draw(*shape), gpu=gpu)
    compare(lambda a: lax.linalg.lu(a)[2], draw(*shape), gpu=gpu)


def test_singular_matrices(gpu):
    a = draw(7, 7)
    a[3] = a[:, 2] = 0
    for f in (jnp.linalg.det, jnp.linalg.slogdet):
        compare(f, a, gpu=gpu)
    x = jax.jit(jnp.linalg.solve)(*jax.device_put((a, draw(7, 2)), gpu))
    assert not np.isfinite(np.asarray(x)).all()


def test_gradients_and_vmap(gpu):
    a, b = positive(7, 7), draw(7)

    def loss(a, b):
        low = jnp.linalg.cholesky(a)
        x = jax.scipy.linalg.cho_solve((low, True), b)
        return (x * b).sum() + jnp.linalg.slogdet(a)[1] + jnp.linalg.solve(a + 1, b)[0]

    compare(jax.value_and_grad(loss, (0, 1)), a, b, gpu=gpu, close=1e-4)
    compare(jax.vmap(loss), positive(6, 4, 4), draw(6, 4), gpu=gpu, close=1e-4)


def test_loops_run_without_python(fake):
    a, b = positive(7, 7), draw(7, 2)

    def f(a, b):
        def body(c, _):
            a, x = c
            low = jnp.linalg.cholesky(a)
            x = lax.linalg.triangular_solve(low, x, left_side=True, lower=True)
            x = jnp.linalg.solve(a, x) + jnp.linalg.det(a / 9)
            packed, pivots, order = lax.linalg.lu(a)
            return (a + jnp.abs(packed).sum() / 99 * jnp.eye(7), x), (pivots.sum(), order[0])

        (_, x), rest = lax.scan(body, (a, b), None, 3)
        small = lax.while_loop(lambda c: c.sum() > 1, lambda c: jnp.linalg.solve(a, c), x)
        return x, rest, lax.cond(x.sum() > 0, jnp.linalg.inv, jnp.linalg.cholesky, a), small

    check_no_python(fake, f, (a, b))
    text = str(jax.inspect(jax.jit(f))(*jax.device_put((a, b), jax.devices("gpu")[0])))
    assert "cusolverDnSpotrf of the GPU's library" in text
    assert "by machine code" in text
    assert "Python, since" not in text


@pytest.mark.parametrize("which", ["one", "a stack"])
def test_steps_run_in_order(fake, monkeypatch, which):
    monkeypatch.setattr(device_table, "LARGE", 0)  # plans that hold much are no table
    shape = SHAPES[which]
    a, b = positive(*shape), draw(*shape[:-1], 2)
    for f in (jnp.linalg.cholesky, lax.linalg.lu, jnp.linalg.slogdet):
        compare(f, a)
    compare(lambda a, b: jnp.linalg.solve(a, b) + 1, a, b)
    compare(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True), a, b)
    assert "launch from a table" not in fake.calls


def test_workspace_is_queried_once_per_plan(fake):
    (gpu,) = jax.devices("gpu")
    f, a = jax.jit(lambda a: jnp.linalg.cholesky(a)), jax.device_put(positive(7, 7), gpu)
    for _ in range(3):
        f(a).block_until_ready()
    assert fake.solver_functions.queries == [("cusolverDn?potrf", "S", 1, 7)]
    assert fake.calls["cusolverDn?potrf"] == 3


@pytest.mark.parametrize("room", [6000, 3])
def test_pivots_out_of_range_are_ignored(fake, room, monkeypatch):
    """Libraries may return such pivots for columns that are NaN."""
    monkeypatch.setattr(large_factors, "SHARED", room)
    getrf = fake.solver_functions._getrf

    def strange(t, m, n, a, lda, w, p, info):
        getrf(t, m, n, a, lda, w, p, info)
        fake.solver_functions._ints(p, 4)[:] = 3, 0, m + 1, 1 << 30

    monkeypatch.setattr(fake.solver_functions, "_getrf", strange)
    a = jax.device_put(draw(7, 4), jax.devices("gpu")[0])
    assert lax.linalg.lu(a)[2].tolist() == [2, 1, 0, 3, 4, 5, 6]


def test_failure_names_a_workaround(fake, monkeypatch):
    monkeypatch.setattr(fake.solver_functions, "_potrf", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jnp.linalg.cholesky(jax.device_put(positive(7, 7), jax.devices("gpu")[0])).sum().item()


def test_missing_functions_fall_back_to_cupy(fake):
    fake.solver_functions = None
    (gpu,) = jax.devices("gpu")
    a = positive(7, 7)
    actual = jax.jit(jnp.linalg.cholesky)(jax.device_put(a, gpu))
    np.testing.assert_allclose(actual, np.linalg.cholesky(a), atol=1e-5)
    assert fake.calls["call"] == 1
