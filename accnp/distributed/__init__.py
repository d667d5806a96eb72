"""`accnp.distributed`: programs that run in several processes, which MPI starts and connects.

`mpiexec -n 4 python -m accnp.distributed train.py` runs a program in four processes and ends all of
them when one fails (`__main__.py`). In the program, `initialize()` connects the processes; then
`devices()` are those of all processes, and arrays over them hold the shards of their process.

>>> import accnp as jax
>>> jax.distributed.is_initialized()
False
"""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction

from accnp.api.arguments.shapes import AxesLike
from accnp.config import config, default_threads, within_quota
from accnp.errors import warn
from accnp.lazy_imports import imported
from accnp.module_getattr import install_getattr as _install_getattr
from accnp.runtime import device

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
    """Connect this process to the others of a program that `mpiexec` has started.

    A program that was started without it consists of one process.

    Parameters
    ----------
    coordinator_address : str, optional
        Ignored; MPI knows where the processes are.
    num_processes : int, optional
        How many processes take part. It is compared with MPI's number.
    process_id : int, optional
        Index of this process. It is compared with MPI's rank.
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
        If it was called before, or devices were used before.
    ValueError
        If `num_processes` or `process_id` is not what MPI says.
    ImportError
        If `mpiexec` has started the program and mpi4py is not installed.

    See Also
    --------
    distributed.shutdown : Leave the program.
    distributed.is_initialized : Whether this was called.

    Notes
    -----
    Unless `ACCNP_THREADS` is set, the processes of a machine share its cores: a process that the
    launcher has bound to some cores has as many threads, and cores that several processes may use
    are divided among them.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.distributed.initialize(num_processes=1)
    >>> jax.distributed.is_initialized()
    True
    >>> jax.distributed.shutdown()
    """
    global _started
    if _started:
        raise RuntimeError(
            "distributed.initialize: it is called once; got a second call; call shutdown before"
        )
    index, count = 0, 1
    if any(name in os.environ for name in LAUNCHERS):
        world = imported("accnp.runtime.mpi").connect()
        index, count = world.rank, world.size
    checks = ("num_processes", num_processes, count), ("process_id", process_id, index)
    for name, requested, actual in checks:
        if requested is not None and requested != actual:
            raise ValueError(
                f"distributed.initialize: MPI says that {name} is {actual}; got "
                f"{name}={requested}; start the program with mpiexec -n "
                f"{num_processes or count}, or leave it out"
            )
    device.join(index, count)
    if count > 1:
        _share_cores(world.local_cpus, world.local_rank)
    _started = True


# What the launchers of MPICH, Open MPI, Slurm and Intel MPI set for each process.
LAUNCHERS = ("PMI_SIZE", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")


def _share_cores(cpus: list[set[int]], index: int) -> None:
    """Give this process its part of the cores, unless the user has said how many threads it has.

    `cpus` are the cores that each process of the machine may run on. Launchers can bind processes
    to cores of their own; a core that several processes may use counts for each in part.
    """
    present = len(set.union(*cpus))
    cores = within_quota(present)
    if "ACCNP_THREADS" in os.environ or config.threads != default_threads():
        threads = [config.threads] * len(cpus)
    else:
        users = Counter(core for own in cpus for core in own)
        parts = [sum(Fraction(1, users[core]) for core in own) for own in cpus]
        threads = [max(1, int(part * cores / present)) for part in parts]
        config.update("threads", threads[index])
    if sum(threads) > cores and index == 0:
        warn(
            f"distributed.initialize: {len(cpus)} processes with {sum(threads)} threads share "
            f"{cores} cores of this machine; start fewer processes, or set ACCNP_THREADS",
        )


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
    """Stop sending messages to the other processes of a distributed program.

    Arrays keep their values and shards, and the devices and the index of the process stay what they
    are. Operations that need messages raise an error until `initialize` is called again. MPI itself
    stays connected until the process ends.

    See Also
    --------
    distributed.initialize : Join other processes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.distributed.shutdown()
    """
    global _started
    if device.process[1] > 1:
        imported("accnp.runtime.stream").default_stream().synchronize()
        imported("accnp.runtime.mpi").disconnect()
    _started = False


_install_getattr(__name__, __all__)
