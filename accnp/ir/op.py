"""The `Op` record: everything that accnp knows about one operation, in one declaration.

Modules in `accnp/primitives/` declare ops with `register`; transformations, the planner and the
compiler read them from the registry `OPS`. Rules record further nodes through the late-bound `o`
(`o.mul(t, o.cos(x))`), so that they need not import each other. The last part of the module makes
hash keys of static parameters.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from accnp._native import Form
from accnp.caches import BoundedCache
from accnp.lazy_imports import imported
from accnp.public_names import OP_MODULES

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp._native import Node
    from accnp.ir.aval import Aval
    from accnp.ir.op_types import (
        Batch,
        Infer,
        Jvp,
        Params,
        Reference,
        Scalar,
        Show,
        Transpose,
        Windows,
    )


__all__ = [
    "CALLS", "COMBINES", "OPS", "ZERO", "Collective", "Combine", "Linear", "Lowering", "Op",
    "as_tuple", "declare_combine", "distinct_number", "for_each_combine", "install_recorder", "o",
    "register", "static_key",
]  # fmt: skip


_T = TypeVar("_T")


class Zero:
    """Marks an operand with respect to which the derivative of the output is zero."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = Zero()


class Linear:
    """The linear operand in a transpose rule: it has an aval but no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval


class Collective(NamedTuple):
    """The properties of a collective over the axes of a mesh that passes use.

    Attributes:
        equal: whether the result is equal in all parts.
        sends: whether it sends messages between processes.
        aligns: whether operands must differ along the axes of the collective; if they do not,
            `pvary` is inserted.
        reduce: name of the reduction over the parts ("reduce_sum"...), or "".
        sent: for a message between n processes: (bytes of the operand, n) -> bytes that each
            process sends. None: the operand, once.
        message: how the operand is sent if the op is a single message: "gather", "exchange",
            "permute", "swap" (of two processes), "broadcast" or "sum" (`runtime/mpi.py` has a
            function for each, and `_native/messages.c` for those that native loops send); "" for
            other collectives.
    """

    equal: bool = False
    sends: bool = True
    aligns: bool = True
    reduce: str = ""
    sent: Callable[[int, int], int] | None = None
    message: str = ""


class Lowering(NamedTuple):
    """How an op is computed that fusion does not put into a generated kernel. Functions are named
    "module.function", within `accnp/compiler/library/`, and their modules loaded on first use.

    Attributes:
        kernel: the function that writes its kernel. Without it, the reference function of the op is
            called.
        block: the function that writes a kernel for GPUs in which a block of threads does each
            task; it returns None if the library call is faster.
        gpu: implementation for GPUs if no kernel does it well: a function (xp, *arrays, **params)
            on arrays of CuPy, which returns new arrays, or None for operands that it does not
            support, for which the reference function is called.
    """

    kernel: str = ""
    block: str = ""
    gpu: str = ""


_REFERENCE = Lowering()


class Combine(NamedTuple):
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
        op: name of the op that computes it, "" for none.
        collective: name of the collective that reduces numbers over processes; "" for none.
        collective_of_bools: the same for bools, of which it gets the numbers 0 and 1.
    """

    name: str
    function: str
    reference: Callable[..., Any]
    identity: Callable[[np.dtype], float]
    kinds: str = "biufc"
    of_bools: str = ""
    order: str = ""
    op: str = ""
    collective: str = ""
    collective_of_bools: str = ""

    @property
    def lanes(self) -> int:
        """The number of lanes in which a block is reduced."""
        return 64 if self.order else 32

    @property
    def lane_function(self) -> str:
        """The scalar function that combines a lane and an element."""
        return {"": self.function, ">": "join_max", "<": "join_min"}[self.order]


# The functions of reductions, by their name in kernels (`ir.kernel.RowReduction`). A record is
# all that the interpreter, both back ends and the type rules know about its function.
COMBINES: dict[str, Combine] = {}
_uses: list[Callable[[str], None]] = []


def declare_combine(combine: Combine) -> str:
    """Add a function to the table and return its name."""
    COMBINES[combine.name] = combine
    for use in _uses:
        use(combine.name)
    return combine.name


def for_each_combine(use: Callable[[str], None]) -> None:
    """Call `use` with the name of each function, and of those that are declared later."""
    for name in COMBINES:
        use(name)
    _uses.append(use)


