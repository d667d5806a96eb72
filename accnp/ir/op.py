"""The `Op` record: everything that accnp knows about one operation, in one frozen declaration.

In: declarations made in `accnp/primitives/`. Out: the registry `OPS`, and the late-bound `o`,
through which rules record further nodes (`o.mul(t, o.cos(x))`) without importing each other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accnp.forks import imported

__all__ = [
    "CALLS",
    "OPS",
    "ZERO",
    "Linear",
    "Op",
    "distinct_number",
    "o",
    "register",
    "static_key",
]


class _Zero:
    """The derivative rule of an operand that does not influence the output smoothly."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = _Zero()


class Linear:
    """Stands for the linear operand in a transpose rule: it has an aval and no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval


# Kinds of the ops that hold programs; their rules get the transformations.
CALLS = ("call", "loop")


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operation and all its rules.

    In every rule data are positional and static parameters are keywords.

    Attributes:
        name: the primitive's name, as jax prints it.
        kind: "map", "view", "iota", "reduce", "assemble", "opaque", "callback", "call", "loop" or
            "leaf"; says which fields of the lowering are used. "callback" is a call of a function
            of the user's: never merged with another, done at once where values are there. "call"
            means just the program that it holds, which passes inline; "loop" is structured control
            flow over the programs it holds.
        infer: (*avals, **params) -> Aval, or a tuple of them for an op with several results.
        numpy: reference meaning: (*arrays, **params) -> array or tuple of arrays.
        jvp: a tuple with one rule (t, y, *x, **params) -> tangent per operand (or ZERO), or one
            function (ts, y, xs, params) -> tangent(s) that sees all tangents (None = zero), or
            None: no derivative is known. Call ops: (ts, y, xs, params, tools) -> (new primal
            outputs, tangent outputs), lists.
        linearize: call ops only, used for reverse mode in place of `jvp`, same form; the new
            primal outputs must not depend on `ts`, and the tangents only through ops that can be
            transposed.
        transpose: (ct, *inputs, **params) -> one cotangent (or None) per operand; the linear
            operands come as `Linear`.
        batch: (size, xs, batched, params) -> (result(s), batched flag(s)); the batch axis is
            always the leading one.
        scalar: text of the scalar expression, `{0}`, `{1}`... for the operands ("map"); a dict by
            dtype kind where it differs.
        cuda: what does it on a GPU, where no kernel does it well ("opaque"): "module.name" in
            `accnp/primitives/`, the name of a function (xp, *arrays, **params) of arrays of a
            library like NumPy (CuPy), or a function that gets the driver for xp. It gives fresh
            arrays, or None for operands that it does not do: the reference does these.
        block: its kernel on a GPU where a block of threads does each task: "module.name" likewise,
            the name of a function as `kernel`; it gives None for what `cuda` does better.
        strides: (shape, strides, offset, **params) -> (shape, strides, offset), or None if no
            strides express the view ("view").
        combine: "sum", "prod", "max", "min", "and", "or" ("reduce").
        parts: (avals, params) -> regions of the output, each filled from one operand ("assemble").
        kernel: (operands, results, params) -> `OwnKernel`, or None where the layout or the dtypes
            have none ("opaque", and "assemble" by itself); operands are `ir.kernel.Operand`s,
            results avals. Without it the reference function is called.
        halves: what becomes of float16 and bfloat16 ("opaque"): "own" where its kernel takes them
            as they are (products and convolutions, too, which a GPU's library does from them),
            "float32" where the program converts to that and rounds the result; else the reference
            function is called. Of the other kinds, "map" rounds each result, and folds
            go on in float32 to their end (`compiler/fusion/program.py`).
        takes: number of the operand that the kernel updates in place ("opaque"): the result starts
            with its values.
        rounds: (out, *arrays, **params) -> rounds that write the one result, each with work (first,
            end), a number and a chunk: calls for parts of 0..number leave the interpreter's lock,
            and threads share these. It stands for the reference where there is much to do; parts
            depend on shapes alone, not on the number of threads ("opaque").
        constants: in kernels of loops, integer literals among the operands are constants: with a
            known count or mask, code is shorter ("map").
        cost: rough number of simple instructions for one element; decides between recomputing and
            storing.
        show: (params) -> params as printed in jaxprs, or None to print them as they are.
        dtypes: kinds of dtype that the op takes: "b" bool, "i" signed, "u" unsigned, "f" floating,
            "c" complex.
        effect: the operation is observed beside its results: it is done once for each time that
            the program runs, in the recorded order, even if they are not used ("callback", "call").
        memo: the recorder's: forms (`ir.node.Form`) by types of the operands and parameters.
    """

    name: str
    kind: str
    infer: Callable[..., Any]
    numpy: Callable[..., Any] | None = None
    jvp: Any = None
    linearize: Callable[..., Any] | None = None
    transpose: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    scalar: Any = None
    cuda: Any = None
    block: str = ""
    strides: Callable[..., Any] | None = None
    combine: str | None = None
    parts: Callable[..., Any] | None = None
    kernel: Callable[..., Any] | None = None
    halves: str = ""
    takes: int | None = None
    rounds: Callable[..., Any] | None = None
    constants: bool = False
    cost: int = 1
    show: Callable[..., Any] | None = None
    dtypes: str = ""
    effect: bool = False
    memo: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name


