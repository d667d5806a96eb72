"""The op `device_put`: the same value on other devices.

The CPU's devices share its memory, so nothing is copied between them, and fusion looks through the
op. Its type rule sets the devices of the aval; `engine/execute.py` copies between devices that
share no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.ir.aval import Aval, Devices, ShardedDevices, on_devices
from accnp.ir.node import Node
from accnp.ir.op import Op, o, register
from accnp.ir.trace import types_only
from accnp.primitives.shards import localize

if TYPE_CHECKING:
    import numpy as np

    from accnp.ir.op_types import Operand, Params, Tangents
    from accnp.primitives.rule_types import Tools

__all__: list[str] = []


def _infer(x: Aval, *, devices: Devices, source: Devices) -> Aval:
    return on_devices(x, devices)


def _identity(x: np.ndarray, **_: object) -> np.ndarray:
    return x


def _jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    (t,) = ts
    return [y], [t if t is None else o.device_put(t, **params)]


def _transpose(ct: Node, x: Operand, *, devices: Devices, source: Devices) -> tuple[Node]:
    return (o.device_put(ct, devices=source, source=devices),)


def _batch(
    size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
) -> tuple[list[Node], list[bool]]:
    """Put a batched value as its examples are put, and leave the batch axis as it is."""
    (x,) = xs
    devices = params["devices"]
    if flags[0] and type(devices) is ShardedDevices and hasattr(devices.sharding, "behind_one"):
        own = getattr(x.aval.devices, "sharding", None)
        devices = ShardedDevices(devices.sharding.behind_one(x.aval.ndim, own), devices)
    if getattr(devices, "spans_processes", False) and not types_only():
        shape, where = x.aval.shape, devices.sharding
        moved = o.to_global(localize(x, where, shape), sharding=where, shape=shape)
        return [moved], [flags[0]]
    return [o.device_put(x, devices=devices, source=x.aval.devices)], [flags[0]]


register(
    Op(
        "device_put", "mark", _infer, numpy=_identity, jvp=_jvp, transpose=_transpose,
        batch=_batch, places=True,
    )
)  # fmt: skip
