"""The processes and devices of a program, named scopes, and `clear_caches`."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp import errors
from accnp.array_type import Array
from accnp.caches import caches
from accnp.compiler.cache_state import disk_cache
from accnp.config import config
from accnp.errors import alias, api_boundary
from accnp.runtime import device
from accnp.runtime.buffer import Buffer, pool_stats, trim
from accnp.runtime.device import devices
from accnp.version import __version__

P = ParamSpec("P")
R = TypeVar("R")


def process_index(backend: str | None = None) -> int:
    """Return the index of this process.

    Parameters
    ----------
    backend : str, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    int
        Index of this process; 0 if there is one (see `distributed.initialize`).

    See Also
    --------
    process_count : Number of processes.
    local_devices : Devices of this process.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.process_index()
    0
    """
    return device.process[0]


def process_count(backend: str | None = None) -> int:
    """Return the number of processes.

    Parameters
    ----------
    backend : str, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    int
        Number of processes, 1 unless `distributed.initialize` has found others.

    See Also
    --------
    process_index : Index of this process.
    device_count : Number of devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.process_count()
    1
    """
    return device.process[1]


def process_indices(backend: str | None = None) -> list[int]:
    """Return the indices of all processes.

    Parameters
    ----------
    backend : str, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    list of int
        Numbers from 0 to below `process_count()`.

    See Also
    --------
    process_index : Index of this process.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.process_indices()
    [0]
    """
    return [*range(device.process[1])]


host_id = alias(process_index, "host_id", "accnp")
host_count = alias(process_count, "host_count", "accnp")
host_ids = alias(process_indices, "host_ids", "accnp")


def named_scope(name: str) -> contextlib.AbstractContextManager[None]:
    """Mark a part of a program by a name, as programs for JAX do.

    Parameters
    ----------
    name : str
        Label of the operations inside.

    Returns
    -------
    context manager or decorator
        It has no effect: accnp does not record the name. Shapes and dtypes do not change.

    Raises
    ------
    TypeError
        If the name is not a string.

    See Also
    --------
    named_call : Name the whole of a function.
    profiler.TraceAnnotation : Name a part of a profile.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.named_scope("twice"):
    ...     y = 2 * jnp.ones(1)
    >>> y
    Array([2.], dtype=float32)
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: name must be a string; got {name!r}; pass a str")
    return _empty_context()


@contextlib.contextmanager
def _empty_context() -> Iterator[None]:  # also a decorator, unlike contextlib.nullcontext
    yield


@api_boundary
def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Name the operations of a function, for jaxprs and profiles; results do not change.

    Parameters
    ----------
    fun : callable
        Function of arrays of any shape and dtype.
    name : str, optional
        Name of its operations. The default is the name of the function.

    Returns
    -------
    callable
        Function with the same results as `fun`.

    Raises
    ------
    TypeError
        If the name is not a string.

    See Also
    --------
    named_scope : Name a part of a function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.named_call(lambda x: x + 1, name="next")(1)
    2
    """

    @functools.wraps(fun)
    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    if name is not None:
        call.__name__ = name
    return call


def clear_caches() -> None:
    """Clear all caches in memory, and return unused memory to the system.

    These are the caches that `memory_stats` lists: traces of jitted functions, plans, kernels, and
    so on. Machine code is unmapped as soon as no other object needs it. Arrays of any shape and
    dtype stay, and so do the compiled kernels on disk, which `python -m accnp clear-cache` removes.

    See Also
    --------
    memory_stats : Memory of arrays, machine code and caches.
    live_arrays : List the arrays that hold memory.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.clear_caches()
    """
    for cache in [*caches.values()]:
        cache.clear()
    trim()


def memory_stats() -> dict[str, dict[str, int | None]]:
    """Return the memory of this process that arrays, machine code and caches use.

    The bounds of caches are options: `config.update("trace_cache_size", 1000)`. Each cache evicts
    the entries that were not used for the longest time. Entries that an object still needs, such
    as the code of a kernel of a cached plan, are freed with that object.

    Returns
    -------
    dict
        Rows of numbers, by name. `arrays` has the `bytes` of the buffers in use, and `code` the
        `bytes` of machine code in its number of `entries`. Each cache has its `entries`, its
        `bound` (None if it has none of its own), and how many entries it has `evicted`; `pool` has
        `bytes` instead of entries, and `disk` has the compiled kernels on disk.

    See Also
    --------
    clear_caches : Clear all caches in memory.
    live_arrays : List the arrays that hold memory.
    device_memory_stats : Memory of a GPU.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.memory_stats()["traces"]["bound"]
    4096
    """
    code = sys.modules.get("accnp.compiler.elf_loader")
    mapped = [] if code is None else [*code.mapped.values()]
    stats: dict[str, dict[str, int | None]] = {
        "arrays": {"bytes": pool_stats()["live_bytes"]},
        "code": {"entries": len(mapped), "bytes": sum(mapped)},
    }
    for name, cache in sorted(caches.items()):
        bound = getattr(config, cache.option) if cache.option else None
        stats[name] = {
            "bytes" if cache.in_bytes else "entries": cache.size(),
            "bound": pool_stats()["limit_bytes"] if name == "pool" else bound,
            "evicted": cache.evicted(),
        }
    disk = disk_cache()
    sizes = [] if disk is None else disk.sizes()
    bound = None if disk is None else disk.limit
    stats["disk"] = {"entries": len(sizes), "bytes": sum(sizes), "bound": bound}
    return stats


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions and devices that a bug report should contain.

    Parameters
    ----------
    return_string : bool, optional
        If True, return the text instead of printing it. The default is False.

    Returns
    -------
    str or None
        Text with `return_string`, otherwise None.

    See Also
    --------
    devices : List of the devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.print_environment_info(return_string=True).startswith("jax:")
    True
    """
    import platform

    text = "\n".join(
        [
            f"jax:    {__version__} (accnp)",
            f"jaxlib: {__version__} (accnp)",
            f"numpy:  {np.__version__}",
            f"python: {sys.version}",
            f"system: {platform.platform()}",
            f"devices: {devices()}",
        ]
    )
    if return_string:
        return text
    print(text)
    return None


