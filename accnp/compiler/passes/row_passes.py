"""Split a kernel that reduces rows into the passes over a row, for `reduce_rows.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from accnp.compiler.loops.ir import (
    Call,
    Carried,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Memory,
    Reduce,
    Reduction,
    Stmt,
    Store,
    Var,
)
from accnp.compiler.loops.types import I8, DType
from accnp.compiler.loops.visiting import map_body, subexpressions
from accnp.compiler.passes.copies import Body
from accnp.compiler.passes.replace_variables import replaced
from accnp.compiler.unsupported import Unsupported
from accnp.ir.op import as_tuple

__all__ = [
    "BLOCK", "ELEMENT", "Key", "Lifetime", "Pass", "assign_shared_arrays", "passes_of",
    "value_lifetimes",
]  # fmt: skip

BLOCK = 1024  # elements of a part of a row that is reduced at a time
ELEMENT = Var("number of an element")  # the index in the statements of a pass; no name of a kernel
Key = tuple[Memory, object]  # memory and an index, which may depend on the number of the element
_ZERO = Const(0, I8)


class Pass(NamedTuple):
    """One pass over the elements from start to stop, whose number is `ELEMENT`: the statements for
    one element, the reductions, and how their results are combined with those of earlier parts.

    It may be skipped unless `needed` is true.
    """

    start: Expr
    stop: Expr
    steps: Body
    reductions: tuple[Reduction, ...]
    carried: tuple[Carried, ...]
    needed: Expr | None = None

    @property
    def indices(self) -> list[Let]:
        """The statements that compute indices from the number of the element."""
        known = {ELEMENT}
        index_steps: list[Let] = []
        for s in self.steps:
            if not isinstance(s, Let) or s.var.dtype != I8 or not _reads(s.value, known):
                continue
            parts = [*subexpressions(s.value)]
            own = {v for v in parts if isinstance(v, Var)} & self.assigned
            if own <= known and not any(isinstance(x, Load) for x in parts):
                index_steps.append(s)
                known.add(s.var)
        return index_steps

    @property
    def assigned(self) -> set[Var]:
        return {s.var for s in self.steps if isinstance(s, Let)}

    @property
    def loads(self) -> list[Let]:
        """The loads whose indices do not depend on other loads."""
        own = self.assigned - {s.var for s in self.indices}
        return [
            s for s in self.steps
            if isinstance(s, Let) and isinstance(s.value, Load) and not _reads(s.value.index, own)
        ]  # fmt: skip

    def key(self, memory: Memory, index: Expr) -> Key:
        """Return a key for the index of an access, to find it again in another pass."""
        values = {s.var: s.value for s in self.indices}

        def of(x: Expr) -> object:
            if isinstance(x, Var):
                return of(values[x]) if x in values else x
            if isinstance(x, Index):
                terms = [(of(v), of(k) if isinstance(k, Var) else k) for v, k in x.terms]
                return ("index", tuple(terms), x.constant)
            if isinstance(x, Call):
                return (x.function, *map(of, x.args))
            return x

        return memory, of(index)


def _reads(x: Expr, variables: set[Var]) -> bool:
    return any(part in variables for part in subexpressions(x))


def passes_of(row: Sequence[Stmt]) -> list[Pass | Let | Store]:
    """Return the statements for a row, with its loops as passes.

    Raises
    ------
    Unsupported
        If there are other statements.
    """
    passes: list[Pass | Let | Store] = []
    for s in row:
        if isinstance(s, Let | Store):
            passes.append(s)
        elif isinstance(s, For) and s.step == BLOCK and isinstance(s.body[-1], Reduce):
            inner = s.body[-1]
            assert isinstance(inner, Reduce)
            known: dict[Var, Expr] = {s.index: _ZERO, inner.index: ELEMENT}
            reductions = [f._replace(value=replaced(f.value, known)) for f in inner.reductions]
            stop, needed = s.stop, None
            if isinstance(stop, Call) and stop.function == "select":
                needed, stop, _ = stop.args
            steps = _body(inner.body, known)
            passes.append(Pass(s.start, stop, steps, tuple(reductions), s.carried, needed))
        elif isinstance(s, For) and s.step == 1 and not s.carried:
            passes.append(Pass(s.start, s.stop, _body(s.body, {s.index: ELEMENT}), (), ()))
        else:
            raise Unsupported("rows with other statements")
    return passes


def _body(body: Sequence[Stmt], known: dict[Var, Expr]) -> Body:
    steps = [s for s in map_body(body, lambda x: replaced(x, known)) if isinstance(s, Let | Store)]
    if len(steps) < len(body):
        raise Unsupported("a pass with other statements")
    return steps


class Lifetime(NamedTuple):
    """A value of each element that a pass loads or computes, and later passes load: the number of
    the first pass, and of the last."""

    dtype: DType
    first: int
    last: int
    stored: bool  # whether it is a result, of which only the last value is stored


def value_lifetimes(passes: Sequence[Pass]) -> dict[Key, Lifetime]:
    """Return the values that passes load after earlier ones have loaded or computed them, by
    index."""
    first: dict[Key, int] = {}
    last: dict[Key, int] = {}
    types: dict[Key, DType] = {}
    results = {p.key(s.buffer, s.index) for p in passes for s in p.steps if isinstance(s, Store)}
    for k, p in enumerate(passes):
        stored = [(p.key(s.buffer, s.index), s.buffer) for s in p.steps if isinstance(s, Store)]
        loaded = [(p.key(s.value.buffer, s.value.index), s.value.buffer)
                  for s in p.loads if isinstance(s.value, Load)]  # fmt: skip
        here = {key for key, _ in stored}
        for key, buffer in (*loaded, *stored):
            moves = _is_per_element(key[1])
            again = key in first and first[key] < k
            if again and moves and (key in results or key not in here):
                types[key] = buffer.element
            first.setdefault(key, k)
            last[key] = k
    return {
        key: Lifetime(of, first[key], last[key], key in results)
        for key, of in sorted(types.items(), key=lambda item: first[item[0]])
    }


def _is_per_element(x: object) -> bool:
    """Return whether an index depends on the number of the element."""
    return x == ELEMENT or (isinstance(x, tuple) and any(map(_is_per_element, as_tuple(x))))


def assign_shared_arrays(
    lifetimes: dict[Key, Lifetime], length: int, room: int
) -> tuple[list[DType], dict[Key, int]]:
    """Return the types of arrays of `length` elements for kept values, of at most `room` bytes in
    total, and the number of the array of each value. Values with different lifetimes may share an
    array."""
    shelves: list[tuple[DType, int]] = []  # type, and the last pass that loads it
    places: dict[Key, int] = {}
    for key, value in lifetimes.items():
        for k, (of, last) in enumerate(shelves):
            if of == value.dtype and last <= value.first and value.stored:
                shelves[k], places[key] = (of, value.last), k
                break
        else:
            size = length * sum([of.size for of, _ in shelves] + [value.dtype.size])
            if size <= room:
                places[key] = len(shelves)
                shelves.append((value.dtype, value.last))
    return [of for of, _ in shelves], places
