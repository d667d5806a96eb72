"""What the extension does, in Python, for where it was not built.

Slower by a few microseconds for each launch. Results have the same bits: kernels are the same, and
they do not depend on how their work is shared. Stores past the caches become plain ones, and brief
launches run on one thread.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import queue
import sys
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, ClassVar

__all__ = [
    "BYPASS", "COPY", "GROUP", "SPREAD", "STREAM", "ArrayBase", "Blocks", "BufferBase", "Caller",
    "Form", "Node", "Pool", "Record", "Team", "install_arrays", "install_buffers",
    "install_recording", "launch_held", "launch_released", "launches", "observe_recording",
    "operate", "repeat", "set_pending_limit", "share", "walker", "wrap",
]  # fmt: skip

# --- memory ---

SMALL = 4096  # up to here blocks are pieces of slabs, which are never given back
MIDDLE = 1 << 20  # from here on all free blocks together are limited, not those of a size
MOST = 1 << 62


class Blocks:
    """Free blocks of one size."""

    __slots__ = ("_items", "_pool", "size")

    def __init__(self, pool: Pool, size: int) -> None:
        self._pool, self.size = pool, size
        self._items: deque[tuple[int, Any]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def has_room(self) -> bool:
        """Whether one more block may be kept."""
        if self.size <= SMALL:
            return True
        if self.size < MIDDLE:
            return len(self._items) * self.size < self._pool.limit >> 4
        return self._pool.kept + self.size <= self._pool.limit

    def fill(self, begin: int, end: int) -> None:
        """Add the pieces of a slab between two addresses."""
        pieces = range(begin, end - self.size + 1, self.size)
        self._items.extend(zip(pieces, itertools.repeat(None)))

    def clear(self) -> int:
        """Let all blocks go; returns their bytes."""
        freed = 0
        while self._items:
            self._items.pop()
            freed += self.size
        return freed


class Pool:
    """Free blocks of all sizes; subclasses make new blocks by `_allocate`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # `next` is atomic, so that no lock is needed where buffers are dropped.
        self._reuses, self._looks = itertools.count(), 0
        self._dropped: deque[int] = deque()
        self._dropped_before = 0
        self._sizes: dict[int, Blocks] = {}
        # Bytes of blocks in use, and the most since `peak` was set. Threads that make and drop
        # buffers at the same time may make them a little wrong: nothing depends on them.
        self.live = self.peak = 0

    @property
    def kept(self) -> int:
        """Bytes in free blocks."""
        return sum([len(b) * b.size for b in self.sizes()])

    @property
    def reuses(self) -> int:
        """Blocks that were used again."""
        self._looks += 1  # this look itself advances the counter
        return next(self._reuses) - self._looks + 1

    @property
    def dropped(self) -> int:
        """Bytes given back to the system."""
        while self._dropped:
            self._dropped_before += self._dropped.popleft()
        return self._dropped_before

    def blocks(self, nbytes: int) -> Blocks:
        """The free blocks for a request of so many bytes."""
        size = _size_class(nbytes)
        if size > MOST:
            raise MemoryError(f"blocks: no block has {nbytes} bytes")
        found = self._sizes.get(size)
        return self._sizes.setdefault(size, Blocks(self, size)) if found is None else found

    def empty(self, nbytes: int) -> Any:
        """A buffer of so many bytes, with unspecified contents."""
        if nbytes < 0:
            raise ValueError(f"empty: a size cannot be negative; got {nbytes}; pass 0 or more")
        blocks = self._sizes.get(_size_class(nbytes))
        if blocks is None:
            blocks = self.blocks(nbytes) if nbytes <= MOST else None
        try:
            ptr, memory = blocks._items.pop()  # type: ignore[union-attr]
        except (IndexError, AttributeError):
            return self._allocate(blocks, nbytes)
        next(self._reuses)
        return _State.buffer(ptr, nbytes, memory, blocks)

    def sizes(self) -> list[Blocks]:
        """The lists of free blocks, by size."""
        return [b for _, b in sorted(self._sizes.copy().items())]

    def _allocate(self, blocks: Blocks | None, nbytes: int) -> Any:
        raise NotImplementedError


def _size_class(nbytes: int) -> int:
    """The block size for a request: a power of two, or 1.25, 1.5, 1.75 times one."""
    if nbytes <= 64:
        return 64
    if nbytes <= SMALL:
        return 1 << (nbytes - 1).bit_length()
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


