"""Primitives: the operations of the equations of jaxprs, built-in ones and those of users.

`bind` applies a primitive to arrays and records an op where something is traced. The op of a user's
primitive contains the program of one call: its traced lowering, or a host call of its `impl`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.array_type import Array, ArrayLike, is_traced, wrap
from accnp.errors import JAXTypeError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.equations import ClosedJaxpr, Jaxpr, no_effects
from accnp.ir.graph import Graph, interpret
from accnp.ir.node import Node, items, record
from accnp.ir.op import CALLS, OPS, Linear, Op
from accnp.ir.trace import state
from accnp.jax_compat.jaxprs import rules
from accnp.jax_compat.jaxprs.evaluation import programs_of
from accnp.primitives.checkpoint import install_primitives
from accnp.primitives.kinds import broadcast_to
from accnp.trace_fn import trace

__all__ = ["Primitive", "is_builtin", "primitive", "primitive_of", "set_primitive"]

# Parameters of JAX without a meaning in accnp; only their default values are accepted.
_DEFAULTS: dict[str, Any] = {
    "accuracy": None, "out_dtype": None, "sharding": None, "out_sharding": None,
    "in_shardings": None, "out_shardings": None, "in_layouts": None, "out_layouts": None,
    "ctx_mesh": None, "compiler_options_kvs": (),
}  # fmt: skip


_primitives: dict[Op, Primitive] = {}


class Primitive:
    """Operation with a name, an implementation, and rules by which programs are transformed.

    Parameters
    ----------
    name : str
        Label in jaxprs.

    Examples
    --------
    >>> import accnp as jax
    >>> double_p = jax.extend.core.Primitive("double")
    >>> _ = double_p.def_impl(lambda x: 2 * x)
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> jax.make_jaxpr(double_p.bind)(1.0)
    { lambda ; a:f32[]. let b:f32[] = double a in (b,) }
    >>> double_p.bind(jax.numpy.float32(3))
    Array(6., dtype=float32)
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False
    show: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    op: Op | None = None  # of a built-in primitive

    def __init__(self, name: str) -> None:
        self.name = name
        # A traceable function from operands to results, used instead of `impl`.
        self.lowering: Callable[..., Any] | None = None
        self.records_impl = False  # whether `impl` may be traced instead
        self._programs: dict[Any, Graph] = {}
        self._op = Op(
            name,
            "call",
            self._infer,
            numpy=lambda *xs, **params: interpret(params["_program"], xs),
            jvp=self._jvp,
            transpose=self._transpose,
            batch=self._batch,
        )
        self._host = Op(name, "opaque", self._types, numpy=self._run)
        _primitives[self._op] = self

    def __repr__(self) -> str:
        return self.name

    # --- definition ---

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Set the function that computes the results of concrete operands, as a decorator.

        Parameters
        ----------
        impl : callable
            Function of the operands and parameters that returns the results.

        Returns
        -------
        callable
            The function itself.
        """
        self.impl = impl  # type: ignore[method-assign]
        self._programs.clear()
        return impl

    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Set the function from the types of operands to the types of results, as a decorator.

        Parameters
        ----------
        abstract_eval : callable
            Function of avals and parameters that returns the types of the results.

        Returns
        -------
        callable
            The function itself.
        """
        self.def_effectful_abstract_eval(lambda *xs, **p: (abstract_eval(*xs, **p), no_effects))
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Set the function from the types of operands to the types of results and the effects.

        Parameters
        ----------
        abstract_eval : callable
            Function of avals and parameters that returns types and a set of effects.

        Returns
        -------
        callable
            The function itself.
        """
        self.abstract_eval = abstract_eval  # type: ignore[method-assign]
        return abstract_eval

    def impl(self, *args: Any, **params: Any) -> Any:
        """Compute the results."""
        raise NotImplementedError(
            f"Evaluation rule for '{self.name}' not implemented; set one with def_impl"
        )

    def abstract_eval(self, *avals: Aval, **params: Any) -> tuple[Any, Any]:
        """Return the types of the results, and the effects."""
        raise NotImplementedError(
            f"Abstract evaluation for '{self.name}' not implemented; "
            "set a rule with def_abstract_eval"
        )

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters with which `bind` creates an equation again."""
        return params

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive: compute its results, or record them where something is traced.

        Parameters
        ----------
        *args : array_like
            Operands of the primitive in order, arrays or numbers of any shape and dtype.
        **params : object
            Static parameters of the primitive, by name.

        Returns
        -------
        Array or list of Array
            Result, or a list of results if `multiple_results` is True.

        Raises
        ------
        TypeError
            If an operand is not an array or a number.

        Examples
        --------
        >>> import accnp as jnp
        >>> double_p = jnp.extend.core.Primitive("double")
        >>> _ = double_p.def_impl(lambda x: x * 2)
        >>> double_p.bind(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
        """
        nodes = self._operands(args)
        if state.abstract is None and not any(map(_is_actively_traced, nodes)):
            out = (self.lowering or self.impl)(*map(wrap, nodes), **params)
            return [_array(x) for x in out] if self.multiple_results else _array(out)
        program = self._program(tuple(x.aval for x in nodes), params)
        results = items(record(self._op, tuple(nodes), {**params, "_program": program}))
        outs = [wrap(x) for x in results]
        return outs if self.multiple_results else outs[0]

    def _operands(self, args: Sequence[Any]) -> list[Node]:
        nodes = []
        for i, x in enumerate(args):
            try:
                nodes.append(as_node(x, self.name))
            except TypeError:
                raise TypeError(
                    f"{self.name}: operand {i} is not an array or a number; got {x!r} of type "
                    f"{type(x).__name__}; convert it first"
                ) from None
        return nodes

    # --- as an op ---

    def _program(self, avals: tuple[Aval, ...], params: dict[str, Any]) -> Graph:
        """Return the program of one call, cached by types and parameters."""
        try:
            key = (avals, tuple(params.items()), self.lowering)
            program = self._programs.get(key)
        except TypeError:  # unhashable parameters
            key, program = None, None
        if program is None:
            of = self.lowering or self.impl
            program = trace(
                lambda nodes: self._body(nodes, params), avals, of=of, transform=self.name
            )
            program.name = self.name
            if key is not None:
                self._programs[key] = program
        return program

    def _body(self, nodes: list[Node], params: dict[str, Any]) -> list[Node]:
        if self.lowering is not None:
            out = self.lowering(*map(wrap, nodes), **params)
        else:
            try:
                out = self.impl(*map(wrap, nodes), **params) if self.records_impl else None
            except JAXTypeError:  # it needs concrete values
                out = None
            if out is None:
                return list(items(record(self._host, tuple(nodes), params)))
        types = self._types(*[x.aval for x in nodes], **params)
        outs = [as_node(x, self.name) for x in (out if self.multiple_results else [out])]
        if [(x.aval.shape, x.aval.dtype) for x in outs] != [(a.shape, a.dtype) for a in types]:
            raise TypeError(
                f"{self.name}: the lowering and the abstract evaluation disagree; got "
                f"{[str(x.aval) for x in outs]} for {[str(a) for a in types]}; make them agree"
            )
        return outs

    def _types(self, *avals: Aval, **params: Any) -> tuple[Aval, ...]:
        out, _ = self.abstract_eval(*avals, **params)
        return tuple(_type(a) for a in (out if self.multiple_results else [out]))

    def _infer(self, *avals: Aval, _program: Graph, **params: Any) -> tuple[Aval, ...]:
        return _program.out_avals

    def _run(self, *arrays: np.ndarray, **params: Any) -> tuple[Any, ...]:
        types = self._types(*[make_aval(x.shape, x.dtype) for x in arrays], **params)
        out = self.impl(*arrays, **params)
        outs = out if self.multiple_results else [out]
        return tuple(np.asarray(x, a.dtype) for x, a in zip(outs, types, strict=True))

    def _jvp(self, ts: Any, y: Node, xs: Any, params: dict, tools: Any) -> Any:
        rule = self._rule(rules.primitive_jvps, "Differentiation")
        tangents = tuple(
            [rules.Zero(x.aval) if t is None else wrap(t) for t, x in zip(ts, xs, strict=True)]
        )
        primal, tangent = rule(tuple(map(wrap, xs)), tangents, **_visible_params(params))
        if not self.multiple_results:
            primal, tangent = [primal], [tangent]
        return [as_node(p, self.name) for p in primal], [_node_or_none(t) for t in tangent]

    def _transpose(self, cts: Any, xs: Any, params: dict, tools: Any) -> Any:
        rule = self._rule(rules.primitive_transposes, "Transpose")
        avals = params["_program"].out_avals
        out_cotangents = [
            rules.Zero(a) if ct is None else wrap(ct) for ct, a in zip(cts, avals, strict=True)
        ]
        args = [rules.UndefinedPrimal(x.aval) if isinstance(x, Linear) else wrap(x) for x in xs]
        in_cotangents = rule(
            out_cotangents if self.multiple_results else out_cotangents[0],
            *args,
            **_visible_params(params),
        )
        return [_node_or_none(ct) for ct in in_cotangents]

    def _batch(self, size: int, xs: Any, flags: Any, params: dict, tools: Any) -> Any:
        if self in rules.axis_primitive_batchers:
            rule = functools.partial(rules.axis_primitive_batchers[self], size, None, None)
        else:
            rule = self._rule(rules.primitive_batchers, "Batching")
        dims = tuple([0 if f else rules.not_mapped for f in flags])
        out, out_dims = rule(tuple(map(wrap, xs)), dims, **_visible_params(params))
        if not self.multiple_results:
            out, out_dims = [out], [out_dims]
        pairs = list(zip(out, out_dims, strict=True))
        front = [x if d is None else rules.bdim_at_front(x, d, size) for x, d in pairs]
        return [as_node(x, self.name) for x in front], [d is not None for _, d in pairs]

    def _rule(self, table: rules.Rules, what: str) -> Callable[..., Any]:
        if self not in table:
            raise NotImplementedError(f"{what} rule for '{self.name}' not implemented")
        return table[self]


def _visible_params(params: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in params.items() if k != "_program"}


def _node_or_none(t: Any) -> Node | None:
    return None if t is None or type(t) is rules.Zero else as_node(t)


def _is_actively_traced(node: Node) -> bool:
    return node.trace is not None and (node.trace.active or is_traced(node))


def _array(x: Any) -> Any:
    return x if type(x) is Array else wrap(as_node(x))


def _type(aval: Any) -> Aval:
    weak = bool(getattr(aval, "weak_type", False))
    return make_aval(tuple(aval.shape), np.dtype(aval.dtype), weak)


# --- built-in primitives -------------------------------------------------------------------------


class _BuiltinPrimitive(Primitive):
    """The primitive of a built-in op."""

    op: Op

    def __init__(self, op: Op) -> None:
        self.name = op.jax_name or op.name
        self.op = op
        self.show = op.show
        self.multiple_results = op.kind in (*CALLS, "callback") or op.several

    def abstract_eval(self, *avals: Aval, **params: Any) -> tuple[Any, Any]:
        """Return the types of the results, and the effects."""
        graphs = {k: _graphs(v)[0] for k, v in _prepare_params(params).items()}
        return self.op.infer(*avals, **graphs), no_effects

    def impl(self, *args: Any, **params: Any) -> Any:
        """Compute the results."""
        return self.bind(*args, **params)

    def bind(self, *args: ArrayLike, **params: object) -> Any:
        """Record the operation of the primitive.

        Parameters
        ----------
        *args : array_like
            Operands of the primitive in order, arrays or numbers of any shape and dtype.
        **params : object
            Static parameters of the primitive, by the names that its equations show.

        Returns
        -------
        Array or list of Array
            Result, or a list of results if `multiple_results` is True.

        Raises
        ------
        TypeError
            If an operand is not an array or a number.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.lax.add_p.bind(jnp.float32(1.0), jnp.float32(2.0))
        Array(3., dtype=float32)
        """
        nodes, prepared = self._operands(args), _prepare_params(params)
        if self.op.kind == "map":
            nodes = _broadcast_operands(nodes)
        elif self.op.kind in CALLS:
            nodes, prepared = _with_programs(self.op, nodes, prepared)
        node = record(self.op, tuple(nodes), prepared)
        if not isinstance(node.aval, tuple):
            return [wrap(node)] if self.multiple_results else wrap(node)
        return [wrap(x) for x in items(node)]


def primitive_of(op: Op) -> Primitive:
    """Return the primitive of an op, always the same object."""
    builtin = _primitives.get(op)
    if builtin is None:
        builtin = _primitives[op] = _BuiltinPrimitive(op)
    return builtin


install_primitives(primitive_of)  # policies of `checkpoint` get primitives


def set_primitive(new_primitive: Any, name: str) -> Any:
    """Register a primitive as that of the op of this name, also in equations."""
    new_primitive.show = OPS[name].show
    return _primitives.setdefault(OPS[name], new_primitive)


def primitive(name: str) -> Primitive:
    """Return the primitive of the op of this name."""
    return primitive_of(OPS[name])


def _prepare_params(params: dict[str, Any]) -> dict[str, Any]:
    """Convert parameters to hashable ones, without JAX's parameters that have no meaning here."""
    out = {}
    for k, v in params.items():
        if k not in _DEFAULTS:
            out[k] = _make_hashable(v)
        elif v != _DEFAULTS[k]:
            raise NotImplementedError(
                f"bind: the parameter {k} is not supported; got {v!r}; leave it out"
            )
    return out


def _make_hashable(v: Any) -> Any:
    if isinstance(v, Primitive):  # such as the comparison of an extreme
        return v.name
    return tuple(_make_hashable(x) for x in v) if isinstance(v, list) else v


def _broadcast_operands(nodes: list[Node]) -> list[Node]:
    """Broadcast operands of one rank along axes of length 1; the op checks other shapes."""
    shapes = [x.aval.shape for x in nodes if x.aval.shape]
    if len({len(s) for s in shapes}) != 1 or len(set(shapes)) == 1:
        return nodes
    shape = tuple(max(ns) if 0 not in ns else 0 for ns in zip(*shapes, strict=True))
    if any(n not in (1, m) for s in shapes for n, m in zip(s, shape, strict=True)):
        return nodes
    return [broadcast_to(x, shape) if x.aval.shape else x for x in nodes]


def _is_program(v: Any) -> bool:
    return isinstance(v, ClosedJaxpr | Jaxpr)


def _as_closed_jaxpr(v: ClosedJaxpr | Jaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(v) if isinstance(v, Jaxpr) else v


def _graphs(v: Any) -> tuple[Any, list[Node]]:
    """Convert jaxprs in a parameter to graphs; return their constants as well."""
    if _is_program(v):
        (graph,), consts = programs_of([_as_closed_jaxpr(v)])
        return graph, consts
    if isinstance(v, tuple) and v and all(map(_is_program, v)):
        graphs, consts = programs_of([_as_closed_jaxpr(x) for x in v])
        return tuple(graphs), consts
    return v, []


def _with_programs(
    op: Op, nodes: list[Node], params: dict[str, Any]
) -> tuple[list[Node], dict[str, Any]]:
    """Convert jaxprs in parameters to graphs, and insert their constants before the operands."""
    params = dict(params)
    for key, (place, count) in op.program_constants.items():
        params[key], consts = _graphs(params[key])
        if consts:
            at = params["cond_nconsts"] if place < 0 else place
            nodes = [*nodes[:at], *consts, *nodes[at:]]
            if count:
                params[count] += len(consts)
    return nodes, params


def is_builtin(primitive: Any) -> bool:
    """Return whether a primitive is a built-in one."""
    return isinstance(primitive, _BuiltinPrimitive)
