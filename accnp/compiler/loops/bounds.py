"""Bounds of indices, as far as they follow from the text of a kernel.

The verifier passes the definitions of variables in the order of the statements to `Bounds`, which
returns the bounds of an index and whether an access is outside of a buffer whose length is known.
At run time, the interpreter checks the accesses that a run makes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple

from accnp.compiler.loops.ir import Call, Const, Expr, Index, Var

__all__ = ["Bounds", "Limits", "exactly"]

MOST = 64  # bounds of one index; with more, it counts as unbounded


class Linear(NamedTuple):
    """A sum of variables times integers, which are not 0, and a constant."""

    terms: Mapping[Var, int]
    constant: int = 0

    def plus(self, other: Linear, times: int = 1) -> Linear:
        terms = dict(self.terms)
        for v, k in other.terms.items():
            terms[v] = terms.get(v, 0) + times * k
        nonzero = {v: k for v, k in terms.items() if k}
        return Linear(nonzero, self.constant + times * other.constant)


class Limits(NamedTuple):
    """Lower and upper bounds of a number; an empty sequence means that no bound is known."""

    low: Sequence[Linear]
    high: Sequence[Linear]

    def plus(self, other: Limits, times: int = 1) -> Limits:
        """Return the bounds of a sum, or of `self + times * other`."""
        low, high = (other.low, other.high) if times >= 0 else (other.high, other.low)
        return Limits(_sums(self.low, low, times), _sums(self.high, high, times))

    def moved(self, by: int) -> Limits:
        return self.plus(exactly(by))


def exactly(value: int) -> Limits:
    """Return the bounds of a known number."""
    return Limits([Linear({}, value)], [Linear({}, value)])


def _sums(xs: Iterable[Linear], ys: Iterable[Linear], times: int) -> list[Linear]:
    return [x.plus(y, times) for x, y in product(xs, ys)]


_UNKNOWN = Limits([], [])


class Bounds:
    """The bounds of the variables that have been defined so far.

    An index is bounded by linear combinations of variables. The variable that was defined last is
    replaced by its own bounds first, so that the bounds of an inner loop may depend on an outer
    one. An access is outside if one of its bounds is, by a known distance, and no other one is
    inside. Arguments may have any value, so the second bound of `fmin(n, 2048)` counts.
    """

    def __init__(self) -> None:
        self.known: dict[Var, Limits] = {}  # in the order in which they are defined
        self.exact: set[Var] = set()  # variables that are equal to their bounds

    def define(self, v: Var, limits: Limits) -> None:
        """Note the bounds of a variable that has just been assigned."""
        self.known[v] = limits
        if limits.low and limits.low == limits.high:
            self.exact.add(v)

    @contextmanager
    def branch(self) -> Generator[None]:
        """Discard known ranges within statements that a condition guards, since it may restrict
        them."""
        before = self.known
        self.known = {v: x for v, x in before.items() if v in self.exact}
        yield
        self.known = before

    def of_steps(self, start: Expr, stop: Expr, step: int = 1) -> Limits:
        """Return the bounds of the index of a loop."""
        low, high = self.of(start), self.of(stop)
        if step == 1:
            return Limits(low.low, high.moved(-1).high)
        ends = [x.constant for x in self.resolve(high.high, True) if not x.terms]
        starts = [x.constant for x in low.low if not x.terms]
        if len(starts) != 1:
            return Limits(low.low, [])
        last = [starts[0] + (end - 1 - starts[0]) // step * step for end in ends]
        return Limits(low.low, [Linear({}, x) for x in last])

    def of(self, x: Expr) -> Limits:
        """Return the bounds of an expression, in terms of variables."""
        if isinstance(x, Const):
            return exactly(int(x.value))
        if isinstance(x, Var):
            return Limits([Linear({x: 1})], [Linear({x: 1})])
        if isinstance(x, Index):
            limits = exactly(x.constant)
            for v, k in x.terms:
                limits = limits.plus(self.of(v), k) if isinstance(k, int) else _UNKNOWN
            return limits
        if not isinstance(x, Call) or len(x.args) != 2:
            return _UNKNOWN
        a, b = x.args
        if x.function in ("add", "sub"):
            return self.of(a).plus(self.of(b), 1 if x.function == "add" else -1)
        if x.function == "mul" and isinstance(a, Const):
            a, b = b, a
        if x.function == "mul" and isinstance(b, Const):
            return exactly(0).plus(self.of(a), int(b.value))
        if x.function == "fmin":
            return Limits([], [*self.of(a).high, *self.of(b).high])
        if x.function == "fmax":
            return Limits([*self.of(a).low, *self.of(b).low], [])
        return _UNKNOWN

    def resolve(self, xs: Sequence[Linear], upper: bool) -> list[Linear]:
        """Replace variables by their bounds, those that were defined last first."""
        order = {v: n for n, v in enumerate(self.known)}
        bounds: list[Linear] = []
        left = [*xs]
        while left:
            x = left.pop()
            inner = max([v for v in x.terms if v in order], key=order.__getitem__, default=None)
            if inner is None:
                bounds.append(x)
                continue
            k = x.terms[inner]
            rest = x.plus(Linear({inner: 1}), -k)
            limits = self.known[inner]
            left += _sums([rest], limits.high if (k > 0) == upper else limits.low, k)
            if len(bounds) + len(left) > MOST:
                return []
        return bounds

    def leaves(self, x: Limits, length: Limits) -> bool:
        """Return whether a number with these bounds is negative, or not less than a length."""
        above = [y.plus(n, -1) for y in self.resolve(x.high, True) for n in length.low]
        below = [y for y in self.resolve(x.low, False)]
        after = [y.constant >= 0 for y in above if not y.terms]
        before = [y.constant < 0 for y in below if not y.terms]
        return (bool(after) and all(after)) or (bool(before) and all(before))
