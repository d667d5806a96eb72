"""`sparsify`: evaluates a function of dense arrays on sparse arrays.

The function is traced on dense shapes, and its jaxpr is evaluated equation by equation. Equations
with sparse operands need a sparse rule; without one they raise NotImplementedError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.differentiation.derivatives import value_and_grad as dense_value_and_grad
from accnp.api.differentiation.jacobians import jacfwd as dense_jacfwd
from accnp.api.differentiation.jacobians import jacrev as dense_jacrev
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct, make_jaxpr
from accnp.array_type import Array
from accnp.errors import api_boundary, not_one_of
from accnp.experimental.sparse.base import JAXSparse
from accnp.experimental.sparse.bcoo import (
    BCOO,
    added,
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dot_general,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
    once,
    product,
)  # fmt: skip
from accnp.experimental.sparse.bcsr import BCSR
from accnp.experimental.sparse.matrices import COO, CSC, CSR
from accnp.ir.equations import Literal
from accnp.ir.op import OPS, Op
from accnp.numpy.creation import arange, array, asarray, ones, zeros
from accnp.numpy.joining import stack
from accnp.numpy.manipulation import broadcast_to
from accnp.primitives.custom import JVP_PROGRAM
from accnp.pytree import tree_flatten, tree_structure, tree_unflatten

__all__ = [
    "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev", "sparsify", "todense", "value_and_grad",
]  # fmt: skip

_DENSE = "exp exp2 cos cosh acos acosh log logistic eq ne lt le gt ge and or xor not max min rem"


def _is_call(op: Op | None) -> bool:
    """Return whether an operation runs the program it contains."""
    return op is not None and (op.inline or op.recomputes or op is JVP_PROGRAM)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _dense(x: Any) -> Any:
    return x.todense() if _is_sparse(x) else x


def _on_data(eqn: Any, mat: Any) -> Any:
    return mat.with_data(eqn.primitive.bind(mat.data, **eqn.params))


def _not_supported_error(eqn: Any, why: str) -> NotImplementedError:
    return NotImplementedError(
        f"sparse.sparsify: {eqn.primitive.name} of sparse arrays {why}; use .todense() before it"
    )


def _scalar(x: Any) -> bool:
    return not _is_sparse(x) and not asarray(x).ndim


def _mul(eqn: Any, x: Any, y: Any) -> Any:
    return x * y if _is_sparse(x) else y * x


def _div(eqn: Any, x: Any, y: Any) -> Any:
    if not _is_sparse(x):
        raise _not_supported_error(eqn, "as divisors is infinite where nothing is stored")
    return x / y


def _add(eqn: Any, x: Any, y: Any) -> Any:
    return added(x, y)


def _sub(eqn: Any, x: Any, y: Any) -> Any:
    return added(x, -y)


def _power(eqn: Any, x: Any) -> Any:
    if eqn.params["y"] <= 0:
        return eqn.primitive.bind(_dense(x), **eqn.params)
    return _on_data(eqn, once(x))


def _reduce_sum(eqn: Any, x: Any) -> Any:
    out = bcoo_reduce_sum(x, axes=eqn.params["axes"])
    return out if out.shape else out.todense()


def _broadcast(eqn: Any, x: Any) -> Any:
    how = {k: eqn.params[k] for k in ("shape", "broadcast_dimensions")}
    return bcoo_broadcast_in_dim(x, **how)


def _concatenate(eqn: Any, *xs: Any) -> Any:
    if not all(map(_is_sparse, xs)):
        raise _not_supported_error(eqn, "and dense ones together is not supported")
    return bcoo_concatenate(xs, dimension=eqn.params["dimension"])


def _contraction(eqn: Any, x: Any, y: Any) -> Any:
    numbers = eqn.params["dimension_numbers"]
    both = isinstance(x, BCOO) and isinstance(y, BCOO) and x.ndim == 2
    if both and numbers == (((1,), (0,)), ((), ())):
        return product(x, y)
    kind = eqn.params.get("preferred_element_type")
    return bcoo_dot_general(x, y, dimension_numbers=numbers, preferred_element_type=kind)


def _slice(eqn: Any, x: Any) -> Any:
    bounds = {k: eqn.params[k] for k in ("start_indices", "limit_indices", "strides")}
    return bcoo_slice(x, **bounds)


_RULES: dict[Op, Callable[..., Any]] = {}


def _declare(names: str, rule: Callable[..., Any]) -> None:
    """Declare the rule of ops: a function of the equation and its operands."""
    _RULES.update({OPS[name]: rule for name in names.split()})


_declare(_DENSE, lambda eqn, *xs: eqn.primitive.bind(*map(_dense, xs), **eqn.params))
_declare("reduce_precision", _on_data)
_declare("mul", _mul)
_declare("div", _div)
_declare("add add_any", _add)
_declare("sub", _sub)
_declare("integer_pow", _power)
_declare("reduce_sum", _reduce_sum)
_declare("broadcast_in_dim", _broadcast)
_declare("concatenate", _concatenate)
_declare("dot_general", _contraction)
_declare("transpose", lambda eqn, x: bcoo_transpose(x, permutation=eqn.params["permutation"]))
_declare("reshape", lambda eqn, x: bcoo_reshape(x, new_sizes=eqn.params["new_sizes"]))
_declare("squeeze", lambda eqn, x: bcoo_squeeze(x, dimensions=eqn.params["dimensions"]))
_declare("rev", lambda eqn, x: bcoo_rev(x, eqn.params["dimensions"]))
_declare("slice", _slice)


def _rule_of(eqn: Any, values: Sequence[Any]) -> Callable[..., Any] | None:
    """Return the rule of an operation: a declared one, or that of functions of one number that are
    0 at 0, which are applied to the stored elements."""
    op: Op | None = eqn.primitive.op
    if op is None or op in _RULES or op.kind != "map" or len(values) != 1:
        return None if op is None else _RULES.get(op)
    if op.transpose is not None:  # linear, so elements that are stored twice need not be added
        return _on_data
    zero = np.zeros((), values[0].dtype)
    keeps_zero = op.numpy is not None and not np.any(op.numpy(zero, **eqn.params))
    return (lambda eqn, x: _on_data(eqn, once(x))) if keeps_zero else None


def _evaluate(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if not any(map(_is_sparse, values)):
            params = eqn.primitive.get_bind_params(eqn.params)
            outs = eqn.primitive.bind(*values, **params)
            outs = outs if eqn.primitive.multiple_results else [outs]
        elif _is_call(eqn.primitive.op) and inner is not None:
            closed = getattr(inner, "jaxpr", inner)
            outs = _evaluate(closed, getattr(inner, "consts", ()), values)
        else:
            rule = _rule_of(eqn, values)
            if rule is None:
                raise _not_supported_error(eqn, "has no rule")
            outs = [rule(eqn, *values)]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


@api_boundary
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Make a function that accepts sparse arrays where a function accepts dense ones.

    Parameters
    ----------
    f : callable
        Function of arrays of any shape and dtype. It may use elementwise functions (those that are
        not 0 at 0 give dense arrays), products, sums, slices, transposes and changes of shape.
    use_tracer : bool, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    callable
        Function of sparse and dense arrays.

    Raises
    ------
    NotImplementedError
        If `f` uses an operation that has no rule for sparse operands.

    See Also
    --------
    experimental.sparse.BCOO : Sparse array.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.sparse import BCOO, sparsify
    >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparsify(lambda m, v: jnp.square(m) @ v)(m, jnp.ones(2))
    Array([4., 9.], dtype=float32)
    """

    @functools.wraps(f)
    @api_boundary
    @api_boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs), is_leaf=_is_sparse)
        rows = any(isinstance(x, BCSR) for x in leaves)
        values = [x.to_bcoo() if isinstance(x, BCSR) else x for x in leaves]
        shapes = [ShapeDtypeStruct(x.shape, x.dtype) if _is_sparse(x) else x for x in values]

        def flat(*xs: Any) -> Any:
            positional, named = tree_unflatten(tree, xs)
            return f(*positional, **named)

        closed, out = make_jaxpr(flat, return_shape=True)(*shapes)
        outs = _evaluate(closed.jaxpr, closed.consts, values)
        if rows:  # matrices are converted back to rows
            outs = [BCSR.from_bcoo(x) if isinstance(x, BCOO) and x.ndim == 2 else x for x in outs]
        return tree_unflatten(tree_structure(out), outs)

    return wrapped


