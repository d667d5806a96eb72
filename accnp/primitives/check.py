"""Run-time checks: error kinds, the error state of a checked program, and the op `check`.

For each kind of error, the state contains whether an error has happened, the code of the first one,
and its payload, the values for its message. Codes are assigned in increasing order while programs
are recorded, and `meanings` maps codes to descriptions. `check` is an operation that raises if its
state contains an error. `transforms/checkify.py` adds checks to programs; `api/effects/` contains
the public functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.node import Node, literal
from accnp.ir.op import ZERO, Op, o, register
from accnp.ir.trace import current
from accnp.primitives.kinds import broadcast_to, full
from accnp.pytree import PyTreeDef

if TYPE_CHECKING:
    from accnp.ir.op_types import Params
    from accnp.primitives.rule_types import Tools

__all__ = [
    "BatchedError", "CheckError", "Description", "DivisionByZeroError", "FailedCheckError",
    "JaxRuntimeError", "Kind", "NaNError", "OOBError", "State", "any_state", "first_error",
    "no_check", "record_check", "state_of",
]  # fmt: skip

_BOOL = np.dtype(bool)
_INT = np.dtype(np.int32)

UNCHECKED = (
    "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means "
    "you tried to stage (jit/scan/pmap/...) a `check` without functionalizing it through "
    "`checkify.checkify`."
)


class JaxRuntimeError(ValueError):
    """Error of a failed check, raised by `check` and `Error.throw`.

    Examples
    --------
    >>> from accnp.experimental import checkify
    >>> try:
    ...     checkify.check(False, "negative")
    ... except checkify.JaxRuntimeError as error:
    ...     print(str(error).split(" (")[0])
    negative
    """


# --- kinds of errors -----------------------------------------------------------------------------


class CheckError(Exception):
    """An error of a checked program; its text is that of `Error.get()`."""


class DivisionByZeroError(CheckError):
    """A number was divided by zero."""


class NaNError(CheckError):
    """An operation produced a NaN."""


class OOBError(CheckError):
    """An index was out of bounds."""


class FailedCheckError(CheckError):
    """A user's `check` failed."""


class BatchedError(CheckError):
    """Errors of several examples of a batch, by their index."""

    def __init__(self, errors: dict[tuple[int, ...], CheckError]) -> None:
        self.error_mapping = errors
        lines = [f"at mapped index {', '.join(map(str, k))}: {e}" for k, e in errors.items()]
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Kind:
    """A class of errors and the types of their payloads; errors of a kind share a slot."""

    error_type: type[CheckError]
    avals: tuple[tuple[tuple[int, ...], str], ...] = ()

    def __lt__(self, other: Kind) -> bool:
        return (self.error_type.__name__, self.avals) < (other.error_type.__name__, other.avals)


@dataclass(frozen=True)
class Description:
    """The meaning of a code: error class, format string, and the structure of its arguments."""

    error_type: type[CheckError]
    text: str
    tree: PyTreeDef | None = None  # of (args, kwargs); None: the arguments are one payload array
    site: str = field(default="", compare=False)

    def exception(self, payload: Sequence[Any]) -> CheckError:
        """Return the exception with the values of its payload."""
        if self.tree is None:
            text = self.text.format(*[int(v) for x in payload for v in np.asarray(x)])
        else:
            args, kwargs = self.tree.unflatten(payload)
            text = self.text.format(*args, **kwargs)
        error = self.error_type(text)
        if self.site:
            error.add_note(f"in the check recorded at {self.site}")
        return error


_codes = itertools.count(1)

# --- states --------------------------------------------------------------------------------------

Place = tuple[Node, Node, list[Node]]  # happened, code, payload


class State:
    """The error state of a checked program, as nodes, and the meanings of its codes."""

    __slots__ = ("meanings", "places")

    def __init__(self, places: dict[Kind, Place], meanings: dict[int, Description]) -> None:
        self.places = places
        self.meanings = meanings

    def leaves(self) -> list[Node]:
        """Return all nodes, sorted by kind."""
        return [x for k in sorted(self.places) for x in _nodes_of(self.places[k])]

    def like(self, leaves: Sequence[Node]) -> State:
        """Return a state of the same kinds with other nodes."""
        return State(_places_of(self.places, leaves), self.meanings)

    def with_kinds(self, kinds: Sequence[Kind]) -> State:
        """Return the state with additional kinds, for which no error has happened."""
        missing = {k: _no_error(k) for k in kinds if k not in self.places}
        return State({**self.places, **missing}, self.meanings)

    def failed(self, happened: Node, meaning: Description, payload: Sequence[Node]) -> State:
        """Add an error that may have happened; an earlier one of its kind has precedence."""
        code = next(_codes)
        payload = [
            o.convert_element_type(x, new_dtype=x.aval.dtype, weak_type=False)
            if x.aval.weak_type
            else x
            for x in payload
        ]
        place = (happened, literal(code, _INT, False), payload)
        return self.add(State({kind_of(meaning, payload): place}, {code: meaning}))

    def add(self, other: State) -> State:
        """Return this state with the errors of another one where this state has none."""
        places = dict(self.places)
        for kind, new in other.places.items():
            places[kind] = merged(places[kind], new) if kind in places else new
        return State(places, {**self.meanings, **other.meanings})


