"""Partial evaluation: what a function computes from known arguments alone, and a program of the
rest.

In: a wrapped function of flat arguments; values, or types of those that are not known. Out: a
jaxpr; the results, values where they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from accnp.api.arguments.convert import as_node
from accnp.api.jaxprs.evaluation import eval_jaxpr
from accnp.api.jaxprs.jaxpr import closed_jaxpr, recording_names
from accnp.api.jaxprs.tracing import dce_jaxpr
from accnp.api.jaxprs.wrapped import WrappedFun
from accnp.array import wrap
from accnp.ir.aval import Aval
from accnp.ir.equations import Jaxpr, Var
from accnp.ir.graph import Graph, expanded
from accnp.ir.node import Node
from accnp.trace_fn import trace

__all__ = ["PartialVal", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]


class PartialVal(NamedTuple):
    """A value that is known, `(None, value)`, or only its type, `(aval, None)`.

    Example:
        >>> from accnp.interpreters import partial_eval as pe
        >>> pe.PartialVal.known(3.0).is_known()
        True
    """

    pval: Aval | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return a value that is known.

        >>> from accnp.interpreters import partial_eval as pe
        >>> pe.PartialVal.known(3.0).get_known()
        3.0
        """
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: Aval) -> PartialVal:
        """Return a value of which the type is known.

        >>> import accnp as jax
        >>> from accnp.interpreters import partial_eval as pe
        >>> pe.PartialVal.unknown(jax.core.ShapedArray((3,), "float32")).is_known()
        False
        """
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether it is a value."""
        return self.pval is None

    def get_known(self) -> Any:
        """Return the value, or None."""
        return self.const if self.pval is None else None

    def get_aval(self) -> Aval:
        """Return the type."""
        return as_node(self.const, "PartialVal").aval if self.pval is None else self.pval


def _recorded(fun: WrappedFun, avals: Sequence[Aval], transform: str) -> Graph:
    def run(nodes: list[Node]) -> list[Node]:
        outs = fun.call_wrapped(*[wrap(n) for n in nodes])
        return [as_node(x, transform) for x in outs]

    with recording_names():
        return trace(run, avals, of=fun, transform=transform)


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[Aval], **_: Any
) -> tuple[Jaxpr, list[Aval], list[Any]]:
    """Record a function of flat arguments, all of them unknown.

    Returns:
        The jaxpr, the types of its results, the values of its constants.

    >>> import accnp as jax
    >>> from accnp.extend import linear_util as lu
    >>> from accnp.interpreters import partial_eval as pe
    >>> scalar = jax.core.ShapedArray((), "float32")
    >>> pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: [x * x]), [scalar])[0]
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    closed = closed_jaxpr(_recorded(fun, in_avals, "trace_to_jaxpr_dynamic"))
    return closed.jaxpr, list(closed.out_avals), list(closed.consts)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Evaluate a function of flat arguments as far as its known ones allow.

    Args:
        fun: the function; it returns a list of arrays.
        pvals: its arguments, known or not.
        instantiate: of which results, or of all, to make a part of the program though known.

    Returns:
        A jaxpr from the unknown arguments to the results that hang on them; the results as partial
        values; the values of the jaxpr's constants.

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
        graph = expanded(_recorded(fun.wrap(of_unknown), unknown, "trace_to_jaxpr_nounits"))
    closed = closed_jaxpr(graph)
    jaxpr = closed.jaxpr
    moving: set[Any] = set(jaxpr.invars)
    for eqn in jaxpr.eqns:
        if eqn.effects or any(v in moving for v in eqn.invars if isinstance(v, Var)):
            moving.update(eqn.outvars)
    flags = [isinstance(v, Var) and v in moving for v in jaxpr.outvars]
    keep = [instantiate] * len(flags) if isinstance(instantiate, bool) else list(instantiate)
    keep = [k or flag for k, flag in zip(keep, flags, strict=True)]
    still, _ = dce_jaxpr(jaxpr, [not k for k in keep])  # has no inputs, since none moves it
    values = iter(eval_jaxpr(still, closed.consts))
    outs = [
        PartialVal.unknown(v.aval) if k else PartialVal.known(next(values))
        for v, k in zip(jaxpr.outvars, keep, strict=True)
    ]
    rest, _ = dce_jaxpr(jaxpr, keep, instantiate=True)
    return rest, outs, list(closed.consts)
