"""Samplers of vectors and matrices: multivariate normal vectors and orthogonal matrices."""

from __future__ import annotations

from accnp.api.arguments.convert import broadcast_shapes, promote_inexact
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_int, as_shape
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, Shape, ShardingLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import UnsupportedDtypeError, api_boundary, not_one_of
from accnp.ir.op import o
from accnp.lax.linalg import factorizations as lax_linalg
from accnp.numpy import ufuncs as uf
from accnp.numpy.linalg.decompositions import cholesky, eigh, svd
from accnp.numpy.manipulation import expand_node, transpose_node
from accnp.numpy.products import matmul
from accnp.primitives.decompositions import diagonal_of
from accnp.random.basic_samplers import normal, normal_node
from accnp.random.keys import float_dtype, inexact_dtype, key_words
from accnp.sharding.device_placement import with_out_sharding

__all__ = ["multivariate_normal", "orthogonal"]


@api_boundary
@broadcasts_inside
@compiled_if_small("key", "mean", "cov")
@with_out_sharding
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample normally distributed vectors with a given covariance.

    Parameters
    ----------
    {key}
    mean : array_like
        Means, of shape (..., n).
    cov : array_like
        Covariance matrices, of shape (..., n, n).
    shape : int or sequence of int, optional
        Shape of the batch. The default is the shape to which the leading axes of the parameters
        broadcast.
    dtype : dtype_like, optional
        Floating dtype of the samples. The default is that of the parameters.
    method : {"cholesky", "eigh", "svd"}, optional
        Factorization of `cov`. "eigh" and "svd" accept singular matrices, too. The default is
        "cholesky", the fastest.
    {out_sharding_samples}

    Returns
    -------
    Array
        Samples of shape (*shape, n).

    Raises
    ------
    TypeError
        If `key` is not a PRNG key.
    ValueError
        If `mean` and `cov` do not fit each other or the shape, `dtype` is not floating, or `method`
        is unknown.

    See Also
    --------
    normal : Independent normal numbers.
    scipy.stats.multivariate_normal.logpdf : Log of the density.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.multivariate_normal(jnp.random.key(0), jnp.zeros(2), jnp.eye(2)).shape
    (2,)
    """
    name = "random.multivariate_normal"
    words = key_words(key, "multivariate_normal")
    if method not in _FACTORS:
        raise not_one_of(name, "method", method, _FACTORS)
    m, c = promote_inexact("multivariate_normal", mean, cov)
    if m.aval.dtype.kind == "c":
        raise UnsupportedDtypeError(
            f"{name}: mean and cov must be real; got {m.aval.dtype.name}; pass jnp.real(x)"
        )
    if m.aval.ndim < 1 or c.aval.ndim < 2 or c.aval.shape[-2:] != (m.aval.shape[-1],) * 2:
        raise ValueError(
            f"{name}: expected mean (..., n) and cov (..., n, n); "
            f"got shapes {m.aval.shape} and {c.aval.shape}; reshape them"
        )
    kind = m.aval.dtype if dtype is None else float_dtype(dtype, "multivariate_normal")
    n = m.aval.shape[-1]
    own = broadcast_shapes(name, [m.aval.shape[:-1], c.aval.shape[:-2]])
    sizes = own if shape is None else as_shape(shape, name)
    if broadcast_shapes(name, [sizes, own]) != sizes:
        raise ValueError(
            f"{name}: parameters do not broadcast to the shape; got {own} for {sizes}; "
            "make trailing axes equal, or 1"
        )
    x = normal_node(words, (*sizes, n), kind)
    moved = matmul(_FACTORS[method](wrap(c)), wrap(expand_node(x, (x.aval.ndim,))))
    return wrap(m) + moved[..., 0]


def _by_eigenvalues(cov: Array) -> Array:
    values, vectors = eigh(cov)
    return vectors * uf.sqrt(values)[..., None, :]


def _by_singular_values(cov: Array) -> Array:
    vectors, values, _ = svd(cov)
    return vectors * uf.sqrt(values)[..., None, :]


# Functions that factor a covariance as the product of a matrix with its transpose.
_FACTORS = {"cholesky": cholesky, "eigh": _by_eigenvalues, "svd": _by_singular_values}


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample orthogonal or unitary matrices uniformly.

    Parameters
    ----------
    {key}
    n : int
        Number of rows of each matrix.
    shape : int or sequence of int, optional
        Shape of the batch. The default, (), gives a single matrix.
    dtype : dtype_like, optional
        Floating or complex dtype of the matrices; complex ones are unitary. The default is float32
        (float64 with `jax_enable_x64`).
    m : int, optional
        Number of columns. The default is `n`.
    {out_sharding_samples}

    Returns
    -------
    Array
        Matrices of shape (*shape, n, m). Their columns are orthonormal, or their rows if there are
        fewer of these.

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is neither floating nor complex.

    See Also
    --------
    numpy.linalg.qr : Factorization from which the matrices come.

    Notes
    -----
    The distribution is that of Haar: the QR factorization of a matrix of normal numbers, with the
    signs of the diagonal of R moved to Q.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.orthogonal(jnp.random.key(0), 2).shape
    (2, 2)
    """
    name = "random.orthogonal"
    kind = inexact_dtype(dtype, "orthogonal")
    sizes = as_shape(shape, name)
    rows = as_int(n, name, "n", "shape")
    columns = rows if m is None else as_int(m, name, "m", "shape")
    z = normal(key, (*sizes, max(rows, columns), min(rows, columns)), kind)
    q, r = (v._node for v in lax_linalg.qr(z, full_matrices=False))
    rank = len(sizes)
    signs = o.broadcast_in_dim(
        o.sign(diagonal_of(r)), shape=q.aval.shape, broadcast_dimensions=(*range(rank), rank + 1)
    )
    out = o.mul(q, signs)
    return wrap(transpose_node(out, (*range(rank), rank + 1, rank)) if rows < columns else out)
