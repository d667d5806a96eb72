"""The callback ops: `pure_callback`, `io_callback`, `debug_callback` and `debug_print`.

The parameter `callback` is a function from arrays to a list of results; the engine calls it on the
host. Callbacks with effects run once each time the program runs, in the recorded order, even if
their results are unused. This module contains their reference functions, which call the user's
function and check its results, and their batching rules. The public functions are in
`api/effects/`.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from accnp.dtypes import canonicalize_dtype
from accnp.errors import JaxRuntimeError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import build
from accnp.ir.node import Node, items, record
from accnp.ir.op import OPS, ZERO, Op, o, register
from accnp.ir.trace import outside_traces
from accnp.primitives.control import call, select_flagged
from accnp.primitives.kinds import broadcast_to
from accnp.primitives.unrolled import row, stack

if TYPE_CHECKING:
    from accnp.ir.op_types import Batched, Params
    from accnp.primitives.rule_types import Tools

__all__ = ["VMAP_METHODS", "has_placeholders", "scan_examples"]

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


_T = TypeVar("_T")


def _infer(*_: object, result_avals: tuple[Aval, ...] = (), **__: object) -> tuple[Aval, ...]:
    return result_avals


def _name_of(callback: Callable[..., Any]) -> str:
    """Return the name of the user's function for error messages."""
    return getattr(callback, "place", str(callback))


def _call_user_function(name: str, callback: Callable[..., _T], arrays: Sequence[np.ndarray]) -> _T:
    """Call the user's function outside of all traces.

    The operands are copied, because the user may keep them.
    """
    try:
        with outside_traces():
            return callback(*[np.array(x) for x in arrays])
    except Exception as error:
        raise JaxRuntimeError(
            f"INTERNAL: CpuCallback error calling callback: {_name_of(callback)}, called by "
            f"{name}, raised {type(error).__name__}: {error}"
        ) from error


def _checked_callback(name: str) -> Callable[..., list[np.ndarray]]:
    """Return the reference function of a callback with results, which are checked and copied."""

    def run(
        *arrays: np.ndarray,
        callback: Callable[..., Sequence[object]],
        result_avals: tuple[Aval, ...],
        **_: object,
    ) -> list[np.ndarray]:
        results = _call_user_function(name, callback, arrays)
        if len(results) != len(result_avals):
            raise JaxRuntimeError(
                f"INTERNAL: {name}: {_name_of(callback)} returned a wrong number of values; got "
                f"{len(results)} for {len(result_avals)} declared ones; return what "
                "result_shape_dtypes describes"
            )
        return [
            _check_result(name, callback, x, a) for x, a in zip(results, result_avals, strict=True)
        ]

    return run


def _check_result(name: str, callback: Callable[..., Any], value: object, aval: Aval) -> np.ndarray:
    array = np.array(value)
    if array.shape == aval.shape and canonicalize_dtype(array.dtype) == aval.dtype:
        return array.astype(aval.dtype, copy=False)
    actual = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    expected = f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"
    raise JaxRuntimeError(
        f"INTERNAL: {name}: {_name_of(callback)} returned an array of the wrong type; got {actual} "
        f"where {expected} was declared; return what result_shape_dtypes describes"
    )


# --- batching ------------------------------------------------------------------------------------


def scan_examples(
    op: Op, size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
) -> list[Node]:
    """Run an operation for each example in turn with a scan; return the stacked results."""
    fixed = [not b for b in batched]
    n = sum(fixed)
    rows = [
        make_aval(x.aval.shape[1:], x.aval.dtype, x.aval.weak_type)
        for x in select_flagged(batched, xs)
    ]
    avals = [*[x.aval for x in select_flagged(fixed, xs)], *rows]

    def body(nodes: list[Node]) -> list[Node]:
        constants, rows = iter(nodes[:n]), iter(nodes[n:])
        operands = tuple([next(rows if b else constants) for b in batched])
        return list(items(record(op, operands, params)))

    graph = build(body, avals, op.name)
    how = {"jaxpr": graph, "length": size, "reverse": False, "unroll": 1}
    return call(
        "scan",
        [*select_flagged(fixed, xs), *select_flagged(batched, xs)],
        {**how, "num_consts": n, "num_carry": 0},
    )


def _call_rows(
    name: str, size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
) -> list[list[Node]]:
    """Record one call per example, in order; return the results of each."""
    op = getattr(o, name)
    flags = list(zip(xs, batched, strict=True))
    return [
        list(items(op(*[row(x, i) if b else x for x, b in flags], **params))) for i in range(size)
    ]


