"""`custom_vjp` and `custom_gradient`: functions with a user-defined reverse-mode derivative rule;
`closure_convert`, which turns closed-over values of a function into arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from accnp.api.arguments.convert import as_node, is_host_value, wrap
from accnp.api.arguments.host_values import as_result
from accnp.api.arguments.values import check_callable, rule_setter
from accnp.api.differentiation.custom_rules import (
    RuleCall,
    SymbolicZero,
    check_same_results,
    depends_on_traces,
    nondiff_positions,
    tangent_aval,
    tangent_value,
)
from accnp.api.tracing.argument_names import function_name, positional_arguments
from accnp.api.tracing.bodies import close, forwarded_inputs
from accnp.array_type import Array, is_traced
from accnp.docstrings import filled
from accnp.dtypes import float0
from accnp.errors import UnexpectedTracerError, api_boundary
from accnp.ir.aval import Aval
from accnp.ir.graph import evaluate
from accnp.ir.node import Node
from accnp.ir.trace import own_lines
from accnp.key_array import PRNGKeyArray
from accnp.primitives.custom import VjpRule, boundary
from accnp.pytree import (
    PyTree,
    array_leaves,
    broadcast_prefix,
    flatten_arrays,
    keystr,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from accnp.trace_fn import trace
from accnp.transforms.traversal import inexact

__all__ = [
    "CustomVJPPrimal", "closure_convert", "custom_gradient", "custom_vjp",
    "custom_vjp_primal_tree_values",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class CustomVJPPrimal:
    """Leaf of an argument, as a forward rule with `symbolic_zeros=True` gets it.

    Parameters
    ----------
    value : array
        Content of the leaf, of any shape and dtype.
    perturbed : bool
        Whether the function is differentiated with respect to this leaf.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.custom_derivatives.CustomVJPPrimal(2.0, perturbed=True).perturbed
    True
    """

    value: Any
    perturbed: bool

    def of_keys(self, dtype: Any) -> CustomVJPPrimal:
        """Return the leaf of the keys that consist of these words."""
        return CustomVJPPrimal(PRNGKeyArray(self.value, dtype), self.perturbed)


def custom_vjp_primal_tree_values(tree: PyTree) -> Any:
    """Replace every `CustomVJPPrimal` of a pytree by its value, of unchanged shape and dtype.

    Parameters
    ----------
    tree : pytree of CustomVJPPrimal
        Arguments that a forward rule with `symbolic_zeros=True` got.

    Returns
    -------
    pytree
        The same structure with the arrays as leaves.

    Raises
    ------
    TypeError
        If a leaf is not a `CustomVJPPrimal`.

    See Also
    --------
    custom_derivatives.CustomVJPPrimal : Record of one leaf.

    Examples
    --------
    >>> import accnp as jax
    >>> leaf = jax.custom_derivatives.CustomVJPPrimal(2.0, perturbed=True)
    >>> jax.custom_derivatives.custom_vjp_primal_tree_values([leaf])
    [2.0]
    """

    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"unexpected leaf type {type(leaf)}")
        return leaf.value

    return tree_map(value, tree)


@filled
class custom_vjp(Generic[P, R]):
    """Function with its own reverse-mode derivative rule, set by `defvjp(fwd, bwd)`.

    `fwd` takes the arguments of the function and returns its value and residuals; `bwd` takes the
    residuals and the cotangent of the value, and returns a tuple with a cotangent for each
    argument.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays.
    {nondiff_argnums}

    Raises
    ------
    TypeError
        If `fun` is not callable, or a rule returns another pytree structure than expected.
    ValueError
        If `bwd` returns a cotangent of another shape.
    AttributeError
        If the function is called before its rule is set.

    See Also
    --------
    custom_jvp : Function with its own forward-mode rule.
    custom_gradient : Return a value together with its reverse-mode rule.

    Notes
    -----
    `bwd` gets the arguments that are not differentiated first. Cotangents have the shapes of the
    arguments that they belong to, and usually the dtypes: a cotangent of another dtype is passed on
    unchanged, and the derivatives of other operations reject it.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.custom_vjp
    ... def f(x):
    ...     return x * x
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
    >>> float(jnp.grad(f)(3.0))
    10.0
    """

    @api_boundary
    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        check_callable("custom_vjp", fun)
        functools.update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    __getattr__ = rule_setter

    @api_boundary
    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the forward and the backward rule of the function.

        Parameters
        ----------
        fwd : callable
            Function of the arguments that returns `(value, residuals)`, where the residuals are a
            pytree of what `bwd` needs.
        bwd : callable
            Function `(residuals, cotangent)` that returns a tuple with a cotangent for each
            differentiable argument; None is zero. Arguments that are not differentiated come first.
        symbolic_zeros : bool, optional
            Whether `fwd` gets leaves that say whether they are perturbed (`CustomVJPPrimal`), and
            `bwd` a `SymbolicZero` for a cotangent that is zero. The default is False.
        optimize_remat : bool, optional
            Ignored: under `checkpoint`, values that are not needed are never computed.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError(
                "remat optimization for custom_vjp does not support symbolic zeros"
            )
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = function_name(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"custom_vjp: No VJP defined for custom_vjp function {name} using defvjp; got a "
                "call of it; set one with defvjp(fwd, bwd)"
            )
        positional = positional_arguments("custom_vjp", self.fun, args, kwargs)
        for i in self.nondiff_argnums:
            _no_tracers(positional[i])
        call = RuleCall(name, positional, self.nondiff_argnums)
        if call.of_host_values:
            result = self.fun(*call.host_args())
            if not depends_on_traces(result):
                return result
        flags = call.perturbed()
        run = _forward_runner(name, call, self.fwd, self.symbolic_zeros)

        ran: list[Any] = []

        def value(nodes: list[Node]) -> tuple[list[Node], Any]:
            outputs, out_tree, saved = run(nodes, flags)
            ran.append((nodes, outputs, flatten_arrays(saved)))
            return outputs, out_tree

        outs, tree = call.run(self.fun, value if flags else None)
        rule = _rule(name, call, outs, tree, self.fwd, self.bwd, self.symbolic_zeros, flags, ran)
        nodes = boundary(rule, call.nodes, outs, call.effects, call.program)
        return tree_unflatten(tree, [wrap(x) for x in nodes])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _no_tracers(x: Any) -> None:
    for leaf in array_leaves(x):
        if type(leaf) is Array and _in_use(leaf._node):
            raise UnexpectedTracerError(
                "custom_vjp: arguments in nondiff_argnums cannot be traced; got a traced value; "
                "leave arrays out of nondiff_argnums, and return None for their cotangents"
            )


class _Saved:
    """The structure of a forward rule's residuals, and their leaves that are not arrays."""

    __slots__ = ("others", "tree")

    def __init__(self, tree: Any, others: list[Any]) -> None:
        self.tree = tree
        self.others = others


