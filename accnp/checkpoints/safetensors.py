"""Read and write files in the safetensors format: a JSON header and the bytes of the arrays.

`save_safetensors` writes a dict of arrays, which may be sharded over several processes, to a file
that other libraries can read. `load_safetensors` maps such a file into memory and returns its
arrays. Both are exported by `accnp.checkpoints`.

The format is described at https://huggingface.co/docs/safetensors. This module does not use the
package of that name, which cannot load bfloat16 or float8 arrays into NumPy, or only the part of a
file that a shard needs.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from accnp.array_type import Array, ArrayLike
from accnp.checkpoints.checkpoint_files import array_from
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
from accnp.checkpoints.replacement import replacement
from accnp.dtypes.names import as_dtype
from accnp.errors import api_boundary
from accnp.pytree import PyTree, broadcast_prefix
from accnp.runtime.device import process_index

__all__ = ["load_safetensors", "save_safetensors"]

_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16",
    "F32": "float32", "F64": "float64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LONGEST = 100_000_000  # the format's limit on the size of a header, in bytes
_METADATA = "__metadata__"


class Entry(NamedTuple):
    """An array in a file; `start` is the offset of its first byte from the start of the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return prod(self.shape) * as_dtype(self.dtype).itemsize


@api_boundary
def save_safetensors(
    path: str | os.PathLike[str],
    arrays: Mapping[str, ArrayLike],
    *,
    metadata: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write arrays to a file in the safetensors format; each process writes its own shards.

    Parameters
    ----------
    path : str or path
        File to write. In a program with several processes, all must pass the same path, on a file
        system that they share.
    arrays : mapping of str to array_like
        Arrays by name. They can have any shapes, and all dtypes of the format: it lacks int4,
        complex128 and some float8 types.
    metadata : mapping of str to str, optional
        Strings to store in the header.
    overwrite : bool, optional
        If True, replace an existing file. The default is False.

    Raises
    ------
    FileExistsError
        If the path exists, and `overwrite` is False or it is a folder.
    TypeError
        If a name or a metadata item is not a str, or the format does not support a dtype.
    ValueError
        If an array is a masked array, or the path does not end in a file name.
    RuntimeError
        If writing failed in another process.

    See Also
    --------
    checkpoints.load_safetensors : Read such a file.
    checkpoints.save : Write any pytree, with one file for each shard.

    Examples
    --------
    >>> import tempfile
    >>> import accnp as jax
    >>> file = tempfile.mkdtemp() + "/model.safetensors"
    >>> jax.checkpoints.save_safetensors(file, {"w": jax.numpy.ones(2)}, metadata={"step": "1"})
    >>> jax.checkpoints.load_safetensors(file)
    {'w': Array([1., 1.], dtype=float32)}
    """
    function = "checkpoints.save_safetensors"
    texts = dict(metadata or {})
    with collective_step(function):
        for text in (*arrays, *texts, *texts.values()):
            if not isinstance(text, str):
                raise TypeError(f"{function}: names must be str; got {text!r}; convert it")
        leaves = {name: describe_leaf(x, function) for name, x in arrays.items()}
        for name, (_, facts) in leaves.items():
            if facts.dtype not in _NAMES or facts.key is not None or name == _METADATA:
                raise TypeError(
                    f"{function}: the format has no arrays of this name and dtype; got "
                    f"{facts.key or facts.dtype} for {name!r}; use checkpoints.save"
                )
    compute([x for x, _ in leaves.values()])
    header, entries = _plan_layout(leaves, texts)
    with replacement(Path(path), function, overwrite, is_folder=False) as partial:
        with collective_step(function):
            if process_index() == 0:
                with open(partial, "xb") as file:
                    file.write(len(header).to_bytes(8, "little") + header)
                    _allocate(file, sum([e.nbytes for e in entries.values()]))
        with collective_step(function):
            for name, (x, _) in leaves.items():
                for index, values in regions(x):
                    if values.size:
                        target = _map_array(partial, entries[name], values.dtype, "r+")
                        target[index or ...] = values


def _allocate(file: BinaryIO, nbytes: int) -> None:
    """Extend a file by this many bytes and reserve disk space for them.

    If the disk is full, this raises OSError. Without the reservation, writing to the memory map
    would kill the process with SIGBUS.
    """
    start = file.tell()
    file.truncate(start + nbytes)
    if nbytes and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), start, nbytes)
        except OSError as error:
            # File systems without this call return these two errors.
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise


def _plan_layout(
    leaves: Mapping[str, tuple[Any, ArrayFacts]], texts: dict[str, str]
) -> tuple[bytes, dict[str, Entry]]:
    """Return the header of a file and the entries of its arrays.

    Arrays with larger elements come first, so that all arrays are aligned.
    """
    ordered = sorted(leaves, key=lambda name: (-leaves[name][1].stored.itemsize, name))
    table: dict[str, Any] = {_METADATA: texts} if texts else {}
    entries, at = {}, 0
    for name in ordered:
        facts = leaves[name][1]
        entries[name] = Entry(facts.dtype, facts.shape, at)
        stop = at + entries[name].nbytes
        shape = list(facts.shape)
        table[name] = {"dtype": _NAMES[facts.dtype], "shape": shape, "data_offsets": [at, stop]}
        at = stop
    header = json.dumps(table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    begin = 8 + len(header)
    return header, {n: e._replace(start=begin + e.start) for n, e in entries.items()}


def _map_array(path: Path, entry: Entry, dtype: Any, mode: Any) -> np.ndarray:
    """Map an array of a file into memory; `mode` is that of `numpy.memmap`."""
    if not prod(entry.shape):
        return np.empty(entry.shape, dtype)
    return (
        np.memmap(path, np.uint8, mode, entry.start, (entry.nbytes,))
        .view(dtype)
        .reshape(entry.shape)
    )


@api_boundary
def load_safetensors(
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    shardings: PyTree = None,
) -> dict[str, Array]:
    """Read arrays from a file in the safetensors format.

    Parameters
    ----------
    path : str or path
        File to read.
    names : sequence of str, optional
        Names of the arrays to read. By default, all are read.
    shardings : Sharding or dict of str to Sharding, optional
        Shardings of the results. Each process reads only its own shards. None means that each
        process reads the whole array, which is the default.

    Returns
    -------
    dict of str to Array
        Arrays by name, with the shapes and dtypes of the file.

    Raises
    ------
    ValueError
        If the file is not in this format, or is damaged, or `shardings` does not match.
    TypeError
        If `names` is a str.
    KeyError
        If a name in `names` is not in the file.

    See Also
    --------
    checkpoints.save_safetensors : Write such a file.

    Notes
    -----
    The file is mapped into memory: an array is read when it is used, and it is not copied if accnp
    supports its dtype. Do not change the file while the arrays are in use. 64-bit arrays become
    32-bit arrays, with a warning, unless `jax_enable_x64` is set.

    Examples
    --------
    >>> import tempfile
    >>> import accnp as jax
    >>> file = tempfile.mkdtemp() + "/model.safetensors"
    >>> jax.checkpoints.save_safetensors(file, {"a": jax.numpy.ones(2), "b": jax.numpy.zeros(3)})
    >>> jax.checkpoints.load_safetensors(file, names=["b"])
    {'b': Array([0., 0., 0.], dtype=float32)}
    """
    function = "checkpoints.load_safetensors"
    file = Path(path)
    entries = _read_entries(file, function)
    if isinstance(names, str):
        raise TypeError(
            f"{function}: names must be a sequence of str; got {names!r}; pass [{names!r}]"
        )
    for name in names or ():
        if name not in entries:
            raise KeyError(
                f"{function}: the file has no array {name!r}; it has {', '.join(entries) or 'none'}"
            )
    selection = {name: name for name in (entries if names is None else names)}
    places = broadcast_prefix(shardings, selection, is_leaf=lambda x: x is None)
    warn_narrowed(function, {name: as_dtype(entries[name].dtype) for name in selection})
    return {
        name: _load_array(file, entries[name], sharding)
        for name, sharding in zip(sorted(selection), places, strict=True)
    }


def _load_array(file: Path, entry: Entry, sharding: Any) -> Array:
    """Return an array of a file, of which each process reads its shards."""

    def read(index: Index) -> np.ndarray:
        return _map_array(file, entry, as_dtype(entry.dtype), "r")[as_index(index, entry.shape)]

    return array_from(read, entry.shape, sharding)


def _read_entries(path: Path, function: str) -> dict[str, Entry]:
    """Read the header of a file and return an entry for each array, by name.

    Raises ValueError unless the header is valid and the arrays follow each other without gaps or
    overlaps up to the end of the file. `function` is the public function, for the error message.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(_LONGEST, size - 8):
            raise _invalid_file_error(function, path, f"the header of {length} bytes does not fit")
        text = file.read(length)
    try:
        header = json.loads(text)
        header.pop(_METADATA, None)
        fields = {
            name: (_DTYPES[e["dtype"]], tuple(e["shape"]), *e["data_offsets"])
            for name, e in header.items()
        }
        ordered = sorted(fields.items(), key=lambda item: item[1][2:])
        at, entries = 0, {}
        for name, (dtype, shape, start, stop) in ordered:
            entries[name] = entry = Entry(dtype, shape, 8 + length + start)
            whole = all(type(n) is int and n >= 0 for n in (*shape, start, stop))
            if not whole or start != at or stop != at + entry.nbytes:
                raise ValueError(f"the bytes of {name!r} do not follow those before it")
            at = stop
        if 8 + length + at != size:
            raise ValueError(f"there are {size - 8 - length} bytes for arrays of {at}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _invalid_file_error(function, path, str(error)) from None
    return entries


def _invalid_file_error(function: str, path: Path, why: str) -> ValueError:
    """Return the exception for a file that is not in the format."""
    return ValueError(
        f"{function}: the file must be in the format of safetensors; got {str(path)!r}, where "
        f"{why}; write it again"
    )
