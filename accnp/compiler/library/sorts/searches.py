"""Kernels of `searchsorted`.

`searchsorted` takes the memory layout of the sorted vectors and the values, with one vector for
all values or one for each row of them, and returns an `OwnKernel`. A block of values advances
together step by step, so that comparisons and memory accesses overlap. If one vector has enough
values, a tree of every 16th, 256th, ... element is built first: a node is a cache line of 32-bit
elements, which vector instructions compare with a value at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.writing.loop_nests import Axis, Text, merged, place, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code, replace
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["searchsorted"]

QUERIES = 256  # values of a block
NODE = 16  # elements of a node of the tree
LEAST = 256  # minimum length of a vector for which a tree is built
SHARE = 8  # maximum length of the vector per value for which a tree is built


class _Search:
    """The source of a search: loops over blocks of values, and the operations on each block."""

    def __init__(self, a: Operand, v: Operand, out: Aval, side: str, memories: int = 0) -> None:
        self.text = text = Text(3 + memories)
        rank = len(a.shape) - 1
        self.size, self.count = a.shape[rank], prod(v.shape)
        self.code, self.out = dtype_code(a.dtype), dtype_code(out.dtype)
        own = contiguous(out.shape)
        self.axes = merged(
            [Axis(m, (s, w)) for m, s, w in zip(v.shape, v.strides, own, strict=True)]
        )
        # The start of the vector for each row, if there are several vectors.
        self.vectors = merged(
            [Axis(n, (s,)) for n, s in zip(a.shape[:rank], a.strides[:rank], strict=True)]
        )
        self.each = self.count // max(1, prod(a.shape[:rank]))  # number of values per vector
        self.n = text.integer(self.size)
        self.step = f" * {text.integer(a.strides[rank])}" if a.strides[rank] != 1 else ""
        self.floats = a.dtype.kind == "f"
        self.left = side == "left"
        # For values other than NaN; NaN elements compare as False and come last.
        self.before = "w < v" if self.left else "w <= v"
        if a.dtype.kind == "b":
            self.before = "((not w) & v)" if self.left else "((not w) | v)"

    def begin(self) -> None:
        """Write code that copies the values of a block to the stack and sets `found` to zeros."""
        text = self.text
        text.add(f"first = t * {QUERIES}")
        text.add(f"m = fmin({QUERIES}, {text.integer(self.count)} - first)")
        with text.block("for q in range(m):"):
            text.add("p = first + q")
            text.add(
                f"value[q] = a1[{total(place(text, self.axes, 'p', 2)[0])}]", "found[q] = i4(0)"
            )
            if self.vectors:
                text.add(f"row = p // {text.integer(self.each)}")
                text.add(f"base[q] = {total(place(text, self.vectors, 'row', 1)[0])}")

    def element(self, at: str) -> str:
        """Return an element of the vector of value q."""
        return f"a0[base[q] + {at}{self.step}]" if self.vectors else f"a0[{at}{self.step}]"

    def stacks(self) -> None:
        """Write code that allocates memory for a block of values."""
        self.text.add(f"value = stack_{self.code}()", "found = stack_i4()")
        if self.vectors:
            self.text.add("base = stack_i8()")

    def numbers(self) -> None:
        """Write code that sets `numbers` to the number of elements that are not NaN."""
        text = self.text
        if self.floats and self.left:
            text.add("numbers = 0", f"high = {self.n}")
            with text.block("while numbers < high:"):
                text.add("h = (numbers + high) >> 1", f"w = {self.element('h')}")
                text.add("number = w == w", "numbers = h + 1 if number else numbers")
                text.add("high = high if number else h")

    def store(self, place: str) -> None:
        """Write code that stores an index; NaN are sorted last."""
        if self.floats and self.left and self.vectors:
            self.text.add("numbers = 0")
            with self.text.block("if v != v:"):
                self.numbers()
        if self.floats:
            last = "numbers" if self.left else self.n
            place = f"({place} if v == v else {last})"
        self.text.add(f"a2[p] = {self.out}({place})")

    def count_before(self, element: str) -> None:
        """Write code that sets c to the number of elements of the node at k that precede v."""
        self.text.add("c = i4(0)")
        with self.text.block(f"for j in range({NODE}):"):
            self.text.add(f"w = {element}")
            self.text.add(f"c = i4(c + (i4(1) if {self.before} else i4(0)))")

    def halves(self) -> OwnKernel:
        """Return the kernel of a binary search without branches that depend on the values."""
        text = self.text
        self.stacks()
        if not self.vectors:
            self.numbers()
        with text.block("for t in range(lo, hi):"):
            self.begin()
            text.add(f"left = {self.n}")
            with text.block("while left > 1:"):
                text.add("half = left >> 1", "left = left - half")
                with text.block("for q in range(m):"):
                    text.add("k = i8(found[q])", "v = value[q]")
                    text.add(f"w = {self.element('(k + half - 1)')}")
                    text.add(f"found[q] = i4(k + half if {self.before} else k)")
            with text.block("for q in range(m):"):
                text.add("k = i8(found[q])", "p = first + q", "v = value[q]")
                with text.block("if left == 1:"):
                    text.add(f"w = {self.element('k')}", f"k = k + 1 if {self.before} else k")
                self.store("k")
        return self.own(3 * max(1, self.size.bit_length()))

    def tree(self) -> OwnKernel:
        """Return the kernel that descends the tree at a3, whose root comes first."""
        text = self.text
        self.stacks()
        self.numbers()
        height = _height(self.size)
        top = text.integer(NODE**height)
        with text.block("for t in range(lo, hi):"):
            self.begin()
            text.add(f"width = {top}", "level = a3")
            with text.block("while width > 1:"):
                text.add(f"count = ({self.n} + width - 1) // width")
                with text.block("for q in range(m):"):
                    text.add(f"k = i8(found[q]) * {NODE}", "v = value[q]")
                    self.count_before("level[k + j]")
                    text.add("k = k + i8(c)", "found[q] = i4(k if k < count else count - 1)")
                text.add(f"level = at(level, (count + {NODE - 1}) // {NODE} * {NODE})")
                text.add(f"width = width // {NODE}")
            with text.block("for q in range(m):"):
                text.add(f"k = fmin(i8(found[q]) * {NODE}, {self.n} - {NODE})", "v = value[q]")
                text.add("p = first + q")
                self.count_before(f"a0[(k + j){self.step}]")
                self.store("k + i8(c)")
        return self.own(8 * (height + 1))

    def layout(self) -> OwnKernel:
        """Return the kernel that builds the tree; entries are the last elements of subtrees."""
        text = self.text
        height = _height(self.size)
        with text.block("for t in range(lo, hi):"):
            text.add(f"width = {text.integer(NODE**height)}", "start = 0", "left = t * 1024")
            text.add(f"stop = fmin(left + 1024, {text.integer(_count_tree_elements(self.size))})")
            with text.block("while width > 1:"):
                text.add(f"count = ({self.n} + width - 1) // width")
                text.add(f"room = (count + {NODE - 1}) // {NODE} * {NODE}")
                text.add("low = fmax(left, start)", "high = fmin(stop, start + room)")
                with text.block("for k in range(low, high):"):
                    text.add(f"last = fmin((k - start + 1) * width, {self.n}) - 1")
                    text.add(f"a3[k] = a0[last{self.step}]")
                text.add("start = start + room", f"width = width // {NODE}")
        return text.own(
            -(-_count_tree_elements(self.size) // 1024), 8 * _count_tree_elements(self.size)
        )

    def own(self, work: int) -> OwnKernel:
        return self.text.own(-(-self.count // QUERIES), work * self.count)


def _height(n: int) -> int:
    """Return the number of levels of the tree above the vector itself."""
    height = 0
    while n > NODE:
        n = -(-n // NODE)
        height += 1
    return height


def _count_tree_elements(n: int) -> int:
    """Return the number of elements of the tree."""
    total = 0
    while n > NODE:
        n = -(-n // NODE)
        total += -(-n // NODE) * NODE
    return total


def searchsorted(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `searchsorted`."""
    (a, v), (out,), side = operands, results, p["side"]
    if a.dtype.kind == "c":
        return None
    n, count = a.shape[-1], prod(v.shape)
    if len(a.shape) > 1 or n < LEAST or n > SHARE * count:
        return _Search(a, v, out, side).halves()
    first = _Search(a, v, out, side, 1).layout()
    then = _Search(a, v, out, side, 1).tree()
    return replace(first, memory=((dtype_code(a.dtype), _count_tree_elements(n)),), then=(then,))