def _rule(
    name: str,
    call: RuleCall,
    outs: Sequence[Node],
    tree: Any,
    fwd: Callable[..., Any],
    bwd: Callable[..., Any],
    symbolic: bool,
    flags: Sequence[bool],
    ran: list[Any],
) -> VjpRule:
    out_avals = [x.aval for x in outs]
    run = _forward_runner(name, call, fwd, symbolic)

    def forward(primals: list[Node], perturbed: Sequence[bool]) -> Any:
        if ran and list(perturbed[: call.count]) == flags:
            first, outs, (residuals, res_tree) = ran[0]
            places = [i for i, x in enumerate(residuals) if type(x) is Array]
            values = call.again(first, [*outs, *[residuals[i]._node for i in places]], primals)
            outputs = values[: len(outs)]
            residuals = list(residuals)
            for i, x in zip(places, values[len(outs) :], strict=True):
                residuals[i] = wrap(x)
        else:
            outputs, out_tree, saved = run(primals, perturbed)
            check_same_results(_rule_signature(name, fwd), name, outputs, out_tree, out_avals, tree)
            residuals, res_tree = flatten_arrays(saved)
        # Arrays are passed as nodes; all other residuals are passed on unchanged.
        others = [None if type(x) is Array else (x,) for x in residuals]
        fixed = primals[call.count :]
        residual_nodes = [*[x._node for x in residuals if type(x) is Array], *fixed]
        return outputs, residual_nodes, _Saved(res_tree, others)

    def backward(saved: _Saved, residuals: list[Node], cts: list[Node | None]) -> list[Node | None]:
        arrays = iter(residuals)
        leaves = [wrap(next(arrays)) if x is None else x[0] for x in saved.others]
        fixed = call.fixed([*[None] * call.count, *arrays])  # type: ignore[list-item]
        shown_cts = [tangent_value(ct, a, symbolic) for ct, a in zip(cts, out_avals, strict=True)]
        with own_lines(), call.context():
            result = bwd(
                *fixed, tree_unflatten(saved.tree, leaves), tree_unflatten(tree, shown_cts)
            )
        return [*_cotangents(result, call), *[None] * (len(call.nodes) - call.count)]

    names = {"fwd": function_name(fwd), "bwd": function_name(bwd), "symbolic_zeros": symbolic}
    return VjpRule(name, forward, backward, names)


def _rule_signature(name: str, fwd: Callable[..., Any]) -> str:
    return f"custom_vjp: Custom VJP fwd rule {function_name(fwd)} for function {name}"


