"""Shared parts of functions with user-defined derivative rules: their calls, symbolic zeros, and
`stop_gradient`.

A `RuleCall` splits the arguments of a call into differentiable leaves, as nodes, and the rest.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.host_values import as_result
from accnp.api.tracing.argument_names import function_name
from accnp.api.tracing.bodies import Reference, close
from accnp.array_type import Array
from accnp.config import config, scope
from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import Graph, toposort
from accnp.ir.node import Node, run_effect
from accnp.ir.op import o
from accnp.ir.trace import EffectsOf, Trace, collect_writes, own_effects, state
from accnp.primitives.control import take_wholes
from accnp.primitives.kinds import zeros_like_aval
from accnp.primitives.unrolled import depends_on_marks
from accnp.pytree import PyTree, flatten_arrays, map_arrays, tree_unflatten
from accnp.trace_fn import trace
from accnp.transforms.tools import TOOLS
from accnp.transforms.traversal import dependents, inexact

__all__ = [
    "RuleCall", "SymbolicZero", "check_same_results", "depends_on_traces", "nondiff_positions",
    "stop_gradient", "tangent_aval", "tangent_value", "zero_from_primal",
]  # fmt: skip


def stop_gradient(x: Any) -> Any:
    """Return the values of a tree of arrays, without their derivative.

    Example:
        >>> import accnp as jnp
        >>> float(jnp.grad(lambda x: x * jnp.lax.stop_gradient(x))(3.0))
        3.0
    """
    leaves, tree = flatten_arrays(x)
    return tree_unflatten(tree, [_stop_gradient(leaf) for leaf in leaves])


def _stop_gradient(leaf: Any) -> Any:
    node = as_node(leaf, "stop_gradient")
    return wrap(o.detach(node)) if inexact(node.aval.dtype) else leaf


# --- zeros ---------------------------------------------------------------------------------------


def tangent_aval(aval: Aval) -> Aval:
    """Return the type of a value's tangents: float0 for integers and booleans."""
    return aval if inexact(aval.dtype) else make_aval(aval.shape, dtypes.float0)


class SymbolicZero:
    """Stand-in for a zero tangent or cotangent in rules that asked for `symbolic_zeros`.

    It has the attributes of its aval: `shape`, `dtype`, `ndim`, `size` and `weak_type`. It is not
    an operand: functions of arrays reject it.

    Parameters
    ----------
    aval : ShapedArray
        Shape and dtype of the zeros.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.custom_derivatives.SymbolicZero(jax.typeof(jax.ones(2))).shape
    (2,)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return "SymbolicZero"

    def __getattr__(self, name: str) -> Any:
        if name == "aval":
            raise AttributeError(name)
        return getattr(self.aval, name)

    def of_keys(self, dtype: Any) -> SymbolicZero:
        """Return the symbolic zero of the keys that consist of these words."""
        return SymbolicZero(make_aval(self.aval.shape[:-1], self.aval.dtype))

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """Return the zero tangent of a value."""
        return SymbolicZero(tangent_aval(as_node(val, "SymbolicZero").aval))


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangents of a pytree of values.

    Parameters
    ----------
    val : pytree of array_like
        Primals of any shape and dtype.
    symbolic_zeros : bool, optional
        If True, return `SymbolicZero` leaves instead of arrays of zeros. The default is False.

    Returns
    -------
    pytree
        Zeros with the structure and shapes of `val`. The tangents of integers have dtype float0.

    Raises
    ------
    TypeError
        If a leaf is not an array.

    See Also
    --------
    custom_derivatives.SymbolicZero : Stand-in for zeros that need no array.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.custom_derivatives.zero_from_primal({"w": 2.0})
    {'w': Array(0., dtype=float32, weak_type=True)}
    """

    def zero(x: Any) -> Any:
        return tangent_value(None, as_node(x, "zero_from_primal").aval, symbolic_zeros)

    return map_arrays(zero, val)


def tangent_value(t: Node | None, aval: Aval, symbolic: bool) -> Any:
    """Return a tangent or cotangent in the form that a rule expects; `aval` is the primal's."""
    if t is not None and inexact(aval.dtype):
        return wrap(t)
    if symbolic:
        return SymbolicZero(tangent_aval(aval))
    if not inexact(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0)
    return wrap(zeros_like_aval(aval))


# --- calls ---------------------------------------------------------------------------------------


