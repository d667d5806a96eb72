"""The files of a checkpoint that contain its arrays: one `.npy` file per shard, or a zarr group.

A store writes regions of named arrays (`ArrayFacts`) to files, and reads any region back,
regardless of how many shards were written. Values have the dtype in which they are stored.
"""

from __future__ import annotations

import importlib
import itertools
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from accnp.checkpoints.pieces import ArrayFacts, Index

__all__ = ["NpyStore", "Store", "ZarrStore", "open_store"]

# Chunks of zarr are compressed whole: those of shards beyond this are divided (64 MB).
LARGEST_CHUNK = 1 << 26


class Store(Protocol):
    """The interface of stores, which keep arrays by name."""

    def create(self, name: str, facts: ArrayFacts) -> None:
        """Make room for an array; one process does."""
        ...

    def write(self, name: str, facts: ArrayFacts, index: Index, values: np.ndarray) -> None:
        """Store a shard, or all of an array that is not divided."""
        ...

    def read(self, name: str, facts: ArrayFacts, index: Index) -> np.ndarray:
        """The values of any region."""
        ...


class NpyStore:
    """A folder for each array, with a file for each shard, which its first indices name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, name: str, facts: ArrayFacts) -> None:
        (self.folder / name).mkdir(parents=True)

    def _path(self, name: str, starts: tuple[int, ...]) -> Path:
        return self.folder / name / f"{'.'.join(map(str, starts)) or 'value'}.npy"

    def write(self, name: str, facts: ArrayFacts, index: Index, values: np.ndarray) -> None:
        np.save(self._path(name, tuple([s.start for s in index])), values)

    def read(self, name: str, facts: ArrayFacts, index: Index) -> np.ndarray:
        """A view of the file if the region is within one shard."""
        shape = tuple([s.stop - s.start for s in index])
        whole = None
        grid = [
            range(s.start // c * c, s.stop, c) if c else range(0)
            for s, c in zip(index, facts.chunks, strict=True)
        ]
        for starts in itertools.product(*grid):
            target, source = [], []
            for s, first, c in zip(index, starts, facts.chunks, strict=True):
                low, high = max(s.start, first), min(s.stop, first + c)
                target.append(slice(low - s.start, high - s.start))
                source.append(slice(low - first, high - first))
            path = self._path(name, starts)
            try:
                part = np.load(path, mmap_mode="r" if prod(facts.chunks) else None)
            except (ValueError, EOFError, OSError) as error:
                raise ValueError(
                    f"checkpoints.load: {path} is damaged or missing: {error}; got no array of "
                    f"{facts.stored}{list(facts.chunks)}; restore the file"
                ) from error
            if part.shape != facts.chunks or part.dtype != facts.stored:
                raise ValueError(
                    f"checkpoints.load: {path} must hold {facts.stored}{list(facts.chunks)}; got "
                    f"{part.dtype}{list(part.shape)}; restore the file"
                )
            if part[tuple(source)].shape == shape:
                return part[tuple(source)]
            if whole is None:
                whole = np.empty(shape, facts.stored)
            whole[tuple(target)] = part[tuple(source)]
        return np.empty(shape, facts.stored) if whole is None else whole


class ZarrStore:
    """A zarr group with an array for each array, whose chunks are the shards or parts of them."""

    def __init__(self, folder: Path, mode: str) -> None:
        try:
            zarr: Any = importlib.import_module("zarr")
        except ImportError as error:
            raise ImportError(
                "checkpoints: the store 'zarr' needs the package zarr; install it with: pip "
                "install 'accnp[files]', or use the store 'npy'"
            ) from error
        self.group = zarr.open_group(str(folder), mode=mode)

    def create(self, name: str, facts: ArrayFacts) -> None:
        self.group.create_array(
            name,
            shape=facts.shape,
            chunks=_chunks(facts),
            dtype=facts.stored,
            attributes={"dtype": facts.dtype},
        )

    def write(self, name: str, facts: ArrayFacts, index: Index, values: np.ndarray) -> None:
        self.group[name][index or ...] = values

    def read(self, name: str, facts: ArrayFacts, index: Index) -> np.ndarray:
        array = self.group[name]
        if array.shape != facts.shape or array.dtype != facts.stored:
            raise ValueError(
                f"checkpoints.load: the zarr array {name!r} must be {facts.stored}"
                f"{list(facts.shape)}; got {array.dtype}{list(array.shape)}; restore it"
            )
        return np.asarray(array[index or ...])


def _chunks(facts: ArrayFacts) -> tuple[int, ...]:
    """Chunks that divide shards: no two processes write to one."""
    chunks = [max(1, n) for n in facts.chunks]
    for d, n in enumerate(chunks):
        for parts in range(2, n + 1):
            if prod(chunks) * facts.stored.itemsize <= LARGEST_CHUNK:
                break
            if n % parts == 0:
                chunks[d] = n // parts
    return tuple(chunks)


def open_store(kind: str, folder: Path, mode: str) -> Store:
    """The store of a checkpoint: mode "w" makes it, "r+" and "r" are for one that is there."""
    return NpyStore(folder) if kind == "npy" else ZarrStore(folder, mode)
