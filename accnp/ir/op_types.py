"""Types of the parameters and rules of ops, for type checkers: not imported at run time.

`Op` in `op.py` documents the rules. Other modules import the names under `if TYPE_CHECKING:`. The
forms with a known number of operands give the parameters of lambdas their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from accnp._native import Node
from accnp.ir.aval import Aval
from accnp.ir.op import Linear, Zero

# The rules of an op; see `Op`. The forms with a known number of operands give the parameters of
# lambdas their types.
Params = dict[str, Any]  # the static parameters of an operation, by name
Avals = Aval | tuple[Aval, ...]  # of the result or results
Infer = Callable[[Aval], Avals] | Callable[[Aval, Aval], Avals] | Callable[..., Avals]
Array = np.ndarray
Reference = (
    Callable[[Array], Array | tuple[Array, ...]]
    | Callable[[Array, Array], Array]
    | Callable[..., Any]
)
JvpRule = (
    Callable[[Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node, Node, Node], Node]
    | Callable[..., Any]
    | Zero
)
Tangents = Sequence[Node | None]
Jvp = (
    Sequence[JvpRule]
    | Callable[[Tangents, Node, Sequence[Node], Params], Tangents | Node | None]
    | Callable[..., Any]
    | Zero
    | None
)
Operand = Node | Linear  # of a transpose rule
Cotangents = Sequence[Node | None]
Transpose = (
    Callable[[Node, Operand], Cotangents]
    | Callable[[Node, Operand, Operand], Cotangents]
    | Callable[[Node, Operand, Operand, Operand], Cotangents]
    | Callable[..., Any]
    | None
)
# What a batching rule returns: the result or results, and whether they are batched.
Batched = tuple[Node | Sequence[Node], bool | Sequence[bool]]
Batch = Callable[[int, Sequence[Node], Sequence[bool], Params], Batched] | Callable[..., Any]
Scalar = str | Mapping[str, str] | Callable[[Params], str] | Callable[..., str] | None
Show = Callable[[Params], Params] | None
Windows = Callable[[Sequence[Node], Params], tuple[Node, tuple[int, ...], list[int]]] | None