def lowest_value(dtype: np.dtype) -> float:
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def highest_value(dtype: np.dtype) -> float:
    return np.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _zero(dtype: np.dtype) -> int:
    return 0


def one_of_dtype(dtype: np.dtype) -> int:
    return 1


def _all_bits(dtype: np.dtype) -> int:
    return True if dtype.kind == "b" else int(np.iinfo(dtype).max) if dtype.kind == "u" else -1


for _combine in (
    Combine("sum", "add", np.add, _zero, of_bools="or", op="add", collective="psum_invariant"),
    Combine("prod", "mul", np.multiply, one_of_dtype, of_bools="and", op="mul"),
    Combine(
        "max",
        "fmax",
        np.maximum,
        lowest_value,
        "biuf",
        of_bools="or",
        order=">",
        op="max",
        collective="pmax",
        collective_of_bools="pmax",
    ),
    Combine(
        "min",
        "fmin",
        np.minimum,
        highest_value,
        "biuf",
        of_bools="and",
        order="<",
        op="min",
        collective="pmin",
        collective_of_bools="pmin",
    ),
    Combine("and", "and", np.bitwise_and, _all_bits, "biu", op="and", collective_of_bools="pmin"),
    Combine("or", "or", np.bitwise_or, _zero, "biu", op="or", collective_of_bools="pmax"),
    Combine("xor", "xor", np.bitwise_xor, _zero, "biu", op="xor"),
):
    declare_combine(_combine)


# How elements lie in memory: shape, strides in elements, offset.
Strided = tuple[tuple[int, ...], tuple[int, ...], int]

