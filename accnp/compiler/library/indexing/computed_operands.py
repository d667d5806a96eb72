"""Operands that the kernel of an op computes element by element instead of loading them.

The input is the description of the kernel that would otherwise store such an operand, a map over
one axis. The planners for CPUs and GPUs (`engine/plan.py`, `engine/device_plan.py`) attach a
`Computed` to the operand. The writer of the op's kernel (`scatters.py`) then calls its methods,
which write the statements that compute an element into the source.
"""

from __future__ import annotations

from accnp.compiler.library.writing.loop_nests import Text, total
from accnp.ir.kernel import KernelSpec, Statement, dtype_code

__all__ = ["Computed"]

MOST = 64  # maximum cost of an element; a more expensive operand gets a separate launch
# Up to this cost an element is computed where it is used, even without vector instructions. 30,000
# sums of v * 2 at 500 positions take 13 us, as long as with a stored v * 2. With a square root,
# they take 34 us instead of 14 us.
LIGHT = 8


class Computed:
    """How an operand is computed. Its first load uses the operand's own pointer; the pointers of
    the other loads come after those to results and scratch memory."""

    buffer = "e_block"  # of some elements, on the stack

    def __init__(self, spec: KernelSpec) -> None:
        ((store, self.result),) = spec.phases[0].stores
        self.spec = spec
        self.loads = [a for a in spec.accesses if a is not store]
        self.names: dict[int, str] = {}  # of pointers, by access

    @classmethod
    def of(cls, spec: KernelSpec) -> Computed | None:
        """Return the operand that a kernel would store; None for a kernel of another form."""
        flat = spec.form == "map" and not (spec.outer or spec.reduced or spec.row_head)
        if not flat or len(spec.inner) > 1 or len(spec.phases) != 1 or spec.cost > MOST:
            return None
        (phase,) = spec.phases
        if phase.reductions or phase.row or phase.row_stores or len(phase.stores) != 1:
            return None
        ((store, _),) = phase.stores
        computed = cls(spec)
        # In the order of its elements, or the same for all.
        if store.strides not in ((), (1,)) or store.offset or not computed.loads:
            return None
        # Gathers are faster in a separate loop: 30,000 sums of v * w[i] took 20 us with one, and
        # 39 us without.
        plain = all(s in (0, 1) for a in computed.loads for s in a.strides)
        return computed if plain and not any(a.terms for a in computed.loads) else None

    @property
    def more(self) -> int:
        """Return the number of pointers in addition to the operand's own."""
        return len(self.loads) - 1

    def begin(self, text: Text, own: str, first: int) -> None:
        """Write the statements that all elements share. `own` is the pointer of the operand; its
        other pointers begin with pointer number `first`."""
        names = [own, *text.pointers[first : first + self.more]]
        self.names = {id(a): name for a, name in zip(self.loads, names, strict=True)}
        ((store, _),) = self.spec.phases[0].stores
        text.add(f"{self.buffer} = stack_{dtype_code(store.dtype)}()")
        for s in self.spec.scalars:
            self._statement(text, s, "0")

    @property
    def light(self) -> bool:
        """Return whether computing an element costs no more than vector instructions would save."""
        return self.spec.cost <= LIGHT

    def block(self, text: Text, first: str, count: str) -> None:
        """Write a vectorized loop that computes elements, from an index on, into `buffer`."""
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
    """Return the name of a value, which differs from the names of the op's kernel."""
    return f"e_{x}"
