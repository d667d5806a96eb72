"""Several kernels in one launch: each goes over its part of a common range of tasks.

In: kernels that write different elements (the cells of an index space that is cut). Out: a
`Generated` whose text holds theirs, each text once, and calls them. Those of one group go over the
same rows: a task is some rows, done by one after the other while they are in the cache.

    def kernel(lo, hi, a0, a1, n0, n1, ...):
        for t in range(lo, hi):
            if t < n0:                                # tasks of the first group
                b = t * n1                            # n1 rows a task, n2 in all
                e = b + n1
                e = e if e < n2 else n2
                k3f2a1c(b, e, at(a0, n3), a1, n4, n5)
            if t >= n0:
                ...

Or a chain: two maps over the same first axis, of which the second reads what the first makes, at
some rows before and behind (a stencil of a stencil, a blur along one axis, then along the other).
A band of rows of the one is followed by that of the other, while it is in the second cache; what is
between them is never a whole array. Where the index space of one of them is cut, each part of its
rows has kernels of its own, called for what a band has of these rows.

    def kernel(lo, hi, a0, a1, a2, n0, ...):
        for t in range(lo, hi):
            b = t * n0                                  # the rows of a task
            end = b + n0 ...
            first = b + n1                              # the first row wanted of what is between
            kA(first .., (first + n2) .., a1, at(a2, ..))   # rows that the next band wants, too
            while b < end:
                e = b + n3 ...
                first = b + n1
                kA((first + n2) .., (e + n1 + n2) .., a1, at(a2, ..))
                kB(b .., e .., a0, at(a2, ..))
                move(at(a2, ..), at(a2, ..), ..)
                b = e
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from math import prod
from typing import Any

from accnp.codegen.cpu import generate
from accnp.codegen.generated import Generated, Room
from accnp.codegen.writer import Writer
from accnp.ir.kernel import Access, KernelSpec, dtype_code

__all__ = ["generate_cells", "generate_chain", "named", "with_sizes"]

EDGE = 8  # how many times the elements of an edge another cell has
TASK = 1 << 16  # work of one task, in simple element operations


def named(text: Generated) -> tuple[str, str]:
    """The name of a kernel among others in one text, by its content, and its source under it."""
    mark = zlib.crc32("\n".join([text.source, *text.signature]).encode())
    own = text.source[text.source.rindex("def kernel(") :]
    return f"k{mark:08x}", own.replace("def kernel(", f"def k{mark:08x}(", 1)


TINY = 32  # steps and elements up to which a kernel is written for its sizes inside a loop


# Runs along the last of several axes: over the extent of a kernel, and over a block that is folded.
_RUNS = re.compile(
    r"( +)run = (\w+) - (o\d+)\n +run = run if run < hi - u else hi - u\n"
    r"( +for o in range)\(\3, \3 \+ run\)"
)
_FOLDED = re.compile(
    r"( +)run = (\w+) - (d\d+)\n +run = run if run < m - k else m - k\n( +for j in range)\(run\)"
)
# Loops over blocks of what is folded: a tiny kernel has one block.
_BLOCKS = re.compile(r"( +)for (b|rb) in range\((\w+), \w+, (?:1024|512)\):")


def with_sizes(text: Generated, extent: int) -> Generated:
    """The text of a kernel that does 0..extent; the sizes of a tiny one are written into it, since
    it is what a loop spends its time on (25 pairs of bodies: 116 -> 76 ns).

    One without sizes but the extent, and one that an op brings itself, stays as it is: a new length
    of such a loop compiles nothing.
    """
    if not text.ints or not text.pointers or max(extent, *text.ints) > TINY:
        return text
    text = text.tiny() if text.tiny else text
    head = text.source.rindex("def kernel(")
    start = text.source.index(":\n", head) + 2
    names = text.source[head : start - 3].split(", ")[-len(text.ints) :]
    sizes = {"lo": 0, "hi": extent} | dict(zip(names, text.ints, strict=True))
    sized = copy(text)
    lines = "".join([f"    {name} = {value}\n" for name, value in sizes.items()])
    # The extent is a product of axes, and so is what fits one block (nr: how much is folded): all
    # runs are whole, and LLVM knows how many there are and where each begins.
    body = text.source[start:]
    for runs in (_RUNS, _FOLDED) if "nr" in names else (_RUNS,):
        body = runs.sub(r"\1\3 = 0\n\1run = \2\n\4(\2)", body)
    if all(text.ints):
        body = _BLOCKS.sub(r"\1\2 = \3\n\1if True:", body)
    sized.kernel = None
    sized.source = text.source[:start] + lines + body
    return sized


class Launch:
    """The text of a kernel that calls others: their pointers, sizes and sources."""

    def __init__(self) -> None:
        self.pointers: list[Access] = []
        self.names: dict[int, str] = {}  # of values
        self.ints: list[int] = []
        self.callees: dict[str, tuple[str, tuple[str, ...], str]] = {}
        self.w = Writer()
        self.asks = False  # whether a kernel is told where its results go

    def integer(self, value: int) -> str:
        self.ints.append(value)
        return f"n{len(self.ints) - 1}"

    def pointer(self, a: Access) -> str:
        """The first element of an access; one argument for each array."""
        name = self.names.get(id(a.value))
        if name is None:
            name = self.names[id(a.value)] = f"a{len(self.pointers)}"
            self.pointers.append(Access(a.value, a.dtype, (), 0, a.store, len(self.pointers)))
        return f"at({name}, {self.integer(a.offset)})"

    def call(
        self, text: Generated, lo: str = "b", hi: str = "e", rooms: dict[int, Any] | None = None,
        last: bool = True,
    ) -> str:  # fmt: skip
        """A call for lo..hi; of some values, by their ids, part is in memory of another name.

        A map is told whether its results bypass the caches, which only the `last` ones may.
        """
        name, source = named(text)
        signature, told = text.signature, []
        if text.form == "map":
            name, signature, told = f"{name}p", (*signature, "i8"), ["past" if last else "0"]
            source = source.replace("(", "p(", 1).replace("):", ", past):", 1)
            self.asks |= last
        self.callees.setdefault(name, (name, signature, source))
        pointers = []
        for a in text.pointers:
            assert isinstance(a, Access)
            room = (rooms or {}).get(id(a.value))
            if room is None:
                pointers.append(self.pointer(a))
            else:
                offset = f" + {self.integer(a.offset)}" if a.offset else ""
                pointers.append(f"at({room[0]}, {room[1]}{offset})")
        ints = map(self.integer, text.ints)
        return f"{name}({', '.join([lo, hi, *pointers, *ints, *told])})"

    def finish(self, extent: int, work: int, rooms: Sequence[Room] = ()) -> Generated:
        """The whole; `work` is that of the extent."""
        out = Generated()
        whole = Writer()
        for _, _, source in self.callees.values():
            whole.lines += [*source.rstrip("\n").split("\n"), "", ""]
        names = [f"a{i}" for i in range(len(self.pointers))] + [r.name for r in rooms]
        names += [f"n{i}" for i in range(len(self.ints))]
        with whole.block(f"def kernel({', '.join(['lo', 'hi', *names])}):"):
            whole.add(*["past = asked()"] * self.asks, *self.w.lines)
        out.source = whole.text()
        out.callees = tuple(self.callees.values())
        out.pointers = [*self.pointers, *rooms]
        out.ints = self.ints
        codes = [dtype_code(x.dtype) for x in (*self.pointers, *rooms)]
        out.signature = (*[f"{c}*" for c in codes], *["i8"] * len(self.ints))
        out.extent, out.weight = extent, max(1, work // max(1, extent))
        return out


BAND = 1 << 17  # bytes of a band, a part of the second cache
MOST = 4 * BAND  # that it may have where rows are long
TASKS = 16  # into which the rows are cut; each does the rows before its first one again
FAR = 4  # so many times the rows done again must there be; a roll wants the last with the first
OVERLAP = 8  # a task has at least as many times the rows that it does again, a band that it moves


# The kernels of a run of rows of an index space, one for each cell that these are cut into: the
# first row, how many they are, the kernels.
Part = tuple[int, int, Sequence[KernelSpec]]


class _Maps:
    """The kernels of a part, which go over the rows of any band."""

    def __init__(self, part: Part, every: int) -> None:
        self.first, self.rows, self.specs = part
        self.whole = self.rows == every
        self.texts = [generate(spec) for spec in self.specs]

    def steps(self) -> list[int] | None:
        """How many steps of each kernel are one row; None where steps are not in the order of
        rows."""
        found = []
        for spec, text in zip(self.specs, self.texts):
            extent = prod(spec.outer) if spec.outer else prod(spec.inner)
            if spec.form != "map" or text.tiles or text.extent != extent or extent % self.rows:
                return None
            found.append(extent // self.rows)
        return found

    def places(self, value: Any, width: int) -> list[int] | None:
        """How many rows before (negative) or behind its own a row reads a value whose rows have
        `width` elements, for each load; None where a load is not within one row."""
        found = []
        for spec in self.specs:
            for a in spec.accesses:
                if a.value is not value:
                    continue
                way = self.row(spec, a)
                start = a.offset % width
                if a.store or way is None or (self.rows > 1 and way[0] != width):
                    return None
                if start + way[1] < 0 or start + way[2] >= width:
                    return None
                found.append(a.offset // width - self.first)
        return found

    def row(self, spec: KernelSpec, a: Access) -> tuple[int, int, int] | None:
        """How far one row is from the next for an access, and from where to where in a row it goes,
        from its first element; None if a row is not a part of the first loop."""
        sizes = (*spec.outer, *spec.inner)
        if a.terms:
            return None
        if not sizes:  # one element
            return (0, 0, 0) if not self.whole else None
        if sizes[0] % self.rows:
            return None
        inside = (sizes[0] // self.rows, *sizes[1:])
        reach = [(n - 1) * s for n, s in zip(inside, a.strides, strict=True)]
        return (
            inside[0] * a.strides[0],
            sum([min(0, r) for r in reach]),
            sum([max(0, r) for r in reach]),
        )


def generate_chain(
    made: Sequence[Part], reader: Sequence[Part], between: Any, rows: int
) -> Generated | None:
    """Write the kernel that makes `between` (a value) in bands and reads it; `rows` are those of
    the reader. None if that is not possible, or would do too much again."""
    shape, size = between.aval.shape, between.aval.dtype.itemsize
    width = prod(shape[1:])
    makers = [_Maps(part, shape[0]) for part in made]
    readers = [_Maps(part, rows) for part in reader]
    seen = [maps.places(between, width) for maps in readers]
    if None in seen or any(maps.steps() is None for maps in (*makers, *readers)):
        return None
    starts = [place for places in seen for place in places or ()]
    if not starts:
        return None
    low, again = min(starts), max(starts) - min(starts)
    most = MOST // (width * size) - again
    band = max(BAND // (width * size) - again, min(OVERLAP * again, most), again, 1)
    far = not all([maps.whole for maps in readers]) and FAR * again > rows
    if far or band > most:
        return None
    task = min(rows, max(-(-rows // TASKS), OVERLAP * again, band))
    return _written(makers, readers, between, rows, (low, again, band, task))


def _written(
    makers: Sequence[_Maps], readers: Sequence[_Maps], between: Any, rows: int,
    plan: tuple[int, int, int, int],
) -> Generated:  # fmt: skip
    low, again, band, task = plan
    launch = Launch()
    w, integer = launch.w, launch.integer
    width = prod(between.aval.shape[1:])
    tasks = -(-rows // task)
    row, room = integer(width), integer((band + again) * width)
    begin, more = integer(low), integer(again)
    rooms = {id(between): ("room", f"t * {room} - first * {row}")}

    def times(text: str, steps: int) -> str:
        return text if steps == 1 else f"({text}) * {integer(steps)}"

    def call(parts: Sequence[_Maps], start: str, stop: str) -> None:
        """Those of the rows start..stop that there are."""
        for part in parts:
            lo, hi, test = start, stop, ""
            if not part.whole or cut:
                one, end = integer(part.first), integer(part.first + part.rows)
                w.add(f"s = fmax({start}, {one}) - {one}", f"f = fmin({stop}, {end}) - {one}")
                lo, hi, test = "s", "f", "if s < f:"
            with w.block(test) if test else nullcontext():
                for text, n in zip(part.texts, part.steps() or ()):
                    last = parts is readers
                    w.add(launch.call(text, times(lo, n), times(hi, n), rooms, last))

    # Cells at an edge of the reader read fewer rows than others: those beyond are not made.
    cut = not all([part.whole for part in readers])
    with w.block("for t in range(lo, hi):"):
        size, every = integer(task), integer(rows)
        w.add(f"b = t * {size}", f"end = b + {size}", f"end = end if end < {every} else {every}")
        w.add(f"first = b + {begin}")
        if again:
            call(makers, "first", f"first + {more}")
        with w.block("while b < end:"):
            w.add(f"e = b + {integer(band)}", "e = e if e < end else end", f"first = b + {begin}")
            call(makers, f"first + {more}", f"e + {begin} + {more}")
            call(readers, "b", "e")
            if again:
                to, source = f"at(room, t * {room})", f"at(room, t * {room} + (e - b) * {row})"
                w.add(f"move({to}, {source}, {more} * {row})")
            w.add("b = e")
    work = sum([t.extent * t.weight for part in (*makers, *readers) for t in part.texts])
    total = tasks * (band + again) * width
    return launch.finish(tasks, work, [Room("room", between.aval.dtype, total)])


def _elements(spec: KernelSpec) -> int:
    return prod((*spec.outer, *spec.reduced, *spec.inner))


def _alike(groups: Sequence[Sequence[KernelSpec]]) -> list[list[Generated]]:
    """The texts of each group; those that share work by tiles are apart from those by rows.

    A narrow edge has the text of the cell beside it, which is long to compile: not written out, as
    short axes are, and in tiles where that one is.
    """
    found: list[list[Generated]] = []
    most = max([_elements(spec) for specs in groups for spec in specs])
    for specs in groups:
        by_extent: dict[int, list[Generated]] = {}
        for spec in specs:
            text = generate(spec, edge=spec.form == "map" and _elements(spec) * EDGE <= most)
            by_extent.setdefault(text.extent, []).append(text)
        found += by_extent.values()
    return found


def generate_cells(groups: Sequence[Sequence[KernelSpec]]) -> Generated:
    """Write the source of kernels in one launch."""
    cells = Launch()
    w = cells.w
    tasks = work = 0
    alike = _alike(groups)
    last = len(alike) - 1
    with w.block("for t in range(lo, hi):"):
        for k, texts in enumerate(alike):
            extent, weight = texts[0].extent, sum([t.weight for t in texts])
            rows = max(1, TASK // weight)
            first, tasks = tasks, tasks - (-extent // rows)
            work += extent * weight
            begin = cells.integer(first) if k else ""
            tests = [f"(t >= {begin})"] if k else []
            if k < last:
                tests.append(f"(t < {cells.integer(tasks)})")
            with w.block(f"if {' & '.join(tests)}:") if tests else nullcontext():
                n, total = cells.integer(rows), cells.integer(extent)
                w.add(f"b = (t - {begin}) * {n}" if k else f"b = t * {n}", f"e = b + {n}")
                w.add(f"e = e if e < {total} else {total}")
                w.add(*[cells.call(text) for text in texts])
    return cells.finish(tasks, work)
