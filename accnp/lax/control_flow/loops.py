"""Loops: `while_loop`, `fori_loop` and `scan`.

Bodies are traced once for a function and the types of its carry (`trace_cache.py`). Carried values
that no step changes become constants of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, promote
from accnp.api.arguments.values import unroll_steps
from accnp.api.tracing.argument_names import argument_names
from accnp.api.tracing.bodies import (
    Body,
    Loop,
    as_leaves,
    build_carry,
    check_carry,
    close,
    forwarded_inputs,
    promoted_carry_types,
    record_body,
    ref_contents,
    refs_of,
    row_refs,
    set_refs,
    values,
    with_inputs,
    with_refs,
)
from accnp.api.tracing.trace_cache import cached_trace
from accnp.array_type import Array, ArrayLike, concrete_value, is_traced, with_float0, wrap
from accnp.config import config
from accnp.engine import array_of
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, keeps_sharding, mesh_sharding, row_aval
from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.control import call, select_flagged
from accnp.primitives.unrolled import row, stack
from accnp.pytree import PyTree, flatten_arrays, map_arrays

__all__ = ["fori_loop", "run_scan", "scan", "while_loop"]

_BOOL = np.dtype(bool)


def _callable(name: str, **fns: Any) -> None:
    for label, fn in fns.items():
        if not callable(fn):
            raise TypeError(
                f"lax.{name}: {label} argument should be a callable; got {fn!r}; pass a function"
            )


# --- while_loop and fori_loop ---


@api_boundary
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: PyTree
) -> Any:
    """Apply a function repeatedly while a condition holds.

    Parameters
    ----------
    cond_fun : callable
        Function of the value that returns a boolean scalar: whether to continue.
    body_fun : callable
        Function of the value that returns the next one, of the same structure, shapes and dtypes.
    init_val : pytree
        Initial value, an array or a tree of arrays.

    Returns
    -------
    pytree
        Final value.

    Raises
    ------
    TypeError
        If `body_fun` changes the structure or a type of the value, or `cond_fun` does not return a
        boolean scalar.

    See Also
    --------
    fori_loop : Loop over a range of integers.
    scan : Loop over the rows of arrays, with reverse-mode derivatives.

    Notes
    -----
    Derivatives are available in forward mode only, since the number of steps is not known in
    advance. Under `vmap` the loop runs until the condition is False for all examples; the value of
    an example does not change after its condition is False.

    {note_weak_carry}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.while_loop(lambda x: x < 100, lambda x: x * 3, 1)
    Array(243, dtype=int32, weak_type=True)
    """
    _callable("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    names = argument_names(body_fun, (init_val,), {})
    return run_while(Loop("while_loop", body_fun, names), cond_fun, body_fun, init_val)


def run_while(loop: Loop, cond_fun: Any, body_fun: Any, init_val: Any) -> Any:
    """Record a `while`, or run it in Python under disable_jit; `loop` describes it for messages."""
    if config.disable_jit:
        result = _while_in_python(cond_fun, body_fun, init_val)
        if result is not None:
            return result[0]
    carry, spec = as_leaves(init_val, loop.name, "init_val")
    avals = [x.aval for x in carry]
    key = (loop.name, loop.kind, spec, *avals)
    fns = (loop.fn,) if loop.name != "while_loop" else (loop.fn, cond_fun)
    recorded = cached_trace(fns, key, lambda: _While(loop, cond_fun, body_fun, init_val, avals))
    final = recorded.call(carry)
    return build_carry(spec, final, init_val, recorded.fixed[: len(final)])


class _While:
    """The recorded programs of a `while`. A carried value that the body does not change and the
    condition does not read is a constant of the body."""

    def __init__(
        self, loop: Loop, cond_fun: Any, body_fun: Any, init_val: Any, avals: list[Aval]
    ) -> None:
        spec = flatten_arrays((init_val,))[1]

        def bodies() -> tuple[Body, Body]:
            test = record_body(cond_fun, loop.name, avals, spec, refs=True)
            out = test.avals
            if not test.spec.is_leaf() or len(out) != 1:
                raise TypeError(
                    f"cond_fun must return a boolean scalar, but got pytree {test.spec}."
                )
            if out[0].shape != () or out[0].dtype != _BOOL:
                raise TypeError(
                    f"cond_fun must return a boolean scalar, but got output type(s) {list(out)}."
                )
            body = record_body(
                body_fun, loop.name, avals, spec, of=loop.fn, names=loop.carry, refs=True
            )
            return test, body

        test, body = bodies()
        while len(body.avals) == len(avals):
            new = promoted_carry_types(avals, body.avals)
            if new == avals:
                break
            avals = new
            test, body = bodies()
        check_carry(loop, init_val, avals, body)
        self.name, self.refs = loop.name, refs_of([test, body])
        if any(capture.content._node is not capture.leaf for capture in test.captures):
            raise NotImplementedError(
                f"{loop.name}: cond_fun must not write to references; got one of type "
                f"{refs_of([test])[0].aval}; write in body_fun"
            )
        self.avals = [*avals, *[r.type for r in self.refs]]
        self.body, self.test = with_refs(body, self.refs), test.graph
        if self.refs:
            graph = with_refs(test, self.refs)
            self.test = with_inputs(graph, graph.inputs, test.graph.outputs)
        self.test_consts, self.body_consts = close([self.test]), close([self.body])
        self.outer = [*self.test_consts, *self.body_consts]
        self.arrange()

    def arrange(self) -> None:
        """Make unchanged carried values constants of the body."""
        test, body = self.test, self.body
        a, b = len(self.test_consts), len(self.body_consts)
        read = {id(x) for node in test.nodes for x in node.inputs} | {id(x) for x in test.outputs}
        self.fixed = [
            f == b + i and id(test.inputs[a + i]) not in read
            for i, f in enumerate(forwarded_inputs(body))
        ]
        if any(self.fixed):
            moved = [i for i, f in enumerate(self.fixed) if f]
            stays = [i for i, f in enumerate(self.fixed) if not f]
            ins = list(body.inputs)
            order = [*[b + i for i in moved], *range(b), *[b + i for i in stays]]
            outs = [body.outputs[i] for i in stays]
            self.body = with_inputs(body, [ins[i] for i in order], outs)
            positions = [*range(a), *[a + i for i in stays]]
            self.test = with_inputs(test, [test.inputs[i] for i in positions], test.outputs)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The recorded programs."""
        return self.test, self.body

    def call(self, carry: list[Node]) -> list[Node]:
        """Record the loop and return the final carry."""
        n = len(carry)
        carry = [*carry, *ref_contents(self.refs, self.name)]
        carry = [cast_to(x, a) for x, a in zip(carry, self.avals, strict=True)]
        consts = [*select_flagged(self.fixed, carry), *self.body_consts]
        moving = [x for x, f in zip(carry, self.fixed, strict=True) if not f]
        params = {
            "cond_jaxpr": self.test,
            "body_jaxpr": self.body,
            "cond_nconsts": len(self.test_consts),
            "body_nconsts": len(consts),
        }
        rest = iter(call("while", [*self.test_consts, *consts, *moving], params))
        final = [x if f else next(rest) for x, f in zip(carry, self.fixed, strict=True)]
        set_refs(self.refs, final[n:], self.name)
        return final[:n]


