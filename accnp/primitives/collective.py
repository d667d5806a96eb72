"""Collectives over named axes: psum, pmax, all_gather, reduce_scatter, all_to_all, ppermute, etc.

They are recorded inside a function that is mapped with the axis name. Over an axis of a
multi-process mesh (`ir/mesh_axis.py`) they stay in the program and exchange messages. Otherwise
batching replaces them by operations on the mapped axis. `axis_name` is a tuple of names, and
`axis_index_groups` a tuple of tuples of positions, or None. Because they have a parameter
`axis_name`, their batching rules receive `tools` and are called even if no operand is batched.
Reductions accept several names and lose one with each batching; the others accept one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.mesh_axis import MeshAxis, is_over_mesh
from accnp.ir.node import Node
from accnp.ir.op import OPS, Collective, Op, o
from accnp.primitives.index import GatherDimensionNumbers, GatherScatterMode
from accnp.primitives.kinds import broadcast_to, full, opaque, zeros_like_aval
from accnp.primitives.prefix import slice_axis

if TYPE_CHECKING:
    from accnp.ir.op_types import Jvp, Operand, Params
    from accnp.primitives.rule_types import Groups, Tools

__all__ = ["AXIS_INDEX", "install_messages", "part_of"]

_INT = np.dtype(np.int32)
_PLAIN = Collective()
# Implementation of a collective on all examples at once: (operand with the mapped axis in front,
# its length, parameters) -> (result, whether it has the mapped axis).
Meaning = Callable[[Node, int, "Params"], tuple[Node, bool]]


# Sends messages between processes; set by `runtime/mpi.py`. The arguments are the collective,
# the array, the axis of the mesh, and groups of positions along it.
_messages: list[Callable[[Op, np.ndarray, MeshAxis, Groups, Params], np.ndarray]] = []


def install_messages(send: Callable[..., np.ndarray]) -> None:
    """Set the function that sends messages."""
    _messages[:] = [send]


def _message(name: str) -> Callable[..., np.ndarray]:
    """Return the reference function of a message, which needs an axis of a multi-process mesh."""

    def run(
        *xs: np.ndarray,
        axis_name: tuple[Hashable, ...],
        axis_index_groups: Groups = None,
        **params: object,
    ) -> np.ndarray:
        axis = _require_mesh(axis_name)[0]
        return _messages[0](OPS[name], xs[0], axis, axis_index_groups, params)

    return run


def _gather_rows(x: np.ndarray, axis_name: tuple[Hashable, ...], groups: Groups) -> np.ndarray:
    return _message("mesh_gather")(x, axis_name=axis_name, axis_index_groups=groups, of="gather")


def _reduce(name: str, rows: np.ndarray) -> np.ndarray:
    reference = OPS[name].numpy
    assert reference is not None
    return reference(rows, axes=(0,))


def _reduce_rows(reduce: str) -> Callable[..., np.ndarray]:
    """Return the reference function of a reduction; programs contain its parts instead (see
    `compiler/fusion/collectives.py`)."""

    def run(
        x: np.ndarray,
        *,
        axis_name: tuple[Hashable, ...],
        axis_index_groups: Groups,
    ) -> np.ndarray:
        for axis in sorted(_require_mesh(axis_name), key=lambda a: -a.place):
            rows = _gather_rows(x, (axis,), axis_index_groups)
            x = _reduce(reduce, rows)
        return x

    return run


def _identity_numpy(
    x: np.ndarray,
    *,
    axis_name: tuple[Hashable, ...],
    axis_index_groups: Groups,
) -> np.ndarray:
    _require_mesh(axis_name)
    return x


def _require_mesh(names: tuple[Hashable, ...]) -> list[MeshAxis]:
    axes = [axis for axis in names if isinstance(axis, MeshAxis)]
    return axes if len(axes) == len(names) else _raise_unbound(axis_name=names)


def _raise_unbound(*_: object, axis_name: tuple[Hashable, ...], **__: object) -> NoReturn:
    raise NameError(
        f"collective: the axis is not bound; got {axis_name!r} (axis_name); use it inside "
        "vmap(..., axis_name=...) or pmap"
    )


def _identity(x: Aval, **_: object) -> Aval:
    return x


def _repeat(x: Node, size: int) -> Node:
    """Repeat a value for each example."""
    return broadcast_to(x, (size, *x.aval.shape))


def _move_axis(x: Node, source: int, target: int) -> Node:
    order = [d for d in range(x.aval.ndim) if d != source]
    order.insert(target, source)
    return o.transpose(x, permutation=tuple(order))


def _reshape(x: Node, shape: tuple[int, ...]) -> Node:
    return o.reshape(x, new_sizes=shape, dimensions=None)


def _merge_axes(x: Node, axis: int) -> Node:
    """Merge an axis with the next one."""
    s = x.aval.shape
    return _reshape(x, (*s[:axis], s[axis] * s[axis + 1], *s[axis + 2 :]))


def _split_axis(x: Node, axis: int, n: int) -> Node:
    """Split an axis into two, the first of length `n`."""
    s = x.aval.shape
    return _reshape(x, (*s[:axis], n, s[axis] // n, *s[axis + 1 :]))


# --- rows with known numbers ---


def _table(*, values: tuple[int, ...]) -> np.ndarray:
    return np.asarray(values, _INT).reshape(len(values), 1)


def _table_infer(*, values: tuple[int, ...]) -> Aval:
    return make_aval((len(values), 1), _INT)


opaque("table", infer=_table_infer, numpy=_table, jvp=())


def _take_rows(x: Node, rows: Sequence[int]) -> Node:
    """Return the rows with these numbers; -1 gives zeros."""
    n, *rest = x.aval.shape
    spans: list[tuple[int, int]] = []
    for r in rows:
        if r >= 0 and spans and spans[-1][1] == r:
            spans[-1] = (spans[-1][0], r + 1)
        else:
            spans.append((r, r + 1))
    if len(spans) > 2 or min(rows) < 0:
        dims = GatherDimensionNumbers(tuple(range(1, x.aval.ndim)), (0,), (0,))
        return o.gather(
            x,
            o.table(values=tuple([r if r >= 0 else n for r in rows])),
            dimension_numbers=dims,
            slice_sizes=(1, *rest),
            indices_are_sorted=False,
            unique_indices=False,
            mode=GatherScatterMode.FILL_OR_DROP,
            fill_value=0,
        )
    parts: list[
        Node
    ] = []  # few ranges, such as a shift: slices can be views, so they need no gather
    for start, stop in spans:
        first, last = (start, *[0] * len(rest)), (stop, *rest)
        parts.append(o.slice(x, start_indices=first, limit_indices=last, strides=None))
    return parts[0] if len(parts) == 1 else o.concatenate(*parts, dimension=0)


def _in_groups(meaning: Meaning, x: Node, params: Params) -> Node:
    groups = params["axis_index_groups"]
    parts: list[Node] = []
    for group in groups:
        y, mapped = meaning(_take_rows(x, group), len(group), params)
        parts.append(y if mapped else _repeat(y, len(group)))
    order = [i for group in groups for i in group]
    return _take_rows(
        o.concatenate(*parts, dimension=0), [order.index(i) for i in range(len(order))]
    )


# --- declaration ---


def _collective(
    name: str,
    infer: Callable[..., Aval],
    meaning: Meaning,
    transpose: Callable[[Node, Params], Node] | None,
    show: Callable[[Params], Params],
    dimensions: Sequence[str] = (),
    jvp: Jvp = None,
    for_equal: Callable[[Node, int], Node] | None = None,
    numpy: Callable[..., np.ndarray] = _raise_unbound,
    facts: Collective = _PLAIN,
    makes_nan: bool = False,
    user_name: str = "",
) -> Op:
    """Declare a collective.

    `dimensions` are the parameters that number axes of the operand. `for_equal` computes the
    result, without the mapped axis, for an operand that is equal in all examples.
    """

    def record_same(x: Node, params: Params) -> Node:
        return getattr(o, name)(x, **params)

    def batch(
        size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
    ) -> tuple[Node, bool]:
        x = xs[0]
        if tools.axis not in params["axis_name"]:
            if flags[0]:
                params = {**params, **{d: params[d] + 1 for d in dimensions}}
            return record_same(x, params), flags[0]
        groups = params["axis_index_groups"]
        if groups is None and params.get("axis_size", size) != size:
            raise ValueError(
                f"{name}: traced for another axis length; got {size} for axis {tools.axis!r}, "
                f"which had length {params['axis_size']} in the trace; trace the function again"
            )
        wide = x if flags[0] else _repeat(x, size)
        if groups is not None:
            y, mapped = _in_groups(meaning, wide, params), True
        elif for_equal is not None and not flags[0]:
            y, mapped = for_equal(x, size), False
        else:
            y, mapped = meaning(wide, size, params)
        rest = tuple([n for n in params["axis_name"] if n != tools.axis])
        return (record_same(y, {**params, "axis_name": rest}) if rest else y), mapped

    def move_tangent(t: Node, y: Node, x: Node, **params: object) -> Node:
        return record_same(t, params)

    def move_back(ct: Node, x: Operand, **params: object) -> tuple[Node]:
        assert transpose is not None
        return (transpose(ct, params),)

    return opaque(
        name,
        infer=infer,
        numpy=numpy,
        collective=facts,
        makes_nan=makes_nan,
        jvp=jvp or (move_tangent,),
        transpose=transpose and move_back,
        batch=batch,
        show=show,
        user_name=user_name,
    )


def _shown_params(params: Params) -> Params:
    (name,) = params["axis_name"]
    return dict(sorted({**params, "axis_name": name}.items()))


def _show_sized(params: Params) -> Params:
    return dict(sorted(params.items()))


# --- reductions ---


def _show_reduction(params: Params) -> Params:
    return {"axes": params["axis_name"], "axis_index_groups": params["axis_index_groups"]}


def _reduction(
    name: str,
    reduce: str,
    for_equal: Callable[[Node, int], Node],
    jvp: Jvp = None,
    transpose: Callable[[Node, Params], Node] | None = None,
    equal: bool = True,
    aligns: bool = True,
    makes_nan: bool = False,
    user_name: str = "",
) -> Op:
    def meaning(x: Node, size: int, params: Params) -> tuple[Node, bool]:
        return getattr(o, reduce)(x, axes=(0,)), False

    return _collective(
        name,
        _identity,
        meaning,
        transpose,
        _show_reduction,
        (),
        jvp,
        for_equal,
        _reduce_rows(reduce),
        Collective(equal, aligns=aligns, reduce=reduce),
        makes_nan=makes_nan,
        user_name=user_name,
    )


def _extreme_jvp(t: Node, y: Node, x: Node, **params: object) -> Node:
    """Share the derivative between the examples that reach the extreme value."""
    hit = o.convert_element_type(o.eq(x, y), new_dtype=x.aval.dtype, weak_type=False)
    # Between processes, the result and therefore its cotangent are equal in all processes.
    total = o.psum_invariant if is_over_mesh(params) and _is_whole_axis(params) else o.psum
    return o.div(total(o.mul(t, hit), **params), total(hit, **params))


def _is_whole_axis(params: Params) -> bool:
    return params["axis_index_groups"] is None


def _multiply_by_size(x: Node, size: int) -> Node:
    return o.mul(x, full((), size, x.aval.dtype, x.aval.weak_type))


_reduction(
    "psum", "reduce_sum", _multiply_by_size, transpose=lambda ct, params: o.psum(ct, **params),
    equal=False, makes_nan=True,
)  # fmt: skip
# A sum that is known to be equal in all parts, within `shard_map`. The cotangent of the result is
# the cotangent of each operand, and vice versa for `pvary`.
_reduction(
    "psum_invariant", "reduce_sum", _multiply_by_size, transpose=lambda ct, p: o.pvary(ct, **p),
    aligns=False, user_name="psum",
)  # fmt: skip
VARY = _collective(
    "pvary",
    _identity,
    lambda x, size, params: (x, True),
    lambda ct, params: o.psum_invariant(ct, **params),
    _show_reduction,
    for_equal=lambda x, size: x,
    numpy=_identity_numpy,
    facts=Collective(sends=False, aligns=False),
)
_reduction("pmax", "reduce_max", lambda x, size: x, (_extreme_jvp,))
_reduction("pmin", "reduce_min", lambda x, size: x, (_extreme_jvp,))

# --- all_gather and reduce_scatter, transposes of each other ---


def _gather_infer(
    x: Aval, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: object
) -> Aval:
    shape, at = list(x.shape), all_gather_dimension
    if tiled:
        shape[at] *= axis_size
    else:
        shape.insert(at, axis_size)
    return make_aval(tuple(shape), x.dtype, x.weak_type)


def _scatter_infer(
    x: Aval, *, scatter_dimension: int, axis_size: int, tiled: bool, **_: object
) -> Aval:
    shape, at = list(x.shape), scatter_dimension
    if tiled:
        shape[at] //= axis_size
    else:
        del shape[at]
    return make_aval(tuple(shape), x.dtype, x.weak_type)


def _gather(x: Node, size: int, params: Params) -> tuple[Node, bool]:
    at = params["all_gather_dimension"]
    y = _move_axis(x, 0, at)
    return (_merge_axes(y, at) if params["tiled"] else y), False


def _scatter(x: Node, size: int, params: Params) -> tuple[Node, bool]:
    y = o.reduce_sum(x, axes=(0,))
    at = params["scatter_dimension"]
    return _move_axis(_split_axis(y, at, size) if params["tiled"] else y, at, 0), True


def _rename_param(params: Params, old: str, new: str) -> Params:
    return {new if k == old else k: v for k, v in params.items()}


def _gather_whole(
    x: np.ndarray,
    *,
    axis_name: tuple[Hashable, ...],
    axis_index_groups: Groups,
    all_gather_dimension: int,
    axis_size: int,
    tiled: bool,
) -> np.ndarray:
    rows = np.moveaxis(_gather_rows(x, axis_name, axis_index_groups), 0, all_gather_dimension)
    params = {"all_gather_dimension": all_gather_dimension, "axis_size": axis_size}
    return rows.reshape(_gather_infer(make_aval(x.shape, x.dtype), tiled=tiled, **params).shape)


def _scatter_sum(
    x: np.ndarray,
    *,
    axis_name: tuple[Hashable, ...],
    axis_index_groups: Groups,
    scatter_dimension: int,
    axis_size: int,
    tiled: bool,
) -> np.ndarray:
    at = scatter_dimension
    rows = _exchange_parts(
        x,
        axis_name=axis_name,
        axis_index_groups=axis_index_groups,
        split_axis=at,
        concat_axis=0,
        axis_size=axis_size,
        tiled=tiled,
        whole=False,
    )
    total = _reduce("reduce_sum", rows)
    aval = make_aval(x.shape, x.dtype)
    shape = _scatter_infer(aval, scatter_dimension=at, axis_size=axis_size, tiled=tiled).shape
    return total.reshape(shape)


def _exchange_parts(
    x: np.ndarray,
    *,
    axis_name: tuple[Hashable, ...],
    axis_index_groups: Groups,
    split_axis: int,
    concat_axis: int,
    axis_size: int,
    tiled: bool,
    whole: bool = True,
) -> np.ndarray:
    shape, at = x.shape, split_axis
    if tiled:
        x = x.reshape(*shape[:at], axis_size, shape[at] // axis_size, *shape[at + 1 :])
    parts = np.ascontiguousarray(np.moveaxis(x, at, 0))
    names = {"axis_name": axis_name, "axis_index_groups": axis_index_groups, "of": "all_to_all"}
    rows = np.moveaxis(_message("mesh_exchange")(parts, **names), 0, concat_axis)
    if not whole:
        return rows
    params = {"split_axis": at, "concat_axis": concat_axis, "axis_size": axis_size}
    return rows.reshape(_exchange_infer(make_aval(shape, x.dtype), tiled=tiled, **params).shape)


_DIMENSIONS = "all_gather_dimension", "scatter_dimension"
ALL_GATHER = _collective(
    "all_gather",
    _gather_infer,
    _gather,
    lambda ct, params: o.reduce_scatter(ct, **_rename_param(params, *_DIMENSIONS)),
    _show_sized,
    _DIMENSIONS[:1],
    numpy=_gather_whole,
)


def part_of(x: Node, d: int, axis: MeshAxis) -> Node:
    """Return this process's part of a value that is equal along an axis."""
    size = x.aval.shape[d] // axis.size
    x = o.pvary(x, axis_name=(axis,), axis_index_groups=None)
    return slice_axis(x, d, axis.here * size, (axis.here + 1) * size)


