"""Pass that carries the starts of rows from row to row (strength reduction of row offsets).

`pipeline.py` runs it after vectorization. It gets a kernel, and rewrites its loops over rows of
vector code. The vector code of a row begins at an index that depends on the positions of the row
along the other axes. These are computed by dividing the number of the row, and are multiplied by
strides. After this pass, a loop over rows carries positions and starts, and only adds:

for o in lo..hi {                           for o in lo..hi carry or = ... carry start = ... {
  let oq: i8 = floordiv(o, n)                 for j in 0..m vector(...) {
  let or: i8 = sub(o, mul(oq, n))               ... a[<1*start + 1*j + 0>]
  for j in 0..m vector(...) {                 }
    ... a[<s0*oq + s1*or + 1*j + 0>]          let ends: b1 = eq(or + 1, n)
  }                                           next or = select(ends, 0, or + 1)
}                                             next start = add(start, select(ends, w, s1))
                                            }

Here w, which is computed before the loop, is the distance between the starts of the last row of a
plane and the first row of the next one. In two dimensions, there is nothing to divide, and only the
starts are carried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import (
    Break,
    Call,
    Carried,
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Reduce,
    Stmt,
    Store,
    Var,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import (
    assigned,
    expressions,
    map_expr,
    map_statement,
    replace_loops,
    statements,
    subexpressions,
)
from accnp.compiler.passes.copies import Copies
from accnp.compiler.passes.replace_variables import replaced

__all__ = ["carry_starts"]

_Start = tuple[tuple[Var, int | Var], ...]  # positions and their strides


def carry_starts(kernel: Kernel) -> Kernel:
    """Return a kernel whose loops over rows of vector code carry the starts of rows.

    A 3-D stencil with rows of 23 float64 takes 550 us for 80 sweeps in place of 650 us with
    divisions, and 610 us if starts are products: while vectors of 64 bytes are computed, products
    of integers use the unit that also adds vectors (Emerald Rapids, 2026-11).
    """
    copies: Copies | None = None  # few kernels have such a loop

    def change(s: For | Reduce) -> Sequence[Stmt] | None:
        nonlocal copies
        if not isinstance(s, For) or not _has_vector_rows(s):
            return None
        copies = copies or Copies(kernel)
        return _Rows(s, copies).rewrite()

    return kernel._replace(body=replace_loops(kernel.body, change))


def _has_vector_rows(s: For) -> bool:
    inner = [x for x in s.body if isinstance(x, For)]
    plain = s.step == 1 and not (s.carried or s.spread or s.interchangeable)
    leaves = any(isinstance(x, Break) for x in s.body)
    return plain and not leaves and any(x.vector is not None for x in inner)


class _Rows:
    """A loop over rows, with what it will carry."""

    def __init__(self, s: For, copies: Copies) -> None:
        self.s = s
        self.copies = copies
        self.before: list[Stmt] = []
        self.divided = self.find_divisions()
        self.body: Sequence[Stmt] = s.body[2 * len(self.divided) :]
        # The positions, that along the last axis first, and their values before the loop.
        last = self.divided[-1][0].var if self.divided else s.index
        self.positions = [*[remainder.var for _, remainder in self.divided], last]
        self.first: dict[Var, Expr] = {s.index: s.start}
        # Variables that change from row to row. A stride among them is not loop-invariant.
        self.changing = {*self.positions, *[v for b in self.body for v in assigned(b)]}
        self.starts: dict[_Start, Var] = {}

    def find_divisions(self) -> list[tuple[Let, Let]]:
        """Return the pairs of statements that divide the index of the loop, then its quotient, and
        so on, and compute the remainders."""
        divisions: list[tuple[Let, Let]] = []
        of = self.s.index
        for quotient, remainder in zip(self.s.body[::2], self.s.body[1::2], strict=False):
            if not isinstance(quotient, Let) or not isinstance(remainder, Let):
                break
            x = quotient.value
            if not isinstance(x, Call) or x.function != "floordiv" or x.args[0] != of:
                break
            if remainder.value != call("sub", of, call("mul", quotient.var, x.args[1])):
                break
            if divisions and _is_read(of, self.s.body[2 * len(divisions) + 2 :]):
                break  # the previous quotient is needed for more than this division
            divisions.append((quotient, remainder))
            of = quotient.var
        return divisions

    def let(self, name: str, value: Expr) -> Expr:
        """Compute a value before the loop."""
        var = self.copies.new(name)
        self.before.append(Let(var, value))
        return var

    def rewrite(self) -> list[Stmt] | None:
        """Return the loop after statements that it needs, or None if it carries nothing."""
        for pair in self.divided:
            for x in pair:
                self.first[x.var] = self.let(x.var.name, replaced(x.value, self.first))
        body = [self.with_starts(x) for x in self.body]
        if not self.divided and not self.starts:
            return None
        after: list[Stmt] = []
        ends: list[Expr] = []  # whether all axes up to this one end with the row
        carried: list[Carried] = []
        for quotient, remainder in self.divided:
            assert isinstance(quotient.value, Call)
            position, size = remainder.var, quotient.value.args[1]
            one = affine((position, 1), constant=1)
            following = self.copies.fresh(position)
            after.append(Let(following, call("select", ends[-1], one, position) if ends else one))
            test = call("eq", following, size)
            at_end = self.copies.new("ends", test.dtype)
            after.append(Let(at_end, test))
            ends.append(at_end)
            carried.append(self.carry(position, call("select", at_end, Const(0, I8), following)))
        last = self.positions[-1]
        if self.divided and _is_read(last, body):
            one = affine((last, 1), constant=1)
            carried.append(self.carry(last, call("select", ends[-1], one, last)))
        for start, var in self.starts.items():
            steps = self.compute_steps(dict(start))
            step = steps[0]
            for test, wider in zip(ends, steps[1:], strict=True):
                step = call("select", test, wider, step)
            carried.append(self.carry(var, call("add", var, step)))
        loop = self.s._replace(body=(*body, *after), carried=tuple(carried), independent=False)
        return [*self.before, loop]

    def carry(self, v: Var, following: Expr) -> Carried:
        return Carried(v, self.first[v], following, self.copies.fresh(v))

    def compute_steps(self, start: Mapping[Var, int | Var]) -> list[Expr]:
        """Return by how much a start grows from one row to the next: within a plane of rows, at the
        end of a plane, at the end of a volume, and so on."""

        def factor(v: Var) -> Expr:
            k = start.get(v, 0)
            return k if isinstance(k, Var) else Const(k, I8)

        steps: list[Expr] = []
        back: Expr = Const(0, I8)  # from the start of the last row to that of the first one
        for k, position in enumerate(self.positions):
            steps.append(self.let("step", call("sub", factor(position), back)))
            if k < len(self.divided):
                division = self.divided[k][0].value
                assert isinstance(division, Call)
                rows = call("sub", division.args[1], Const(1, I8))
                back = self.let("back", call("add", back, call("mul", rows, factor(position))))
        return steps

    def with_starts(self, s: Stmt) -> Stmt:
        """Return a statement with carried starts, if it is a loop over the elements of a row."""
        if not isinstance(s, For) or s.vector is None:
            return s
        own = {s.index, *[v for x in statements(s.body) for v in assigned(x)]}

        def change(x: Expr) -> Expr | None:
            if isinstance(x, Load):
                return x._replace(index=self.with_start(map_expr(x.index, change), own))
            return None

        body: list[Stmt] = []
        for x in s.body:
            new = map_statement(x, lambda e: map_expr(e, change))
            if isinstance(new, Store):
                new = new._replace(index=self.with_start(new.index, own))
            body.append(new)
        return s._replace(body=tuple(body))

    def with_start(self, x: Expr, own: set[Var]) -> Expr:
        """Return an index with a carried start in place of positions times strides."""
        if not isinstance(x, Index):
            return x
        start = [t for t in x.terms if t[0] in self.positions and t[1] not in own]
        if not start or any(k in self.changing for _, k in start):
            return x
        if len({v for v, _ in start}) < len(start) or start == [(self.s.index, 1)]:
            return x
        key = tuple(start)
        if key not in self.starts:
            self.starts[key] = self.copies.new("start")
            first = [
                call("mul", self.first[v], k if isinstance(k, Var) else Const(k, I8))
                for v, k in start
            ]
            total = first[0]
            for term in first[1:]:
                total = call("add", total, term)
            self.first[self.starts[key]] = self.let("first", total)
        rest = [t for t in x.terms if t not in start]
        return Index(((self.starts[key], 1), *rest), x.constant)


def _is_read(v: Var, body: Sequence[Stmt]) -> bool:
    """Return whether an expression of some statements contains a variable."""
    return any(v in subexpressions(x) for s in statements(body) for x in expressions(s))
