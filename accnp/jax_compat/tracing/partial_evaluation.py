"""Partial evaluation: results that depend only on known arguments, and a jaxpr for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from accnp.api.arguments.convert import as_node
from accnp.api.jit.abstract_evaluation import closed_jaxpr, recording_names
from accnp.array_type import ArrayLike, wrap
from accnp.dtypes import ExtendedDType
from accnp.ir.aval import Aval, make_aval
from accnp.ir.equations import Jaxpr, Var
from accnp.ir.graph import Graph, inline_calls
from accnp.ir.node import Node
from accnp.jax_compat.jaxprs.evaluation import eval_jaxpr
from accnp.jax_compat.tracing.trace_queries import dce_jaxpr
from accnp.jax_compat.tracing.wrapped_functions import WrappedFun
from accnp.key_array import PRNGKeyArray, keys_of_words
from accnp.primitives.dependence import depends
from accnp.primitives.kinds import zeros_like_aval
from accnp.trace_fn import trace

__all__ = ["PartialVal", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]


class PartialVal(NamedTuple):
    """Value that is known, `(None, value)`, or of which only the type is known, `(aval, None)`.

    Parameters
    ----------
    pval : ShapedArray or None
        Type of an unknown value.
    const : array_like or None
        Content of a known value.

    Examples
    --------
    >>> from accnp.interpreters import partial_eval as pe
    >>> pe.PartialVal.known(3.0).is_known()
    True
    """

    pval: Aval | None
    const: Any

    @classmethod
    def known(cls, const: ArrayLike) -> PartialVal:
        """Make a partial value with known content.

        Parameters
        ----------
        const : array_like
            Content to hold.

        Returns
        -------
        PartialVal
            Known value.

        See Also
        --------
        interpreters.partial_eval.PartialVal.unknown : Value of a known type.

        Examples
        --------
        >>> from accnp.interpreters import partial_eval as pe
        >>> pe.PartialVal.known(3.0).get_known()
        3.0
        """
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: Aval) -> PartialVal:
        """Make a partial value of which only the type is known.

        Parameters
        ----------
        aval : ShapedArray
            Type of the missing content.

        Returns
        -------
        PartialVal
            Unknown value.

        See Also
        --------
        interpreters.partial_eval.PartialVal.known : Value with known content.

        Examples
        --------
        >>> import accnp as jax
        >>> from accnp.interpreters import partial_eval as pe
        >>> pe.PartialVal.unknown(jax.core.ShapedArray((3,), "float32")).is_known()
        False
        """
        return cls(aval, None)

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self.pval is None

    def get_known(self) -> Any:
        """Return the value, or None."""
        return self.const if self.pval is None else None

    def get_aval(self) -> Aval:
        """Return the type."""
        return as_node(self.const, "PartialVal").aval if self.pval is None else self.pval


def _trace_on_words(
    fun: WrappedFun, avals: Sequence[Aval], transform: str
) -> tuple[Graph, list[ExtendedDType | None]]:
    """Trace a function on the words of keys; return the program and the key dtypes of results."""
    keys = [a.dtype if type(a.dtype) is ExtendedDType else None for a in avals]
    words = [
        a if k is None else make_aval((*a.shape, *k.base_shape), k.base_dtype)
        for a, k in zip(avals, keys, strict=True)
    ]
    key_dtypes: list[ExtendedDType | None] = []

    def run(nodes: list[Node]) -> list[Node]:
        arguments = [_keys(k, wrap(n)) for k, n in zip(keys, nodes, strict=True)]
        outs = fun.call_wrapped(*arguments)
        key_dtypes[:] = [x._keys if isinstance(x, PRNGKeyArray) else None for x in outs]
        plain = [x._base if isinstance(x, PRNGKeyArray) else x for x in outs]
        return [as_node(x, transform) for x in plain]

    with recording_names():
        return trace(run, words, of=fun, transform=transform), key_dtypes


def _keys(dtype: ExtendedDType | None, x: Any) -> Any:
    return x if dtype is None else keys_of_words(dtype, x)


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[Aval], **_: Any
) -> tuple[Jaxpr, list[Aval], list[Any]]:
    """Trace a function of flat arguments whose values are all unknown.

    Parameters
    ----------
    fun : WrappedFun
        Function that returns a list of arrays.
    in_avals : sequence of ShapedArray
        Types of its arguments.

    Returns
    -------
    jaxpr : Jaxpr
        Program of the function.
    out_avals : list of ShapedArray
        Types of its results.
    consts : list
        Values of its constants.

    See Also
    --------
    make_jaxpr : Trace a function of pytrees.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.extend import linear_util as lu
    >>> from accnp.interpreters import partial_eval as pe
    >>> scalar = jax.core.ShapedArray((), "float32")
    >>> pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: [x * x]), [scalar])[0]
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    graph, keys = _trace_on_words(fun, in_avals, "trace_to_jaxpr_dynamic")
    closed = closed_jaxpr(graph)
    out_avals = [_keys(k, a) for k, a in zip(keys, closed.out_avals, strict=True)]
    return closed.jaxpr, out_avals, list(closed.consts)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Evaluate a function of flat arguments as far as the known ones allow, and trace the rest.

    Parameters
    ----------
    fun : WrappedFun
        Function that returns a list of arrays.
    pvals : sequence of PartialVal
        Its arguments, known or unknown.
    instantiate : bool or sequence of bool, optional
        For which results, or for all, to make known values outputs of the program. The default is
        False.

    Returns
    -------
    jaxpr : Jaxpr
        Program from the unknown arguments to the results that depend on them.
    out_pvals : list of PartialVal
        All results.
    consts : list
        Values of the constants of the program.

    See Also
    --------
    interpreters.partial_eval.trace_to_jaxpr_dynamic : Version without known arguments.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.extend import linear_util as lu
    >>> from accnp.interpreters import partial_eval as pe
    >>> given = pe.PartialVal.unknown(jax.core.ShapedArray((), "float32"))
    >>> f = lu.wrap_init(lambda x, y: [x + 1, x * y])
    >>> _, outs, _ = pe.trace_to_jaxpr_nounits(f, [pe.PartialVal.known(2.0), given])
    >>> [out.is_known() for out in outs]
    [True, False]
    """
    unknown = [p.pval for p in pvals if p.pval is not None]

    def of_unknown(*xs: Any) -> Any:
        rest = iter(xs)
        return fun.call_wrapped(*[p.const if p.pval is None else next(rest) for p in pvals])

    with recording_names():
        graph, keys = _trace_on_words(fun.wrap(of_unknown), unknown, "trace_to_jaxpr_nounits")
        graph = inline_calls(graph)
        closed = closed_jaxpr(graph)
    jaxpr = closed.jaxpr
    moving: set[Any] = set()  # results of effects, and what depends on them
    for eqn in jaxpr.eqns:
        if eqn.effects or any(v in moving for v in eqn.invars if isinstance(v, Var)):
            moving.update(eqn.outvars)
    # Checkpointed functions, branches and loops may have both known and unknown results.
    hangs = depends(graph, [True] * len(graph.inputs))
    flags = [f or (isinstance(v, Var) and v in moving) for v, f in zip(jaxpr.outvars, hangs)]
    keep = [instantiate] * len(flags) if isinstance(instantiate, bool) else list(instantiate)
    keep = [k or flag for k, flag in zip(keep, flags, strict=True)]
    still, used = dce_jaxpr(jaxpr, [not k for k in keep])
    # These results depend on no input; inputs that are used are replaced by zeros.
    zeros = [zeros_like_aval(v.aval) for v, u in zip(jaxpr.invars, used, strict=True) if u]
    values = iter(eval_jaxpr(still, closed.consts, *map(wrap, zeros)))
    outs = [
        PartialVal.unknown(_keys(dtype, v.aval))
        if k
        else PartialVal.known(_keys(dtype, next(values)))
        for v, k, dtype in zip(jaxpr.outvars, keep, keys, strict=True)
    ]
    rest, _ = dce_jaxpr(jaxpr, keep, instantiate=True)
    return rest, outs, list(closed.consts)
