"""The pieces of a jaxpr: variables, literals, equations, programs. In: made by `ir/jaxpr.py`. Out:
what users inspect.

Their text is written by `ir/printer.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval

__all__ = ["ClosedJaxpr", "DropVar", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "Var"]


class Primitive:
    """The name of an operation."""

    __slots__ = ("multiple_results", "name")

    def __init__(self, name: str, multiple_results: bool) -> None:
        self.name = name
        self.multiple_results = multiple_results

    def __repr__(self) -> str:
        return self.name


class Var:
    """A variable of a jaxpr: something with an aval."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        a = self.aval
        return f"Var(id={id(self)}):{a.dtype.name}[{','.join(map(str, a.shape))}]"


class DropVar(Var):
    """A result that nobody uses."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A scalar written into an equation."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: Aval) -> None:
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.text()})"

    def text(self) -> str:
        """Return the value as the dtype rounds it."""
        return str(np.asarray(self.val).astype(self.aval.dtype).item())


class JaxprEqn:
    """One equation: `outvars = primitive[params] invars`."""

    __slots__ = ("invars", "outvars", "params", "primitive", "site")

    def __init__(
        self,
        primitive: Primitive,
        params: dict[str, Any],
        invars: list[Any],
        outvars: list[Var],
        site: Any = None,
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.invars = invars
        self.outvars = outvars
        self.site = site


class Jaxpr:
    """Inputs, constants, equations in order, and outputs."""

    __slots__ = ("constvars", "debug_name", "eqns", "invars", "outvars")

    def __init__(
        self,
        constvars: list[Var],
        invars: list[Var],
        outvars: list[Any],
        eqns: list[JaxprEqn],
        debug_name: str = "",
    ) -> None:
        self.constvars = constvars
        self.invars = invars
        self.outvars = outvars
        self.eqns = eqns
        self.debug_name = debug_name


class ClosedJaxpr:
    """A jaxpr and the values of its constants."""

    __slots__ = ("consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        self.jaxpr = jaxpr
        self.consts = list(consts)

    @property
    def literals(self) -> list[Any]:
        """The constants, by their older name."""
        return self.consts

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations, in order."""
        return self.jaxpr.eqns

    @property
    def in_avals(self) -> list[Aval]:
        """The avals of the inputs."""
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[Aval]:
        """The avals of the outputs."""
        return [v.aval for v in self.jaxpr.outvars]
