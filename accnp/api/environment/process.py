"""Where a program runs, names for its parts, and forgetting what was traced.

In: nothing, or a name. Out: facts of the one process on one machine.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp import errors
from accnp.api.compiled import jit as jit_module
from accnp.array import Array
from accnp.errors import alias, api_boundary
from accnp.runtime.buffer import Buffer, trim
from accnp.runtime.device import devices

P = ParamSpec("P")
R = TypeVar("R")


def process_index(backend: str | None = None) -> int:
    """The number of this process: 0.

    The result is a Python int. Raises no error: the backend is not looked at.

    Example:
        >>> import accnp as jnp
        >>> jnp.process_index()
        0
    """
    return 0


def process_count(backend: str | None = None) -> int:
    """How many processes take part: 1.

    The result is a Python int. Raises no error: the backend is not looked at.

    Example:
        >>> import accnp as jnp
        >>> jnp.process_count()
        1
    """
    return 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes.

    Raises no error: the backend is not looked at.

    Example:
        >>> import accnp as jnp
        >>> jnp.process_indices()
        [0]
    """
    return [0]


host_id = alias(process_index, "host_id", "accnp")
host_count = alias(process_count, "host_count", "accnp")
host_ids = alias(process_indices, "host_ids", "accnp")


def named_scope(name: str) -> contextlib.AbstractContextManager[None]:
    """Name a part of a program; has no effect on what is computed.

    Shapes and dtypes inside stay what they are.

    Raises:
        TypeError: the name is no text.

    Example:
        >>> import accnp as jnp
        >>> with jnp.named_scope("twice"):
        ...     y = 2 * jnp.ones(1)
        >>> y
        Array([2.], dtype=float32)
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: the name must be a text; got {name!r}; pass a str")
    return _unchanged()


@contextlib.contextmanager
def _unchanged() -> Iterator[None]:
    yield


@api_boundary
def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Name a function's part of a program; the function works as before, on any shapes and dtypes.

    Raises no error of its own.

    Example:
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
    """Forget what jit has traced, and give free memory kept for results back to the system.

    Compiled kernels stay, since any function can use them.

    Raises no error; arrays of any shape and dtype stay as they are.

    Example:
        >>> import accnp as jnp
        >>> jnp.clear_caches()
    """
    known = list(jit_module._caches.values())
    jit_module.forget([cache for by_options in known for cache in list(by_options.values())])
    trim()


def print_environment_info(return_string: bool = False) -> str | None:
    """Versions and devices, for reports of faults.

    Returned as text if `return_string`, else printed and None. Raises no error.

    Example:
        >>> import accnp as jnp
        >>> jnp.print_environment_info(return_string=True).startswith("jax:")
        True
    """
    import platform

    version = sys.modules["accnp"].__version__
    text = "\n".join(
        [
            f"jax:    {version} (accnp)",
            f"jaxlib: {version} (accnp)",
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
    """The arrays of this process that hold memory now, and are referred to somewhere.

    Args:
        platform: the name of a platform, or None for all.

    Arrays of every shape and dtype.

    Raises:
        RuntimeError: there is no such platform.

    Example:
        >>> import accnp as jnp
        >>> x = jnp.ones(3).block_until_ready()
        >>> any(x is y for y in jnp.live_arrays())
        True
    """
    wanted = None if platform is None else devices(platform)[0].platform  # or says there is none
    found = [x for x in gc.get_objects() if type(x) is Array]
    found = [x for x in found if isinstance(getattr(x._node, "value", None), Buffer)]
    return [x for x in found if wanted in (None, x.platform())]


def device_memory_stats(device: Any = None) -> dict[str, int]:
    """What is known of the memory of a GPU, in bytes.

    Args:
        device: which GPU; by default the first.

    Returns:
        `bytes_in_use` by arrays, `pool_bytes` that the pool holds (in use, or kept for reuse),
        `bytes_free` and `bytes_limit`, all there is.

    Raises:
        ValueError: the device is a CPU, whose memory is the machine's.
        RuntimeError: there is no GPU.

    Example:
        >>> import accnp as jnp
        >>> try:
        ...     text = str(sorted(jnp.device_memory_stats()))
        ... except RuntimeError as error:
        ...     text = str(error)  # what is missing
        >>> "bytes_in_use" in text or "not available" in text
        True
    """
    device = devices("gpu")[0] if device is None else device
    found = device.memory_stats()
    if found is None:
        raise ValueError(
            f"device_memory_stats: the memory of a CPU is the machine's; got {device}; name a GPU"
        )
    return found


@api_boundary
def register_exclusion(path: str) -> None:
    """Show no lines of a file, or of the files of a folder, in tracebacks and as a user's own.

    For libraries between a user and accnp.

    Example:
        >>> import accnp as jax
        >>> jax.extend.source_info_util.register_exclusion("/somewhere/library")
    """
    if path not in errors.hidden:
        errors.hidden = (*errors.hidden, path)