# Used with tiled=True to make a sharded array whole in each process. The result is equal in all
# processes, and so is its cotangent.
ALL_GATHER_INVARIANT = _collective(
    "all_gather_invariant",
    _gather_infer,
    _gather,
    lambda ct, params: part_of(ct, params["all_gather_dimension"], *params["axis_name"]),
    _show_sized,
    _DIMENSIONS[:1],
    numpy=_gather_whole,
    facts=Collective(equal=True),
    user_name="all_gather",
)
REDUCE_SCATTER = _collective(
    "reduce_scatter",
    _scatter_infer,
    _scatter,
    lambda ct, params: o.all_gather(ct, **_rename_param(params, *_DIMENSIONS[::-1])),
    _show_sized,
    _DIMENSIONS[1:],
    numpy=_scatter_sum,
)

# --- all_to_all ---


def _exchange_infer(
    x: Aval, *, split_axis: int, concat_axis: int, axis_size: int, tiled: bool, **_: object
) -> Aval:
    shape = list(x.shape)
    if tiled:
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
    else:
        del shape[split_axis]
        shape.insert(concat_axis, axis_size)
    return make_aval(tuple(shape), x.dtype, x.weak_type)


def _exchange(x: Node, size: int, params: Params) -> tuple[Node, bool]:
    """Make the split axis the mapped one, and move the mapped axis to where parts are joined."""
    at, to = params["split_axis"] + 1, params["concat_axis"] + 1
    y = _move_axis(_split_axis(x, at, size) if params["tiled"] else x, at, 0)  # piece, source, ...
    y = _move_axis(y, 1, to)
    return (_merge_axes(y, to) if params["tiled"] else y), True