@api_boundary
def todense(arr: Any) -> Array:
    """Convert a sparse array to a dense one, and return a dense one unchanged.

    Parameters
    ----------
    arr : sparse array or array_like
        Sparse or dense operand.

    Returns
    -------
    Array
        Dense array of the same shape and dtype.

    Raises
    ------
    TypeError
        If it is neither an array nor a number.

    See Also
    --------
    experimental.sparse.sparsify : Call functions of dense arrays with sparse ones.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.todense(sparse.BCOO.fromdense(jnp.array([0, 7])))
    Array([0, 7], dtype=int32)
    """
    return arr.todense() if _is_sparse(arr) else asarray(arr)


_KINDS = {
    "bcoo": lambda m: m,
    "bcsr": BCSR.from_bcoo,
    "coo": COO.of_bcoo,
    "csr": CSR.of_bcoo,
    "csc": CSC.of_bcoo,
}


def _convert_format(name: str, mat: BCOO, sparse_format: str) -> Any:
    if sparse_format not in _KINDS:
        raise not_one_of(f"sparse.{name}", "sparse_format", sparse_format, _KINDS)
    return _KINDS[sparse_format](mat)


@api_boundary
def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo", *, nse: int = 0,
) -> Any:  # fmt: skip
    """Make a sparse array of zeros.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes.
    dtype : dtype_like, optional
        Type of the elements. The default is the default float dtype.
    index_dtype : dtype_like, optional
        Integer type of the indices. The default is int32.
    {sparse_format}
    nse : int, optional
        Number of elements to reserve. The default is 0.

    Returns
    -------
    sparse array
        Zeros in this format.

    Raises
    ------
    {raises_format}

    See Also
    --------
    experimental.sparse.eye : Identity matrix.
    numpy.zeros : Dense array of zeros.

    Examples
    --------
    >>> from accnp.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    outside = array([[*shape]] * nse, dtype=index_dtype).reshape(nse, len(shape))
    mat = BCOO((zeros(nse, dtype), outside), shape=shape, indices_sorted=True, unique_indices=True)
    return _convert_format("empty", mat, sparse_format)


@api_boundary
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
) -> Any:  # fmt: skip
    """Make a sparse matrix with ones on a diagonal.

    Parameters
    ----------
    N : int
        How many rows the matrix has.
    M : int, optional
        Number of columns. The default is N.
    k : int, optional
        Diagonal: 0 is the main one, the default, and positive numbers are above it.
    dtype : dtype_like, optional
        Type of the elements. The default is the default float dtype.
    index_dtype : dtype_like, optional
        Integer type of the indices. The default is int32.
    {sparse_format}

    Returns
    -------
    sparse array
        Matrix in this format.

    Raises
    ------
    {raises_format}

    See Also
    --------
    numpy.eye : Dense matrix.
    experimental.sparse.empty : Zeros.

    Examples
    --------
    >>> from accnp.experimental import sparse
    >>> sparse.eye(2)
    BCOO(float32[2, 2], nse=2)
    """
    columns = N if M is None else M
    count = max(0, min(N + min(k, 0), columns - max(k, 0)))
    row = arange(count, dtype=index_dtype) + max(-k, 0)
    mat = BCOO(
        (ones(count, dtype), stack([row, row + k], axis=-1)), shape=(N, columns),
        indices_sorted=True, unique_indices=True,
    )  # fmt: skip
    return _convert_format("eye", mat, sparse_format)


@api_boundary
def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Version of `value_and_grad` for sparse arguments.

    Parameters
    ----------
    {sparse_derivative}

    Returns
    -------
    callable
        Function that returns `(value, gradient)`.

    Raises
    ------
    {raises_grad}

    See Also
    --------
    value_and_grad : Version for dense arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0.0, 7.0]))
    >>> sparse.value_and_grad(lambda m: (m @ jnp.ones(2)) ** 2)(m)[1].todense()
    Array([ 0., 14.], dtype=float32)
    """
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fun)
    @api_boundary
    def wrapped(*args: Any, **named: Any) -> Any:
        def of_data(chosen: Any) -> Any:
            arguments = [*args]
            for i, x in zip(places, chosen, strict=True):
                arguments[i] = args[i].with_data(x) if _is_sparse(args[i]) else x
            return fun(*arguments, **named)

        data = [args[i].data if _is_sparse(args[i]) else args[i] for i in places]
        value, data_grads = dense_value_and_grad(of_data, has_aux=has_aux, **kwargs)(data)
        grads = [
            args[i].with_data(g) if _is_sparse(args[i]) else g
            for i, g in zip(places, data_grads, strict=True)
        ]
        return value, grads[0] if isinstance(argnums, int) else tuple(grads)

    return wrapped


