"""`save` and `load`: pytrees of arrays in folders, whole or in shards.

`save` takes a pytree of arrays, which may be sharded over several processes, and a path that all
processes can access. It writes a folder with `checkpoint.json` and a store (`stores.py`). `load`
returns the pytree, with any sharding and any number of processes. Each process reads and writes its
own shards.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from accnp.array_type import Array
from accnp.checkpoints.pieces import (
    ArrayFacts,
    Index,
    as_index,
    collective_step,
    compute,
    describe_leaf,
    regions,
    warn_narrowed,
)
from accnp.checkpoints.replacement import ABOUT, explain_interruption, replacement
from accnp.checkpoints.stores import Store, open_store
from accnp.checkpoints.trees import leaf_paths, structure_of, tree_of
from accnp.dtypes.names import as_dtype
from accnp.errors import api_boundary
from accnp.numpy.creation import array, asarray
from accnp.pytree import PyTree, broadcast_prefix, tree_flatten, tree_unflatten
from accnp.random.keys import wrap_key_data
from accnp.runtime.device import process_index
from accnp.sharding.shards import make_array_from_callback

__all__ = ["array_from", "load", "save"]

STORES = ("npy", "zarr")
_FORMAT = 1


@api_boundary
def save(
    path: str | os.PathLike[str], tree: PyTree, *, store: str = "npy", overwrite: bool = False
) -> None:
    """Write a pytree of arrays to a folder; each process writes its own shards.

    Parameters
    ----------
    path : str or path
        Folder to make. In a program of several processes, all of them pass the same path, and
        reach the same file system.
    tree : pytree of array_like
        Arrays of any shapes and dtypes, random keys, and numbers.
    store : str, optional
        "npy", the default, for one `.npy` file for each shard; "zarr" for a zarr group whose
        chunks are the shards.
    overwrite : bool, optional
        If True, replace a checkpoint that is there. Other files and folders are not replaced. The
        default is False.

    Raises
    ------
    FileExistsError
        If the path exists, and `overwrite` is False or it is not a checkpoint.
    ValueError
        If the store is unknown, the path does not end in a name, two leaves have the same name, or
        one is a masked array.
    TypeError
        If a leaf is not an array of numbers.
    ImportError
        If the store is "zarr", and zarr is not installed.
    RuntimeError
        If writing failed in another process.

    See Also
    --------
    checkpoints.load : Read a checkpoint.
    checkpoints.save_safetensors : Write one file in the format of safetensors.

    Notes
    -----
    The folder gets its name when all processes have written their shards. Until then, it has a
    unique name with the suffix ".partial", which remains if the program is killed. A checkpoint
    that is replaced has the suffix ".old" for a moment; if the program is killed in that moment,
    `load` says which folders to rename.

    Examples
    --------
    >>> import tempfile
    >>> import accnp as jax
    >>> folder = tempfile.mkdtemp() + "/step-1"
    >>> jax.checkpoints.save(folder, {"w": jax.numpy.ones((2, 2)), "step": 1})
    >>> jax.checkpoints.load(folder)["step"]
    Array(1, dtype=int32)
    """
    function = "checkpoints.save"
    with collective_step(function):
        if store not in STORES:
            raise ValueError(f"{function}: store must be one of {STORES}; got {store!r}; pass one")
        leaves = {
            name: describe_leaf(x, function) for name, x in leaf_paths(tree, function).items()
        }
    compute([x for x, _ in leaves.values()])
    with replacement(Path(path), function, overwrite, is_folder=True) as partial:
        place = partial / "arrays"
        with collective_step(function):
            if process_index() == 0:
                place.mkdir(parents=True)
                about = {
                    "format": _FORMAT,
                    "store": store,
                    "structure": structure_of(tree, iter(leaves)),
                    "arrays": {name: facts._asdict() for name, (_, facts) in leaves.items()},
                }
                (partial / ABOUT).write_text(json.dumps(about, indent=1))
                new = open_store(store, place, "w")
                for name, (_, facts) in leaves.items():
                    new.create(name, facts)
        with collective_step(function):
            target = open_store(store, place, "r+")
            for name, (x, facts) in leaves.items():
                for index, values in regions(x):
                    target.write(name, facts, index, values)


@api_boundary
def load(path: str | os.PathLike[str], *, like: PyTree = None, shardings: PyTree = None) -> PyTree:
    """Read a pytree of arrays from a folder; each process reads what it needs for its own shards.

    Parameters
    ----------
    path : str or path
        Folder that `save` has written, with any number of processes.
    like : pytree, optional
        Arrays or `ShapeDtypeStruct`s in the structure of the result. It is needed if the pytree has
        containers other than dicts with strings as keys, lists, tuples and None. Shapes and dtypes
        are compared, and shardings are used if `shardings` is not given.
    shardings : Sharding or pytree prefix of them, optional
        Shardings of the results. By default, and where the prefix has None, each process reads the
        whole array.

    Returns
    -------
    pytree of Array
        Arrays with the shapes and dtypes that were saved.

    Raises
    ------
    FileNotFoundError
        If there is no checkpoint.
    ValueError
        If `like` or `shardings` does not match, or the checkpoint is of another format.

    See Also
    --------
    checkpoints.save : Write a checkpoint.

    Notes
    -----
    Arrays of 64-bit types become 32-bit arrays, with a warning, unless `jax_enable_x64` is set. An
    array that lies
    within one `.npy` file is mapped into memory and not copied; do not change the file while it is
    in use.

    Examples
    --------
    >>> import tempfile
    >>> import accnp as jax
    >>> folder = tempfile.mkdtemp() + "/weights"
    >>> jax.checkpoints.save(folder, [jax.numpy.arange(4)])
    >>> rows = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> jax.checkpoints.load(folder, shardings=rows)
    [Array([0, 1, 2, 3], dtype=int32)]
    """
    function = "checkpoints.load"
    folder = Path(path)
    about = _read_metadata(folder, function)
    facts = {
        name: ArrayFacts(tuple(f["shape"]), f["dtype"], tuple(f["chunks"]), f["key"])
        for name, f in about["arrays"].items()
    }
    if like is not None:
        names = leaf_paths(like, function)
        _compare(names, facts, function)
        tree = tree_unflatten(tree_flatten(like)[1], list(names))
    elif about["structure"] is None:
        raise ValueError(
            f"{function}: the checkpoint contains classes; got no like; pass a tree of the same "
            "structure as like="
        )
    else:
        tree = tree_of(about["structure"], {name: name for name in facts})
    leaves, structure = tree_flatten(tree)
    if shardings is None and like is not None:
        places = [_sharding_of(x) for x in tree_flatten(like)[0]]
    else:
        places = broadcast_prefix(shardings, tree, is_leaf=lambda x: x is None)
    warn_narrowed(function, {n: as_dtype(f.dtype) for n, f in facts.items() if f.key is None})
    source = open_store(about["store"], folder / "arrays", "r")
    arrays = [_load_array(source, n, facts[n], s) for n, s in zip(leaves, places, strict=True)]
    return tree_unflatten(structure, arrays)


def _read_metadata(folder: Path, function: str) -> Any:
    try:
        about = json.loads((folder / ABOUT).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{function}: there is no checkpoint; got {str(folder)!r}; "
            f"{explain_interruption(folder) or 'pass a folder that checkpoints.save has written'}"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"{function}: {folder / ABOUT} is damaged: {error}; restore the file"
        ) from error
    if not isinstance(about, dict):
        raise ValueError(
            f"{function}: {folder / ABOUT} must hold an object; got {type(about).__name__}; "
            "restore the file"
        )
    if about.get("format") != _FORMAT or about.get("store") not in STORES:
        raise ValueError(
            f"{function}: the checkpoint is of another version of accnp; got format "
            f"{about.get('format')} in {str(folder)!r}; this version reads format {_FORMAT}"
        )
    return about


def _compare(like: dict[str, Any], facts: dict[str, ArrayFacts], function: str) -> None:
    if like.keys() != facts.keys():
        different = sorted(like.keys() ^ facts.keys())
        raise ValueError(
            f"{function}: like must have the leaves of the checkpoint; got a difference in "
            f"{', '.join(different[:5])}; pass a pytree of the structure that was saved"
        )
    for name, x in like.items():
        f = facts[name]
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if f.key is not None or shape is None:
            continue
        if tuple(shape) != f.shape or as_dtype(dtype) != as_dtype(f.dtype):
            raise ValueError(
                f"{function}: the leaf {name!r} is {f.dtype}{list(f.shape)}; got {dtype}"
                f"{list(shape)} in like; correct it"
            )


def _sharding_of(x: Any) -> Any:
    if isinstance(x, Array) and not x.committed:
        return None
    return getattr(x, "sharding", None)


def _load_array(source: Store, name: str, facts: ArrayFacts, sharding: Any) -> Any:
    def read(index: Index) -> np.ndarray:
        return source.read(name, facts, as_index(index, facts.shape)).view(as_dtype(facts.dtype))

    x = array_from(read, facts.shape, sharding)
    return x if facts.key is None else wrap_key_data(x, impl=facts.key)


def array_from(read: Callable[[Index], np.ndarray], shape: tuple[int, ...], sharding: Any) -> Array:
    """The array of the values that a function reads, with a sharding, or none."""
    if sharding is None:
        return asarray(read((slice(None),) * len(shape)))
    return make_array_from_callback(shape, sharding, lambda index: array(read(index)))
