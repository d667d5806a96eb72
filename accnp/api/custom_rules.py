"""`custom_jvp`, `custom_vjp`, `custom_gradient`: functions with derivative rules of the user's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.convert import as_node, wrap
from accnp.array import Array
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ops.custom import JvpRule, VjpRule, boundary
from accnp.ops.kinds import zeros_like_aval
from accnp.pytree import tree_flatten, tree_structure, tree_unflatten
from accnp.transforms.walk import inexact

__all__ = ["closure_convert", "custom_gradient", "custom_jvp", "custom_vjp", "stop_gradient"]


def stop_gradient(x: Any) -> Any:
    """Return the values of a tree of arrays, without their derivative.

    Example:
        >>> import accnp as jnp
        >>> float(jnp.grad(lambda x: x * jnp.lax.stop_gradient(x))(3.0))
        3.0
    """
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [_stopped(leaf) for leaf in leaves])


def _stopped(leaf: Any) -> Any:
    node = as_node(leaf, "stop_gradient")
    return wrap(o.detach(node)) if inexact(node.aval.dtype) else leaf


def _resolve(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Turn keyword arguments into positional ones and fill in defaults."""
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except ValueError:
        return args
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{getattr(fun, '__name__', fun)}: a function with a custom rule takes positional "
            "arguments; "
            f"got the keyword-only arguments {sorted(bound.kwargs)}; pass them by position"
        )
    return bound.args


def _positions(nondiff_argnums: Sequence[int], count: int) -> set[int]:
    return {n % count if n < 0 else n for n in nondiff_argnums}


class _Call:
    """One call of a function with a custom rule: its differentiable leaves and their places."""

    __slots__ = ("args", "count", "fixed", "nodes", "places", "tree")

    def __init__(self, name: str, args: tuple[Any, ...], nondiff: Sequence[int]) -> None:
        fixed = _positions(nondiff, len(args))
        self.args = args
        self.fixed = [args[i] for i in sorted(fixed)]
        self.places = [i for i in range(len(args)) if i not in fixed]
        leaves, self.tree = tree_flatten(tuple(args[i] for i in self.places))
        self.nodes = [as_node(x, name) for x in leaves]

    def unflatten(self, nodes: Sequence[Node]) -> tuple[Any, ...]:
        """Return the differentiable arguments made of these nodes."""
        return tree_unflatten(self.tree, [wrap(n) for n in nodes])

    def run(self, fun: Callable[..., Any]) -> tuple[list[Node], Any]:
        """Run the function on detached arguments; returns result nodes and their structure."""
        whole = list(self.args)
        for i, x in zip(
            self.places, self.unflatten([o.detach(n) for n in self.nodes]), strict=True
        ):
            whole[i] = x
        leaves, tree = tree_flatten(fun(*whole))
        return [as_node(x, "custom rule") for x in leaves], tree


def _like(ct: Node | None, aval: Any) -> Any:
    return np.zeros(aval.shape, dtypes.float0) if ct is None else wrap(ct)


