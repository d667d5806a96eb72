"""The random bit generator threefry2x32 as map ops.

The operands are two key words and two counter words (uint32). `threefry_0` and `threefry_1` return
the two output words, `threefry_xor` their exclusive or. `fma` scales uniform numbers with a single
rounding, as JAX's compiler does, so that samples agree. `accnp/random/` uses these ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import ZERO, o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import map_op, map_shape
from accnp.primitives.reference import quiet

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["erf_inv_single", "threefry2x32"]

WORD = np.dtype(np.uint32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry2x32(
    k0: np.ndarray, k1: np.ndarray, c0: np.ndarray, c1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Apply the 20 rounds of threefry to counters with a key; arrays of uint32 broadcast."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x, y = c0 + k0, c1 + k1
    for block in range(5):
        for r in _ROTATIONS[block % 2]:
            x = x + y
            y = (y << np.uint32(r)) | (y >> np.uint32(32 - r))
            y = x ^ y
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x, y


def _infer(*avals: Aval) -> Aval:
    if any(a.dtype != WORD for a in avals):
        names = ", ".join(a.dtype.name for a in avals)
        raise TypeError(
            f"threefry: key and counter words must be uint32; got {names}; "
            "convert with astype('uint32')"
        )
    return make_aval(map_shape("threefry", avals), WORD)


def _declare(name: str, pick: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    def numpy(*words: np.ndarray) -> np.ndarray:
        return pick(*threefry2x32(*[np.asarray(w) for w in words]))

    map_op(
        name,
        numpy=quiet(numpy),
        scalar=name + "({0}, {1}, {2}, {3})",
        infer=_infer,
        jvp=(ZERO,) * 4,
        dtypes="u",
        cost=80,
    )


def _first_operand(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x


def _second(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y


_PICK: Sequence[tuple[str, Any]] = (
    ("threefry_0", _first_operand),
    ("threefry_1", _second),
    ("threefry_xor", np.bitwise_xor),
)
for _name, _fn in _PICK:
    _declare(_name, _fn)


def _fma_numpy(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    wide = np.float64 if a.dtype.itemsize < 8 else np.longdouble
    x, y, z = (np.asarray(v).astype(wide) for v in (a, b, c))
    return np.asarray(x * y + z).astype(a.dtype)


def _fma_scalar(params: Params, dtype: np.dtype) -> str:
    """Half precision is computed in float64, where products are exact, and rounded once."""
    return "fma(f8({0}), f8({1}), f8({2}))" if dtype.itemsize == 2 else "fma({0}, {1}, {2})"


map_op(
    "fma",
    numpy=quiet(_fma_numpy),
    scalar=_fma_scalar,
    jvp=(
        lambda t, y, a, b, c: o.mul(t, b),
        lambda t, y, a, b, c: o.mul(a, t),
        lambda t, y, a, b, c: t,
    ),
    dtypes="f",
    cost=1,
    makes_nan=False,
)

# M. Giles, "Approximating the erfinv function" (2010): polynomials in w - 2.5 for w < 5 and in
# sqrt(w) - 3 beyond, w = -log(1 - x^2), highest power first.
_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def erf_inv_single(x: Node) -> Node:
    """Return the inverse of erf for float32 in (-1, 1), rounded like JAX's normal samples.

    The square is rounded before the logarithm, which the op `erf_inv` avoids. Near the ends this
    changes a result by up to 65 ulp, but samples must agree with JAX's within a few ulp.
    """
    w = o.neg(o.log1p(o.neg(o.mul(x, x))))
    near = o.lt(w, like(w, 5))
    w = o.select_n(near, o.sub(o.sqrt(w), like(w, 3)), o.sub(w, like(w, 2.5)))
    y = None
    for a, b in zip(_CENTRE, _TAIL, strict=True):
        wide = [o.broadcast_in_dim(like(w, v), shape=w.aval.shape, broadcast_dimensions=())
                for v in (b, a)]  # fmt: skip
        c = o.select_n(near, *wide)
        y = c if y is None else o.fma(y, w, c)
    assert y is not None
    return o.mul(y, x)