def _exchange_back(ct: Node, params: Params) -> Node:
    back = {"split_axis": params["concat_axis"], "concat_axis": params["split_axis"]}
    return o.all_to_all(ct, **{**params, **back})


ALL_TO_ALL = _collective(
    "all_to_all",
    _exchange_infer,
    _exchange,
    _exchange_back,
    lambda p: _shown_params({k: v for k, v in p.items() if k != "axis_size"}),
    ("split_axis", "concat_axis"),
    numpy=_exchange_parts,
)

# --- ppermute ---


def _permute(x: Node, size: int, params: Params) -> tuple[Node, bool]:
    rows = [-1] * size
    for source, target in params["perm"]:
        rows[target] = source
    return _take_rows(x, rows), True


def _permute_back(ct: Node, params: Params) -> Node:
    return o.ppermute(ct, **{**params, "perm": tuple([(b, a) for a, b in params["perm"]])})


_collective(
    "ppermute",
    _identity,
    _permute,
    _permute_back,
    lambda p: {"axis_name": p["axis_name"], "perm": p["perm"]},
    numpy=_message("ppermute"),
    facts=Collective(message="permute"),
)

# --- pbroadcast ---


def _broadcast_rows(x: Node, size: int, params: Params) -> tuple[Node, bool]:
    row = _take_rows(x, [params["source"]])
    return o.squeeze(row, dimensions=(0,)), False


