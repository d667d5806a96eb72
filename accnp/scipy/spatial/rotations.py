"""`Rotation` and `Slerp`: rotations in three dimensions, and interpolation between them.

Both classes are named tuples of arrays, and therefore pytrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from accnp.api.arguments.convert import check_ranks
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array, asarray, ones
from accnp.numpy.differences import diff
from accnp.numpy.joining import concatenate
from accnp.numpy.linalg.decompositions import eigh
from accnp.numpy.manipulation import atleast_1d, broadcast_to
from accnp.numpy.products import dot
from accnp.numpy.rearranging import roll
from accnp.numpy.taking import searchsorted
from accnp.random import basic_samplers as random
from accnp.scipy.spatial import quaternions as quat_

__all__ = ["Rotation", "Slerp"]


def _name(method: str) -> str:
    return f"transform.Rotation.{method}"


def _convert_argument(function: str, x: Any, last: tuple[int, ...]) -> Array:
    """Convert the argument of a constructor, with these lengths of its last axes."""
    argument = quat_.floating(_name(function), x)
    if argument.shape[-len(last) :] != last:
        raise ValueError(
            f"{_name(function)}: an array [..., {', '.join(map(str, last))}] is needed; got shape "
            f"{argument.shape}; reshape it"
        )
    return argument


class Rotation(NamedTuple):
    """A rotation in three dimensions, or an array of rotations.

    `p * q` rotates by q and then by p. Methods that make rotations accept lists, too.

    Parameters
    ----------
    quat : Array
        Quaternions (x, y, z, w), of shape (..., 4). Integers give float32.

    Raises
    ------
    ValueError
        If an array for a method that makes rotations has another shape.

    See Also
    --------
    Slerp : Interpolation between rotations.

    Examples
    --------
    >>> import accnp as jnp
    >>> turn = jnp.scipy.spatial.transform.Rotation.from_rotvec(jnp.array([0, 0, jnp.pi / 2]))
    >>> jnp.round(turn.apply(jnp.array([1.0, 0, 3])), 5)[1:]
    Array([1., 3.], dtype=float32)
    """

    quat: Array

    # Here and below, an omitted shape is [...], that of the array of rotations.

    @classmethod
    @api_boundary
    def concatenate(cls, rotations: Sequence[Any]) -> Rotation:
        """Concatenate arrays of rotations."""
        return cls(concatenate([r.quat for r in rotations]))

    @classmethod
    @api_boundary
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Make rotations of angles around up to three axes, one after the other.

        Parameters
        ----------
        seq : str
            Axes: letters of "xyz" for fixed axes, or of "XYZ" for axes that rotate along.
        angles : array_like
            One angle for each axis, along the last axis.
        degrees : bool, optional
            Whether angles are in degrees. The default is radians.
        """
        a = atleast_1d(quat_.floating(_name("from_euler"), angles))
        return cls(quat_.from_euler(_name("from_euler"), seq, uf.deg2rad(a) if degrees else a))

    @classmethod
    @api_boundary
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Make rotations of orthogonal matrices of shape (..., 3, 3)."""
        return cls(quat_.from_matrix(_convert_argument("from_matrix", matrix, (3, 3))))

    @classmethod
    @api_boundary
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Make rotations of modified Rodrigues parameters of shape (..., 3)."""
        return cls(quat_.from_mrp(_convert_argument("from_mrp", mrp, (3,))))

    @classmethod
    @api_boundary
    def from_quat(cls, quat: Any) -> Rotation:
        """Make rotations of quaternions (x, y, z, w) of shape (..., 4) and of any length but 0."""
        return cls(quat_.normalized(_convert_argument("from_quat", quat, (4,))))

    @classmethod
    @api_boundary
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Make rotations around vectors of shape (..., 3), by the lengths of these."""
        v = _convert_argument("from_rotvec", rotvec, (3,))
        return cls(quat_.from_rotvec(uf.deg2rad(v) if degrees else v))

    @classmethod
    @api_boundary
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """Make the rotation by angle 0, or `num` of them."""
        one = array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(one if num is None else broadcast_to(one, (num, 4)))

    @classmethod
    @api_boundary
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Sample a uniformly distributed rotation, or `num` of them."""
        shape = (4,) if num is None else (num, 4)
        return cls(quat_.normalized(random.normal(random_key, shape)))

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not an array of them."""
        return self.quat.ndim == 1

    @api_boundary
    def __getitem__(self, indexer: Any) -> Rotation:  # pyright: ignore
        """Select rotations of an array."""
        if self.single:
            raise TypeError("Rotation: a single rotation has no parts; got an index; use .quat")
        return Rotation(self.quat[indexer])

    @api_boundary
    def __len__(self) -> int:
        """Return the number of rotations."""
        if self.single:
            raise TypeError("Rotation: a single rotation has no length; got len(); use .quat")
        return self.quat.shape[0]

    @api_boundary
    def __mul__(self, other: Any) -> Rotation:
        """Compose: rotate by the other rotation, then by this one."""
        check_ranks(_name("__mul__"), [self.quat.shape[:-1], other.quat.shape[:-1]])
        return Rotation(quat_.normalized(quat_.composed(self.quat, other.quat)))

    @api_boundary
    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Rotate vectors of shape (..., 3), which broadcast, or apply the inverse rotation."""
        v = quat_.floating(_name("apply"), vectors)
        check_ranks(_name("apply"), [self.quat.shape[:-1], v.shape[:-1]])
        return quat_.applied(self.as_matrix(), v, inverse)

    @api_boundary
    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return angles around three axes, of shape (..., 3); see `from_euler`.

        If only the sum or the difference of the first and the third angle is determined, the third
        is 0.
        """
        angles = quat_.to_euler(_name("as_euler"), seq, self.quat)
        return uf.rad2deg(angles) if degrees else angles

    @api_boundary
    def as_matrix(self) -> Array:
        """Return orthogonal matrices of shape (..., 3, 3)."""
        return quat_.to_matrix(self.quat)

    @api_boundary
    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters of shape (..., 3), of length at most 1."""
        return quat_.to_mrp(self.quat)

    @api_boundary
    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return rotation vectors of shape (..., 3): axes, whose lengths are the angles."""
        v = quat_.to_rotvec(self.quat)
        return uf.rad2deg(v) if degrees else v

    @api_boundary
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return quaternions of shape (..., 4).

        Parameters
        ----------
        canonical : bool, optional
            Whether to choose the quaternion whose w is not negative, of the two for a rotation.
        scalar_first : bool, optional
            Whether to return them in the order (w, x, y, z).
        """
        q = quat_.canonical(self.quat) if canonical else self.quat
        return roll(q, 1, axis=-1) if scalar_first else q

    @api_boundary
    @broadcasts_inside
    def inv(self) -> Rotation:
        """Return the inverse rotation."""
        return Rotation(quat_.inverse(self.quat))

    @api_boundary
    def magnitude(self) -> Array:
        """Return the angle, from 0 to pi."""
        return quat_.magnitude(self.quat)

    @api_boundary
    @broadcasts_inside
    def mean(self, weights: Any = None) -> Rotation:
        """Return the rotation with the least sum of squared distances to those of an array.

        Parameters
        ----------
        weights : array_like, optional
            Weights of the rotations, of shape (n,).
        """
        n, dtype = len(self), self.quat.dtype
        w = ones(n, dtype) if weights is None else asarray(weights, dtype=dtype)
        if w.shape != (n,):
            raise ValueError(
                f"{_name('mean')}: there must be one weight for each of {n} rotations; got shape "
                f"{w.shape}; pass that many"
            )
        return Rotation(eigh(dot(w * self.quat.T, self.quat))[1][:, -1])