def _pure_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> Batched:
    method, avals = params["vmap_method"], params["result_avals"]
    if method is None and tools.of_shards:
        method = "sequential"  # each device calls the function of its shard
    if method is None:
        allowed = ", ".join(map(repr, VMAP_METHODS[:-1]))
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
            f"{allowed}, or {VMAP_METHODS[-1]!r}. Got vmap_method=None."
        )
    if method == "sequential":
        return scan_examples(OPS["pure_callback"], size, xs, batched, params), True
    if method == "sequential_unrolled":
        columns = zip(*_call_rows("pure_callback", size, xs, batched, params), strict=True)
        return [stack(column) for column in columns], True
    wide: list[Node] = []
    for x, b in zip(xs, batched, strict=True):
        shape = x.aval.shape
        if not b and method != "legacy_vectorized":
            first = size if method == "broadcast_all" else 1
            x = broadcast_to(x, (first, *shape), tuple(range(1, len(shape) + 1)))
        wide.append(x)
    many = tuple([make_aval((size, *a.shape), a.dtype, a.weak_type) for a in avals])
    return o.pure_callback(*wide, **{**params, "result_avals": many}), True


def _io_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], bool]:
    if params["ordered"]:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    return scan_examples(OPS["io_callback"], size, xs, batched, params), True


def _debug_batch(name: str) -> Callable[..., Batched]:
    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
    ) -> tuple[list[Node], list[bool]]:
        _call_rows(name, size, xs, batched, params)
        return [], []

    return batch


# --- derivatives ---------------------------------------------------------------------------------


def _refuse(text: str) -> Callable[..., NoReturn]:
    def rule(*_: object, **__: object) -> NoReturn:
        raise ValueError(text)

    return rule


# --- printing ------------------------------------------------------------------------------------


def has_placeholders(fmt: str) -> bool:
    """Return whether a field follows the first literal text of a format string."""
    first = next(iter(string.Formatter().parse(fmt)), None)
    return first is not None and first[1] is not None


def _print_numpy(
    *arrays: np.ndarray,
    fmt: str,
    arguments: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]],
    np_printoptions: tuple[tuple[str, Any], ...],
    write: Callable[[str], None] | None,
    **_: object,
) -> tuple[()]:
    def show(*values: np.ndarray) -> None:
        args, kwargs = arguments(*values)
        if has_placeholders(fmt):
            with np.printoptions(**dict(np_printoptions)):
                text = fmt.format(*args, **kwargs)
        else:
            text = " ".join((fmt, *map(str, args)))
        if write is None:
            sys.stdout.write(text + "\n")
        else:
            write(text)

    _call_user_function("debug_print", show, arrays)
    return ()


def _show_print(params: Params) -> Params:
    return {
        "fmt": params["fmt"],
        "has_placeholders": has_placeholders(params["fmt"]),
        "in_tree": params["arguments"].in_tree,
        "logging_record": params["write"],
        "np_printoptions": params["np_printoptions"],
        "ordered": params["ordered"],
        "partitioned": False,
        "static_args": params["arguments"].static,
    }


def _show_debug(params: Params) -> Params:
    effect = "OrderedDebug" if params["ordered"] else "Debug"
    return {"callback": params["callback"].callback, "effect": effect, "partitioned": False}


def _debug_numpy(*arrays: np.ndarray, callback: Callable[..., Any], **_: object) -> tuple[()]:
    _call_user_function("debug_callback", callback, arrays)
    return ()


# --- declarations --------------------------------------------------------------------------------

register(
    Op(
        "pure_callback",
        "callback",
        _infer,
        numpy=_checked_callback("pure_callback"),
        jvp=_refuse(
            "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks "
            "while taking gradients."
        ),
        batch=_pure_batch,
        cost=1000,
        show=lambda p: {**p, "sharding": None},
    )
)
register(
    Op(
        "io_callback",
        "callback",
        _infer,
        numpy=_checked_callback("io_callback"),
        jvp=_refuse("IO callbacks do not support JVP."),
        batch=_io_batch,
        cost=1000,
        show=lambda p: {**p, "sharding": None},
        effect=True,
    )
)
register(
    Op(
        "debug_callback",
        "callback",
        _infer,
        numpy=_debug_numpy,
        jvp=ZERO,
        batch=_debug_batch("debug_callback"),
        cost=1000,
        show=_show_debug,
        effect=True,
        raises_cause=True,
    )
)
register(
    Op(
        "debug_print",
        "callback",
        _infer,
        numpy=_print_numpy,
        jvp=ZERO,
        batch=_debug_batch("debug_print"),
        cost=1000,
        show=_show_print,
        effect=True,
        raises_cause=True,
    )
)