class custom_jvp:
    """A function with a forward derivative rule of its own, set by `defjvp` or `defjvps`.

    Example:
        >>> import accnp as jnp
        >>> @jnp.custom_jvp
        ... def f(x):
        ...     return x * x
        >>> @f.defjvp
        ... def f_jvp(primals, tangents):
        ...     return f(*primals), 10.0 * tangents[0]
        >>> float(jnp.grad(f)(3.0))
        10.0
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = (*nondiff_argnums, *_named(fun, nondiff_argnames))
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule (primals, tangents) -> (primal out, tangent out); returns it."""
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule (tangent, primal_out, *primals) -> tangent for each argument, or None."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = self(*primals)
            leaves, tree = tree_flatten(out)
            totals: list[Node | None] = [None] * len(leaves)
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is None:
                    continue
                parts = tree_flatten(rule(t, out, *primals))[0]
                for i, part in enumerate(parts):
                    node = as_node(part)
                    have = totals[i]
                    totals[i] = node if have is None else o.add(have, node)
            filled = [
                wrap(zeros_like_aval(as_node(x).aval) if t is None else t)
                for x, t in zip(leaves, totals, strict=True)
            ]
            return out, tree_unflatten(tree, filled)

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self.fun, "__name__", "custom_jvp function")
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        call = _Call(name, _resolve(self.fun, args, kwargs), self.nondiff_argnums)
        outs, tree = call.run(self.fun)
        avals = [x.aval for x in outs]
        jvp = self.jvp

        def rule(primals: list[Node], tangents: list[Node]) -> tuple[list[Node], list[Node]]:
            shown = [
                t if inexact(p.aval.dtype) else None for p, t in zip(primals, tangents, strict=True)
            ]
            ts = tree_unflatten(
                call.tree, [_like(t, p.aval) for t, p in zip(shown, primals, strict=True)]
            )
            result = jvp(*call.fixed, call.unflatten(primals), ts)
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    f"Custom JVP rule {_name(jvp)} for function {name} must produce a pair (list "
                    "or tuple "
                    "of length two) representing primal and tangent outputs, but got "
                    f"{type(result).__name__}."
                )
            p_out, p_tree = tree_flatten(result[0])
            t_out, t_tree = tree_flatten(result[1])
            if p_tree != tree or t_tree != tree:
                raise TypeError(
                    f"Custom JVP rule {_name(jvp)} for function {name} must produce primal and "
                    "tangent "
                    f"outputs with equal container (pytree) structures, but got {p_tree} and "
                    f"{t_tree}; "
                    f"the function returns {tree}."
                )
            primal_nodes = [as_node(x, name) for x in p_out]
            tangent_nodes = []
            for x, t, a in zip(primal_nodes, t_out, avals, strict=True):
                if not inexact(x.aval.dtype):
                    tangent_nodes.append(zeros_like_aval(x.aval))
                    continue
                t_node = as_node(t, name)
                if (
                    t_node.aval.shape != a.shape
                    or t_node.aval.dtype != a.dtype
                    or x.aval.shape != a.shape
                ):
                    raise TypeError(
                        f"Custom JVP rule {_name(jvp)} for function {name} must produce primal "
                        "and tangent "
                        f"outputs with corresponding shapes and dtypes; got {x.aval} and "
                        f"{t_node.aval} "
                        f"where the function returns {a}."
                    )
                tangent_nodes.append(t_node)
            return primal_nodes, tangent_nodes

        wrapped = boundary(JvpRule(name, rule), call.nodes, outs)
        return tree_unflatten(tree, [wrap(x) for x in wrapped])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", str(fun))


def _named(fun: Callable[..., Any], names: Sequence[str]) -> tuple[int, ...]:
    if not names:
        return ()
    parameters = list(inspect.signature(fun).parameters)
    return tuple(parameters.index(n) for n in names)


