"""Several maps in one launch on a GPU: each has a share of the blocks of threads.

In: maps that write different elements (the cells of an index space that is cut: concatenate, stack,
roll). Out: a `Generated` whose text holds theirs, each text once, and calls them:

    def kernel(a0, a1, n0, n1, ...):
        b = block_of_grid()
        while b < n9:
            if b < n1:                            # blocks of the first map
                k3f2a1c(b, n1, at(a0, n3), a1, n4, n5)
            if (b >= n1) & (b < n2):
                ...
            b = b + blocks()
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from accnp.compiler.text.grid import generate_grid
from accnp.compiler.text.grid_writer import WAVE
from accnp.compiler.text.writer import Writer
from accnp.ir.generated import Called, Generated
from accnp.ir.kernel import Access, KernelSpec, dtype_code

__all__ = ["generate_grid_cells"]

# What a text asks of the whole grid it asks of its share: block `lo` of `hi`.
_OF_SHARE = {
    "thread": "(lo * threads_of_block() + thread_of_block())",
    "threads": "(hi * threads_of_block())",
    "block_of_grid": "lo",
    "blocks": "hi",
}
_ASKED = re.compile(rf"\b({'|'.join(_OF_SHARE)})\(\)")


class _Launch:
    """The text of a kernel that calls others: their pointers, sizes and sources."""

    def __init__(self) -> None:
        self.pointers: list[Access] = []
        self.names: dict[int, str] = {}  # of values
        self.ints: list[int] = []
        self.callees: dict[str, Called] = {}
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

    def call(self, text: Generated, first: str, last: str) -> str:
        """A call for first..last of a kernel, which is in the source once."""
        mark = zlib.crc32("\n".join([text.source, *text.signature]).encode())
        name = f"k{mark:08x}"
        source = text.source.replace("def kernel(", f"def {name}(", 1)
        self.callees.setdefault(name, Called(name, text.signature, source))
        pointers = [self.pointer(a) for a in text.pointers if isinstance(a, Access)]
        ints = map(self.integer, text.ints)
        return f"{name}({', '.join([first, last, *pointers, *ints])})"

    def finish(self, extent: int, work: int) -> Generated:
        """The whole; `work` is that of the extent."""
        out = Generated()
        whole = Writer()
        for called in self.callees.values():
            whole.lines += [*called.source.rstrip("\n").split("\n"), "", ""]
        names = [f"a{i}" for i in range(len(self.pointers))]
        names += [f"n{i}" for i in range(len(self.ints))]
        with whole.block(f"def kernel({', '.join(names)}):"):
            whole.add(*self.w.lines)
        out.source = whole.text()
        out.callees = tuple(self.callees.values())
        out.pointers = [*self.pointers]
        out.ints = self.ints
        codes = [dtype_code(a.dtype) for a in self.pointers]
        out.signature = (*[f"{c}*" for c in codes], *["i8"] * len(self.ints))
        out.extent, out.weight = extent, max(1, work // max(1, extent))
        return out


def generate_grid_cells(specs: Sequence[KernelSpec], wave: int = WAVE) -> Generated | None:
    """Write the source of maps in one launch; None if some of them are not maps."""
    if any(spec.form != "map" for spec in specs):
        return None
    launch = _Launch()
    w = launch.w
    texts = [generate_grid(spec, wave=wave) for spec in specs]
    total, work = 0, 0
    every = launch.integer(sum(t.blocks for t in texts))
    w.add("b = block_of_grid()")
    with w.block(f"while b < {every}:"):
        for text in texts:
            source = _ASKED.sub(lambda m: _OF_SHARE[m[1]], text.source)
            text.source = source.replace("def kernel(", "def kernel(lo, hi, ", 1)
            count = launch.integer(text.blocks)
            first = launch.integer(total)
            total, work = total + text.blocks, work + text.extent * text.weight
            with w.block(f"if (b >= {first}) & (b < {first} + {count}):"):
                w.add(launch.call(text, f"b - {first}", count))
        w.add("b = b + blocks()")
    out = launch.finish(total, work)
    out.threads, out.blocks = texts[0].threads, total
    return out