class Slerp(NamedTuple):
    """A path through rotations at given times, with constant speed between two of them.

    It is made by `Slerp.init(times, rotations)` and called with times: a number or a vector of
    floats or integers. Times outside of the path are moved to its nearer end.

    Parameters
    ----------
    times : Array
        Increasing times of shape (n,).
    timedelta : Array
        Differences of the times, of shape (n - 1,).
    rotations : Rotation
        Rotations at the starts of the intervals.
    rotvecs : Array
        Rotation vectors of the intervals, of shape (n - 1, 3).

    Raises
    ------
    ValueError
        If there are fewer than 2 rotations, or not as many times.
    TypeError
        If `rotations` is not a `Rotation`.

    See Also
    --------
    Rotation : Rotations in three dimensions.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.scipy.spatial.transform import Rotation, Slerp
    >>> turns = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> jnp.round(Slerp.init(jnp.array([0, 1]), turns)(0.5).as_euler("zyx", degrees=True), 3)
    Array([45.,  0.,  0.], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    @api_boundary
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Make a path of n rotations, at least 2, at increasing times of shape (n,)."""
        name = "transform.Slerp"
        if not isinstance(rotations, Rotation):
            raise TypeError(
                f"{name}: rotations must be a Rotation; got {type(rotations).__name__}; make one "
                "with Rotation.from_quat"
            )
        if rotations.single or len(rotations) == 1:
            raise ValueError(
                f"{name}: at least 2 rotations are needed; got an array of shape "
                f"{rotations.quat.shape}; pass several in one Rotation"
            )
        at = asarray(times, dtype=rotations.quat.dtype)
        if at.shape != (len(rotations),):
            raise ValueError(
                f"{name}: there must be one time for each of {len(rotations)} rotations; got shape "
                f"{at.shape}; pass that many"
            )
        begin, end = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(at, diff(at), begin, (begin.inv() * end).as_rotvec())

    @api_boundary
    def __call__(self, times: Any) -> Rotation:
        """Return the rotations at times: a number, or [m]."""
        at = asarray(times, dtype=self.times.dtype)
        if at.ndim > 1:
            raise ValueError(
                f"transform.Slerp: times have rank 0 or 1; got shape {at.shape}; ravel them"
            )
        i = uf.maximum(searchsorted(self.times, at) - 1, 0)
        part = (at - self.times[i]) / self.timedelta[i]
        turn = Rotation.from_rotvec(self.rotvecs[i] * part[..., None])
        return Rotation(self.rotations.quat[i]) * turn