def cast_to(x: Node, aval: Aval) -> Node:
    """Convert an initial value to the type that the body requires."""
    return x if x.aval == aval else cast(x, aval.dtype)


def _while_in_python(cond_fun: Any, body_fun: Any, init_val: Any) -> tuple[Any] | None:
    value = map_arrays(lambda x: wrap(as_node(x, "while_loop")), init_val)
    while True:
        go = as_node(cond_fun(value), "while_loop")
        if is_traced(go):
            return None  # no Python loop is possible, for instance under vmap
        if not array_of(go).item():
            return (value,)
        value = map_arrays(lambda x: wrap(as_node(x, "while_loop")), body_fun(value))


@api_boundary
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], Any],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Apply a function for each integer of a range.

    Parameters
    ----------
    lower : scalar int
        First integer of the range.
    upper : scalar int
        Integer after the last one.
    body_fun : callable
        Function (i, value) -> next value, of the same structure, shapes and dtypes.
    init_val : pytree
        Initial value, an array or a tree of arrays.
    unroll : int or bool, optional
        Number of steps to write out in each iteration, for static bounds; True writes out all.

    Returns
    -------
    pytree
        Final value.

    Raises
    ------
    TypeError
        If `body_fun` changes the structure or a type of the value, or the bounds have different
        types.
    ValueError
        If `unroll` is given and the bounds are not static.

    See Also
    --------
    while_loop : Loop while a condition holds.
    scan : Loop over the rows of arrays.

    Notes
    -----
    With static bounds this is a `scan`, which supports reverse-mode differentiation; otherwise it
    is a `while_loop`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.fori_loop(0, 4, lambda i, x: x + i, 0)
    Array(6, dtype=int32, weak_type=True)
    """
    _callable("fori_loop", body_fun=body_fun)
    low, high = as_node(lower, "fori_loop"), as_node(upper, "fori_loop")
    a, b = low.aval, high.aval
    dtype = a.dtype
    if a.dtype != b.dtype:
        both = a.dtype.kind == b.dtype.kind == "i"
        if both and a.weak_type != b.weak_type:
            dtype = b.dtype if a.weak_type else a.dtype
        else:
            raise TypeError(
                "lower and upper arguments to fori_loop must have equal types, "
                f"got {a.dtype.name} and {b.dtype.name}; convert one of them with int or astype"
            )
    counter, *names = argument_names(body_fun, (0, init_val), {})
    if not is_traced(low) and not is_traced(high):
        first = int(wrap(low))
        length = max(int(wrap(high)) - first, 0)
        if config.disable_jit and length == 0:
            return init_val

        def step(carry: Any, _: Any) -> Any:
            i, x = carry
            return (wrap(o.add(*promote("add", i, 1))), body_fun(i, x)), None

        loop = Loop("fori_loop", body_fun, [counter, *names], part=lambda carry: carry[1])
        times = _unroll(unroll or False, length)
        start = (wrap(as_node(first)), init_val)
        return run_scan(loop, step, start, None, length, False, times)[0][1]
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(
            "fori_loop: only loops with static bounds can be unrolled; got "
            f"unroll={unroll!r}; leave it out, or make the bounds static"
        )
    if a.dtype != dtype:
        low = cast(low, dtype)
    if b.dtype != dtype:
        high = cast(high, dtype)

    def more(carry: Any) -> Any:
        return wrap(o.lt(as_node(carry[0]), as_node(carry[1])))

    def body(carry: Any) -> Any:
        i, end, x = carry
        return wrap(o.add(*promote("add", i, 1))), end, body_fun(i, x)

    loop = Loop("fori_loop", body_fun, [counter, "upper", *names], part=lambda carry: carry[2])
    return run_while(loop, more, body, (wrap(low), wrap(high), init_val))[2]


# --- scan ---


@api_boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Apply a function to each row of arrays while carrying a value along.

    Parameters
    ----------
    f : callable
        Function (carry, row) -> (next carry, row of the output). The carry keeps its structure,
        shapes and dtypes (see Notes).
    init : pytree
        Initial carry, an array or a tree of arrays.
    xs : pytree, optional
        Array or tree of arrays with leading axes of one length, along which rows are taken. By
        default rows are None.
    length : int, optional
        Number of steps, required if `xs` contains no array.
    reverse : bool, optional
        If True, go from the last row to the first. The default is False.
    unroll : int or bool, optional
        Number of steps to write out in each iteration of the loop. True writes out all; the default
        is 1.

    Returns
    -------
    carry : pytree
        Final carry.
    ys : pytree
        Rows of the output, stacked along leading axes.

    Raises
    ------
    TypeError
        If `f` changes the structure or a type of the carry.
    ValueError
        If the number of steps is unknown, or leading axes differ.

    See Also
    --------
    fori_loop : Loop over a range of integers.
    map : Apply a function to each row.
    associative_scan : Partial results of an associative function, in parallel.

    Notes
    -----
    {note_weak_carry}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(4))[1]
    Array([0, 0, 1, 3], dtype=int32, weak_type=True)
    """
    _callable("scan", f=f)
    boxes = row_refs(f, xs, "scan")
    if boxes is not None:
        step, rows, put = boxes
        final, outputs = scan(step, init, rows, length, reverse, unroll)
        return final, put(outputs)
    both = argument_names(f, (init, xs), {})
    n = flatten_arrays(init)[1].num_leaves
    return run_scan(Loop("scan", f, both[:n], both[n:]), f, init, xs, length, reverse, unroll)


