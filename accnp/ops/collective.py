"""Collectives over a named mapped axis: psum, all_gather, axis_index.

They are recorded inside a function mapped with that axis name, and vanish when it is batched: what
is one value for each example is then an axis. `axis_name` and `size` are parameters; because of the
first, batch rules get the running `tools` and are asked even if no operand is batched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ops.kinds import broadcast_to, full, opaque

_INT = np.dtype(np.int32)


def _unbound(*_: Any, axis_name: Any, **__: Any) -> Any:
    raise NameError(
        f"collective: axis name {axis_name!r} is not bound; use it inside vmap(..., axis_name=...)"
    )


# --- psum ----------------------------------------------------------------------------------------


def _psum_batch(size: int, xs: Sequence[Node], flags: Any, params: dict, tools: Any) -> Any:
    x = xs[0]
    if params["axis_name"] != tools.axis:
        return o.psum(x, **params), flags[0]
    if flags[0]:
        return o.reduce_sum(x, axes=(0,)), False
    return o.mul(x, full((), size, x.aval.dtype)), False


opaque(
    "psum",
    infer=lambda x, **_: x,
    numpy=_unbound,
    jvp=(lambda t, y, x, **p: o.psum(t, **p),),
    transpose=lambda ct, x, **p: (o.psum(ct, **p),),
    batch=_psum_batch,
)

# --- all_gather ----------------------------------------------------------------------------------


def _gather_infer(x: Aval, *, axis_name: Any, size: int) -> Aval:
    return make_aval((size, *x.shape), x.dtype, x.weak_type)


def _gather_transpose(ct: Node, x: Any, **params: Any) -> tuple[Node]:
    """Each example gets the sum of what all of them say about its row."""
    total = o.psum(ct, **params)
    shape = x.aval.shape
    zeros = [full((), 0, _INT)] * len(shape)
    row = o.dynamic_slice(total, o.axis_index(**params), *zeros, slice_sizes=(1, *shape))
    return (o.reshape(row, new_sizes=shape, dimensions=None),)


def _gather_batch(size: int, xs: Sequence[Node], flags: Any, params: dict, tools: Any) -> Any:
    x = xs[0]
    if params["axis_name"] == tools.axis:
        if params["size"] != size:
            raise ValueError(
                f"all_gather: traced for an axis {tools.axis!r} of length {params['size']}; got "
                "one "
                f"of length {size}; trace the function anew"
            )
        return (x if flags[0] else broadcast_to(x, (size, *x.aval.shape))), False
    y = o.all_gather(x, **params)
    if flags[0]:
        y = o.transpose(y, permutation=(1, 0, *range(2, y.aval.ndim)))
    return y, flags[0]


opaque(
    "all_gather",
    infer=_gather_infer,
    numpy=_unbound,
    jvp=(lambda t, y, x, **p: o.all_gather(t, **p),),
    transpose=_gather_transpose,
    batch=_gather_batch,
)

# --- axis_index ----------------------------------------------------------------------------------


def _index_batch(size: int, xs: Sequence[Node], flags: Any, params: dict, tools: Any) -> Any:
    if params["axis_name"] != tools.axis:
        return o.axis_index(**params), False
    return o.iota(dtype=_INT, shape=(size,), dimension=0), True


opaque(
    "axis_index",
    infer=lambda **_: make_aval((), _INT),
    numpy=_unbound,
    jvp=(),
    batch=_index_batch,
)