class BufferBase:
    """Memory of a known size, which goes back to its pool."""

    __slots__ = ("__weakref__", "_blocks", "memory", "nbytes", "ptr")

    ptr: int
    nbytes: int

    def __init__(self, ptr: int, nbytes: int, memory: Any, blocks: Blocks | None = None) -> None:
        self.ptr = ptr
        self.nbytes = nbytes
        self.memory = memory
        self._blocks = blocks
        if blocks is not None:
            pool = blocks._pool
            pool.live += blocks.size
            if pool.live > pool.peak:
                pool.peak = pool.live

    @property
    def size_class(self) -> int:
        """Bytes of its block; 0: not of the pool."""
        return 0 if self._blocks is None else self._blocks.size

    def __del__(self) -> None:
        # May run in any thread and under any lock: only atomic operations, no lock of ours.
        try:
            blocks = self._blocks
        except AttributeError:  # an exception came between the making of the object and __init__
            return
        if blocks is not None:
            blocks._pool.live -= blocks.size
            if blocks.has_room:
                blocks._items.append((self.ptr, self.memory))
            else:
                blocks._pool._dropped.append(blocks.size)


# --- nodes and arrays ---


class _State:
    """What the package's classes and functions are, as it installed them."""

    buffer: ClassVar[Any] = None
    array: ClassVar[Any] = None
    params: ClassVar[dict[str, Any]] = {}
    tracing: ClassVar[list[Any]] = []
    record: ClassVar[Any] = None
    on_deep: ClassVar[Any] = None
    own_packages: ClassVar[dict[Any, bool]] = {}
    find_site: ClassVar[Any] = None
    limit: ClassVar[int] = sys.maxsize
    observed: ClassVar[bool] = False
    launches: ClassVar[Any] = itertools.count()
    looks: ClassVar[int] = 0


def install_buffers(kind: type) -> None:
    """Set the class that buffers are made of."""
    _State.buffer = kind


def install_arrays(kind: type) -> None:
    """Set the class that arrays are made of."""
    _State.array = kind


def install_recording(
    *,
    const: Any,
    params: dict[str, Any],
    tracing: list[Any],
    record: Callable[..., Any],
    on_deep: Callable[[Node], None],
    own_packages: dict[str | None, bool],
    find_site: Callable[[FrameType], Any],
    get_frame: Callable[[int], FrameType],
) -> None:
    """Set what recording needs: the operation and the parameters of leaves, the list of open
    traces, the function for traced operands, who is told of long chains, packages by name and
    whether they are accnp's, what finds the user's line from a frame, `sys._getframe`."""
    _State.params, _State.tracing, _State.record = params, tracing, record
    _State.on_deep, _State.own_packages, _State.find_site = on_deep, own_packages, find_site


class Form:
    """What is remembered of an operation on operands of certain types: one for each combination of
    op, types of the operands and parameters, so that it stands for them in keys.

    `wide` if an operand has 64 bits: arrays outlive the switch of those types, and functions may
    narrow them then, so who remembers such a form asks the switch before using it.
    """

    __slots__ = ("aval", "op", "takes", "wide")

    def __init__(self, op: Any, takes: Any, aval: Any, wide: bool) -> None:
        self.op, self.takes, self.wide = op, takes, wide
        self.aval: Any = aval


class Node:
    """One recorded operation, or a leaf.

    Immutable but for `value`, and `inputs`, which are dropped once computed. Operations whose type
    depends on nothing but their parameters and the types of the operands have a `form`.
    """

    __slots__ = (
        "__weakref__", "aval", "depth", "form", "inputs", "op", "params", "site", "trace", "value",
    )  # fmt: skip

    def __init__(
        self,
        op: Any,
        inputs: tuple[Node, ...],
        params: dict[str, Any],
        aval: Any,
        value: Any,
        trace: Any,
        depth: int,
        site: Any,
        form: Form | None = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.params = params
        self.aval: Any = aval
        self.value: Any = value
        self.trace = trace
        self.depth = depth
        self.site = site
        self.form = form

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.aval}>"


class ArrayBase:
    """Holds a node, and exports its values by the buffer protocol (from Python 3.12 on)."""

    __slots__ = ("__weakref__", "_node")
    _node: Node

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self._values())

    def _values(self) -> Any:
        raise NotImplementedError


def wrap(node: Node) -> Any:
    """Return an array of a node."""
    made = _State.array.__new__(_State.array)
    made._node = node
    return made