def run_scan(
    loop: Loop, step: Any, init: Any, xs: Any, length: Any, reverse: Any, unroll: Any
) -> tuple[Any, Any]:
    """Record a `scan`, or run it in Python under disable_jit; `loop` describes it for messages."""
    rows, xs_spec = as_leaves(xs, loop.name, "xs")
    _check_rows(loop.name, [x.aval for x in rows])
    length = _scan_length(xs_spec.shown_leaves([x.aval for x in rows]), length)
    unroll = _unroll(unroll, length)
    if config.disable_jit:
        return _scan_in_python(step, init, rows, xs_spec, length, reverse)
    carry, carry_spec = as_leaves(init, loop.name, "init")
    avals = [x.aval for x in carry]
    row_avals = [row_aval(x.aval) for x in rows]
    key = (loop.name, loop.kind, carry_spec, xs_spec, *avals, *row_avals)
    recorded = cached_trace((loop.fn,), key, lambda: _Scan(loop, step, init, xs, avals, row_avals))
    final, ys = recorded.call(carry, rows, length, bool(reverse), unroll)
    fixed = recorded.fixed[: len(final)]
    return build_carry(carry_spec, final, init, fixed), values(recorded.out_spec, ys)


class _Scan:
    """The recorded program of a `scan`. Carried values that never change are constants, and outputs
    that equal rows of an input are not computed."""

    def __init__(
        self, loop: Loop, step: Any, init: Any, xs: Any, avals: list[Aval], row_avals: list[Aval]
    ) -> None:
        spec = flatten_arrays((init, xs))[1]
        names = [*loop.carry, *loop.rows]
        self.out_spec: Any = None

        def pair(c: Any, x: Any) -> tuple[Any, Any]:
            out = step(c, x)
            if not isinstance(out, tuple | list) or len(out) != 2:
                raise TypeError(f"scan body output must be a pair, got {out}; return (carry, y)")
            return out[0], out[1]

        def record() -> tuple[Body, Body]:
            both = record_body(
                pair, loop.name, [*avals, *row_avals], spec, of=loop.fn, names=names, refs=True
            )
            first, rows_out = both.spec.children()
            self.out_spec = with_float0(both.avals[first.num_leaves :], rows_out)
            outputs = both.graph.outputs[: first.num_leaves]
            return Body(with_inputs(both.graph, both.graph.inputs, outputs), first), both

        state, both = record()
        while len(state.avals) == len(avals):
            new = promoted_carry_types(avals, state.avals)
            if new == avals:
                break
            avals = new
            state, both = record()
        check_carry(loop, init, avals, state)
        self.name, self.refs = loop.name, refs_of([both])
        graph = with_refs(both, self.refs, len(avals), len(avals))
        self.avals = [*avals, *[r.type for r in self.refs]]
        self.outer = close([graph])
        self.arrange(graph)

    def arrange(self, graph: Graph) -> None:
        """Make unchanged carried values constants, and remove outputs that are input rows."""
        c, n = len(self.outer), len(self.avals)
        comes = forwarded_inputs(graph)
        self.fixed = [comes[i] == c + i for i in range(n)]
        self.through = [f - c - n if f is not None and f >= c + n else None for f in comes[n:]]
        moved = [i for i in range(n) if self.fixed[i]]
        stays = [i for i in range(n) if not self.fixed[i]]
        ins = list(graph.inputs)
        order = [
            *[c + i for i in moved],
            *range(c),
            *[c + i for i in stays],
            *range(c + n, len(ins)),
        ]
        output_positions = [n + i for i, t in enumerate(self.through) if t is None]
        outputs = [graph.outputs[i] for i in (*stays, *output_positions)]
        self.body = with_inputs(graph, [ins[i] for i in order], outputs)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The recorded program."""
        return (self.body,)

    def call(
        self, carry: list[Node], rows: list[Node], length: int, reverse: bool, unroll: int
    ) -> tuple[list[Node], list[Node]]:
        """Record the loop and return the final carry and the outputs."""
        m = len(carry)
        carry = [*carry, *ref_contents(self.refs, self.name)]
        carry = [cast_to(x, a) for x, a in zip(carry, self.avals, strict=True)]
        consts = [*select_flagged(self.fixed, carry), *self.outer]
        moving = [x for x, f in zip(carry, self.fixed, strict=True) if not f]
        params = {
            "jaxpr": self.body,
            "length": length,
            "reverse": reverse,
            "unroll": unroll,
            "num_consts": len(consts),
            "num_carry": len(moving),
        }
        rest = iter(call("scan", [*consts, *moving, *rows], params))
        final = [x if f else next(rest) for x, f in zip(carry, self.fixed, strict=True)]
        set_refs(self.refs, final[m:], self.name)
        return final[:m], [next(rest) if t is None else rows[t] for t in self.through]


def _check_rows(name: str, rows: Sequence[Aval]) -> None:
    """Refuse arrays that are sharded along the axis to loop over, as jax does on Explicit axes."""
    for a in rows:
        if keeps_sharding(a) and a.ndim and mesh_sharding(a).mesh.explicit_axes:
            spec = mesh_sharding(a).spec
            if spec and spec[0]:
                raise ValueError(
                    f"{name}: the first axis of xs must not be sharded; got {a.str_short()} with "
                    f"{spec}; use reshard, or loop inside shard_map"
                )


def _scan_length(rows: Sequence[Aval], length: Any) -> int:
    flat = [x for x in rows if x.ndim == 0]
    if flat:
        listed = ", ".join(str(x) for x in flat)
        raise ValueError(
            f"scan got value with no leading axis to scan over: {listed}; add one with x[None]"
        )
    lengths = [x.shape[0] for x in rows]
    if length is not None:
        node = getattr(length, "_node", None)
        length = int(length if node is None else concrete_value(node, "static", "scan (length)"))
        if length < 0:
            raise ValueError(f"scan: length must not be negative; got {length}; pass 0 or more")
        if any(n != length for n in lengths):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                f"{lengths}; leave length out, or slice xs"
            )
        return length
    if not lengths:
        raise ValueError(
            "scan got no values to scan over and `length` not provided: both are None; pass xs, or "
            "length="
        )
    if len(set(lengths)) > 1:
        listed = ", ".join(map(str, lengths))
        raise ValueError(
            f"scan got values with different leading axis sizes: {listed}; slice the longer ones"
        )
    return lengths[0]


def _unroll(unroll: Any, length: int) -> int:
    if type(unroll) is Array:
        unroll = concrete_value(unroll._node, "static", "scan (unroll)").item()
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    return unroll_steps("scan", unroll)


def _scan_in_python(
    f: Any, init: Any, rows: list[Node], spec: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    if length == 0:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is "
            "unknown."
        )
    carry, outputs = init, []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, values(spec, [row(x, i) for x in rows]))
        outputs.append(y)
    if reverse:
        outputs.reverse()

    def stacked(*values: Any) -> Any:
        return wrap(stack([as_node(v, "scan") for v in values]))

    return carry, map_arrays(stacked, *outputs)
