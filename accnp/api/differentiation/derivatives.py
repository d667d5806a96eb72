"""`grad`, `value_and_grad`, `jvp`, `vjp`, `linearize` and `linear_transpose`.

Each runs the function on marks of its arguments (`linearized.py`) and records the derivative with
the rules of the recorded ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, is_host_value, wrap
from accnp.api.arguments.values import check_callable
from accnp.api.differentiation.linear_maps import Pullback, Pushforward, as_weak
from accnp.api.differentiation.linearize import (
    Linearized,
    as_argnums,
    check_inputs,
    check_output,
    checked_argnums,
    float0_zeros,
    gradients,
    leaf_nodes,
    linearize_call,
    marked_arguments,
    split_aux,
    with_weak_type,
)
from accnp.array_type import Array, escape
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import Graph, build, evaluate, inline_calls
from accnp.ir.node import Node, literal, mark
from accnp.ir.trace import HostValue, Trace, state
from accnp.primitives.dependence import depends
from accnp.primitives.kinds import dtype_kind, zeros_like_aval
from accnp.pytree import Partial, PyTree, flatten_arrays, map_arrays, tree_flatten, tree_unflatten
from accnp.trace_fn import describe, wraps
from accnp.transforms.jvp import forward
from accnp.transforms.tools import TOOLS
from accnp.transforms.traversal import inexact, take_recorded
from accnp.transforms.vjp import LinearMap, linearize_outputs

__all__ = ["grad", "jvp", "linear_transpose", "linearize", "value_and_grad", "vjp"]

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


# --- grad ----------------------------------------------------------------------------------------


@api_boundary
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes both the value and the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        Function to differentiate. Its arguments are pytrees of arrays and its result is a real
        scalar, or a pair of one and auxiliary data with `has_aux`.
    {argnums}
    {has_aux}
    {holomorphic}
    {allow_int}
    {reduce_axes}

    Returns
    -------
    callable
        Function of the arguments of `fun` that returns `(value, gradient)`, or `((value, aux),
        gradient)` with `has_aux`. The gradient has the pytree structure, shapes and dtypes of the
        argument; it is a tuple if `argnums` is a sequence.

    Raises
    ------
    {raises_grad}

    See Also
    --------
    grad : Compute only the gradient.
    vjp : Reverse-mode derivative of a function with results of any shape.
    jvp : Forward-mode derivative.

    Notes
    -----
    The value is a result of the forward pass of reverse-mode differentiation, so this costs no more
    than the gradient alone.

    Examples
    --------
    >>> import accnp as jnp
    >>> value, gradient = jnp.value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)


def _value_and_grad(
    function: str,
    fun: Callable[..., Any],
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[..., Any]:
    if not callable(fun):
        raise TypeError(f"{function}: Expected a callable value, got {fun!r}; pass a function")
    checked_argnums(function, argnums)
    check = check_inputs(function, holomorphic, allow_int)

    @wraps(fun)
    @api_boundary
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        positions = as_argnums(function, argnums, len(args))

        def call(dynamic: Sequence[Any]) -> Any:
            whole = list(args)
            for n, x in zip(positions, dynamic, strict=True):
                whole[n] = x
            return fun(*whole, **kwargs)

        lin = linearize_call(function, fun, [args[n] for n in positions], call, has_aux, check)
        aval = _scalar_output(lin)
        check_output(function, aval, holomorphic)
        one = literal(1.0 if aval.dtype.kind != "c" else 1 + 0j, aval.dtype, aval.weak_type)
        grads = tree_unflatten(lin.in_tree, gradients(lin.map.pull([one]), lin.in_avals))
        gradient = grads[0] if isinstance(argnums, int | np.integer) else grads
        value = wrap(lin.out[0])
        return ((value, lin.aux) if has_aux else value), gradient

    describe(
        value_and_grad_fun,
        fun,
        f"Value and gradient of {{}} with respect to the arguments {argnums}.",
    )
    return value_and_grad_fun


def _scalar_output(lin: Linearized) -> Aval:
    if len(lin.out) != 1 or not lin.out_tree.shown().is_leaf():
        raise TypeError(
            "grad: Gradient only defined for scalar-output functions. Output was "
            f"{tree_unflatten(lin.out_tree, [wrap(x) for x in lin.out])}; return one number, "
            "and the rest with has_aux=True"
        )
    (aval,) = lin.out_tree.shown_leaves(lin.out_avals)
    if aval.shape != ():
        raise TypeError(
            "grad: Gradient only defined for scalar-output functions. Output had shape: "
            f"{aval.shape}. It must have no axes; sum the result, or use jacrev"
        )
    return aval


@api_boundary
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]:
    """Return a function that computes the gradient of `fun`, a function that returns a scalar.

    Parameters
    ----------
    fun : callable
        Function to differentiate. Its arguments are pytrees of arrays and its result is a real
        scalar, or a pair of one and auxiliary data with `has_aux`.
    {argnums}
    {has_aux}
    {holomorphic}
    {allow_int}
    {reduce_axes}

    Returns
    -------
    callable
        Function of the arguments of `fun` that returns the gradient, or `(gradient, aux)` with
        `has_aux`. The gradient has the pytree structure, shapes and dtypes of the argument; it is a
        tuple if `argnums` is a sequence.

    Raises
    ------
    {raises_grad}

    See Also
    --------
    value_and_grad : Compute the value, too, at no extra cost.
    jacrev : Jacobian of a function with results of any shape, in reverse mode.
    hessian : Second derivatives.
    vjp : Reverse-mode derivative of a function with results of any shape.

    Notes
    -----
    Reverse-mode automatic differentiation: one forward and one backward pass, whatever the number
    of arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.grad(jnp.tanh)(0.0))
    1.0
    """
    both = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int)

    @wraps(fun)
    @api_boundary
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    describe(grad_fun, fun, f"Gradient of {{}} with respect to the arguments {argnums}.")
    return grad_fun


# --- jvp, linearize ------------------------------------------------------------------------------


def _tangent_nodes(function: str, avals: Sequence[Any], leaves: Sequence[Any]) -> list[Node | None]:
    out: list[Node | None] = []
    for a, t in zip(avals, leaves, strict=True):
        zero = getattr(t, "dtype", None) == dtypes.float0
        if zero and not inexact(a.dtype):
            _same_shape(function, a.shape, t.shape)
            out.append(None)
            continue
        n = as_node(t, function)
        expected = a.dtype.name if inexact(a.dtype) else "float0"
        if n.aval.dtype.name != expected:
            raise TypeError(
                "primal and tangent arguments to jax.jvp do not match; a tangent of "
                f"{a.dtype.name} has dtype {expected}, got {n.aval.dtype.name}; convert it with "
                "astype, or to float0"
            )
        _same_shape(function, a.shape, n.aval.shape)
        # As in JAX, jaxprs do not show this conversion.
        strong = n.aval.weak_type and not a.weak_type and not state.named
        out.append(with_weak_type(n, False) if strong else n)
    return out


def _same_shape(function: str, primal: tuple[int, ...], tangent: tuple[int, ...]) -> None:
    if primal != tangent:
        raise ValueError(
            f"{function} called with different primal and tangent shapes; got {primal} and "
            f"{tangent}; broadcast one of them"
        )


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...  # fmt: skip
@overload
def jvp(
    fun: Callable[..., tuple[R, A]], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...  # fmt: skip
@overload
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]: ...
@api_boundary
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Compute the value of `fun` and its directional derivative (Jacobian-vector product).

    Parameters
    ----------
    fun : callable
        Function to differentiate, of pytrees of arrays.
    primals : tuple or list
        Arguments at which `fun` is evaluated and differentiated.
    tangents : tuple or list
        Direction of the derivative: one tangent for each primal, with the same pytree structure,
        shapes and dtypes. The tangents of integers and bools have dtype `float0`.
    {has_aux}

    Returns
    -------
    tuple
        `(value, tangent)`, or `(value, tangent, aux)` with `has_aux`. The tangent has the pytree
        structure, shapes and dtypes of the value.

    Raises
    ------
    TypeError
        If `primals` or `tangents` is not a tuple or list, or their pytree structures or dtypes
        differ.
    ValueError
        If the shapes of a primal and its tangent differ.

    See Also
    --------
    linearize : Evaluate the derivative at one point for several tangents.
    vjp : Reverse-mode derivative.
    jacfwd : Whole Jacobian in forward mode.

    Examples
    --------
    >>> import accnp as jnp
    >>> y, t = jnp.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(y), float(t)
    (9.0, 6.0)
    """
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple | list):
            raise TypeError(
                "primal and tangent arguments to jax.jvp must be tuples or lists; got "
                f"{value!r:.60} of type {type(value).__name__} for {name}; pass a tuple of one for "
                "one argument"
            )
    check_callable("jvp", fun)
    leaves, tree = flatten_arrays(tuple(primals))
    t_leaves, t_tree = tree_flatten(tuple(tangents))
    if tree.shown() != t_tree or isinstance(primals, list) != isinstance(tangents, list):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; got "
            f"{primals!r:.60} and {tangents!r:.60}, {tree.shown()} and {t_tree}; pass a tangent "
            "for each primal"
        )
    nodes = leaf_nodes("jvp", leaves)
    ts = _tangent_nodes("jvp", tree.shown_leaves([n.aval for n in nodes]), t_leaves)
    with Trace("grad") as trace:
        marks = [mark(n, trace) for n in nodes]
        arguments = marked_arguments(marks, leaves)
        host = trace.host = _host_values(marks, leaves, t_leaves, ts)
        result = fun(*tree_unflatten(tree, arguments))
        result, aux = split_aux("jvp", result, has_aux)
        if has_aux:  # new handles
            aux = map_arrays(lambda x: wrap(x._node) if type(x) is Array else x, aux)
        out, out_tree = flatten_arrays(result)
        outputs = leaf_nodes("jvp", out)
        if host is not None:  # and results of custom rules
            marks = [known.mark for known in host.values()]
            ts = [known.tangent_node for known in host.values()]
        env = {id(m): (m, t) for m, t in zip(marks, ts, strict=True)}
        forward(take_recorded(outputs, marks, trace), env, TOOLS, trace)
        pairs = [env.get(id(x), (x, None)) for x in outputs]
    escape(arguments, trace)
    values = [wrap(p) for p, _ in pairs]
    result_tangents = [
        # Computed tangents are weak if the values are; a tangent returned unchanged is kept.
        with_weak_type(t, True)
        if t is not None and p.aval.weak_type and not any(t is x for x in ts)
        else t
        for p, t in pairs
    ]
    tangents_out = gradients(result_tangents, [p.aval for p, _ in pairs])
    if host is not None:  # Python numbers among arguments and results of rules are returned
        for i, x in enumerate(outputs):
            known = host.get(id(x))
            if known is not None and type(known.value) in _NUMBERS:
                values[i] = known.value
            if known is not None and type(known.tangent) in _NUMBERS:
                tangents_out[i] = known.tangent
    value = tree_unflatten(out_tree, values)
    tangent = tree_unflatten(out_tree, tangents_out)
    return (value, tangent, aux) if has_aux else (value, tangent)


