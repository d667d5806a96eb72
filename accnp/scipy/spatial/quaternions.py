"""Quaternions of rotations, (x, y, z, w) along the last axis, and conversions.

Other representations are matrices, rotation vectors (axis times angle), modified Rodrigues
parameters (axis times the tangent of a quarter of the angle), and Euler angles.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np

from accnp.api.arguments.values import inexact_arrays
from accnp.array_type import Array
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import zeros
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.linalg.norms import norm
from accnp.numpy.manipulation import swapaxes
from accnp.numpy.products import matmul
from accnp.numpy.selection import where
from accnp.numpy.taking import take_along_axis

__all__ = [
    "applied", "canonical", "composed", "elementary", "floating", "from_euler", "from_matrix",
    "from_mrp", "from_rotvec", "inverse", "magnitude", "normalized", "to_euler", "to_matrix",
    "to_mrp", "to_rotvec",
]  # fmt: skip

_SMALL = 1e-3  # smaller angles are computed by series
_AXES = "xyz"


def floating(name: str, x: Any) -> Array:
    """Convert an argument, which may be a list, to an array of inexact dtype."""
    return inexact_arrays(name, x)[0]


def _length(x: Array) -> Array:
    """Return the length of vectors, [..., 1], with derivative 0 at 0."""
    some = (x != 0).any(axis=-1, keepdims=True)
    return where(some, norm(where(some, x, 1), axis=-1, keepdims=True), 0)


def normalized(q: Array) -> Array:
    """Normalize a quaternion to length 1."""
    return q / norm(q, axis=-1, keepdims=True)


def canonical(q: Array) -> Array:
    """Return q or -q, which are the same rotation, with a positive first nonzero element.

    Elements are ordered w, x, y, z.
    """
    x, y, z, w = (q[..., i : i + 1] for i in range(4))
    rest = where(x != 0, x, where(y != 0, y, z))
    return where(where(w != 0, w, rest) < 0, -q, q)


def composed(p: Array, q: Array) -> Array:
    """Return the rotation by q, followed by p."""
    a, b, c, d = (p[..., i] for i in range(4))
    x, y, z, w = (q[..., i] for i in range(4))
    return stack(
        [d * x + w * a + b * z - c * y, d * y + w * b + c * x - a * z,
         d * z + w * c + a * y - b * x, d * w - a * x - b * y - c * z],
        axis=-1,
    )  # fmt: skip


def inverse(q: Array) -> Array:
    """Return the inverse rotation."""
    return q * np.array([-1, -1, -1, 1], q.dtype)


def magnitude(q: Array) -> Array:
    """The angle, from 0 to pi."""
    return 2 * uf.arctan2(_length(q[..., :3])[..., 0], uf.abs(q[..., 3]))


def to_matrix(q: Array) -> Array:
    """The matrix, [..., 3, 3]."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    flat = stack([v for row in rows for v in row], axis=-1)
    return flat.reshape((*q.shape[:-1], 3, 3))


def applied(matrix: Array, vectors: Array, back: bool) -> Array:
    """Rotate vectors, or rotate them back."""
    m = swapaxes(matrix, -1, -2) if back else matrix
    return matmul(m, vectors[..., None])[..., 0]


def from_matrix(m: Array) -> Array:
    """Return the quaternion of a matrix, from its largest element, so that nothing cancels."""
    e = [[m[..., i, j] for j in range(3)] for i in range(3)]
    trace = e[0][0] + e[1][1] + e[2][2]
    choices = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {i: 1 - trace + 2 * e[i][i], j: e[j][i] + e[i][j], k: e[k][i] + e[i][k]}
        parts[3] = e[k][j] - e[j][k]
        choices.append(stack([parts[n] for n in range(4)], axis=-1))
    turned = [e[2][1] - e[1][2], e[0][2] - e[2][0], e[1][0] - e[0][1], 1 + trace]
    choices.append(stack(turned, axis=-1))
    best = stack([e[0][0], e[1][1], e[2][2], trace], axis=-1).argmax(axis=-1)[..., None, None]
    return normalized(take_along_axis(stack(choices, axis=-2), best, axis=-2)[..., 0, :])


def from_rotvec(v: Array) -> Array:
    """The quaternion of a rotation vector."""
    angle = _length(v)
    square = angle * angle
    small = angle <= _SMALL
    series = 0.5 - square / 48 + square * square / 3840
    safe = where(small, 1, angle)
    scale = where(small, series, uf.sin(safe / 2) / safe)
    return concatenate([scale * v, uf.cos(angle / 2)], axis=-1)


