"""Primitives that are compositions of other operations.

In jaxprs a composition is one equation, with the name and parameters that JAX gives it. Everywhere
else its function runs, so kernels, derivatives and batching see the operations that it records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.array_type import Array, ArrayLike, wrap
from accnp.ir.aval import Aval
from accnp.ir.equations import no_effects
from accnp.ir.node import Node, items, record
from accnp.ir.op import OPS
from accnp.ir.trace import state
from accnp.jax_compat.jaxprs.primitives import Primitive

__all__ = ["Composed", "composed"]

Rule = Callable[..., list[Array]]


class Composed(Primitive):
    """A primitive defined by a function of arrays, whose operations define derivatives, batching
    and kernels."""

    def __init__(self, name: str, run: Callable[..., Any], batch: Rule | None = None) -> None:
        super().__init__(name)
        self.lowering = run
        self.batching = batch

    def bind(self, *args: ArrayLike, **params: object) -> Any:
        """Compute the results, or record the operation where something is traced.

        Parameters
        ----------
        *args : array_like
            Operands of the primitive in order, arrays or numbers of any shape and dtype.
        **params : object
            Static parameters of the primitive, by name.

        Returns
        -------
        Array or list of Array
            Result, or a list of results if `multiple_results` is True.

        Raises
        ------
        TypeError
            If an operand is not an array or a number.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.lax.split_p.bind(jnp.arange(4), sizes=(1, 3), axis=0)[0]
        Array([0], dtype=int32)
        """
        nodes = self._operands(args)
        if not state.named and (self.batching is None or state.abstract is None):
            out = self._run_flat(self.lowering, nodes, params)
        else:
            program = self._program(tuple(x.aval for x in nodes), params)
            out = items(record(self._op, tuple(nodes), {**params, "_program": program}))
        outs = [wrap(x) for x in out]
        return outs if self.multiple_results else outs[0]

    def impl(self, *args: Any, **params: Any) -> Any:
        """Compute the results."""
        return self.bind(*args, **params)

    def abstract_eval(self, *avals: Aval, **params: Any) -> tuple[Any, Any]:
        """Return the types of the results, and the effects."""
        out = self._program(tuple(avals), params).out_avals
        return (out if self.multiple_results else out[0]), no_effects

    def _run_flat(self, run: Any, nodes: list[Node], params: dict[str, Any]) -> list[Node]:
        out = run(*[wrap(x) for x in nodes], **params)
        return [as_node(x, self.name) for x in (out if self.multiple_results else [out])]

    def _body(self, nodes: list[Node], params: dict[str, Any]) -> list[Node]:
        return self._run_flat(self.lowering, nodes, params)

    # Transformations treat the equation as a jitted call of its program.

    def _as_call(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"name": self.name, "jaxpr": params["_program"]}

    def _jvp(self, ts: Any, y: Node, xs: Any, params: dict, tools: Any) -> Any:
        return OPS["jit"].jvp(ts, y, xs, self._as_call(params), tools)

    def _transpose(self, cts: Any, xs: Any, params: dict, tools: Any) -> Any:
        rule = OPS["jit"].transpose
        assert rule is not None
        return rule(cts, xs, self._as_call(params), tools)

    def _batch(self, size: int, xs: Any, flags: Any, params: dict, tools: Any) -> Any:
        if self.batching is not None:
            visible = {k: v for k, v in params.items() if k != "_program"}
            outs = self.batching([wrap(x) for x in xs], flags, size, **visible)
            return [as_node(x, self.name) for x in outs], [True] * len(outs)
        rule = OPS["jit"].batch
        assert rule is not None
        return rule(size, xs, flags, self._as_call(params), tools)


def composed(
    name: str, run: Callable[..., Any], *, several: bool = False, batch: Rule | None = None
) -> Callable[..., Array | Any]:
    """Make the primitive of a composition; `several` means that it returns a list.

    `batch` replaces batching of the recorded operations. It is called with the operands, a flag for
    each that says whether it has a leading batch axis, the batch size, and the parameters, and
    returns a list of batched results.
    """
    primitive = Composed(name, run, batch)
    primitive.multiple_results = several
    return primitive  # type: ignore[return-value]