_NUMBERS = (float, complex)


def _host_values(
    marks: Sequence[Node],
    values: Sequence[Any],
    tangents: Sequence[Any],
    ts: Sequence[Node | None],
) -> dict[int, HostValue] | None:
    """Return the entries of `Trace.host` for the arguments of a `jvp`; None unless all arguments
    are Python numbers."""
    if state.abstract is not None or len(state.stack) > 1 or state.named:
        return None
    if not all(type(x) in _NUMBERS for x in (*values, *tangents)):
        return None
    entries = zip(marks, values, tangents, ts, strict=True)
    return {id(m): HostValue(m, x, t, n) for m, x, t, n in entries}


@overload
def linearize(
    fun: Callable[..., R], *primals: PyTree, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: PyTree, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], A]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: PyTree, has_aux: bool) -> tuple[Any, ...]: ...
@api_boundary
def linearize(fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False) -> Any:
    """Compute the value of `fun` and its derivative there as a linear function of the tangents.

    The function is differentiated once; applying the derivative to further tangents does not
    evaluate `fun` again.

    Parameters
    ----------
    fun : callable
        Function to differentiate, of pytrees of arrays.
    *primals : pytree of array_like
        Arguments at which `fun` is evaluated and differentiated.
    {has_aux}

    Returns
    -------
    tuple
        `(value, f_jvp)`, or `(value, f_jvp, aux)` with `has_aux`. `f_jvp` takes one tangent for
        each primal, with its shape and dtype, and returns the tangent of the value. It is a pytree
        of the arrays that it needs, so jitted functions can return it.

    Raises
    ------
    TypeError
        If a primal or a result is not an array; from `f_jvp`, if the pytree structures differ.
    ValueError
        From `f_jvp`, if the shape or dtype of a tangent differs from its primal's.

    See Also
    --------
    jvp : Evaluate the derivative for one tangent.
    vjp : Reverse-mode derivative.

    Examples
    --------
    >>> import accnp as jnp
    >>> y, push = jnp.linearize(lambda x: x * x, 3.0)
    >>> float(y), float(push(1.0)), float(push(2.0))
    (9.0, 6.0, 12.0)
    """
    lin = linearize_call("linearize", fun, primals, lambda xs: fun(*xs), has_aux)

    derivative = Pushforward(lin, getattr(fun, "__name__", str(fun)))
    out = tree_unflatten(lin.out_tree, [wrap(x) for x in lin.out])
    return (out, derivative, lin.aux) if has_aux else (out, derivative)


