"""Products of matrices whose operands or result have another dtype than what multiplies them.

In: codes of dtypes, the text of a kernel. Out: lines of it. A task converts the parts of its
operands that the next steps need, so that no array is converted as a whole: rows whose steps lie
side by side stay rows, others become columns. What half precision is multiplied in is float32, and
the result is rounded once; integers of 8 and 16 bits are laid out in pairs of steps, see
`compiler/library/library.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from accnp.primitives.nests import Text

__all__ = ["Copies", "Matrix"]

STEPS = 512  # steps that are converted at a time: whole runs of the library's sums
WHOLE = 16  # elements of the longest vector; so much more is between rows of a copy, so that they
# do not all lie in the same lines of a cache

_NAMES = ("left", "right", "sums")


class Matrix(NamedTuple):
    """How a tile lies in memory: the argument that points at it, the name of its first place, its
    rows (of a right operand: columns) and the steps from row to row and in a row: 1, or a name."""

    pointer: int
    start: str
    rows: str
    row: str
    along: str

    @property
    def columns(self) -> bool:
        """Whether it is rows that lie side by side."""
        return self.row == "1" != self.along


class Copies:
    """The copies of one kernel: of the left operand, of the right one, of the result."""

    rows, columns = 256, 256  # of a tile at most: the copies stay near

    def __init__(self, work: str, codes: Sequence[str]) -> None:
        self.work, self.codes = work, codes
        self.pairs = work == "i2"
        self.code = "i4" if self.pairs else work  # of the elements of copies
        self.copied = [self.pairs or code != work for code in codes]
        if self.pairs:
            self.copied[2] = codes[2] not in ("i4", "u4")
        self.pitch = 0  # from row to row of a copy

    def open(self, text: Text, tall: int, wide: int, steps: int) -> None:
        """Make room."""
        deep = -(-min(steps, STEPS) // (2 if self.pairs else 1))
        self.pitch = -(-deep // WHOLE) * WHOLE + WHOLE
        sizes = (tall * self.pitch, wide * self.pitch, tall * wide)
        for name, copied, size in zip(_NAMES, self.copied, sizes, strict=True):
            if copied:
                text.add(f"{name} = heap_{self.code}({text.integer(size)})")

    def close(self, text: Text) -> None:
        """Give it back."""
        text.add(*[f"release({name})" for name, on in zip(_NAMES, self.copied, strict=True) if on])

    def multiply(self, text: Text, left: Matrix, right: Matrix, out: Matrix, steps: str) -> None:
        """A tile of the result."""
        pitch = text.integer(self.pitch)
        with text.block(f"for p0 in range(0, fmax({steps}, 1), {STEPS}):"):
            text.add(f"kk = fmin({steps} - p0, {STEPS})", "how = 1 if p0 > 0 else 0")
            if self.pairs:
                text.add("words = (kk + 1) // 2", "even = kk // 2")
            operands = []
            for name, copied, m in zip(_NAMES, self.copied, (left, right), strict=False):
                text.add(f"{name}_at = {m.start} + p0 * {m.along}")
                found = (f"at(a{m.pointer}, {name}_at)", m.row, m.along)
                if copied:
                    (self._words if self.pairs else self._values)(text, name, m, pitch)
                    found = (name, *(("1", m.rows) if m.columns else (pitch, "1")))
                operands.append(found)
            (x, rsa, csa), (y, csb, rsb) = operands
            z, ldc = f"at(a{out.pointer}, {out.start})", out.row
            if self.copied[2]:
                z, ldc = "sums", right.rows
            counts = f"{left.rows}, {right.rows}, {'words' if self.pairs else 'kk'}"
            given = f"{x}, {rsa}, {csa}, {y}, {rsb}, {csb}, {z}, {ldc}"
            text.products = True
            text.add(f"gemm_{self.work}({counts}, {given}, how)")
        if self.copied[2]:
            with text.block(f"for i in range({left.rows}):"):
                text.add(f"s = i * {right.rows}", f"d = {out.start} + i * {out.row}")
                with text.block(f"for j in range({right.rows}):"):
                    text.add(f"a{out.pointer}[d + j] = {self.codes[2]}(sums[s + j])")

    def _values(self, text: Text, name: str, m: Matrix, pitch: str) -> None:
        """Elements, each converted."""
        outer, inner, far, near, step = m.rows, "kk", m.row, m.along, pitch
        if m.columns:
            outer, inner, far, near, step = inner, outer, near, far, outer
        with text.block(f"for i in range({outer}):"):
            text.add(f"s = {name}_at + i * {far}", f"d = i * {step}")
            with text.block(f"for p in range({inner}):"):
                place = f"s + p * {near}" if near != "1" else "s + p"
                text.add(f"{name}[d + p] = {self.code}(a{m.pointer}[{place}])")

    def _words(self, text: Text, name: str, m: Matrix, pitch: str) -> None:
        """Two elements of neighboring steps in a word; the last one may stand alone."""
        given = f"a{m.pointer}"
        if m.columns:
            with text.block("for p in range(even):"):
                text.add(f"s = {name}_at + 2 * p * {m.along}", f"t = s + {m.along}")
                text.add(f"d = p * {m.rows}")
                with text.block(f"for i in range({m.rows}):"):
                    text.add(f"{name}[d + i] = {_word(f'{given}[s + i]', f'{given}[t + i]')}")
            with text.block("if even < words:"):
                text.add(f"s = {name}_at + 2 * even * {m.along}", f"d = even * {m.rows}")
                with text.block(f"for i in range({m.rows}):"):
                    text.add(f"{name}[d + i] = {_word(f'{given}[s + i]')}")
            return
        with text.block(f"for i in range({m.rows}):"):
            text.add(f"s = {name}_at + i * {m.row}", f"d = i * {pitch}")
            if m.along == "1":
                text.add(f"lay_words(at({name}, d), at({given}, s), kk)")
                return
            with text.block("for p in range(even):"):
                text.add(f"v = s + 2 * p * {m.along}", f"w = v + {m.along}")
                text.add(f"{name}[d + p] = {_word(f'{given}[v]', f'{given}[w]')}")
            with text.block("if even < words:"):
                last = f"{given}[s + 2 * even * {m.along}]"
                text.add(f"{name}[d + even] = {_word(last)}")


def _word(low: str, high: str = "") -> str:
    word = f"i4(i4({low}) & i4(65535))"
    return f"i4({word} + i4(i4({high}) * i4(65536)))" if high else word
