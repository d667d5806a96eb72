"""Pass that distributes reductions of rows, and the statements with their results, over the threads
of a GPU.

`specs/grid.py` applies it to kernels with loops over rows. A warp reduces a block of 1024 elements:
its lanes are those of a `Reduction`, which are combined by halves, and the results of the blocks of
a row are combined in order. So every sum has the same order as on CPUs, and the same bits. If rows
have one block, a warp or a part of it processes a row. Longer rows are processed by a thread block,
whose warps reduce a block of elements each and write the results to shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from accnp.compiler.loops.builder import affine, call, plus
from accnp.compiler.loops.ir import (
    Buffer,
    Call,
    Carried,
    Const,
    Do,
    Expr,
    For,
    If,
    Index,
    Joined,
    Kernel,
    Let,
    Load,
    Reduction,
    Spread,
    Stmt,
    Store,
    Var,
    number_type,
)
from accnp.compiler.loops.types import B1, F4, F8, I8, DType
from accnp.compiler.passes.copies import Copies
from accnp.compiler.passes.reduction_lanes import combine_lanes, initial_value
from accnp.compiler.passes.replace_variables import replaced
from accnp.compiler.passes.row_passes import (
    BLOCK,
    ELEMENT,
    Pass,
    assign_shared_arrays,
    passes_of,
    value_lifetimes,
)
from accnp.compiler.passes.spread import collapse, nest_of
from accnp.compiler.unsupported import Unsupported
from accnp.ir.op import COMBINES

__all__ = ["RowPlan", "RowWriter", "reduce_chunks", "reduce_rows"]

LANES = 32
PARTS = 128  # results of blocks of elements that are combined at a time
REGISTERS = 65536  # of a multiprocessor, shared by its thread blocks
FEW = 8  # elements that are loaded before the first is used if registers are scarce
ROOM = 40 << 10  # maximum bytes of shared memory for the kept values of a thread block
_ZERO, _ONE = Const(0, I8), Const(1, I8)
_Values = list[Expr]


class RowPlan(NamedTuple):
    """How the elements of a row are distributed over threads.

    Short rows, and rows with one block of elements for each warp, stay in registers between passes:
    there is a step for each 32 elements, and all loads are issued before the first is used. If that
    is too much code, and for all other rows, a value that several passes read stays in shared
    memory. The thread that stores an element there also loads it, so that no thread waits for
    another. A thread block has few rows, and there are as many blocks as that requires: they end at
    different times, so that the device is busy until the end.

    Attributes
    ----------
    threads
        The number of threads of a thread block.
    by_block
        Whether a thread block has one row at a time, not each of its warps.
    width
        The number of threads that have one row; less than 32 only if `by_block` is false.
    steps
        The number of steps of 32 elements into which a row, or a block of it, is unrolled; 0 if it
        is not unrolled.
    clear
        The number of these steps that are complete in any row.
    rest
        Both numbers for the last block of a row, if it is shorter.
    side
        The number of elements that a thread loads at a time otherwise.
    length
        The elements of a row for which there may be shared memory; 0 if passes keep nothing.
    once
        Whether there are as many thread blocks as all rows need.
    """

    threads: int
    by_block: bool
    width: int = LANES
    steps: int = 0
    clear: int = 0
    rest: tuple[int, int] | None = None
    side: int = 4
    length: int = 0
    once: bool = False


def reduce_rows(kernel: Kernel, plan: RowPlan) -> Kernel:
    """Return the kernel for a GPU, whose range is all rows.

    Parameters
    ----------
    kernel : Kernel
        Assignments, and a nest of loops over the rows, whose sizes are arguments, or one over the
        range of the kernel. It contains statements and loops over the elements of a row, of which
        those that reduce them go over blocks of 1024.
    plan : RowPlan
        How the elements are distributed. The kernel may have fewer threads, so that the values that
        it keeps fit into shared memory.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    before, nest = nest_of(kernel)
    row = passes_of(nest[-1].body)
    writer = RowWriter(kernel, plan, [p for p in row if isinstance(p, Pass)])
    t, b, o = writer.new("t"), writer.new("b"), writer.new("o")
    body: list[Stmt] = []
    with writer.into(body):
        writer.lane = writer.let("x", call("and", t, Const(LANES - 1, I8)))
        writer.warp = writer.let("y", call("shr", t, Const(5, I8)))
    writer.thread = t
    several = LANES // plan.width
    each = 1 if plan.by_block else writer.plan.threads // plan.width
    inside: list[Stmt] = []
    with writer.into(inside):
        if several > 1:
            shift = Const(plan.width.bit_length() - 1, I8)
            mine = call("add", writer.first, call("shr", writer.lane, shift))
            writer.live = writer.let("live", call("lt", mine, kernel.last))
            writer.head = writer.let("head", call("and", writer.lane, Const(-plan.width, I8)))
            writer.out.append(
                Let(o, call("select", writer.live, mine, affine((kernel.last, 1), constant=-1)))
            )
        elif plan.by_block:
            writer.out.append(Let(o, b))
        else:
            writer.out.append(Let(o, writer.first))
        indices, known = collapse(kernel, writer.names, nest, o)
        writer.out += [*indices, *[Let(v, x) for v, x in known.items()]]
        for s in row:
            writer.item(s)
    if plan.by_block:
        body += inside
    else:
        first = call("add", b, call("mul", writer.warp, Const(several, I8)))
        body += [Let(writer.first, first), If(call("lt", writer.first, kernel.last), tuple(inside))]
    steps = For(
        t, _ZERO, Const(writer.plan.threads, I8), 1, tuple(body), independent=True, spread="threads"
    )
    to: Spread = "once" if plan.once else "blocks"
    whole = For(b, _ZERO, kernel.last, each, (steps,), independent=True, spread=to)
    return kernel._replace(
        body=(*before, whole), threads=writer.plan.threads, shared=tuple(writer.shared)
    )


