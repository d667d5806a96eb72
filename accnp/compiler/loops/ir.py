"""The nodes of the loop IR.

A kernel is a function of buffers and integers that runs the steps `first`..`last` of its range. All
nodes are immutable, and every variable is assigned once. Facts that are known from fusion are
explicit: buffers do not alias, steps are independent, and reductions have a fixed order.
Expressions have no side effects.
"""

# Fields named `index` and `count` hide methods of tuples, which are not used.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import Literal, NamedTuple

from accnp.compiler.loops.types import I8, DType, Pointer, Type

__all__ = [
    "Address", "Break", "Buffer", "Call", "Callee", "Carried", "Cast", "Const", "Do", "Expr", "For",
    "Heap", "If", "Index", "Joined", "Kernel", "Let", "Load", "LoadVector", "Memory", "Prefetch",
    "Reduce", "ReduceColumns", "ReduceElements", "Reduction", "Run", "Share", "Spread", "Stmt",
    "Store", "StoreVector", "Transpose", "Var", "Vector", "While", "dtype", "number_type",
]  # fmt: skip


class Buffer(NamedTuple):
    """Memory for numbers of one type. No two buffers of a kernel overlap, except `Shifted` ones and
    others that are only read.

    `length` is the number of elements of a buffer on the stack; 0 for a parameter, and for a buffer
    on the heap. After the last element in use, a buffer on the stack has room for whole vectors,
    unless it is `exact`.
    """

    name: str
    dtype: DType
    length: int = 0
    exact: bool = False

    @property
    def element(self) -> DType:
        """The type of an element."""
        return self.dtype


# --- expressions ---


class Const(NamedTuple):
    """A number; 0 of type `Pointer` is the null address."""

    value: bool | int | float
    dtype: Type


class Var(NamedTuple):
    """A variable. Its name is unique in the kernel and has no meaning."""

    name: str
    dtype: Type = I8

    @property
    def element(self) -> DType:
        """The type of the element whose address it is."""
        assert isinstance(self.dtype, Pointer)
        return self.dtype.of


# A variable that is an address may point into any memory, unless a buffer says otherwise.
Memory = Buffer | Var


class Index(NamedTuple):
    """An affine index: the sum of variables times integers, which are known or variables, plus a
    constant."""

    terms: tuple[tuple[Var, int | Var], ...]
    constant: int = 0


class Heap(NamedTuple):
    """A buffer on the heap, whose number of elements is an argument."""

    buffer: Buffer
    length: Var


class Load(NamedTuple):
    """The element of a buffer, or of the memory at an address, at an index."""

    buffer: Memory
    index: Expr


class Address(NamedTuple):
    """The address of the element at an index."""

    buffer: Memory
    index: Expr


class Call(NamedTuple):
    """A call of a function without side effects, from the closed set in `functions.py` and
    `compiler/llvm/intrinsics`."""

    function: str
    args: tuple[Expr, ...]
    dtype: Type


class Cast(NamedTuple):
    """A number converted to another type. Floats outside the range of an integer saturate."""

    value: Expr
    dtype: DType


Expr = Const | Var | Index | Load | Address | Call | Cast


# --- statements ---


class Let(NamedTuple):
    """Assign a variable."""

    var: Var
    value: Expr


class Do(NamedTuple):
    """Call a procedure of the closed set in `compiler/llvm/intrinsics`; it may access memory."""

    function: str
    args: tuple[Expr, ...]
    result: Var | None = None


class Run(NamedTuple):
    """Run the steps first..last of another kernel with the given arguments."""

    kernel: str
    first: Expr
    last: Expr
    args: tuple[Expr, ...]


class Share(NamedTuple):
    """Share `count` steps of another kernel among threads, in parts of `chunk`.

    `sharer` is the address of the function that does this. `pool` (the thread pool) and `helpers`
    (the number of worker threads) are its arguments.
    """

    kernel: str
    sharer: Expr
    pool: Expr
    helpers: Expr
    count: Expr
    chunk: Expr
    args: tuple[Expr, ...]


