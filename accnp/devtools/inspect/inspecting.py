"""The function `inspect`: finds or makes the program and the plan of a function or an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp import engine
from accnp.api.jit.abstract_evaluation import aval_of, closed_jaxpr
from accnp.api.jit.jit import JitFunction, jit
from accnp.array_type import Array, is_traced
from accnp.compiler.fusion.describe import aval_text
from accnp.compiler.fusion.program import from_graph
from accnp.config import config
from accnp.devtools.inspect.inspection import Inspection
from accnp.engine.describe import bytes_text, graph_of
from accnp.engine.plan import make_plan
from accnp.errors import api_boundary
from accnp.ir.graph import Graph
from accnp.ir.node import site_text
from accnp.runtime import device as devices
from accnp.runtime.stream import Task
from accnp.trace_fn import function_place

__all__ = ["inspect"]


@api_boundary
def inspect(target: Any, **options: Any) -> Any:
    """Show how a result is computed: graph, passes, plan, and the source of each kernel.

    Nothing is computed, and caches do not change.

    Parameters
    ----------
    target : callable or Array
        Function, jitted or not, or an array whose computation is pending.
    **options : object
        Arguments of `jit` for a function that is not jitted.

    Returns
    -------
    callable or Inspection
        For a function, a function of its arguments that returns the inspection.

    Raises
    ------
    TypeError
        If the target is neither a function nor an array, or options are given for an array or a
        jitted function.

    See Also
    --------
    explain : Call a function and explain where time and memory go.
    override : Replace a kernel.
    make_jaxpr : Program of a function as a jaxpr.

    Examples
    --------
    >>> import accnp as jnp
    >>> i = jnp.inspect(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    >>> len(i.kernels), i.kernels[0].operations
    (1, ['sin', 'mul'])
    """
    if isinstance(target, Array):
        if options:
            raise TypeError(
                f"inspect: options are for functions; got {sorted(options)} with an array; "
                "leave them out"
            )
        return _of_array(target)
    if not callable(target):
        raise TypeError(
            f"inspect: target must be a function or an array; got {target!r:.60}; "
            "pass jnp.asarray(...) or a function"
        )
    if isinstance(target, JitFunction):
        if options:
            raise TypeError(
                f"inspect: the function is jitted already; got {sorted(options)}; give these to jit"
            )
        return _make_inspector(target, target)
    return _make_inspector(target, jit(target, **options))


def _make_inspector(target: Callable[..., Any], function: JitFunction) -> Callable[..., Inspection]:
    @api_boundary
    def look(*args: Any, **kwargs: Any) -> Inspection:
        return _of_call(function, args, kwargs)

    look.__name__ = f"inspect({function_place(target)[0]})"
    look.__doc__ = "Return the Inspection of a call with these arguments."
    return look


def _of_call(function: JitFunction, args: tuple, kwargs: dict[str, Any]) -> Inspection:
    call = function._split(args, kwargs)
    avals = [aval_of(x, function._name) for x in call.leaves]
    entry = function._cache.get((call.spec, tuple(avals), call.static_keys(), config.key))
    known = entry is not None
    if entry is None:
        entry = function._trace(call, avals)
    name, file, line = function_place(function._fun)
    arguments = [f"{n}: {aval_text(a)}" for n, a in zip(call.names(), avals, strict=True)]
    arguments += [
        f"{function._parameter(p) if isinstance(p, int) else p}={v!r} (static)"
        for p, _, v in call.static
    ]
    title = f"{name}({', '.join(arguments)})"
    status = f"{file}:{line}; " if file else ""
    if known:
        status += "this signature is in the jit cache"
    else:
        status += "this signature is not in the jit cache (inspect does not add it)"
    device = None
    if devices.gpu_possible:
        arrays = [x._node for x in call.leaves if isinstance(x, Array)]
        device = engine.computing_device(entry.placed, arrays)
    plan = entry.plan if device is None else entry.plans.get(device)
    if plan is not None and plan.program is not None:
        program = plan.program
    else:
        program, _ = from_graph(entry.graph)
        fastmath = function._options.fastmath or config.fastmath
        plan = make_plan(program, fastmath, device=device, fixed=True)
    return Inspection(title, status).fill(entry.graph, closed_jaxpr(entry.graph), program, plan)


def _of_array(x: Array) -> Inspection:
    node = x._node
    what = f"Array {aval_text(node.aval)}"
    if x.is_deleted():
        return Inspection(what, "deleted: its buffer was donated or released")
    if is_traced(node):
        raise TypeError(
            f"inspect: the array is being traced, so there is nothing pending; got {x!r}; "
            "inspect the function instead"
        )
    place = f", last operation {node.op.name} at {site_text(node)}" if node.site is not None else ""
    if node.value is not None:
        value = node.value
        if isinstance(value, Task) and not value.done():
            state = "in flight: its kernels are running on the device's stream"
        else:
            state = f"computed: {bytes_text(node.aval.nbytes)} in memory; "
            state += "its graph was dropped when it was computed"
        return Inspection(what, state + place)
    if node.op.kind == "leaf":
        return Inspection(
            what, f"a scalar of value {node.params.get('value')!r}; nothing is pending"
        )
    order, leaves, outputs, lost, fixed, existing = engine.pending(node)
    graph: Graph = graph_of(outputs, order, leaves)
    program, _ = from_graph(graph, {id(x) for x in fixed})
    device = engine.computing_device([node], leaves) if devices.gpu_possible else None
    plan = engine.plan_of_pending(program, lost, device, bool(fixed))
    n_others = len(outputs) - 1
    status = f"pending{place}"
    if n_others:
        are = "value is" if n_others == 1 else "values are"
        status += f"; {n_others} more {are} referenced elsewhere and stored with it"
    status += (
        "; a plan of this structure is cached"
        if existing is not None
        else "; no plan of this structure is cached yet"
    )
    jaxpr = closed_jaxpr(graph)
    return Inspection(what, status).fill(graph, jaxpr, program, plan, existing)