# Kinds of ops that contain programs; their rules receive the transformations as `tools`.
CALLS = ("call", "loop")


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a parameter that is one value or a tuple of them as a tuple."""
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)


_NO_PROGRAMS: Mapping[str, tuple[int, str]] = {}


class Op:
    """One operation and all its rules.

    In every rule, data arguments are positional and static parameters are keywords.

    Attributes:
        name: the primitive's name, as JAX prints it.
        kind: "map", "view", "iota", "reduce", "assemble", "opaque", "callback", "call", "loop" or
            "leaf"; determines which of the lowering fields are used. "callback" calls a user
            function: it is never merged with another one, and it runs immediately outside of
            traces. "call" is equivalent to the program it contains, which passes inline; "loop" is
            structured control flow over the programs it contains.
        infer: (*avals, **params) -> Aval, or a tuple of them for an op with several results.
        numpy: reference implementation: (*arrays, **params) -> array or tuple of arrays.
        jvp: a tuple with one rule (t, y, *x, **params) -> tangent per operand (or ZERO), or one
            function (ts, y, xs, params) -> tangent(s) that receives all tangents (None = zero), or
            None if no derivative is known. Call ops: (ts, y, xs, params, tools) -> (new primal
            outputs, tangent outputs), both lists.
        linearize: for call ops, used instead of `jvp` in reverse mode, with the same signature. The
            new primal outputs must not depend on `ts`, and the tangents may depend on them only
            through ops that can be transposed.
        transpose: (ct, *inputs, **params) -> one cotangent (or None) per operand; the linear
            operands are instances of `Linear`.
        batch: (size, xs, batched, params) -> (result(s), batched flag(s)); the batch axis is
            always the leading one.
        scalar: source of the scalar expression, `{0}`, `{1}`... for the operands ("map"); a dict by
            dtype kind if it differs.
        nonzero: (dtype of the first operand) -> source of a condition on the operands; if it is
            false, the result is 0 ("map").
        cuda: implementation of a user's kernel for GPUs ("opaque"): a function (driver, *arrays of
            its library, **params) that returns new arrays.
        lowering: the kernels and library calls that compute it ("opaque", "assemble").
        strides: (shape, strides, offset, **params) -> (shape, strides, offset), or None if strides
            cannot express the view ("view").
        combine: name of the function in `COMBINES` that combines two elements ("reduce"), or a
            new value with an old one (scatters).
        parts: (avals, params) -> regions of the output, each filled from one operand ("assemble").
        halves: treatment of float16 and bfloat16 ("opaque"): "own" if the kernel supports them
            (and for products and convolutions, if the GPU library does), "float32" if the program
            converts to float32 and rounds the result; otherwise the reference function is called.
            As for other kinds, "map" rounds each result, and reductions accumulate in float32 and
            round at the end (`compiler/fusion/program.py`).
        updated_operand: number of the operand that the kernel updates in place ("opaque"): the
            result starts with its values.
        rounds: (out, *arrays, **params) -> rounds that write the single result; each has work
            (first, end), a number and a chunk. Calls for parts of 0..number run without the GIL and
            are distributed over threads. Replaces the reference for large operands. Parts depend on
            shapes only, not on the number of threads ("opaque").
        constants: kernels of loops compile integer literals among the operands as constants; the
            code for a known shift count or mask is shorter ("map").
        cost: approximate number of simple instructions per element; decides between recomputing and
            storing a value.
        show: (params) -> params as printed in jaxprs, or None to print them unchanged.
        dtypes: kinds of dtype that the op accepts: "b" bool, "i" signed, "u" unsigned, "f"
            floating, "c" complex.
        effect: whether users can observe that the operation runs: it then runs exactly once each
            time the program runs, in the recorded order, even if its results are unused
            ("callback", "call").
        several: whether the op has several results. Ops that contain programs need not say so.
        jax_name: the primitive's name in JAX if it is another one.
        identity: the result is the operand, so compiled programs use the operand itself ("map";
            for "mark" this is always the case).
        keeps_order: the result has the operand's elements in their row-major order ("view").
        additive: the result is a sum of linear functions of the operands, so it is linear in
            several of them together.
        contraction: the op multiplies two operands and sums over pairs of their axes, with the
            parameter `dimension_numbers` of `dot_general` ("opaque").
        dots_saveable: the checkpoint policy `dots_saveable` saves the result.
        indexing: how the op uses positions that operands contain ("opaque"): "slice" reads one
            window, "gather" several, "update" writes one window, "scatter" several. The operands
            and parameters are those of `dynamic_slice`, `gather`, `dynamic_update_slice` and
            `scatter`.
        windows: for these ops: (operands, params) -> the starts of the windows, the axes that
            they are positions along, and the last valid start along each; for checks of bounds.
        control: "cond", "while" or "scan": the form of a "loop", which determines its parameters
            and how its programs are run.
        inline: the op is only a call of its program, without rules of its own ("call").
        recomputes: the backward pass runs the op's program again instead of storing what it
            needs; its rules handle effects ("call").
        closes_over: the op's programs may use outer nodes that are not among its operands.
        program_constants: where values over which a program closes become operands: for each
            parameter that holds a program, the number of operands before its constants, or -1 for
            those of a loop's condition, and the parameter that counts them, or "" ("call", "loop").
        user_function: kernels call a function that the user wrote, which might never return.
        rewrite: (make, node, operands) -> an equivalent value that is cheaper to compute, or
            None. `make(name, params, operands)` makes the values it consists of ("opaque").
        in_program: (params) -> list of the results that replace an operation in compiled programs
            ("callback").
        immediate: outside of traces, the op runs when it is recorded, so that its errors are
            raised there ("callback").
        raises_cause: if the op runs at once, an error of the user's function is raised as it is
            ("callback").
        float0: whether operands may be tangents of integers; None means that "map" and "reduce" do
            not accept them.
        jvp_shapes: the shapes that the rules in `jvp` expect ("map"): "equal": tangents and
            operands are broadcast to the shape of the result; "tangents": the rules do not use
            the operands, which are not broadcast; "any": neither is broadcast, and the rules'
            results are.
        makes_nan: whether the result may be nan although no operand is; `checkify` then checks it.
        places: the type rule determines the devices of the result.
        collective: what passes need to know about a collective.
        sharding: name of the rule in `sharding/sharding_rules.py` that says how operands and
            results are sharded; "" for the rule of the kind ("map", "reduce") or none.
        user_name: the function that users call, for texts, if it records several ops: `psum` for
            `psum_invariant`. The default is the name.
        memo: the recorder's cache: forms (`ir.node.Form`) by types of operands and parameters.
    """

    __slots__ = (
        "additive", "batch", "closes_over", "collective", "combine", "constants", "contraction",
        "control", "cost", "cuda", "dots_saveable", "dtypes", "effect", "float0", "halves",
        "identity", "immediate", "in_program", "indexing", "infer", "inline", "jax_name", "jvp",
        "jvp_shapes", "keeps_order", "kind", "linearize", "lowering", "makes_nan", "memo", "name",
        "nonzero", "numpy", "parts", "places", "program_constants", "raises_cause", "recomputes",
        "rewrite", "rounds", "scalar", "several", "sharding", "show", "strides", "transpose",
        "updated_operand", "user_function", "user_name", "windows",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str,
        infer: Infer,
        numpy: Reference | None = None,
        jvp: Jvp = None,
        linearize: Callable[..., Any] | None = None,
        transpose: Transpose = None,
        batch: Batch | None = None,
        scalar: Scalar = None,
        nonzero: Callable[[np.dtype], str] | None = None,
        cuda: Callable[..., Any] | None = None,
        lowering: Lowering = _REFERENCE,
        strides: Callable[..., Strided | None] | None = None,
        combine: str | None = None,
        parts: Callable[..., Sequence[tuple[int, Strided, Strided]]] | None = None,
        halves: str = "",
        updated_operand: int | None = None,
        rounds: Callable[..., Any] | None = None,
        constants: bool = False,
        cost: int = 1,
        show: Show = None,
        dtypes: str = "",
        effect: bool = False,
        several: bool = False,
        jax_name: str = "",
        identity: bool = False,
        keeps_order: bool = False,
        additive: bool = False,
        contraction: bool = False,
        dots_saveable: bool = False,
        indexing: str = "",
        windows: Windows = None,
        control: str = "",
        inline: bool = False,
        recomputes: bool = False,
        closes_over: bool = False,
        program_constants: Mapping[str, tuple[int, str]] = _NO_PROGRAMS,
        user_function: bool = False,
        rewrite: Callable[..., Any] | None = None,
        in_program: Callable[[Params], list[Any]] | None = None,
        immediate: bool = False,
        raises_cause: bool = False,
        float0: bool | None = None,
        jvp_shapes: str = "equal",
        makes_nan: bool = False,
        places: bool = False,
        collective: Collective | None = None,
        sharding: str = "",
        user_name: str = "",
        memo: BoundedCache[Hashable, Form] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.infer: Callable[..., Any] = infer
        self.numpy: Callable[..., Any] | None = numpy
        self.jvp: Any = jvp
        self.linearize = linearize
        self.transpose: Callable[..., Any] | None = transpose
        self.batch: Callable[..., Any] | None = batch
        self.scalar: Any = scalar
        self.nonzero = nonzero
        self.cuda = cuda
        self.lowering = lowering
        self.strides = strides
        self.combine = combine
        self.parts = parts
        self.halves = halves
        self.updated_operand = updated_operand
        self.rounds = rounds
        self.constants = constants
        self.cost = cost
        self.show = show
        self.dtypes = dtypes
        self.effect = effect
        self.several = several
        self.jax_name = jax_name
        self.identity = identity
        self.keeps_order = keeps_order
        self.additive = additive
        self.contraction = contraction
        self.dots_saveable = dots_saveable
        self.indexing = indexing
        self.windows = windows
        self.control = control
        self.inline = inline
        self.recomputes = recomputes
        self.closes_over = closes_over
        self.program_constants = program_constants
        self.user_function = user_function
        self.rewrite = rewrite
        self.in_program = in_program
        self.immediate = immediate
        self.raises_cause = raises_cause
        self.float0 = float0
        self.jvp_shapes = jvp_shapes
        self.makes_nan = makes_nan
        self.places = places
        self.collective = collective
        self.sharding = sharding
        self.user_name = user_name or name
        self.memo: BoundedCache[Hashable, Form]
        self.memo = BoundedCache("type_cache_size", grouped=True) if memo is None else memo

    def changed(self, **fields: Any) -> Op:
        """Return a new op with other values of some fields, and its own memo."""
        old = {name: getattr(self, name) for name in Op.__slots__ if name != "memo"}
        return Op(**{**old, **fields})

    def __repr__(self) -> str:
        return self.name


class Table(dict[str, Op]):
    """Ops by name. Modules of rarely used ops are imported when one of their ops is first accessed.

    Attributes:
        later: op -> the module that declares it, for modules that `import accnp` does not load.
    """

    def __init__(self) -> None:
        super().__init__()
        modules = OP_MODULES.items()
        self.later = {name: module for module, names in modules for name in names.split()}

    def __missing__(self, name: str) -> Op:
        if name in self.later:
            imported(self.later[name])
        op = self.get(name)
        if op is None:
            raise KeyError(name)
        return op

    def holds(self, op: Op) -> bool:
        """Return whether this op is in the table; those that users define are not."""
        return self.get(op.name) is op

    def whole(self) -> Table:
        """Return the table after importing all modules that declare ops."""
        for module in set(self.later.values()):
            imported(module)
        return self


OPS = Table()


def register(op: Op) -> Op:
    """Add an op to the table; each name can be registered once.

    The module of an op may be executed again if an exception of a signal handler ended its import.
    """
    if op.name in OPS and not _is_loading(OPS.later.get(op.name)):
        raise ValueError(
            f"register: an op of this name exists already; got {op.name!r} (op); "
            "choose another name"
        )
    OPS[op.name] = op
    return op


def _is_loading(module: str | None) -> bool:
    spec = None if module is None else getattr(sys.modules.get(module), "__spec__", None)
    return getattr(spec, "_initializing", False)


class _LazyOps:
    """`o.name(*nodes, **params)` records the op of that name; the lookup is lazy and cached."""

    def __getattr__(self, name: str) -> Callable[..., Node]:
        try:
            call = _make_caller(OPS[name.rstrip("_")])
        except KeyError:
            raise AttributeError(f"o: there is no op {name!r}") from None
        setattr(self, name, call)
        return call


o = _LazyOps()
_recorder: list[Callable[[Op, tuple[Node, ...], Params], Node]] = []


def install_recorder(record: Callable[[Op, tuple[Node, ...], Params], Node]) -> None:
    """Set the function that records an operation: `ir.node.record`."""
    _recorder[:] = [record]


def _make_caller(op: Op) -> Callable[..., Node]:
    record = _recorder[0]

    def call(*inputs: Node, **params: object) -> Node:
        return record(op, inputs, params)

    call.__name__ = op.name
    return call


# --- keys of static values ---
#
# `0.0 == -0.0` and `1 == True == 1.0`, but programs that contain them differ; NaN differs from
# itself, but programs that contain it are equal. These functions make keys and parameters that are
# equal exactly if the programs are.

_NUMBERS: tuple[type, ...] = (float, complex, np.generic)
_TUPLE: type = tuple


def static_key(value: object) -> tuple[type[Any], Any]:
    """Return a hashable key of a static value: its type, and the value itself or, for numbers that
    are zero, complex or NaN, its text. The key of a tuple contains the keys of its elements."""
    kind = cast("type[Any]", type(value))
    if isinstance(value, _NUMBERS):
        plain = value != 0 and value == value and not isinstance(value, complex)
        return kind, value if plain else repr(value)
    if isinstance(value, tuple) and kind.__eq__ is _TUPLE.__eq__:
        keys = tuple(map(static_key, as_tuple(value)))
        return kind, keys
    return kind, cast("Any", value)


class _NegativeZero(float):
    """The number -0.0; as a parameter it differs from 0.0."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is _NegativeZero

    def __ne__(self, other: object) -> bool:
        return type(other) is not _NegativeZero

    def __hash__(self) -> int:
        return hash("-0.0")


class _SignedComplex(complex):
    """A complex number with a part that is -0.0 or NaN; as a parameter it is compared as text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is _SignedComplex and repr(self) == repr(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(repr(self))


_NEGATIVE_ZERO = _NegativeZero(-0.0)


def distinct_number(value: _T) -> _T | float | complex:
    """Return a Python number that, as an op's parameter, compares equal only to the same number."""
    if isinstance(value, float):
        if value != value:
            return math.nan  # always the same object, so tuples that contain it compare equal
        return _NEGATIVE_ZERO if not value and math.copysign(1.0, value) < 0 else value
    if isinstance(value, complex):
        parts = (value.real, value.imag)
        odd = any(p != p or (not p and math.copysign(1.0, p) < 0) for p in parts)
        return _SignedComplex(value) if odd else value
    return value
