"""The functions and classes of the C extension in Python, for installations without it.

A launch takes a few microseconds longer. Results are bit-identical: the kernels are the same, and
the results do not depend on how threads share the work. Non-temporal stores become plain stores,
and brief launches run on one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import operator
import struct
import sys
from _thread import _local, allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ReferenceType

if TYPE_CHECKING:  # types that the package installs here
    from queue import SimpleQueue

    from accnp.array_type import Array
    from accnp.ir.op import Op
    from accnp.ir.trace import Trace
    from accnp.runtime.buffer import Buffer

__all__ = [
    "ARRAY", "BUFFER", "CLASS", "CONVERT", "COPY", "DICT", "EQUAL", "GROUP", "KEEP_GIL", "LIST",
    "MESSAGE", "NUMBER", "PARALLEL_FOR", "RELEASE_GIL", "SAME", "STAGED_STORES", "STOPPED",
    "STREAMING_STORES", "TUPLE", "WITH_AWAKE_HELPERS", "WITH_HELPERS", "ArrayBase", "Blocks",
    "BufferBase", "Caller", "Form", "Node", "Pool", "Record", "ThreadPool", "Ufunc", "blas_alone",
    "compare_messages", "dispatch_pending", "flatten_tree", "flatten_up_to", "flush_instructions",
    "install_arrays", "install_buffers", "install_mpi", "install_pytrees", "install_recording",
    "launch_held", "launch_parallel", "launch_released", "launches", "messages_sent", "new_message",
    "next_use", "observe_recording", "operate", "register_code", "select", "set_message",
    "set_pending_limit", "stop_thread", "unflatten_tree", "walker", "wrap",
]  # fmt: skip

# How a table of kernels is run, as in `native.h`: with the interpreter lock held, with the lock
# released, with the lock released and helpers, or only with helpers that are awake.
KEEP_GIL, RELEASE_GIL, WITH_HELPERS, WITH_AWAKE_HELPERS = range(4)
# Kinds of the arguments and results of a record, as in `records.h`; see `calls.c`.
ARRAY, TUPLE, LIST, DICT, SAME, NUMBER, EQUAL, CLASS, CONVERT, BUFFER = range(10)

# --- memory ---

SMALL = 4096  # blocks of at most this many bytes are parts of slabs, which are never freed
MOST = 1 << 62  # the largest request that has a size class


class Blocks:
    """The free blocks of one size class."""

    __slots__ = ("_items", "pool", "size", "used")

    def __init__(self, pool: Pool, size: int) -> None:
        self.pool, self.size = pool, size
        self.used = 0  # the pool's clock `uses` when a block of this size was last freed
        self._items: deque[tuple[int, object]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def make_room(self) -> bool:
        """Make room for one more free block in the limit of the pool, and return whether there is
        any. Blocks are returned to the system, first those of the size class whose last block was
        freed the longest time ago."""
        pool = self.pool
        self.used = next(pool.uses)
        if self.size <= SMALL:
            return True
        while pool.free_bytes + self.size > pool.limit:
            others = [b for b in pool.sizes() if b is not self and b.size > SMALL and len(b._items)]
            if not others or self.size > pool.limit:
                return False
            oldest = min(others, key=operator.attrgetter("used"))
            with contextlib.suppress(IndexError):  # another thread may have taken the block
                oldest._items.pop()
                pool._dropped.append(oldest.size)
        return True

    def fill(self, begin: int, end: int) -> None:
        """Divide the memory between two addresses, part of a slab, into free blocks."""
        pieces = range(begin, end - self.size + 1, self.size)
        self._items.extend(zip(pieces, itertools.repeat(None)))

    def clear(self) -> int:
        """Release all free blocks, and return how many bytes they have."""
        freed = 0
        while True:
            try:
                self._items.pop()
            except IndexError:  # no block is left
                return freed
            freed += self.size


class Pool:
    """The free blocks of all size classes. Subclasses allocate new blocks in `_allocate`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # `next` is atomic, so that the deallocation of buffers needs no lock.
        self._reuses, self._reads = itertools.count(), 0
        self._dropped: deque[int] = deque()
        self._dropped_before = 0
        self.uses = itertools.count(1)  # a clock that advances when a block is freed
        self._sizes: dict[int, Blocks] = {}
        # Bytes of blocks in use, and their maximum since `peak` was set. They are not exact if
        # several threads create and release buffers at the same time; nothing depends on them.
        self.live = self.peak = 0

    @property
    def free_bytes(self) -> int:
        """Bytes in free blocks."""
        return sum([len(b) * b.size for b in self.sizes()])

    @property
    def reuses(self) -> int:
        """The number of requests that got a free block."""
        self._reads += 1  # each read advances the counter
        return next(self._reuses) - self._reads + 1

    @property
    def dropped(self) -> int:
        """Bytes returned to the system."""
        while self._dropped:
            self._dropped_before += self._dropped.popleft()
        return self._dropped_before

    def blocks(self, nbytes: int) -> Blocks:
        """Return the list of free blocks for a request of this many bytes."""
        size = _size_class(nbytes)
        if size > MOST:
            raise MemoryError(f"blocks: no block has {nbytes} bytes")
        cached = self._sizes.get(size)
        return self._sizes.setdefault(size, Blocks(self, size)) if cached is None else cached

    def empty(self, nbytes: int) -> Buffer:
        """Return a buffer of this many bytes, with unspecified contents."""
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
        """Return the lists of free blocks, one for each size class."""
        return [b for _, b in sorted(self._sizes.copy().items())]

    def _allocate(self, blocks: Blocks | None, nbytes: int) -> Buffer:
        raise NotImplementedError


