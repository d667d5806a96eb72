"""`shard_map`: apply a function to the part of each device, over a mesh.

It takes a function of parts, and specs that say how whole arrays are divided into them, and returns
a function of whole arrays. The devices of one process share memory and cores: the function is
traced once for one part and batched along each axis of the mesh, as nested `vmap`s would do, so
that one program computes all parts, and derivatives, `jit` and `vmap` see only ordinary operations.
If there are several processes, the program of one part is recorded unchanged: its collectives send
messages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.array_type import wrap
from accnp.errors import api_boundary
from accnp.ir.aval import make_aval
from accnp.ir.graph import Graph, evaluate
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.pytree import PyTree, PyTreeDef, broadcast_prefix, flatten_arrays
from accnp.sharding.device_placement import put_node
from accnp.sharding.meshes import AbstractMesh, AxisType, Mesh, mesh_in_use
from accnp.sharding.partition_specs import NamedSharding, PartitionSpec, axes_of
from accnp.sharding.process_shards import local_whole, refuse_to_close_over, shard_of, whole_of
from accnp.trace_fn import trace
from accnp.transforms.axes import bind, bound
from accnp.transforms.batch import batched_outputs, with_batch_axis
from accnp.transforms.tools import Tools
from accnp.transforms.varying import Varying, varying
from accnp.transforms.varying_results import differing_axes

__all__ = ["shard_map", "smap"]

Names = tuple[Hashable, ...]


class InferFromArgs:
    """Take the specs from the arguments."""

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


Infer = InferFromArgs()


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _specs(what: str, specs: Any, tree: Any) -> list[PartitionSpec]:
    try:
        leaf_specs = broadcast_prefix(specs, tree, _is_spec, f"shard_map {what}")
    except ValueError as error:
        raise ValueError(
            f"shard_map: {what} must be a tree prefix of the values; got {specs}: {error}; "
            "give one spec for each part"
        ) from None
    for spec in leaf_specs:
        if not _is_spec(spec):
            raise TypeError(
                f"shard_map: {what} must hold PartitionSpecs; got {spec!r}; use P(...), P() for "
                "what is not cut"
            )
    return [PartitionSpec() if s is None else s for s in leaf_specs]


class _Mapped:
    """A function of parts over the axes of a mesh."""

    def __init__(
        self, fun: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, names: Names,
        check: bool,
    ) -> None:  # fmt: skip
        self.fun, self.mesh, self.in_specs, self.out_specs = fun, mesh, in_specs, out_specs
        self.names = names
        self.check = check
        self.sizes: dict[Any, int] = {n: mesh.shape[n] for n in names}
        # Within another `shard_map`, operands are shards, whose types have no sharding.
        types = zip(mesh.axis_names, mesh.axis_types, strict=True)
        # Functions over some axes take operands of any sharding, as in jax.
        typed = state.varying is None and not bound() and len(names) == len(mesh.axis_names)
        self.explicit = {n for n, t in types if t is AxisType.Explicit and typed}
        # Over several processes: the mapped axes of the mesh, for collectives. Processes that
        # differ in their position on the others compute the same.
        self.axes: dict[Any, MeshAxis] = {}
        if isinstance(mesh, Mesh) and mesh.is_multi_process:
            self.axes = {n: mesh.axis_over_processes(n) for n in names}

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """Map the function over the parts of arguments."""
        leaves, structure = flatten_arrays(args)
        nodes = [as_node(x, "shard_map") for x in leaves]
        if self.in_specs is Infer:
            specs = [self._inferred_spec(x) for x in nodes]
        else:
            if not _is_spec(self.in_specs) and len(self.in_specs) != len(args):
                raise ValueError(
                    "shard_map: in_specs must have an entry for each argument; got "
                    f"{len(self.in_specs)} entries for {len(args)} arguments; "
                    "pass one spec for each"
                )
            own = self.in_specs
            specs = _specs("in_specs", tuple(own) if isinstance(own, list) else own, args)
        hidden = _count_hidden_axes(structure, nodes)
        if self.in_specs is not Infer and self.explicit:
            for i, (x, spec) in enumerate(zip(nodes, specs, strict=True)):
                self._check_spec(x, spec, i)
        if self.axes:
            return self._on_shards(structure, nodes, specs, hidden)
        pairs = zip(nodes, specs, hidden, strict=True)
        cut = [self._split_argument(x, s, i, h) for i, (x, s, h) in enumerate(pairs)]
        out: Any = None
        known = Varying(self.names) if self.check else None

        def one(parts: list[Node]) -> list[Node]:
            nonlocal out
            if known is not None:
                for x, (_, names) in zip(parts, cut, strict=True):
                    known.note(x, frozenset(names))
            out = self.fun(*structure.unflatten([wrap(x) for x in parts]))
            results = [as_node(x, "shard_map") for x in flatten_arrays(out)[0]]
            for x in Graph(parts, results).nodes:
                for operand in x.inputs:
                    refuse_to_close_over(operand)
            return results

        avals = []
        for x, names in cut:
            avals.append(make_aval(x.aval.shape[len(names) :], x.aval.dtype, x.aval.weak_type))
        with ExitStack() as stack:
            for name in self.names:
                stack.enter_context(bind(name, self.sizes[name]))
            stack.enter_context(varying(known))
            graph = trace(one, avals, of=self.fun, transform="shard_map")
        flags = [[n in names for n in self.names] for _, names in cut]
        results, axis_names = self._record_batched(graph, [x for x, _ in cut], flags)
        out_leaves, out_structure = flatten_arrays(out)
        out_specs = _specs("out_specs", self.out_specs, out)
        assert len(out_leaves) == len(results)
        for i, (spec, differ) in enumerate(
            zip(out_specs, self._varying_axes(graph, known), strict=True)
        ):
            used = {n for entry in spec for n in axes_of(entry)}
            self._same_along([n for n in self.names if n in differ], used, spec, i)
        whole = [
            wrap(self._join_result(x, names, spec, i, h))
            for i, (x, names, spec, h) in enumerate(
                zip(
                    results,
                    axis_names,
                    out_specs,
                    _count_hidden_axes(out_structure, results),
                    strict=True,
                )
            )
        ]
        return out_structure.unflatten(whole)

    def _on_shards(
        self, structure: PyTreeDef, nodes: list[Node], specs: list[Any], hidden: list[int]
    ) -> Any:
        """Record the function of one shard for the shards of this process, over several."""
        axes = tuple(self.axes.values())
        shards: list[Node] = []
        differing: list[frozenset[MeshAxis]] = []
        for i, (x, spec, h) in enumerate(zip(nodes, specs, hidden, strict=True)):
            entries = self._entries(spec, x.aval.ndim, f"argument {i}", h)
            self._parts(x.aval.shape, entries, spec, i)
            names = frozenset([self.axes[n] for entry in entries for n in entry])
            x = shard_of(x, NamedSharding(self.mesh, spec), x.aval.shape)
            missing = tuple([a for a in axes if a not in names])
            if not self.check and missing:
                x = o.pvary(x, axis_name=missing, axis_index_groups=None)
            shards.append(x)
            differing.append(names)
        out: Any = None
        known = Varying(axes, over_processes=True) if self.check else None

        def one(parts: list[Node]) -> list[Node]:
            nonlocal out
            if known is not None:
                known.level = state.abstract.level  # type: ignore[union-attr]
                for x, names in zip(parts, differing, strict=True):
                    known.note(x, names)
            out = self.fun(*structure.unflatten([wrap(x) for x in parts]))
            return [local_whole(as_node(x, "shard_map")) for x in flatten_arrays(out)[0]]

        with ExitStack() as stack:
            for name, axis in self.axes.items():
                stack.enter_context(bind(name, axis))
            stack.enter_context(varying(known))
            graph = trace(one, [x.aval for x in shards], of=self.fun, transform="shard_map")
        _, out_structure = flatten_arrays(out)
        out_specs = _specs("out_specs", self.out_specs, out)
        hidden = _count_hidden_axes(out_structure, graph.outputs)
        around = {}
        if not self.check:  # nothing says along which axes values differ
            outer = [x for x in graph.free() if x.trace is not None]
            around = {id(x): o.pvary(x, axis_name=axes, axis_index_groups=None) for x in outer}
        results = evaluate(graph, shards, around)
        certain = self._varying_axes(graph, known)
        whole = []
        for i, (x, spec, h) in enumerate(zip(results, out_specs, hidden, strict=True)):
            entries = self._entries(spec, x.aval.ndim, f"result {i}", h)
            used = {n for entry in entries for n in entry}
            unnamed = [a for a in axes if a.name not in used]
            if known is not None:
                self._same_along([a.name for a in axes if a in certain[i]], used, spec, i)
                differ = known.axes_of(graph.outputs[i])
                unnamed = [a for a in unnamed if a in differ]
            if unnamed:
                x = o.take_as_same(x, axis_name=tuple(unnamed))
            shape = list(x.aval.shape)
            for d, entry in enumerate(entries):
                shape[d] *= prod(self.sizes[n] for n in entry)
            whole.append(wrap(whole_of(x, NamedSharding(self.mesh, spec), tuple(shape))))
        return out_structure.unflatten(whole)

    def _varying_axes(self, graph: Graph, known: Varying | None) -> list[frozenset[Any]]:
        """The axes along which each result differs; none if that is not to be checked."""
        if known is None:
            return [frozenset()] * len(graph.outputs)
        return differing_axes(graph, [known.axes_of(x) for x in graph.inputs], known.every)

    def _same_along(self, differing: Sequence[Any], used: Any, spec: Any, i: int) -> None:
        """Refuse a result that differs along an axis that its spec does not name."""
        extra = [n for n in differing if n not in used]
        if extra and self.check:
            raise ValueError(
                f"shard_map: result {i} differs along the axes {extra} of the mesh, over which its "
                f"spec says that it is replicated; got out_specs {spec}; name them there, reduce "
                "it over them (lax.psum, lax.pmean), or pass check_vma=False to take the first"
            )

    def _check_spec(self, x: Node, spec: PartitionSpec, i: int) -> None:
        """Refuse an operand whose sharding along explicit axes of the mesh is another one."""
        expected, own = (self._explicit(s, x.aval.ndim) for s in (spec, self._inferred_spec(x)))
        if expected != own:
            raise ValueError(
                f"shard_map: in_specs passed to shard_map: {PartitionSpec(*expected)} does not "
                f"match the specs of the input: {PartitionSpec(*own)} for arg {i}: "
                f"{x.aval.str_short()}; leave out in_specs, or use jax.reshard on the argument"
            )

    def _explicit(self, spec: PartitionSpec, rank: int) -> list[Any]:
        """The explicit axes of the mesh that cut each dimension."""
        groups = [tuple([n for n in axes_of(e) if n in self.explicit]) for e in spec]
        groups += [()] * (rank - len(groups))
        return [None if not names else names[0] if len(names) == 1 else names for names in groups]

    def _inferred_spec(self, x: Node) -> PartitionSpec:
        sharding = getattr(x.aval.devices, "sharding", None)
        return sharding.spec if isinstance(sharding, NamedSharding) else PartitionSpec()

    # --- cutting and joining ---

    def _entries(
        self, spec: PartitionSpec, rank: int, what: str, hidden: int
    ) -> list[tuple[Any, ...]]:
        """The mesh axes along each dimension; of keys, the axis of words is hidden, and stays."""
        rank -= hidden
        if len(spec) > rank:
            raise ValueError(
                f"shard_map: {what} has rank {rank}, which is less than its spec has entries; got "
                f"{spec}; use P() for scalars"
            )
        entries = [axes_of(e) for e in spec] + [()] * (rank + hidden - len(spec))
        used = [n for entry in entries for n in entry]
        for n in used:
            if n not in self.sizes:
                raise ValueError(
                    f"shard_map: the spec of {what} names an axis over which it does not map; got "
                    f"{n!r} in {spec}; use one of {self.names}"
                )
            if used.count(n) > 1:
                raise ValueError(
                    f"shard_map: the spec of {what} names {n!r} twice; got {spec}; "
                    "name each axis once"
                )
        return entries

    def _parts(
        self, shape: Sequence[int], entries: Sequence[tuple[Any, ...]], spec: Any, i: int
    ) -> list[int]:
        """Into how many parts each dimension of an argument is cut."""
        counts = [prod(self.sizes[n] for n in entry) for entry in entries]
        for d, (n, k) in enumerate(zip(shape, counts, strict=True)):
            if n % k:
                raise ValueError(
                    f"shard_map: argument {i} of shape {tuple(shape)} is cut along axis {d} into "
                    f"{k} parts, which must divide its length; got {n} for {spec} over "
                    f"{dict(self.sizes)}; pad the array or change the mesh"
                )
        return counts

    def _split_argument(
        self, x: Node, spec: PartitionSpec, i: int, hidden: int
    ) -> tuple[Node, Names]:
        """Bring the parts of an argument in front, in the order of the mesh's axes."""
        x = put_node(x, None)
        shape: list[int] = []
        places: dict[Any, int] = {}
        rest: list[int] = []
        entries = self._entries(spec, x.aval.ndim, f"argument {i}", hidden)
        counts = self._parts(x.aval.shape, entries, spec, i)
        for d, entry in enumerate(entries):
            n, k = x.aval.shape[d], counts[d]
            for name in entry:
                places[name] = len(shape)
                shape.append(self.sizes[name])
            rest.append(len(shape))
            shape.append(n // k)
        names = tuple([n for n in self.names if n in places])
        if not names:
            return x, names
        x = o.reshape(x, new_sizes=tuple(shape), dimensions=None)
        return o.transpose(x, permutation=tuple([places[n] for n in names] + rest)), names

    def _record_batched(
        self, graph: Graph, xs: Sequence[Node], flags: Sequence[Sequence[bool]]
    ) -> tuple[Sequence[Node], list[Names]]:
        """Record the program of one part for all of them: the innermost axis first."""
        axis_names: list[Names] = [()] * len(graph.outputs)
        for level in range(len(self.names) - 1, -1, -1):
            name, size = self.names[level], self.sizes[self.names[level]]
            now = [f[level] for f in flags]
            pairs: list[tuple[Node, bool]] = []
            tools = Tools(name, of_shards=True)

            def step(
                leaves: Sequence[Node], graph: Graph = graph, now: Any = now, size: int = size,
                tools: Tools = tools, pairs: Any = pairs,
            ) -> list[Node]:  # fmt: skip
                pairs[:] = batched_outputs(graph, leaves, now, size, tools)
                return [x for x, _ in pairs]

            if level:
                avals = []
                for x, f in zip(xs, flags, strict=True):
                    outer = sum(f[:level])
                    a = x.aval
                    avals.append(make_aval(a.shape[outer:], a.dtype, a.weak_type))
                with ExitStack() as stack:
                    for n in self.names[:level]:
                        stack.enter_context(bind(n, self.sizes[n]))
                    graph = trace(step, avals, of=self.fun, transform="shard_map")
            else:
                results = step(xs)
            axis_names = [
                (name, *names) if flag else names
                for (_, flag), names in zip(pairs, axis_names, strict=True)
            ]
        if not self.names:
            return batched_outputs(graph, xs, [False] * len(xs), 1, Tools(None)), axis_names  # type: ignore[return-value]
        return results, axis_names

    def _join_result(self, x: Node, names: Names, spec: PartitionSpec, i: int, hidden: int) -> Node:
        """Join the parts of a result, whose axes are in front, as its spec says."""
        rank = x.aval.ndim - len(names)
        entries = self._entries(spec, rank, f"result {i}", hidden)
        used = {n for entry in entries for n in entry}
        extra = [n for n in names if n not in used]
        self._same_along(names, used, spec, i)
        order = list(names)
        for n in extra:  # the part of the first device
            d = order.index(n)
            start = [0] * x.aval.ndim
            stop = list(x.aval.shape)
            stop[d] = 1
            x = o.slice(x, start_indices=tuple(start), limit_indices=tuple(stop), strides=None)
            x = o.squeeze(x, dimensions=(d,))
            order.remove(n)
        for n in [n for n in self.names if n in used and n not in order]:
            x = with_batch_axis(x, False, self.sizes[n])
            order.insert(0, n)
        at = len(order)
        permutation: list[int] = []
        shape: list[int] = []
        for d, entry in enumerate(entries):
            n = x.aval.shape[at + d]
            for name in entry:
                permutation.append(order.index(name))
                n *= self.sizes[name]
            permutation.append(at + d)
            shape.append(n)
        if permutation != list(range(len(permutation))):
            x = o.transpose(x, permutation=tuple(permutation))
        if tuple(shape) != x.aval.shape:
            x = o.reshape(x, new_sizes=tuple(shape), dimensions=None)
        if isinstance(self.mesh, Mesh):
            x = put_node(x, NamedSharding(self.mesh, spec).placed(x.aval.shape, "shard_map"))
        return x


def _count_hidden_axes(structure: PyTreeDef, nodes: Sequence[Node]) -> list[int]:
    """How many axes of each array users do not see: one of the words of keys."""
    avals = [x.aval for x in nodes]
    shown = structure.shown_leaves(avals)
    return [a.ndim - b.ndim for a, b in zip(avals, shown, strict=True)]


@api_boundary
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = Infer,
    mesh: Any = None,
    axis_names: Collection[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Map a function over the parts of arrays, one for each device of a mesh.

    Parameters
    ----------
    f : callable, optional
        Function of parts, of any dtype. It may use collectives such as `lax.psum` over the axes of
        the mesh, and is traced once. Without it, a decorator is returned.
    out_specs : PartitionSpec or pytree
        How the parts of the results are joined: a pytree prefix of specs.
    in_specs : PartitionSpec or pytree, optional
        How the arguments are divided. The default is their present layout, which along axes of
        the mesh of type Explicit is the only one that is accepted.
    mesh : Mesh, optional
        Devices to use. The default is the current mesh.
    axis_names : set of str, optional
        Axes of the mesh to map over. The default is all.
    check_vma : bool, optional
        Whether to reject results that differ along an axis that `out_specs` does not name, and to
        sum the cotangents of values that do not differ along an axis. If False, the part of the
        first device is taken, and derivatives inside `f` are those of one part. The default is
        True.

    Returns
    -------
    callable
        Function of whole arrays, or a decorator.

    Raises
    ------
    ValueError
        If an axis cannot be divided evenly, a spec names an unknown axis, or a result differs where
        it must not.

    See Also
    --------
    smap : Map over one axis of the mesh.
    pmap : Map over the first axis of the arguments.
    make_mesh : Make a mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> mesh = jnp.make_mesh((1,), ("x",))
    >>> x = jnp.device_put(jnp.ones(4), jnp.NamedSharding(mesh, jnp.P("x")))
    >>> total = lambda x: jnp.lax.psum(jnp.sum(x), "x")
    >>> jnp.shard_map(total, mesh=mesh, in_specs=jnp.P("x"), out_specs=jnp.P())(x)
    Array(4., dtype=float32)
    """
    if f is None:
        return lambda g: shard_map(
            g, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
            check_vma=check_vma,
        )  # fmt: skip
    if not callable(f):
        raise TypeError(f"shard_map: expected a function; got {f!r}; pass a function")
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            f"shard_map: mesh must be a Mesh or None; got {mesh!r}; make one with jax.make_mesh"
        )

    @functools.wraps(f)
    @api_boundary
    def mapped(*args: Any) -> Any:
        over = mesh if mesh is not None else mesh_in_use()
        if over is None or over.empty:
            raise ValueError(
                "shard_map: there is no mesh; got mesh=None; pass one, or use set_mesh"
            )
        unknown = set(axis_names) - set(over.axis_names)
        if unknown:
            raise ValueError(
                f"shard_map: axis_names must be axes of the mesh; got {sorted(map(str, unknown))} "
                f"for axes {over.axis_names}; use names of the mesh"
            )
        names = tuple([n for n in over.axis_names if not axis_names or n in axis_names])
        return _Mapped(f, over, in_specs, out_specs, names, check_vma)(args)

    return mapped


@api_boundary
def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: PyTree = Infer, out_axes: Any,
    axis_name: Hashable,
) -> Any:  # fmt: skip
    """Map a function over one axis of the current mesh, with the axes of `vmap`.

    Parameters
    ----------
    f : callable, optional
        Function of parts of arrays. Without it, a decorator is returned.
    in_axes : int, None or pytree, optional
        Axis along which each argument is divided, or None. The default is their present layout.
    out_axes : int, None or pytree
        Axis along which the parts of each result are joined, or None.
    axis_name : str
        Axis of the mesh to map over.

    Returns
    -------
    callable
        Function of whole arrays. Its results have the dtypes of those of `f`, and their joined
        shapes.

    Raises
    ------
    TypeError
        If `f` is not callable.
    ValueError
        If no mesh is in use, or it lacks the axis.

    See Also
    --------
    shard_map : Map over several axes of a mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.set_mesh(jnp.make_mesh((1,), ("x",), (jnp.sharding.AxisType.Auto,))):
    ...     jnp.smap(lambda x: x + 1, in_axes=0, out_axes=0, axis_name="x")(jnp.arange(2))
    Array([1, 2], dtype=int32)
    """

    def spec(axis: int | None) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def specs(axes: Any) -> Any:
        leaves, structure = flatten_arrays(axes, lambda a: a is None)
        return structure.unflatten([spec(a) for a in leaves])

    ins = in_axes if in_axes is Infer else specs(in_axes)
    return shard_map(f, in_specs=ins, out_specs=specs(out_axes), axis_names=frozenset({axis_name}))
