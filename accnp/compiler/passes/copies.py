"""Copies of statements with new variables, for passes that process several steps at once.

`Copies` creates names and renamed copies, and `interleave_copies` interleaves the statements of
several copies so that their loads are issued early.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from accnp.compiler.loops.ir import Expr, Kernel, Let, Load, Store, Var
from accnp.compiler.loops.types import I8, Type
from accnp.compiler.loops.visiting import make_unique_name, map_statement, names_of, subexpressions
from accnp.compiler.passes.replace_variables import replaced

__all__ = ["Body", "Copies", "interleave_copies"]

Body = list[Let | Store]


class Copies:
    """Makes new names for a kernel, and copies of its statements.

    Parameters
    ----------
    kernel : Kernel
        Kernel whose names must not be used again.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.names = names_of(kernel)

    def fresh(self, v: Var) -> Var:
        """Return a new variable with the type of another one."""
        name = make_unique_name(v.name, self.names)
        self.names.add(name)
        return v._replace(name=name)

    def new(self, name: str, of: Type | None = None) -> Var:
        """Return a new variable; an index by default."""
        return self.fresh(Var(name) if of is None else Var(name, of))

    def copy(self, body: Sequence[Let | Store], known: dict[Var, Expr]) -> Body:
        """Return a copy of statements in which the variables in `known` are replaced.

        The variables that the statements assign get new names, which are added to `known`.
        """
        copies: Body = []
        for s in body:
            statement = map_statement(s, lambda x: replaced(x, known))
            if isinstance(statement, Let):
                var = known[statement.var] = self.fresh(statement.var)
                statement = statement._replace(var=var)
            assert isinstance(statement, Let | Store)
            copies.append(statement)
        return copies


def interleave_copies(copies: Sequence[Body]) -> Body:
    """Return the statements of several copies in an order that issues loads early.

    First come the indices, then the loads at these indices, which are all issued before the first
    result is needed, then the other statements, and the stores last.
    """
    indices: Body = []
    early: Body = []
    late: Body = []
    for copy in copies:
        lets = [s for s in copy if isinstance(s, Let)]
        own = {s.var for s in lets}
        known: Body = []
        for s in lets:
            loads = any(isinstance(part, Load) for part in subexpressions(s.value))
            if s.var.dtype == I8 and not loads and not _reads_any(s.value, own):
                known.append(s)
                own.remove(s.var)
        first = [
            s for s in lets if isinstance(s.value, Load) and not _reads_any(s.value.index, own)
        ]
        indices += known
        early += first
        late += [s for s in lets if s not in first and s not in known]
        late += [s for s in copy if isinstance(s, Store)]
    return [*indices, *early, *late]


def _reads_any(x: Expr, variables: Set[Var]) -> bool:
    return any(part in variables for part in subexpressions(x) if isinstance(part, Var))
