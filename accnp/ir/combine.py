"""The functions with which reductions combine two numbers.

`COMBINES` contains a record for each, by name: what the interpreter, both back ends and the type
rules need to know about it. Kernels name the function (`Fold.combine`). A reduction op declares its
own function with the same record (`primitives.kinds.reduction`), so nothing else lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["COMBINES", "Combine", "declare_combine", "each_combine"]


@dataclass(frozen=True)
class Combine:
    """An associative and commutative function of two numbers.

    Attributes:
        name: its name in kernels.
        function: the scalar function of kernels that computes it.
        reference: the same function of NumPy arrays.
        identity: (dtype of numbers) -> the identity element, from which reductions start.
        kinds: the kinds of numbers it is defined for, as in `Op.dtypes`; kernels reduce bools with
            `of_bools` instead.
        of_bools: name of the reduction that gives the same result for bools; "" for itself.
        order: ">" or "<" if the result is the larger or smaller operand. Of equal ones the first
            remains, and nan does. Each step takes longer than an addition, so these reductions have
            64 lanes instead of 32.
    """

    name: str
    function: str
    reference: Callable[..., Any]
    identity: Callable[[np.dtype], Any]
    kinds: str = "biufc"
    of_bools: str = ""
    order: str = ""

    @property
    def lanes(self) -> int:
        """The number of lanes in which a block is reduced."""
        return 64 if self.order else 32

    @property
    def lane_function(self) -> str:
        """The scalar function that combines a lane and an element."""
        return {"": self.function, ">": "join_max", "<": "join_min"}[self.order]


COMBINES: dict[str, Combine] = {}


_uses: list[Callable[[str], None]] = []


def declare_combine(combine: Combine) -> str:
    """Add a function to the table and return its name."""
    COMBINES[combine.name] = combine
    for use in _uses:
        use(combine.name)
    return combine.name


def each_combine(use: Callable[[str], None]) -> None:
    """Call `use` with the name of each function, and of those that are declared later."""
    for name in COMBINES:
        use(name)
    _uses.append(use)


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _all_bits(dtype: np.dtype) -> Any:
    return True if dtype.kind == "b" else int(np.iinfo(dtype).max) if dtype.kind == "u" else -1


for _combine in (
    Combine("sum", "add", np.add, lambda dtype: 0, of_bools="or"),
    Combine("prod", "mul", np.multiply, lambda dtype: 1, of_bools="and"),
    Combine("max", "fmax", np.maximum, _lowest, "biuf", of_bools="or", order=">"),
    Combine("min", "fmin", np.minimum, _highest, "biuf", of_bools="and", order="<"),
    Combine("and", "and", np.bitwise_and, _all_bits, "biu"),
    Combine("or", "or", np.bitwise_or, lambda dtype: 0, "biu"),
    Combine("xor", "xor", np.bitwise_xor, lambda dtype: 0, "biu"),
):
    declare_combine(_combine)
