"""Files in the format of safetensors: a header in JSON and the bytes of arrays.

In: arrays by names, which may be sharded over several processes. Out: a file that all libraries for
the format read; and the arrays of such a file. Arrays are read by mapping the file into memory.

The format is described at https://huggingface.co/docs/safetensors; its own package reads no
bfloat16 or float8 arrays into NumPy, and no parts of a file for shards.
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
    compute,
    facts_of,
    regions,
    step_of_all,
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
_LONGEST = 100_000_000  # bytes of a header, as the format says
_METADATA = "__metadata__"


class Entry(NamedTuple):
    """An array of a file: its first byte is `start` bytes from the file's."""

    dtype: str
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * as_dtype(self.dtype).itemsize


@api_boundary
def save_safetensors(
    path: str | os.PathLike[str],
    arrays: Mapping[str, ArrayLike],
    *,
    metadata: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write arrays to a file in the format of safetensors; each process writes its own shards.

    Parameters
    ----------
    path : str or path
        File to write. In a program of several processes, all of them pass the same path, and reach
        the same file system.
    arrays : mapping of str to array_like
        Arrays by names, of any shapes, and of dtypes that the format has: all but int4, complex128
        and some float8 types.
    metadata : mapping of str to str, optional
        Texts to store with the arrays.
    overwrite : bool, optional
        If True, replace a file that is there. The default is False.

    Raises
    ------
    FileExistsError
        If the path exists, and `overwrite` is False or it is a folder.
    TypeError
        If a name or a text is not a str, or the format does not have a dtype.
    ValueError
        If an array is a masked array, or the path does not end in a name.
    RuntimeError
        If writing failed in another process.

    See Also
    --------
    checkpoints.load_safetensors : Read such a file.
    checkpoints.save : Write any pytree, in a file for each shard.

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
    with step_of_all(function):
        for text in (*arrays, *texts, *texts.values()):
            if not isinstance(text, str):
                raise TypeError(f"{function}: names must be str; got {text!r}; convert it")
        made = {name: facts_of(x, function) for name, x in arrays.items()}
        for name, (_, facts) in made.items():
            if facts.dtype not in _NAMES or facts.key is not None or name == _METADATA:
                raise TypeError(
                    f"{function}: the format has no arrays of this name and dtype; got "
                    f"{facts.key or facts.dtype} for {name!r}; use checkpoints.save"
                )
    compute([x for x, _ in made.values()])
    header, entries = _layout(made, texts)
    with replacement(Path(path), function, overwrite, is_folder=False) as partial:
        with step_of_all(function):
            if process_index() == 0:
                with open(partial, "xb") as file:
                    file.write(len(header).to_bytes(8, "little") + header)
                    _allocate(file, sum([e.nbytes for e in entries.values()]))
        with step_of_all(function):
            for name, (x, _) in made.items():
                for index, values in regions(x):
                    if values.size:
                        target = _mapped(partial, entries[name], values.dtype, "r+")
                        target[index or ...] = values


def _allocate(file: BinaryIO, nbytes: int) -> None:
    """Append bytes. If the disk is full, this is an error; writing to a map would end the process
    with a signal."""
    start = file.tell()
    file.truncate(start + nbytes)
    if nbytes and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), start, nbytes)
        except OSError as error:
            if error.errno not in (
                errno.EOPNOTSUPP,
                errno.EINVAL,
            ):  # the file system has no such call
                raise


def _layout(
    made: Mapping[str, tuple[Any, ArrayFacts]], texts: dict[str, str]
) -> tuple[bytes, dict[str, Entry]]:
    """The header, and where each array lies: large elements first, so that all are aligned."""
    ordered = sorted(made, key=lambda name: (-made[name][1].stored.itemsize, name))
    found: dict[str, Any] = {_METADATA: texts} if texts else {}
    entries, at = {}, 0
    for name in ordered:
        facts = made[name][1]
        entries[name] = Entry(facts.dtype, facts.shape, at)
        stop = at + entries[name].nbytes
        shape = list(facts.shape)
        found[name] = {"dtype": _NAMES[facts.dtype], "shape": shape, "data_offsets": [at, stop]}
        at = stop
    header = json.dumps(found, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    begin = 8 + len(header)
    return header, {n: e._replace(start=begin + e.start) for n, e in entries.items()}


def _mapped(path: Path, entry: Entry, dtype: Any, mode: Any) -> np.ndarray:
    """The elements of an array in a file."""
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
    """Read arrays from a file in the format of safetensors.

    Parameters
    ----------
    path : str or path
        File to read.
    names : sequence of str, optional
        Names of the arrays to read. By default, all are read.
    shardings : Sharding or dict of str to Sharding, optional
        Shardings of the results; None for an array that each process reads as a whole, which is the
        default. Of a sharded array, each process reads its own shards.

    Returns
    -------
    dict of str to Array
        Arrays by names, with the shapes and dtypes of the file.

    Raises
    ------
    ValueError
        If the file is not in this format, or is damaged, or `shardings` does not match.
    TypeError
        If `names` is a str.
    KeyError
        If the file has no array of a name.

    See Also
    --------
    checkpoints.save_safetensors : Write such a file.

    Notes
    -----
    The file is mapped into memory: an array is read when it is used, and not copied if its dtype is
    one of accnp's. Do not change the file while it is in use. Arrays of 64-bit types become 32-bit
    arrays, with a warning, unless `jax_enable_x64` is set.

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
    entries = _entries(file, function)
    if isinstance(names, str):
        raise TypeError(
            f"{function}: names must be a sequence of str; got {names!r}; pass [{names!r}]"
        )
    for name in names or ():
        if name not in entries:
            raise KeyError(
                f"{function}: the file has no array {name!r}; it has {', '.join(entries) or 'none'}"
            )
    wanted = {name: name for name in (entries if names is None else names)}
    places = broadcast_prefix(shardings, wanted, is_leaf=lambda x: x is None)
    warn_narrowed(function, {name: as_dtype(entries[name].dtype) for name in wanted})
    return {
        name: _loaded(file, entries[name], sharding)
        for name, sharding in zip(sorted(wanted), places, strict=True)
    }


def _loaded(file: Path, entry: Entry, sharding: Any) -> Array:
    def read(index: Index) -> np.ndarray:
        return _mapped(file, entry, as_dtype(entry.dtype), "r")[as_index(index, entry.shape)]

    return array_from(read, entry.shape, sharding)


def _entries(path: Path, function: str) -> dict[str, Entry]:
    """The arrays of a file, of which nothing is believed that the format does not guarantee."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(_LONGEST, size - 8):
            raise _damaged(function, path, f"the header of {length} bytes does not fit")
        text = file.read(length)
    try:
        header = json.loads(text)
        header.pop(_METADATA, None)
        found = {
            name: (_DTYPES[e["dtype"]], tuple(e["shape"]), *e["data_offsets"])
            for name, e in header.items()
        }
        ordered = sorted(found.items(), key=lambda item: item[1][2:])
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
        raise _damaged(function, path, str(error)) from None
    return entries


def _damaged(function: str, path: Path, why: str) -> ValueError:
    return ValueError(
        f"{function}: the file must be in the format of safetensors; got {str(path)!r}, where "
        f"{why}; write it again"
    )