# --- vjp, linear_transpose -----------------------------------------------------------------------


@overload
def vjp(
    fun: Callable[..., R], *primals: PyTree, has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...  # fmt: skip
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], *primals: PyTree, has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, Callable[[Any], tuple[Any, ...]], A]: ...  # fmt: skip
@overload
def vjp(
    fun: Callable[..., Any], *primals: PyTree, has_aux: bool, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]: ...
@api_boundary
def vjp(
    fun: Callable[..., Any],
    *primals: PyTree,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Any:
    """Compute the value of `fun` and a function for its vector-Jacobian products.

    Parameters
    ----------
    fun : callable
        Function to differentiate, of pytrees of arrays.
    *primals : pytree of array_like
        Arguments at which `fun` is evaluated and differentiated.
    {has_aux}
    {reduce_axes}

    Returns
    -------
    tuple
        `(value, f_vjp)`, or `(value, f_vjp, aux)` with `has_aux`. `f_vjp` takes a cotangent with
        the pytree structure, shape and dtype of the value, and returns a tuple of the cotangents of
        the primals. It may be called any number of times, and is a pytree of the arrays that it
        needs, so jitted functions can return it.

    Raises
    ------
    TypeError
        If a primal or a result is not an array.
    ValueError
        From `f_vjp`, if the cotangent has another pytree structure, shape or dtype than the value.

    See Also
    --------
    grad : Gradient of a function that returns a scalar.
    jacrev : Whole Jacobian in reverse mode.
    linear_transpose : Transpose of a function that is linear already.

    Examples
    --------
    >>> import accnp as jnp
    >>> y, pull = jnp.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(g) for g in pull(1.0)]
    [3.0, 2.0]
    """
    lin = linearize_call("vjp", fun, primals, lambda xs: fun(*xs), has_aux)

    pull = Pullback(lin, getattr(fun, "__name__", str(fun)))
    out = tree_unflatten(lin.out_tree, [wrap(x) for x in lin.out])
    return (out, pull, lin.aux) if has_aux else (out, pull)


@api_boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: PyTree, reduce_axes: Sequence[Any] = ()
) -> Callable[..., Any]:
    """Return the transpose of a function that is linear in its arguments.

    Parameters
    ----------
    fun : callable
        Linear function of pytrees of arrays. Floating and complex dtypes may be mixed; a function
        of integers must have integer results.
    *primals : pytree of array_like
        Examples of the arguments. Only their shapes and dtypes are used, so `ShapeDtypeStruct`
        works, too.
    {reduce_axes}

    Returns
    -------
    callable
        Function from a cotangent, with the pytree structure, shape and dtype of the result of
        `fun`, to a tuple of cotangents of the arguments.

    Raises
    ------
    NotImplementedError
        If the transpose would need the values of the arguments, because `fun` is not linear.
    TypeError
        If integers are mixed with floating dtypes, or the cotangent differs from the result of
        `fun` in its pytree structure, shape or dtype.

    See Also
    --------
    vjp : Reverse-mode derivative of a function that need not be linear.
    linearize : Make a linear function by differentiation.

    Examples
    --------
    >>> import accnp as jnp
    >>> [float(x) for x in jnp.linear_transpose(lambda x: 3 * x, 1.0)(2.0)]
    [6.0]
    """
    structs, tree = flatten_arrays(primals)
    avals = [x.aval if hasattr(x, "aval") else _aval_of(x) for x in structs]
    count = len(avals)

    def record_map(leaves: list[Node]) -> tuple[LinearMap, Any, list[Any]]:
        with Trace("grad") as t:
            marks = [mark(x, t) for x in leaves]
            out_leaves, out_tree = flatten_arrays(
                fun(*tree_unflatten(tree, [wrap(m) for m in marks]))
            )
            outputs = leaf_nodes("linear_transpose", out_leaves)
            return linearize_outputs(outputs, marks, t), out_tree, [x.aval for x in outputs]

    seen: list[Any] = []

    def shapes(leaves: list[Node]) -> list[Node]:
        seen.extend(record_map(leaves)[1:])
        return []

    build(shapes, avals, "linear_transpose")
    out_tree, out_avals = seen
    whole = _all_integers(avals, out_avals)

    def record(leaves: list[Node]) -> list[Node]:
        out_leaves, _ = flatten_arrays(fun(*tree_unflatten(tree, [wrap(x) for x in leaves])))
        return leaf_nodes("linear_transpose", out_leaves)

    @api_boundary
    def transposed(ct: Any) -> Any:
        leaves, ct_tree = flatten_arrays(ct)
        if ct_tree != out_tree:
            raise TypeError(
                "linear_transpose: cotangent tree does not match function output, expected "
                f"{out_tree} but got {ct_tree}; pass a cotangent for each result"
            )
        nodes = leaf_nodes("linear_transpose", leaves)
        weak = as_weak(out_avals, nodes)
        leaf_by_id = dict(zip(map(id, nodes), leaves, strict=True))

        def marked_arguments(ct: Node | None, value: Any) -> Any:
            x = leaf_by_id.get(id(ct))
            return x if is_host_value(x) else wrap(value) if isinstance(value, Node) else value

        for n, a in zip(nodes, out_avals, strict=True):
            if n.aval.dtype != a.dtype or n.aval.shape != a.shape:
                raise TypeError(
                    "linear_transpose: cotangent type does not match function output, expected "
                    f"{a} but got {n.aval}; convert it, or broadcast it"
                )
        if whole:  # integers have no tangents, so the program is transposed
            program = inline_calls(build(record, avals, "linear_transpose"))
            program.drop_effects()
            _check_linear(program)
            back = TOOLS.transpose_graph(program, 0, [n.aval for n in nodes])
            in_cotangents = zip(evaluate(back, nodes), avals, strict=True)
            used = [any(depends(program, [i == j for j in range(count)])) for i in range(count)]
            return tree_unflatten(
                tree,
                [
                    marked_arguments(x, with_weak_type(x, a.weak_type and weak))
                    if flows
                    else float0_zeros(a)
                    for (x, a), flows in zip(in_cotangents, used, strict=True)
                ],
            )
        live: list[bool] = []

        def pulled(all_leaves: list[Node]) -> list[Node]:
            cotangents = record_map(all_leaves[:count])[0].pull(all_leaves[count:])
            live.extend(x is not None for x in cotangents)
            return [x for x in cotangents if x is not None]

        # Recorded for each call, since it closes over values of the call.
        graph = inline_calls(build(pulled, [*avals, *out_avals], "linear_transpose"))
        graph.drop_effects()  # the function itself does not run
        if any(depends(graph, [i < count for i in range(len(graph.inputs))])):
            raise NotImplementedError(
                "linear_transpose: the function is not linear in its arguments; got a product or "
                "a function of them; use vjp"
            )
        results = iter(evaluate(graph, [*map(zeros_like_aval, avals), *nodes]))
        cts = [next(results) if is_live else None for is_live in live]
        pairs = zip(cts, gradients(cts, avals, typed=weak), strict=True)
        return tree_unflatten(tree, [marked_arguments(ct, x) for ct, x in pairs])

    transposed.__name__ = "linear_transpose"  # for error messages
    return Partial(transposed)  # a pytree, so that jitted functions can return it


