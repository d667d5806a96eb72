"""`linear_call`: a linear function with a user-defined transpose.

The call is recorded as one op; transposition replaces the function by its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.values import check_callable
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.graph import Graph, build
from accnp.ir.node import Node, items, record
from accnp.ir.op import Linear
from accnp.numpy.composed_primitives import Composed
from accnp.primitives.kinds import zeros_like_aval
from accnp.pytree import PyTree, flatten_arrays, tree_unflatten

__all__ = ["linear_call"]

Flat = Callable[..., list[Any]]


class _LinearCall(Composed):
    """Primitive on flat operands: the first `num_res` are residuals, the others are linear."""

    def __init__(self) -> None:
        super().__init__("linear_call", self._run)
        self.multiple_results = True

    def _run(self, *xs: Array, _function: Flat, **_: Any) -> list[Any]:
        return _function(*xs)

    def bind(self, *args: Any, **params: Any) -> list[Array]:
        """Record the call."""
        nodes = self._operands(args)
        program = self._program(tuple(x.aval for x in nodes), params)
        return [*map(wrap, items(record(self._op, tuple(nodes), {**params, "_program": program})))]

    def _program(self, avals: tuple[Any, ...], params: dict[str, Any]) -> Graph:
        # Not cached, since the functions differ in each call.
        return build(lambda nodes: self._body(nodes, params), avals, self.name)

    def _jvp(self, ts: Any, y: Node, xs: Any, params: dict, tools: Any) -> Any:
        n = params["num_res"]
        if any(t is not None for t in ts[:n]):
            raise NotImplementedError(
                "linear_call: no derivative with respect to residual arguments is defined; stop it "
                "with lax.stop_gradient, or differentiate the linear arguments alone"
            )
        rest = {k: v for k, v in params.items() if k != "_program"}
        out = self.bind(*map(wrap, xs), **rest)
        pairs = zip(ts[n:], xs[n:], strict=True)
        tangents = [zeros_like_aval(x.aval) if t is None else t for t, x in pairs]
        tangents_out = self.bind(*map(wrap, [*xs[:n], *tangents]), **rest)
        return [x._node for x in out], [x._node for x in tangents_out]

    def _transpose(self, cts: Any, xs: Any, params: dict, tools: Any) -> Any:
        n = params["num_res"]
        if any(isinstance(x, Linear) for x in xs[:n]):
            raise NotImplementedError("linear_call: the function is not linear in its residuals")
        avals = params["_program"].out_avals
        out_cotangents = [
            zeros_like_aval(a) if ct is None else ct for ct, a in zip(cts, avals, strict=True)
        ]
        linear_cotangents = params["_transposed"](*map(wrap, [*xs[:n], *out_cotangents]))
        for ct, x in zip(linear_cotangents, xs[n:], strict=True):
            if ct.shape != x.aval.shape:
                raise TypeError(
                    "linear_call: fun_transpose must return cotangents of the linear arguments; "
                    f"got shape {ct.shape} for {x.aval}; sum over axes that were broadcast"
                )
        pairs = zip(linear_cotangents, xs[n:], strict=True)
        in_cotangents = [ct._node if isinstance(x, Linear) else None for ct, x in pairs]
        return [None] * n + in_cotangents

    def _batch(self, size: int, xs: Any, flags: Any, params: dict, tools: Any) -> Any:
        n, axes = params["num_res"], [0 if f else None for f in flags]
        function, transposed = params["_function"], params["_transposed"]

        def back(*args: Array) -> list[Array]:
            in_axes = (*axes[:n], *[0] * (len(args) - n))
            batched_cts = vmap(lambda *v: list(transposed(*v)), in_axes)(*args)
            return [
                ct if axis == 0 else ct.sum(0)
                for ct, axis in zip(batched_cts, axes[n:], strict=True)
            ]

        batched = vmap(lambda *v: list(function(*v)), tuple(axes))
        out = self.bind(*map(wrap, xs), num_res=n, _function=batched, _transposed=back)
        return [x._node for x in out], [True] * len(out)


_linear_call_p = _LinearCall()


@api_boundary
def linear_call(
    fun: Callable[..., Any],
    fun_transpose: Callable[..., Any],
    residual_args: PyTree,
    linear_args: PyTree,
) -> Any:
    """Call a function that is linear in its second argument, with a given transpose.

    Parameters
    ----------
    fun : callable
        Function `(residual_args, linear_args) -> results`, linear in `linear_args`. The results are
        a pytree of arrays.
    fun_transpose : callable
        Function `(residual_args, cotangents) -> cotangents of linear_args`, where the first
        cotangents are those of the results.
    residual_args : pytree of array_like
        Arguments that `fun` need not be linear in; they are not differentiated.
    linear_args : pytree of array_like
        Arguments that `fun` is linear in, of any shape and floating or complex dtype.

    Returns
    -------
    pytree of Array
        Results of `fun(residual_args, linear_args)`.

    Raises
    ------
    TypeError
        If a function is not callable, a leaf is not an array, or `fun_transpose` returns another
        pytree structure than that of `linear_args`.

    See Also
    --------
    linear_transpose : Derive the transpose from the function.
    custom_vjp : Rule for a function that is not linear.

    Examples
    --------
    >>> import accnp as jax
    >>> def scaled(x):
    ...     linear = lambda s, v: s * v
    ...     return jax.custom_derivatives.linear_call(linear, linear, 2.0, x)
    >>> scaled(3.0), jax.grad(scaled)(3.0)
    (Array(6., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable("linear_call", fun)
    check_callable("linear_call", fun_transpose)
    residuals, res_tree = flatten_arrays(residual_args)
    linear, lin_tree = flatten_arrays(linear_args)
    n = len(residuals)
    out_trees: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        arguments = tree_unflatten(res_tree, xs[:n]), tree_unflatten(lin_tree, xs[n:])
        out, tree = flatten_arrays(fun(*arguments))
        out_trees[:] = [tree]
        return out

    def back(*xs: Any) -> list[Array]:
        arguments = tree_unflatten(res_tree, xs[:n]), tree_unflatten(out_trees[0], xs[n:])
        out, tree = flatten_arrays(fun_transpose(*arguments))
        if tree != lin_tree:
            raise TypeError(
                "linear_call: fun_transpose must return a tree like linear_args; got "
                f"{tree} for {lin_tree}; return one cotangent for each leaf of them"
            )
        return [wrap(as_node(x, "linear_call")) for x in out]

    leaves: Sequence[Any] = [*residuals, *linear]
    out = _linear_call_p.bind(*leaves, num_res=n, _function=flat, _transposed=back)
    return tree_unflatten(out_trees[0], out)
