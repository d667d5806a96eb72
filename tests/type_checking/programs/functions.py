"""Type checkers know the parameters and results of functions and methods."""

from typing import assert_type

import numpy as np

import accnp as jax
import accnp.numpy as jnp
from accnp import Array
from accnp.typing import ArrayLike, DTypeLike

x = jnp.ones(3)

# wrong arguments
jnp.sum(x, axes=0)  # error: reportCallIssue
x.sum(axes=0)  # error: reportCallIssue
jnp.sum("x")  # error: reportArgumentType
jnp.sin(x, x)  # error: reportCallIssue
jnp.sin([1.0])  # error: reportArgumentType
jnp.sin(x=x)  # error: reportCallIssue
jnp.add(x)  # error: reportCallIssue
jnp.max(x, where=x > 0, dtype=int)  # error: reportCallIssue
jnp.mean(x, dtype=3)  # error: reportArgumentType
jnp.cumsum(x, along=0)  # error: reportCallIssue
jnp.nanmax(x, axes=0)  # error: reportCallIssue
jnp.argmax(x, axis="x")  # error: reportArgumentType
jnp.zeros()  # error: reportCallIssue
x.astype()  # error: reportCallIssue
x.at[0].set()  # error: reportCallIssue
x.at[0].nosuch(1)  # error: reportAttributeAccessIssue
jax.random.normal(shape=(3,))  # error: reportCallIssue
jnp.zeros(3, device="cpu")  # error: reportArgumentType
jnp.ones(3, out_sharding=1)  # error: reportArgumentType
jnp.matmul(x, x, precision=3.5)  # error: reportArgumentType
jnp.split(x, None)  # error: reportArgumentType
jnp.concatenate(3)  # error: reportArgumentType
jnp.tensordot(x, x, axes=None)  # error: reportArgumentType
jnp.linalg.norm(x, axis="x")  # error: reportArgumentType
jnp.roll(x, None)  # error: reportArgumentType
x.at[0].add(1.0, mode=3)  # error: reportArgumentType
x.astype(jnp.int32, device="cpu")  # error: reportArgumentType
jax.lax.transpose(x, 0)  # error: reportArgumentType
jax.lax.slice(x, 0, 1)  # error: reportArgumentType
jax.lax.dot_general(x, x, 0)  # error: reportArgumentType
jax.lax.full_like("x", 0.0)  # error: reportArgumentType
jax.nn.softmax(x, axis="x")  # error: reportArgumentType
jax.nn.one_hot(x, 3, dtype=3)  # error: reportArgumentType
jax.random.key("x")  # error: reportArgumentType
jax.scipy.special.softmax(x, axis="x")  # error: reportArgumentType