def _check_linear(program: Graph) -> None:
    """Raise for a program of integers whose ops are not known to be linear in its inputs. Loops may
    carry only linear values, so no counters."""
    linear = {id(x) for x in program.inputs}
    for node in program.nodes:
        linear_inputs = [id(x) in linear for x in node.inputs]
        if not any(linear_inputs):
            continue
        linear.add(id(node))
        loop = node.op.kind == "loop" and not all(linear_inputs)
        if loop or (sum(linear_inputs) > 1 and node.op.kind != "loop" and not node.op.additive):
            raise NotImplementedError(
                f"linear_transpose: {node.op.name} of integers is not linear in the arguments, or "
                "not known to be; use floating arguments, or vjp"
            )


def _number_kind(dtype: np.dtype) -> str:
    """Return how `linear_transpose` treats a dtype; booleans, float0 and keys are not numbers."""
    if inexact(dtype):
        return "float"
    return "integer" if dtype_kind(dtype) in "iu" else "other"


def _all_integers(avals: Sequence[Aval], out_avals: Sequence[Aval]) -> bool:
    """Return whether a function maps integers to integers; raise if it mixes kinds of numbers."""
    kinds = [[_number_kind(a.dtype) for a in x] for x in (avals, out_avals)]
    all_kinds = {*kinds[0]} | {*kinds[1]}
    if len(all_kinds) > 1 or "other" in all_kinds:
        names = [", ".join([a.dtype.name for a in x]) for x in (avals, out_avals)]
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer "
            f"-> integer functions, but got [{names[0]}] -> [{names[1]}]; convert with astype"
        )
    return "integer" in kinds[0] + kinds[1]


def _aval_of(x: Any) -> Any:
    if hasattr(x, "shape") and hasattr(x, "dtype") and not is_host_value(x):
        return make_aval(tuple(x.shape), np.dtype(x.dtype))
    return as_node(x, "linear_transpose").aval