def _size_class(nbytes: int) -> int:
    """Return the block size for a request: a power of two, or 1.25, 1.5 or 1.75 times one."""
    if nbytes <= 64:
        return 64
    if nbytes <= SMALL:
        return 1 << (nbytes - 1).bit_length()
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


class BufferBase:
    """Memory of a known size. Deallocating it returns its block to the pool."""

    __slots__ = ("__weakref__", "_blocks", "memory", "nbytes", "ptr")

    ptr: int
    nbytes: int

    def __init__(self, ptr: int, nbytes: int, memory: object, blocks: Blocks | None = None) -> None:
        self.ptr = ptr
        self.nbytes = nbytes
        self.memory = memory
        self._blocks = blocks
        if blocks is not None:
            pool = blocks.pool
            pool.live += blocks.size
            if pool.live > pool.peak:
                pool.peak = pool.live

    @property
    def size_class(self) -> int:
        """Bytes of the block; 0 if the memory does not belong to a pool."""
        return 0 if self._blocks is None else self._blocks.size

    def __del__(self) -> None:
        # This may run in any thread and while any lock is held, so it uses only atomic operations.
        try:
            blocks = self._blocks
        except AttributeError:  # an exception prevented `__init__`
            return
        if blocks is not None:
            blocks.pool.live -= blocks.size
            if blocks.make_room():
                blocks._items.append((self.ptr, self.memory))
            else:
                blocks.pool._dropped.append(blocks.size)


# --- nodes and arrays ---


Site = tuple[CodeType, int]  # a line of the user's code: code object and instruction offset


class _State:
    """The classes and functions that the package has installed, and other global state."""

    buffer: ClassVar[type[Buffer]]
    array: ClassVar[type[Array]]
    const: ClassVar[Op]
    params: ClassVar[dict[str, Any]]
    tracing: ClassVar[list[Trace]]
    record: ClassVar[Callable[[Op, tuple[Node, ...], dict[str, Any]], Node]]
    on_deep: ClassVar[Callable[[Node], None]]
    own_packages: ClassVar[dict[str | None, bool]]
    find_site: ClassVar[Callable[[FrameType], Site | None]]
    limit: ClassVar[int] = sys.maxsize
    observed: ClassVar[bool] = False
    launches: ClassVar[itertools.count[int]] = itertools.count()
    to_stop: ClassVar[int] = 0  # the identifier of the thread whose launch must be stopped; 0: none
    reads: ClassVar[int] = 0  # how often `launches` was read, which advances that counter


def install_buffers(kind: type[Buffer]) -> None:
    """Set the class of new buffers."""
    _State.buffer = kind


def install_arrays(kind: type[Array]) -> None:
    """Set the class of new arrays."""
    _State.array = kind


def install_recording(
    *,
    const: Op,
    params: dict[str, Any],
    tracing: list[Trace],
    record: Callable[[Op, tuple[Node, ...], dict[str, Any]], Node],
    on_deep: Callable[[Node], None],
    own_packages: dict[str | None, bool],
    find_site: Callable[[FrameType], Site | None],
    get_frame: Callable[[int], FrameType],
) -> None:
    """Set the objects that recording needs: the op and the parameters of leaves, the list of open
    traces, the general function that records an operation, the function to call for long chains, a
    dictionary that tells which packages belong to accnp, the function that finds the user's line
    from a frame, and `sys._getframe`."""
    _State.const, _State.params, _State.tracing, _State.record = const, params, tracing, record
    _State.on_deep, _State.own_packages, _State.find_site = on_deep, own_packages, find_site


class Form:
    """The facts about an operation on operands of certain types that recording it again needs.

    There is one form for each combination of op, parameters and types of operands, so that cache
    keys contain the form instead of these. `wide` tells whether an operand has 64 bits. Such arrays
    may still exist when 64-bit types have been disabled, and functions may then narrow them. A
    cache of such forms must therefore check the option before it uses one.
    """

    __slots__ = ("aval", "op", "updated_operand", "wide")

    def __init__(self, op: Op, updated_operand: int | None, aval: Any, wide: bool) -> None:
        self.op, self.updated_operand, self.wide = op, updated_operand, wide
        self.aval: Any = aval