# right ones, and results
assert_type(jnp.sum(x, axis=(0,), keepdims=True, where=x > 0), Array)
assert_type(jnp.sum(1.0), Array)
assert_type(jnp.prod(np.ones(3), dtype="float32"), Array)
assert_type(jnp.max(x, initial=0), Array)
assert_type(jnp.any(x), Array)
assert_type(jnp.argmin(x, 0), Array)
assert_type(jnp.mean(x, dtype=jnp.float32), Array)
assert_type(jnp.sin(x), Array)
assert_type(jnp.trunc(x=x), Array)
assert_type(jnp.add(x, 1), Array)
assert_type(jnp.fmax(x1=x, x2=2.0), Array)
assert_type(jnp.add.reduce(x, axis=(0,), keepdims=True), Array)
assert_type(jnp.multiply.accumulate(x), Array)
assert_type(jnp.logical_or.outer(x, x > 0), Array)
assert_type(jnp.subtract.at(x, 0, 1.0, inplace=False), Array)
assert_type(jnp.maximum.reduceat(x, jnp.array([0, 2]), axis=0), Array)
assert_type(jnp.negative.at(x, 0, inplace=False), Array)
assert_type(jnp.negative(x), Array)
assert_type(jnp.add.nin, int)
jnp.add.reduce(x, axes=0)  # error: reportCallIssue
assert_type(jnp.divmod(x, 2), tuple[Array, Array])
assert_type(jnp.frexp(x), tuple[Array, Array])
assert_type(jnp.true_divide(x, 2), Array)
assert_type(jnp.where(x > 0, x, 0.0), Array)
assert_type(jnp.where(x > 0), tuple[Array, ...])
assert_type(jnp.float32(3), Array)
assert_type(jnp.concatenate([x, x]), Array)
assert_type(jnp.linspace(0, 1, 5), Array)
assert_type(jnp.matmul(x, x), Array)
assert_type(jnp.clip(x, 0, 1), Array)
assert_type(jnp.asarray([1, 2], dtype=np.float32), Array)
assert_type(jnp.array([[1, 2.0], [x[0], 3]]), Array)
assert_type(jnp.asarray(memoryview(b"ab")), Array)
assert_type(jnp.array([np.ones(2), range(2)]), Array)
assert_type(jnp.zeros(3, device=jax.devices()[0], out_sharding=jax.P("x")), Array)
assert_type(jnp.ones_like(jax.ShapeDtypeStruct((3,), jnp.float32)), Array)
assert_type(jnp.matmul(x, x, precision="highest"), Array)
assert_type(jnp.matmul(x, x, precision=jax.lax.Precision.HIGHEST), Array)
assert_type(jnp.split(x, [1, 2]), list[Array])
assert_type(jnp.stack((x, np.ones(3), 2.0)), Array)
assert_type(jnp.stack(x), Array)
assert_type(jnp.tensordot(x, x, axes=([0], [0])), Array)
assert_type(jnp.roll(x, (1,), axis=(0,)), Array)
assert_type(jnp.delete(x, slice(0, 2)), Array)
assert_type(jnp.interp(x, x, x, left="extrapolate", right=0.0), Array)
assert_type(jax.lax.transpose(x, (0,)), Array)
assert_type(jax.lax.slice(x, [0], [1], [1]), Array)
assert_type(jax.lax.dot_general(x, x, (((0,), (0,)), ([], []))), Array)
assert_type(jax.nn.softmax(x, axis=(0,)), Array)
jax.random.split(jax.random.key(0, impl="threefry2x32"))
jnp.zeros((2, 3), dtype=x.dtype)
jnp.zeros(3, jnp.int32)
jnp.zeros(3, bool)

# results that depend on an option
assert_type(jnp.atleast_2d(x), Array)
assert_type(jnp.atleast_1d(x, 2.0), list[Array])
assert_type(jnp.gradient(x, axis=0), Array)
assert_type(jnp.average(x), Array)
assert_type(jnp.average(x, weights=x, returned=True), tuple[Array, Array])
assert_type(jnp.unique(x), Array)
assert_type(jnp.unique(x, return_counts=True), tuple[Array, ...])
assert_type(jnp.unique(x, True, size=2), tuple[Array, ...])
assert_type(jnp.intersect1d(x, x), Array)
assert_type(jnp.intersect1d(x, x, return_indices=True), tuple[Array, Array, Array])
assert_type(jnp.indices((2, 3)), Array)
assert_type(jnp.indices((2, 3), sparse=True), tuple[Array, ...])
assert_type(jnp.linalg.svd(x).S, Array)
assert_type(jnp.linalg.svd(x, compute_uv=False), Array)
assert_type(jnp.linalg.qr(x).R, Array)
assert_type(jnp.linalg.qr(x, "r"), Array)
assert_type(jax.nn.logsumexp(x, axis=0), Array)
assert_type(jax.scipy.special.logsumexp(x, return_sign=True), tuple[Array, Array])

# functions that are made by others
numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
assert_type(jax.lax.scatter_add(x, jnp.array([[1]]), x[:1], numbers, mode="clip"), Array)
assert_type(jax.lax.reduce_sum(x, (0,), out_sharding=None), Array)
assert_type(jax.lax.cumsum(x, axis=0, reverse=True), Array)
assert_type(jax.lax.argmax(x, 0, jnp.int32), Array)
assert_type(jax.lax.add(x, 1.0), Array)
assert_type(jax.lax.exp(x, accuracy=None), Array)
assert_type(jax.lax.igamma(a=x, x=x), Array)
assert_type(jnp.fft.fft(x, n=4, norm="ortho"), Array)
assert_type(jnp.median(x, axis=(0,)), Array)
assert_type(jnp.quantile(x, 0.5, method="lower"), Array)
assert_type(jax.ops.segment_sum(x, x, num_segments=2), Array)
assert_type(jnp.linalg.solve(x, x), Array)
assert_type(jnp.linalg.eigh(x).eigenvalues, Array)
assert_type(jax.scipy.special.erf(x), Array)
jnp.fft.fft(x, size=3)  # error: reportCallIssue
jnp.fft.fft2(x, s=3)  # error: reportArgumentType
jnp.median(x, axes=0)  # error: reportCallIssue
jnp.percentile(x)  # error: reportCallIssue
jax.ops.segment_max(x)  # error: reportCallIssue
jnp.linalg.cholesky(x, lower=True)  # error: reportCallIssue
jnp.linalg.det(x, x)  # error: reportCallIssue
jax.lax.scatter(x, x, x)  # error: reportCallIssue
jax.lax.reduce_max(x)  # error: reportCallIssue
jax.lax.reduce_max(x, 0)  # error: reportArgumentType
jax.lax.cumsum(x, dim=0)  # error: reportCallIssue
jax.lax.argmin(x, axis=0)  # error: reportCallIssue
jax.lax.add(x)  # error: reportCallIssue
jax.lax.neg(x, x)  # error: reportCallIssue
jax.lax.sin(x, accuracy=1)  # error: reportArgumentType

