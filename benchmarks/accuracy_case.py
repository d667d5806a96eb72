"""Define `Case`, the description of a function whose accuracy is measured, and `Cases`, a list of
them. Also contains helper functions that compute exact values with mpmath, which is imported on
first use.
"""

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
    """A function whose accuracy is measured: its name in accnp, its exact value and its domain."""

    name: str
    kind: str
    exact: Callable[..., Any]
    domains: tuple[Domain, ...]
    peer: str  # of NumPy or SciPy, "" where these have none
    spots: tuple[float, ...] = ()  # where cancellation is likely: zeros of the function
    share: int = 1  # of the number of points: fewer where mpmath takes long
    whole: int = 0  # number of leading arguments that are integers
    hangs: bool = (
        False  # JAX's function does not terminate for some arguments, so it is not measured
    )
    note: str = ""  # which form of the function it is
    form: Form | None = None  # the function as called here; without it, as it is
    peer_form: Form | None = None  # the same for the peer
    allowed: float = (
        0.0  # ulp that are allowed in addition to the bar, in the test: the table says "over"
    )
    row: int = 0  # length of the vector that is the argument, the result is one

    @property
    def label(self) -> str:
        """The name shown in the table."""
        return self.name.removeprefix("numpy.") + (f" ({self.note})" if self.note else "")


class Cases(list[Case]):
    """A list of cases in the order of the table."""

    def add(
        self, kind: str, name: str, exact: Any, *domains: Domain, peer: str = "-", **more: Any
    ) -> None:
        """Append a case; its peer is the function of the same name unless another one is given."""
        self.append(Case(name, kind, exact, domains, name if peer == "-" else peer, **more))


def mpmath() -> Any:
    """Return mpmath's context `mp`."""
    return importlib.import_module("mpmath").mp


def wide(f: Callable[..., Any], bits: int = 600) -> Callable[..., Any]:
    """Wrap a formula that suffers from cancellation so that it is evaluated with more digits."""

    def call(*xs: Any) -> Any:
        with mpmath().workprec(bits):
            return f(*xs)

    return call
