"""`pmap`: maps a function over devices, each of which gets a row of the arguments.

The devices of one process share memory and cores, so their programs are recorded as one, as by
`vmap`. With several processes, each process maps its own row, and collectives communicate between
processes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from accnp.api.jit.jit import JitFunction
from accnp.api.jit.static_arguments import Options
from accnp.api.mapping.vmap import Mapping, check_axes
from accnp.array_type import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import Graph, evaluate
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.pytree import PyTree, array_leaves, map_arrays
from accnp.runtime.device import Device, default_device, devices, process_index
from accnp.sharding.device_placement import put_node
from accnp.trace_fn import wraps

__all__ = ["pmap"]


class _Rows(Mapping):
    """The mapping of a function over devices."""

    __slots__ = ("devices",)

    def __init__(self, where: Sequence[Device], *args: Any) -> None:
        super().__init__("pmap", *args, first=True)
        self.devices = tuple(where)

    def example(self, aval: Aval) -> Aval:
        """Return the type of the row of one device."""
        return make_aval(aval.shape[1:], aval.dtype, aval.weak_type)

    def run(
        self, graph: Graph, xs: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Sequence[tuple[Node, bool]]:
        """Run the program of one device, including its collectives, on rows of the operands."""
        if self.over_processes:
            return self._run_own_row(graph, xs, flags)
        if size > len(self.devices):
            raise ValueError(
                f"pmap: every row of the mapped axis needs a separate device; got {size} rows "
                f"for {len(self.devices)} devices; map fewer rows, use vmap for the rest, or set "
                "ACCNP_NUM_CPU_DEVICES"
            )
        where = self.devices[:size]
        results = super().run(graph, xs, flags, size)
        return [(put_node(x, where), batched) for x, batched in results]

    @property
    def over_processes(self) -> bool:
        """Whether the devices belong to several processes."""
        return any(d.process_index != process_index() for d in self.devices)

    def axis(self, size: int) -> int | MeshAxis:
        """Return what the name is bound to: the length, or a mesh axis over processes."""
        if not self.over_processes:
            return size
        ranks = tuple([d.process_index for d in self.devices])
        if size != 1 or process_index() not in ranks:
            raise ValueError(
                "pmap: each process maps one row, for its device; got "
                f"{size} rows in process {process_index()}, for devices of processes {ranks}; "
                "pass the row of this process, with a first axis of length 1"
            )
        name = self.axis_name
        return MeshAxis(name, (name,), (len(ranks),), ranks, process_index())

    def _run_own_row(
        self, graph: Graph, xs: Sequence[Node], flags: Sequence[bool]
    ) -> Sequence[tuple[Node, bool]]:
        rows = []
        for x, flag in zip(xs, flags, strict=True):
            rows.append(o.squeeze(x, dimensions=(0,)) if flag else x)
        outputs = []
        for y in evaluate(graph, rows):
            outputs.append((o.reshape(y, new_sizes=(1, *y.aval.shape), dimensions=None), True))
        return outputs


class _Mapped(JitFunction):
    """Result of `pmap`: traced and planned once for each signature."""

    transform = "pmap"

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        places = {x.aval.devices for x in array_leaves((args, kwargs)) if type(x) is Array}
        if len(places) > 1:  # the rows are distributed again
            args, kwargs = _make_uncommitted((args, kwargs))
        return super()._call(args, kwargs)


def _make_uncommitted(tree: Any) -> Any:
    """Make the arrays of a tree uncommitted."""
    return map_arrays(lambda x: wrap(put_node(x._node, None)) if type(x) is Array else x, tree)


def _some_devices(where: Sequence[Device] | None, backend: str | None) -> Sequence[Device]:
    if where is None:
        return devices(backend or default_device().platform)
    if not where:
        raise ValueError("pmap: devices is empty; got none; pass one or more, or leave it out")
    available = devices(backend or getattr(where[0], "platform", None))
    if len(set(where)) != len(where):
        raise ValueError(f"pmap: a device was given twice; got {where}; pass each once")
    for d in where:
        if d not in available:
            raise ValueError(f"pmap: unknown device; got {d!r}; use some of {available}")
    return where


def _without_static(
    fun: Callable[..., Any], args: tuple[Any, ...], static: set[int]
) -> Callable[..., Any]:
    """Return a function of the other arguments, with their names for messages."""
    moving = [i for i in range(len(args)) if i not in static]

    def one(*dynamic: Any, **kwargs: Any) -> Any:
        whole = list(args)
        for i, x in zip(moving, dynamic, strict=True):
            whole[i] = x
        return fun(*whole, **kwargs)

    functools.update_wrapper(one, fun)
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return one
    parameters = [p for i, p in enumerate(signature.parameters.values()) if i not in static]
    one.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return one


@api_boundary
def pmap(
    fun: Callable[..., Any],
    axis_name: Hashable | None = None,
    *,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """Map a function over an axis of its arguments, distributed over several devices.

    Rows of the arguments are taken along a mapped axis as by `vmap`, and `fun` may use the same
    collectives over `axis_name`. The function is traced once for each signature, as by `jit`.

    Parameters
    ----------
    fun : callable
        Function of one row, of pytrees of arrays of any dtype.
    axis_name : hashable, optional
        Name of the mapped axis for collectives such as `lax.psum`.
    in_axes : int, None or pytree, optional
        Axis of each argument to map over, or None for an argument that all rows share; an int or a
        tuple of pytree prefixes. The default is 0.
    out_axes : int, None or pytree, optional
        Position of the mapped axis in the results. None takes the result of the first device. The
        default is 0.
    static_broadcasted_argnums : int or iterable of int, optional
        Positions of arguments that are passed to `fun` as Python values. They must be hashable;
        there is one trace for each value.
    devices : sequence of Device, optional
        Devices to use, all of one platform. The default is every device of the backend.
    backend : str, optional
        Name of a platform. The default is that of `devices`, or else the default backend.
    axis_size : int, optional
        Number of rows, needed if no argument is mapped.
    donate_argnums : int or iterable of int, optional
        Positions of arguments whose buffers may be reused for the results.

    Returns
    -------
    callable
        Function of arguments with one more axis. Its results lie on as many devices as there are
        rows (`Array.devices()`).

    Raises
    ------
    ValueError
        If there are more rows than devices, or the lengths of mapped axes differ.
    TypeError
        If `fun` is not callable.

    See Also
    --------
    vmap : Map a function on one device.
    shard_map : Map a function over the shards of arrays.

    Notes
    -----
    Arguments may lie on any device. Of several GPUs, the first one computes for all. Over several
    processes, each process passes the row for its device, and gets the row of the result.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = jnp.pmap(lambda x: x / jnp.lax.psum(x, "i"), axis_name="i")
    >>> f(jnp.array([5.0]))
    Array([1.], dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"pmap: Expected a callable value, got {fun!r}; pass a function")
    check_axes("pmap", in_axes, out_axes)
    options = Options(static_broadcasted_argnums, None, donate_argnums, None, False)
    if devices is not None or backend is not None:
        _some_devices(devices, backend)

    @wraps(fun)
    def rows(*args: Any, **kwargs: Any) -> Any:
        n = len(args)
        static = {i + n if i < 0 else i for i in options.static_numbers}
        if any(not 0 <= i < n for i in static):
            raise ValueError(
                "pmap: static_broadcasted_argnums must be positions of positional arguments; got "
                f"{options.static_numbers} for a call with {n}; pass them by position"
            )
        axes = in_axes
        if static and isinstance(axes, tuple | list) and len(axes) == n:
            axes = tuple([axis for i, axis in enumerate(axes) if i not in static])
        one = _without_static(fun, args, static) if static else fun
        where = _some_devices(devices, backend)
        mapping = _Rows(where, one, axes, out_axes, axis_name, axis_size)
        moving = tuple([a for i, a in enumerate(args) if i not in static])
        return mapping(_make_uncommitted(moving), _make_uncommitted(kwargs))

    return _Mapped(rows, options)
