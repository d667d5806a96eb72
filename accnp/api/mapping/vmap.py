"""`vmap`: traces a function for one example and records its ops for a batch.

`Mapping` flattens the arguments, checks the axes, traces the function on avals without the mapped
axis, and applies the batching rules of the recorded ops. `pmap` extends it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp import dtypes, errors
from accnp.api.arguments.convert import as_node, is_host_value, wrap
from accnp.api.tracing.argument_names import leaf_paths, positional_argument_names
from accnp.api.tracing.bodies import Body, Reference, ref_contents, set_refs, with_refs
from accnp.array_type import Array
from accnp.config import config
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, row_aval
from accnp.ir.graph import Graph
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node, const
from accnp.ir.op import o
from accnp.ir.trace import Deleted, state
from accnp.key_array import PRNGKeyArray
from accnp.lazy_imports import imported
from accnp.primitives.control import take_wholes
from accnp.pytree import PyTree, PyTreeDef, broadcast_prefix, tree_flatten, tree_structure
from accnp.trace_fn import describe, trace, wraps
from accnp.transforms.axes import bind
from accnp.transforms.batch import batched_in_place, with_batch_axis
from accnp.transforms.tools import TOOLS, Tools

__all__ = ["Mapping", "check_axes", "vmap"]

P = ParamSpec("P")
R = TypeVar("R")


def _is_none(x: Any) -> bool:
    return x is None


def _is_key(x: Any) -> bool:
    return type(x) is PRNGKeyArray


def _convert_like(x: Any, node: Node) -> Any:
    """Convert a node to the type of `x`: random keys or an array."""
    return x._with_words(node) if _is_key(x) else wrap(node)


_LEAF = tree_structure(0)


def _flatten(tree: Any) -> tuple[list[Any], PyTreeDef]:
    """Return leaves and structure; typed random keys are leaves, with their visible rank."""
    return ([tree], _LEAF) if type(tree) is Array else tree_flatten(tree)


def move_axis(x: Node, source: int, target: int) -> Node:
    """Move one axis of a node."""
    if source == target:
        return x
    order = [d for d in range(x.aval.ndim) if d != source]
    order.insert(target, source)
    return o.transpose(x, permutation=tuple(order))


# --- in_axes and out_axes ---


def check_axes(transform: str, in_axes: Any, out_axes: Any) -> None:
    """Check the form of `in_axes` and `out_axes`, before arguments are known.

    Raises:
        TypeError: they contain anything except integers and None.
    """
    if in_axes is not None and type(in_axes) not in (int, tuple, list):
        raise TypeError(
            f"{transform} in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes!r}; pass one of these"
        )
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if any(type(leaf) is not int for leaf in tree_flatten(axes)[0]):
            raise TypeError(
                f"{transform} {name} must be an int, None, or (nested) container with those types "
                f"as leaves, but got {axes!r}; pass integers"
            )


def _broadcast(transform: str, what: str, axes: Any, tree: Any, structure: PyTreeDef) -> list[Any]:
    """Return one axis for each leaf of a tree of which `axes` is a prefix."""
    if axes is None or type(axes) is int:
        return [axes] * structure.num_leaves
    try:
        return broadcast_prefix(axes, tree, _is_none, f"{transform} {what}")
    except ValueError as error:
        raise ValueError(
            f"{transform} {what.partition('[')[0]} specification must be a tree prefix of the "
            f"corresponding value; got {axes} for {structure} ({error}); pass one axis for "
            "the whole, or a tree of the same structure"
        ) from None


class _Leaf:
    """A mapped leaf of the arguments: its node, its axis and its name."""

    __slots__ = ("argument", "axis", "key", "name", "node", "place")

    def __init__(self, transform: str, value: Any, axis: int, name: str, place: int) -> None:
        self.name = name
        self.place = place
        self.argument = value
        self.key = _is_key(value)
        if self.key:
            value = value._base
        if isinstance(value, Reference):
            value = wrap(ref_contents([value], transform)[0])
        try:
            deleted = type(value) is Array and isinstance(value._node.trace, Deleted)
            self.node = take_wholes([value._node if deleted else as_node(value, transform)])[0]
        except TypeError:
            raise errors.not_an_array_error(transform, name, value) from None
        # The words of a key are a hidden trailing axis.
        rank = self.node.aval.ndim - self.key
        if not -rank <= axis < rank:
            need = axis + 1 if axis >= 0 else -axis
            raise ValueError(
                f"{transform} was requested to map its argument along axis {axis}, which implies "
                f"that its rank should be at least {need}, but is only {rank} (its shape is "
                f"{self.node.aval.shape[:rank]}); it is {name}; change in_axes, or add axes"
            )
        self.axis = axis % rank

    @property
    def size(self) -> int:
        return self.node.aval.shape[self.axis]

    def value(self, example: Node) -> Any:
        """Return the value that the function gets for one example."""
        if isinstance(self.argument, Reference):
            return self.argument.here(wrap(example))
        if isinstance(self.node.trace, Deleted):  # raises when used, as outside of vmap
            deleted = const(self.node.value, example.aval)
            deleted.trace = self.node.trace
            return wrap(deleted)
        return _convert_like(self.argument, example)

    def __str__(self) -> str:
        a = self.node.aval
        dims = ",".join(map(str, a.shape[: a.ndim - self.key]))
        dtype = self.argument.dtype if self.key else a.dtype.name
        return f"axis {self.axis} of argument {self.name} of type {dtype}[{dims}]"


def _get_content(x: Any) -> Any:
    """Return what an argument holds: the node of an array, the words of keys."""
    return x._base if isinstance(x, PRNGKeyArray) else x._node if type(x) is Array else x


def _handed_through(result: Any, x: Node, leaf: _Leaf | None, axis: int | None) -> Any:
    """Return the final value of a result that comes from outside: a mapped argument, or a value
    that all examples share; None if the function computed it."""
    if axis is None:
        shared = type(result) is Array and result._node is x
        return result if shared or is_host_value(result) else None
    if leaf is None or _is_key(result) != leaf.key:
        return None
    argument = leaf.argument
    if isinstance(argument, np.ndarray):
        return np.moveaxis(argument, leaf.axis, axis) if is_host_value(argument) else None
    at_place = isinstance(argument, Array) and axis == leaf.axis
    return argument if at_place else None


def _common_size(transform: str, leaves: Sequence[_Leaf], axis_size: int | None) -> int:
    """Return the length of the mapped axes; raise if they differ."""
    size = axis_size if axis_size is not None else leaves[0].size if leaves else None
    if size is None:
        raise ValueError(
            f"{transform} must have at least one non-None value in in_axes, its wrapped function "
            "must be passed at least one argument containing an array, or axis_size must be "
            "specified; got none of these; map an axis of one argument, or pass axis_size"
        )
    for leaf in leaves:
        if leaf.size != size:
            break
    else:
        return size
    sizes: dict[int, list[str]] = {}
    if axis_size is not None:
        sizes[axis_size] = ["the `axis_size` argument"]
    for leaf in leaves:
        sizes.setdefault(leaf.size, []).append(str(leaf))
    lines = ";\n".join(
        f"  * {'one axis' if len(who) == 1 else f'{len(who)} axes'} had size {n}: {', '.join(who)}"
        for n, who in sizes.items()
    )
    raise ValueError(
        f"{transform} got inconsistent sizes for array axes to be mapped:\n{lines};\n"
        "map other axes, or slice the arrays"
    )


class _Arguments:
    """The arguments of a call: leaves, structures (positional ones first), and mapped leaves."""

    __slots__ = ("every", "keywords", "mapped", "structures")

    def __init__(
        self,
        every: list[Any],
        structures: list[PyTreeDef],
        keywords: tuple[str, ...],
        mapped: list[_Leaf],
    ) -> None:
        self.every = every
        self.structures = structures
        self.keywords = keywords
        self.mapped = mapped

    def for_one(self, examples: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with examples in place of mapped leaves.

        Other leaves are passed on unchanged; they need not be arrays.
        """
        leaves = list(self.every)
        for leaf, x in zip(self.mapped, examples, strict=True):
            leaves[leaf.place] = x
        values, at = [], 0
        for structure in self.structures:
            values.append(structure.unflatten(leaves[at : at + structure.num_leaves]))
            at += structure.num_leaves
        split = len(values) - len(self.keywords)
        return values[:split], dict(zip(self.keywords, values[split:], strict=True))


