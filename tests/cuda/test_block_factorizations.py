"""Factorizations and linear systems by accnp's GPU kernels, one thread block per matrix, compared
with the CPU. Machine code launches them in loops.
"""

import warnings

import numpy as np
import pytest
import scipy.linalg
from cuda.support import check_no_python

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.runtime.device_buffer import driver_of

RNG = np.random.default_rng(0)


def normal(*shape, dtype="f4"):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def well_conditioned(*shape, dtype="f4"):
    return normal(*shape, dtype=dtype) + 5 * np.eye(shape[-1], dtype=dtype)


def positive_definite(*shape, dtype="f4"):
    x = normal(*shape, dtype=dtype)
    return x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


def assert_close(actual, expected):
    expected = np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, expected)
        return
    bound = 100 * np.finfo(expected.dtype).eps * np.nanmax(np.abs(expected), initial=0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


def put_on_gpu(x):
    return jax.device_put(x, jax.devices("gpu")[0])


def check(gpu, f, *args):
    """Compare a function on the GPU with the CPU. It must neither call a library nor run on the
    host.
    """
    expected = jax.tree.leaves(f(*map(jnp.asarray, args)))
    calls = getattr(driver_of(gpu), "calls", {})  # a fake one counts
    calls.clear()
    actual = jax.block_until_ready(jax.tree.leaves(jax.jit(f)(*jax.device_put(args, gpu))))
    assert not {"call", "copy_out"} & {*calls}
    for a, b in zip(actual, expected, strict=True):
        assert_close(a, b)


def systems(a, b, wide):
    how = dict(left_side=True, lower=True)
    solve = lax.linalg.triangular_solve
    return [
        solve(a, b, left_side=True, lower=False, unit_diagonal=True),
        solve(a, b, **how, transpose_a=True, conjugate_a=True),
        solve(a, b.mT, left_side=False, lower=True),
        solve(a, b.mT, left_side=False, lower=False, transpose_a=True, conjugate_a=True),
        jnp.linalg.solve(a.mT, b),
        jnp.linalg.solve(a, wide),  # two tiles of right sides
    ]


def factors(a):
    return [
        lax.linalg.lu(a), lax.linalg.lu(a[:, :3]), jnp.linalg.qr(a), jnp.linalg.qr(a[:, :5]),
        jnp.linalg.qr(a[:, :, :5], mode="complete"), jnp.linalg.slogdet(a),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_values(gpu, dtype):
    with jax.enable_x64(dtype == "c16"):
        # Five: a fake GPU has four blocks at most, one of which has to do two then.
        a, b = well_conditioned(5, 9, 9, dtype=dtype), normal(5, 9, 2, dtype=dtype)
        check(gpu, jnp.linalg.cholesky, positive_definite(5, 9, 9, dtype=dtype).swapaxes(1, 2))
        check(gpu, systems, a, b, normal(5, 9, 37, dtype=dtype))
        check(gpu, factors, a)


def test_more_rows_than_a_warp_has_lanes(gpu):
    check(gpu, jnp.linalg.cholesky, positive_definite(70, 70))
    check(gpu, jnp.linalg.inv, well_conditioned(45, 45) + normal(45, 45))
    check(gpu, jnp.linalg.qr, normal(50, 40))


def test_matrices_without_factorization(gpu):
    a = positive_definite(2, 4, 4)
    a[1, 2, 2] = -1
    check(gpu, lax.linalg.cholesky, a)
    singular = np.ones((3, 3), "f4")
    check(gpu, lambda a: [jnp.linalg.det(a), lax.linalg.lu(a)[0], jnp.linalg.qr(0 * a)], singular)


@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_eigenvalues(gpu, dtype):
    with jax.enable_x64(dtype == "c16"):
        getattr(driver_of(gpu), "calls", {}).clear()
        a = normal(5, 5, 5, dtype=dtype)
        a = a + a.conj().swapaxes(1, 2)
        lower = np.tril(a) + np.triu(normal(5, 5, dtype=dtype), 1)  # the other half is not read
        for x, how in ((lower, {"lower": True}), (lower.swapaxes(1, 2).conj(), {"lower": False})):
            v, w = lax.linalg.eigh(put_on_gpu(x), symmetrize_input=False, **how)
            assert_close(w, np.linalg.eigvalsh(a))
            assert_close(a @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None])
            assert_close(np.asarray(v).conj().swapaxes(1, 2) @ v, np.eye(5, dtype=dtype) + 0 * a)
        x = np.stack([np.ones((5, 5)), np.zeros((5, 5)), 1e-30 * a[0], np.full((5, 5), np.nan)])
        v, w = lax.linalg.eigh(put_on_gpu(x.astype(dtype)), symmetrize_input=False)
        for eigenvalues, one in zip(w[:3], x, strict=False):
            assert_close(eigenvalues, np.linalg.eigvalsh(one).astype(w.dtype))
        assert jnp.isnan(v[3]).all()
        assert jnp.isnan(w[3]).all()
        assert "call" not in getattr(driver_of(gpu), "calls", {})


@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_singular_values(gpu, dtype):
    calls = getattr(driver_of(gpu), "calls", {})
    calls.clear()
    with jax.enable_x64(dtype == "c16"):
        tall, low = normal(5, 7, 4, dtype=dtype), normal(3, 6, dtype=dtype)
        special = [low.conj().T @ low, np.ones((6, 6)), np.zeros((6, 6)), 1e-30 * np.eye(6)[::-1]]
        special = np.stack([*special, np.full((6, 6), np.nan)]).astype(dtype)  # of low rank, mostly
        every = (tall.swapaxes(1, 2), True), (tall, False), (tall, True), (special, True)
        for a, full in every if dtype == "f4" else every[:1]:  # compiling takes its time
            u, s, vh = map(np.asarray, jnp.linalg.svd(put_on_gpu(a), full_matrices=full))
            assert np.isnan(s[-1]).all() == np.isnan(u[-1]).all() == np.isnan(vh[-1]).all()
            u, s, vh, a = (x[:4] for x in (u, s, vh, a))
            k = s.shape[-1]
            assert_close(s, np.linalg.svd(a, compute_uv=False))
            assert_close((u[..., :k] * s[:, None]) @ vh[:, :k], a)
            for x in (u, vh.conj().swapaxes(1, 2)):
                eye = np.eye(x.shape[-1], dtype=dtype)
                assert_close(x.conj().swapaxes(1, 2) @ x, np.broadcast_to(eye, (4, *eye.shape)))
        if dtype == "f4":
            assert_close(
                jnp.linalg.svdvals(put_on_gpu(tall)), np.linalg.svd(tall, compute_uv=False)
            )
            rank = jnp.linalg.matrix_rank(put_on_gpu(special[:4]))
            np.testing.assert_array_equal(rank, [3, 1, 0, 6])
    assert "call" not in calls


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_large_matrices_use_the_gpu_library(fake, dtype):
    n = 112 if dtype == "f4" else 80
    host = positive_definite(n, n, dtype=dtype) / (2 * n)
    a = jax.device_put(host, jax.devices("gpu")[0])
    by_address = {jnp.linalg.cholesky: ["potrf"], jnp.linalg.inv: ["getrf", "getrs"]}
    every = {**by_address, jnp.linalg.qr: [], jnp.linalg.eigh: []}
    for f, names in every.items() if dtype == "f4" else ():
        fake.calls.clear()
        jax.block_until_ready(jax.jit(f)(a))
        assert fake.calls.get("call", 0) == (not names)
        assert [name for name in fake.calls if "?" in name] == [f"cusolverDn?{x}" for x in names]
    fake.calls.clear()
    actual = jax.jit(lambda a: [jnp.linalg.det(a), *jnp.linalg.slogdet(jnp.stack([a, -a]))])(a)
    assert fake.calls["cusolverDn?getrf"] == fake.calls["cublas?getrfBatched"] == 1
    assert not {"call", "copy_out"} & {*fake.calls}
    expected = [np.linalg.det(host), *np.linalg.slogdet(np.stack([host, -host]))]
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_large_lu(fake, dtype):
    n = 112 if dtype == "f4" else 80  # one more than a block holds, or so
    whole = normal(2, n, n + 3, dtype=dtype)
    for host in (whole, whole[0].T, np.ones((n, n), dtype)):
        a = jax.device_put(host, jax.devices("gpu")[0])
        fake.calls.clear()
        packed, pivots, order = jax.block_until_ready(jax.jit(lax.linalg.lu)(a))
        assert fake.calls["cusolverDn?getrf"] == len(host.reshape(-1, *host.shape[-2:]))
        assert not {"call", "copy_out"} & {*fake.calls}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy's, of the last one
            expected = scipy.linalg.lu_factor(host)
        assert_close(packed, expected[0])
        assert_close(pivots, expected[1])
        low = np.tril(packed, -1)[..., : min(host.shape[-2:])]
        low += np.eye(*low.shape[-2:], dtype=dtype)
        assert_close(
            low @ np.triu(packed)[..., : low.shape[-1], :],
            np.take_along_axis(host, np.asarray(order)[..., None], -2),
        )


def kalman(x, rows):
    """A Kalman filter: products, a factorization and linear systems in each step."""
    turn, seen = jnp.eye(6) * 0.9, jnp.ones((2, 6)).at[1, ::2].set(-1)

    def step(c, row):
        mean, spread = c
        mean, spread = turn @ mean, turn @ spread @ turn.T + jnp.eye(6)
        root = jax.scipy.linalg.cho_factor(seen @ spread @ seen.T + jnp.eye(2), lower=True)
        gain = jax.scipy.linalg.cho_solve(root, seen @ spread).T
        return (mean + gain @ (row - seen @ mean), spread - gain @ seen @ spread), mean

    return lax.scan(step, (x, jnp.eye(6)), rows)


def newton_steps(a, x):
    """Newton's method: a linear system in each step, and a branch with another factorization."""

    def step(i, x):
        x = lax.cond(i % 2 == 0, lambda x: x + 1, lambda x: jnp.linalg.qr(a)[0] @ x, x)
        return x - jnp.linalg.solve(a + jnp.diag(x), a @ x - 1)

    return lax.fori_loop(0, 4, step, x)


def least_squares(a, b):
    """Least squares, inverses and norms by singular values."""

    def step(i, c):
        x = jnp.linalg.lstsq(a, b + c[:7])[0]
        return 0.1 * (jnp.linalg.pinv(a).T @ x) / jnp.linalg.norm(a * (i + 1), 2)

    return lax.fori_loop(0, 3, step, jnp.zeros(7))


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (kalman, (normal(6), normal(5, 2))),
        (newton_steps, (well_conditioned(9, 9), normal(9))),
        (least_squares, (normal(7, 4), normal(7))),
    ],
    ids=["scan", "fori", "singular values"],
)
def test_factorization_loops_run_without_python(fake, f, args):
    check_no_python(fake, f, args)
