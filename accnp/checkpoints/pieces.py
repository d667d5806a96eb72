"""The regions of arrays that this process writes to files, and the metadata of an array in files.

It takes arrays, which may be sharded over several processes, and returns `ArrayFacts` and the
regions that this process writes, so that all processes together write each element once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from accnp.array_type import Array
from accnp.dtypes import canonicalize_dtype
from accnp.dtypes.names import as_dtype, float0, is_supported
from accnp.errors import warn
from accnp.ir.aval import spans_processes
from accnp.key_array import PRNGKeyArray
from accnp.lazy_imports import imported
from accnp.numpy.creation import asarray
from accnp.random.keys import key_data, key_impl
from accnp.runtime import device
from accnp.runtime.device import process_index
from accnp.runtime.stream import default_stream

__all__ = [
    "ArrayFacts", "Index", "as_index", "collective_step", "compute", "describe_leaf",
    "gather_objects", "regions", "storage_dtype", "warn_narrowed",
]  # fmt: skip

Index = tuple[slice, ...]


class ArrayFacts(NamedTuple):
    """The metadata of an array in a file. An array of keys has the metadata of their words, and the
    name of their generator."""

    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...]  # the shape of a shard
    key: str | None = None

    @property
    def stored(self) -> np.dtype:
        """The dtype of NumPy's own in which the elements are stored."""
        return storage_dtype(as_dtype(self.dtype))


def storage_dtype(dtype: np.dtype) -> np.dtype:
    """A dtype that any reader of NumPy's formats knows: unsigned integers stand for bfloat16 and
    the other types of ml_dtypes."""
    return np.dtype(f"u{dtype.itemsize}") if dtype.isbuiltin == 2 else dtype


def describe_leaf(x: Any, function: str) -> tuple[Any, ArrayFacts]:
    """A leaf as an array of numbers, and what is to be known about it."""
    key = None
    if isinstance(x, PRNGKeyArray):
        x, key = key_data(x), str(key_impl(x))
    if isinstance(x, np.generic):
        x = np.asarray(x)  # keeps its dtype, as arrays of NumPy do
    if isinstance(x, np.ndarray):
        if hasattr(x, "filled"):  # numpy.ma may not be loaded
            raise ValueError(
                f"{function}: numpy masked arrays are not supported; got {x!r:.60}; use x.filled() "
                "to convert it to a standard numpy array"
            )
        x = np.asarray(x)
        if not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
    elif not isinstance(x, Array):
        x = asarray(x)  # numbers
    if x.dtype == float0 or not is_supported(x.dtype):
        raise TypeError(
            f"{function}: leaves must be arrays of numbers; got one of dtype {x.dtype}; leave it "
            "out, or convert it"
        )
    chunks = x.sharding.shard_shape(x.shape) if isinstance(x, Array) else x.shape
    return x, ArrayFacts(tuple(x.shape), x.dtype.name, tuple(chunks), key)


def regions(x: Any) -> Iterator[tuple[Index, np.ndarray]]:
    """The parts of an array that this process writes, as they are stored."""
    if isinstance(x, Array) and spans_processes(x._node.aval):
        parts = [(s.index, s.data) for s in x.addressable_shards if s.replica_id == 0]
    elif process_index() != 0:  # all processes have the same
        parts = []
    elif isinstance(x, Array):
        parts = [(s.index, s.data) for s in x.addressable_shards if s.replica_id == 0]
    else:
        parts = [((slice(None),) * x.ndim, x)]
    for index, part in parts:
        values = np.ascontiguousarray(part).reshape(part.shape)
        yield as_index(index, x.shape), values.view(storage_dtype(values.dtype))


def as_index(index: Index, shape: tuple[int, ...]) -> Index:
    """Slices with numbers for both ends."""
    return tuple([slice(*s.indices(n)[:2]) for s, n in zip(index, shape, strict=True)])


def warn_narrowed(function: str, stored: Mapping[str, np.dtype]) -> None:
    """Warn if arrays of a file, by name, become arrays of 32 bits."""
    narrow = [
        f"{name!r} ({dtype.name})"
        for name, dtype in stored.items()
        if canonicalize_dtype(dtype) != dtype
    ]
    if narrow:
        warn(
            f"{function}: arrays of 64 bits become arrays of 32 bits; got {', '.join(narrow[:5])}"
            f"{', ...' if len(narrow) > 5 else ''}; set the option jax_enable_x64 to keep them"
        )


def compute(xs: Sequence[Any]) -> None:
    """Compute arrays, so that no process needs messages of others while it writes."""
    for x in xs:
        if isinstance(x, Array):
            x.block_until_ready()


def gather_objects(x: Any) -> list[Any]:
    """Return the objects of all processes."""
    if device.process[1] == 1:
        return [x]
    default_stream().synchronize()
    return imported("accnp.runtime.mpi").world().gather_objects(x)


@contextmanager
def collective_step(function: str) -> Iterator[None]:
    """Wait for all processes at the end of a step. If the step failed in one process, all raise,
    since the others would wait for it in the next step."""
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    texts = gather_objects(failure and f"{type(failure).__name__}: {failure}")
    if failure is not None:
        raise failure
    for rank, text in enumerate(texts):
        if text is not None:
            raise RuntimeError(
                f"{function}: all processes must succeed; got an error in process {rank}: {text}; "
                "remove its cause, and call the function again in all processes"
            )
