"""Conversion of operands and results of matrix products in kernels (`dot_general.py`).

The GEMM routines of `compiler/library/library.py` need operands of one work dtype. If an operand or
the result has another dtype, the kernel's source contains code that converts one block at a time,
so that no array is converted as a whole. Rows whose steps (elements along the contracted axis) are
contiguous stay rows; others become columns. Half precision is multiplied in float32, and the result
is rounded once. Integers of 8 and 16 bits are packed in pairs of steps into 32-bit words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from accnp.compiler.library.writing.loop_nests import Text

__all__ = ["Copies", "Matrix"]

STEPS = 512  # steps that are converted at a time: a multiple of the blocks that the GEMM sums
# Elements of the longest vector. Copies have this many extra elements between rows, so that rows do
# not all map to the same cache sets.
WHOLE = 16

_NAMES = ("left", "right", "sums")


class Matrix(NamedTuple):
    """Memory layout of a tile: the number of the pointer argument, the name of the first index, the
    number of rows (for a right operand: columns), and the strides between rows and along a row,
    each of which is "1" or a name."""

    pointer: int
    start: str
    rows: str
    row: str
    along: str

    @property
    def columns(self) -> bool:
        """Return whether elements of neighboring rows are contiguous, not those of a row."""
        return self.row == "1" != self.along


class Copies:
    """The temporary copies of one kernel: left operand, right operand, result."""

    rows, columns = 256, 256  # maximum tile, so that copies stay in the cache

    def __init__(self, work: str, codes: Sequence[str]) -> None:
        self.work, self.codes = work, codes
        self.pairs = work == "i2"
        self.code = "i4" if self.pairs else work  # dtype code of the copies' elements
        self.copied = [self.pairs or code != work for code in codes]
        if self.pairs:
            self.copied[2] = codes[2] not in ("i4", "u4")
        self.pitch = 0  # stride between rows of a copy

    def open(self, text: Text, tall: int, wide: int, steps: int) -> None:
        """Write code that allocates the copies."""
        deep = -(-min(steps, STEPS) // (2 if self.pairs else 1))
        self.pitch = -(-deep // WHOLE) * WHOLE + WHOLE
        sizes = (tall * self.pitch, wide * self.pitch, tall * wide)
        for name, copied, size in zip(_NAMES, self.copied, sizes, strict=True):
            if copied:
                text.add(f"{name} = heap_{self.code}({text.integer(size)})")

    def close(self, text: Text) -> None:
        """Write code that frees the copies."""
        text.add(*[f"release({name})" for name, on in zip(_NAMES, self.copied, strict=True) if on])

    def multiply(self, text: Text, left: Matrix, right: Matrix, out: Matrix, steps: str) -> None:
        """Write code that computes a tile of the result."""
        pitch = text.integer(self.pitch)
        with text.block(f"for p0 in range(0, fmax({steps}, 1), {STEPS}):"):
            text.add(f"kk = fmin({steps} - p0, {STEPS})", "how = 1 if p0 > 0 else 0")
            if self.pairs:
                text.add("words = (kk + 1) // 2", "even = kk // 2")
            operands: list[tuple[str, str, str]] = []
            for name, copied, m in zip(_NAMES, self.copied, (left, right), strict=False):
                text.add(f"{name}_at = {m.start} + p0 * {m.along}")
                operand = (f"at(a{m.pointer}, {name}_at)", m.row, m.along)
                if copied:
                    (self._write_word_copy if self.pairs else self._values)(text, name, m, pitch)
                    operand = (name, *(("1", m.rows) if m.columns else (pitch, "1")))
                operands.append(operand)
            (x, rsa, csa), (y, csb, rsb) = operands
            z, ldc = f"at(a{out.pointer}, {out.start})", out.row
            if self.copied[2]:
                z, ldc = "sums", right.rows
            counts = f"{left.rows}, {right.rows}, {'words' if self.pairs else 'kk'}"
            matrices = f"{x}, {rsa}, {csa}, {y}, {rsb}, {csb}, {z}, {ldc}"
            text.products = True
            text.add(f"gemm_{self.work}({counts}, {matrices}, how)")
        if self.copied[2]:
            with text.block(f"for i in range({left.rows}):"):
                text.add(f"s = i * {right.rows}", f"d = {out.start} + i * {out.row}")
                with text.block(f"for j in range({right.rows}):"):
                    text.add(f"a{out.pointer}[d + j] = {self.codes[2]}(sums[s + j])")

    def _values(self, text: Text, name: str, m: Matrix, pitch: str) -> None:
        """Write code that converts each element."""
        outer, inner, far, near, step = m.rows, "kk", m.row, m.along, pitch
        if m.columns:
            outer, inner, far, near, step = inner, outer, near, far, outer
        with text.block(f"for i in range({outer}):"):
            text.add(f"s = {name}_at + i * {far}", f"d = i * {step}")
            with text.block(f"for p in range({inner}):"):
                place = f"s + p * {near}" if near != "1" else "s + p"
                text.add(f"{name}[d + p] = {self.code}(a{m.pointer}[{place}])")

    def _write_word_copy(self, text: Text, name: str, m: Matrix, pitch: str) -> None:
        """Write code that packs two elements of neighboring steps into a word; the last element may
        be alone."""
        source = f"a{m.pointer}"
        if m.columns:
            with text.block("for p in range(even):"):
                text.add(f"s = {name}_at + 2 * p * {m.along}", f"t = s + {m.along}")
                text.add(f"d = p * {m.rows}")
                with text.block(f"for i in range({m.rows}):"):
                    text.add(
                        f"{name}[d + i] = {_pack_word(f'{source}[s + i]', f'{source}[t + i]')}"
                    )
            with text.block("if even < words:"):
                text.add(f"s = {name}_at + 2 * even * {m.along}", f"d = even * {m.rows}")
                with text.block(f"for i in range({m.rows}):"):
                    text.add(f"{name}[d + i] = {_pack_word(f'{source}[s + i]')}")
            return
        with text.block(f"for i in range({m.rows}):"):
            text.add(f"s = {name}_at + i * {m.row}", f"d = i * {pitch}")
            if m.along == "1":
                text.add(f"copy_words(at({name}, d), at({source}, s), kk)")
                return
            with text.block("for p in range(even):"):
                text.add(f"v = s + 2 * p * {m.along}", f"w = v + {m.along}")
                text.add(f"{name}[d + p] = {_pack_word(f'{source}[v]', f'{source}[w]')}")
            with text.block("if even < words:"):
                last = f"{source}[s + 2 * even * {m.along}]"
                text.add(f"{name}[d + even] = {_pack_word(last)}")


def _pack_word(low: str, high: str = "") -> str:
    word = f"i4(i4({low}) & i4(65535))"
    return f"i4({word} + i4(i4({high}) * i4(65536)))" if high else word
