"""Conversion of programs (`Graph`) to plain data, with the values of constants, and back.

A program is a list of [operation, operands, parameters] for each value, in order; operands are
indices of values, inputs first. Jitted calls are inlined.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from accnp.array_type import from_numpy
from accnp.dtypes.names import SUB_INTS
from accnp.engine import ready
from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import Graph, build
from accnp.ir.node import LITERAL, Node, literal, record
from accnp.ir.op import OPS, distinct_number
from accnp.ir.verify import verify_operation
from accnp.jax_compat.export.checks import check_operation, check_result, dtype_of, reject, require
from accnp.jax_compat.jaxprs.primitives import primitive_of
from accnp.lax.enumerations import Precision
from accnp.numpy.composed_primitives import Composed
from accnp.numpy.fft.transforms import FftType
from accnp.primitives.convolution import ConvDimensionNumbers
from accnp.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from accnp.primitives.kinds import dtype_kind

__all__ = ["Encoder", "check_structure", "decode_program", "only_value_errors"]

# Present names of ops that had another name when earlier versions of accnp serialized programs.
_RENAMED_OPS = {
    "digamma_rise": "digamma_difference",
    "exp_below": "exp_near_unit_sum",
    "log_beside": "log_near_unit_sum",
    "normal_law": "normal_cdf",
    "tanh_law": "tanh_cdf",
}

_ENUMS: dict[str, Any] = {c.__name__: c for c in (FftType, GatherScatterMode, Precision)}
_RECORDS: dict[str, type] = {
    c.__name__: c for c in (ConvDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers)
}


class Encoder:
    """Encodes programs.

    `arrays` are the constants of all programs, and `has_custom_derivative` says whether a part has
    a derivative rule, which is not encoded.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.has_custom_derivative = False
        self._places: dict[tuple[int, tuple[int, ...], np.dtype], int] = {}

    def program(self, graph: Graph, constants: Sequence[Node] = ()) -> dict[str, Any]:
        """Encode one program; its first inputs have the values of `constants`."""
        values: list[Any] = []
        env: dict[int, Any] = {}

        def add(entry: Any) -> int:
            values.append(entry)
            return len(values) - 1

        for x, constant in zip(graph.inputs, constants, strict=False):
            env[id(x)] = add(self._leaf(constant))
        for x in graph.inputs[len(constants) :]:
            env[id(x)] = add(["in", list(x.aval.shape), x.aval.dtype.name, x.aval.weak_type])

        def index_of(x: Node) -> Any:
            index = env.get(id(x))
            if index is None:
                index = env[id(x)] = add(self._leaf(x))
            return index

        def walk(inner: Graph) -> None:
            for node in inner.nodes:
                env[id(node)] = self._node(node, index_of, add, walk, env)

        walk(graph)
        return {"values": values, "out": [index_of(x) for x in graph.outputs]}

    def _node(self, node: Node, index_of: Any, add: Any, walk: Any, env: dict[int, Any]) -> Any:
        op = node.op
        if op.kind == "item":
            whole = index_of(node.inputs[0])
            if isinstance(whole, list):
                return whole[node.params["index"]]
        elif op.kind == "mark":  # marks of derivative rules are identities
            self.has_custom_derivative = self.has_custom_derivative or "rule" in node.params
            return index_of(node.inputs[0])
        elif op.inline or op.recomputes or isinstance(primitive_of(op), Composed):
            (inner,) = [v for v in node.params.values() if isinstance(v, Graph)]
            for x, operand in zip(inner.inputs, node.inputs, strict=True):
                env[id(x)] = index_of(operand)
            walk(inner)
            return [index_of(y) for y in inner.outputs]
        elif op.effect or op.kind == "callback":
            raise NotImplementedError(
                f"export: calls of Python functions cannot be stored; got {op.name}; leave it out"
            )
        elif not OPS.holds(op):
            raise NotImplementedError(
                f"export: user-defined operations cannot be stored; got {op.name}; leave it "
                "out, or write it with operations of accnp"
            )
        ins = [index_of(x) for x in node.inputs]
        return add([op.name, ins, {k: self.value(v, op.name) for k, v in node.params.items()}])

    def _leaf(self, x: Node) -> list[Any]:
        a = x.aval
        if x.op is LITERAL:
            return ["literal", self.value(x.params["value"], "literal"), a.dtype.name, a.weak_type]
        if x.trace is None:
            ready(x)  # an array that is recorded, but not computed yet
        if x.value is None:
            raise NotImplementedError(
                f"export: the program uses a value of another one that is being traced; got {a}; "
                "make it an argument"
            )
        key = id(x.value), a.shape, a.dtype  # a reshape shares the buffer of its operand
        if key not in self._places:
            self._places[key] = len(self.arrays)
            self.arrays.append(np.array(x.value.view(a.shape, a.dtype)))
        return ["const", self._places[key], a.weak_type]

    def value(self, v: Any, where: str) -> Any:
        """Encode a parameter."""
        if v is None or isinstance(v, bool | str):
            return v
        if isinstance(v, enum.Enum) and type(v).__name__ in _ENUMS:
            return {"enum": [type(v).__name__, v.name]}
        if isinstance(v, int | float) and not isinstance(v, np.generic):
            return v if type(v) in (int, float) else (int if isinstance(v, int) else float)(v)
        if isinstance(v, np.generic):
            return {"scalar": [v.dtype.name, self.value(v.item(), where)]}
        if isinstance(v, complex):
            return {"complex": [v.real, v.imag]}
        if isinstance(v, np.dtype):
            return {"dtype": v.name}
        if isinstance(v, Graph):
            return {"program": self.program(v)}
        if type(v).__name__ in _RECORDS and not isinstance(v, enum.Enum):
            return {"record": [type(v).__name__, [self.value(x, where) for x in v]]}
        if type(v) in (tuple, list, frozenset):
            members: Any = v
            return {type(v).__name__: [self.value(x, where) for x in members]}
        if type(v) is dict:
            pairs = [[self.value(k, where), self.value(x, where)] for k, x in v.items()]
            return {"dict": pairs}
        raise NotImplementedError(
            f"export: a parameter of {where} cannot be stored; got {v!r} of type "
            f"{type(v).__name__}; functions and objects of yours do not go into bytes"
        )