def operate(form: Form, operands: tuple[Node, ...]) -> Any:
    """Return an array of a new pending operation: its form, and a tuple of operands."""
    depth = 0
    for x in operands:
        if x.trace is not None:
            return wrap(_State.record(form.op, operands))
        if x.depth > depth:
            depth = x.depth
    if _State.tracing or _State.observed:
        return wrap(_State.record(form.op, operands))
    frame = sys._getframe(2)  # of the user, but for functions that are made of such operations
    own = _State.own_packages.get(frame.f_globals.get("__package__"), True)
    site = _State.find_site(frame) if own else (frame.f_code, frame.f_lasti)
    depth += 1
    node = Node(form.op, operands, _State.params, form.aval, None, None, depth, site, form)
    if depth > _State.limit:
        _State.on_deep(node)
    return wrap(node)


def set_pending_limit(limit: int) -> None:
    """Set how many pending operations a chain may have before `on_deep` is told."""
    _State.limit = limit


def observe_recording(on: bool) -> None:
    """Set whether all operations are recorded by the function for traced operands."""
    _State.observed = on


# --- calls and graphs that were seen before: the extension alone has records of these ---


class Record:
    """What calls of one signature, or graphs of one structure, do."""

    def __init__(self, words: Sequence[int], objects: tuple[Any, ...], keeps: Any) -> None:
        self.keeps = keeps


class Caller:
    """Calls its method `_called`."""

    __slots__ = ("_records",)
    _records: tuple[Record, ...]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        self._records = ()
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._called(*args, **kwargs)

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def repeat(records: tuple[Record, ...], node: Node) -> bool:
    """Compute a pending node by one of some records; returns whether one fits."""
    return False


# --- launches ---