class Table(dict[str, Op]):
    """Ops by name. Those that few programs use come with their module when they are first named.

    Attributes:
        later: op to the module that declares it; filled in `accnp/api/__init__.py`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.later: dict[str, str] = {}

    def __missing__(self, name: str) -> Op:
        if name in self.later:
            imported(self.later[name])
        op = self.get(name)
        if op is None:
            raise KeyError(name)
        return op

    def whole(self) -> Table:
        """The table with every op in it."""
        for module in set(self.later.values()):
            imported(module)
        return self


OPS = Table()


def register(op: Op) -> Op:
    """Put an op into the table; a name can be taken once.

    The module of an op may be loaded again, if an exception of a signal handler ended its import.
    """
    if op.name in OPS and not _is_loading(OPS.later.get(op.name)):
        raise ValueError(f"register: op {op.name!r} exists already")
    OPS[op.name] = op
    return op


def _is_loading(module: str | None) -> bool:
    spec = None if module is None else getattr(sys.modules.get(module), "__spec__", None)
    return getattr(spec, "_initializing", False)


class _Late:
    """`o.name(*nodes, **params)` records the op of that name; looked up at call time, cached."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            call = _make_caller(OPS[name.rstrip("_")])
        except KeyError:
            raise AttributeError(f"o: there is no op {name!r}") from None
        setattr(self, name, call)
        return call


o = _Late()
_recorder: list[Callable[..., Any]] = []


def _make_caller(op: Op) -> Callable[..., Any]:
    record = _recorder[0]

    def call(*inputs: Any, **params: Any) -> Any:
        return record(op, inputs, params)

    call.__name__ = op.name
    return call


# --- keys of static values ---
#
# `0.0 == -0.0` and `1 == True == 1.0`, but programs made with them differ; a NaN differs from
# itself, but programs made with it do not. These functions make keys and parameters that compare
# as the programs do.

_NUMBERS = (float, complex, np.generic)


def static_key(value: Any) -> tuple[type, Any]:
    """Return a key of a static value: its type, and the value or, for a number that is 0, complex
    or NaN, its text. Tuples have the keys of their elements."""
    kind = type(value)
    if isinstance(value, _NUMBERS):
        plain = value != 0 and value == value and not isinstance(value, complex)
        return kind, value if plain else repr(value)
    if isinstance(value, tuple) and kind.__eq__ is tuple.__eq__:
        return kind, tuple(map(static_key, value))
    return kind, value


class _NegativeZero(float):
    """The number -0.0, which as a parameter differs from 0.0."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is _NegativeZero

    def __ne__(self, other: object) -> bool:
        return type(other) is not _NegativeZero

    def __hash__(self) -> int:
        return hash("-0.0")


class _SignedComplex(complex):
    """A complex number with a part that is -0.0 or NaN; as a parameter it compares by its text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is _SignedComplex and repr(self) == repr(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(repr(self))


_NEGATIVE_ZERO = _NegativeZero(-0.0)


def distinct_number(value: Any) -> Any:
    """Return a Python number that, as a parameter of an operation, equals the same number only."""
    if isinstance(value, float):
        if value != value:
            return math.nan  # one object, which a tuple finds equal to itself
        return _NEGATIVE_ZERO if value == 0 and math.copysign(1.0, value) < 0 else value
    if isinstance(value, complex):
        parts = (value.real, value.imag)
        odd = any(p != p or (p == 0 and math.copysign(1.0, p) < 0) for p in parts)
        return _SignedComplex(value) if odd else value
    return value
