"""Text of programs in jax 0.10's jaxpr notation."""

from __future__ import annotations

from accnp.ir.node import Node

__all__ = ["equation_text"]


def equation_text(node: Node) -> str:
    """Return one equation without names, for error messages."""
    ins = " ".join(_typed(x.aval) for x in node.inputs)
    params = " ".join(f"{k}={v}" for k, v in node.params.items())
    return f"{_typed(node.aval)} = {node.op.name}[{params}] {ins}"


def _typed(aval: object) -> str:
    if isinstance(aval, tuple):
        return "(" + ", ".join(map(_typed, aval)) + ")"
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"  # type: ignore[attr-defined]