def to_rotvec(q: Array) -> Array:
    """The rotation vector, whose length is at most pi."""
    q = where(q[..., 3:] < 0, -q, q)
    angle = 2 * uf.arctan2(_length(q[..., :3]), q[..., 3:])
    square = angle * angle
    small = angle <= _SMALL
    series = 2 + square / 12 + 7 * square * square / 2880
    safe = where(small, 1, angle)
    return where(small, series, safe / uf.sin(safe / 2)) * q[..., :3]


def from_mrp(v: Array) -> Array:
    """The quaternion of modified Rodrigues parameters."""
    more = (v * v).sum(axis=-1, keepdims=True) + 1
    return concatenate([2 * v, 2 - more], axis=-1) / more


def to_mrp(q: Array) -> Array:
    """The modified Rodrigues parameters of length at most 1."""
    sign = where(q[..., 3:] < 0, -1.0, 1.0)
    return sign * q[..., :3] / (1 + sign * q[..., 3:])


# --- Euler angles --------------------------------------------------------------------------------


def _sequence(name: str, seq: str, most: int) -> tuple[list[int], bool]:
    """Return the axes of a sequence, and whether they rotate with the body (capital letters)."""
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", seq):
        raise ValueError(
            f"{name}: a sequence is one to three of 'xyz' (axes at rest) or of 'XYZ' (axes that "
            f"turn along); got {seq!r}; pass one of these"
        )
    if any(a == b for a, b in pairwise(seq)):
        raise ValueError(
            f"{name}: consecutive axes must differ; got {seq!r}; join turns about one axis"
        )
    if len(seq) > most:
        raise ValueError(f"{name}: at most {most} axes; got {seq!r}; compose rotations for more")
    return [_AXES.index(c) for c in seq.lower()], seq.isupper()


def elementary(axis: int, angle: Array) -> Array:
    """The rotation around one axis."""
    parts = [zeros(angle.shape, angle.dtype)] * 3
    parts[axis] = uf.sin(angle / 2)
    return stack([*parts, uf.cos(angle / 2)], axis=-1)


def from_euler(name: str, seq: str, angles: Array) -> Array:
    """The quaternion of angles around up to three axes, [..., len(seq)]."""
    axes, turning = _sequence(name, seq, 3)
    if angles.shape[-1] != len(axes):
        raise ValueError(
            f"{name}: the last axis of the angles must have one element for each of {len(axes)} "
            f"axes of {seq!r}; got shape {angles.shape}; reshape them to [..., axes]"
        )
    out = elementary(axes[0], angles[..., 0])
    for n, axis in enumerate(axes[1:], 1):
        more = elementary(axis, angles[..., n])
        out = composed(out, more) if turning else composed(more, out)
    return out


def to_euler(name: str, seq: str, q: Array) -> Array:
    """Return the angles around three axes, from -pi to pi, [..., 3].

    Method: E. Bernardes and S. Viollet, Quaternion to Euler angles conversion, PLoS ONE 17 (2022).
    If only the sum or the difference of the first and third angle is determined, the third is 0.
    """
    if len(seq) != 3:
        raise ValueError(
            f"{name}: a sequence of three axes is needed; got {seq!r}; pass one as 'xyz'"
        )
    (i, j, k), turning = _sequence(name, seq, 3)
    if turning:
        i, k = k, i
    proper = i == k  # first and third axis are the same
    k = 3 - i - j if proper else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
    a, b, c, d = (w, x, y, z) if proper else (w - y, x + z, y + w, z - x)
    middle = 2 * uf.arctan2(uf.hypot(c, d), uf.hypot(a, b))
    half_sum, half_difference = uf.arctan2(b, a), uf.arctan2(d, c)
    at_zero, at_pi = uf.abs(middle) <= 1e-7, uf.abs(middle - np.pi) <= 1e-7
    first, third = half_sum - half_difference, half_sum + half_difference
    if turning:
        first, third = third, first
    alone = where(at_zero, 2 * half_sum, 2 * half_difference * (1 if turning else -1))
    lost = at_zero | at_pi
    first, third = where(lost, alone, first), where(lost, 0, third)
    if not proper:
        middle = middle - np.pi / 2
        first, third = (first * sign, third) if turning else (first, third * sign)
    angles = stack([first, middle, third], axis=-1)
    return (angles + np.pi) % (2 * np.pi) - np.pi
