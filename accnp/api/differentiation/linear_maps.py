"""Results of `linearize` and `vjp`: the derivative at a point as a function of tangents or
cotangents.

They are pytrees of the arrays that the derivative needs, so that jitted and mapped functions can
return them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.differentiation.linearize import Linearized, gradients
from accnp.api.tracing.bodies import Reference
from accnp.errors import api_boundary
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, build, evaluate
from accnp.ir.node import LITERAL, Node
from accnp.primitives.kinds import zeros_like_aval
from accnp.pytree import (
    PyTreeDef,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
from accnp.transforms.tools import TOOLS
from accnp.transforms.traversal import inexact
from accnp.transforms.vjp import LinearMap

__all__ = [
    "DidntWant", "DontWant", "GradRef", "GradValue", "NotNeeded", "Pullback", "Pushforward", "ad",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """Entry of `args_res` of a vjp function: the argument is not needed."""


@dataclass(frozen=True, slots=True)
class GradValue:
    """Argument of `with_refs`: return this cotangent."""


@dataclass(frozen=True, slots=True)
class DontWant:
    """Argument of `with_refs`: do not return this cotangent."""


@dataclass(frozen=True, slots=True)
class GradRef:
    """Result of a function of `with_refs`: this cotangent was added to its reference."""


@dataclass(frozen=True, slots=True)
class DidntWant:
    """Result of a function of `with_refs`: this cotangent was not requested."""


ad = SimpleNamespace(DontWant=DontWant, DidntWant=DidntWant, GradRef=GradRef, GradValue=GradValue)
for _empty in (NotNeeded, GradRef, DidntWant):
    register_pytree_node(_empty, lambda _: ((), None), lambda _, __, kind=_empty: kind())


class _Types:
    """The structures and types of a function's arguments and results."""

    __slots__ = ("in_avals", "in_tree", "name", "out_avals", "out_tree", "places")

    places: list[int | None]  # position of each residual among the leaves of the arguments

    def __init__(self, lin: Linearized, name: str) -> None:
        self.name = name
        self.in_tree, self.out_tree = lin.in_tree, lin.out_tree
        self.in_avals, self.out_avals = lin.in_avals, lin.out_avals


class _Derivative:
    """The linear part of a function at a point: recorded nodes, or a program and its residuals."""

    __slots__ = ("_graph", "_live", "_map", "_marks", "_residuals", "types")

    _map: LinearMap | None
    _marks: Sequence[Node]
    _graph: Graph
    _live: list[bool]
    _residuals: Sequence[Any]

    def __init__(self, lin: Linearized, name: str) -> None:
        self.types = _Types(lin, name)
        self._map = lin.map
        self._marks = lin.marks

    def _program(self) -> None:
        """Convert the recorded nodes to a program from residuals and tangents to live tangents."""
        if self._map is None:
            return
        order, places, outputs = self._map.order, self._map.inputs, self._map.outputs
        own = {id(x) for x in (*order, *places)}
        used = [x for node in order for x in node.inputs]
        free = list({id(x): x for x in used if id(x) not in own and x.op is not LITERAL}.values())
        moving = [x for x in places if inexact(x.aval.dtype)]
        self._live = [x is not None for x in outputs]

        def run(leaves: list[Node]) -> list[Node]:
            env = dict(zip(map(id, (*free, *moving)), leaves, strict=True))
            TOOLS.replay(order, env)
            return [env[id(x)] for x in outputs if x is not None]

        self._graph = build(run, [x.aval for x in (*free, *moving)], self.types.name)
        self._residuals = [wrap(x) for x in free]
        marked = {id(x): i for i, x in enumerate(self._marks)}
        self.types.places = [marked.get(id(x)) for x in free]
        self._map, self._marks = None, ()

    def _flatten(self) -> tuple[tuple[Any, ...], Any]:
        self._program()
        return tuple(self._residuals), (self._graph, tuple(self._live), self.types)

    @classmethod
    def _unflatten(cls, static: Any, residuals: Any) -> _Derivative:
        self = object.__new__(cls)
        graph, live, self.types = static
        self._map, self._marks = None, ()
        self._graph, self._live = graph, list(live)
        self._residuals = residuals
        return self

    def _residual_nodes(self) -> list[Node]:
        return [as_node(x, self.types.name) for x in self._residuals]