def _broadcast_transpose(ct: Node, params: Params) -> Node:
    names = {"axis_name": params["axis_name"]}
    total = o.psum(ct, **names, axis_index_groups=None)
    here = o.eq(o.axis_index(**names), full((), params["source"], _INT))
    return o.select_n(broadcast_to(here, ct.aval.shape, ()), zeros_like_aval(ct.aval), total)


_collective(
    "pbroadcast",
    _identity,
    _broadcast_rows,
    _broadcast_transpose,
    lambda p: {"axis_name": p["axis_name"][0], "source": p["source"]},
    for_equal=lambda x, size: x,
    numpy=_message("pbroadcast"),
    facts=Collective(equal=True, message="broadcast"),
)

# --- axis_index ---


def _index_batch(
    size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
) -> tuple[Node, bool]:
    if tools.axis not in params["axis_name"]:
        return o.axis_index(**params), False
    return o.iota(dtype=_INT, shape=(size,), dimension=0), True


def _index_infer(**_: object) -> Aval:
    return make_aval((), _INT)


def _index_numpy(*, axis_name: tuple[Hashable, ...]) -> np.ndarray:
    return np.array(_require_mesh(axis_name)[0].here, _INT)


AXIS_INDEX = opaque(
    "axis_index",
    infer=_index_infer,
    numpy=_index_numpy,
    jvp=(),
    batch=_index_batch,
    show=_shown_params,
    collective=Collective(sends=False),
)