# --- one call ---


class Mapping:
    """How a function is mapped: the axes of arguments and results, and the axis name.

    Attributes:
        transform: the name of the public function, for messages.
        fun: a function of one example.
        in_axes: a tree prefix of the tuple of positional arguments; keyword arguments are mapped
            along their leading axis.
        out_axes: a tree prefix of the result.
        axis_name: bound while the function is traced, or None.
        axis_size: the length of the axis, or None.
        first: if set, None in `out_axes` selects the result of the first example; otherwise, the
            result must not depend on the example.
    """

    __slots__ = ("axis_name", "axis_size", "first", "fun", "in_axes", "out_axes", "transform")

    def __init__(
        self,
        transform: str,
        fun: Callable[..., Any],
        in_axes: Any,
        out_axes: Any,
        axis_name: Any,
        axis_size: int | None,
        first: bool = False,
    ) -> None:
        if not callable(fun):
            raise TypeError(f"vmap: Expected a callable value, got {fun!r}; pass a function")
        check_axes(transform, in_axes, out_axes)
        self.transform = transform
        self.fun = fun
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.out_axes = out_axes
        self.axis_name = axis_name
        self.axis_size = axis_size
        self.first = first

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the function for all examples and return the results."""
        arguments = self._arguments(args, kwargs)
        mapped = arguments.mapped
        size = _common_size(self.transform, mapped, self.axis_size)
        xs = [move_axis(leaf.node, leaf.axis, 0) for leaf in mapped]
        avals = [self.example(x.aval) for x in xs]
        out: Any = None
        out_leaves: list[Any] = []
        structure = _LEAF
        through: list[_Leaf | None] = []
        captures: dict[int, Any] = {}
        boxes = [leaf for leaf in mapped if isinstance(leaf.argument, Reference)]

        def one(examples: list[Node]) -> list[Node]:
            nonlocal out, out_leaves, structure
            assert state.abstract is not None
            state.abstract.captures = captures
            values = [leaf.value(x) for leaf, x in zip(mapped, examples, strict=True)]
            places = {
                id(x): (leaf, _get_content(x)) for x, leaf in zip(values, mapped, strict=True)
            }
            some, more = arguments.for_one(values)
            out = self.fun(*some, **more)
            out_leaves, structure = _flatten(out)
            outs = [self._result_node(x, i, out, structure) for i, x in enumerate(out_leaves)]
            for x in out_leaves:  # an item assignment may have changed an argument
                leaf, content = places.get(id(x), (None, None))
                through.append(leaf if leaf is not None and _get_content(x) is content else None)
            if config.check_tracer_leaks or state.abstract.rebound:  # drop the handles of this call
                out_leaves = [wrap(x._node) if type(x) is Array else x for x in out_leaves]
                out = structure.unflatten(out_leaves)
            inner = [x for x in values if isinstance(x, Reference)]
            return [*outs, *ref_contents(inner, self.transform)]

        names = [leaf.name for leaf in mapped]
        with bind(self.axis_name, self.axis(size)):
            graph = trace(one, avals, of=self.fun, transform=self.transform, names=names)
        graph.keep_calls()
        if config.check_tracer_leaks and graph.trace is not None:
            imported("accnp.leaks").check(graph.trace, graph.trace.info, out_leaves)
        refs = [c.ref for c in captures.values()]
        flags = [True] * len(xs)
        if refs:
            graph = with_refs(Body(graph, structure, list(captures.values())), refs)
            xs += ref_contents(refs, self.transform)
            flags += [False] * len(refs)
        pairs = self.run(graph, xs, flags, size)
        if boxes or refs:
            self._store_contents(boxes, refs, pairs[len(out_leaves) :], size)
            pairs = pairs[: len(out_leaves)]
        axes = _broadcast(self.transform, "out_axes", self.out_axes, out, structure)
        outs = []
        for i, (x, batched) in enumerate(pairs):
            axis = axes[i]
            if axis is not None:
                axis = self._result_axis(x.aval.ndim + (not batched) - _is_key(out_leaves[i]), axis)
            elif batched and not self.first:
                path = leaf_paths(out, structure)[i]
                raise ValueError(
                    f"at {self.transform} out_axes{path}, got axis spec None but output was "
                    f"batched: a value of shape {x.aval.shape[1:]} depends on the mapped "
                    "axis; pass the position of the axis"
                )
            value = None if self.first else _handed_through(out_leaves[i], x, through[i], axis)
            if value is not None:
                outs.append(value)
                continue
            x = _move_batch_axis(x, batched, size, axis)
            float0 = x.aval.dtype == dtypes.float0
            outs.append(
                np.zeros(x.aval.shape, dtypes.float0) if float0 else _convert_like(out_leaves[i], x)
            )
        return structure.unflatten(outs)

    def _store_contents(
        self, boxes: Sequence[_Leaf], refs: Sequence[Any], results: Sequence[Any], size: int
    ) -> None:
        """Store the new contents that the examples computed in references."""
        for leaf, (x, batched) in zip(boxes, results, strict=False):
            set_refs(
                [leaf.argument],
                [move_axis(with_batch_axis(x, batched, size), 0, leaf.axis)],
                "vmap",
            )
        for ref, (x, batched) in zip(refs, results[len(boxes) :], strict=True):
            if batched:
                raise ValueError(
                    f"{self.transform}: values that differ between examples cannot be written to a "
                    f"shared reference; got {ref.aval!r}; map the reference as well, as an "
                    "argument"
                )
            set_refs([ref], [x], self.transform)

    def axis(self, size: int) -> int | MeshAxis:
        """Return what the name is bound to: the length, or a mesh axis over processes."""
        return size

    def example(self, aval: Aval) -> Aval:
        """Return the type of one example of an argument whose mapped axis is the first."""
        return row_aval(aval)

    def run(
        self, graph: Graph, xs: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Sequence[tuple[Node, bool]]:
        """Record the program of one example for all examples.

        Operands with a flag have a leading batch axis. Returns each result, and whether it has one.
        """
        tools = TOOLS if self.axis_name is None else Tools(self.axis_name)
        return batched_in_place(graph, xs, flags, size, tools)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Arguments:
        transform, in_axes = self.transform, self.in_axes
        whole = not isinstance(in_axes, tuple)
        if not whole and len(in_axes) != len(args):
            raise ValueError(
                f"{transform} in_axes must be an int, None, or a tuple of entries corresponding to "
                "the positional arguments passed to the function, but got "
                f"len(in_axes)={len(in_axes)}, len(args)={len(args)}; pass one for each"
            )
        every: list[Any] = []
        structures: list[PyTreeDef] = []
        axes: list[Any] = []
        for i, value in enumerate(args):
            leaves, structure = _flatten(value)
            axis = in_axes if whole else in_axes[i]
            axes += _broadcast(transform, f"in_axes[{i}]", axis, value, structure)
            every += leaves
            structures.append(structure)
        names = positional_argument_names(self.fun, args, structures)
        for name, value in kwargs.items():
            leaves, structure = _flatten(value)
            axes += [0] * len(leaves)
            names += [name + path for path in leaf_paths(value, structure)]
            every += leaves
            structures.append(structure)
        mapped = [
            _Leaf(transform, x, axis, name, place)
            for place, (x, axis, name) in enumerate(zip(every, axes, names, strict=True))
            if axis is not None
        ]
        return _Arguments(every, structures, tuple(kwargs), mapped)

    def _result_node(self, x: Any, i: int, out: Any, structure: PyTreeDef) -> Node:
        try:
            return as_node(x._base if _is_key(x) else x, self.transform)
        except TypeError:
            path = leaf_paths(out, structure)[i]
            raise TypeError(
                f"{self.transform}: the function returned a value of type {type(x)}"
                f"{f' at output component {path}' if path else ''}, which is not a valid JAX "
                f"type; got {x!r}; return arrays, numbers, None, and containers of them"
            ) from None

    def _result_axis(self, rank: int, axis: int) -> int:
        """Return the nonnegative position of the mapped axis in a result of this rank."""
        if not -rank <= axis < rank:
            raise ValueError(
                f"{self.transform} out_axes: axis {axis} is out of bounds for array of dimension "
                f"{rank}; got {self.out_axes}; pass an axis of the result"
            )
        return axis % rank


def _move_batch_axis(x: Node, batched: bool, size: int, axis: int | None) -> Node:
    """Move the leading axis of a result to `axis`; for None, return the first example."""
    if axis is not None:
        return move_axis(with_batch_axis(x, batched, size), 0, axis)
    if not batched:
        return x
    shape = x.aval.shape
    first = o.slice(
        x,
        start_indices=(0,) * len(shape),
        limit_indices=(1, *shape[1:]),
        strides=None,
    )
    return o.squeeze(first, dimensions=(0,))


@api_boundary
def vmap(
    fun: Callable[P, R],
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Vectorize a function: map it over an axis of its arguments.

    Parameters
    ----------
    fun : callable
        Function of one example, of pytrees of arrays.
    in_axes : int, None or pytree, optional
        Axis of each argument to map over, or None for an argument that all examples share. A tuple
        has one entry for each positional argument, which may be a pytree prefix of it. Keyword
        arguments are mapped over their first axis. The default is 0.
    out_axes : int, None or pytree, optional
        Position of the mapped axis in the results. None is for results that are the same for all
        examples. The default is 0.
    axis_name : hashable, optional
        Name of the mapped axis for collectives such as `lax.psum`.
    axis_size : int, optional
        Length of the mapped axis, needed if no argument is mapped.
    spmd_axis_name : hashable, optional
        Ignored; present for compatibility with JAX.
    sum_match : bool, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    callable
        Function of arguments with one more axis, which returns results with one more axis.

    Raises
    ------
    ValueError
        If the lengths of mapped axes differ, or an argument lacks the axis. The message names the
        arguments.
    TypeError
        If an argument or result is not an array, or an axis is not an integer.

    See Also
    --------
    numpy.vectorize : Map over axes that broadcast.
    pmap : Map over an axis that is distributed over devices.
    lax.map : Apply a function to one example after the other.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vmap(jnp.dot, (0, None))(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    mapping = Mapping("vmap", fun, in_axes, out_axes, axis_name, axis_size)

    @wraps(fun)
    @api_boundary
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        return mapping(args, kwargs)

    describe(vmapped, fun, "Vectorized version of {}. Takes further axes, over which it is mapped.")
    return vmapped
