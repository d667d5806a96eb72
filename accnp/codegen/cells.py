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
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy

from accnp.codegen.cpu import Generated, generate
from accnp.codegen.writer import Writer
from accnp.ir.kernel import Access, KernelSpec, dtype_code

__all__ = ["generate_cells", "named", "with_sizes"]

TASK = 1 << 16  # work of one task, in simple element operations


def named(text: Generated) -> tuple[str, str]:
    """The name of a kernel among others in one text, by its content, and its source under it."""
    mark = zlib.crc32("\n".join([text.source, *text.signature]).encode())
    own = text.source[text.source.rindex("def kernel(") :]
    return f"k{mark:08x}", own.replace("def kernel(", f"def k{mark:08x}(", 1)


TINY = 32  # steps and elements up to which a kernel is written for its sizes inside a loop


def with_sizes(text: Generated, extent: int) -> Generated:
    """The text of a kernel that does 0..extent; the sizes of a tiny one are written into it, since
    it is what a loop spends its time on (25 pairs of bodies: 116 -> 76 ns).

    One without sizes but the extent, and one that an op brings itself, stays as it is: a new length
    of such a loop compiles nothing.
    """
    if not text.ints or not text.pointers or max(extent, *text.ints) > TINY:
        return text
    head = text.source.rindex("def kernel(")
    start = text.source.index(":\n", head) + 2
    names = text.source[head : start - 3].split(", ")[-len(text.ints) :]
    sizes = {"lo": 0, "hi": extent} | dict(zip(names, text.ints, strict=True))
    sized = copy(text)
    lines = "".join([f"    {name} = {value}\n" for name, value in sizes.items()])
    sized.source = text.source[:start] + lines + text.source[start:]
    return sized


class _Cells:
    def __init__(self) -> None:
        self.pointers: list[Access] = []
        self.names: dict[int, str] = {}  # of values
        self.ints: list[int] = []
        self.callees: dict[str, tuple[str, tuple[str, ...], str]] = {}
        self.w = Writer()

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

    def call(self, text: Generated) -> str:
        name, source = named(text)
        self.callees.setdefault(name, (name, text.signature, source))
        pointers = [self.pointer(a) for a in text.pointers if isinstance(a, Access)]
        return f"{name}({', '.join(['b', 'e', *pointers, *map(self.integer, text.ints)])})"


def _alike(groups: Sequence[Sequence[KernelSpec]]) -> list[list[Generated]]:
    """The texts of each group; those that share work by tiles are apart from those by rows."""
    found: list[list[Generated]] = []
    for specs in groups:
        by_extent: dict[int, list[Generated]] = {}
        for text in map(generate, specs):
            by_extent.setdefault(text.extent, []).append(text)
        found += by_extent.values()
    return found


def generate_cells(groups: Sequence[Sequence[KernelSpec]]) -> Generated:
    """Write the source of kernels in one launch."""
    cells = _Cells()
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
    out = Generated()
    whole = Writer()
    for _, _, source in cells.callees.values():
        whole.lines += [*source.rstrip("\n").split("\n"), "", ""]
    names = [f"a{i}" for i in range(len(cells.pointers))]
    names += [f"n{i}" for i in range(len(cells.ints))]
    with whole.block(f"def kernel({', '.join(['lo', 'hi', *names])}):"):
        whole.lines += ["    " + line for line in w.lines]
    out.source = whole.text()
    out.callees = tuple(cells.callees.values())
    out.pointers = list(cells.pointers)
    out.ints = cells.ints
    out.signature = (
        *[f"{dtype_code(a.dtype)}*" for a in cells.pointers],
        *["i8"] * len(cells.ints),
    )
    out.extent, out.weight = tasks, max(1, work // max(1, tasks))
    return out
