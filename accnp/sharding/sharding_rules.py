"""How the result of an operation is sharded: the rules of JAX's Explicit meshes.

It takes an operation, the types of its operands, and the mesh axes that divide each dimension of
these. It returns a `ShardedExecution`: the required sharding of each operand, the resulting
sharding of each result, the parameters for shards, and the collective that completes the result. On
axes of type Explicit, ambiguity and messages that the program does not request are errors; on Auto
axes, operands are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from accnp.errors import ShardingTypeError
from accnp.ir.op import COMBINES, Op

__all__ = ["Case", "ShardedExecution", "execution_of", "unsharded_execution"]

Entry = tuple[Any, ...]
Entries = list[Entry]


@dataclass
class Case:
    """An operation on sharded operands."""

    op: Op
    avals: Sequence[Any]
    params: dict[str, Any]
    entries: list[Entries]
    sizes: dict[Any, int]
    explicit: bool
    out: Any  # the type of the result, or a tuple of them
    requested: Entries | None = None  # the mesh axes of the result, if `out_sharding` says them

    def count(self, entry: Entry) -> int:
        """Into how many parts an entry cuts a dimension."""
        return prod(self.sizes[n] for n in entry)

    def refuse(self, why: str) -> None:
        """Raise an error on Explicit axes; on others the operands are moved."""
        if self.explicit:
            operands = ", ".join(map(_sharding_text, self.avals, self.entries))
            raise ShardingTypeError(
                f"{self.op.name}: {why}; got operands {operands}; use reshard on an operand first"
            )

    def shard(self, shape: Sequence[int], entries: Entries) -> tuple[int, ...]:
        """The shape of a shard."""
        return tuple([n // self.count(e) for n, e in zip(shape, entries, strict=True)])


@dataclass
class ShardedExecution:
    """How an operation runs on shards."""

    ins: list[Entries]
    outs: list[Entries]
    params: dict[str, Any]
    combine: str = ""  # the collective that completes the results
    over: Entry = ()
    scatter: int | None = None  # the dimension of the result that this collective cuts
    final: Entries | None = None  # how the result is cut in the end, if it must be moved


def _sharding_text(aval: Any, entries: Entries) -> str:
    parts = []
    for n, entry in zip(aval.shape, entries, strict=True):
        parts.append(f"{n}@{','.join(map(str, entry))}" if entry else str(n))
    return f"{aval.dtype.name}[{','.join(parts)}]"


Rule = Callable[[Case], ShardedExecution]
_RULES: dict[str, Rule] = {}  # by `Op.sharding`


def execution_of(case: Case) -> ShardedExecution:
    """How an operation on sharded operands runs."""
    rule = _RULES.get(case.op.sharding) or _KINDS.get(case.op.kind)
    if rule is None:
        if not any([entry for entries in case.entries for entry in entries]):
            return unsharded_execution(case)  # nothing is cut
        case.refuse("there is no rule for how its result is sharded")
        return unsharded_execution(case)
    return rule(case)


def unsharded_execution(case: Case) -> ShardedExecution:
    """Return the execution in which every device has the whole of every operand."""
    outs = case.out if isinstance(case.out, tuple) else (case.out,)
    ins: list[Entries] = [[()] * a.ndim for a in case.avals]
    return ShardedExecution(ins, [[()] * a.ndim for a in outs], case.params)


def _rule(name: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        _RULES[name] = rule
        return rule

    return add


def _remove_repeated_axes(case: Case, entries: Entries) -> Entries:
    """Entries of a result, in which each axis cuts one dimension."""
    seen: set[Any] = set()
    remaining: Entries = []
    for entry in entries:
        if seen.intersection(entry):
            case.refuse(f"the result would be illegally sharded: {entries} names an axis twice")
            entry = tuple([n for n in entry if n not in seen])
        seen.update(entry)
        remaining.append(entry)
    return remaining


def _merge_operand_entries(
    case: Case, shape: Sequence[int], which: Sequence[int], skip: Any = ()
) -> Entries:
    """The entries of a result of this shape, from operands that have its dimensions."""
    merged_entries: Entries = [()] * len(shape)
    for d in range(len(shape)):
        if d in skip:
            continue
        for i in which:
            a, entry = case.avals[i], case.entries[i]
            if a.ndim == len(shape) and entry[d] and a.shape[d] == shape[d]:
                if merged_entries[d] and merged_entries[d] != entry[d]:
                    case.refuse("incompatible shardings for broadcasting")
                merged_entries[d] = merged_entries[d] or entry[d]
    return _remove_repeated_axes(case, merged_entries)


def _entries_before_broadcast(
    case: Case, i: int, entries: Entries, shape: Sequence[int]
) -> Entries:
    """How an operand is cut that is broadcast to a shape with these entries."""
    a = case.avals[i]
    if a.ndim != len(shape):
        return [()] * a.ndim
    return [e if n == m else () for e, n, m in zip(entries, a.shape, shape, strict=True)]


def _map(case: Case) -> ShardedExecution:
    shape = case.out.shape
    every = range(len(case.avals))
    entries = _merge_operand_entries(case, shape, every)
    ins = [_entries_before_broadcast(case, i, entries, shape) for i in every]
    return ShardedExecution(ins, [entries], case.params)


def _reduce(case: Case) -> ShardedExecution:
    (own,) = case.entries
    axes = case.params["axes"]
    over = tuple([n for d in axes for n in own[d]])
    combine = COMBINES[case.op.combine] if case.op.combine else None
    is_bool = case.avals[0].dtype.kind == "b"
    collective = (
        "" if combine is None else combine.collective_of_bools if is_bool else combine.collective
    )
    remaining = [e for d, e in enumerate(own) if d not in axes]
    if over and not collective:  # products
        own = [() if d in axes else e for d, e in enumerate(own)]
        over = ()
    return ShardedExecution([own], [remaining], case.params, collective if over else "", over)


_KINDS: dict[str, Rule] = {"map": _map, "reduce": _reduce}


@_rule("broadcast")
def _broadcast(case: Case) -> ShardedExecution:
    (own,), (a,) = case.entries, case.avals
    shape, dims = case.params["shape"], case.params["broadcast_dimensions"]
    out: Entries = [()] * len(shape)
    for d, target in enumerate(dims):
        if a.shape[d] == shape[target]:
            out[target] = own[d]
    ins = [out[t] if a.shape[d] == shape[t] else () for d, t in enumerate(dims)]
    return ShardedExecution([ins], [out], {**case.params, "shape": case.shard(shape, out)})


@_rule("transpose")
def _transpose(case: Case) -> ShardedExecution:
    (own,) = case.entries
    return ShardedExecution([own], [[own[d] for d in case.params["permutation"]]], case.params)


@_rule("squeeze")
def _squeeze(case: Case) -> ShardedExecution:
    (own,) = case.entries
    gone = case.params["dimensions"]
    own = [() if d in gone else e for d, e in enumerate(own)]
    return ShardedExecution([own], [[e for d, e in enumerate(own) if d not in gone]], case.params)


@_rule("reshape")
def _reshape(case: Case) -> ShardedExecution:
    (own,), (a,) = case.entries, case.avals
    new = tuple(case.params["new_sizes"])
    ins, out = list(own), [()] * len(new)
    final: Entries = [()] * len(new)
    for olds, news in _groups(a.shape, new):
        _reshape_group(case, olds, news, ins, out, final)
    moved = final if final != out else None
    return ShardedExecution(
        [ins], [out], {**case.params, "new_sizes": case.shard(new, out)}, final=moved
    )


def _reshape_group(
    case: Case, olds: Sequence[int], news: Sequence[int], ins: Entries, out: Entries, final: Entries
) -> None:
    """Shard dimensions that become others: the first one of the result is cut as the first ones of
    the operand are."""
    shape = case.avals[0].shape
    new = case.params["new_sizes"]
    cut = [d for d in olds if ins[d]]
    if not cut:
        return
    olds = [d for d in olds if shape[d] != 1 or ins[d]]
    targets = [d for d in news if new[d] != 1] or list(news[:1])
    entry: Entry = tuple([n for d in cut for n in ins[d]])
    first = cut == olds[: len(cut)] and bool(targets)
    if not first or new[targets[0]] % case.count(entry):
        case.refuse("this reshape is not supported")
        first = False
    if first:
        final[targets[0]] = entry
    # Shards stay where they are if all dimensions but the last that is cut have length 1 in them.
    if first and all([shape[d] == case.count(ins[d]) for d in cut[:-1]]):
        out[targets[0]] = entry
    else:
        for d in cut:
            ins[d] = ()


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of both shapes that have as many elements together, the fewest possible."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        olds, news, m, n = [], [], 1, 1
        while True:
            if i < len(old) and (m <= n or j >= len(new)) and not (m == n and olds and news):
                m *= old[i]
                olds.append(i)
                i += 1
            elif j < len(new) and not (m == n and olds and news):
                n *= new[j]
                news.append(j)
                j += 1
            else:
                break
            if m == n and olds and news:
                break
        groups.append((olds, news))
    return groups


@_rule("slice")
def _slice(case: Case) -> ShardedExecution:
    (own,), (a,), p = case.entries, case.avals, case.params
    steps = p.get("strides") or (1,) * a.ndim
    own = list(own)
    for d, spec in enumerate(zip(p["start_indices"], p["limit_indices"], steps, strict=True)):
        if own[d] and spec != (0, a.shape[d], 1):
            case.refuse(f"slicing along axis {d}, which is sharded, needs messages")
            own[d] = ()
    limits = [n // case.count(e) if e else n for n, e in zip(p["limit_indices"], own, strict=True)]
    return ShardedExecution([own], [own], {**p, "limit_indices": tuple(limits)})


@_rule("dynamic_slice")
def _dynamic_slice(case: Case) -> ShardedExecution:
    own, a, sizes = case.entries[0], case.avals[0], case.params["slice_sizes"]
    in_entries = [e if sizes[d] == a.shape[d] else () for d, e in enumerate(own)]
    fits = all([n % case.count(e) == 0 for n, e in zip(sizes, own, strict=True)])
    rest: list[Entries] = [[()] * x.ndim for x in case.avals[1:]]
    params = {"slice_sizes": case.shard(sizes, in_entries)}
    return ShardedExecution(
        [in_entries, *rest], [in_entries], params, final=own if fits and own != in_entries else None
    )


@_rule("update")
def _dynamic_update(case: Case) -> ShardedExecution:
    a, b = case.avals[:2]
    skip = [d for d in range(a.ndim) if a.shape[d] != b.shape[d]]
    own = _merge_operand_entries(case, a.shape, (0, 1), skip)
    if any(case.entries[k][d] for d in skip for k in (0, 1)):
        case.refuse("updating a part along an axis that is sharded needs messages")
    rest: list[Entries] = [[()] * x.ndim for x in case.avals[2:]]
    return ShardedExecution([own, own, *rest], [own], case.params)


def _gather_dimensions(case: Case, dims: Sequence[int], what: str) -> ShardedExecution:
    """Operands of one shape that are whole along some dimensions; results are cut alike."""
    shape = case.avals[0].shape
    for entries in case.entries:
        if any(entries[d] for d in dims):
            case.refuse(f"{what} must be unsharded along axis {', '.join(map(str, dims))}")
    own = _merge_operand_entries(case, shape, range(len(case.avals)), dims)
    outs = case.out if isinstance(case.out, tuple) else (case.out,)
    return ShardedExecution([own] * len(case.avals), [own] * len(outs), case.params)


@_rule("along_axis")
def _cumulative(case: Case) -> ShardedExecution:
    return _gather_dimensions(case, (case.params["axis"],), "the operand")


@_rule("sort")
def _sort(case: Case) -> ShardedExecution:
    return _gather_dimensions(case, (case.params["dimension"],), "arguments")


@_rule("fft")
def _fft(case: Case) -> ShardedExecution:
    n = len(case.params["fft_lengths"])
    rank = case.avals[0].ndim
    execution = _gather_dimensions(case, tuple(range(rank - n, rank)), "the operand")
    return execution


@_rule("reverse")
def _rev(case: Case) -> ShardedExecution:
    own = list(case.entries[0])
    dims = [d for d in case.params["dimensions"] if own[d]]
    in_entries = [() if d in dims else e for d, e in enumerate(own)]
    # The type of the result is that of the operand, as in jax; its parts come from others.
    return ShardedExecution([in_entries], [in_entries], case.params, final=own if dims else None)


@_rule("extreme")
def _arg(case: Case) -> ShardedExecution:
    axes = case.params["axes"]
    own = [() if d in axes else e for d, e in enumerate(case.entries[0])]
    return ShardedExecution([own], [[e for d, e in enumerate(own) if d not in axes]], case.params)


@_rule("concatenate")
def _concatenate(case: Case) -> ShardedExecution:
    at = case.params["dimension"]
    shape = case.out.shape
    cut = {e[at] for e in case.entries}
    own: Entries = [()] * len(shape)
    for d in range(len(shape)):
        axis_entries = {e[d] for e in case.entries}
        if d != at:
            if len(axis_entries) > 1:
                case.refuse("all operands should have the same sharding")
            own[d] = max(axis_entries, key=len)
    own = _remove_repeated_axes(case, own)
    # As in jax, the result is cut along the axis too, if the operands are.
    along = cut.pop() if len(cut) == 1 else ()
    whole = list(own)
    if (
        along
        and shape[at] % case.count(along) == 0
        and not set(along) & {n for e in own for n in e}
    ):
        whole[at] = along
    return ShardedExecution(
        [own] * len(case.avals), [own], case.params, final=whole if whole != own else None
    )


@_rule("pad")
def _pad(case: Case) -> ShardedExecution:
    own = list(case.entries[0])
    in_entries = [
        e if config == (0, 0, 0) else ()
        for e, config in zip(own, case.params["padding_config"], strict=True)
    ]
    shape = case.out.shape
    fits = all([n % case.count(e) == 0 for n, e in zip(shape, own, strict=True)])
    return ShardedExecution(
        [in_entries, []],
        [in_entries],
        case.params,
        final=own if fits and own != in_entries else None,
    )


@_rule("gather")
def _gather(case: Case) -> ShardedExecution:
    dims, sizes = case.params["dimension_numbers"], case.params["slice_sizes"]
    own, a = list(case.entries[0]), case.avals[0]
    indices = list(case.entries[1])
    # Dimensions that the operand and the indices share, such as the rows of `take_along_axis`.
    pairs = list(zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True))
    if any([e for j, e in enumerate(indices) if j not in dims.start_indices_batching_dims]):
        case.refuse("indices must be the same everywhere")
        return unsharded_execution(case)
    for d, j in pairs:
        if own[d] and indices[j] and own[d] != indices[j]:
            case.refuse("incompatible shardings of the operand and the indices")
        own[d] = indices[j] = own[d] or indices[j]
    for d, e in enumerate(own):
        if e and sizes[d] != a.shape[d] and d not in dims.operand_batching_dims:
            case.refuse(
                "Use `.at[...].get(out_sharding=)`: indexing along axes that are sharded needs "
                "messages"
            )
            own[d] = ()
    gone = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    kept_axes = [d for d in range(a.ndim) if d not in gone]
    out: Entries = [()] * case.out.ndim
    for d, target in zip(kept_axes, dims.offset_dims, strict=True):
        out[target] = own[d]
    rest = [t for t in range(case.out.ndim) if t not in dims.offset_dims]
    for j, target in enumerate(rest):  # the dimensions of the indices, of which the last is gone
        out[target] = indices[j]
    if len({n for e in out for n in e}) < sum(map(len, out)):
        case.refuse(f"the result would be illegally sharded: {out} names an axis twice")
        return unsharded_execution(case)
    whole = [() if d in dims.operand_batching_dims else e for d, e in enumerate(own)]
    params = {**case.params, "slice_sizes": case.shard(sizes, whole)}
    return ShardedExecution([own, indices], [out], params)


@_rule("contraction")
def _dot(case: Case) -> ShardedExecution:
    (lc, rc), (lb, rb) = case.params["dimension_numbers"]
    a, b = case.avals
    left, right = list(case.entries[0]), list(case.entries[1])
    for i, j in zip(lb, rb, strict=True):
        if left[i] and right[j] and left[i] != right[j]:
            case.refuse("batch dimensions must have consistent sharding")
        left[i] = right[j] = left[i] or right[j]
    over: Entry = ()
    for i, j in zip(lc, rc, strict=True):
        if left[i] and right[j]:
            if left[i] != right[j]:
                case.refuse("contracting dimensions must have consistent sharding")
            else:
                case.refuse(
                    "contracting dimensions are sharded and it is ambiguous how the output should "
                    "be sharded; say it by the out_sharding parameter"
                )
        left[i] = right[j] = left[i] or right[j]
        over += left[i]
    _free_of(left, over, lc)
    _free_of(right, over, rc)
    used = {n for d in range(a.ndim) for n in left[d]}
    for d in range(b.ndim):
        if d not in (*rb, *rc) and used.intersection(right[d]):
            case.refuse("the result would be illegally sharded: it names an axis twice")
            right[d] = ()
    # Where each dimension of the result comes from.
    sources = [[(left, i), (right, j)] for i, j in zip(lb, rb, strict=True)]
    sources += [[(left, d)] for d in range(a.ndim) if d not in (*lb, *lc)]
    sources += [[(right, d)] for d in range(b.ndim) if d not in (*rb, *rc)]
    if case.requested is not None:
        _take_parts(case.requested, sources, {n for e in (*left, *right) for n in e})
    out = [entries[d] for (entries, d), *_ in sources]
    if not over:
        return ShardedExecution([left, right], [out], case.params)
    execution = ShardedExecution([left, right], [out], case.params, "psum_invariant", over)
    for d, entry in enumerate(case.requested or ()):
        if len(over) == 1 and entry == out[d] + over:
            execution.combine, execution.scatter = "reduce_scatter", d
            execution.outs = [[*out[:d], entry, *out[d + 1 :]]]
            break
    return execution


def _take_parts(
    requested: Entries, sources: list[list[tuple[Entries, int]]], used: set[Any]
) -> None:
    """Cut operands that are whole along a dimension of the result as `out_sharding` asks, which
    needs no messages."""
    for entry, places in zip(requested, sources, strict=False):
        if entry and not used.intersection(entry) and not any([e[d] for e, d in places]):
            used.update(entry)
            for entries, d in places:
                entries[d] = entry


def _free_of(entries: Entries, names: Entry, but: Sequence[int]) -> None:
    """Let no other dimension be cut by axes over which products are summed."""
    for d, e in enumerate(entries):
        if d not in but and set(e) & set(names):
            entries[d] = ()
