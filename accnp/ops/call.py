"""The `jit` call op: a program inside a program.

Passes and transformations look through it; printing shows it.
"""

from __future__ import annotations

from typing import Any

from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, interpret
from accnp.ir.op import Op, register

__all__: list[str] = []


def _infer(*_: Aval, name: str, jaxpr: Graph) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _run(*arrays: Any, name: str, jaxpr: Graph) -> list[Any]:
    return interpret(jaxpr, arrays)


register(Op("jit", "call", _infer, numpy=_run))
