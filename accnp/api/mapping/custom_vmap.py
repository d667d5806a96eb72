"""`custom_vmap` and `sequential_vmap`: functions with a user-defined batching rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.convert import wrap
from accnp.api.arguments.host_values import as_result
from accnp.api.arguments.values import check_callable, rule_setter
from accnp.api.tracing.argument_names import positional_arguments
from accnp.api.tracing.bodies import as_leaves, close, record_body, values
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.ir.graph import Graph
from accnp.ir.node import Node, items, record
from accnp.ir.op import OPS
from accnp.ir.trace import own_lines, state
from accnp.lax.control_flow.scans import map as map_rows
from accnp.primitives.custom_batching import BatchRule
from accnp.pytree import PyTreeDef, flatten_arrays, tree_flatten, tree_map, tree_structure

__all__ = ["custom_vmap", "sequential_vmap"]

Rule = Callable[..., tuple[Any, Any]]


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


class custom_vmap:
    """Function with its own batching rule, set by `def_vmap`.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays of any dtype.

    Raises
    ------
    AttributeError
        If the function is called before its rule is set.
    ValueError
        If it is differentiated in reverse mode, or the rule returns another pytree structure than
        the function.

    See Also
    --------
    vmap : Map a function over an axis.
    custom_batching.sequential_vmap : Rule that runs one example after the other.

    Notes
    -----
    The rule is called with the length of the mapped axis, a list with a flag (or a pytree of flags)
    for each argument that says whether it is mapped, and the arguments. Mapped arguments have the
    axis in front. The rule returns the results and, in a pytree of the same structure, which of
    them have the axis in front.

    Forward-mode derivatives under `vmap` are those of the rule. For reverse mode, wrap the function
    in `custom_vjp`.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.custom_batching.custom_vmap
    ... def f(x):
    ...     return x + 1
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x + 100, True
    >>> float(f(1.0)), jnp.vmap(f)(jnp.array([1.0, 2.0]))
    (2.0, Array([101., 102.], dtype=float32))
    """

    @api_boundary
    def __init__(self, fun: Callable[..., Any]) -> None:
        check_callable("custom_vmap", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Rule | None = None

    __getattr__ = rule_setter

    @api_boundary
    def def_vmap(self, vmap_rule: Rule) -> Rule:
        """Set the batching rule of the function, as a decorator.

        Parameters
        ----------
        vmap_rule : callable
            Rule `(axis_size, in_batched, *args) -> (results, out_batched)`.

        Returns
        -------
        callable
            The rule itself.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or its rule if the call is mapped."""
        rule = self.vmap_rule
        if rule is None:
            raise AttributeError(
                "custom_vmap: No batching rule defined for custom_vmap function "
                f"{_name(self.fun)} using def_vmap; got a call of it; set one with def_vmap"
            )
        args = positional_arguments("custom_vmap", self.fun, args, kwargs)
        leaves, spec = as_leaves(args, _name(self.fun), "args")
        if not state.stack:  # no transformation is active
            outs, tree = flatten_arrays(self.fun(*values(spec, leaves)))
            originals = {id(n): x for n, x in zip(leaves, flatten_arrays(args)[0], strict=True)}
            known = [originals.get(id(x._node), x) if type(x) is Array else x for x in outs]
            return tree.unflatten([as_result(x) for x in known])
        body = record_body(self.fun, "custom_vmap", [x.aval for x in leaves], spec)
        outer = close([body.graph])
        inputs = [*outer, *leaves]
        on_nodes = _on_nodes(rule, args, spec, body.graph, body.spec, len(outer))
        params = {
            "call": body.graph,
            "rule": BatchRule(rule, on_nodes),
            "in_tree": tree_structure(([0] * len(outer), args)),
            "out_tree": body.spec,
        }
        return values(body.spec, items(record(OPS["custom_vmap_call"], tuple(inputs), params)))


def _on_nodes(
    rule: Rule,
    args: tuple[Any, ...],
    spec: PyTreeDef,
    graph: Graph,
    out_spec: PyTreeDef,
    n_outer: int,
) -> Callable[..., Any]:
    """Return the user's rule as a rule on nodes, with checks of its results."""
    shown = tree_structure(args)
    name = _name(rule)

    def apply(
        size: int, xs: Sequence[Node], flags: Sequence[bool]
    ) -> tuple[list[Node], list[bool]]:
        if any(flags[:n_outer]):
            raise NotImplementedError(
                f"custom_vmap: the function {graph.name} closes over a value that is mapped by "
                "vmap; pass it as an argument"
            )
        batched = list(shown.unflatten(list(flags[n_outer:])))
        arguments = spec.unflatten([wrap(x) for x in xs[n_outer:]])
        with own_lines():
            result = rule(size, batched, *arguments)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise ValueError(
                f"custom_vmap: the rule {name} must return the results, and which of them are "
                f"batched; got {result!r}; return (out, out_batched)"
            )
        outs, tree = as_leaves(result[0], name, "output")
        which, marked = tree_flatten(result[1])
        if tree.shown() != marked:
            raise ValueError(
                "custom_vmap: structure of output value and output batching specification "
                f"returned by custom vmap rule ({name}) do not match; got {tree.shown()} and "
                f"{marked}; return one bool for each result"
            )
        if tree != out_spec:
            raise ValueError(
                f"custom_vmap: structure of output returned by custom vmap rule ({name}) does not "
                f"match that of original custom-vmapped function {graph.name}; got {tree} for "
                f"{out_spec}; return one value for each result"
            )
        return outs, [bool(b) for b in which]

    return apply


@api_boundary
def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """Make a function that `vmap` runs on one example after the other, by `lax.map`.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays. Shapes and dtypes of results do not change.

    Returns
    -------
    custom_batching.custom_vmap
        Function with the same results as `f`.

    Raises
    ------
    TypeError
        If `f` is not callable.

    See Also
    --------
    custom_batching.custom_vmap : Function with any batching rule.
    lax.map : Apply a function to one example after the other.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.custom_batching.sequential_vmap
    ... def f(x):
    ...     return x + 1
    >>> jnp.vmap(f)(jnp.array([1.0, 2.0]))
    Array([2., 3.], dtype=float32)
    """
    function = custom_vmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        leaves, structure = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]
        moving = [i for i, b in enumerate(flags) if b]
        if not moving:
            out = f(*args)
            return out, tree_map(lambda _: False, out)

        def one(rows: list[Any]) -> Any:
            whole = list(leaves)
            for i, row in zip(moving, rows, strict=True):
                whole[i] = row
            return function(*structure.unflatten(whole))

        out = map_rows(one, [leaves[i] for i in moving])
        return out, tree_map(lambda _: True, out)

    return function
