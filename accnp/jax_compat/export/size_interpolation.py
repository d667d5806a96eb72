"""Interpolation of programs over sizes: numbers in them become polynomials in the symbols.

A function is recorded at several sizes, and numbers that differ are replaced by polynomials through
their values. If the function performs the same operations at all sizes, the result is exact, since
there are more points than coefficients.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from accnp.errors import InconclusiveDimensionOperation
from accnp.jax_compat.export.symbolic_sizes import MOST_POWER, Dim, SymbolicScope

__all__ = ["Fit", "number_at"]

CHECKS = 2  # additional points, for verification
# Divisions of sizes by 2 and 3 round. Sizes with all remainders are used, so that a formula that is
# valid only for odd sizes is not taken for a polynomial.
DIVISORS = (2, 3, 4)


def _monomials(names: Sequence[str]) -> list[tuple[int, ...]]:
    """Powers of each symbol, up to degree 3 for one symbol and 2 for more."""
    degree = 3 if len(names) == 1 else 2
    every = itertools.product(range(degree + 1), repeat=len(names))
    return [p for p in every if sum(p) <= degree]


class Fit:
    """The points for some symbols, and interpolation of numbers at these points.

    Raises:
        ValueError: no values satisfy the constraints.
    """

    def __init__(self, names: Sequence[str], scope: SymbolicScope) -> None:
        self.names = tuple(names)
        self.scope = scope
        self.powers = _monomials(self.names)
        self.points = self._points()
        self.rows = [self._row(p) for p in self.points]

    def _row(self, point: Mapping[str, int]) -> list[int]:
        return [
            math.prod(point[n] ** k for n, k in zip(self.names, p, strict=True))
            for p in self.powers
        ]

    def _points(self) -> list[dict[str, int]]:
        """Return sizes that differ enough from each other and from special ones, as 1 and 2."""
        rng, points = random.Random(0), []
        n_points = len(self.powers) + CHECKS
        for top in (60, 240, 2000):
            for _ in range(4000):
                point = {n: rng.randrange(5, top) for n in self.names}
                distinct = len(set(point.values())) == len(point)
                if distinct and point not in points and self.scope.broken(point) is None:
                    trial = [*points, point]
                    if len(trial) > len(self.powers) or _rank([self._row(p) for p in trial]) == len(
                        trial
                    ):
                        points.append(point)
                if len(points) == n_points:
                    return [*points, *self._of_other_remainders(points)]
        raise ValueError(
            f"found no sizes for {', '.join(self.names)} that keep the constraints "
            f"{self.scope.constraints_str}; say less, or export for each size"
        )

    def _of_other_remainders(self, points: Sequence[dict[str, int]]) -> list[dict[str, int]]:
        """Return points at which each symbol has remainders that it has at none of the given ones;
        constraints may exclude some."""
        rng, extra_points = random.Random(1), []
        missing = {
            (n, m, r)
            for n in self.names
            for m in DIVISORS
            for r in range(m)
            if all(p[n] % m != r for p in points)
        }
        for _ in range(4000):
            if not missing:
                break
            point = {n: rng.randrange(5, 240) for n in self.names}
            new = {(n, m, r) for n, m, r in missing if point[n] % m == r}
            distinct = len(set(point.values())) == len(point)
            if new and distinct and self.scope.broken(point) is None:
                extra_points.append(point)
                missing -= new
        return extra_points

    def merge(self, seen: Sequence[Any]) -> Any:
        """Merge what was recorded at the points."""
        first = seen[0]
        if any(type(x) is not type(first) for x in seen):
            raise self.other(seen)
        if isinstance(first, list):
            if any(len(x) != len(first) for x in seen):
                raise self.other(seen)
            return [self.merge(x) for x in zip(*seen, strict=True)]
        if isinstance(first, dict):
            if any(list(x) != list(first) for x in seen):
                raise self.other(seen)
            return {k: self.merge([x[k] for x in seen]) for k in first}
        if all(x == first or x != x for x in seen):
            return first
        if isinstance(first, bool) or not isinstance(first, int | float):
            raise self.other(seen)
        terms = self._interpolate([Fraction(x) for x in seen])
        if terms is not None:
            return {"poly": terms}
        whole = all(math.isfinite(x) and x == int(x) for x in seen)
        if whole and (terms := self._rounded_down(list(map(int, seen)))) is not None:
            return {"floor": terms}
        if isinstance(first, float) and all(x != 0 for x in seen):
            near = [Fraction(1 / x).limit_denominator(4) for x in seen]
            terms = self._interpolate(near)
            if terms is not None and all(
                math.isclose(x, 1 / y, rel_tol=1e-6) for x, y in zip(seen, near, strict=True)
            ):
                return {"inverse": terms}
        raise self.other(seen)

    def other(self, seen: Sequence[Any]) -> InconclusiveDimensionOperation:
        """Return the error for a function that performs other operations at other sizes."""
        return InconclusiveDimensionOperation(
            "the function does not do the same operations at all sizes of "
            f"{', '.join(self.names)}; got {str(seen[0])[:80]} at {self.points[0]}; branch on "
            "sizes outside of it, or export for each size"
        )

    def _interpolate(self, values: Sequence[Fraction]) -> list[Any] | None:
        """Return the polynomial through values as [powers, numerator, denominator], or None."""
        n = len(self.powers)
        solved = _solve([[Fraction(c) for c in row] for row in self.rows[:n]], values[:n])
        for row, v in zip(self.rows[n:], values[n:], strict=True):
            if sum(c * x for c, x in zip(row, solved, strict=True)) != v:
                return None
        return [
            [list(p), c.numerator, c.denominator]
            for p, c in zip(self.powers, solved, strict=True)
            if c
        ]

    def _rounded_down(self, values: Sequence[int]) -> list[Any] | None:
        """Return the linear function of one symbol that rounds down to these values (`x[::2]`)."""
        if len(self.names) != 1:
            return None
        sizes = [p[self.names[0]] for p in self.points]
        low, high = sizes.index(min(sizes)), sizes.index(max(sizes))
        slope = Fraction(values[high] - values[low], sizes[high] - sizes[low])
        for m in range(2, 9):
            near = round(slope * m)
            for c, s in itertools.product((near, near - 1, near + 1), range(m)):
                k = m * values[low] - c * sizes[low] + s
                if c and all((c * n + k) // m == v for n, v in zip(sizes, values, strict=True)):
                    return [[[0], k, m], [[1], c, m]] if k else [[[1], c, m]]
        return None

    def size(self, merged: Any) -> Any:
        """Return a size of a merged program in terms of the symbols."""
        if not isinstance(merged, dict):
            return merged
        (terms,) = merged.values()
        below = math.lcm(*[den for _, _, den in terms])
        out = Dim(
            {
                tuple((n, k) for n, k in zip(self.names, p, strict=True) if k): num * below // den
                for p, num, den in terms
            },
            self.scope,
        )
        return out // below if below > 1 else out


def _solve(rows: list[list[Fraction]], values: Sequence[Fraction]) -> list[Fraction]:
    """Solve a linear system by elimination."""
    rows = [[*row, v] for row, v in zip(rows, values, strict=True)]
    n = len(rows)
    for i in range(n):
        pivot = next(j for j in range(i, n) if rows[j][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(n):
            if j != i and rows[j][i]:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [row[n] for row in rows]


def _rank(rows: Sequence[Sequence[int]]) -> int:
    left = [[Fraction(x) for x in row] for row in rows]
    rank = 0
    for column in range(len(left[0])):
        pivot = next((r for r in range(rank, len(left)) if left[r][column]), None)
        if pivot is None:
            continue
        left[rank], left[pivot] = left[pivot], left[rank]
        for r in range(rank + 1, len(left)):
            factor = left[r][column] / left[rank][column]
            left[r] = [x - factor * y for x, y in zip(left[r], left[rank], strict=True)]
        rank += 1
    return rank


def number_at(names: Sequence[str], sizes: Mapping[str, int], v: Mapping[str, Any]) -> Any:
    """Return the value of a merged number at these sizes.

    Raises:
        ValueError: it is not a polynomial in the symbols.
    """
    ((kind, terms),) = v.items()
    total = Fraction(0)
    for powers, num, den in terms:
        if len(powers) != len(names) or not all(0 <= k <= MOST_POWER for k in powers):
            raise ValueError(f"the powers of {names} are {str(powers)[:60]}")
        if not (type(num) is int and type(den) is int and den):
            raise ValueError(f"a coefficient is {str(num)[:30]} / {str(den)[:30]}")
        value = math.prod(sizes[n] ** k for n, k in zip(names, powers, strict=True))
        total += Fraction(num, den) * value
    if kind == "inverse":
        return float(1 / total)
    if kind == "floor":
        return math.floor(total)
    return int(total) if total.denominator == 1 else float(total)