# --- messages; reductions over mesh axes consist of them ---


def _bytes_for_all(size: int, n: int) -> int:
    return size * (n - 1)


def _bytes_for_each(size: int, n: int) -> int:
    return size // n * (n - 1)


def _bytes_for_one(size: int, n: int) -> int:
    return size


def _rows_of_group(
    x: Aval, *, axis_name: tuple[MeshAxis], axis_index_groups: Groups, of: str
) -> Aval:
    (axis,) = axis_name
    return make_aval((len(axis.members(axis_index_groups)), *x.shape), x.dtype, x.weak_type)


opaque(
    "mesh_gather",
    infer=_rows_of_group,
    numpy=_message("mesh_gather"),
    collective=Collective(sent=_bytes_for_all, message="gather"),
)
opaque(
    "mesh_exchange",
    infer=_identity,
    numpy=_message("mesh_exchange"),
    collective=Collective(sent=_bytes_for_each, message="exchange"),
)
opaque(
    "mesh_sum",
    infer=_identity,
    numpy=_message("mesh_sum"),
    collective=Collective(message="sum"),
)
opaque(
    "mesh_swap",  # between two processes
    infer=_identity,
    numpy=_message("mesh_swap"),
    collective=Collective(sent=_bytes_for_one, message="swap"),
)
