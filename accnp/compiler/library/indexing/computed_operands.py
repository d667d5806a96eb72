"""Operands that the kernel of an op computes element by element, in place of loading them.

In: the description of the kernel that would store such an operand, a map over one axis. Out: what
an op's own kernel writes into its text for an element.
"""

from __future__ import annotations

from accnp.compiler.library.writing.loop_nests import Text, total
from accnp.ir.kernel import KernelSpec, Statement, dtype_code

__all__ = ["Computed"]

MOST = 64  # cost of an element: what takes more is worth a launch of its own
# Up to this cost an element is computed where it is wanted, even without vectors. 30,000 sums of
# v * 2 at 500 places take 13 us, as long as if v * 2 were there; with a square root 34 for 14.
LIGHT = 8


class Computed:
    """How an operand is computed. Its first load takes the place of its own pointer; the pointers
    of the others come after those to results and memory."""

    buffer = "e_block"  # of some elements, on the stack

    def __init__(self, spec: KernelSpec) -> None:
        ((store, self.result),) = spec.phases[0].stores
        self.spec = spec
        self.loads = [a for a in spec.accesses if a is not store]
        self.names: dict[int, str] = {}  # of pointers, by access

    @classmethod
    def of(cls, spec: KernelSpec) -> Computed | None:
        """The operand that a kernel would store; None for a kernel of another kind."""
        flat = spec.form == "map" and not (spec.outer or spec.reduced or spec.row_head)
        if not flat or len(spec.inner) > 1 or len(spec.phases) != 1 or spec.cost > MOST:
            return None
        (phase,) = spec.phases
        if phase.reductions or phase.row or phase.row_stores or len(phase.stores) != 1:
            return None
        ((store, _),) = phase.stores
        found = cls(spec)
        # In the order of its elements, or the same for all.
        if store.strides not in ((), (1,)) or store.offset or not found.loads:
            return None
        # Gathers are faster in a loop of their own: 30,000 sums of v * w[i] took 39 us for 20.
        plain = all(s in (0, 1) for a in found.loads for s in a.strides)
        return found if plain and not any(a.terms for a in found.loads) else None

    @property
    def more(self) -> int:
        """How many pointers it needs beside the operand's own."""
        return len(self.loads) - 1

    def begin(self, text: Text, own: str, first: int) -> None:
        """Write what all elements have in common; `own` is the pointer of the operand, the others
        begin with this one."""
        names = [own, *text.pointers[first : first + self.more]]
        self.names = {id(a): name for a, name in zip(self.loads, names, strict=True)}
        ((store, _),) = self.spec.phases[0].stores
        text.add(f"{self.buffer} = stack_{dtype_code(store.dtype)}()")
        for s in self.spec.scalars:
            self._statement(text, s, "0")

    @property
    def light(self) -> bool:
        """Whether it takes no more than vectors would save."""
        return self.spec.cost <= LIGHT

    def block(self, text: Text, first: str, count: str) -> None:
        """Write a loop that computes elements from a place on, by vectors, into `buffer`."""
        with text.block(f"for e_q in range({count}):"):
            text.add(f"{self.buffer}[e_q] = {self.element(text, f'{first} + e_q')}")

    def element(self, text: Text, place: str) -> str:
        """Write the statements that compute an element; returns its name."""
        text.add(f"e = {place}")
        for s in self.spec.phases[0].full:
            self._statement(text, s, "e")
        return _name(self.result)

    def _statement(self, text: Text, s: Statement, place: str) -> None:
        code, args = dtype_code(s.dtype), [_name(x) for x in s.args]
        if s.access is not None:
            moves = any(s.access.strides) and place != "0"
            value = f"{self.names[id(s.access)]}[{place if moves else 0}]"
        elif s.index is not None:
            steps = text.times(place, s.index.strides[0]) if s.index.strides else []
            value = f"{code}({total([*steps, text.integer(s.index.offset)])})"
        else:
            value = f"{code}({s.text.format(*args)})"
        text.add(f"{_name(s.name)} = {value}")


def _name(x: str) -> str:
    """The name of a value, apart from those of the op's kernel."""
    return f"e_{x}"
