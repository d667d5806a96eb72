"""The cost report of `einsum_path`, in the format of opt_einsum, which JAX uses."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import prod
from typing import Any

__all__ = ["PathInfo", "report"]

_LISTED = 20  # with more remaining operands, a step omits them
_LINE = "-" * 80


class PathInfo:
    """The costs of contracting in a given order, as `opt_einsum` counts them.

    Attributes: `eq` (the whole formula), `input_subscripts`, `output_subscript`, `indices` (all
    labels), `shapes`, `size_dict` (the length of each label), `path`; one entry per step in
    `contraction_list` (operands, labels summed, formula, operands left, kind of product),
    `scale_list` (labels in the loops) and `size_list` (elements made); `naive_cost`, `opt_cost`,
    `speedup` and `largest_intermediate` as decimal numbers.

    >>> import accnp as jnp
    >>> _, info = jnp.einsum_path("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 4)))
    >>> info.eq, int(info.opt_cost), info.size_list
    ('ij,jk->ik', 48, [8])
    """

    def __init__(self, terms: Sequence[str], result: str, sizes: dict[str, int], path: Any) -> None:
        self.input_subscripts, self.output_subscript = ",".join(terms), result
        self.eq = f"{self.input_subscripts}->{result}"
        self.size_dict, self.path = sizes, path
        self.indices = frozenset("".join(terms))
        self.shapes = [tuple([sizes[c] for c in t]) for t in terms]
        self.contraction_list: list[tuple[Any, ...]] = []
        self.scale_list: list[int] = []
        self.size_list: list[int] = []
        shared = sum(len(set(t)) for t in terms) > len(self.indices)
        self.naive_cost = Decimal(_operations(self.indices, shared, len(terms), sizes))
        self.opt_cost = Decimal(0)

    def add_step(self, places: tuple[int, ...], left: list[str], shapes: list[Any]) -> None:
        """Contract the operands at `places` of `left`, whose result becomes the last one."""
        sizes = self.size_dict
        terms = [left.pop(i) for i in places]
        lengths = [shapes.pop(i) for i in places]
        labels = frozenset("".join(terms))
        remaining = labels & frozenset("".join([*left, self.output_subscript]))
        # The last step has the requested order of labels, others have the order of occurrence.
        order = self.output_subscript if not left else "".join(terms)
        out_labels = "".join([c for c in dict.fromkeys(order) if c in remaining])
        kind = _contraction_kind(terms, out_labels, labels - remaining, lengths)
        left.append(out_labels)
        shapes.append(_lengths(terms, lengths, out_labels))
        rest = tuple(left) if len(left) <= _LISTED else None
        formula = ",".join(terms) + "->" + out_labels
        self.contraction_list.append((places, labels - remaining, formula, rest, kind))
        self.scale_list.append(len(labels))
        self.size_list.append(prod([sizes[c] for c in remaining]))
        self.opt_cost += _operations(labels, labels != remaining, len(terms), sizes)

    @property
    def speedup(self) -> Decimal:
        return self.naive_cost / max(self.opt_cost, Decimal(1))

    @property
    def largest_intermediate(self) -> Decimal:
        return Decimal(max(self.size_list, default=1))

    def __repr__(self) -> str:
        facts: list[tuple[str, Any]] = [
            ("Complete contraction", self.eq),
            ("Naive scaling", len(self.indices)),
            ("Optimized scaling", max(self.scale_list, default=0)),
            ("Naive FLOP count", f"{self.naive_cost:.3e}"),
            ("Optimized FLOP count", f"{self.opt_cost:.3e}"),
            ("Theoretical speedup", f"{self.speedup:.3e}"),
            ("Largest intermediate", f"{self.largest_intermediate:.3e} elements"),
        ]
        lines = [f"{name:>22}:  {value}" for name, value in facts]
        lines += [_LINE, f"{'scaling':>6} {'BLAS':>11} {'current':>22} {'remaining':>37}", _LINE]
        for scale, (_, _, formula, rest, kind) in zip(
            self.scale_list, self.contraction_list, strict=True
        ):
            after = "..." if rest is None else ",".join(rest) + "->" + self.output_subscript
            # opt_einsum formats False as a number, which prints 0.
            width = max(0, 56 - max(22, len(formula)))
            lines.append(f"{scale:>4} {kind or 0:>14} {formula:>22}    {after:>{width}}")
        return "\n".join(lines)


def report(
    terms: Sequence[str], result: str, shapes: Sequence[tuple[int, ...]], path: Any
) -> PathInfo:
    """Follow a path step by step and return its costs."""
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for c, n in zip(term, shape, strict=True):
            if sizes.setdefault(c, n) == 1:
                sizes[c] = n
            elif n not in (1, sizes[c]):
                raise ValueError(
                    f"einsum_path: label {c!r} has the lengths {sizes[c]} and {n} in shapes "
                    f"{list(shapes)}; use one length, or 1, for each label"
                )
    info = PathInfo(terms, result, sizes, path)
    left, lengths = list(terms), [tuple(s) for s in shapes]
    for places in path:
        info.add_step(tuple(sorted(places, reverse=True)), left, lengths)
    return info


def _operations(labels: Any, summed: bool, operands: int, sizes: dict[str, int]) -> int:
    """Count one operation for each product of two operands, and one more for each sum."""
    return prod([sizes[c] for c in labels]) * (max(1, operands - 1) + summed)


def _lengths(
    terms: Sequence[str], shapes: Sequence[tuple[int, ...]], out_labels: str
) -> tuple[int, ...]:
    pairs = [p for t, s in zip(terms, shapes, strict=True) for p in zip(t, s, strict=True)]
    return tuple([max([n for c, n in pairs if c == label]) for label in out_labels])


def _contraction_kind(
    terms: list[str], out_labels: str, summed: frozenset[str], shapes: list[tuple[int, ...]]
) -> str | bool:
    """Return the BLAS product that a step is; "/EINSUM" where einsum would be as fast."""
    if len(terms) != 2:
        return False
    a, b = terms
    if len(set(a)) < len(a) or len(set(b)) < len(b):  # a diagonal
        return False
    # In a matrix product, shared labels are summed, and labels of a single operand are kept.
    if any((c in a and c in b) == (c in out_labels) for c in a + b):
        return False
    if any(shapes[0][a.index(c)] != shapes[1][b.index(c)] for c in summed):  # broadcast
        return False
    if not summed:
        return "OUTER/EINSUM"
    if set(a) == set(b):
        return "DOT" if a == b else "DOT/EINSUM"
    n = len(summed)
    if {a[:n], a[-n:]} & {b[:n], b[-n:]}:  # summed axes are contiguous and in the same order
        return "GEMM"
    return "GEMV/EINSUM" if set(a) == summed or set(b) == summed else "TDOT"