class Store(NamedTuple):
    """Write an element of a buffer."""

    buffer: Memory
    index: Expr
    value: Expr


class LoadVector(NamedTuple):
    """Load 2 or 4 adjacent elements of a buffer with one access on a GPU. The address must be
    aligned to the size of the access."""

    results: tuple[Var, ...]
    buffer: Memory
    index: Expr


class StoreVector(NamedTuple):
    """Store 2 or 4 adjacent elements of a buffer with one access, with the same alignment."""

    buffer: Memory
    index: Expr
    values: tuple[Expr, ...]


class Prefetch(NamedTuple):
    """Prefetch the cache line of an element of a buffer, which may be beyond the end."""

    buffer: Memory
    index: Expr


class ReduceColumns(NamedTuple):
    """Reduce columns of memory, in the order of a `Reduction`.

    `to[c]` becomes the reduction of `buffer[start + places[r] + c]` over r below `rows`, for c
    below `columns`. Elements of `to` after these columns may be overwritten; it must have room for
    whole vectors.
    """

    to: Buffer
    combine: str
    buffer: Buffer
    start: Expr
    places: Buffer
    rows: Expr
    columns: Expr


class Transpose(NamedTuple):
    """Transpose a tile of a buffer into another one, whose rows are `width` elements apart.

    `to[width * r + c] = buffer[start + r + step * c]`, for r below `rows` and c below `columns`.
    Other elements of `to` may be overwritten; it must have room for squares of 16 elements.
    """

    to: Buffer
    width: int
    buffer: Buffer
    start: Expr
    step: Expr
    rows: Expr
    columns: Expr


class Carried(NamedTuple):
    """A loop-carried value: `var` in a step, and `following` in the next step.

    Its initial value is `start`, and `result` is its value after the loop.
    """

    var: Var
    start: Expr
    following: Expr
    result: Var


class Vector(NamedTuple):
    """The form in which a loop of independent steps becomes vector code."""

    lanes: int
    # How the last steps are computed: by one more copy of the body under a mask, by the loop itself
    # under a mask, or by the loop without one if memory after the last step may be written.
    rest: Literal["tail", "masked", "whole"]
    nontemporal: bool = False  # whether stores are non-temporal if the launch requests it
    # Whether the steps before the first cache line are peeled, if there are many, or if stores are
    # non-temporal.
    peel: bool = False


# How the steps of a loop are distributed on a GPU: over all threads of a grid, over its blocks, or
# over the threads of a block, with one step per thread. With "once", there is a block for each
# step.
Spread = Literal["", "grid", "blocks", "once", "threads"]


class For(NamedTuple):
    """A loop. `independent` steps may run in any order, and concurrently.

    An `interchangeable` loop ends with a loop of independent steps, with which it may be
    interchanged: all its steps may run for one step of the inner loop before the next.
    """

    index: Var
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]
    independent: bool = False
    carried: tuple[Carried, ...] = ()
    vector: Vector | None = None
    interchangeable: bool = False
    spread: Spread = ""  # in kernels for GPUs
    # If only a part of the blocks runs the loop: the index of this block among them, and their
    # number.
    part: tuple[Expr, Expr] | None = None


class Break(NamedTuple):
    """Leave the innermost loop; `values` are the results, in the order of its carried values."""

    values: tuple[Expr, ...] = ()


class While(NamedTuple):
    """A loop that runs as long as a condition holds, which is evaluated before each step."""

    test: Expr
    body: tuple[Stmt, ...]
    carried: tuple[Carried, ...] = ()


class Joined(NamedTuple):
    """A variable that has one of two values after an `If`."""

    result: Var
    then: Expr
    orelse: Expr


class If(NamedTuple):
    """Statements that run if a condition holds, and others that run if it does not."""

    test: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    joined: tuple[Joined, ...] = ()


class Reduction(NamedTuple):
    """The reduction of one value over the indices of a `Reduce`.

    The order is part of the semantics: element j is combined with lane j mod L in increasing order
    (L is 64 for a maximum or minimum, and 32 otherwise), and then the lanes are combined by halves.
    With `wide`, each element is first converted to float64.
    """

    result: Var
    combine: str  # one of `ir.op.COMBINES`
    value: Expr
    wide: bool = False


