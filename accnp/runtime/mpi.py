"""Communication between the processes of a program, with MPI through mpi4py.

`connect` finds the other processes. Then the collectives over mesh axes
(`primitives/collective.py`) call `World.send` with an array, an axis and groups of positions, and
get the array that arrives. Each axis and group has its own communicator. Waiting has a deadline: if
a collective is not complete in time, the error names the processes that did not take part and what
they are waiting for.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from accnp._native import messages_sent
from accnp.config import config, cpu_numbers
from accnp.errors import JaxRuntimeError
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.op import Op
from accnp.primitives import collective
from accnp.runtime.compiled_messages import SWAP, SWAP_TAG, connect_loops, described, forget_loops
from accnp.runtime.stream import default_stream

if TYPE_CHECKING:
    from mpi4py.MPI import Group, Intracomm, Request

    from accnp.ir.op_types import Params

__all__ = ["World", "connect", "disconnect", "world"]

_T = TypeVar("_T")
# The groups of a collective, as positions along its axis; None: one group of all positions.
Groups = tuple[tuple[int, ...], ...] | None

_POLL_INTERVAL = 0.05  # seconds after which a waiting process answers the questions of others
_SPIN_SECONDS = 1.0  # seconds after which a waiting process sleeps between tests
_GRACE = 1.0  # seconds to wait for answers after a deadline
# Tags of messages: questions about what a process waits for, answers, and the messages of processes
# that are about to create a communicator.
_QUESTION, _ANSWER = 1, 2
_MEETING = 3


class World:
    """All processes of a program.

    Attributes:
        comm: the communicator of all of them.
        rank: this process.
        size: the number of processes.
        local_rank: this process among those of its machine.
        local_cpus: for each process of this machine, the numbers of the CPUs that it may run on.
    """

    def __init__(self) -> None:
        from mpi4py import MPI  # imported only by programs with several processes

        self.mpi = MPI
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise RuntimeError(
                "distributed.initialize: MPI must be usable from several threads; got level "
                f"{MPI.Query_thread()}; initialize it with MPI.THREAD_MULTIPLE, or let accnp do it"
            )
        self.comm = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self.comm.rank, self.comm.size
        on_machine = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank = on_machine.rank
        self.local_cpus: list[set[int]] = on_machine.allgather(cpu_numbers())
        self._status = self.comm.Dup()  # for questions about what processes wait for
        self._comms: dict[tuple[int, ...], Intracomm] = {}
        self._by_axis: dict[tuple[MeshAxis, Groups], Intracomm] = {}
        self._senders: dict[str, Callable[..., np.ndarray]]  # by `Collective.message`
        self._senders = {
            "gather": self._gather, "exchange": self._exchange, "permute": self._permute,
            "swap": self._swap, "broadcast": self._broadcast, "sum": self._sum,
        }  # fmt: skip
        self.completed = 0  # collectives, without those of native loops
        self._of_loops = messages_sent()
        self._abandoned: list[Request] = []  # requests, which hold the memory of their messages
        self.waits_for: Callable[[], str] = _waits_for_nothing

    @property
    def done(self) -> int:
        """The number of collectives that this process has completed."""
        return self.completed + messages_sent() - self._of_loops

    def help_loop(self, what: Callable[[], str], serve: Callable[[], None]) -> None:
        """Do what a message of a native loop needs; the loop counts it when it is complete."""
        self.waits_for = what
        try:
            serve()
        finally:
            self.waits_for = _waits_for_nothing

    # --- communicators ---

    def comm_of(self, axis: MeshAxis, groups: Groups) -> Intracomm:
        """Return the communicator of the group of this process along an axis, or of the axis."""
        comm = self._by_axis.get((axis, groups))
        if comm is None:
            ranks = tuple([axis.group[i] for i in axis.members(groups)])
            comm = self._by_axis[axis, groups] = self._comm_of_ranks(ranks)
        return comm

    def _comm_of_ranks(self, ranks: tuple[int, ...]) -> Intracomm:
        comm = self._comms.get(ranks)
        if comm is None:
            group = self.comm.Get_group().Incl(ranks)
            self._wait_for_members(group, [r for r in ranks if r != self.rank])
            comm = self._comms[ranks] = self.comm.Create_group(group)
        return comm

    def _wait_for_members(self, group: Group, others: list[int]) -> None:
        """Wait for the other processes of a group, with the deadline of `wait`.

        Creating the communicator itself would block without a deadline.
        """
        empty = np.empty(0, np.uint8)
        requests = [self.comm.Irecv(empty, source=r, tag=_MEETING) for r in others]
        requests += [self.comm.Isend(empty, dest=r, tag=_MEETING) for r in others]
        for request in requests:
            self.wait(group, request)

    # --- messages ---

    def send(
        self, op: Op, x: np.ndarray, axis: MeshAxis, groups: Groups, params: Params
    ) -> np.ndarray:
        """Take part in a collective, and return what arrives."""
        assert op.collective is not None
        more = {k: v for k, v in params.items() if k != "of"}
        what = partial(described, op, x, {**params, "axis_name": (axis,)})
        if not x.flags.c_contiguous:
            x = np.ascontiguousarray(x)
        with _Part(self, what):
            comm = self.comm_of(axis, groups)
            self.check(comm, what)
            return self._senders[op.collective.message](comm, x, **more)

    def _gather(self, comm: Intracomm, x: np.ndarray) -> np.ndarray:
        out = np.empty((comm.size, *x.shape), x.dtype)
        if x.nbytes:
            self.wait(comm, comm.Iallgather(_bytes(x), _bytes(out)))
        return out

    def _exchange(self, comm: Intracomm, x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        if x.nbytes:
            self.wait(comm, comm.Ialltoall(_bytes(x), _bytes(out)))
        return out

    def _sum(self, comm: Intracomm, x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        if x.nbytes:
            self.wait(comm, comm.Iallreduce(x, out))
        return out

    def _swap(self, comm: Intracomm, x: np.ndarray) -> np.ndarray:
        return self._permute(comm, x, perm=SWAP, tag=SWAP_TAG)

    def _permute(
        self, comm: Intracomm, x: np.ndarray, *, perm: Sequence[tuple[int, int]], tag: int = 0
    ) -> np.ndarray:
        me = comm.rank
        sources = [a for a, b in perm if b == me]
        out = np.empty_like(x) if sources else np.zeros_like(x)
        requests = [comm.Irecv(_bytes(out), source=a, tag=tag) for a in sources]
        requests += [comm.Isend(_bytes(x), dest=b, tag=tag) for a, b in perm if a == me]
        try:
            for request in requests:
                self.wait(comm, request)
        except BaseException:
            self.abandon(requests)
            raise
        return out

    def _broadcast(self, comm: Intracomm, x: np.ndarray, *, source: int) -> np.ndarray:
        out = x.copy()
        self.wait(comm, comm.Ibcast(_bytes(out), root=source))
        return out

    # --- waiting ---

    def wait(self, comm: Intracomm | Group, request: Request) -> None:
        """Wait for a message between the processes of a communicator, or of a group.

        Raises:
            JaxRuntimeError: others did not take part before the deadline.
        """
        try:
            if not request.Test():
                self._wait_long(comm, request)
        except BaseException:
            self.abandon([request])
            raise

    def abandon(self, requests: Sequence[Request]) -> None:
        """Keep the memory of messages for which nothing waits any more, after an error or a signal:
        MPI may still write to it."""
        self._abandoned += requests

    def _wait_long(self, comm: Intracomm | Group, request: Request) -> None:
        began = answered = time.monotonic()
        while not request.Test():
            now = time.monotonic()
            if now - answered > _POLL_INTERVAL:
                answered = now
                self._answer_status_requests()
                if now - began > config.collective_timeout:
                    self._give_up(comm, request, now - began)
                    return
            if now - began > _SPIN_SECONDS:
                time.sleep(5e-5)
            else:
                time.sleep(0)

    def _answer_status_requests(self) -> None:
        """Answer the questions of other processes about what this process waits for."""
        status = self.mpi.Status()
        while self._status.Iprobe(tag=_QUESTION, status=status):
            self._status.recv(source=status.source, tag=_QUESTION)
            self._status.isend((self.done, self.waits_for()), dest=status.source, tag=_ANSWER)

    def _give_up(self, comm: Intracomm | Group, request: Request, seconds: float) -> None:
        """Ask the other processes of a collective what they wait for, and raise an error with the
        answers."""
        what = self.waits_for()
        group = comm if isinstance(comm, self.mpi.Group) else comm.Get_group()
        everyone = self._status.Get_group()
        others = [r for r in group.Translate_ranks(None, everyone) if r != self.rank]
        for r in others:
            self._status.isend(None, dest=r, tag=_QUESTION)
        answers: dict[int, tuple[int, str]] = {}
        end = time.monotonic() + _GRACE
        status = self.mpi.Status()
        while time.monotonic() < end:
            self._answer_status_requests()
            while self._status.Iprobe(tag=_ANSWER, status=status):
                answers[status.source] = self._status.recv(source=status.source, tag=_ANSWER)
            if request.Test():
                return
            time.sleep(0.01)
        missing = [r for r in others if r not in answers]
        elsewhere = {r: w for r, (n, w) in answers.items() if (n, w) != (self.done, what)}
        lines = [f"process {self.rank} waited {seconds:.0f} s in collective {self.done}, {what}"]
        if missing:
            names = ", ".join(map(str, missing))
            lines.append(f"processes that have not reached a collective since: {names}")
        lines += [f"process {r} waits in another one: {w}" for r, w in sorted(elsewhere.items())]
        raise _make_error("DEADLINE_EXCEEDED", "; ".join(lines))

    def check(self, comm: Intracomm, what: Callable[[], str]) -> None:
        """Check that all processes are in the same collective, with `debug_collectives`."""
        if not config.debug_collectives:
            return
        texts = self._texts(comm, what())
        if len(set(texts)) > 1:
            everyone = comm.Get_group().Translate_ranks(None, self.comm.Get_group())
            pairs = zip(everyone, texts, strict=True)
            listed = "; ".join([f"process {r}: {t}" for r, t in pairs])
            text = f"the processes are in different collectives: {listed}"
            raise _make_error("FAILED_PRECONDITION", text)

    def _texts(self, comm: Intracomm, text: str) -> list[str]:
        """Return a text from each process of a communicator, cut to 256 bytes."""
        mine = np.frombuffer(text.encode()[:256].ljust(256), np.uint8)
        return [bytes(row).decode(errors="replace").strip() for row in self._gather(comm, mine)]

    def compare(self, ranks: Sequence[int], text: str, function: str) -> None:
        """Check that some processes, including this one, agree about a call.

        Raises:
            ValueError: they do not agree.
        """
        default_stream().synchronize()  # messages that were recorded before come first
        with _Part(self, lambda: function):
            texts = self._texts(self._comm_of_ranks(tuple(ranks)), text)
        if len(set(texts)) > 1:
            listed = "; ".join([f"process {r}: {t}" for r, t in zip(ranks, texts, strict=True)])
            raise ValueError(f"{function}: all processes must agree; got {listed}; correct these")

    # --- collectives of all processes ---

    def gather(self, x: np.ndarray) -> np.ndarray:
        """Return the arrays that all processes pass, as the rows of one array."""
        with _Part(self, lambda: f"process_allgather of {x.dtype.name}{list(x.shape)}"):
            return self._gather(self.comm, np.ascontiguousarray(x).reshape(x.shape))

    def broadcast(self, x: np.ndarray, source: int) -> np.ndarray:
        """Return the array that the process `source` passes."""
        with _Part(self, lambda: f"broadcast of {x.dtype.name}{list(x.shape)}"):
            whole = np.ascontiguousarray(x).reshape(x.shape)
            return self._broadcast(self.comm, whole, source=source)

    def gather_objects(self, x: _T) -> list[_T]:
        """Return the objects that all processes pass, in the order of the processes."""
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
    """Marks the collective in which this process takes part, for answers to other processes."""

    __slots__ = ("_what", "_world")

    def __init__(self, world: World, what: Callable[[], str]) -> None:
        self._world, self._what = world, what

    def __enter__(self) -> None:
        self._world.waits_for = self._what

    def __exit__(self, *exc: object) -> None:
        self._world.waits_for = _waits_for_nothing
        self._world.completed += 1


def _waits_for_nothing() -> str:
    return ""


def _make_error(status: str, text: str) -> JaxRuntimeError:
    """Return the error of a collective in which not all processes take part.

    `status` is one of the codes of gRPC and Abseil, which JAX's runtime errors start with.
    Its method `report` prints it as soon as the line of the collective is known, because another
    process may end this one before the traceback is shown.
    """
    error = JaxRuntimeError(f"{status}: collective: {text}")

    def report(line: str) -> None:
        sys.stderr.write(f"accnp: {error.args[0]}; recorded at {line}\n")
        sys.stderr.flush()

    error.report = report  # type: ignore[attr-defined]
    return error


def _bytes(x: np.ndarray) -> np.ndarray:
    """Return the memory of an array of any dtype as bytes, for MPI."""
    return x.reshape(-1).view(np.uint8) if x.nbytes else np.empty(0, np.uint8)


_world: World | None = None


def world() -> World:
    """Return the connected processes.

    Raises:
        RuntimeError: they are not connected any more.
    """
    if _world is None:
        raise _not_connected_error()
    return _world


def _not_connected_error() -> RuntimeError:
    return RuntimeError(
        "collective: the processes must be connected; got an operation that sends messages after "
        "distributed.shutdown; call distributed.initialize again"
    )


def _refuse(*_: object, **__: object) -> np.ndarray:
    raise _not_connected_error()


def connect() -> World:
    """Connect to the other processes."""
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
        connect_loops(_world.mpi)
    return _world


def disconnect() -> None:
    """Stop sending messages. MPI itself is finalized at the end of this process."""
    global _world
    _world = None
    forget_loops()
    collective.install_messages(_refuse)