class Node:
    """One recorded operation, or a leaf.

    A node is immutable, except that `value` is set and `inputs` is cleared when the node is
    computed. An operation has a `form` if its type depends only on its parameters and on the types
    of its operands.
    """

    __slots__ = (
        "__weakref__", "aval", "depth", "form", "inputs", "op", "params", "site", "trace", "value",
    )  # fmt: skip

    def __init__(
        self,
        op: Op,
        inputs: tuple[Node, ...],
        params: dict[str, Any],
        aval: Any,
        value: Any,
        trace: Trace | None,
        depth: int,
        site: Site | None,
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


def wrap(node: Node) -> Array:
    """Return a new array that refers to a node."""
    array = _State.array.__new__(_State.array)
    array._node = node
    return array


def operate(form: Form, operands: tuple[Node, ...], params: dict[str, Any] | None = None) -> Array:
    """Record an operation whose form is known, and return an array of the new pending node."""
    params = _State.params if params is None else params
    depth = 0
    for x in operands:
        if x.trace is not None:
            return wrap(_State.record(form.op, operands, params))
        if x.depth > depth:
            depth = x.depth
    if _State.tracing or _State.observed:
        return wrap(_State.record(form.op, operands, params))
    frame = sys._getframe(2)  # the user's frame, unless the caller is a composed function of accnp
    own = _State.own_packages.get(frame.f_globals.get("__package__"), True)
    site = _State.find_site(frame) if own else (frame.f_code, frame.f_lasti)
    depth += 1
    node = Node(form.op, operands, params, form.aval, None, None, depth, site, form)
    if depth > _State.limit:
        _State.on_deep(node)
    return wrap(node)


def set_pending_limit(limit: int) -> None:
    """Set how long a chain of pending operations may be before `on_deep` is called."""
    _State.limit = limit


def observe_recording(on: bool) -> None:
    """Set whether the general function records all operations."""
    _State.observed = on


# --- dispatch of repeated calls and graphs ---


class Record:
    """A description of the calls of one signature (`calls.c`). Only the extension has records of
    graphs."""

    def __init__(
        self, words: Sequence[int], objects: tuple[Any, ...], keeps: Sequence[Any]
    ) -> None:
        self.keeps = keeps
        self.used = 0  # the number from `next_use` at the latest call
        self._words, self._objects = words, objects

    @functools.cached_property
    def call(self) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        """A function of the arguments of a call. It returns the result, or `MISS` if the arguments
        do not match the record."""
        return _Writer(self._words, self._objects).function()


next_use = itertools.count(1).__next__  # returns increasing numbers, to compare the times of uses
MISS = object()
_NUMBERS = {4: "float32", 8: "float64", -4: "int64", -8: "int64", 0: "int64"}


def _equals(x: Any, expected: Any, hashed: int) -> bool:
    """Return whether two values of one class are equal as keys of a dictionary."""
    try:
        return hash(x) == hashed and (expected is x or bool(expected == x))
    except TypeError:  # the general path raises a better message
        return False


def _flatten_pair(flatten: Callable[[Any], Any], x: Any) -> tuple[Any, Any] | None:
    """Return the pair that a flatten function returns, or None if it returns anything else."""
    pair = flatten(x)
    return pair if type(pair) is tuple and len(pair) == 2 else None


def _as_children(children: Any) -> Sequence[Any] | None:
    try:
        return tuple(children)
    except TypeError:
        return None


def _is_like(x: Any, dtype: Any, shape: Any) -> bool:
    """Return whether a NumPy array has a dtype and a shape."""
    return x.dtype == dtype and x.shape == shape


def _convert_or_none(convert: Callable[[Any], Any], x: Any) -> Any:
    try:
        return convert(x)
    except TypeError:
        return None


class _Writer:
    """Writes a Python function that does what a record of calls describes."""

    def __init__(self, words: Sequence[int], objects: tuple[Any, ...]) -> None:
        self.words = iter(words)
        self.lines: list[str] = []
        self.leaves: list[str] = []  # names of nodes and Python numbers
        self.kinds: list[str] = []  # the types in which kernels read numbers; empty for nodes
        self.buffers: list[str] = []  # names of the buffers of leaves, and of new buffers
        self.count = 0
        self.scope: dict[str, Any] = {f"o{i}": x for i, x in enumerate(objects)}
        self.scope |= {
            "MISS": MISS, "Array": _State.array, "Buffer": _State.buffer, "Node": Node,
            "const": _State.const, "params": _State.params, "wrap": wrap,
            "address": ctypes.addressof, "float32": ctypes.c_float, "float64": ctypes.c_double,
            "int64": ctypes.c_int64, "equals": _equals, "flattened": _flatten_pair,
            "parts": _as_children, "is_like": _is_like, "converted": _convert_or_none,
        }  # fmt: skip

    def function(self) -> Callable[..., Any]:
        """Return the function, which takes `args` and `kwargs`."""
        head = [next(self.words) for _ in range(17)]
        positional, by_name, closed, leaves, conditions, names = head[:6]
        table, finish = head[13], head[16]
        self.miss(f"len(args) != {positional} or len(kwargs) != {by_name}")
        keys = [self.object() for _ in range(by_name)]
        if keys:
            self.miss(f"(*kwargs,) != ({', '.join(keys)},)")
        for _ in range(closed):
            self.node(self.object())
        for _ in range(positional + by_name):
            place = next(self.words)
            by_position = place < positional
            self.argument(
                f"args[{place}]" if by_position else f"kwargs[{keys[place - positional]}]"
            )
        assert len(self.leaves) == closed + leaves
        for _ in range(conditions):
            container, question = self.object(), self.object()
            self.miss(f"{container} and {question}() is not True")
        for _ in range(names):
            self.miss(self.differs())
        last = f"o{finish}(({''.join([f'{x}, ' for x in self.leaves[closed:]])}))"
        if table:
            self.table(head, last)
        else:
            self.lines.append(f"return {last}")
        body = "\n".join(["def call(args, kwargs):", *[f"    {line}" for line in self.lines]])
        exec(compile(body, "<accnp call>", "exec"), self.scope)
        return self.scope["call"]

    def table(self, head: Sequence[int], last: str) -> None:
        """Write the lines that run the table, or return `last` if it cannot be used."""
        empties, names, fixed, fresh, _, mode, build, table, pool, helpers = head[6:16]
        unusual = [self.object() for _ in range(empties)]
        unusual += [self.differs() for _ in range(names)]
        addresses = []
        for leaf, kind in zip(self.leaves, self.kinds, strict=True):
            if kind:
                self.buffers.append("")
                # The name keeps the number alive until the call returns.
                addresses.append(f"address({self.name(f'{kind}({leaf})')})")
                continue
            self.buffers.append(self.name(f"{leaf}.value"))
            addresses.append(f"{self.buffers[-1]}.ptr")
            unusual.append(f"type({self.buffers[-1]}) is not Buffer")
        self.lines += [f"if {' or '.join(unusual) or False}:", f"    return {last}"]
        addresses += [str(next(self.words)) for _ in range(fixed)]
        for _ in range(fresh):
            blocks, nbytes = self.object(), next(self.words)
            self.buffers.append(self.name(f"{blocks}.pool.empty({nbytes})"))
            addresses.append(f"{self.buffers[-1]}.ptr")
        self.scope["run"] = walker(mode, table)
        before = [str(pool), str(helpers)] if mode >= WITH_HELPERS else []
        self.lines.append(f"run({', '.join(before + addresses)})")
        result = self.result()
        self.lines.append(f"return {result if build < 0 else f'o{build}({result})'}")

    def differs(self) -> str:
        """Return the expression for whether a dictionary maps a name to another object."""
        where, name, expected = self.object(), self.object(), self.object()
        return f"{where}.get({name}) is not {expected}"

    def miss(self, condition: str) -> None:
        self.lines += [f"if {condition}:", "    return MISS"]

    def name(self, value: str) -> str:
        """Assign a value to a new name, and return the name."""
        self.count += 1
        self.lines.append(f"x{self.count} = {value}")
        return f"x{self.count}"

    def object(self) -> str:
        """Return the name of the object to which the next word refers."""
        return f"o{next(self.words)}"

    def node(self, node: str) -> None:
        """Add a node to the leaves; the call misses if the node is traced."""
        trace = f"{node}.trace"
        self.miss(f"{trace} is not None and ({trace}.active or {trace}.dead)")
        self.leaves.append(node)
        self.kinds.append("")

    def argument(self, expression: str) -> None:
        """Write the lines that match an argument, or an item of one, with its description."""
        kind = next(self.words)
        x = self.name(expression)
        if kind == ARRAY:
            self.miss(f"type({x}) is not Array")
            node = self.name(f"{x}._node")
            self.miss(f"{node}.aval is not {self.object()}")
            self.node(node)
        elif kind == NUMBER:
            self.miss(f"type({x}) is not {self.object()}")
            how = next(self.words)
            if how < 0:
                self.miss(f"not {-(1 << -8 * how - 1)} <= {x} < {1 << -8 * how - 1}")
            self.leaves.append(x)
            self.kinds.append(_NUMBERS[how])
        elif kind == SAME:
            self.miss(f"{x} is not {self.object()}")
        elif kind == EQUAL:
            self.miss(self.unequal(x))
        elif kind == CLASS:
            self.miss(f"type({x}) is not {self.object()}")
            pair = self.name(f"flattened({self.object()}, {x})")
            self.miss(f"{pair} is None")
            self.miss(self.unequal(f"{pair}[1]"))
            parts, count = self.name(f"parts({pair}[0])"), next(self.words)
            self.miss(f"{parts} is None or len({parts}) != {count}")
            for i in range(count):
                self.argument(f"{parts}[{i}]")
        elif kind == CONVERT:
            self.miss(f"type({x}) is not {self.object()}")
            aval, convert, dtype, shape = [self.object() for _ in range(4)]
            if self.scope[dtype] is not None:
                self.miss(f"not is_like({x}, {dtype}, {shape})")
            node = self.name(f"converted({convert}, {x})")
            self.miss(f"type({node}) is not Node or {node}.aval is not {aval}")
            self.node(node)
        elif kind == DICT:
            count = next(self.words)
            self.miss(f"type({x}) is not dict or len({x}) != {count}")
            for _ in range(count):
                key = self.object()
                item = self.name(f"{x}.get({key}, MISS)")
                self.miss(f"{item} is MISS")
                self.argument(item)
            self.miss(f"len({x}) != {count}")
        else:
            class_, count = self.object(), next(self.words)
            self.miss(f"type({x}) is not {class_}")
            # A namedtuple may override `__len__`, so its own items are taken. A list may change
            # meanwhile.
            items = self.name(
                f"tuple.__getitem__({x}, slice(None))" if kind == TUPLE else f"(*{x},)"
            )
            self.miss(f"len({items}) != {count}")
            for i in range(count):
                self.argument(f"{items}[{i}]")
                if kind == LIST:
                    self.miss(f"len({x}) != {count}")

    def unequal(self, x: str) -> str:
        """Return the expression for whether a value has another class or value than the record."""
        class_, expected, hashed = self.object(), self.object(), next(self.words)
        return f"type({x}) is not {class_} or not equals({x}, {expected}, {hashed})"

    def result(self) -> str:
        """Return the expression of the result."""
        kind = next(self.words)
        if kind == ARRAY:
            buffer = self.buffers[next(self.words)]
            return f"wrap(Node(const, (), params, {self.object()}, {buffer}, None, 0, None))"
        if kind == BUFFER:
            buffer, aval = self.object(), self.object()
            return f"wrap(Node(const, (), params, {aval}, {buffer}, None, 0, None))"
        if kind == SAME:
            return self.object()
        items = []
        for _ in range(next(self.words)):
            key = f"{self.object()}: " if kind == DICT else ""
            items.append(key + self.result())
        inside = ", ".join(items)
        if kind == DICT:
            return f"{{{inside}}}"
        return f"[{inside}]" if kind == LIST else f"({inside}{',' if items else ''})"


class Caller:
    """Calls by the first record that matches the arguments, or else by `_call_uncached`."""

    __slots__ = ("_records",)
    _records: tuple[Record, ...]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        self._records = ()
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for record in self._records:
            result = record.call(args, kwargs)
            if result is not MISS:
                record.used = next_use()
                return result
        return self._call_uncached(*args, **kwargs)

    def _call_uncached(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def dispatch_pending(records: tuple[Record, ...], node: Node) -> bool:
    """Compute a pending node with the first record that matches, and return whether there is one.
    The last item of `keeps` of such a record is a function that computes the node if it matches."""
    return any(record.keeps[-1](node) for record in records)


# --- launches ---

_ENTRY = (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_without_gil = functools.lru_cache(4096)(ctypes.CFUNCTYPE(*_ENTRY))
_with_gil = functools.lru_cache(4096)(ctypes.PYFUNCTYPE(*_ENTRY))
_Words = functools.cache(lambda count: ctypes.c_int64 * count)


def _count(launches: int = 1) -> None:
    for _ in range(launches):
        next(_State.launches)


def launches() -> int:
    """Return the number of launched kernels."""
    _State.reads += 1
    return next(_State.launches) - _State.reads + 1


def launch_held(entry: int, n: int, chunk: int, *arguments: int) -> None:
    """Run a kernel with the interpreter lock held."""
    entry, arguments = _without_nontemporal(entry, arguments)
    if not -(1 << 63) <= n < 1 << 63:
        raise OverflowError(f"launch: a range has 64 bits at most; got {n}")
    _count()
    _with_gil(entry)(_Words(len(arguments))(*arguments), _Words(1)(), n, chunk)
    _raise_pending_error()


def launch_released(entry: int, n: int, chunk: int, *arguments: int) -> None:
    """Run a kernel with the interpreter lock released."""
    entry, arguments = _without_nontemporal(entry, arguments)
    if not -(1 << 63) <= n < 1 << 63:
        raise OverflowError(f"launch: a range has 64 bits at most; got {n}")
    _count()
    _run_alone(_without_gil(entry), _Words(len(arguments))(*arguments), n, chunk)


def _run_alone(entry: Callable[..., None], argv: Any, n: int, chunk: int) -> None:
    """Run 0..n on this thread in chunks, between which the interpreter calls signal handlers."""
    if n <= chunk:
        entry(argv, None, n, 0)  # without a counter, it runs 0..n
        _raise_pending_error()
        return
    for first in range(0, n, chunk):
        entry(argv, None, min(n, first + chunk), first)
        if _launch_state.step():
            _raise_pending_error()


def launch_parallel(
    entry: int, n: int, chunk: int, pool: int, helpers: int, *arguments: int
) -> None:
    """Run a kernel on several threads."""
    entry, arguments = _without_nontemporal(entry, arguments)
    if not -(1 << 63) <= n < 1 << 63:
        raise OverflowError(f"launch: a range has 64 bits at most; got {n}")
    _count()
    argv = _Words(len(arguments))(*arguments)
    _run_parallel(entry, ctypes.addressof(argv), n, chunk, pool, helpers)
    _raise_pending_error()


def _without_nontemporal(entry: int, arguments: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Return the entry of a kernel and its arguments without the wrappers for non-temporal stores.
    Wrappers in Python would lose exceptions of signal handlers."""
    for word in arguments:
        if not -(1 << 63) <= operator.index(word) < 1 << 63:
            raise OverflowError(f"launch: an argument has 64 bits at most; got {word}")
    if entry == STREAMING_STORES:
        return arguments[0], tuple(arguments[1:])
    if entry == STAGED_STORES:
        return arguments[0], tuple(arguments[5 + 2 * (arguments[3] + arguments[4]) :])
    return entry, tuple(arguments)


def _read(address: int, count: int) -> list[int]:
    return list(_Words(count).from_address(address))


class _Step:
    """One step of a table, see `engine/table.py`."""

    __slots__ = ("_count", "_first", "_pack", "_places", "_spare", "chunk", "end", "entry", "n")

    def __init__(self, address: int) -> None:
        entry, self.n, self.chunk, count = _read(address, 4)
        words = _read(address + 32, 2 * count)
        self.end = address + 32 + 16 * count
        self.entry, first = _without_nontemporal(entry, words[1::2])
        count = len(first)
        places = [*zip(words[::2][-count or len(words) :], first, strict=True)]
        # Arguments that are the same in each call come last, and stay in the blocks of arguments.
        changing = max([i + 1 for i, (which, _) in enumerate(places) if which], default=0)
        self._count, self._first = count, [more for _, more in places]
        self._places = places[:changing]
        self._pack = struct.Struct(f"{changing}q").pack_into
        # Blocks of arguments that no thread uses at the moment.
        self._spare: list[ctypes.Array[ctypes.c_int64]] = []

    @property
    def simple(self) -> bool:
        """Whether only addresses of buffers change between calls."""
        return all([which > 1 and not more for which, more in self._places])

    def runs(self, make_function: Callable[[int], Callable[..., None]]) -> Callable[..., None]:
        """Return a function of these addresses that runs the step on this thread."""
        entry, n, chunk = make_function(self.entry), self.n, self.chunk
        pack, spare, new = self._pack, self._spare, self.new
        pick = [which - 2 for which, _ in self._places]

        count = len(pick)
        in_order = pick == [*range(count)]

        def run(*buffers: int) -> None:
            next(_State.launches)
            try:
                argv = spare.pop()
            except IndexError:
                argv = new()
            pack(argv, 0, *(buffers[:count] if in_order else [buffers[i] for i in pick]))
            _run_alone(entry, argv, n, chunk)
            spare.append(argv)

        return run

    def new(self) -> ctypes.Array[ctypes.c_int64]:
        """Return a new block of arguments."""
        return _Words(self._count)(*self._first)

    def run(self, base: Sequence[int], entry: Callable[..., None]) -> None:
        """Run the step on this thread, with these bases."""
        try:
            argv = self._spare.pop()
        except IndexError:
            argv = self.new()
        self._pack(argv, 0, *[base[which] + more for which, more in self._places])
        _run_alone(entry, argv, self.n, self.chunk)
        self._spare.append(argv)

    def run_together(self, base: Sequence[int], pool: int, helpers: int) -> None:
        """Run the step on several threads."""
        argv = self.new()
        self._pack(argv, 0, *[base[which] + more for which, more in self._places])
        _run_parallel(self.entry, ctypes.addressof(argv), self.n, self.chunk, pool, helpers)


def _steps(table: int) -> list[_Step]:
    """Return the steps of a table, with groups replaced by their steps."""
    steps: list[_Step] = []
    at = table + 24
    for _ in range(_read(table + 8, 1)[0]):
        step = _Step(at)
        at = step.end
        if step.entry == GROUP:
            steps += [_Step(address) for address in _read(step._first[1], step.n)]
        else:
            steps.append(step)
    return steps


def walker(mode: int, table: int) -> Callable[..., None]:
    """Return a function of the addresses of buffers that runs a table in a mode. If the mode uses
    helpers, its first arguments are the thread pool and the number of helpers."""
    launched, steps = _read(table + 16, 1)[0], _steps(table)
    launch = _without_gil if mode != KEEP_GIL else _with_gil

    def make_function(entry: int) -> Callable[..., None]:
        return _copy if entry == COPY else launch(entry)

    if len(steps) == 1 == launched and mode < WITH_HELPERS and steps[0].simple:
        return steps[0].runs(make_function)
    all_steps = [(step, make_function(step.entry), step.n > step.chunk) for step in steps]

    def run(*buffers: int) -> None:
        _count(launched)
        base = (0, 0, *buffers)
        pool, helpers = buffers[:2] if mode == WITH_HELPERS else (0, 0)
        for step, entry, several in all_steps:
            if helpers and several:
                step.run_together(base, pool, helpers)
            else:
                step.run(base, entry)
        _raise_pending_error()

    return run


# --- threads in kernels ---

PIECE = 256  # chunks, which take about 20 us or more, between calls of signal handlers
_thread_pools: dict[int, ThreadPool] = {}
_numbers = itertools.count(1)


class _Job:
    """A launch of first..n, from which threads take chunks by a shared counter."""

    def __init__(self, entry: int, argv: int, first: int, n: int, chunk: int) -> None:
        self._run = functools.partial(
            _without_gil(entry), argv, counter := _Words(1)(first), n, chunk
        )
        self._counter, self._end = counter, n
        self.chunks = -(-(n - first) // chunk)
        self.stopped = 0
        self._lock, self._done = allocate_lock(), allocate_lock()
        self._done.acquire()
        self._inside, self._closed = 0, False
        self.frame: FrameType | None = None

    def help(self) -> None:
        """Run chunks until none is left, unless the launch has ended."""
        with self._lock:
            if self._closed:
                return
            self._inside += 1
        _launch_state.job = self
        self._run()
        _launch_state.job = None
        with self._lock:
            self._inside -= 1
            if self._closed and not self._inside:
                self._done.release()

    def stop(self) -> None:
        """Discard the remaining chunks, and end native loops of the threads that take part."""
        self._counter[0], self.stopped = self._end, 1

    def finish(self) -> None:
        """Run chunks, and wait for the helpers that take part. If an exception ends this function,
        it must be called again."""
        self._run()
        if _launch_state.step():
            self.stop()
        with self._lock:
            self._closed = True
        while self._inside:
            self._done.acquire()  # the last helper releases it


class ThreadPool:
    """Helper threads, which run kernels together with the thread that launches them."""

    def __init__(self) -> None:
        self.address = next(_numbers)
        self.helpers = self.spins = 0
        self.loop_launches = (0, 0)  # only the extension counts launches of native loops
        self._busy = 0
        self._lock = allocate_lock()
        self._jobs: SimpleQueue[_Job] | None = None  # created with the first helper
        _thread_pools[self.address] = self

    @property
    def asleep(self) -> int:
        """The number of sleeping helpers."""
        return self.helpers - self._busy

    def reserve(self) -> int | None:
        """Return the slot of a new helper."""
        if self._jobs is None:
            from queue import SimpleQueue

            self._jobs = SimpleQueue()
        return self.helpers

    def add_helper(self, slot: int, number: int) -> None:
        """Add a helper whose thread has started: its slot, and the thread id of the system."""
        self.helpers = slot + 1

    def run_helper(self, slot: int) -> None:
        """Run the endless loop of the helper in a slot."""
        jobs = self._jobs
        assert jobs is not None, "run_helper: reserve a slot first"
        while True:
            job = jobs.get()
            with self._lock:
                self._busy += 1
            job.help()
            del job
            with self._lock:
                self._busy -= 1

    def run(self, entry: int, argv: int, n: int, chunk: int, helpers: int) -> None:
        """Run a kernel on this thread and on at most this many helpers.

        The interpreter calls signal handlers between parts of PIECE chunks.
        """
        for first in range(0, n, PIECE * chunk):
            self._run_job(_Job(entry, argv, first, min(n, first + PIECE * chunk), chunk), helpers)

    def _run_job(self, job: _Job, helpers: int) -> None:
        # The frames of the callers keep the buffers alive. An exception of a signal handler may end
        # these frames while helpers still work, so the job holds them until the helpers have ended.
        job.frame = sys._getframe()
        error: BaseException | None = None
        if self._jobs is not None:
            for _ in range(min(helpers, self.helpers, job.chunks - 1)):
                self._jobs.put(job)
        while True:
            try:
                job.finish()
                _raise_pending_error()
                break
            except BaseException as raised:
                error = raised
                job.stop()
        job.frame = None
        if error is not None:
            try:
                raise error
            finally:
                error = None  # its traceback refers to this frame


def _run_parallel(entry: int, argv: int, n: int, chunk: int, pool: int, helpers: int) -> None:
    if helpers > 0 and n > chunk:
        _thread_pools[pool].run(entry, argv, n, chunk, helpers)
    else:
        _run_alone(_without_gil(entry), argv, n, chunk)


# --- entries of steps that are not kernels, see `launch.c` and `stores.c` ---


class _LaunchState(_local):
    """The state of a thread's launch.

    `error` is the error of a Python function that a kernel called; it is raised when the kernel has
    returned. `job` is the launch in which the thread takes part as a helper.

    Kernels call `step`, which returns whether they must end. The interpreter may call a signal
    handler as soon as it begins to run Python code. If the handler raised an exception before a
    function has entered its `try` block, the exception would be lost. `step` therefore resumes a
    generator that is already inside of its `try` block.
    """

    error: BaseException | None = None
    job: _Job | None = None

    def __init__(self) -> None:
        self.step = self._steps().__next__

    def _steps(self) -> Iterator[int]:
        answer = 0
        while True:
            try:
                while True:
                    yield answer
                    answer = self._is_stopped()
            except GeneratorExit:
                return
            except BaseException as error:
                self.error, answer = error, 1

    def _is_stopped(self) -> int:
        if self.job is not None:
            return self.job.stopped
        if _State.to_stop and _State.to_stop == get_ident():
            _State.to_stop = 0
            raise RuntimeError("launch: another thread has stopped this work")
        return int(self.error is not None)


_launch_state = _LaunchState()


def stop_thread(identifier: int) -> None:
    """Stop the kernels that a thread has launched, which then raises RuntimeError. The identifier
    0 withdraws an earlier request."""
    _State.to_stop = identifier


def _parallel_for(entry: int, argv: int, n: int, chunk: int, pool: int, helpers: int) -> None:
    try:
        _run_parallel(entry, argv, n, chunk, pool, helpers)
    except BaseException as error:
        _launch_state.error = error


def _raise_pending_error() -> None:
    error = _launch_state.error
    if error is not None:
        _launch_state.error = None
        try:
            raise error
        finally:
            del error


def _copy(argv: Sequence[int] | int, counter: object, n: int, chunk: int) -> None:
    to, source, nbytes = _read(argv, 3) if isinstance(argv, int) else argv
    ctypes.memmove(to, source, nbytes)


def _not_run(argv: int, counter: int, n: int, chunk: int) -> None:
    raise AssertionError("a kernel or a group was run outside of its table")


# The arguments are entry, argv, n, chunk, pool, helpers.
_PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 4)
_keep: list[object] = []


def _address(kind: Any, function: Callable[..., object]) -> int:
    callback = kind(function)
    _keep.append(callback)
    return ctypes.cast(callback, ctypes.c_void_p).value or 0


COPY = _address(ctypes.CFUNCTYPE(*_ENTRY), _copy)
GROUP = _address(ctypes.CFUNCTYPE(*_ENTRY), _not_run)
STREAMING_STORES = _address(ctypes.CFUNCTYPE(*_ENTRY), _not_run)
STAGED_STORES = _address(ctypes.CFUNCTYPE(*_ENTRY), _not_run)
PARALLEL_FOR = _address(_PARALLEL_FOR, _parallel_for)
# All of this is C until the generator runs.
STOPPED = _address(
    ctypes.CFUNCTYPE(ctypes.c_int64),
    functools.partial(operator.methodcaller("step"), _launch_state),
)


# Loops that send messages run on the host, without the extension.
MESSAGE = 0


def install_mpi(addresses: tuple[int, ...], byte: int, helper: Callable[..., None]) -> None:
    """Set the functions of MPI that loops call. Only the extension has such loops."""


def compare_messages(value: bool) -> None:
    """Set whether the helper checks each message first. Only the extension sends messages."""


def new_message(kind: int, number: int) -> int:
    """Return the address of a message of loops. Only the extension has such messages."""
    raise NotImplementedError("new_message: the C extension is needed; got the fallback")


def set_message(
    address: int, ready: bool, comm: int, size: int, source: int, target: int, tag: int
) -> None:
    """Set the properties of a message of loops. Only the extension has such messages."""


def messages_sent() -> int:
    """Return how many messages loops have sent, which is 0 without the extension."""
    return 0


def register_code(file: bytes) -> None:
    """Register an object file in memory with gdb. Only the extension does this."""


def flush_instructions(address: int, size: int) -> None:
    """Flush the instruction cache for new machine code. Only the extension does this; x86
    processors do not need it."""


_nothing = 0  # the address of a function that does nothing; 0 until it is first needed


def blas_alone(get: int, set: int) -> tuple[int, int]:
    """Return the addresses of two functions between whose calls OpenBLAS uses one thread. Here the
    functions do nothing; only the extension does this."""
    global _nothing
    _nothing = _nothing or _address(ctypes.CFUNCTYPE(None), lambda: None)
    return _nothing, _nothing


# --- selection of objects by type ---


def select(objects: list[object], is_wanted: Callable[[type], bool]) -> list[object]:
    """Return the objects of a list whose type is wanted. `is_wanted` is called once for each type.
    Weak references without a callback are left out."""
    kinds = {id(kind): kind for kind in map(type, objects)}  # a type may not be hashable
    kind_ids = {k for k, kind in kinds.items() if is_wanted(kind)}
    return [
        x for x in objects
        if id(type(x)) in kind_ids and not (isinstance(x, ReferenceType) and x.__callback__ is None)
    ]  # fmt: skip


# --- functions whose properties are read-only ---

_PROPERTIES = ("nin", "nout", "nargs", "identity", "__func__")
# What the object has itself, where the function would act as another object.
_OWN = frozenset(
    {
        "__delattr__", "__eq__", "__func__", "__hash__", "__ne__", "__reduce__", "__reduce_ex__",
        "__repr__", "__setattr__", "__str__",
    }
)  # fmt: skip


class Ufunc:
    # A callable that forwards attributes to a Python function; nin, nout, nargs and identity
    # cannot be set. `help` reads `__doc__` with `object.__getattribute__`.
    __slots__ = ("__func__", "__weakref__")
    __doc__ = property(lambda self: self.__func__.__doc__)  # type: ignore[assignment]

    def __init__(self, function: Callable[..., object], /) -> None:
        if not callable(function):
            raise TypeError(f"Ufunc: pass a function; got {function!r}")
        object.__setattr__(self, "__func__", function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(*args, **kwargs)

    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__
        return own(self, name) if name in _OWN else getattr(own(self, "__func__"), name)

    def __setattr__(self, name: str, value: object) -> None:
        _refuse(self, name, "setter")
        setattr(self.__func__, name, value)

    def __delattr__(self, name: str) -> None:
        _refuse(self, name, "deleter")
        delattr(self.__func__, name)

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__func__.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__func__.__qualname__


def _refuse(ufunc: Ufunc, name: str, what: str) -> None:
    if name in _PROPERTIES:
        raise AttributeError(
            f"{ufunc.__func__.__name__}: property {name!r} of 'ufunc' object has no {what}; use "
            "jnp.frompyfunc to make another ufunc"
        )


# --- pytrees -------------------------------------------------------------------------------------

_OneLevel = Callable[[Any], "tuple[Sequence[Any], Any] | None"]


def install_pytrees(
    nodes: dict[type, Any],
    inner: dict[type, Any],
    leaf_types: set[type],
    none: object,
    one_level: _OneLevel,
) -> None:
    """Set the objects that pytrees need: the flatten and unflatten functions of registered classes,
    those of leaf classes that contain arrays, other leaf classes, the node of None, and the
    function that flattens one level."""
    global _nodes, _inner, _leaf_types, _none, _one_level
    _nodes, _inner, _leaf_types, _none, _one_level = nodes, inner, leaf_types, none, one_level


_nodes: dict[type, Any] = {}
_inner: dict[type, Any] = {}
_leaf_types: set[type] = set()
_none: object = None
_one_level: _OneLevel = lambda tree: None  # noqa: E731


def flatten_tree(
    tree: Any, leaves: list[Any], inner: dict[type, Any], is_leaf: Callable[..., bool] | None = None
) -> Any:
    """Add the leaves of a pytree to a list, and return its structure."""
    if is_leaf is None:
        return _take(tree, leaves.append, inner)
    return _take_until(tree, leaves.append, is_leaf, inner)


def _take(tree: Any, add: Callable[[Any], None], inner: dict[type, Any]) -> Any:
    """Pass each leaf to `add`, which returns None, the structure of a leaf."""
    kind = type(tree)
    if kind is dict:
        try:
            data = tuple(sorted(tree))
        except TypeError:
            _one_level(tree)  # raises an error that describes the fault
            raise
        values: Any = [*map(tree.__getitem__, data)]
    else:
        data, values = None, tree
    if kind is dict or kind is tuple or kind is list:
        if _leaf_types.issuperset(map(type, values)):
            for x in values:
                add(x)
            return kind, data, (None,) * len(values)
        return (
            kind,
            data,
            tuple([add(x) if type(x) in _leaf_types else _take(x, add, inner) for x in values]),
        )
    level = None if kind in _leaf_types else _one_level(tree)
    if level is None:
        return add(tree) if kind not in inner else inner[kind].take(tree, add)
    if tree is None:
        return _none
    return kind, level[1], tuple([_take(x, add, inner) for x in level[0]])


def _take_until(
    tree: Any,
    add: Callable[[Any], None],
    is_leaf: Callable[..., bool],
    inner: dict[type, Any],
) -> Any:
    if is_leaf(tree):
        return add(tree)
    level = _one_level(tree)
    if level is None:
        return add(tree) if type(tree) not in inner else inner[type(tree)].take(tree, add)
    if tree is None:
        return _none
    children = tuple([_take_until(x, add, is_leaf, inner) for x in level[0]])
    return type(tree), level[1], children


def unflatten_tree(node: Any, leaves: Sequence[Any]) -> Any:
    """Return the pytree of a structure with the given leaves."""
    rest = iter(leaves)
    # The stacks contain the values that were built so far, and nodes with whether their children
    # were built. There is no recursion, because a structure may be deeper than its limit.
    values: list[Any] = []
    stack: list[tuple[Any, bool]] = [(node, False)]
    while stack:
        node, is_below_done = stack.pop()
        if node is None:
            values.append(next(rest))
            continue
        count = len(node[2])
        if is_below_done:
            first = len(values) - count
            values[first:] = [_build_node(node, values[first:])]
        elif node[2].count(None) == count:  # all children are leaves
            values.append(_build_node(node, [*itertools.islice(rest, count)]))
        else:
            stack.append((node, True))
            stack += [(x, False) for x in reversed(node[2])]
    return values[0]


def _build_node(node: Any, values: list[Any]) -> Any:
    """Build the value of a node from the values of its children."""
    kind, data, _ = node
    if kind is tuple:
        return tuple(values)
    if kind is list:
        return values
    if kind is dict:
        return dict(zip(data, values))
    if kind is type(None):
        return None
    rules = _nodes.get(kind)
    if rules is not None:
        return rules.unflatten(data, tuple(values))
    return _inner[kind].put(data, values[0]) if kind in _inner else kind(*values)


def flatten_up_to(node: Any, tree: Any, leaves: list[Any]) -> bool:
    """Add the subtrees at the leaves of a structure to a list; return whether the tree fits."""
    stack = [(node, tree)]
    while stack:
        node, tree = stack.pop()
        if node is None:
            leaves.append(tree)
            continue
        kind, data, inner = node
        if kind in _inner:
            flatten_tree(tree, leaves, _inner) if type(tree) in _inner else leaves.append(tree)
            continue
        level = _one_level(tree) if type(tree) is kind else None
        if level is None:
            return False
        children, other_data = level
        # Identical objects are accepted even if they do not compare equal, such as arrays.
        if kind is not tuple and kind is not list and other_data is not data and other_data != data:
            return False
        if len(children) != len(inner):
            return False
        stack += reversed([*zip(inner, children)])
    return True
