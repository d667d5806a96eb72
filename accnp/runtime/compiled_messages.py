"""Messages in compiled programs, which call MPI by address (`_native/messages.c`).

It takes a collective in a jitted function, or in the body of a loop that is compiled to one
function, and returns an address that machine code calls to send the message. The communicator is
created when a program first reaches the message. This module waits for slow messages as `mpi.World`
does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from accnp import _native
from accnp.address_space import make_shortage_error
from accnp.config import config, listeners
from accnp.ir.aval import Aval
from accnp.ir.kernel import CODES, dtype_code
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node, site_text
from accnp.ir.op import Op
from accnp.lazy_imports import imported
from accnp.runtime.buffer import Buffer

if TYPE_CHECKING:
    from mpi4py import MPI

    from accnp.ir.op_types import Params
    from accnp.runtime.mpi import World

__all__ = ["KINDS", "address_of", "can_send", "connect_loops", "described", "forget_loops"]

# The kinds of messages in `_native/messages.c`, by `Collective.message`.
KINDS = {"gather": 0, "exchange": 1, "permute": 2, "swap": 2}
SWAP = ((0, 1), (1, 0))  # the permutation of "swap"
# The tag of the messages of "swap", which keeps them apart from those of a `ppermute` if processes
# are in different collectives.
SWAP_TAG = 4
_FUNCTIONS = ("MPI_Iallgather", "MPI_Ialltoall", "MPI_Irecv", "MPI_Isend", "MPI_Test")
_PARTICIPANTS = ("axis_name", "axis_index_groups", "of")  # parameters of all messages
_LARGEST = (1 << 31) - 1  # bytes of a message: counts of these functions are 32-bit integers


@dataclass
class _Message:
    """A message, and the node of the collective to which it belongs, without inputs.

    It stays as long as the process, because machine code has its address.
    """

    address: int
    axis: MeshAxis
    groups: tuple[tuple[int, ...], ...] | None
    perm: Sequence[tuple[int, int]] | None
    tag: int
    text: str
    node: Node | None


_messages: list[_Message] = []
_connected = False


def connect_loops(mpi: ModuleType) -> None:
    """Let native loops send messages, with the library that mpi4py has loaded."""
    global _connected
    library = ctypes.CDLL(mpi.__file__)  # its symbols and those of the linked libraries
    if not _native.COMPILED or not all(hasattr(library, name) for name in _FUNCTIONS):
        return
    addresses = tuple([ctypes.cast(library[f], ctypes.c_void_p).value or 0 for f in _FUNCTIONS])
    _native.install_mpi(addresses, ctypes.c_int64(mpi._handleof(mpi.BYTE)).value, _handle_message)
    if not _connected:
        listeners.append(_follow_option)
        _follow_option()
    _connected = True


def _follow_option() -> None:
    """Let messages be compared before they are sent, while any thread has `debug_collectives`."""
    _native.compare_messages(any(config.anywhere("debug_collectives")))


def forget_loops() -> None:
    """Let loops ask for their communicators again, because the processes are not connected."""
    for m in _messages:
        _native.set_message(m.address, False, 0, 0, -1, -1, 0)


def can_send(op: Op, params: Params, nbytes: int, result: Aval) -> bool:
    """Return whether machine code can send a message of this op.

    `nbytes` is the size of the operand, and `result` the type of the result.
    """
    return (
        _connected
        and op.collective is not None
        and op.collective.message in KINDS
        and type(params["axis_name"][0]) is MeshAxis
        and config.compiler == "llvm"
        and 0 < max(nbytes, result.nbytes) <= _LARGEST
        and dtype_code(result.dtype) in CODES
    )


def address_of(op: Op, params: Params, aval: Aval, node: Node | None) -> int:
    """Return the address of a message, which machine code passes to `send_message`."""
    assert op.collective is not None
    (axis,) = params["axis_name"]
    groups, perm = params.get("axis_index_groups"), params.get("perm")
    tag = 0
    if op.collective.message == "swap":
        perm, tag = SWAP, SWAP_TAG
    text = described(op, aval, params)
    address = _native.new_message(KINDS[op.collective.message], len(_messages))
    if node is not None:
        node = Node(node.op, (), node.params, node.aval, None, None, 0, node.site)
    _messages.append(_Message(address, axis, groups, perm, tag, text, node))
    return address


def described(op: Op, x: Aval | np.ndarray, params: Params) -> str:
    """Describe a message with this operand, for errors and for other processes.

    The text does not depend on whether machine code sends the message.
    """
    (axis,) = params["axis_name"]
    text = f"{params.get('of', op.name)} of {x.dtype.name}{list(x.shape)} over {axis!r}"
    more = {k: v for k, v in params.items() if k not in _PARTICIPANTS}
    return f"{text} {more}" if more else text


def _handle_message(
    number: int, failed: int, requests: tuple[int, ...], buffers: Sequence[Buffer]
) -> None:
    """Make a message ready and compare it, wait for its requests, or raise its error.

    `failed` is zero, an error code of MPI, or the negative number of bytes that could not be
    allocated. MPI reads and writes the buffers until the message is complete.
    """
    message = _messages[number]
    if failed < 0:
        raise make_shortage_error(f"collective: no memory for {message.text}", -failed)
    world = imported("accnp.runtime.mpi").world()
    try:
        if failed:
            raise world.mpi.Exception(failed)
        world.help_loop(lambda: message.text, lambda: _start_message(world, message, requests))
    except BaseException as error:
        if requests or failed:
            world.abandon(buffers)
        if isinstance(error, Exception):
            _report_failed_collective(error, message.node)
        raise


def _start_message(world: World, m: _Message, requests: tuple[int, ...]) -> None:
    comm = world.comm_of(m.axis, m.groups)
    if not requests:
        ranks = range(comm.size)
        source = next((a for a, b in m.perm or () if b == comm.rank and a in ranks), -1)
        target = next((b for a, b in m.perm or () if a == comm.rank and b in ranks), -1)
        own: int = world.mpi._handleof(comm)  # pyright: ignore[reportPrivateUsage]
        handle = ctypes.c_int64(own).value
        _native.set_message(m.address, True, handle, comm.size, source, target, m.tag)
        world.check(comm, lambda: m.text)
    # Handles of 4 bytes are an int, of which C has the bits.
    nbytes: int = world.mpi._sizeof(world.mpi.Request)  # pyright: ignore[reportPrivateUsage]
    narrow = nbytes == 4
    mpi_requests: list[MPI.Request] = []
    for handle in requests:
        if narrow:
            handle = ctypes.c_int32(handle).value
        mpi_requests.append(world.mpi.Request.fromhandle(ctypes.c_size_t(handle).value))
    for request in mpi_requests:
        world.wait(comm, request)


def _report_failed_collective(error: Exception, node: Node | None) -> None:
    """Say which collective failed, and report the error before another process ends this one."""
    if node is None or node.site is None:
        return
    site = site_text(node)
    error.add_note(f"in {node.op.user_name}, recorded at {site}")
    report = getattr(error, "report", None)
    if report is not None:
        report(site)