@api_boundary
def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Version of `grad` for sparse arguments.

    Parameters
    ----------
    {sparse_derivative}

    Returns
    -------
    callable
        Function that returns the gradient: that of a sparse argument is sparse, with the
        derivatives by its data at its indices.

    Raises
    ------
    {raises_grad}

    See Also
    --------
    grad : Version for dense arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0.0, 7.0]))
    >>> sparse.grad(lambda m: (m @ jnp.ones(2)) ** 2)(m)
    BCOO(float32[2], nse=1)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @functools.wraps(fun)
    @api_boundary
    def wrapped(*args: Any, **named: Any) -> Any:
        value, grads = both(*args, **named)
        return (grads, value[1]) if has_aux else grads

    return wrapped


def _jacobian(
    dense: Callable[..., Any], fun: Callable[..., Any], argnums: int | Sequence[int],
    has_aux: bool, how: dict[str, Any],
) -> Callable[..., Any]:  # fmt: skip
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fun)
    @api_boundary
    def wrapped(*args: Any, **named: Any) -> Any:
        def of_data(chosen: Any) -> Any:
            arguments = [*args]
            for i, x in zip(places, chosen, strict=True):
                arguments[i] = args[i].with_data(x) if _is_sparse(args[i]) else x
            return fun(*arguments, **named)

        def placed(x: Any, derivative: Any) -> Any:
            """Return the derivative with respect to the data of x, with its indices."""
            if not isinstance(x, BCOO):
                return derivative if not _is_sparse(x) else _refuse_layout(x)
            lead = derivative.shape[: derivative.ndim - x.data.ndim]
            indices = broadcast_to(x.indices, (*lead, *x.indices.shape))
            return BCOO((derivative, indices), shape=(*lead, *x.shape))

        data = [args[i].data if _is_sparse(args[i]) else args[i] for i in places]
        result = dense(of_data, has_aux=has_aux, **how)(data)
        rows, aux = result if has_aux else (result, None)
        structure = tree_structure(data)

        def is_row(x: Any) -> bool:
            return isinstance(x, list) and tree_structure(x) == structure

        def at_places(row: Any) -> Any:
            parts = [placed(args[i], x) for i, x in zip(places, row, strict=True)]
            return parts[0] if isinstance(argnums, int) else tuple(parts)

        leaves, outer = tree_flatten(rows, is_leaf=is_row)
        derivatives = tree_unflatten(outer, [at_places(row) for row in leaves])
        return (derivatives, aux) if has_aux else derivatives

    return wrapped