def nondiff_positions(
    fun: Callable[..., Any], argnums: Sequence[int], argnames: Sequence[str]
) -> tuple[int, ...]:
    """Return the positions of the arguments that are passed to rules first, undifferentiated."""
    positions = set(argnums)
    if argnames:
        names = (argnames,) if isinstance(argnames, str) else argnames
        parameters = list(inspect.signature(fun).parameters)
        for name in names:
            if name not in parameters:
                raise ValueError(
                    f"custom rule for {function_name(fun)}: nondiff_argnames has {name!r}, which "
                    f"is not a parameter; its parameters are {', '.join(parameters)}"
                )
            positions.add(parameters.index(name))
    return tuple(sorted(positions))


def depends_on_traces(tree: Any) -> bool:
    """Return whether an array among the leaves belongs to an active transformation."""
    nodes = [x._node for x in flatten_arrays(tree)[0] if type(x) is Array]
    return any(x.trace is not None and x.trace.active for x in nodes)


class RuleCall:
    """One call of a function with a custom rule.

    Its nodes are the leaves of the differentiable arguments, followed by the arrays among the other
    arguments, detached, so that a rule that runs in another trace can use them. References among
    the arguments are not nodes: functions and rules get them directly.
    """

    __slots__ = (
        "_fixed", "_fixed_tree", "_has_only_host_leaves", "_written", "_x64", "args", "avals",
        "count", "effects", "nodes", "places", "program", "refs", "tree",
    )  # fmt: skip

    effects: EffectsOf | None
    program: tuple[Graph, Sequence[Node]] | None

    def __init__(self, name: str, args: tuple[Any, ...], nondiff: Sequence[int]) -> None:
        fixed = sorted({n % len(args) for n in nondiff}) if args else []
        self.args = args
        self.places = [i for i in range(len(args)) if i not in fixed]
        leaves, self.tree = flatten_arrays(tuple(args[i] for i in self.places))
        self._has_only_host_leaves = not any(
            type(x) is Array or isinstance(x, Reference) for x in leaves
        )
        self._x64: bool = config.enable_x64
        self.refs: dict[int, Any] = {i: x for i, x in enumerate(leaves) if isinstance(x, Reference)}
        self._written: dict[int, Any] = {}
        array_nodes = [as_node(x, name) for x in leaves if not isinstance(x, Reference)]
        self.nodes = list(take_wholes(array_nodes))
        self.count = len(self.nodes)
        self.avals = [n.aval for n in self.nodes]
        others, self._fixed_tree = flatten_arrays(tuple(args[i] for i in fixed))
        # Leaves that are not arrays are wrapped in a tuple.
        self._fixed = [None if type(x) is Array else (x,) for x in others]
        self.nodes += [o.detach(x._node) for x in others if type(x) is Array]

    @property
    def of_host_values(self) -> bool:
        """Whether this is an ordinary Python call: nothing is being traced, and no argument can be
        differentiated."""
        return self._has_only_host_leaves and state.abstract is None and not state.named

    def host_args(self) -> list[Any]:
        """Return the arguments of a call with host values, in the dtypes of arrays."""
        places = self.places
        return [map_arrays(as_result, x) if i in places else x for i, x in enumerate(self.args)]

    def perturbed(self) -> list[bool]:
        """Return a flag for each differentiable argument: whether a derivative is taken with
        respect to it, without a jit in between. Then the rule computes the value.
        """
        traces: set[Trace] = set()
        for t in reversed(state.stack):
            if t.kind == "jit":
                break
            if t.kind == "grad" and not t.walked:
                traces.add(t)
        if not traces:
            return []
        flags = [depends_on_marks([x], traces) for x in self.nodes[: self.count]]
        return flags if any(flags) else []

    def dynamic(self, leaves: Sequence[Any], ref: Callable[[Any], Any] | None = None) -> Any:
        """Build the differentiable arguments from leaves; `ref` maps references to replacements."""
        if self.refs:
            dynamic_leaves = iter(leaves)
            leaves = [
                next(dynamic_leaves)
                if (r := self.refs.get(i)) is None
                else r
                if ref is None
                else ref(r)
                for i in range(self.count + len(self.refs))
            ]
        return tree_unflatten(self.tree, leaves)

    def arrays(self, flat: Sequence[Any]) -> list[Any]:
        """Remove the entries at the positions of references."""
        return [x for i, x in enumerate(flat) if i not in self.refs]

    def fixed(self, nodes: Sequence[Node]) -> tuple[Any, ...]:
        """Return the other arguments; `nodes` are all nodes of the call."""
        arrays = iter(nodes[self.count :])
        leaves = [wrap(next(arrays)) if x is None else x[0] for x in self._fixed]
        return tree_unflatten(self._fixed_tree, leaves)

    def whole(
        self,
        leaves: Sequence[Any],
        nodes: Sequence[Node],
        ref: Callable[[Any], Any] | None = None,
    ) -> list[Any]:
        """Return all arguments, with these leaves for the differentiable ones."""
        dynamic, fixed = iter(self.dynamic(leaves, ref)), iter(self.fixed(nodes))
        return [next(dynamic) if i in self.places else next(fixed) for i in range(len(self.args))]

    def run(
        self,
        fun: Callable[..., Any],
        instead: Callable[[list[Node]], tuple[list[Node], Any]] | None = None,
    ) -> tuple[list[Node], Any]:
        """Run the function on detached arguments; return the result nodes and their structure.

        `instead` runs in place of the function, on all nodes of the call. Effects of the function
        are dropped if its rule will run and repeat them. While a jaxpr is made, `program` holds the
        recorded program and what it closes over.
        """
        self.effects, self.program = None, None
        if state.named:
            return self._record_call(fun)
        detached = [wrap(o.detach(n)) for n in self.nodes[: self.count]]
        under = any(x.trace is not None and x.trace.active for x in self.nodes)
        with contextlib.ExitStack() as stack:
            if under and instead is None:  # effects of `instead` are kept
                self.effects = stack.enter_context(own_effects())
            if under:
                self._written = stack.enter_context(collect_writes())
            if instead is not None:
                moving = [x._node for x in detached]
                return instead([*moving, *self.nodes[self.count :]])
            leaves, tree = flatten_arrays(fun(*self.whole(detached, self.nodes)))
        effects = [] if self.effects is None else self.effects.deferred
        if effects and not depends_on_marks(self.nodes[: self.count]):
            for node in effects:
                run_effect(node)
        return [as_node(x, function_name(fun)) for x in leaves], tree

    def again(
        self, first: Sequence[Node], outputs: Sequence[Node], nodes: Sequence[Node]
    ) -> list[Node]:
        """Replay what a rule recorded for the nodes `first` on other nodes, so that the user's code
        runs only once."""
        order = toposort(outputs, set(map(id, first)), lambda x: x.trace is not None)
        env = dict(zip(map(id, first), nodes, strict=True))
        TOOLS.replay(dependents(order, first), env)
        return [env.get(id(x), x) for x in outputs]

    @contextlib.contextmanager
    def once_more(self) -> Iterator[None]:
        """Run the rule after the function has run: restore the contents of references that the
        function wrote, so that the rule sees the old ones and its writes have no effect."""
        now = [(place, place.content) for place, _ in self._written.values()]
        for place, content in self._written.values():
            place.content = content
        try:
            with self.context():
                yield
        finally:
            for place, content in now:
                place.content = content

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which rules must run: the setting of enable_x64."""
        if config.enable_x64 == self._x64:
            return contextlib.nullcontext()
        return scope("enable_x64", self._x64)

    def _record_call(self, fun: Callable[..., Any]) -> tuple[list[Node], Any]:
        tree: Any = None

        def body(nodes: list[Node]) -> list[Node]:
            nonlocal tree
            leaves = [wrap(x) for x in nodes[: self.count]]
            outs, tree = flatten_arrays(fun(*self.whole(leaves, nodes)))
            return [as_node(x, function_name(fun)) for x in outs]

        avals = [x.aval for x in self.nodes]
        graph = trace(body, avals, of=fun, transform="custom rule")
        self.program = graph, close([graph])
        return list(graph.outputs), tree


def check_same_results(
    rule: str, name: str, results: Sequence[Node], tree: Any, outs: Sequence[Aval], out_tree: Any
) -> None:
    """Compare the primal results of a rule with those of the function.

    Raises:
        TypeError: structures, shapes or dtypes differ.
    """
    if tree != out_tree:
        raise TypeError(
            f"{rule} must produce a pair whose first element represents a primal output with the "
            f"same container (pytree) structure as {name}; got {tree} for {out_tree}; return the "
            "same structure"
        )
    result_types = [(x.aval.shape, x.aval.dtype) for x in results]
    if result_types != [(a.shape, a.dtype) for a in outs]:
        texts = [f"[{', '.join(map(str, avals))}]" for avals in ([x.aval for x in results], outs)]
        raise TypeError(
            f"{rule} must produce a pair whose first element represents a primal output with the "
            f"same shapes and dtypes as {name}; got {texts[0]} for {texts[1]}; convert them"
        )