def _nodes_of(place: Place) -> list[Node]:
    return [place[0], place[1], *place[2]]


def kind_of(meaning: Description, payload: Sequence[Node]) -> Kind:
    """Return the kind of an error with this payload."""
    avals = tuple([(x.aval.shape, x.aval.dtype.name) for x in payload])
    return Kind(meaning.error_type, avals)


def _no_error(kind: Kind) -> Place:
    payload = [full(shape, 1, np.dtype(name)) for shape, name in kind.avals]
    return literal(False, _BOOL, False), literal(-1, _INT, False), payload


def merged(first: Place, second: Place) -> Place:
    """Return the first of two errors of the same kind, if it has happened, else the second."""
    there = first[0]
    pairs = zip(_nodes_of(first)[1:], _nodes_of(second)[1:], strict=True)
    code, *payload = [o.select_n(broadcast_to(there, x.aval.shape, ()), y, x) for x, y in pairs]
    return o.or_(there, second[0]), code, payload


def any_state(state: State) -> State:
    """Reduce the states of a batch (leading axis) to one; of several errors, keep the last."""
    places: dict[Kind, Place] = {}
    for kind, (happened, code, payload) in state.places.items():
        n = happened.aval.shape[0]
        number = o.iota(dtype=_INT, shape=(n,), dimension=0)
        none = full((n,), 0, _INT)
        last = o.reduce_max(o.select_n(happened, none, number), axes=(0,))
        values = [_row(x, last) for x in (code, *payload)]
        places[kind] = (o.reduce_or(happened, axes=(0,)), values[0], values[1:])
    return State(places, state.meanings)


def _row(x: Node, at: Node) -> Node:
    """Return row `at` of a node."""
    rest = x.aval.shape[1:]
    zeros = [literal(0, _INT, False)] * len(rest)
    row = o.dynamic_slice(x, at, *zeros, slice_sizes=(1, *rest))
    return o.reshape(row, new_sizes=rest, dimensions=None)


def no_check(debug: bool) -> list[Node]:
    """Return the compiler's replacement of a check: nothing if it is for checked programs only.

    Raises:
        ValueError: the program was not transformed by `checkify`.
    """
    if debug:
        return []
    raise ValueError(UNCHECKED)


# --- the op --------------------------------------------------------------------------------------


def record_check(state: State, debug: bool) -> None:
    """Record an operation that raises if the state contains an error.

    With `debug` it applies to checked programs only and does nothing elsewhere.
    """
    if debug and current() is None:
        return
    kinds = tuple(sorted(state.places))
    o.check(
        *state.leaves(), kinds=kinds, meanings=tuple(sorted(state.meanings.items())), debug=debug
    )


def state_of(
    xs: Sequence[Node], kinds: Sequence[Kind], meanings: Iterable[tuple[int, Description]]
) -> State:
    """Return the state that consists of the operands of a check."""
    return State(_places_of(kinds, xs), dict(meanings))


def _places_of(kinds: Iterable[Kind], leaves: Iterable[Node]) -> dict[Kind, Place]:
    rest = iter(leaves)
    return {k: (next(rest), next(rest), [next(rest) for _ in k.avals]) for k in sorted(kinds)}


def first_error(
    places: Mapping[Kind, tuple[Any, Any, Sequence[Any]]], meanings: dict[int, Description]
) -> CheckError | None:
    """Return the error with the smallest code that has happened; for values, not nodes."""
    there = [(int(code), k) for k, (happened, code, _) in places.items() if happened]
    if not there:
        return None
    code, kind = min(there, key=lambda pair: pair[0])
    return meanings[code].exception(places[kind][2])


def _run(
    *arrays: np.ndarray,
    kinds: Sequence[Kind],
    meanings: Iterable[tuple[int, Description]],
    debug: bool,
    **_: object,
) -> tuple[()]:
    if debug:
        return ()
    rest = iter(arrays)
    places = {k: (next(rest), next(rest), [next(rest) for _ in k.avals]) for k in kinds}
    error = first_error(places, dict(meanings))
    if error is not None:
        raise JaxRuntimeError(str(error)) from error
    return ()


def _batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    wide = [x if b else broadcast_to(x, (size, *x.aval.shape), tuple(range(1, x.aval.ndim + 1)))
            for x, b in zip(xs, batched, strict=True)]  # fmt: skip
    state = any_state(state_of(wide, params["kinds"], params["meanings"]))
    record_check(state, params["debug"])
    return [], []


def _infer(*_: Aval, **__: object) -> tuple[()]:
    return ()


CHECK = register(
    Op(
        "check",
        "callback",
        _infer,
        numpy=_run,
        jvp=ZERO,
        batch=_batch,
        cost=1000,
        show=lambda p: {"debug": p["debug"]},
        effect=True,
        in_program=lambda p: no_check(p["debug"]),
        immediate=True,
    )
)