def _forward_runner(
    name: str, call: RuleCall, fwd: Callable[..., Any], symbolic: bool
) -> Callable[[list[Node], Sequence[bool]], tuple[list[Node], Any, Any]]:
    """Return the user's forward rule as a function of nodes that returns results, their structure
    and the residuals."""
    shown = _rule_signature(name, fwd)

    def run(primals: list[Node], perturbed: Sequence[bool]) -> Any:
        leaves: list[Any] = [wrap(x) for x in primals[: call.count]]
        ref = None
        if symbolic:
            leaves = [CustomVJPPrimal(x, p) for x, p in zip(leaves, perturbed, strict=False)]
            ref = _mark_unperturbed
        with own_lines(), call.once_more():
            result = fwd(*call.whole(leaves, primals, ref))
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"{shown} must produce a pair (list or tuple of length two), the output of {name} "
                f"and residuals; got {result!r:.200}; return both, with () if there are no "
                "residuals"
            )
        out, out_tree = flatten_arrays(result[0])
        outputs = [as_node(x, name) for x in out]
        return outputs, out_tree, result[1]

    return run


def _mark_unperturbed(ref: Any) -> CustomVJPPrimal:
    return CustomVJPPrimal(ref, False)


def _is_none(x: Any) -> bool:
    return x is None


def _cotangents(result: Any, call: RuleCall) -> list[Node | None]:
    """Flatten the result of a backward rule; None means zero, for a leaf or a whole argument."""
    if isinstance(result, list) and len(result) == len(call.places):
        result = tuple(result)
    dummy = call.dynamic(range(call.count))
    try:
        if not isinstance(result, tuple):
            raise ValueError("not a tuple")
        flat = call.arrays(broadcast_prefix(result, dummy, _is_none))
    except ValueError:
        raise TypeError(
            "custom_vjp: Custom VJP bwd rule must produce an output with the same container "
            "(pytree) structure as the args tuple of the primal function, one cotangent for each "
            f"argument; got {tree_structure(result)} for {call.tree.shown()}; "
            "return None for an argument without one"
        ) from None
    paths = call.arrays([keystr(path) for path, _ in tree_flatten_with_path(dummy)[0]])
    out: list[Node | None] = []
    for ct, a, path in zip(flat, call.avals, paths, strict=True):
        if ct is None or not inexact(a.dtype):
            out.append(None)
        elif getattr(ct, "dtype", None) == float0:
            if np.shape(ct) != a.shape:
                raise ValueError(_other_type(path, f"float0[{_sizes(np.shape(ct))}]", a))
            out.append(None)
        elif isinstance(ct, SymbolicZero):
            if (tuple(ct.shape), ct.dtype) != (a.shape, a.dtype):
                raise ValueError(
                    "custom_vjp: Custom VJP bwd rule produced a SymbolicZero with a shape/dtype "
                    "that does not match the corresponding input tangent shape/dtype; "
                    f"got {ct.aval} at output{path} for {tangent_aval(a)}; return None there"
                )
            out.append(None)
        else:
            node = as_node(ct, "custom_vjp")
            if node.aval.shape != a.shape:
                raise ValueError(_other_type(path, str(node.aval), a))
            out.append(node)  # as in JAX, of any dtype
    return out


def _other_type(path: str, actual: str, a: Aval) -> str:
    return (
        "custom_vjp: Custom VJP bwd rule must produce an output with the same type as the args "
        f"tuple of the primal function, but at output{path} the bwd rule produced an output of "
        f"type {actual} corresponding to an input of type {a}; sum over what was broadcast"
    )


def _sizes(shape: Sequence[int]) -> str:
    return ",".join(map(str, shape))


# --- custom_gradient, closure_convert ------------------------------------------------------------


class _Pullback:
    """The recorded backward part of `custom_gradient`, as a leaf that is not an array."""

    __slots__ = ("graph", "tree")

    def __init__(self, graph: Any, tree: Any) -> None:
        self.graph = graph
        self.tree = tree


