"""Messages between the processes of a program, by MPI through mpi4py.

In: `connect()`, then messages of collectives over axes of meshes (`primitives/collective.py`): an
array, an axis, groups of positions. Out: the array that arrives. Each axis and group has a
communicator of its own. Messages are waited for with a deadline; one that is not answered in time
is an error that names the processes that are missing and where they are.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from accnp.config import config
from accnp.errors import JaxRuntimeError
from accnp.ir.mesh_axis import MeshAxis
from accnp.primitives import collective
from accnp.runtime.stream import default_stream

__all__ = ["World", "connect", "disconnect", "world"]

_LOOK = 0.05  # seconds between questions of others that a waiting process answers
_PATIENT = 1.0  # seconds after which a process that waits sleeps in between
_GRACE = 1.0  # seconds for answers after a deadline
_QUESTION, _ANSWER = 1, 2  # tags
_MEETING = 3  # of processes that are about to create a communicator


class World:
    """All processes of a program.

    Attributes:
        comm: the communicator of all of them.
        rank: this process.
        size: how many there are.
        local_size: how many are on this machine.
    """

    def __init__(self) -> None:
        from mpi4py import MPI  # with the first program of several processes

        self.mpi = MPI
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise RuntimeError(
                "distributed.initialize: MPI must be usable from several threads; got level "
                f"{MPI.Query_thread()}; initialize it with MPI.THREAD_MULTIPLE, or let accnp do it"
            )
        self.comm = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self.comm.rank, self.comm.size
        on_machine = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = on_machine.rank, on_machine.size
        self._status = self.comm.Dup()  # for questions about processes that are waited for
        self._comms: dict[tuple[int, ...], Any] = {}
        self._by_axis: dict[tuple[MeshAxis, Any], Any] = {}
        self._kinds = {
            "mesh_gather": self._gather, "mesh_exchange": self._exchange,
            "mesh_sum": self._sum,
            "ppermute": self._permute, "pbroadcast": self._broadcast,
        }  # fmt: skip
        self.done = 0  # how many collectives this process has completed
        self.waits_for: Callable[[], str] = _nothing

    # --- communicators ---

    def comm_of(self, axis: MeshAxis, groups: Any) -> Any:
        """The communicator of a group of positions along an axis, or of the whole axis."""
        found = self._by_axis.get((axis, groups))
        if found is None:
            ranks = tuple([axis.group[i] for i in axis.members(groups)])
            found = self._by_axis[axis, groups] = self._comm_of_ranks(ranks)
        return found

    def _comm_of_ranks(self, ranks: tuple[int, ...]) -> Any:
        found = self._comms.get(ranks)
        if found is None:
            group = self.comm.Get_group().Incl(ranks)
            self._meet(group, [r for r in ranks if r != self.rank])
            found = self._comms[ranks] = self.comm.Create_group(group)
        return found

    def _meet(self, group: Any, others: list[int]) -> None:
        """Wait until the other processes of a group are here: creating a communicator blocks."""
        nothing = np.empty(0, np.uint8)
        requests = [self.comm.Irecv(nothing, source=r, tag=_MEETING) for r in others]
        requests += [self.comm.Isend(nothing, dest=r, tag=_MEETING) for r in others]
        for request in requests:
            self.wait(group, request)

    # --- messages ---

    def send(
        self, name: str, x: np.ndarray, axis: MeshAxis, groups: Any, params: dict[str, Any]
    ) -> np.ndarray:
        """Take part in a collective, and return what arrives."""
        more = {k: v for k, v in params.items() if k != "of"}
        what = partial(_described, params.get("of", name), x, axis, more)
        if not x.flags.c_contiguous:
            x = np.ascontiguousarray(x)
        with _Part(self, what):
            comm = self.comm_of(axis, groups)
            if config.debug_collectives:
                self._check(comm, what())
            return self._kinds[name](comm, x, **more)

    def _gather(self, comm: Any, x: np.ndarray) -> np.ndarray:
        out = np.empty((comm.size, *x.shape), x.dtype)
        if x.nbytes:
            self.wait(comm, comm.Iallgather(_bytes(x), _bytes(out)))
        return out

    def _exchange(self, comm: Any, x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        if x.nbytes:
            self.wait(comm, comm.Ialltoall(_bytes(x), _bytes(out)))
        return out

    def _sum(self, comm: Any, x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        if x.nbytes:
            self.wait(comm, comm.Iallreduce(x, out))
        return out

    def _permute(self, comm: Any, x: np.ndarray, *, perm: Any) -> np.ndarray:
        me = comm.rank
        sources = [a for a, b in perm if b == me]
        out = np.empty_like(x) if sources else np.zeros_like(x)
        requests = [comm.Irecv(_bytes(out), source=a) for a in sources]
        requests += [comm.Isend(_bytes(x), dest=b) for a, b in perm if a == me]
        for request in requests:
            self.wait(comm, request)
        return out

    def _broadcast(self, comm: Any, x: np.ndarray, *, source: int) -> np.ndarray:
        out = x.copy()
        self.wait(comm, comm.Ibcast(_bytes(out), root=source))
        return out

    # --- waiting ---

    def wait(self, comm: Any, request: Any) -> None:
        """Wait for a message between the processes of a communicator, or of a group.

        Raises:
            JaxRuntimeError: others did not take part before the deadline.
        """
        if not request.Test():
            self._wait_long(comm, request)

    def _wait_long(self, comm: Any, request: Any) -> None:
        began = looked = time.monotonic()
        while not request.Test():
            now = time.monotonic()
            if now - looked > _LOOK:
                looked = now
                self._answer()
                if now - began > config.collective_timeout:
                    self._give_up(comm, request, now - began)
                    return
            if now - began > _PATIENT:
                time.sleep(5e-5)
            else:
                os.sched_yield()

    def _answer(self) -> None:
        """Tell others that ask for what this process waits."""
        status = self.mpi.Status()
        while self._status.Iprobe(tag=_QUESTION, status=status):
            self._status.recv(source=status.source, tag=_QUESTION)
            self._status.isend((self.done, self.waits_for()), dest=status.source, tag=_ANSWER)

    def _give_up(self, comm: Any, request: Any, seconds: float) -> None:
        """Ask the others of a collective where they are, and raise an error that says it."""
        what = self.waits_for()
        group = comm if isinstance(comm, self.mpi.Group) else comm.Get_group()
        everyone = self._status.Get_group()
        others = [r for r in group.Translate_ranks(None, everyone) if r != self.rank]
        for r in others:
            self._status.isend(None, dest=r, tag=_QUESTION)
        found: dict[int, tuple[int, str]] = {}
        end = time.monotonic() + _GRACE
        status = self.mpi.Status()
        while time.monotonic() < end:
            self._answer()
            while self._status.Iprobe(tag=_ANSWER, status=status):
                found[status.source] = self._status.recv(source=status.source, tag=_ANSWER)
            if request.Test():
                return
            time.sleep(0.01)
        missing = [r for r in others if r not in found]
        elsewhere = {r: w for r, (n, w) in found.items() if (n, w) != (self.done, what)}
        lines = [f"process {self.rank} waited {seconds:.0f} s in collective {self.done}, {what}"]
        if missing:
            names = ", ".join(map(str, missing))
            lines.append(f"processes that have not come to any collective since: {names}")
        lines += [f"process {r} waits in another one: {w}" for r, w in sorted(elsewhere.items())]
        raise _late("; ".join(lines))

    def _check(self, comm: Any, what: str) -> None:
        """See that all processes are in the same collective (`debug_collectives`)."""
        texts = self._texts(comm, what)
        if len(set(texts)) > 1:
            everyone = comm.Get_group().Translate_ranks(None, self.comm.Get_group())
            pairs = zip(everyone, texts, strict=True)
            listed = "; ".join([f"process {r}: {t}" for r, t in pairs])
            raise _late(f"the processes are in different collectives: {listed}")

    def _texts(self, comm: Any, text: str) -> list[str]:
        """What all processes of a communicator say, cut to 256 bytes."""
        mine = np.frombuffer(text.encode()[:256].ljust(256), np.uint8)
        return [bytes(row).decode(errors="replace").strip() for row in self._gather(comm, mine)]

    def compare(self, ranks: Sequence[int], text: str, function: str) -> None:
        """See that some processes, this one among them, say the same about a call.

        Raises:
            ValueError: they do not.
        """
        default_stream().synchronize()  # messages that were recorded before come first
        with _Part(self, lambda: function):
            texts = self._texts(self._comm_of_ranks(tuple(ranks)), text)
        if len(set(texts)) > 1:
            listed = "; ".join([f"process {r}: {t}" for r, t in zip(ranks, texts, strict=True)])
            raise ValueError(f"{function}: all processes must agree; got {listed}; correct these")

    # --- of all processes ---

    def gather(self, x: np.ndarray) -> np.ndarray:
        """What all processes pass, one row for each."""
        with _Part(self, lambda: f"process_allgather of {x.dtype.name}{list(x.shape)}"):
            return self._gather(self.comm, np.ascontiguousarray(x).reshape(x.shape))

    def broadcast(self, x: np.ndarray, source: int) -> np.ndarray:
        """What one process passes."""
        with _Part(self, lambda: f"broadcast of {x.dtype.name}{list(x.shape)}"):
            whole = np.ascontiguousarray(x).reshape(x.shape)
            return self._broadcast(self.comm, whole, source=source)

    def gather_objects(self, x: Any) -> list[Any]:
        """What all processes pass, in their order."""
        data = np.frombuffer(pickle.dumps(x), np.uint8)
        sizes = self.gather(np.array([data.size], np.int64))[:, 0]
        padded = np.zeros(int(sizes.max()), np.uint8)
        padded[: data.size] = data
        rows = self.gather(padded)
        return [pickle.loads(rows[i, : sizes[i]].tobytes()) for i in range(self.size)]

    def barrier(self, name: str) -> None:
        """Wait for all processes."""
        with _Part(self, lambda: f"barrier {name!r}"):
            self.wait(self.comm, self.comm.Ibarrier())


class _Part:
    """A collective that this process takes part in, for messages to others."""

    __slots__ = ("_what", "_world")

    def __init__(self, world: World, what: Callable[[], str]) -> None:
        self._world, self._what = world, what

    def __enter__(self) -> None:
        self._world.waits_for = self._what

    def __exit__(self, *exc: object) -> None:
        self._world.waits_for = _nothing
        self._world.done += 1


def _nothing() -> str:
    return ""


def _described(of: str, x: np.ndarray, axis: MeshAxis, params: dict[str, Any]) -> str:
    text = f"{of} of {x.dtype.name}{list(x.shape)} over {axis!r}"
    return f"{text} {params}" if params else text


def _late(text: str) -> JaxRuntimeError:
    """The error of a collective that not all processes take part in.

    It is printed at once (`report`), where the line of the collective is known: this process may be
    ended by another one before it would be shown.
    """
    error = JaxRuntimeError(f"DEADLINE_EXCEEDED: collective: {text}")

    def report(line: str) -> None:
        sys.stderr.write(f"accnp: {error.args[0]}; recorded at {line}\n")
        sys.stderr.flush()

    error.report = report  # type: ignore[attr-defined]
    return error


def _bytes(x: np.ndarray) -> Any:
    """The memory of an array, of any dtype, as MPI takes it."""
    return x.reshape(-1).view(np.uint8) if x.nbytes else np.empty(0, np.uint8)


_world: World | None = None


def world() -> World:
    """All processes.

    Raises:
        RuntimeError: they are not connected any more.
    """
    if _world is None:
        raise _not_connected()
    return _world


def _not_connected() -> RuntimeError:
    return RuntimeError(
        "collective: the processes must be connected; got an operation that sends messages after "
        "distributed.shutdown; call distributed.initialize again"
    )


def _refuse(*_: Any, **__: Any) -> np.ndarray:
    raise _not_connected()


def connect() -> World:
    """Find the other processes."""
    global _world
    if _world is None:
        try:
            _world = World()
        except ImportError as error:
            raise ImportError(
                "distributed.initialize: several processes need mpi4py and an MPI; got "
                f"{error}; install them with: pip install 'accnp[mpi]'"
            ) from error
        collective.install_messages(_world.send)
    return _world


def disconnect() -> None:
    """Send no more messages; MPI itself ends with this process."""
    global _world
    _world = None
    collective.install_messages(_refuse)
