"""Ops for user-defined kernels: scalar functions inside generated kernels, and array functions.

`scalar_op` declares an op that generated kernels compute by calling a user's function, and
`array_op` one that calls a function of whole arrays. The ops are not in the op table: each belongs
to the object that users call, which adds user-defined rules for derivatives and batching
(`api/kernels/`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.kernel import dtype_code, is_half
from accnp.ir.node import Node, record
from accnp.ir.op import Op
from accnp.primitives.callback import scan_examples
from accnp.primitives.kinds import map_shape, move_batch_first

if TYPE_CHECKING:
    from accnp.ir.op_types import Batched, Params

__all__ = ["array_op", "scalar_op"]


def _no_derivative(name: str) -> Callable[..., NoReturn]:
    def rule(*_: object, **__: object) -> NoReturn:
        raise NotImplementedError(
            f"kernel: no derivative of {name} is known; got it inside a differentiated function; "
            "give accnp.kernel a rule (jvp= or vjp=), or use lax.stop_gradient on its operands"
        )

    return rule


def scalar_op(name: str, mark: str, numpy: Callable[..., Any], cost: int) -> Op:
    """Declare an elementwise op; its parameter `out` is the dtype of the result.

    Args:
        name: name of the user's function.
        mark: name by which kernels call it.
        numpy: the reference: (*arrays, out) -> array.
        cost: cost of one element, in simple instructions.
    """

    def infer(*avals: Aval, out: np.dtype) -> Aval:
        return make_aval(map_shape(f"kernel_{name}", avals), out)

    def text(params: Params, _: np.dtype, count: int, dtypes: Sequence[np.dtype]) -> str:
        # Numba does not support half precision, so users' functions receive float32.
        halves = [is_half(t) for t in dtypes]
        places = ", ".join([f"f4({{{i}}})" if h else f"{{{i}}}" for i, h in enumerate(halves)])
        return f"{dtype_code(params['out'])}({mark}({places}))"

    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
    ) -> tuple[Node, bool]:
        return record(op, tuple(move_batch_first(size, xs, batched)), params), True

    op = Op(
        f"kernel_{name}",
        "map",
        infer,
        numpy=numpy,
        jvp=_no_derivative(name),
        batch=batch,
        scalar=text,
        cost=cost,
        show=lambda _: {},
        dtypes="biufc",
        user_function=True,
    )
    return op


def array_op(
    name: str,
    numpy: Callable[..., Any],
    show: Callable[..., Any],
    cost: int,
    cuda: Callable[..., Any] | None = None,
) -> Op:
    """Declare an op on whole arrays; its parameter `result_avals` has the types of its results.

    Args:
        name: name of the user's function.
        numpy: (*arrays, result_avals, **params) -> a list of arrays.
        show: parameters -> the parameters that jaxprs show.
        cost: cost of one element of the largest result, in simple instructions.
        cuda: (driver, *arrays of its library, result_avals, **params) -> a list of such arrays.
    """

    def infer(*_: Aval, result_avals: tuple[Aval, ...], **__: object) -> tuple[Aval, ...]:
        return result_avals

    def batch(size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params) -> Batched:
        return scan_examples(op, size, xs, batched, params), True

    op = Op(
        f"kernel_{name}",
        "opaque",
        infer,
        numpy=numpy,
        jvp=_no_derivative(name),
        batch=batch,
        cost=cost,
        show=show,
        cuda=cuda,
        user_function=True,
    )
    return op
