"""Functions of `lax` about programs: tokens, composites, `dce_sink`, and ragged exchanges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.graph import build
from accnp.ir.node import items, record
from accnp.ir.trace import state
from accnp.jax_compat.jaxprs.evaluation import eval_jaxpr
from accnp.jax_compat.jaxprs.primitives import Primitive
from accnp.lax.parallel.reductions import all_gather, axis_index, axis_size
from accnp.lax.shapes import broadcasted_iota
from accnp.numpy.composed_primitives import Composed, composed
from accnp.numpy.indexing import gather_axis
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import clip
from accnp.pytree import PyTree, array_leaves, flatten_arrays, register_pytree_node, tree_unflatten

__all__ = [
    "Token", "after_all", "after_all_p", "composite", "composite_p", "create_token",
    "create_token_p", "dce_sink", "dce_sink_p", "precv", "psend", "ragged_all_to_all",
    "ragged_all_to_all_p",
]  # fmt: skip


# --- tokens --------------------------------------------------------------------------------------


class Token:
    """A value that represents earlier effects in the order of execution.

    Notes
    -----
    Effects happen in the order in which they are recorded, so that a token carries no information.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.create_token()
    Token()
    """

    def block_until_ready(self) -> None:
        """Return immediately."""

    def __repr__(self) -> str:
        return "Token()"


register_pytree_node(Token, lambda _: ((), None), lambda *_: Token())


class _Tokens(Primitive):
    def bind(self, *args: Any, **params: Any) -> Token:
        """Return a token."""
        if not all(isinstance(x, Token) for x in args):
            raise TypeError(
                "lax.after_all: Arguments to after_all must be tokens; "
                f"got {[type(x).__name__ for x in args]}; make one with lax.create_token()"
            )
        return Token()


create_token_p, after_all_p = _Tokens("create_token"), _Tokens("after_all")


@api_boundary
def create_token(_: object = None) -> Token:
    """Make a token, which has neither shape nor dtype.

    Parameters
    ----------
    _ : object, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    Token
        New token.

    See Also
    --------
    after_all : Merge tokens.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.create_token()
    Token()
    """
    return Token()


@api_boundary
def after_all(*operands: Any) -> Token:
    """Make a token that comes after other tokens.

    Parameters
    ----------
    *operands : Token
        Tokens, which have neither shape nor dtype.

    Returns
    -------
    Token
        New token.

    Raises
    ------
    TypeError
        If an operand is not a token.

    See Also
    --------
    create_token : Make a token of nothing.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.after_all(jnp.lax.create_token(), jnp.lax.create_token())
    Token()
    """
    return after_all_p.bind(*operands)


# --- values and programs -------------------------------------------------------------------------


def _ignore(*xs: Array, prevent_mlir_dce: bool = False) -> list[Array]:
    return []


dce_sink_p = composed("dce_sink", _ignore, several=True)


@api_boundary
def dce_sink(val: PyTree, *, prevent_mlir_dce: bool = False) -> None:
    """Mark values as used, so that they stay in jaxprs.

    Parameters
    ----------
    val : pytree of array_like
        Arrays of any shapes and dtypes.
    prevent_mlir_dce : bool, optional
        Whether XLA keeps the values, too. It is accepted and has no effect.

    Raises
    ------
    TypeError
        If a leaf is not an array.

    See Also
    --------
    optimization_barrier : Keep computations from being merged.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dce_sink(jnp.zeros(2))
    """
    for x in array_leaves(val):
        dce_sink_p.bind(x, prevent_mlir_dce=bool(prevent_mlir_dce))


class _Composite(Composed):
    """A function under a user-defined name."""

    def __init__(self) -> None:
        super().__init__("composite", self._run)
        self.multiple_results = True

    def bind(self, *args: Any, **params: Any) -> Any:
        """Compute or record the call; the equation contains the traced function as `jaxpr`."""
        if state.named and "jaxpr" not in params:
            nodes = self._operands(args)
            # Not cached, since the function is a new object in each call.
            program = build(
                lambda leaves: self._body(leaves, params), [x.aval for x in nodes], params["name"]
            )
            shown = {k: v for k, v in params.items() if not k.startswith("_")}
            results = record(
                self._op, tuple(nodes), {**shown, "jaxpr": program, "_program": program}
            )
            return [wrap(x) for x in items(results)]
        return super().bind(*args, **params)

    def _run(self, *xs: Array, **params: Any) -> list[Any]:
        if "_function" in params:
            return params["_function"](*xs)
        closed = params["jaxpr"]
        return eval_jaxpr(closed.jaxpr, closed.consts, *xs)


composite_p = _Composite()


@api_boundary
def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """Make a function that appears as one named equation in jaxprs.

    Parameters
    ----------
    decomposition : callable
        Function of arrays that the equation stands for. Its keyword arguments become attributes of
        the equation.
    name : str
        Name of the equation, such as "my.tangent".
    version : int, optional
        Version of the named function, for readers. The default is 0.

    Returns
    -------
    callable
        Function of arrays, whose results have the shapes and dtypes of those of `decomposition`.

    Raises
    ------
    TypeError
        If `decomposition` is not a function, `name` is not a string, or an operand is not an array.

    See Also
    --------
    jit : Compile a function.

    Notes
    -----
    Kernels ignore the name. Derivatives and `vmap` apply to the decomposition; in JAX there are
    none.

    Examples
    --------
    >>> import accnp as jnp
    >>> scaled = jnp.lax.composite(lambda x, *, k: jnp.sin(x) * k, "my.scaled")
    >>> round(float(scaled(0.5, k=2.0)), 4)
    0.9589
    """
    if not callable(decomposition):
        raise TypeError(
            f"lax.composite: Expected a callable value, got {decomposition!r}; pass a function"
        )
    if not isinstance(name, str):
        raise TypeError(f"lax.composite: name must be a string; got {name!r}; pass one")

    @api_boundary
    def named(*args: Any, **attributes: Any) -> Any:
        leaves, tree = flatten_arrays(args)
        out_trees: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            out, out_tree = flatten_arrays(decomposition(*tree_unflatten(tree, xs), **attributes))
            out_trees[:] = [out_tree]
            return out

        items = [(k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()]
        results = composite_p.bind(
            *leaves,
            name=name,
            version=version,
            attributes=tuple(sorted(items, key=lambda kv: kv[0])),
            _function=flat,
        )
        return tree_unflatten(out_trees[0], results)

    named.__name__ = getattr(decomposition, "__name__", "composite")
    return named


# --- between devices -----------------------------------------------------------------------------


def _exchange(
    operand: Array,
    output: Array,
    input_offsets: Array,
    send_sizes: Array,
    output_offsets: Array,
    recv_sizes: Array,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Array:
    me = axis_index(axis_name)

    def to_me(x: Array) -> Array:
        return wrap(gather_axis(all_gather(x, axis_name)._node, me._node, 1))

    every = all_gather(operand, axis_name)
    starts, sizes, places = (to_me(v) for v in (input_offsets, send_sizes, output_offsets))
    row = broadcasted_iota(np.int32, (output.shape[0],), 0)
    out = output
    for i in range(axis_size(axis_name)):
        place = row - places[i].astype(row.dtype)
        here = (place >= 0) & (place < sizes[i].astype(row.dtype))
        source = clip(place + starts[i].astype(row.dtype), 0, operand.shape[0] - 1)
        values = wrap(gather_axis(every[i]._node, source._node, 0))
        out = where(here.reshape(-1, *[1] * (output.ndim - 1)), values, out)
    return out


ragged_all_to_all_p = composed("ragged_all_to_all", _exchange)


@api_boundary
def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: Hashable,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Array:
    """Exchange runs of rows of different lengths along a mapped axis.

    Parameters
    ----------
    operand : array_like
        Rows to send.
    output : array_like
        Array of the same dtype to write the received rows into. Its other rows keep their values.
    input_offsets : array_like of int
        For each member of the axis, the first row of `operand` to send to it.
    send_sizes : array_like of int
        For each member, how many rows to send to it.
    output_offsets : array_like of int
        For each member, at which row of its output they are written.
    recv_sizes : array_like of int
        For each member, how many rows come from it.
    {axis_name}
    axis_index_groups : None, optional
        Groups of members in JAX. Not supported.

    Returns
    -------
    Array
        Updated output, with its shape and dtype.

    Raises
    ------
    ValueError
        If operand and output, or offsets and sizes, do not fit each other.
    NameError
        If no mapped axis has this name.
    NotImplementedError
        If `axis_index_groups` is given.

    See Also
    --------
    all_to_all : Exchange slices of equal sizes.

    Examples
    --------
    >>> import accnp as jnp
    >>> ones = jnp.ones(2, dtype=int)
    >>> def give(x, at):
    ...     places = jnp.broadcast_to(at, 2)
    ...     return jnp.lax.ragged_all_to_all(
    ...         x, jnp.zeros(2), jnp.arange(2), ones, places, ones, axis_name="i")
    >>> jnp.vmap(give, axis_name="i")(jnp.arange(4.0).reshape(2, 2), jnp.arange(2))
    Array([[0., 2.],
           [1., 3.]], dtype=float32)
    """
    if axis_index_groups is not None:
        raise NotImplementedError(
            "lax.ragged_all_to_all: axis_index_groups is not supported; got "
            f"{axis_index_groups!r}; exchange along another axis"
        )
    operands = (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)
    nodes = [as_node(v, "lax.ragged_all_to_all") for v in operands]
    data, into, *places = [x.aval for x in nodes]
    if (
        data.dtype != into.dtype
        or data.shape[1:] != into.shape[1:]
        or not data.ndim
        or not into.ndim
    ):
        raise ValueError(
            "lax.ragged_all_to_all: operand and output must have the same dtype and row shape; got "
            f"{data} and {into}; convert or slice one of them"
        )
    if any(v.ndim != 1 or v.dtype.kind not in "iu" or v.shape != places[0].shape for v in places):
        raise ValueError(
            "lax.ragged_all_to_all: offsets and sizes must be integer vectors of equal length; got "
            f"{', '.join(map(str, places))}; convert them with astype(int)"
        )
    return ragged_all_to_all_p.bind(*map(wrap, nodes), axis_name=axis_name, axis_index_groups=None)


def _no_halves(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"lax.{name}: separate sends and receives are not supported, since the devices of one "
        "process share memory; use lax.ppermute"
    )


@api_boundary
def psend(x: ArrayLike, axis_name: Hashable, perm: Sequence[tuple[int, int]]) -> Token:
    """Send an array along a mapped axis; not supported.

    Parameters
    ----------
    x : array_like
        Array to send, of any shape and dtype.
    {axis_name}
    perm : sequence of (int, int)
        Pairs of sender and receiver.

    Returns
    -------
    Token
        Nothing is returned, since this raises.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ppermute : Send and receive in one step.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.psend(jnp.ones(2), "i", [(0, 1)])
    Traceback (most recent call last):
        ...
    NotImplementedError: lax.psend: ...
    """
    raise _no_halves("psend")


@api_boundary
def precv(
    token: Any, out_shape: Any, axis_name: Hashable, perm: Sequence[tuple[int, int]]
) -> Array:
    """Receive an array along a mapped axis; not supported.

    Parameters
    ----------
    token : Token
        Result of `psend`.
    out_shape : ShapeDtypeStruct
        What to expect: an array of this shape and dtype.
    {axis_name}
    perm : sequence of (int, int)
        Pairs of sender and receiver.

    Returns
    -------
    Array
        Nothing is returned, since this raises.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ppermute : Send and receive in one step.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.precv(None, None, "i", [(0, 1)])
    Traceback (most recent call last):
        ...
    NotImplementedError: lax.precv: ...
    """
    raise _no_halves("precv")
