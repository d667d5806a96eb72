"""The nodes of the loop IR.

A kernel is a function of buffers and integers that runs the steps `first`..`last` of its range. All
nodes are immutable, and every variable is assigned once. Facts that fusion knows are fields:
distinct buffers, independent steps, the order of a reduction. Expressions have no side effects.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from accnp.compiler.loops.types import I8, DType, Pointer, Type

__all__ = [
    "COMBINES", "Address", "Break", "Buffer", "Call", "Callee", "Carried", "Cast", "Const", "Do",
    "Expr", "Fold", "FoldRows", "For", "Heap", "If", "Index", "Joined", "Kernel", "Let", "Load",
    "LoadVector", "Memory", "Prefetch", "Reduce", "Reduction", "Run", "Share", "Spread", "Stmt",
    "Store", "StoreVector", "Transpose", "Var", "Vector", "While", "dtype", "number_type",
]  # fmt: skip


class Buffer(NamedTuple):
    """Memory for numbers of one type. No two buffers of a kernel overlap.

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
    """A function without side effects of the closed set in `functions` and `intrinsics`."""

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
    """Call a procedure of the closed set in `intrinsics`, which may read and write memory."""

    function: str
    args: tuple[Expr, ...]
    result: Var | None = None


class Run(NamedTuple):
    """Do the steps first..last of another kernel, whose arguments follow."""

    kernel: str
    first: Expr
    last: Expr
    args: tuple[Expr, ...]


class Share(NamedTuple):
    """Share `count` steps of another kernel among threads, in parts of `chunk`.

    `sharer` is the address of the function that does so, `team` and `helpers` are its arguments.
    """

    kernel: str
    sharer: Expr
    team: Expr
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
    """Assign 2 or 4 adjacent elements of a buffer, which are one access of a GPU: the address of
    the first one is a multiple of the bytes of all."""

    results: tuple[Var, ...]
    buffer: Memory
    index: Expr


class StoreVector(NamedTuple):
    """Write 2 or 4 adjacent elements of a buffer in one access, likewise."""

    buffer: Memory
    index: Expr
    values: tuple[Expr, ...]


class Prefetch(NamedTuple):
    """Bring the cache line of an element of a buffer into the caches; it may be beyond the end."""

    buffer: Memory
    index: Expr


class FoldRows(NamedTuple):
    """Folds of columns of memory, in the order of a `Reduction`.

    `to[c]` becomes the fold of `buffer[start + places[r] + c]` over r below `rows`, for c below
    `columns`. Elements of `to` after these columns, which has room for vectors, are overwritten.
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
    Elements of `to` outside of these, which has room for squares of 16, are overwritten.
    """

    to: Buffer
    width: int
    buffer: Buffer
    start: Expr
    step: Expr
    rows: Expr
    columns: Expr


class Carried(NamedTuple):
    """A loop-carried value: `var` in a step, and `following` in the next one.

    It starts as `start`, and is `result` after the loop.
    """

    var: Var
    start: Expr
    following: Expr
    result: Var


class Vector(NamedTuple):
    """How a loop of independent steps becomes vector code."""

    lanes: int
    # How the last steps are computed: by one more copy of the body under a mask, by the loop itself
    # under a mask, or by the loop without one if memory after the last step may be written.
    rest: Literal["tail", "masked", "whole"]
    bypass: bool = False  # whether stores are non-temporal if the launch requests it
    peel: bool = False  # whether the steps before the first cache line are peeled then


# What the steps of a loop are dealt to, one after the other: all threads of a grid, its blocks, or
# the threads of a block, of which each does one. With "once", there is a block for each step.
Spread = Literal["", "grid", "blocks", "once", "threads"]


class For(NamedTuple):
    """A loop. Steps that are `independent` may be done in any order, and side by side.

    An `interchangeable` loop ends with a loop of independent steps, with which it may change
    places: all its own steps may be done for one of those inside before the next one of these.
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
    # Where only some blocks do the steps: the number of this block among these, and their number.
    part: tuple[Expr, Expr] | None = None


class Break(NamedTuple):
    """Leave the innermost loop, whose results are `values`, in the order of what it carries."""

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
    """Statements that are done if a condition holds, and others if it does not."""

    test: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    joined: tuple[Joined, ...] = ()


COMBINES = ("sum", "prod", "max", "min", "and", "or")


class Reduction(NamedTuple):
    """The fold of one value over the indices of a `Reduce`.

    The order is part of the meaning: element j joins lane j mod L in increasing order (L is 64 for
    a maximum or minimum, and 32 otherwise), and the lanes are folded by halves. With `wide`, each
    element is converted to float64 before.
    """

    result: Var
    combine: str  # one of COMBINES
    value: Expr
    wide: bool = False


class Reduce(NamedTuple):
    """Folds of values that are computed for each of the indices 0..extent, by independent steps.

    The results are known after the last step.
    """

    index: Var
    extent: Expr
    body: tuple[Let | Store, ...]
    folds: tuple[Reduction, ...]


class Fold(NamedTuple):
    """A `Reduction` of `extent` elements that are adjacent in memory, from an index on."""

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
    | FoldRows
    | For
    | While
    | If
    | Reduce
    | Fold
)


class Callee(NamedTuple):
    """Another kernel that a kernel calls: its name, and the types of its arguments after the first
    and the last step."""

    name: str
    arguments: tuple[Type, ...]


class Kernel(NamedTuple):
    """Statements for the steps `first`..`last` of the kernel's range.

    The arguments are `first`, `last`, `buffers` and `integers`, in this order, unless `order` gives
    another one of the buffers and integers. `stack` and `heap` list the buffers that exist during a
    call.

    A kernel for GPUs has `threads`: those of a block. All threads of a grid do the steps 0..`last`
    together, and the arguments are `buffers`, `last` and `integers`. With an `order`, the arguments
    are those in it: without `first` and `last`, the kernel finds its work by intrinsics such as
    `thread`; other kernels call one that has both. `shared` lists the buffers that the threads of a
    block share. If the kernel is `narrow`, all indices of its memory fit into 32 bits, in which a
    GPU computes them by half as many instructions.
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
    # What says whether results bypass the caches: an integer argument; None for the launch.
    past: Var | None = None
    sized: bool = False  # whether all sizes are known
    threads: int = 0  # of a block of a GPU; 0: the kernel is for processors
    shared: tuple[Buffer, ...] = ()
    narrow: bool = False

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
    found = dtype(x)
    assert isinstance(found, DType)
    return found


def dtype(x: Expr) -> Type:
    """Return the type of an expression."""
    if isinstance(x, Index):
        return I8
    if isinstance(x, Address):
        return Pointer(x.buffer.element)
    return x.buffer.element if isinstance(x, Load) else x.dtype
