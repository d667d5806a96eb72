"""The random bit generator threefry2x32 as map ops: two key words and two counter words in.

`threefry_0` and `threefry_1` give the two output words, `threefry_xor` their exclusive or. `fma`
scales uniform numbers with one rounding, as the peer's compiler does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.op import ZERO, o
from accnp.ops.kinds import map_op, map_shape
from accnp.ops.reference import quiet

__all__ = ["threefry2x32"]

WORD = np.dtype(np.uint32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry2x32(k0: Any, k1: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """Mix counters with a key in 20 rounds; arrays of uint32 broadcast."""
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
        raise TypeError(f"threefry: key and counter words must be uint32; got {names}")
    return make_aval(map_shape("threefry", avals), WORD)


def _declare(name: str, pick: Any) -> None:
    def numpy(*words: Any) -> Any:
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


def _first(x: Any, y: Any) -> Any:
    return x


def _second(x: Any, y: Any) -> Any:
    return y


_PICK: Sequence[tuple[str, Any]] = (
    ("threefry_0", _first),
    ("threefry_1", _second),
    ("threefry_xor", np.bitwise_xor),
)
for _name, _fn in _PICK:
    _declare(_name, _fn)


def _fma_numpy(a: Any, b: Any, c: Any) -> Any:
    wide = np.float64 if a.dtype.itemsize < 8 else np.longdouble
    x, y, z = (np.asarray(v).astype(wide) for v in (a, b, c))
    return np.asarray(x * y + z).astype(a.dtype)


map_op(
    "fma",
    numpy=quiet(_fma_numpy),
    scalar="fma({0}, {1}, {2})",
    jvp=(lambda t, y, a, b, c: o.mul(t, b), lambda t, y, a, b, c: o.mul(a, t), lambda t, *_: t),
    dtypes="f",
    cost=1,
)