# settings
with jax.enable_x64(), jax.debug_nans(False), jax.default_matmul_precision("float32"):
    pass
jax.enable_x64("on")  # error: reportArgumentType
jax.default_device()  # error: reportCallIssue

# operators, methods and properties
assert_type(x + 1, Array)
assert_type(2.0 / x, Array)
assert_type(x @ x, Array)
assert_type(-x, Array)
assert_type(x > 0, Array)
assert_type(x[0], Array)
assert_type(list(x), list[Array])
assert_type(x.sum(axis=0), Array)
assert_type(x.reshape(3, 1).T, Array)
assert_type(x.astype(jnp.int32).max(), Array)
assert_type(x.at[0].set(1.0), Array)
assert_type(x.at[1:].add(x[0], mode="drop"), Array)
assert_type(x.at[0].apply(lambda v: v * 2), Array)
assert_type(x.nonzero(size=1), tuple[Array, ...])
assert_type(x.shape, tuple[int, ...])
assert_type(float(x[0]), float)
np.asarray(x)


def scaled(a: ArrayLike, dtype: DTypeLike = jnp.float32) -> Array:
    return 2 * jnp.asarray(a, dtype)


scaled(1)
scaled(np.ones(3), "int32")
scaled(x, np.dtype("f4"))
scaled(None)  # error: reportArgumentType

# functions of SciPy that are made from tables, and results that depend on arguments
jax.scipy.special.erf(x, x)  # error: reportCallIssue
jax.scipy.special.betainc(x, x)  # error: reportCallIssue
jax.scipy.special.polygamma(1, x=x, y=x)  # error: reportCallIssue
jax.scipy.stats.norm.pdf(x, mean=0.0)  # error: reportCallIssue
jax.scipy.stats.norm.pdf("x")  # error: reportArgumentType
print(jax.scipy.stats.norm.nosuch)  # error: reportAttributeAccessIssue
x.reshape("3")  # error: reportArgumentType
assert_type(jax.scipy.special.betainc(x, x, 0.5), Array)
assert_type(jax.scipy.stats.norm.cdf(x, 0.0, scale=2.0), Array)
assert_type(jax.scipy.stats.gamma.logpdf(x, 2.0), Array)
assert_type(jax.scipy.stats.poisson.pmf(1, 2.0), Array)
assert_type(jax.scipy.linalg.svd(x), tuple[Array, Array, Array])
assert_type(jax.scipy.linalg.svd(x, compute_uv=False), Array)
assert_type(jax.scipy.linalg.eigh(x), tuple[Array, Array])
assert_type(jax.scipy.linalg.eigh(x, eigvals_only=True), Array)
assert_type(jax.scipy.linalg.eigh_tridiagonal(x, x, eigvals_only=True), Array)
assert_type(jax.scipy.linalg.hessenberg(x, calc_q=True), tuple[Array, Array])
assert_type(jax.scipy.linalg.expm_frechet(x, x), tuple[Array, Array])
assert_type(jax.scipy.linalg.funm(x, jnp.sin), Array)
assert_type(jax.lax.linalg.svd(x, compute_uv=False), Array)
assert_type(jax.lax.sort(x), Array)
assert_type(jax.lax.sort((x, x), num_keys=2), tuple[Array, ...])
assert_type(x.reshape((3, 1)), Array)
assert_type(x.transpose(0), Array)
