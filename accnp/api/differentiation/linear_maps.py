"""What `linearize` and `vjp` return: a derivative at a point, as a function of tangents or of
cotangents.

It is a pytree, whose leaves are the arrays that it needs of the point, so that a jitted or mapped
function can return it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.differentiation.linearised import Linearised, gradients
from accnp.errors import api_boundary
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, build, evaluate
from accnp.ir.node import Node
from accnp.primitives.kinds import zeros_like_aval
from accnp.pytree import register_pytree_node, tree_flatten, tree_unflatten
from accnp.transforms.tools import TOOLS
from accnp.transforms.vjp import LinearMap
from accnp.transforms.walk import inexact

__all__ = ["Pull", "Push"]


class _Types:
    """Structures and types of a function's arguments and results."""

    __slots__ = ("in_avals", "in_tree", "name", "out_avals", "out_tree")

    def __init__(self, lin: Linearised, name: str) -> None:
        self.name = name
        self.in_tree, self.out_tree = lin.in_tree, lin.out_tree
        self.in_avals, self.out_avals = lin.in_avals, lin.out_avals


class _Derivative:
    """The linear part of a function at a point: recorded nodes, or a program and its residuals."""

    __slots__ = ("_graph", "_live", "_map", "_residuals", "types")

    _map: LinearMap | None
    _graph: Graph
    _live: list[bool]
    _residuals: Sequence[Any]

    def __init__(self, lin: Linearised, name: str) -> None:
        self.types = _Types(lin, name)
        self._map = lin.map

    def _program(self) -> None:
        """Turn the recorded nodes into a program: residuals, tangents -> tangents that are live."""
        if self._map is None:
            return
        order, places, outputs = self._map.order, self._map.inputs, self._map.outputs
        own = {id(x) for x in (*order, *places)}
        used = [x for node in order for x in node.inputs]
        free = list(
            {id(x): x for x in used if id(x) not in own and x.op.name != "literal"}.values()
        )
        moving = [x for x in places if inexact(x.aval.dtype)]
        self._live = [x is not None for x in outputs]

        def run(leaves: list[Node]) -> list[Node]:
            env = dict(zip(map(id, (*free, *moving)), leaves, strict=True))
            TOOLS.replay(order, env)
            return [env[id(x)] for x in outputs if x is not None]

        self._graph = build(run, [x.aval for x in (*free, *moving)], self.types.name)
        self._residuals = [wrap(x) for x in free]
        self._map = None

    def _flatten(self) -> tuple[tuple[Any, ...], Any]:
        self._program()
        return tuple(self._residuals), (self._graph, tuple(self._live), self.types)

    @classmethod
    def _unflatten(cls, static: Any, residuals: Any) -> _Derivative:
        self = object.__new__(cls)
        graph, live, self.types = static
        self._map, self._graph, self._live = None, graph, list(live)
        self._residuals = residuals
        return self

    def _given(self) -> list[Node]:
        return [as_node(x, self.types.name) for x in self._residuals]


def _type_text(a: Aval) -> str:
    return f"{a.dtype.name}[{','.join(map(str, a.shape))}]"


def _as_weak(avals: Sequence[Aval], given: Sequence[Node | None]) -> bool:
    """Whether nothing of a strong type was given for a weak one, which makes strong what it flows
    to, as in jax."""
    pairs = zip(avals, given, strict=True)
    return not any(a.weak_type and x is not None and not x.aval.weak_type for a, x in pairs)


class Push(_Derivative):
    """A function's derivative at a point, as a linear function of tangents."""

    __slots__ = ()

    @api_boundary
    def __call__(self, *tangents: Any) -> Any:
        types = self.types
        leaves, tree = tree_flatten(tangents)
        if tree != types.in_tree.shown():
            raise TypeError(
                f"linearize: tangents must have the structure of the primals; expected "
                f"{types.in_tree}, got {tree}; pass a tangent for each primal"
            )
        ts = [_tangent(a, t) for a, t in zip(types.in_avals, leaves, strict=True)]
        if self._map is not None:
            whole = [
                zeros_like_aval(a) if t is None else t
                for a, t in zip(types.in_avals, ts, strict=True)
            ]
            out = self._map.apply(whole)
        else:
            moving = [t for t in ts if t is not None]
            made = iter(evaluate(self._graph, [*self._given(), *moving]))
            out = [next(made) if is_live else None for is_live in self._live]
        typed = _as_weak(types.in_avals, ts)
        return tree_unflatten(types.out_tree, gradients(out, types.out_avals, typed))


def _tangent(a: Aval, t: Any) -> Node | None:
    """Convert a tangent, checking it against its primal; None for integers."""
    if not inexact(a.dtype):
        if getattr(t, "dtype", None) != dtypes.float0:
            raise ValueError(_inconsistent(as_node(t, "linearize").aval, a, "float0"))
        return None
    n = as_node(t, "linearize")
    if n.aval.dtype != a.dtype or n.aval.shape != a.shape:
        raise ValueError(_inconsistent(n.aval, a, a.dtype.name))
    return n


def _inconsistent(got: Aval, primal: Aval, dtype: str) -> str:
    want = f"{dtype}[{','.join(map(str, primal.shape))}]"
    return (
        "linearized function called on tangent values inconsistent with the original primal "
        f"values; got {_type_text(got)} for a primal {_type_text(primal)}; pass {want}"
    )


class Pull(_Derivative):
    """A function's transposed derivative at a point: from its results' cotangents to the
    arguments'."""

    __slots__ = ()

    @api_boundary
    def __call__(self, *cotangents: Any) -> Any:
        types = self.types
        if len(cotangents) != 1:
            raise TypeError(
                f"vjp: the VJP function of {types.name} takes a single argument, the cotangent of "
                f"what that returns; got {len(cotangents)}; pass a tuple for a tuple of results"
            )
        leaves, tree = tree_flatten(cotangents[0])
        if tree != types.out_tree.shown():
            raise ValueError(
                f"vjp: unexpected tree structure of a cotangent; got {tree} for results of "
                f"structure {types.out_tree}; pass a cotangent for each result"
            )
        cts = [_cotangent(a, ct) for a, ct in zip(types.out_avals, leaves, strict=True)]
        if self._map is not None:
            out = self._map.pull(cts)
        else:
            live = [
                zeros_like_aval(a) if ct is None else ct
                for ct, a, is_live in zip(cts, types.out_avals, self._live, strict=True)
                if is_live
            ]
            given = self._given()
            turned = TOOLS.transpose_graph(self._graph, len(given), [x.aval for x in live])
            made = iter(evaluate(turned, [*given, *live]))
            out = [next(made) if inexact(a.dtype) else None for a in types.in_avals]
        typed = _as_weak(types.out_avals, cts)
        return tree_unflatten(types.in_tree, gradients(out, types.in_avals, typed))


def _cotangent(a: Aval, ct: Any) -> Node | None:
    """Convert a cotangent, checking it against the result it belongs to; None for integers."""
    if not inexact(a.dtype):
        return None
    n = as_node(ct, "vjp")
    if n.aval.dtype != a.dtype or n.aval.shape != a.shape:
        want = _type_text(a)
        raise ValueError(
            "vjp: unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{_type_text(n.aval)}, but expected {want}, the type of the result; convert "
            "it, or broadcast it"
        )
    return n


for _kind in (Push, Pull):
    register_pytree_node(_kind, lambda x: x._flatten(), _kind._unflatten)