class custom_vjp:
    """A function with a reverse derivative rule of its own, set by `defvjp(fwd, bwd)`.

    Example:
        >>> import accnp as jnp
        >>> @jnp.custom_vjp
        ... def f(x):
        ...     return x * x
        >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
        >>> float(jnp.grad(f)(3.0))
        10.0
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = (*nondiff_argnums, *_named(fun, nondiff_argnames))
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules: fwd(*args) -> (out, residuals), bwd(residuals, ct) -> cotangents."""
        self.fwd = fwd
        self.bwd = bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = _name(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        call = _Call(name, _resolve(self.fun, args, kwargs), self.nondiff_argnums)
        outs, tree = call.run(self.fun)
        rule = _vjp_rule(name, call, tree, self.fwd, self.bwd)
        return tree_unflatten(tree, [wrap(x) for x in boundary(rule, call.nodes, outs)])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _vjp_rule(
    name: str, call: _Call, tree: Any, fwd: Callable[..., Any], bwd: Callable[..., Any]
) -> VjpRule:
    avals = [n.aval for n in call.nodes]

    def forward(primals: list[Node]) -> tuple[list[Node], list[Node], Any]:
        whole = list(call.args)
        for i, x in zip(call.places, call.unflatten(primals), strict=True):
            whole[i] = x
        result = fwd(*whole)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"Custom VJP fwd rule {_name(fwd)} for function {name} must produce a pair (list "
                "or tuple "
                "of length two) where the first element represents the primal output and the "
                "second "
                f"element represents residuals, but got {type(result).__name__}."
            )
        out, out_tree = tree_flatten(result[0])
        if out_tree != tree:
            raise TypeError(
                f"Custom VJP fwd rule {_name(fwd)} for function {name} must produce a primal "
                "output with "
                f"the container (pytree) structure of the function's, but got {out_tree} and "
                f"{tree}."
            )
        residuals, res_tree = tree_flatten(result[1])
        # Arrays travel as nodes; whatever else was saved is handed on as it is.
        nodes = [x._node for x in residuals if type(x) is Array]
        other = [None if type(x) is Array else (x,) for x in residuals]
        return [as_node(x, name) for x in out], nodes, (res_tree, other)

    def backward(extra: Any, residuals: list[Node], cts: list[Node]) -> list[Node | None]:
        res_tree, other = extra
        arrays = iter(residuals)
        leaves = [wrap(next(arrays)) if x is None else x[0] for x in other]
        shown = [_like(ct if inexact(ct.aval.dtype) else None, ct.aval) for ct in cts]
        result = bwd(*call.fixed, tree_unflatten(res_tree, leaves), tree_unflatten(tree, shown))
        if isinstance(result, list):
            result = tuple(result)
        return _cotangents(name, bwd, result, call, avals)

    return VjpRule(name, forward, backward)


def _is_none(x: Any) -> bool:
    return x is None


def _cotangents(
    name: str, bwd: Any, result: Any, call: _Call, avals: Sequence[Any]
) -> list[Node | None]:
    """Flatten what a backward rule returned; None is zero, for a leaf or a whole argument."""
    if not isinstance(result, tuple) or len(result) != len(call.places):
        raise TypeError(
            f"Custom VJP bwd rule {_name(bwd)} for function {name} must produce a tuple with one "
            f"cotangent for each of its {len(call.places)} differentiable arguments, "
            f"but got {tree_structure(result)}."
        )
    flat: list[Any] = []
    for part, i in zip(result, call.places, strict=True):
        want = tree_structure(call.args[i])
        if part is None:
            flat += [None] * want.num_leaves
            continue
        found, got = tree_flatten(part, _is_none)
        if got.num_leaves != want.num_leaves:
            raise TypeError(
                f"Custom VJP bwd rule {_name(bwd)} for function {name} must produce cotangents "
                "with the "
                f"container (pytree) structure of the arguments, but got {got} where {want} was "
                "expected."
            )
        flat += found
    out: list[Node | None] = []
    for ct, a in zip(flat, avals, strict=True):
        if ct is None or not inexact(a.dtype) or getattr(ct, "dtype", None) == dtypes.float0:
            out.append(None)
            continue
        node = as_node(ct, name)
        if node.aval.shape != a.shape or node.aval.dtype != a.dtype:
            raise ValueError(
                f"Custom VJP bwd rule {_name(bwd)} for function {name} must produce a cotangent "
                "of the "
                f"argument's type; got {node.aval}; the argument has type {a}"
            )
        out.append(node)
    return out


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that returns (value, pull) differentiable by its `pull`."""

    def value(*args: Any) -> Any:
        return fun(*args)[0]

    wrapped = custom_vjp(functools.wraps(fun)(value))

    def forward(*args: Any) -> tuple[Any, Any]:
        out, pull = fun(*args)
        return out, (_Static(pull), len(args))

    def backward(saved: Any, ct: Any) -> Any:
        pull, count = saved
        result = pull.value(ct)
        if count == 1 and not (isinstance(result, tuple) and len(result) == 1):
            return (result,)
        return tuple(result)

    wrapped.defvjp(forward, backward)
    return wrapped


class _Static:
    """Carries a function through the residuals as a leaf that is no array."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """Return `fun` and no arrays: closures need no conversion here."""
    return fun, []