@api_boundary
def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that returns `(value, pull)` differentiable by its `pull`.

    Parameters
    ----------
    fun : callable
        Function that returns its value and a function `pull`. `pull` takes the cotangent of the
        value and returns a cotangent for each argument, in a tuple if there are several. It is
        traced, so it cannot branch on values.

    Returns
    -------
    callable
        Function of the same arguments that returns only the value, with unchanged shape and dtype.

    Raises
    ------
    TypeError
        If `fun` is not callable.

    See Also
    --------
    custom_vjp : Define the forward and backward passes separately.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = jnp.custom_gradient(lambda x: (x**2, lambda ct: ct * x))
    >>> float(jnp.grad(f)(3.0))
    3.0
    """

    check_callable("custom_gradient", fun)

    @functools.wraps(fun)
    @api_boundary
    def value(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)[0]

    wrapped = custom_vjp(value)

    def forward(*args: Any) -> tuple[Any, Any]:
        out, pull = fun(*args)
        leaves, spec = flatten_arrays(out)
        avals = [as_node(x, "custom_gradient").aval for x in leaves]
        smooth = [inexact(a.dtype) for a in avals]
        trees: list[Any] = []

        def on_nodes(nodes: list[Node]) -> list[Node]:
            rest = iter(nodes)
            cts = [
                tangent_value(next(rest) if f else None, a, False)
                for f, a in zip(smooth, avals, strict=True)
            ]
            cotangents, found_tree = flatten_arrays(pull(tree_unflatten(spec, cts)))
            trees.append(found_tree)
            return [as_node(x, "custom_gradient") for x in cotangents]

        smooth_avals = [a for a, f in zip(avals, smooth, strict=True) if f]
        graph = trace(on_nodes, smooth_avals, of=pull, transform="custom_gradient")
        consts = close([graph])
        return out, (_Pullback(graph, trees[0]), [wrap(x) for x in consts])

    def backward(saved: Any, ct: Any) -> Any:
        pull, consts = saved
        cts = [x for x in tree_leaves(ct) if x.dtype != float0]
        nodes = evaluate(pull.graph, [x._node for x in (*consts, *cts)])
        result = tree_unflatten(pull.tree, [wrap(x) for x in nodes])
        return (result,) if pull.tree.shown().is_leaf() else result

    wrapped.defvjp(forward, backward)
    return wrapped


def _maybe_perturbed(x: Node) -> bool:
    """Return whether a derivative with respect to this value may be taken later."""
    return _in_use(x) and inexact(x.aval.dtype)


def _in_use(x: Node) -> bool:
    """Return whether a value belongs to an active transformation."""
    return x.trace is not None and (x.trace.active or is_traced(x))


@api_boundary
def closure_convert(
    fun: Callable[..., Any], *example_args: PyTree
) -> tuple[Callable[..., Any], list[Any]]:
    """Turn the values that a function closes over into explicit arguments.

    Only values whose derivative may be needed are converted: those of a function that is being
    differentiated or traced.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays. It is traced with the types of `example_args`.
    *example_args : pytree of array_like
        Examples of its arguments, of any shape and dtype; their values are not used.

    Returns
    -------
    converted : callable
        Function of the arguments of `fun` followed by the closed-over values.
    values : list of Array
        Values that `fun` closes over.

    Raises
    ------
    TypeError
        If `fun` is not callable, an example is not an array, or `converted` is called with
        arguments of another pytree structure.

    See Also
    --------
    custom_vjp : Rules for functions, which must not close over differentiated values.

    Examples
    --------
    >>> import accnp as jnp
    >>> def g(w):
    ...     f, extra = jnp.closure_convert(lambda x: x * w, 1.0)
    ...     return f(3.0, *[2 * e for e in extra])
    >>> float(g(5.0)), float(jnp.grad(g)(5.0))
    (15.0, 6.0)
    """
    check_callable("closure_convert", fun)
    leaves, tree = flatten_arrays(tuple(example_args))
    specs: list[Any] = []
    constants: dict[int, Any] = {}

    def on_nodes(nodes: list[Node]) -> list[Node]:
        outputs, spec = flatten_arrays(fun(*tree_unflatten(tree, [wrap(n) for n in nodes])))
        specs.append(spec)
        constants.update((i, as_result(x)) for i, x in enumerate(outputs) if is_host_value(x))
        return [as_node(x, "closure_convert") for x in outputs]

    avals = [as_node(x, "closure_convert").aval for x in leaves]
    graph = trace(on_nodes, avals, of=fun, transform="closure_convert")
    consts = close([graph])
    moved = [_maybe_perturbed(x) for x in consts]
    count = sum(moved)

    def converted(*args: Any) -> Any:
        n = len(args) - count
        flat, spec = flatten_arrays(tuple(args[:n]))
        if spec != tree:
            raise TypeError(
                "closure_convert: arguments must have the structure of the example's; got "
                f"{spec} for {tree}; pass arguments like the example"
            )
        hoisted_values = iter(args[n:])
        outer = [
            as_node(next(hoisted_values), "closure_convert") if m else x
            for m, x in zip(moved, consts, strict=True)
        ]
        nodes = [as_node(x, "closure_convert") for x in flat]
        results = evaluate(graph, [*outer, *nodes])
        through = forwarded_inputs(graph)
        outs = []
        for i, x in enumerate(results):
            at = through[i]
            value = constants.get(i) if at is None or at < len(outer) else flat[at - len(outer)]
            outs.append(value if is_host_value(value) else wrap(x))
        return tree_unflatten(specs[0], outs)

    return converted, [wrap(x) for x, m in zip(consts, moved, strict=True) if m]
