"""`accnp.distributed`: several processes. There is one; starting it is nothing to do.

>>> import accnp as jax
>>> jax.distributed.is_initialized()
False
"""

from __future__ import annotations

from accnp.api.arguments.shapes import AxesLike
from accnp.missing import install_getattr as _install_getattr

__all__ = ["initialize", "is_initialized", "shutdown"]

_started = False


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: AxesLike | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join the other processes of a distributed program; accnp supports a single process.

    Parameters
    ----------
    coordinator_address : str, optional
        Ignored; present for compatibility with JAX.
    num_processes : int, optional
        How many processes take part: 1, or None for the same.
    process_id : int, optional
        Ignored; present for compatibility with JAX.
    local_device_ids : int or sequence of int, optional
        Ignored; present for compatibility with JAX.
    cluster_detection_method : str, optional
        Ignored; present for compatibility with JAX.
    initialization_timeout : int, optional
        Ignored; present for compatibility with JAX.
    heartbeat_timeout_seconds : int, optional
        Ignored; present for compatibility with JAX.
    shutdown_timeout_seconds : int, optional
        Ignored; present for compatibility with JAX.
    coordinator_bind_address : str, optional
        Ignored; present for compatibility with JAX.
    slice_index : int, optional
        Ignored; present for compatibility with JAX.
    partition_index : int, optional
        Ignored; present for compatibility with JAX.

    Raises
    ------
    RuntimeError
        If it was called before.
    ValueError
        If more than one process is requested.

    See Also
    --------
    distributed.shutdown : Leave the program.
    distributed.is_initialized : Whether this was called.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.distributed.initialize(num_processes=1)
    >>> jax.distributed.is_initialized()
    True
    >>> jax.distributed.shutdown()
    """
    global _started
    if num_processes not in (None, 1):
        raise ValueError(
            f"distributed.initialize: programs of one process only; got {num_processes=}; run "
            "each apart, or use several devices of the CPU (ACCNP_NUM_CPU_DEVICES)"
        )
    if _started:
        raise RuntimeError(
            "distributed.initialize: it is called once; got a second call; call shutdown before"
        )
    _started = True


def is_initialized() -> bool:
    """Return whether `initialize` was called.

    Returns
    -------
    bool
        True between calls of `initialize` and `shutdown`.

    See Also
    --------
    distributed.initialize : Join other processes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.distributed.is_initialized()
    False
    """
    return _started


def shutdown() -> None:
    """Leave the other processes of a distributed program.

    See Also
    --------
    distributed.initialize : Join other processes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.distributed.shutdown()
    """
    global _started
    _started = False


_install_getattr(__name__, __all__)