def _refuse_layout(x: Any) -> Any:
    raise NotImplementedError(
        f"sparse.jacobian: derivatives by {type(x).__name__} are not supported; got {x!r}; use BCOO"
    )


@api_boundary
def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Version of `jacfwd` for sparse arguments.

    Parameters
    ----------
    {sparse_derivative}

    Returns
    -------
    callable
        Function that returns the Jacobian: that of a sparse argument is sparse, with the
        derivatives by its data at its indices.

    Raises
    ------
    TypeError
        If an argument is not floating.

    See Also
    --------
    jacfwd : Version for dense arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0.0, 7.0]))
    >>> sparse.jacfwd(lambda m: m.todense() ** 2)(m)
    BCOO(float32[2, 2], nse=1, n_batch=1)
    """
    return _jacobian(dense_jacfwd, fun, argnums, has_aux, kwargs)


@api_boundary
def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Version of `jacrev` for sparse arguments.

    Parameters
    ----------
    {sparse_derivative}

    Returns
    -------
    callable
        Function that returns the Jacobian: that of a sparse argument is sparse, with the
        derivatives by its data at its indices.

    Raises
    ------
    TypeError
        If an argument is not floating.

    See Also
    --------
    jacrev : Version for dense arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0.0, 7.0]))
    >>> sparse.jacrev(lambda m: m.todense() ** 2)(m).todense()
    Array([[ 0.,  0.],
           [ 0., 14.]], dtype=float32)
    """
    return _jacobian(dense_jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