_ENTRY = (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_released = functools.lru_cache(4096)(ctypes.CFUNCTYPE(*_ENTRY))
_held = functools.lru_cache(4096)(ctypes.PYFUNCTYPE(*_ENTRY))
_Words = functools.cache(lambda count: ctypes.c_int64 * count)
_ALONE, _TOGETHER = 0, 2


def _count(launches: int = 1) -> None:
    for _ in range(launches):
        next(_State.launches)


def launches() -> int:
    """How many kernels were launched."""
    _State.looks += 1
    return next(_State.launches) - _State.looks + 1


def launch_held(entry: int, n: int, chunk: int, *arguments: int) -> None:
    """Run a kernel with the interpreter lock held."""
    _count()
    _held(entry)(_Words(len(arguments))(*arguments), _Words(1)(), n, chunk)


def launch_released(entry: int, n: int, chunk: int, *arguments: int) -> None:
    """Run a kernel with the interpreter lock free."""
    _count()
    _released(entry)(_Words(len(arguments))(*arguments), _Words(1)(), n, chunk)


def share(entry: int, n: int, chunk: int, team: int, helpers: int, *arguments: int) -> None:
    """Run a kernel on several threads."""
    _count()
    _share(entry, ctypes.addressof(_Words(len(arguments))(*arguments)), n, chunk, team, helpers)


def _read(address: int, count: int) -> list[int]:
    return list(_Words(count).from_address(address))


class _Step:
    """One step of a table, see `engine/table.py`."""

    __slots__ = ("chunk", "end", "entry", "n", "places")

    def __init__(self, address: int) -> None:
        self.entry, self.n, self.chunk, count = _read(address, 4)
        words = _read(address + 32, 2 * count)
        self.places = list(zip(words[::2], words[1::2], strict=True))
        self.end = address + 32 + 16 * count

    def arguments(self, base: Any) -> ctypes.Array[ctypes.c_int64]:
        return _Words(len(self.places))(*[base[which] + more for which, more in self.places])


def walker(mode: int, table: int) -> Callable[..., None]:
    """Return what runs a table in a mode: a function of the addresses of buffers; behind a team and
    the number of its helpers, where these are wanted."""
    _, count, launched = _read(table, 3)
    steps = []
    at = table + 24
    for _ in range(count):
        steps.append(_Step(at))
        at = steps[-1].end
    made = _released if mode != _ALONE else _held
    if count == 1 and mode < _TOGETHER and all(which != 1 for which, _ in steps[0].places):
        (step,) = steps
        entry, n, words = made(step.entry), step.n, _Words(len(step.places))
        places, counter = step.places, _Words(1)

        def run_one(*buffers: int) -> None:
            _count()
            base = (0, 0, *buffers)
            entry(words(*[base[which] + more for which, more in places]), counter(), n, n)

        return run_one

    def run(*buffers: int) -> None:
        _count(launched)
        base = _Words(2 + len(buffers))(0, 0, *buffers)
        base[1] = ctypes.addressof(base)
        team, helpers = buffers[:2] if mode == _TOGETHER else (0, 0)
        for step in steps:
            argv = step.arguments(base)
            if helpers and step.n > step.chunk:
                _share(step.entry, ctypes.addressof(argv), step.n, step.chunk, team, helpers)
            else:
                made(step.entry)(argv, _Words(1)(), step.n, step.n)

    return run


# --- threads in kernels ---

_teams: dict[int, Team] = {}
_numbers = itertools.count(1)


class _Job:
    """A launch that threads take chunks of from one counter."""

    def __init__(self, entry: int, argv: int, n: int, chunk: int) -> None:
        self._run = functools.partial(_released(entry), argv, counter := _Words(1)(), n, chunk)
        self._counter = counter
        self._lock, self._done = allocate_lock(), allocate_lock()
        self._inside, self._closed = 0, False

    def help(self) -> None:
        """Work along until all is taken; not in a launch that has ended."""
        with self._lock:
            if self._closed:
                return
            self._inside += 1
        self._run()
        with self._lock:
            self._inside -= 1
            if self._closed and not self._inside:
                self._done.release()

    def finish(self) -> None:
        """Work along, and wait for those inside."""
        self._run()
        with self._lock:
            self._closed = True
            if not self._inside:
                return
            self._done.acquire()
        self._done.acquire()


class Team:
    """Threads that help in kernels."""

    def __init__(self) -> None:
        self.address = next(_numbers)
        self.helpers = self.looks = 0
        self._busy = 0
        self._lock = allocate_lock()
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        _teams[self.address] = self

    @property
    def asleep(self) -> int:
        """How many helpers sleep."""
        return self.helpers - self._busy

    def reserve(self) -> int | None:
        """Return the place of a new helper."""
        return self.helpers

    def joined(self, place: int, number: int) -> None:
        """Count a helper that has begun: its place, and the system's number of its thread."""
        self.helpers = place + 1

    def attend(self, place: int) -> None:
        """Help from a place, for ever."""
        while True:
            job = self._jobs.get()
            with self._lock:
                self._busy += 1
            job.help()
            del job
            with self._lock:
                self._busy -= 1

    def share(self, entry: int, argv: int, n: int, chunk: int, helpers: int) -> None:
        """Run a kernel on this thread and on so many helpers at most."""
        job = _Job(entry, argv, n, chunk)
        for _ in range(min(helpers, self.helpers, (n - 1) // chunk)):
            self._jobs.put(job)
        job.finish()


def _share(entry: int, argv: int, n: int, chunk: int, team: int, helpers: int) -> None:
    if helpers > 0 and n > chunk:
        _teams[team].share(entry, argv, n, chunk, helpers)
    else:
        _released(entry)(argv, _Words(1)(), n, n)


# --- entries that are no kernels of anybody's; see `launch.c` and `stores.c` ---

_taking = allocate_lock()


def _copy(argv: int, counter: int, n: int, chunk: int) -> None:
    to, source, nbytes = _read(argv, 3)
    ctypes.memmove(to, source, nbytes)


def _group(argv: int, counter: int, n: int, chunk: int) -> None:
    base_, index, _ = _read(argv, 3)
    base = _Words(1 << 40).from_address(base_)
    taken = ctypes.c_int64.from_address(counter)
    while True:
        with _taking:
            first = taken.value
            taken.value += chunk
        if first >= n:
            return
        for address in _read(index + 8 * first, min(chunk, n - first)):
            step = _Step(address)
            _released(step.entry)(step.arguments(base), _Words(1)(), step.n, step.n)


def _stream(argv: int, counter: int, n: int, chunk: int) -> None:
    _released(_read(argv, 1)[0])(argv + 8, counter, n, chunk)


def _bypass(argv: int, counter: int, n: int, chunk: int) -> None:
    entry, _, _, results, operands = _read(argv, 5)
    _released(entry)(argv + 8 * (5 + 2 * (results + operands)), counter, n, chunk)


_SPREAD = ctypes.CFUNCTYPE(
    None, ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 4
)  # entry, argv, n, chunk, team, helpers
_keep: list[Any] = []


def _address(kind: Any, function: Callable[..., None]) -> int:
    made = kind(function)
    _keep.append(made)
    return ctypes.cast(made, ctypes.c_void_p).value or 0


COPY = _address(ctypes.CFUNCTYPE(*_ENTRY), _copy)
GROUP = _address(ctypes.CFUNCTYPE(*_ENTRY), _group)
STREAM = _address(ctypes.CFUNCTYPE(*_ENTRY), _stream)
BYPASS = _address(ctypes.CFUNCTYPE(*_ENTRY), _bypass)
SPREAD = _address(_SPREAD, _share)
