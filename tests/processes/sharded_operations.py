"""Operations on arrays over an Explicit 2 x 2 mesh. Tests run them with jax, with accnp in one
process, and with accnp in four processes, and compare values and shardings."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


def put(m: Any, shape: tuple[int, ...], spec: Any, seed: int = 0) -> Any:
    """Return a sharded array of random numbers."""
    values = np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)
    mesh = m.make_mesh((2, 2), ("a", "b"), (m.sharding.AxisType.Explicit,) * 2)
    return m.device_put(values, m.NamedSharding(mesh, spec))


def operands(m: Any) -> Any:
    """Return arrays with different shardings."""
    square = 4, 4
    return SimpleNamespace(
        x=put(m, square, m.P("a", "b"), 1),
        y=put(m, square, m.P("a"), 2),
        z=put(m, square, m.P(None, "a"), 3),
        w=put(m, square, m.P(), 4),
        v=put(m, (4,), m.P("a"), 5),
    )


def out(m: Any, o: Any, *spec: Any) -> Any:
    """Return a sharding for a result, over the mesh of the operands."""
    return m.NamedSharding(o.x.sharding.mesh, m.P(*spec))


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x+y": lambda m, o: o.x+o.y,
    "y+z": lambda m, o: o.y+o.z,
    "x+w": lambda m, o: o.x+o.w,
    "x+1": lambda m, o: o.x+m.numpy.ones((4,4)),
    "x+v": lambda m, o: o.x+o.v,
    "w+v": lambda m, o: o.w+o.v,
    "x@x": lambda m, o: o.x@o.x,
    "y@w": lambda m, o: o.y@o.w,
    "y@x.T": lambda m, o: o.y@o.x.T,
    "z@y": lambda m, o: o.z@o.y,
    "z@w": lambda m, o: o.z@o.w,
    "w@y": lambda m, o: o.w@o.y,
    "x@w": lambda m, o: o.x@o.w,
    "y@y.T": lambda m, o: o.y@o.y.T,
    "y@z": lambda m, o: o.y@o.z,
    "sum0": lambda m, o: o.x.sum(0),
    "sum": lambda m, o: o.x.sum(),
    "max1": lambda m, o: o.x.max(1),
    "mean": lambda m, o: o.y.mean(0),
    "prod": lambda m, o: o.y.prod(0),
    "all": lambda m, o: (o.y>0).all(0),
    "any1": lambda m, o: (o.x>1).any(1),
    "max of bools": lambda m, o: (o.y>1.4).max(0),
    "argmax": lambda m, o: o.y.argmax(0),
    "argmax1": lambda m, o: o.y.argmax(1),
    "cumsum0": lambda m, o: o.y.cumsum(0),
    "cumsum1": lambda m, o: o.y.cumsum(1),
    "sort0": lambda m, o: m.numpy.sort(o.y,0),
    "sort1": lambda m, o: m.numpy.sort(o.y,1),
    "slice0": lambda m, o: o.y[:2],
    "slice1": lambda m, o: o.y[:,:2],
    "idx0": lambda m, o: o.y[0],
    "idx1": lambda m, o: o.y[:,0],
    "rev0": lambda m, o: o.y[::-1],
    "rev1": lambda m, o: o.y[:,::-1],
    "reshape merge": lambda m, o: o.y.reshape(16),
    "reshape split": lambda m, o: o.v.reshape(2,2),
    "reshape merge2": lambda m, o: o.z.reshape(16),
    "reshape split bad": lambda m, o: put(m, (6,),m.P("a")).reshape(3,2),
    "x reshape": lambda m, o: o.x.reshape(16),
    "expand": lambda m, o: o.v[:,None],
    "expand0": lambda m, o: o.v[None],
    "T": lambda m, o: o.x.T,
    "concat0": lambda m, o: m.numpy.concatenate([o.y,o.y],0),
    "concat1": lambda m, o: m.numpy.concatenate([o.y,o.y],1),
    "concat yz": lambda m, o: m.numpy.concatenate([o.y,o.z],0),
    "stack": lambda m, o: m.numpy.stack([o.y,o.y]),
    "pad0": lambda m, o: m.numpy.pad(o.y,((1,1),(0,0))),
    "pad1": lambda m, o: m.numpy.pad(o.y,((0,0),(1,1))),
    "where": lambda m, o: m.numpy.where(o.y>0,o.y,0.),
    "take": lambda m, o: o.y[m.numpy.array([0,1])],
    "take1": lambda m, o: o.y[:,m.numpy.array([0,1])],
    "roll": lambda m, o: m.numpy.roll(o.y,1,1),
    "einsum": lambda m, o: m.numpy.einsum("ij,jk->ik",o.y,o.w),
    "fft": lambda m, o: m.numpy.abs(m.numpy.fft.fft(o.y)),
    "softmax": lambda m, o: m.nn.softmax(o.y),
    "std": lambda m, o: o.y.std(1),
    "matvec": lambda m, o: o.y@m.numpy.ones(4),
    "vec": lambda m, o: o.v@o.v,
    "outer": lambda m, o: m.numpy.outer(o.v,o.v),
    "dynslice": lambda m, o: m.lax.dynamic_slice(o.y,(0,0),(2,4)),
    "dynslice1": lambda m, o: m.lax.dynamic_slice(o.y,(0,0),(4,2)),
    "tril": lambda m, o: m.numpy.tril(o.y),
    "broadcast": lambda m, o: m.numpy.broadcast_to(o.v,(3,4)),
    "convert": lambda m, o: o.y.astype("int32"),
    "iota": lambda m, o: o.y+m.numpy.arange(4),
    "median": lambda m, o: m.numpy.median(o.y,1),
    "repeat": lambda m, o: m.numpy.repeat(o.y,2,1),
    "out z@y": lambda m, o: m.numpy.matmul(o.z,o.y,out_sharding=out(m,o)),
    "out z@y, a": lambda m, o: m.numpy.matmul(o.z,o.y,out_sharding=out(m,o,"a")),
    "out z@y, -a": lambda m, o: m.numpy.dot(o.z,o.y,out_sharding=out(m,o,None,"a")),
    "out z@y, ba": lambda m, o: m.numpy.dot(o.z,o.y,out_sharding=out(m,o,("b","a"))),
    "out z@y, ab": lambda m, o: m.lax.dot(o.z,o.y,out_sharding=out(m,o,("a","b"))),
    "out z@y, a b": lambda m, o: m.numpy.matmul(o.z,o.y,out_sharding=out(m,o,"a","b")),
    "out x@y": lambda m, o: m.numpy.matmul(o.x,o.y,out_sharding=out(m,o,"b")),
    "out x@x.T": lambda m, o: m.numpy.matmul(o.x,o.x.T,out_sharding=out(m,o,"a")),
    "out x@x.T, b": lambda m, o: m.numpy.matmul(o.x,o.x.T,out_sharding=out(m,o,"a","b")),
    "out x.T@x": lambda m, o: m.numpy.tensordot(
        o.x,o.x,((0,),(0,)),out_sharding=out(m,o,"b","a")
    ),
    "out y@w": lambda m, o: m.numpy.matmul(o.y,o.w,out_sharding=out(m,o,None,"b")),
    "out y@w, a b": lambda m, o: m.numpy.matmul(o.y,o.w,out_sharding=out(m,o,"a","b")),
    "out w@w": lambda m, o: m.numpy.matmul(o.w,o.w,out_sharding=out(m,o,"b","a")),
    "out w@y": lambda m, o: m.numpy.matmul(o.w,o.y,out_sharding=out(m,o,"b","a")),
    "out v@v": lambda m, o: m.numpy.dot(o.v,o.v,out_sharding=out(m,o)),
    "out bools": lambda m, o: m.numpy.matmul(o.z>1,o.y>1,out_sharding=out(m,o,"a")),
    "out dot_general": lambda m, o: m.lax.dot_general(
        o.z,o.y,(((1,),(0,)),((),())),out_sharding=out(m,o,None,"a")
    ),
    "out batches": lambda m, o: m.numpy.matmul(
        put(m,(4,2,4),m.P("b",None,"a")),put(m,(4,4,2),m.P("b","a")),
        out_sharding=out(m,o,"b","a"),
    ),
    "out einsum": lambda m, o: m.numpy.einsum("ij,jk->ki",o.z,o.y,out_sharding=out(m,o,None,"a")),
    "out get": lambda m, o: o.y.at[m.numpy.array([1,0,2,3])].get(out_sharding=out(m,o,"a","b")),
    "out set": lambda m, o: o.y.at[m.numpy.array([1,2])].set(7,out_sharding=out(m,o,None,"b")),
    "out reshape": lambda m, o: m.numpy.reshape(o.x,(2,8),out_sharding=out(m,o,"b","a")),
    "out method": lambda m, o: o.x.reshape(16,out_sharding=out(m,o,"b")),
    "out ravel": lambda m, o: m.numpy.ravel(o.x,out_sharding=out(m,o,("b","a"))),
    "out broadcast": lambda m, o: m.numpy.broadcast_to(o.v,(4,4),out_sharding=out(m,o,"b","a")),
    "out lax.broadcast": lambda m, o: m.lax.broadcast(o.v,(4,),out_sharding=out(m,o,"b","a")),
    "out lax.reshape": lambda m, o: m.lax.reshape(o.x,(16,),out_sharding=out(m,o,"b")),
    "whole det": lambda m, o: m.numpy.linalg.det(o.w),
    "out einsum of 3": lambda m, o: m.numpy.einsum(
        "ij,jk,kl->li",o.z,o.y,o.x,out_sharding=out(m,o,"a","b")
    ),
    "tile": lambda m, o: m.numpy.tile(o.y,(1,2)),
}  # fmt: skip
