"""`Case`, the description of a function whose accuracy is measured, `Cases` (a list of them), and
helper functions for exact values by mpmath, which is imported late."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

BAR = {"elementary": 2.0, "special": 4.0}
Domain = tuple[float, float]
MAX = math.inf  # a bound of a domain: the largest number of the dtype
EVERY, PLUS, UNIT, INNER = (-MAX, MAX), (0.0, MAX), (-1.0, 1.0), (0.0, 1.0)
Form = Callable[[Callable[..., Any]], Callable[..., Any]]


class Case(NamedTuple):
    """One function: its name below accnp, what it should be, where."""

    name: str
    kind: str
    exact: Callable[..., Any]
    domains: tuple[Domain, ...]
    peer: str  # of NumPy or SciPy, "" where these have none
    spots: tuple[float, ...] = ()  # where cancellation is likely: zeros of the function
    share: int = 1  # of the number of points: fewer where mpmath takes long
    whole: int = 0  # so many first arguments are whole numbers
    hangs: bool = False  # jax's does not come back for some arguments: it is not asked
    note: str = ""  # which form of the function it is
    form: Form | None = None  # the function as called here; without it, as it is
    peer_form: Form | None = None  # the same for the peer
    allowed: float = 0.0  # more ulp than the bar, in the test: the table says "over"
    row: int = 0  # the argument is a row of so many numbers, the result is one

    @property
    def label(self) -> str:
        """The name as the table shows it."""
        return self.name.removeprefix("numpy.") + (f" ({self.note})" if self.note else "")


class Cases(list[Case]):
    """Cases in the order of the table."""

    def add(
        self, kind: str, name: str, exact: Any, *domains: Domain, peer: str = "-", **more: Any
    ) -> None:
        """Append a case; its peer has the same name if no other is given."""
        self.append(Case(name, kind, exact, domains, name if peer == "-" else peer, **more))


def mpmath() -> Any:
    """The context of mpmath."""
    return importlib.import_module("mpmath").mp


def wide(f: Callable[..., Any], bits: int = 600) -> Callable[..., Any]:
    """A formula that cancels, with more digits."""

    def call(*xs: Any) -> Any:
        with mpmath().workprec(bits):
            return f(*xs)

    return call