def _type_text(a: Aval) -> str:
    return f"{a.dtype.name}[{','.join(map(str, a.shape))}]"


def as_weak(avals: Sequence[Aval], nodes: Sequence[Node | None]) -> bool:
    """Return whether no strong value was passed for a weak one, which would make the results that
    depend on it strong, as in JAX."""
    pairs = zip(avals, nodes, strict=True)
    return not any(a.weak_type and x is not None and not x.aval.weak_type for a, x in pairs)


class Pushforward(_Derivative):
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
            results = iter(evaluate(self._graph, [*self._residual_nodes(), *moving]))
            out = [next(results) if is_live else None for is_live in self._live]
        typed = as_weak(types.in_avals, ts)
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


def _inconsistent(actual: Aval, primal: Aval, dtype: str) -> str:
    expected = f"{dtype}[{','.join(map(str, primal.shape))}]"
    return (
        "linearized function called on tangent values inconsistent with the original primal "
        f"values; got {_type_text(actual)} for a primal {_type_text(primal)}; pass {expected}"
    )


class Pullback(_Derivative):
    """A function's transposed derivative at a point: from cotangents of the results to those of the
    arguments.

    Attributes:
        args_res: for each argument, its arrays that are saved, in tuples, with `NotNeeded()` for
            arrays that are not used. They can be replaced before a call.
        opaque_residuals: the other saved arrays.
    """

    __slots__ = ("_args_res", "_opaque")

    _args_res: list[Any]
    _opaque: list[Any]

    def _split(self) -> None:
        """Split the residuals into the lists that users see."""
        if hasattr(self, "_args_res"):
            return
        self._program()
        places = self.types.places
        residual_of = {i: x for i, x in zip(places, self._residuals, strict=True) if i is not None}
        leaves = [residual_of.get(i, NotNeeded()) for i in range(len(self.types.in_avals))]
        tree = _as_tuples(self.types.in_tree)
        self._args_res = list(tree.unflatten(leaves))
        self._opaque = [x for i, x in zip(places, self._residuals, strict=True) if i is None]

    def _residual_nodes(self) -> list[Node]:
        if hasattr(self, "_args_res"):
            leaves = tree_leaves(self._args_res, _is_not_needed)
            opaque = iter(self._opaque)
            self._residuals = [next(opaque) if i is None else leaves[i] for i in self.types.places]
        return super()._residual_nodes()

    def _flatten(self) -> tuple[tuple[Any, ...], Any]:
        if hasattr(self, "_args_res"):
            self._residuals = [wrap(x) for x in self._residual_nodes()]
        return super()._flatten()

    @property
    def args_res(self) -> list[Any]:
        """The saved arrays of the arguments, with NotNeeded() for those that are not used."""
        self._split()
        return self._args_res

    @args_res.setter
    def args_res(self, value: list[Any]) -> None:
        self._split()
        self._args_res = value

    @property
    def opaque_residuals(self) -> list[Any]:
        """The saved arrays that are not arguments."""
        self._split()
        return self._opaque

    @opaque_residuals.setter
    def opaque_residuals(self, value: list[Any]) -> None:
        self._split()
        self._opaque = value

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of the arguments."""
        return self.types.in_tree.shown()

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result."""
        return self.types.out_tree.shown()

    @api_boundary
    def with_refs(self, *refs: Any) -> Callable[[Any], Any]:
        """Return a function of the cotangent that adds to references.

        Args:
            refs: for each leaf of the arguments, in trees like theirs: a reference, to which its
                cotangent is added; `ad.DontWant()`; or anything else, such as `ad.GradValue()`.

        The function returns the cotangents, with `ad.GradRef()` in place of those that were added
        to a reference, and `ad.DidntWant()` in place of those that were not requested. Raises
        ValueError if the structures differ, or a reference has another shape.

        Example:
            >>> import accnp as jax
            >>> total = jax.new_ref(jax.numpy.zeros(()))
            >>> for x in (1.0, 2.0):
            ...     _ = jax.vjp(lambda x: x**2, x)[1].with_refs(total)(1.0)
            >>> float(total[...])
            6.0
        """
        places, tree = tree_flatten(refs)
        if tree != self.in_tree:
            raise ValueError(
                f"with_refs: expected one entry for each leaf of the arguments; got {tree} for "
                f"arguments of structure {self.in_tree}; pass ad.GradValue() for a cotangent to "
                "return"
            )

        @api_boundary
        def accumulate(cotangent: Any) -> Any:
            cotangents = tree_leaves(self(cotangent))
            return tree.unflatten(
                [_accumulate_cotangent(p, x) for p, x in zip(places, cotangents, strict=True)]
            )

        accumulate.__name__ = "with_refs"  # for error messages
        return accumulate

    @api_boundary
    def __call__(self, *cotangents: Any) -> Any:
        types = self.types
        if len(cotangents) != 1:
            raise TypeError(
                f"vjp: the VJP function of {types.name} takes a single argument, the cotangent of "
                f"the result; got {len(cotangents)}; pass a tuple if the result is a tuple"
            )
        leaves, tree = tree_flatten(cotangents[0])
        if tree != types.out_tree.shown():
            raise ValueError(
                "vjp: unexpected tree structure: the cotangents must match the pytree structure of "
                f"the results; got {tree} for {types.out_tree}; pass a cotangent for each result"
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
            residuals = self._residual_nodes()
            turned = TOOLS.transpose_graph(self._graph, len(residuals), [x.aval for x in live])
            results = iter(evaluate(turned, [*residuals, *live]))
            out = [next(results) if inexact(a.dtype) else None for a in types.in_avals]
        typed = as_weak(types.out_avals, cts)
        return tree_unflatten(types.in_tree, gradients(out, types.in_avals, typed))


def _accumulate_cotangent(place: Any, ct: Any) -> Any:
    """Add a cotangent to its reference if there is one; return its entry of the result."""
    if isinstance(place, DontWant):
        return DidntWant()
    if not isinstance(place, Reference):
        return ct
    ref: Any = place
    if tuple(ref.shape) != tuple(ct.shape):
        raise ValueError(
            "with_refs: Invalid shape for `addupdate`: the reference must have the shape of its "
            f"argument; got {tuple(ref.shape)} for a cotangent of shape {tuple(ct.shape)}; make "
            "another one"
        )
    if ct.dtype != dtypes.float0:
        ref.addupdate(ct)
    return GradRef()


def _is_not_needed(x: Any) -> bool:
    return isinstance(x, NotNeeded)


def _as_tuples(tree: PyTreeDef) -> PyTreeDef:
    """Replace each container of a structure by a tuple; keys are kept."""
    return tree_structure(tree.shown().walk(lambda xs, _: xs, None, [0] * tree.num_leaves))


def _cotangent(a: Aval, ct: Any) -> Node | None:
    """Convert a cotangent, checking it against the result it belongs to; None for integers."""
    if not inexact(a.dtype):
        return None
    n = as_node(ct, "vjp")
    if n.aval.dtype != a.dtype or n.aval.shape != a.shape:
        expected = _type_text(a)
        raise ValueError(
            "vjp: unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{_type_text(n.aval)}, but expected {expected}, the type of the result; convert "
            "it, or broadcast it"
        )
    return n


for _kind in (Pushforward, Pullback):
    register_pytree_node(_kind, lambda x: x._flatten(), _kind._unflatten)
