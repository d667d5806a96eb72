"""The story on one page: pending nodes in; passes, plan, kernels, launches; buffers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.graph import toposort
from accnp.ir.node import Node, _on_deep
from accnp.runtime import buffer as pool
from accnp.runtime.buffer import Buffer

__all__ = ["materialise", "ready"]


def array_of(node: Node) -> np.ndarray:
    """Return a read-only NumPy array over a ready node's buffer."""
    return ready(node).view(node.aval.shape, node.aval.dtype)


def materialise(nodes: Sequence[Node]) -> None:
    """Compute nodes (interpreting with the reference functions)."""
    for node in toposort(nodes, enter=lambda n: n.value is None):
        if node.value is not None:
            continue
        args = []
        for x in node.inputs:
            if isinstance(x.aval, tuple):
                args.append([b.view(a.shape, a.dtype) for a, b in zip(x.aval, x.value, strict=True)])
            else:
                args.append(array_of(x))
        assert node.op.numpy is not None, node.op
        out = node.op.numpy(*args, **node.params)
        if isinstance(node.aval, tuple):
            node.value = tuple(pool.copy_in(np.asarray(v, a.dtype)) for v, a in zip(out, node.aval, strict=True))
        else:
            node.value = pool.copy_in(np.asarray(out, node.aval.dtype))


def ready(node: Node) -> Buffer:
    """Return the buffer of a node; compute it, or wait for it, where needed."""
    if node.value is None:
        if node.op.name == "literal":
            node.value = pool.from_scalar(node.params["value"], node.aval.dtype)
        else:
            materialise([node])
    return node.value


def _on_deep_node(node: Node) -> None:
    materialise([node])


_on_deep.append(_on_deep_node)


class _Deleted:
    """Stands in for the buffer of a donated or deleted array."""


DELETED = _Deleted()


def is_ready(node: Node) -> bool:
    """Whether a node's value is there."""
    return isinstance(node.value, Buffer)


def writeable_view(node: Node) -> np.ndarray:
    """Return a view whose writeable flag is set, for protocols that know no read-only; nobody may write to it."""
    return ready(node).view(node.aval.shape, node.aval.dtype, writeable=True)
