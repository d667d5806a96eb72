"""Folds along rows on GPUs, and what is done with their results: sums, softmax, layer norm.

In: the emitter of a kernel of the form row or split. Out: lines in its writer.

A warp folds a block of 1024 elements: its lanes are the lanes of the processor's `block_*`, which
are folded by halves; the results of the blocks of a row are joined one after the other. So every
sum has the same order there and here, and the same bits. Rows of one block have a warp each;
longer ones a block of threads, whose warps take a block of elements each, and leave the results
in shared memory. Rows of one block, and of a block for each warp, stay in registers between passes,
and the text has a step for each 32 elements: all loads are under way before the first is used.
Where that is too much text, and in other rows, an operand that several passes want stays in shared
memory, each element with the thread that reads it again, so that no thread waits for another.

A block of threads has few rows, and there are as many blocks as that makes: they end at different
times, and the device is busy to the end.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np

from accnp.compiler.specs.accumulators import accumulator, lanes
from accnp.compiler.specs.grid import NARROW, beside
from accnp.compiler.specs.layouts import across
from accnp.compiler.text.folds import combined, guard, identity, joined
from accnp.compiler.text.grid_products import again, rereads, without_stores
from accnp.compiler.text.grid_tiles import turned_row
from accnp.compiler.text.grid_writer import Copy
from accnp.ir.kernel import BLOCK, CHUNK, Access, Fold, Phase, Statement, dtype_code, replace

__all__ = ["grid_row", "grid_split"]

WARPS = 8  # of a block of threads
TEAM = 16  # the same where each has one block of a row in registers, and in folds of chunks
COMPACT = 4  # the same where rows stay in registers
ENOUGH = 2  # waves of blocks beyond which each is given more to do, if they have little
PARTS = 128  # results of blocks that are joined at a time
STEPS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)  # rows of 32 elements of a row in registers
WRITTEN = 1280  # cost of what is written out for such a row
REGISTERS = 65536  # of a multiprocessor: a block's are among them
FEW = 8  # elements that are loaded before they are used where registers are short
ROOM = 40 << 10  # bytes of shared memory that a block of threads may have for what it keeps


def _join(f: Fold, x: str, y: str) -> str:
    """An element, or the other half, joined to a lane as `block_*` does."""
    combine = {"sum": "or", "prod": "and"}.get(f.combine, f.combine)
    return joined(combine if f.dtype.kind == "b" else f.combine, f.dtype, x, y)


def grid_row(e: Any) -> None:
    """Rows one by one: passes over the elements, statements on row values."""
    spec, w = e.spec, e.w
    if len(spec.phases) == 1 and spec.reduced and not spec.phases[0].stores:
        turned = across(spec, e.of_reduced[-1], e.of_outer)
        if turned is not None and prod(e.sizes) < NARROW:
            return turned_row(e, turned)
    e.spec = spec = replace(spec, phases=without_stores(spec.phases))
    rows, length = prod(spec.outer), prod(spec.reduced)
    alone = length <= BLOCK
    e.prologue()
    e.done = set()
    count = e.integer("rows", "rows", rows)
    e.out.extent, e.out.weight = rows, spec.cost * length
    _begin(e)
    if length <= TEAM * BLOCK:
        e.steps = _steps(e, min(length, BLOCK))
    if alone:
        e.width = 32 if not e.steps or length > 16 else 8 if length <= 8 else 16
        e.clear = _clear(length) if e.steps else 0
        wish = COMPACT if e.steps else WARPS
        per = _keep(e, min(BLOCK, 1 << max(7, (length - 1).bit_length())), wish)
        e.out.threads = 32 * per
        blocks, several = -(-rows // (per * 32 // e.width)), 32 // e.width
        # Each warp does a block of elements at least, if there is work for all.
        rounds = max(1, BLOCK // max(1, length * several))
        e.out.blocks = max(min(blocks, ENOUGH * e.wave), -(-blocks // rounds))
        e.out.once = rounds == 1 and 0 < rows < NARROW
        first, step = "thread() >> 5", "(threads() >> 5)"
    else:
        e.clear, rest = e.steps, length % BLOCK
        e.rest = (_steps(e, rest), _clear(rest)) if e.steps and rest else ()
        _keep(e, 1 << (length - 1).bit_length(), 1)
        most = TEAM if e.steps else WARPS
        e.out.threads, e.out.blocks = 32 * min(most, -(-length // BLOCK)), rows
        e.out.once = 0 < rows < NARROW
        first, step = "block_of_grid()", "blocks()"
        _parts(e)
    several = 32 // e.width
    if several == 1:
        w.add(f"o = {first}")
        head, last = f"while o < {count}:", f"o = o + {step}"
        if e.out.once:  # without a loop compilers know that the threads of a warp are together
            head = f"if o < {count}:"
    else:
        w.add(f"u = ({first}) * {several}", f"head = lane() & {-e.width}")
        head, last = f"while u < {count}:", f"u = u + {step} * {several}"
    with w.block(head):
        if several > 1:
            w.add(f"o = u + (lane() >> {e.width.bit_length() - 1})", f"live = o < {count}")
            w.add(f"o = o if live else {count} - 1")
        index: dict[int, str] = {}
        e.begin_outer("o", index)
        base = e.bases(index, e.all_accesses(), "p")
        for s in spec.row_head:
            e.statement(s, base, {})
        for p, phase in enumerate(spec.phases):
            e.present = p
            _pass(e, phase, base, alone)
        if not e.out.once:
            w.add(last)


def _pass(e: Any, phase: Phase, base: dict[int, str], alone: bool) -> None:
    """One pass over the row, and the statements on row values that follow."""
    w = e.w
    accs = [accumulator(f.dtype, f.combine) for f in phase.folds]
    for f, acc in zip(phase.folds, accs, strict=True):
        w.add(f"{f.name}_acc = {dtype_code(acc)}({identity(acc, f.combine)})")
    if not e.spec.reduced:
        e.body(phase, base, {})
        for f, acc in zip(phase.folds, accs, strict=True):
            w.add(f"{f.name}_acc = {dtype_code(acc)}({f.source})")
    else:
        _inverses(e, phase)
        # Rows that share a warp go on together.
        test = guard(e, phase, base) if e.width == 32 else None
        with nullcontext() if test is None else w.block(f"if {test}:"):
            if alone:
                _block(e, phase, base, "0", e.total())
                for f, acc in zip(phase.folds, accs, strict=True):
                    first = "0" if e.width == 32 else "head"
                    w.add(f"{f.name}_u = shuffle_at({f.name}_u, {first})")
                    _gather(e, f, acc, f"{f.name}_u")
            else:
                _team(e, phase, base, "0", e.total())
    for f in phase.folds:
        cast = dtype_code(f.dtype) if accumulator(f.dtype, f.combine) != f.dtype else ""
        w.add(f"{f.name} = {cast}({f.name}_acc)")
        e.dtypes[f.name] = f.dtype
    for s in phase.row:
        e.statement(s, base, {})
    if phase.row_stores:
        test = "lane() == 0" if alone else "thread_of_block() == 0"
        with w.block(f"if {test if e.width == 32 else 'live & (lane() == head)'}:"):
            for a, name in phase.row_stores:
                w.add(f"a{a.number}[{e.place(a, base, {})}] = {name}")


def _begin(e: Any) -> None:
    e.kept, e.shelf, e.present, e.registers, e.stays = {}, "", 0, False, []
    e.steps, e.width = 0, 32
    e.clear = 0  # steps of a row in registers that are whole in any case
    e.rest = ()  # and both of its last block of elements, if that is shorter
    e.inverses = {}  # of what elements of a row are divided by


def _steps(e: Any, length: int) -> int:
    """The steps of 32 elements that are written out for whole rows; 0 if they are too many, or if
    what is in registers may be wanted by a loop."""
    if rereads(e.spec.phases):
        return 0
    steps = next(n for n in STEPS if length <= 32 * n)
    count = sum(len(p.full) + len(p.folds) + len(p.stores) for p in e.spec.phases)
    return steps if length and steps * max(e.spec.cost, count) <= WRITTEN else 0


def _clear(length: int) -> int:
    """How many of these are whole in any row of this many steps."""
    return max((n for n in STEPS if 32 * n <= length), default=0)


def grid_split(e: Any) -> None:
    """Each block of threads folds one chunk of one row; one chunk in all goes to the output."""
    e.spec = spec = replace(e.spec, phases=without_stores(e.spec.phases))
    w = e.w
    _begin(e)
    e.prologue()
    total = prod(spec.reduced)
    chunks = max(1, -(-total // CHUNK))
    e.out.extent = prod(spec.outer) * chunks
    e.out.weight = spec.cost * min(total, CHUNK)
    e.out.threads, e.out.blocks = 32 * min(TEAM, -(-total // BLOCK)), e.out.extent
    if chunks == 1 and total % BLOCK == 0 and total <= TEAM * BLOCK:
        e.steps = e.clear = _steps(e, BLOCK)
    count = e.integer("chunks", "chunks", chunks)
    every = e.integer("extent", "extent", e.out.extent)
    phase = spec.phases[0]
    results = {name: a for a, name in spec.phases[-1].row_stores}
    _parts(e)
    w.add("u = block_of_grid()")
    with w.block(f"while u < {every}:"):
        if spec.outer:
            w.add(f"o = u // {count}", f"start = (u - o * {count}) * {CHUNK}")
        else:
            w.add(f"start = u * {CHUNK}")
        index: dict[int, str] = {}
        e.begin_outer("o", index)
        base = e.bases(index, e.all_accesses(), "p")
        for s in spec.row_head:
            e.statement(s, base, {})
        w.add(f"stop = start + {CHUNK}", f"stop = stop if stop < {e.total()} else {e.total()}")
        for f in phase.folds:
            acc = accumulator(f.dtype, f.combine)
            w.add(f"{f.name}_acc = {dtype_code(acc)}({identity(acc, f.combine)})")
        for p in spec.phases:
            _inverses(e, p)
            test = guard(e, p, base)
            with nullcontext() if test is None else w.block(f"if {test}:"):
                _team(e, p, base, "start", "stop")
        with w.block("if thread_of_block() == 0:"):
            with w.block(f"if {count} == 1:"):
                for f in phase.folds:
                    a = results[f.name]
                    value = f"{dtype_code(f.dtype)}({f.name}_acc)"
                    w.add(f"a{a.number}[{e.place(a, base, {})}] = {value}")
            with w.block("else:"):
                for k, f in enumerate(phase.folds):
                    e.out.pointers.append((f"part{k}", k, accumulator(f.dtype, f.combine)))
                    e.out.partials.append((f, results[f.name], chunks))
                    w.add(f"part{k}[u] = {f.name}_acc")
        w.add("u = u + blocks()")
    e.arguments += [p[0] for p in e.out.pointers if isinstance(p, tuple)]


def _gather(e: Any, f: Fold, acc: Any, part: str) -> None:
    """Join the result of a block to that of the row."""
    wide = f"{dtype_code(acc)}({part})" if acc != f.dtype else part
    e.w.add(f"{f.name}_acc = {combined(f.combine, acc, f'{f.name}_acc', wide)}")


def _parts(e: Any) -> None:
    for f in (f for phase in e.spec.phases for f in phase.folds):
        e.w.add(f"{f.name}_parts = shared_{dtype_code(f.dtype)}({PARTS})")


def _team(e: Any, phase: Phase, base: dict[int, str], start: str, stop: str) -> None:
    """A pass of a block of threads over the elements from start to stop."""
    w = e.w
    if e.steps:
        w.add(f"b = warp() * {BLOCK}", f"m = {stop} - b", f"m = m if m < {BLOCK} else {BLOCK}")
        _block(e, phase, base, "b", "m")
        _left(e, phase, "warp()")
        return _joined(e, phase, "threads_of_block() >> 5")
    w.add(f"c = {start}")
    with w.block(f"while c < {stop}:"):
        w.add(f"end = c + {PARTS * BLOCK}", f"end = end if end < {stop} else {stop}")
        w.add(f"b = c + warp() * {BLOCK}")
        with w.block("while b < end:"):
            w.add("m = end - b", f"m = m if m < {BLOCK} else {BLOCK}")
            _block(e, phase, base, "b", "m")
            _left(e, phase, "(b - c) >> 10")
            w.add(f"b = b + threads_of_block() * {BLOCK // 32}")
        _joined(e, phase, f"(end - c + {BLOCK - 1}) >> 10")
        w.add("c = end")


def _left(e: Any, phase: Phase, place: str) -> None:
    """Leave the results of a block where the other warps find them."""
    if phase.folds:
        with e.w.block("if lane() == 0:"):
            e.w.add(*[f"{f.name}_parts[{place}] = {f.name}_u" for f in phase.folds])


def _joined(e: Any, phase: Phase, count: str) -> None:
    """Join what all warps have left."""
    if phase.folds:
        e.w.add("barrier()", "k = 0", f"parts = {count}")
        with e.w.block("while k < parts:"):
            for f in phase.folds:
                _gather(e, f, accumulator(f.dtype, f.combine), f"{f.name}_parts[k]")
            e.w.add("k = k + 1")
        e.w.add("barrier()")


def _block(e: Any, phase: Phase, base: dict[int, str], start: str, count: str) -> None:
    """A warp goes over `count` (1024 at most) elements from a place; folds are left in lane 0."""
    w = e.w
    if not (phase.full or phase.folds or phase.stores):
        return
    for f in phase.folds:
        first = f"{dtype_code(f.dtype)}({identity(f.dtype, f.combine)})"
        w.add(*[f"{f.name}_{x} = {first}" for x in ("uv" if lanes(f.combine) == 64 else "u")])
    begin = "" if start == "0" else f"{start} + "
    w.add("j = lane()" if e.width == 32 else f"j = lane() & {e.width - 1}")
    if e.steps and not e.rest:
        _side_by_side(e, phase, base, begin, count, e.steps, e.clear)
    elif e.rest or (e.spec.form == "split" and _steps(e, BLOCK)):
        with w.block(f"if m == {BLOCK}:"):
            _side_by_side(e, phase, base, begin, count, BLOCK // 32, BLOCK // 32)
        with w.block("else:"):
            if e.rest:
                _side_by_side(e, phase, base, begin, count, *e.rest)
            else:
                _loop(e, phase, base, begin, count)
    else:
        _loop(e, phase, base, begin, count)
    stored = {i: f"{x}[{e.shelf}" for i, x in e.kept.items() if not e.registers}
    for f in phase.folds:
        u, d = f"{f.name}_u", e.width // 2
        if lanes(f.combine) == 64:
            w.add(f"{u} = {_join(f, u, f'{f.name}_v')}")
        while d:
            w.add(f"{u} = {_join(f, u, f'shuffle_down({u}, {d})')}")
            d //= 2
        again(e, phase, f, base, (f"{begin}j", count), stored, e.width)


def _loop(e: Any, phase: Phase, base: dict[int, str], begin: str, count: str) -> None:
    """Go over a block some elements at a time."""
    w, side = e.w, beside("row", e.spec.cost)
    w.add(f"whole = {count} & {-32 * side}")
    with w.block("while j < whole:"):
        _side_by_side(e, phase, base, begin, count, side, side)
        w.add(f"j = j + {32 * side}")
    with w.block(f"if whole < {count}:"):
        _side_by_side(e, phase, base, begin, count, side, 0)


def _side_by_side(
    e: Any, phase: Phase, base: dict[int, str], begin: str, count: str, side: int, clear: int
) -> None:
    """Some elements from j on, 32 from each other. From the one of number `clear` on, they may be
    beyond the end: that is the last element again, and is not joined."""
    for k in range(side):
        place = f"{begin}j + {32 * k}" if k else f"{begin}j"
        if k >= clear:
            e.w.add(f"ok{k} = (j + {32 * k} < {count}){' & live' if e.width < 32 else ''}")
            place = f"({place}) if ok{k} else ({begin}{count} - 1)"
        e.w.add(f"q{k} = {place}")
    few = _few(e, phase, side)
    for first in range(0, side, few):
        _elements(e, phase, base, range(first, min(side, first + few)), clear)


def _few(e: Any, phase: Phase, side: int) -> int:
    """How many elements of a row in registers are loaded before the first is used: all, if their
    operands, and what is kept of others, fit into the registers that a thread has."""
    if not e.registers:
        return side
    loaded = {id(s.access): s.access for s in phase.full if s.access is not None and not s.args}
    here = [a for i, a in loaded.items() if i not in e.kept]
    words = sum(-(-a.dtype.itemsize // 4) for a in (*here, *e.stays))
    threads = -(-e.out.threads // 128) * 128  # by which registers are given
    return side if words * side <= min(255, REGISTERS // threads) else FEW


def _elements(e: Any, phase: Phase, base: dict[int, str], side: range, clear: int) -> None:
    """The statements of a pass for elements q0, q1..., and their folds; loads come first."""
    w = e.w
    names = {s.name for s in phase.full} | {f.source for f in phase.folds}
    dims = list(e.of_reduced)
    where: list[dict[int, str]] = []
    for k in side:
        index: dict[int, str] = {}
        if len(dims) == 1:
            index[dims[0]] = f"q{k}"
        else:
            e.decompose(f"q{k}", dims, index, f"d{k}_")
        where.append(index)
    early = [s for s in phase.full if s.access is not None and not s.args]
    outside = {f.source for f in phase.folds} - {s.name for s in phase.full}
    for k, index in zip(side, where, strict=True):
        w.add(*[f"{x}_{k} = {x}" for x in sorted(outside)])
        for s in early:
            _load(e, Copy(e, k, names), s, base, index, k >= clear)
    for k, index in zip(side, where, strict=True):
        copy = Copy(e, k, names)
        for s in phase.full:
            if _divides(phase, s) and s.args[1] in e.inverses:
                code = f"divided({copy.name(s.args[0])}, {e.inverses[s.args[1]]})"
                w.add(f"{copy.name(s.name)} = {code}")
                e.dtypes[copy.name(s.name)] = s.dtype
            elif s not in early:
                copy.statement(s, base, index)
        for a, name in phase.stores:
            if id(a) in e.kept and e.present < e.last[id(a)]:
                _put(e, a, k, copy.name(name), k >= clear)
            else:
                with w.block(f"if ok{k}:") if k >= clear else nullcontext():
                    w.add(f"a{a.number}[{e.place(a, base, index)}] = {copy.name(name)}")
    for k in side:
        for f in phase.folds:
            lane = f"{f.name}_{'v' if k % 2 and lanes(f.combine) == 64 else 'u'}"
            text = f"{lane} = {_join(f, lane, f'{f.source}_{k}')}"
            w.add(f"{text} if ok{k} else {lane}" if k >= clear else text)


def _inverses(e: Any, phase: Phase) -> None:
    """Make the inverses of what a pass divides its elements by."""
    for x in dict.fromkeys(s.args[1] for s in phase.full if _divides(phase, s)):
        if x not in e.inverses and not 0 < e.steps < 4:
            e.inverses[x] = f"{x}_inverse"
            e.w.add(f"{x}_inverse = inverse({x})")


def _divides(phase: Phase, s: Statement) -> bool:
    """Whether a statement divides an element by what all elements of a row are divided by."""
    if s.text != "{0} / {1}" or s.dtype != np.float32:
        return False
    moving = {x.name for x in phase.full}
    return s.args[0] in moving and s.args[1] not in moving


def _load(
    e: Any, copy: Copy, s: Statement, base: dict[int, str], index: dict[int, str], masked: bool
) -> None:
    """An element of an operand, from where an earlier pass has left it."""
    a, k = s.access, copy.k
    assert a is not None
    kept = e.kept.get(id(a))
    if kept is None or (e.present == e.first[id(a)] and not a.store):
        copy.statement(s, base, index)
        if kept is not None:
            _put(e, a, k, copy.name(s.name), masked)
    else:
        place = f"{kept}_{k}" if e.registers else f"{kept}[{e.shelf}q{k}]"
        e.w.add(f"{copy.name(s.name)} = {place}")
        e.dtypes[copy.name(s.name)] = s.dtype


def _put(e: Any, a: Access, k: int | str, value: str, masked: bool) -> None:
    """Keep an element for later passes."""
    kept = e.kept[id(a)]
    if e.registers:
        e.w.add(f"{kept}_{k} = {value}")
        return
    with e.w.block(f"if ok{k}:") if masked else nullcontext():
        e.w.add(f"{kept}[{e.shelf}q{k}] = {value}")


def _keep(e: Any, length: int, rows: int) -> int:
    """Choose operands that stay in shared memory between passes, `length` elements for each of so
    many rows; give the rows for which there is room."""
    spec = e.spec
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    found: dict[int, Access] = {}
    for p, phase in enumerate(spec.phases):
        stored = [a for a, _ in phase.stores]
        loaded = [s.access for s in phase.full if s.access is not None and not s.args]
        for a in (*loaded, *stored):
            moves = any(a.strides[d] for d in e.of_reduced)
            if id(a) in first and first[id(a)] < p and moves and (a.store or a not in stored):
                found[id(a)] = a
            first.setdefault(id(a), p)
            last[id(a)] = p
    e.first, e.last = first, last
    if e.steps:
        e.registers, e.stays = True, [*found.values()]
        e.kept = {i: f"kept{a.number}" for i, a in found.items()}
        return rows
    shelves: list[list[Access]] = []  # operands of one shelf follow each other in time
    for a in sorted(found.values(), key=lambda a: first[id(a)]):
        for shelf in shelves:
            before = shelf[-1]
            if before.dtype == a.dtype and last[id(before)] <= first[id(a)] and a.store:
                shelf.append(a)
                break
        else:
            if length * sum(s[0].dtype.itemsize for s in (*shelves, [a])) <= ROOM:
                shelves.append([a])
    size = length * sum(s[0].dtype.itemsize for s in shelves)
    while rows > 1 and rows * size > ROOM:
        rows //= 2
    for k, shelf in enumerate(shelves):
        e.kept.update({id(a): f"kept{k}" for a in shelf})
        e.w.add(f"kept{k} = shared_{dtype_code(shelf[0].dtype)}({length * rows})")
    if shelves and rows > 1:
        e.w.add(f"shelf = warp() * {length}")
        e.shelf = "shelf + "
    return rows
