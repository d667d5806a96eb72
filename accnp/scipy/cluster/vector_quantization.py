"""Vector quantization: the nearest code of each observation, and its distance."""

from __future__ import annotations

from accnp.api.arguments.convert import promote_inexact, wrap
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.numpy.linalg.norms import norm
from accnp.numpy.taking import take_along_axis

__all__ = ["vq"]


@api_boundary
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Assign each observation to the nearest code of a code book.

    Parameters
    ----------
    obs : array_like
        Observations as rows, of shape (n, d); one axis for d = 1.
    code_book : array_like
        Codes as rows, of shape (k, d), or one axis for d = 1.
    check_finite : bool, optional
        Accepted for compatibility with SciPy; it has no effect.

    Returns
    -------
    code : Array
        Index of the nearest code of each observation, int32 of shape (n,); the first of equally
        near ones.
    dist : Array
        Distances to these codes, of shape (n,).

    Raises
    ------
    ValueError
        If ranks differ, or are neither 1 nor 2.

    See Also
    --------
    numpy.argmin : Index of the least element.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.cluster.vq.vq(jnp.array([0.0, 4.0]), jnp.array([1.0, 5.0]))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    name = "cluster.vq.vq"
    x, codes = (wrap(n) for n in promote_inexact(name, obs, code_book))
    if x.ndim != codes.ndim or x.ndim not in (1, 2):
        raise ValueError(
            f"{name}: observations and codes must both be of rank 1, or both of rank 2; got shapes "
            f"{x.shape} and {codes.shape}; add an axis with x[:, None]"
        )
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    distance = norm(x[:, None] - codes[None], axis=-1)
    code = distance.argmin(axis=-1)
    return code, take_along_axis(distance, code[:, None], axis=-1)[:, 0]