def reduce_chunks(kernel: Kernel, plan: RowPlan) -> Kernel:
    """Return the kernel for a GPU that reduces chunks of rows, whose range is all chunks.

    Parameters
    ----------
    kernel : Kernel
        Assignments, and a loop over the range of the kernel: assignments, one loop that reduces the
        elements from an index on, by blocks, and statements with the results.
    plan : RowPlan
        How the elements are distributed; a thread block has a chunk.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    before, (loop,) = nest_of(kernel)
    *early, last = loop.body
    row = passes_of([s for s in early if isinstance(s, Let | Store | For)])
    if not isinstance(last, If) or len(row) < len(early):
        raise Unsupported("chunks with other statements")
    writer = RowWriter(kernel, plan, [p for p in row if isinstance(p, Pass)])
    t = writer.thread = writer.new("t")
    body: list[Stmt] = []
    with writer.into(body):
        writer.lane = writer.let("x", call("and", t, Const(LANES - 1, I8)))
        writer.warp = writer.let("y", call("shr", t, Const(5, I8)))
        for s in row:
            writer.item(s)
        writer.out.append(If(call("eq", t, _ZERO), (last,)))
    steps = For(
        t, _ZERO, Const(plan.threads, I8), 1, tuple(body), independent=True, spread="threads"
    )
    whole = For(loop.index, _ZERO, kernel.last, 1, (steps,), independent=True, spread="blocks")
    return kernel._replace(body=(*before, whole), threads=plan.threads, shared=tuple(writer.shared))


class RowWriter:
    """Writes the statements of one thread."""

    def __init__(self, kernel: Kernel, plan: RowPlan, passes: list[Pass]) -> None:
        self.kernel = kernel
        self.names = Copies(kernel)
        self.new = self.names.new
        self.passes = passes
        self.out: list[Stmt] = []
        self.thread = self.lane = self.warp = self.first = self.head = Var("")
        self.first = self.new("u")
        self.live: Var | None = None
        # Values of the row other than those that the statements name: of another row.
        self.others: dict[Var, Expr] = {}
        self.lifetimes = value_lifetimes(passes) if plan.length else {}
        self.registers: dict[object, dict[int, Expr]] = {key: {} for key in self.lifetimes}
        self.shared: list[Buffer] = []
        self.shared_buffers: dict[object, Buffer] = {}
        self.present = 0
        self.inverses: dict[Expr, Var] = {}
        self.plan = self.choose_rows_per_block(plan)
        self.parts: dict[Var, Buffer] = {}
        for f in [f for p in passes for f in p.reductions] if plan.by_block else ():
            self.parts[f.result] = self.share(number_type(f.value), PARTS)

    def choose_rows_per_block(self, plan: RowPlan) -> RowPlan:
        """Return the plan with as many rows in a thread block as shared memory has room for."""
        if plan.steps:
            return plan
        types, places = assign_shared_arrays(self.lifetimes, plan.length, ROOM)
        rows, size = 1 if plan.by_block else plan.threads // LANES, sum([t.size for t in types])
        while rows > 1 and rows * size * plan.length > ROOM:
            rows //= 2
        arrays = [self.share(of, plan.length * rows) for of in types]
        self.shared_buffers = {key: arrays[k] for key, k in places.items()}
        self.rows = rows
        return plan if plan.by_block else plan._replace(threads=LANES * rows)

    def share(self, of: DType, length: int) -> Buffer:
        self.shared.append(Buffer(self.new("kept").name, of, length))
        return self.shared[-1]

    # --- writing ---

    @contextmanager
    def into(self, body: list[Stmt]) -> Generator[None]:
        """Write statements to a list."""
        before, self.out = self.out, body
        yield
        self.out = before

    def let(self, name: str, value: Expr) -> Var:
        var = self.new(name, number_type(value))
        self.out.append(Let(var, value))
        return var

    def do(self, name: str, of: DType, function: str, *args: Expr) -> Var:
        var = self.new(name, of)
        self.out.append(Do(function, args, var))
        return var

    def shuffle_lanes(self, function: str, x: Expr, by: Expr) -> Var:
        return self.do("z", number_type(x), function, x, by)

    def wait(self) -> None:
        self.out.append(Do("barrier", ()))

    def choose(
        self, test: Expr, then: list[Stmt], values: _Values, orelse: list[Stmt], others: _Values
    ) -> _Values:
        """Write an `If`. Return the values that one of its sides has assigned."""
        results = [self.new("v", number_type(x)) for x in values]
        joined = [Joined(r, x, y) for r, x, y in zip(results, values, others, strict=True)]
        self.out.append(If(test, tuple(then), tuple(orelse), tuple(joined)))
        return [*results]

    # --- rows ---

    def item(self, s: Pass | Let | Store) -> None:
        """Write a statement for a row, or a pass over it."""
        if isinstance(s, Let):
            self.out.append(s)
        elif isinstance(s, Store):
            if self.plan.width < LANES:
                assert self.live is not None
                test = call("and", self.live, call("eq", self.lane, self.head))
            else:
                test = call("eq", self.thread if self.plan.by_block else self.lane, _ZERO)
            self.out.append(If(test, (s,)))
        else:
            self.write_pass(s)
            self.present += 1

    def write_pass(self, p: Pass) -> None:
        self.invert(p)
        starts = [c.start for c in p.carried]
        if p.needed is None or self.plan.width < LANES:
            results = self.reduce(p)
        else:
            inside: list[Stmt] = []
            with self.into(inside):
                then = self.reduce(p)
            results = self.choose(p.needed, inside, then, [], starts)
        self.out += [Let(c.result, x) for c, x in zip(p.carried, results, strict=True)]

    def reduce(self, p: Pass) -> _Values:
        """Write a pass over a row, and return its results."""
        if self.plan.by_block:
            return self.reduce_by_block(p)
        size = call("sub", p.stop, p.start) if p.start != _ZERO else p.stop
        parts = self.block(p, p.start, size)
        first = _ZERO if self.plan.width == LANES else self.head
        parts = [self.shuffle_lanes("shuffle_at", x, first) for x in parts]
        return self.gathered(p, [c.start for c in p.carried], parts)

    def gathered(self, p: Pass, accs: Sequence[Expr], parts: Sequence[Expr]) -> _Values:
        """Combine the results of a block with those of the row."""
        known: dict[Var, Expr] = {c.var: x for c, x in zip(p.carried, accs, strict=True)}
        known |= {f.result: x for f, x in zip(p.reductions, parts, strict=True)}
        return [self.let("acc", replaced(c.following, known)) for c in p.carried]

    def reduce_by_block(self, p: Pass) -> _Values:
        """Write a pass of a thread block, and return its results."""
        accs: _Values = [c.start for c in p.carried]
        if self.plan.steps:
            start = self.let("b", add_indices(p.start, call("mul", self.warp, Const(BLOCK, I8))))
            count = self.let("m", _minimum(call("sub", p.stop, start), Const(BLOCK, I8)))
            parts = self.block(p, start, count)
            self.leave(p, self.warp, parts)
            return self.joined(p, Const(self.plan.threads // LANES, I8), accs)
        c, b = self.new("c"), self.new("b")
        vars_ = [self.new("acc", number_type(x)) for x in accs]
        body: list[Stmt] = []
        with self.into(body):
            end = self.let("end", _minimum(affine((c, 1), constant=PARTS * BLOCK), p.stop))
            inner: list[Stmt] = []
            with self.into(inner):
                count = self.let("m", _minimum(call("sub", end, b), Const(BLOCK, I8)))
                parts = self.block(p, b, count)
                self.leave(p, call("shr", call("sub", b, c), Const(10, I8)), parts)
            start = self.let("start", affine((c, 1), (self.warp, BLOCK)))
            step = self.plan.threads * (BLOCK // LANES)
            self.out.append(For(b, start, end, step, tuple(inner)))
            rest = call("add", call("sub", end, c), Const(BLOCK - 1, I8))
            now = self.joined(p, call("shr", rest, Const(10, I8)), vars_)
        results = [self.new("acc", v.dtype) for v in vars_]
        carried = [Carried(*x) for x in zip(vars_, accs, now, results, strict=True)]
        self.out.append(For(c, p.start, p.stop, PARTS * BLOCK, tuple(body), carried=tuple(carried)))
        return [*results]

    def leave(self, p: Pass, place: Expr, parts: Sequence[Expr]) -> None:
        """Store the results of a block of elements where the other warps load them."""
        stores = [Store(self.parts[f.result], place, x)
                  for f, x in zip(p.reductions, parts, strict=True)]  # fmt: skip
        if stores:
            self.out.append(If(call("eq", self.lane, _ZERO), tuple(stores)))

    def joined(self, p: Pass, count: Expr, accs: Sequence[Expr]) -> _Values:
        """Combine the results that all warps have stored."""
        if not p.reductions:
            return []
        self.wait()
        k = self.new("k")
        vars_ = [self.new("acc", number_type(x)) for x in accs]
        body: list[Stmt] = []
        with self.into(body):
            now = self.gathered(p, vars_, [Load(self.parts[f.result], k) for f in p.reductions])
        results = [self.new("acc", v.dtype) for v in vars_]
        carried = [Carried(*x) for x in zip(vars_, accs, now, results, strict=True)]
        self.out.append(For(k, _ZERO, count, 1, tuple(body), carried=tuple(carried)))
        self.wait()
        return [*results]

    # --- blocks of 1024 elements ---

    def block(self, p: Pass, start: Expr, count: Expr) -> _Values:
        """Write the reduction of some elements, from an index on, by a warp. Return the results,
        which are those of its first lane."""
        if not (p.steps or p.reductions):
            return []
        lanes: _Values = [
            initial_value(f.combine, number_type(f.value))
            for f in p.reductions
            for _ in range(COMBINES[f.combine].lanes // LANES)
        ]
        j: Expr = self.lane
        if self.plan.width < LANES:
            j = self.let("j", call("and", self.lane, Const(self.plan.width - 1, I8)))
        steps, rest = self.plan.steps, self.plan.rest
        if steps and rest is None:
            lanes = self.side_by_side(p, (start, count, j), lanes, steps, self.plan.clear)
        elif rest is not None:
            lanes = self.reduce_whole_or_partial_block(p, (start, count, j), lanes, rest)
        else:
            lanes = self.loop(p, (start, count, j), lanes)
        results: _Values = []
        for f in p.reductions:
            many = COMBINES[f.combine].lanes // LANES
            mine, lanes = lanes[:many], lanes[many:]
            x = mine[0] if many == 1 else self.let("u", combine_lanes(f.combine, *mine))
            by = self.plan.width // 2
            while by:
                other = self.shuffle_lanes("shuffle_down", x, Const(by, I8))
                x = self.let("u", combine_lanes(f.combine, x, other))
                by //= 2
            results.append(self.recompute_product(p, f, x, (start, count)))
        return results

    def reduce_whole_or_partial_block(
        self, p: Pass, where: tuple[Expr, Expr, Expr], lanes: _Values, rest: tuple[int, int]
    ) -> _Values:
        """Write the reduction of a block of 1024 elements, or of the last block of a row with other
        steps. Return the lanes."""
        whole, short = BLOCK // LANES, rest[0]
        sides: list[tuple[list[Stmt], _Values]] = []
        before = {key: dict(old) for key, old in self.registers.items()}
        after: list[dict[object, dict[int, Expr]]] = []
        loops = self.plan.steps == 0
        for steps, clear in ((whole, whole), rest):
            body: list[Stmt] = []
            self.registers = {key: dict(old) for key, old in before.items()}
            with self.into(body):
                if loops and (steps, clear) == rest:
                    values = self.loop(p, where, lanes)
                else:
                    values = self.side_by_side(p, where, lanes, steps, clear)
            sides.append((body, values))
            after.append(self.registers)
        # What is kept in registers, too; the last block has fewer steps.
        keys = [
            (key, k) for key in self.lifetimes for k in range(whole)
            if after[0][key].get(k) != before[key].get(k)
        ]  # fmt: skip
        then, orelse = sides
        registers = [after[0][key][k] for key, k in keys]
        others = [
            after[1][key][k] if k < short else initial_value("sum", self.lifetimes[key].dtype)
            for key, k in keys
        ]
        test = call("eq", where[1], Const(BLOCK, I8))
        results = self.choose(
            test, then[0], [*then[1], *registers], orelse[0], [*orelse[1], *others]
        )
        self.registers = {key: dict(old) for key, old in before.items()}
        for (key, k), value in zip(keys, results[len(lanes) :], strict=True):
            self.registers[key][k] = value
        return results[: len(lanes)]

    def loop(self, p: Pass, where: tuple[Expr, Expr, Expr], lanes: _Values) -> _Values:
        """Write a loop over a block, some elements at a time."""
        start, count, first = where
        side = self.plan.side
        whole = self.let("whole", call("and", count, Const(-LANES * side, I8)))
        j = self.new("j")
        vars_ = [self.new("u", number_type(x)) for x in lanes]
        body: list[Stmt] = []
        with self.into(body):
            now = self.side_by_side(p, (start, count, j), [*vars_], side, side)
        results = [self.new("u", v.dtype) for v in vars_]
        carried = [Carried(*x) for x in zip(vars_, lanes, now, results, strict=True)]
        self.out.append(For(j, first, whole, LANES * side, tuple(body), carried=tuple(carried)))
        rest: list[Stmt] = []
        with self.into(rest):
            after = self.let("j", call("add", whole, first))
            values = self.side_by_side(p, (start, count, after), [*results], side, 0)
        return self.choose(call("lt", whole, count), rest, values, [], [*results])

    def side_by_side(
        self, p: Pass, where: tuple[Expr, Expr, Expr], lanes: _Values, side: int, clear: int
    ) -> _Values:
        """Write the reduction of elements that are 32 apart. From number `clear` on, they may be
        beyond the end: then the last element is loaded again, and is not combined."""
        start, count, j = where
        places: dict[int, tuple[Var, Var | None]] = {}
        for k in range(side):
            at = call("add", j, Const(LANES * k, I8)) if k else j
            place = add_indices(start, at)
            inside = None
            if k >= clear:
                inside = self.let("ok", call("lt", at, count))
                if self.live is not None:
                    inside = self.let("ok", call("and", inside, self.live))
                end = call("sub", add_indices(start, count), _ONE)
                place = call("select", inside, place, end)
            places[k] = self.let("q", place), inside
        few = self.count_early_loads(p, side)
        for first in range(0, side, few):
            lanes = self.elements(p, places, range(first, min(side, first + few)), lanes)
        return lanes

    def count_early_loads(self, p: Pass, side: int) -> int:
        """Return how many elements of a row in registers are loaded before the first is used: all,
        if their operands and the kept values of other elements fit into a thread's registers."""
        if not self.plan.steps or not self.plan.length:
            return side
        here = {p.key(s.value.buffer, s.value.index): number_type(s.value)
                for s in p.loads if isinstance(s.value, Load)}  # fmt: skip
        types = [t for key, t in here.items() if key not in self.lifetimes]
        types += [value.dtype for value in self.lifetimes.values()]
        words = sum([-(-t.size // 4) for t in types])
        threads = -(-self.plan.threads // 128) * 128  # the unit of register allocation
        return side if words * side <= min(255, REGISTERS // threads) else FEW

    def elements(
        self,
        p: Pass,
        places: Mapping[int, tuple[Var, Var | None]],
        some: Sequence[int],
        lanes: _Values,
        threads: int = LANES,
    ) -> _Values:
        """Write the statements of a pass for some elements, with the loads first. Return the lanes
        of the reductions; `threads` threads share the lanes."""
        indices, loads = p.indices, p.loads
        known: dict[int, dict[Var, Expr]] = {k: {ELEMENT: places[k][0]} for k in some}
        for k in some:
            self.out += self.names.copy(indices, known[k])
        for k in some:
            for s in loads:
                self.load(p, s, k, places[k], known[k])
        for k in some:
            place, inside = places[k]
            for s in p.steps:
                if isinstance(s, Store):
                    self.store(p, s, k, (place, inside), known[k])
                elif s not in indices and s not in loads:
                    self.out += self.names.copy([self.multiply_by_inverse(p, s)], known[k])
        lanes = list(lanes)
        for k in some:
            inside, at = places[k][1], 0
            for f in p.reductions:
                many = COMBINES[f.combine].lanes // threads
                lane = at + k % many
                joined = combine_lanes(f.combine, lanes[lane], replaced(f.value, known[k]))
                if inside is not None:
                    joined = call("select", inside, joined, lanes[lane])
                lanes[lane] = self.let("u", joined)
                at += many
        return lanes

    def load(
        self, p: Pass, s: Let, k: int, where: tuple[Var, Var | None], known: dict[Var, Expr]
    ) -> None:
        """Load an element, from the place where an earlier pass has stored it if there is one."""
        assert isinstance(s.value, Load)
        key = p.key(s.value.buffer, s.value.index)
        lifetime = self.lifetimes.get(key)
        place, inside = where
        if lifetime is None or (self.present == lifetime.first and not lifetime.stored):
            self.out += self.names.copy([s], known)
            if lifetime is not None:
                self.keep(key, k, (place, inside), known[s.var])
        elif self.plan.steps:
            known[s.var] = self.registers[key][k]
        elif key in self.shared_buffers:
            known[s.var] = self.let("w", Load(self.shared_buffers[key], self.shared_index(place)))
        else:
            self.out += self.names.copy([s], known)

    def store(
        self, p: Pass, s: Store, k: int, where: tuple[Var, Var | None], known: dict[Var, Expr]
    ) -> None:
        """Store an element, or keep it for later passes if one of them stores it."""
        key = p.key(s.buffer, s.index)
        lifetime = self.lifetimes.get(key)
        is_cached = lifetime is not None and (bool(self.plan.steps) or key in self.shared_buffers)
        if lifetime is not None and is_cached and self.present < lifetime.last:
            self.keep(key, k, where, replaced(s.value, known))
            return
        stores = self.names.copy([s], known)
        inside = where[1]
        self.out += [If(inside, tuple(stores))] if inside is not None else stores

    def keep(self, key: object, k: int, where: tuple[Var, Var | None], value: Expr) -> None:
        if self.plan.steps:
            self.registers[key][k] = value
        elif key in self.shared_buffers:
            place, inside = where
            one = Store(self.shared_buffers[key], self.shared_index(place), value)
            self.out.append(one if inside is None else If(inside, (one,)))

    def shared_index(self, place: Var) -> Expr:
        """Return the index of an element in shared memory."""
        if self.plan.by_block or self.rows == 1:
            return place
        return Index(((self.warp, self.plan.length), (place, 1)))

    # --- quotients ---

    def invert(self, p: Pass) -> None:
        """Write the inverses of the numbers by which a pass divides its elements."""
        for s in p.steps:
            divisor = self.divisor(p, s)
            # If there are few elements, they are divided by the divisor itself.
            worth = divisor not in self.inverses and not 0 < self.plan.steps < 4
            if divisor is not None and worth:
                self.inverses[divisor] = self.let("scale", Call("inverse", (divisor,), F8))

    def divisor(self, p: Pass, s: Let | Store) -> Var | None:
        """Return the number by which a statement divides an element, if it is the same for the
        whole row."""
        x = s.value
        if not isinstance(s, Let) or not isinstance(x, Call) or x.function != "div":
            return None
        assigned = p.assigned
        above, below = x.args
        moves = isinstance(above, Var) and above in assigned
        if s.var.dtype != F4 or not moves or not isinstance(below, Var) or below in assigned:
            return None
        return below

    def multiply_by_inverse(self, p: Pass, s: Let) -> Let:
        divisor = self.divisor(p, s)
        if divisor is None or divisor not in self.inverses:
            return s
        assert isinstance(s.value, Call)
        return s._replace(value=Call("divided", (s.value.args[0], self.inverses[divisor]), F4))

    # --- products ---

    def recompute_product(self, p: Pass, f: Reduction, x: Expr, where: tuple[Expr, Expr]) -> Expr:
        """Compute the product of a block again, with separate exponents, if it is not a normal
        number."""
        of = number_type(x)
        if f.combine != "prod" or of.kind not in ("float", "complex"):
            return x
        width = self.plan.width
        first = _ZERO if width == LANES else self.head
        not_normal = self.let(
            "not_normal", Call("not_normal", (self.shuffle_lanes("shuffle_at", x, first),), B1)
        )
        # All lanes of a warp shuffle, or none.
        test = not_normal if width == LANES else self.do("some", B1, "any_lane", not_normal)
        body: list[Stmt] = []
        with self.into(body):
            product = self.multiply_with_exponents(p, f, x, where, not_normal)
        (result,) = self.choose(test, body, [product], [], [x])
        return result

    def multiply_with_exponents(
        self, p: Pass, f: Reduction, x: Expr, where: tuple[Expr, Expr], not_normal: Var
    ) -> Expr:
        """Return the product, computed with separate exponents. It is rarely needed."""
        of, width, real = number_type(x), self.plan.width, number_type(x).kind == "float"
        start, count = where
        one = initial_value("prod", of)
        starts: list[Expr] = [one, _ZERO]
        starts += [Const(False, B1), Const(True, B1)] if real else []
        names = ("m", "e", "zero", "small")
        vars_ = [self.new(n, number_type(v)) for n, v in zip(names, starts, strict=False)]
        j = self.new("j")
        body: list[Stmt] = []
        with self.into(body):
            q = self.let("q", add_indices(start, j))
            known: dict[Var, Expr] = {**self.others, ELEMENT: q}
            for s in p.steps:
                if isinstance(s, Store):
                    continue
                key = None
                if isinstance(s.value, Load):
                    key = p.key(s.value.buffer, s.value.index)
                lifetime = None if key is None else self.lifetimes.get(key)
                shared = self.shared_buffers.get(key)
                if lifetime is not None and shared is not None and (lifetime.first < self.present):
                    known[s.var] = self.let("w", Load(shared, self.shared_index(q)))
                else:
                    self.out += self.names.copy([s], known)
            value = self.let("w", replaced(f.value, known))
            now: _Values = []
            m, e = vars_[:2]
            mantissa = Call("mantissa", (value,), of)
            m1 = self.let("m", combine_lanes("prod", m, mantissa))
            powers = [Call("exponent", (v,), I8) for v in (value, m1)]
            now = [
                self.let("m", Call("mantissa", (m1,), of)),
                self.let("e", call("add", call("add", e, powers[0]), powers[1])),
            ]
            if real:
                zero, small = vars_[2:]
                below = call("le", call("mul", value, value), Const(1.0, of))
                is_zero = call("eq", value, Const(0.0, of))
                now.append(self.let("zero", call("or", zero, is_zero)))
                now.append(self.let("small", call("and", small, below)))
        results = [self.new(n, v.dtype) for n, v in zip(names, vars_, strict=False)]
        carried = [Carried(*c) for c in zip(vars_, starts, now, results, strict=True)]
        first = self.let("j", call("and", self.lane, Const(width - 1, I8)))
        self.out.append(For(j, first, count, width, tuple(body), carried=tuple(carried)))
        values: _Values = [*results]
        by = width // 2
        functions: list[Callable[[Expr, Expr], Expr]] = [
            partial(combine_lanes, "prod"),
            *[partial(call, n) for n in ("add", "or", "and")],
        ]
        while by:
            others = [self.shuffle_lanes("shuffle_down", v, Const(by, I8)) for v in values]
            values = [
                self.let("v", join(v, other))
                for join, v, other in zip(functions, values, others, strict=False)
            ]
            by //= 2
        product: Expr = Call("ldexp", (values[0], values[1]), of)
        # A product of 0 is right if an element is 0, or if none is larger than 1 in magnitude:
        # partial products then never grow, in any order.
        if real:
            is_known = call("and", call("eq", x, Const(0.0, of)), call("or", *values[2:]))
            product = call("select", is_known, x, product)
        if width < LANES:
            product = (
                call("select", not_normal, product, x)
                if of.kind != "complex"
                else Call("select", (not_normal, product, x), of)
            )
        return self.let("u", product)


def add_indices(x: Expr, y: Expr) -> Expr:
    """Return the sum of two indices."""
    if x == _ZERO:
        return y
    if isinstance(x, Var | Index) and isinstance(y, Var | Index):
        return plus(x, y)
    return call("add", x, y)


def _minimum(x: Expr, y: Expr) -> Expr:
    return call("fmin", x, y)