SizeEvaluator = Callable[[Mapping[str, Any]], Any]


def _value(v: Any, arrays: Sequence[np.ndarray], evaluate_size: SizeEvaluator) -> Any:
    if not isinstance(v, dict):
        require(not isinstance(v, list), f"a value of unknown kind, {str(v)[:40]}")
        return distinct_number(v)
    require(len(v) == 1, "a value of several types")
    ((kind, data),) = v.items()
    if kind in ("poly", "inverse", "floor"):
        return evaluate_size(v)
    if kind in ("tuple", "list", "frozenset"):
        make: Any = {"tuple": tuple, "list": list, "frozenset": frozenset}[kind]
        return make([_value(x, arrays, evaluate_size) for x in data])
    if kind == "enum":
        return _ENUMS[data[0]][data[1]]
    if kind == "record":
        return _RECORDS[data[0]](*[_value(x, arrays, evaluate_size) for x in data[1]])
    if kind == "dtype":
        return dtype_of(data)
    if kind == "complex":
        return distinct_number(complex(*data))
    if kind == "scalar":
        return dtype_of(data[0]).type(_value(data[1], arrays, evaluate_size))
    if kind == "dict":
        return {_value(k, arrays, evaluate_size): _value(x, arrays, evaluate_size) for k, x in data}
    if kind == "program":
        return _decode(data, arrays, evaluate_size)
    return reject(f"a value of unknown kind, {kind[:40]!r}")


