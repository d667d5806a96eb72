"""Lines that are sorted, and how their elements become integers that NumPy's fast sorts take.

In: operands, an axis. Out: the texts that the kernels of `long_sorts.py` and `shared_sorts.py` are
made of.

A key of up to 32 bits with its place in one 64-bit integer gives the stable order of a line, or
what follows it. Zeros of both signs are one key there; NaN is the last key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accnp.ir.kernel import Operand, dtype_code
from accnp.primitives.dot_kernels import place
from accnp.primitives.nests import Axis, Text, merged, total
from accnp.primitives.views import contiguous

__all__ = ["Keys", "Lines", "first_zero", "write_signs"]

HIGHEST = {"f4": 2147483647, "f8": 9223372036854775807}


class Keys:
    """How elements become sortable integers, and what is written for these."""

    def __init__(self, operands: Sequence[Operand]) -> None:
        """The first operand is the key; others follow it."""
        self.operands = operands
        self.source = dtype_code(operands[0].dtype)
        self.words = len(operands) > 1
        self.code = "i8" if self.words or operands[0].dtype.itemsize > 4 else "i4"
        self.signed_zeros = self.source in HIGHEST and not self.words

    @property
    def possible(self) -> bool:
        """Whether these dtypes have such keys."""
        itemsize = self.operands[0].dtype.itemsize
        return self.operands[0].dtype.kind in "biuf" and (itemsize <= 4 or not self.words)

    def encode(self, text: Text, value: str, at: str) -> str:
        """Write the lines that the key of an element needs; the text of the key."""
        if self.source in HIGHEST:
            whole, top = f"i{self.source[1]}", HIGHEST[self.source]
            # Zeros of both signs are one key where others follow.
            of = f"{value} + {self.source}(0)" if self.words else value
            text.add(f"bits = bitcast_{whole}({of})")
            shift = 8 * int(self.source[1]) - 1
            key = f"{whole}(bits ^ ({whole}(bits >> {shift}) & {whole}({top})))"
            key = f"({key} if {value} == {value} else {whole}({top}))"
        elif self.source == "u8":
            key = f"i8({value}) ^ {text.integer(-1 << 63)}"
        elif self.source == "u4":
            key = f"i4(i8({value}) - 2147483648)"
        else:
            key = f"i4(u1({value}))" if self.source == "b1" else f"{self.code}({value})"
        return f"(i8({key}) << 32) | {at}" if self.words else key

    def decode(self, text: Text, key: str) -> str:
        """The text of the element of a key."""
        if self.source in HIGHEST:
            whole, top = self.code, HIGHEST[self.source]
            shift = 8 * int(self.source[1]) - 1
            flipped = f"{whole}({key} ^ ({whole}({key} >> {shift}) & {whole}({top})))"
            return f"bitcast_{self.source}({flipped})"
        if self.source == "u8":
            return f"u8({key} ^ {text.integer(-1 << 63)})"
        if self.source == "u4":
            return f"u4(i8({key}) + 2147483648)"
        return f"{key} != i4(0)" if self.source == "b1" else f"{self.source}({key})"

    def write(self, text: Text, key: str, to: str, element: Callable[[int, str], str]) -> None:
        """Write the results of a key; `element` is the text of that of an operand at a place."""
        first = len(self.operands)
        if not self.words:
            text.add(f"a{first}[{to}] = {self.decode(text, key)}")
            return
        text.add(f"place = {key} & 4294967295")
        for k in range(len(self.operands)):
            text.add(f"a{first + k}[{to}] = {element(k, 'place')}")


class Lines:
    """The lines along an axis, and the text of their elements."""

    def __init__(self, keys: Keys, axis: int, memories: int = 0) -> None:
        self.keys = keys
        self.pointers = 2 * len(keys.operands)  # the memories come after these
        operands = keys.operands
        shape = operands[0].shape
        self.size = shape[axis]
        own = contiguous(shape)
        self.strides = [*[x.strides for x in operands], *[own] * len(operands)]
        self.text = Text(self.pointers + memories)
        self.axis = axis
        self.shape = shape

    def outer(self, but: int = -1) -> list[Axis]:
        """The axes of the lines, leaving out one."""
        axes = [
            Axis(n, [s[d] for s in self.strides])
            for d, n in enumerate(self.shape)
            if d not in (self.axis, but)
        ]
        return merged(axes)

    def begin(self, axes: list[Axis], index: str) -> None:
        """Name where a line begins in each array: p0, p1..."""
        moves = place(self.text, axes, index, len(self.strides))
        self.text.add(*[f"p{k} = {total(terms)}" for k, terms in enumerate(moves)])

    def element(self, which: int, at: str, beside: int = 0) -> str:
        """The element of a line of an array; `beside` is the step from line to line `j`."""
        terms = [f"p{which}", *self.text.times(at, self.strides[which][self.axis])]
        terms += self.text.times("j", beside) if beside else []
        return f"a{which}[{total(terms)}]"

    def target(self, at: str) -> str:
        """The place of an element of a line in the results."""
        own = self.strides[-1][self.axis]
        return total([f"p{len(self.strides) - 1}", *self.text.times(at, own)])

    def operand(self) -> Callable[[int, str], str]:
        """The text of elements of operands."""
        return self.element


def write_signs(lines: Lines, zero: str, beside: int = 0, to: int = 0) -> None:
    """Write the zeros of a line in their order, from place `zero` on."""
    text = lines.text
    text.add(f"z = {zero}")
    with text.block(f"for i in range({text.integer(lines.size)}):"):
        text.add(f"v = {lines.element(0, 'i', beside)}")
        with text.block(f"if v == {lines.keys.source}(0):"):
            text.add(f"{lines.element(1, 'z', to)} = v", "z += 1")


def first_zero(text: Text, key: str, size: str) -> None:
    """z becomes the first place of a sorted line whose key, given for `mid`, is not negative."""
    text.add("z = 0", f"last = {size}")
    with text.block("while z < last:"):
        text.add("mid = (z + last) >> 1", f"below = {key}")
        text.add("z = mid + 1 if below else z", "last = last if below else mid")