class Reduce(NamedTuple):
    """Reductions of values that independent steps compute for the indices 0..extent.

    The results are available after the last step.
    """

    index: Var
    extent: Expr
    body: tuple[Let | Store, ...]
    reductions: tuple[Reduction, ...]


class ReduceElements(NamedTuple):
    """A `Reduction` of `extent` adjacent elements of memory, from index `start` on."""

    result: Var
    combine: str
    buffer: Memory
    start: Expr
    extent: Expr
    wide: bool = False


Stmt = (
    Let
    | Do
    | Break
    | Run
    | Share
    | Store
    | LoadVector
    | StoreVector
    | Prefetch
    | Transpose
    | ReduceColumns
    | For
    | While
    | If
    | Reduce
    | ReduceElements
)


class Shifted(NamedTuple):
    """Element i of `buffer` is element i + `distance` of the buffer `of`, which is not shifted
    itself. Both are only read."""

    buffer: Buffer
    of: Buffer
    distance: int


MAX_SHIFT_DISTANCE = 4  # of `Shifted.distance`: elements are shuffled from two adjacent vectors
LONG_SIZE = 128  # see `Kernel.long`


class Callee(NamedTuple):
    """Another kernel that a kernel calls: its name, and the types of its arguments except the first
    and the last step."""

    name: str
    arguments: tuple[Type, ...]


class Kernel(NamedTuple):
    """Statements for the steps `first`..`last` of the kernel's range.

    The arguments are `first`, `last`, `buffers` and `integers`, in this order, unless `order` gives
    another one of the buffers and integers. `stack` and `heap` list the buffers that exist during a
    call.

    A kernel for GPUs has `threads`, the number of threads of a block. All threads of a grid
    together run the steps 0..`last`, and the arguments are `buffers`, `last` and `integers`. With
    an `order`, the arguments are those in it: without `first` and `last`, the kernel finds its work
    with intrinsics such as `thread`; other kernels call one that has both. `shared` lists the
    buffers in shared memory. If the kernel is `narrow`, all its indices fit into 32 bits, for which
    a GPU needs half as many instructions.
    """

    first: Var
    last: Var
    buffers: tuple[Buffer, ...]
    integers: tuple[Var, ...]
    stack: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    name: str = "kernel"
    heap: tuple[Heap, ...] = ()
    order: tuple[Memory, ...] = ()
    callees: tuple[Callee, ...] = ()
    # The integer argument that enables non-temporal stores; None if the launch does.
    nontemporal: Var | None = None
    sized: bool = False  # whether it is specialized to all its sizes
    threads: int = 0  # threads of a block of a GPU; 0 for a kernel for CPUs
    shared: tuple[Buffer, ...] = ()
    narrow: bool = False
    shifted: tuple[Shifted, ...] = ()
    long: tuple[Var, ...] = ()  # integer arguments that are at least LONG_SIZE

    @property
    def arguments(self) -> tuple[Memory, ...]:
        """The arguments after the first and the last step, in order."""
        if self.threads:
            return tuple([a for a in self.order if a not in (self.first, self.last)]) or (
                *self.buffers,
                *self.integers,
            )
        return self.order or (*self.buffers, *self.integers)

    @property
    def parameters(self) -> tuple[Memory, ...]:
        """All arguments, in order."""
        if self.threads:
            return self.order or (*self.buffers, self.last, *self.integers)
        return (self.first, self.last, *self.arguments)


def number_type(x: Expr) -> DType:
    """Return the type of an expression that is a number."""
    result = dtype(x)
    assert isinstance(result, DType)
    return result


def dtype(x: Expr) -> Type:
    """Return the type of an expression."""
    if isinstance(x, Index):
        return I8
    if isinstance(x, Address):
        return Pointer(x.buffer.element)
    return x.buffer.element if isinstance(x, Load) else x.dtype
