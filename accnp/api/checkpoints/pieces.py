"""The parts of arrays that this process writes to files, and what files say about an array.

In: arrays, those over several processes among them. Out: `ArrayFacts`, and the regions of an array
that this process is to write, so that all processes together write each element once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from accnp.api.arrays.creation import asarray
from accnp.api.sampling.keys import key_data, key_impl
from accnp.array import Array
from accnp.dtypes.names import as_dtype
from accnp.experimental import multihost_utils
from accnp.ir.aval import spans
from accnp.key_array import PRNGKeyArray
from accnp.runtime.device import process_index

__all__ = ["ArrayFacts", "Index", "as_index", "facts_of", "regions", "storage_dtype", "sync"]

Index = tuple[slice, ...]


class ArrayFacts(NamedTuple):
    """What a file says about an array: that of keys has their words, and the name of their kind."""

    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...]  # the shape of a shard
    key: str | None = None

    @property
    def stored(self) -> np.dtype:
        """The dtype of NumPy's own in which the elements are stored."""
        return storage_dtype(as_dtype(self.dtype))


def storage_dtype(dtype: np.dtype) -> np.dtype:
    """A dtype that any reader of NumPy's formats knows: unsigned integers stand for bfloat16."""
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")


def facts_of(x: Any, function: str) -> tuple[Any, ArrayFacts]:
    """A leaf as an array of numbers, and what is to be known about it."""
    key = None
    if isinstance(x, PRNGKeyArray):
        x, key = key_data(x), str(key_impl(x))
    if not isinstance(x, Array | np.ndarray):
        x = asarray(x)  # numbers
    if x.dtype.kind not in "biufcV" or (x.dtype.kind == "V" and x.dtype.isbuiltin == 1):
        raise TypeError(
            f"{function}: leaves must be arrays of numbers; got one of dtype {x.dtype}; leave it "
            "out, or convert it"
        )
    chunks = x.sharding.shard_shape(x.shape) if isinstance(x, Array) else x.shape
    return x, ArrayFacts(tuple(x.shape), x.dtype.name, tuple(chunks), key)


def regions(x: Any) -> Iterator[tuple[Index, np.ndarray]]:
    """The parts of an array that this process writes, as they are stored."""
    if isinstance(x, Array) and spans(x._node.aval):
        found = [(s.index, s.data) for s in x.addressable_shards if s.replica_id == 0]
    elif process_index() != 0:  # all processes have the same
        found = []
    elif isinstance(x, Array):
        found = [(s.index, s.data) for s in x.addressable_shards if s.replica_id == 0]
    else:
        found = [((slice(None),) * x.ndim, x)]
    for index, part in found:
        values = np.ascontiguousarray(part).reshape(part.shape)
        yield as_index(index, x.shape), values.view(storage_dtype(values.dtype))


def as_index(index: Index, shape: tuple[int, ...]) -> Index:
    """Slices with numbers for both ends."""
    return tuple([slice(*s.indices(n)[:2]) for s, n in zip(index, shape, strict=True)])


def sync(step: str) -> None:
    """Wait for all processes."""
    multihost_utils.sync_global_devices(f"checkpoints: {step}")
