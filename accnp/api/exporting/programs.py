"""Programs as plain data and back. In: a `Graph`. Out: lists, numbers and texts, with the values of
constants beside them; or, from those, a `Graph` again.

A program is [operation, operands, parameters] for each value, in order; operands are numbers of
values, the inputs first. Jitted calls are written in place.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from accnp.api.algebra.fft import FftType
from accnp.api.elements.composed import Composed
from accnp.api.jaxprs.primitives import primitive_of
from accnp.api.strict.lax_types import Precision
from accnp.array import from_numpy
from accnp.ir.aval import make_aval
from accnp.ir.graph import Graph, build
from accnp.ir.node import Node, literal, record
from accnp.ir.op import OPS, distinct_number
from accnp.primitives.convolution import ConvDimensionNumbers
from accnp.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from accnp.primitives.kinds import dtype_kind

__all__ = ["Encoder", "decoded", "dtype_of"]

_CLASSES: dict[str, type] = {
    c.__name__: c
    for c in (
        ConvDimensionNumbers, FftType, GatherDimensionNumbers, GatherScatterMode, Precision,
        ScatterDimensionNumbers,
    )
}  # fmt: skip
_CALLS = ("jit", "remat2")


def dtype_of(name: str) -> np.dtype:
    """A dtype by its name, also those of ml_dtypes."""
    return np.dtype(name)


class Encoder:
    """Writes programs; `arrays` are the constants of all of them, `ruled` says whether some part of
    them has a derivative rule, which is not written."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.ruled = False
        self._places: dict[int, int] = {}

    def program(self, graph: Graph, constants: Sequence[Node] = ()) -> dict[str, Any]:
        """One program; its first inputs have these values."""
        values: list[Any] = []
        env: dict[int, Any] = {}

        def add(entry: Any) -> int:
            values.append(entry)
            return len(values) - 1

        for x, given in zip(graph.inputs, constants, strict=False):
            env[id(x)] = add(self._leaf(given))
        for x in graph.inputs[len(constants) :]:
            env[id(x)] = add(["in", list(x.aval.shape), x.aval.dtype.name, x.aval.weak_type])

        def place(x: Node) -> Any:
            found = env.get(id(x))
            if found is None:
                found = env[id(x)] = add(self._leaf(x))
            return found

        def walk(inner: Graph) -> None:
            for node in inner.nodes:
                env[id(node)] = self._node(node, place, add, walk, env)

        walk(graph)
        return {"values": values, "out": [place(x) for x in graph.outputs]}

    def _node(self, node: Node, place: Any, add: Any, walk: Any, env: dict[int, Any]) -> Any:
        op = node.op
        if op.kind == "item":
            whole = place(node.inputs[0])
            if isinstance(whole, list):
                return whole[node.params["index"]]
        elif op.kind == "mark":  # where the rule of a derivative was; values pass
            self.ruled = self.ruled or "rule" in node.params
            return place(node.inputs[0])
        elif op.name in _CALLS or isinstance(primitive_of(op), Composed):
            (inner,) = [v for v in node.params.values() if isinstance(v, Graph)]
            for x, given in zip(inner.inputs, node.inputs, strict=True):
                env[id(x)] = place(given)
            walk(inner)
            return [place(y) for y in inner.outputs]
        elif op.effect or op.kind == "callback":
            raise NotImplementedError(
                f"export: calls of Python functions cannot be stored; got {op.name}; leave it out"
            )
        elif OPS.get(op.name) is not op:
            raise NotImplementedError(
                f"export: operations of the user's own cannot be stored; got {op.name}; leave it "
                "out, or write it with operations of accnp"
            )
        ins = [place(x) for x in node.inputs]
        return add([op.name, ins, {k: self.value(v, op.name) for k, v in node.params.items()}])

    def _leaf(self, x: Node) -> list[Any]:
        a = x.aval
        if x.op.name == "literal":
            return ["literal", self.value(x.params["value"], "literal"), a.dtype.name, a.weak_type]
        if x.value is None:
            raise NotImplementedError(
                f"export: the program uses a value of another one that is being traced; got {a}; "
                "make it an argument"
            )
        key = id(x.value)
        if key not in self._places:
            self._places[key] = len(self.arrays)
            self.arrays.append(np.array(x.value.view(a.shape, a.dtype)))
        return ["const", self._places[key], a.weak_type]

    def value(self, v: Any, where: str) -> Any:
        """A parameter."""
        if v is None or isinstance(v, bool | str):
            return v
        if isinstance(v, enum.Enum) and type(v).__name__ in _CLASSES:
            return {"enum": [type(v).__name__, v.name]}
        if isinstance(v, int | float) and not isinstance(v, np.generic):
            return v if type(v) in (int, float) else (int if isinstance(v, int) else float)(v)
        if isinstance(v, complex):
            return {"complex": [v.real, v.imag]}
        if isinstance(v, np.generic):
            return {"scalar": [v.dtype.name, self.value(v.item(), where)]}
        if isinstance(v, np.dtype):
            return {"dtype": v.name}
        if isinstance(v, Graph):
            return {"program": self.program(v)}
        if type(v).__name__ in _CLASSES and not isinstance(v, enum.Enum):
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


Number = Callable[[Mapping[str, Any]], Any]


def _value(v: Any, arrays: Sequence[np.ndarray], number: Number) -> Any:
    if not isinstance(v, dict):
        return distinct_number(v)
    ((kind, data),) = v.items()
    if kind in ("poly", "inverse"):
        return number(v)
    if kind in ("tuple", "list", "frozenset"):
        make: Any = {"tuple": tuple, "list": list, "frozenset": frozenset}[kind]
        return make([_value(x, arrays, number) for x in data])
    if kind == "enum":
        return _CLASSES[data[0]][data[1]]  # type: ignore[index]
    if kind == "record":
        return _CLASSES[data[0]](*[_value(x, arrays, number) for x in data[1]])
    if kind == "dtype":
        return dtype_of(data)
    if kind == "complex":
        return distinct_number(complex(*data))
    if kind == "scalar":
        return dtype_of(data[0]).type(_value(data[1], arrays, number))
    if kind == "dict":
        return {_value(k, arrays, number): _value(x, arrays, number) for k, x in data}
    if kind == "program":
        return decoded(data, arrays, number)
    raise ValueError(
        f"export.deserialize: there is something unknown in the program; got {kind!r}; "
        "export the program again with this version"
    )


def _literal(value: Any, dtype: np.dtype, weak: bool) -> Node:
    kind = dtype_kind(dtype)
    return literal(float(value) if kind == "f" else value, dtype, weak)


def decoded(program: Mapping[str, Any], arrays: Sequence[np.ndarray], number: Number) -> Graph:
    """Record a program; `number` says what a size is that depends on symbols."""
    entries = program["values"]

    def read(v: Any) -> Any:
        return _value(v, arrays, number)

    given = [e for e in entries if e[0] == "in"]
    avals = [make_aval(tuple(map(read, e[1])), dtype_of(e[2]), e[3]) for e in given]

    def run(leaves: list[Node]) -> list[Node]:
        rest, env = iter(leaves), []
        for e in entries:
            if e[0] == "in":
                env.append(next(rest))
            elif e[0] == "literal":
                env.append(_literal(read(e[1]), dtype_of(e[2]), e[3]))
            elif e[0] == "const":
                env.append(from_numpy(arrays[e[1]], e[2])._node)
            else:
                params = {k: read(v) for k, v in e[2].items()}
                env.append(record(OPS[e[0]], tuple([env[i] for i in e[1]]), params))
        return [env[i] for i in program["out"]]

    return build(run, avals)