@api_boundary
def live_arrays(platform: str | None = None) -> list[Array]:
    """List the arrays of this process that hold memory and are still referenced.

    Parameters
    ----------
    platform : str, optional
        Name of a platform, such as "cpu". The default is all platforms.

    Returns
    -------
    list of Array
        Arrays of every shape and dtype.

    Raises
    ------
    RuntimeError
        If the platform is unknown.

    See Also
    --------
    clear_caches : Return unused memory to the system.
    profiler.device_memory_profile : Memory of a device as a profile.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.ones(3).block_until_ready()
    >>> any(x is y for y in jnp.live_arrays())
    True
    """
    platform_name = None if platform is None else devices(platform)[0].platform  # may raise
    arrays = [x for x in gc.get_objects() if type(x) is Array]
    arrays = [x for x in arrays if isinstance(getattr(x._node, "value", None), Buffer)]
    return [x for x in arrays if platform_name in (None, x.platform())]


def device_memory_stats(device: Any = None) -> dict[str, int]:
    """Return statistics of the memory of a GPU, in bytes.

    Parameters
    ----------
    device : Device, optional
        GPU to ask. The default is the first one.

    Returns
    -------
    dict
        `bytes_in_use` by arrays, `pool_bytes` that the pool holds (in use or kept for reuse),
        `bytes_free`, and `bytes_limit`, the size of the memory.

    Raises
    ------
    ValueError
        If the device is a CPU.
    RuntimeError
        If the process has no GPU.

    See Also
    --------
    live_arrays : List the arrays that hold memory.
    clear_caches : Return unused memory to the system.

    Examples
    --------
    >>> import accnp as jnp
    >>> try:
    ...     text = str(sorted(jnp.device_memory_stats()))
    ... except RuntimeError as error:
    ...     text = str(error)  # what is missing
    >>> "bytes_in_use" in text or "not available" in text
    True
    """
    device = devices("gpu")[0] if device is None else device
    stats = device.memory_stats()
    if stats is None:
        raise ValueError(
            f"device_memory_stats: statistics are available for GPUs only; got {device}; name a GPU"
        )
    return stats


@api_boundary
def register_exclusion(path: str) -> None:
    """Exclude a file or folder from tracebacks and from the lines that errors name.

    For libraries between a user and accnp, whose lines would not help the user.

    Parameters
    ----------
    path : str
        File, or folder of files, to exclude.

    See Also
    --------
    named_scope : Name a part of a program.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.extend.source_info_util.register_exclusion("/somewhere/library")
    """
    if path not in errors.hidden:
        errors.hidden = (*errors.hidden, path)