def _literal(value: Any, dtype: np.dtype, weak: bool) -> Node:
    kind = dtype_kind(dtype)
    types: Any = {"b": bool, "f": int | float | np.generic, "c": complex | float | int | np.generic}
    require(isinstance(value, types.get(kind, int | np.integer)), f"a {dtype.name} of {value!r}")
    if kind in "iu":
        bounds = (ml_dtypes.iinfo if dtype.name in SUB_INTS else np.iinfo)(dtype)
        require(bounds.min <= value <= bounds.max, f"a {dtype.name} of {value!r}")
    return literal(float(value) if kind == "f" else value, dtype, weak)


# Exceptions that Python and NumPy raise for hostile data of unexpected structure.
_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NotImplementedError,
    RecursionError, TypeError, ValueError,
)  # fmt: skip


@contextlib.contextmanager
def only_value_errors() -> Iterator[None]:
    """Convert exceptions that unexpected structures cause to ValueError."""
    try:
        yield
    except _ERRORS as error:
        if isinstance(error, ValueError) and "export.deserialize: " in str(error):
            raise
        text = str(error).removeprefix("verify: ")[:300]
        raise ValueError(
            f"export.deserialize: the program is not valid: {type(error).__name__}: {text}; "
            "export the function again"
        ) from error


def decode_program(
    program: Mapping[str, Any], arrays: Sequence[np.ndarray], evaluate_size: SizeEvaluator
) -> Graph:
    """Record a decoded program; `evaluate_size` evaluates sizes that depend on symbols.

    Nothing is executed, and nothing is trusted: operands, parameters and nested programs are
    checked.

    Raises:
        ValueError: the program is invalid.
    """
    with only_value_errors():
        return _decode(program, arrays, evaluate_size)


def check_structure(program: Any) -> None:
    """Check the structure of a program, as far as possible before its sizes are known.

    Raises:
        ValueError: the structure is invalid.
    """
    require(type(program) is dict, "its program")
    for key in ("values", "out"):
        require(type(program.get(key)) is list, f"its program has no list of {key}")
    for entry in program["values"]:
        require(type(entry) is list and entry and type(entry[0]) is str, f"the value {entry!r:.60}")


def _decode(program: Any, arrays: Sequence[np.ndarray], evaluate_size: SizeEvaluator) -> Graph:
    check_structure(program)
    entries: list[list[Any]] = program["values"]

    def read(v: Any) -> Any:
        return _value(v, arrays, evaluate_size)

    def one_of(known: Sequence[Any], i: Any) -> Any:
        require(type(i) is int and 0 <= i < len(known), f"there is no value {i!r}")
        return known[i]

    def typed(shape: Any, name: Any, weak: Any) -> Aval:
        sizes = tuple([read(n) for n in shape])
        require(all(type(n) is int and n >= 0 for n in sizes), f"a shape of {sizes!r}")
        require(type(weak) is bool, "weak types")
        aval = make_aval(sizes, dtype_of(name), weak)
        check_result("an input", aval)
        return aval

    def run(leaves: list[Node]) -> list[Node]:
        rest = iter(leaves)
        env: list[Node] = []
        for kind, *e in entries:
            if kind == "in":
                env.append(next(rest))
            elif kind == "literal":
                value, name, weak = e
                env.append(_literal(read(value), dtype_of(name), weak is True))
            elif kind == "const":
                position, weak = e
                env.append(from_numpy(one_of(arrays, position), weak is True)._node)
            else:
                ins, attributes = e
                op = OPS[_RENAMED_OPS.get(kind) or kind]
                operands = [one_of(env, i) for i in ins]
                params = {k: read(v) for k, v in attributes.items()}
                check_operation(op, [x.aval for x in operands], params)
                node = record(op, tuple(operands), params)
                check_result(kind, node.aval)
                verify_operation(node)
                env.append(node)
        return [one_of(env, i) for i in program["out"]]

    graph = build(run, [typed(*e[1:]) for e in entries if e[0] == "in"])
    require(all(isinstance(x.aval, Aval) for x in graph.outputs), "several results as one output")
    return graph
