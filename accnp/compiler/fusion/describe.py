"""Descriptions of programs and clusters as text, and the reasons why values are stored.

Input: a Program, and after `fuse` its clusters. Output: lines of text for `jnp.inspect`, `explain`
and debug logging. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.compiler.fusion.clusters import Cluster
from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.fusion.regions import count_cells
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph
from accnp.ir.mesh_axis import is_over_mesh
from accnp.ir.node import ARG, LITERAL, site_text
from accnp.ir.op import as_tuple

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = [
    "aval_text", "bytes_text", "cluster_lines", "cluster_parts", "find_storing_cluster", "members",
    "params_text", "program_lines", "why_stored",
]  # fmt: skip


def aval_text(aval: Aval | tuple[Aval, ...]) -> str:
    """Return a type as "float32[3,4]"."""
    if isinstance(aval, tuple):
        return f"({', '.join(map(aval_text, aval))})"
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"


def params_text(params: Params) -> str:
    """Return a short text for the parameters of an operation."""
    parts: list[str] = []
    for k, v in params.items():
        programs = any(isinstance(g, Graph) for g in as_tuple(v))
        text = "<program>" if programs else str(v)
        parts.append(f"{k}={text if len(text) <= 60 else text[:57] + '...'}")
    return " ".join(parts)


def program_lines(program: Program) -> list[str]:
    """Return one line for each value, which ends with the user's line that recorded it."""
    names = {id(v): f"%{v.id}" for v in (*program.leaves, *program.values)}
    outputs = {id(v) for v in program.outputs}
    lines: list[str] = []
    for v in program.leaves:
        lines.append(f"%{v.id}: {aval_text(v.aval)} = {leaf_text(v)}")
    for v in program.values:
        args = [names[id(x)] for x in v.inputs]
        if v.parent is not None:
            args = [f"(result {v.index})", *args]
        text = f"%{v.id}: {aval_text(v.aval)} = {' '.join([v.op.name, *args])}"
        if v.params:
            text += f" [{params_text(v.params)}]"
        if id(v) in outputs:
            text += " -> output"
        place = site_text(v.node) if v.node is not None and v.node.site is not None else ""
        lines.append(f"{text:<76}  # {place}" if place else text)
    return lines


def leaf_text(v: Value) -> str:
    """Describe a leaf: an argument with its name, a literal with its value, or an array."""
    params = {} if v.node is None else v.node.params
    if v.op is LITERAL:
        return f"literal {params.get('value')!r}"
    if v.op is ARG:
        return f"argument {params['name']}" if params.get("name") else "argument"
    return "array"


def find_storing_cluster(v: Value) -> Cluster | None:
    """Return the cluster that stores a value."""
    while v.alias is not None:
        v = v.alias
    if v.cluster is None and v.parent is not None:
        return find_storing_cluster(v.parent)
    return None if v.cluster is None else v.cluster.resolve_merged()


def _clusters_of(
    v: Value, users: dict[int, list[Value]], memo: dict[int, set[Cluster]]
) -> set[Cluster]:
    """Return the clusters in which a value is computed; for a view, those that read through it."""
    if id(v) in memo:
        return memo[id(v)]
    if v.role == "alias" or v.is_leaf or v.parent is not None:
        clusters: set[Cluster] = set()
    elif v.op.kind == "view" and not v.stored:
        clusters = set()
        for w in users.get(id(v), ()):
            if w.role == "alias":
                continue
            clusters |= _clusters_of(w, users, memo)
    else:
        clusters = set() if v.cluster is None else {v.cluster.resolve_merged()}
        if v.role in ("inline", "scalar") or v.op.kind == "iota":
            clusters |= {d.cluster for d in v.demands if d.how != "load"}
    memo[id(v)] = clusters
    return clusters


def members(program: Program, clusters: Sequence[Cluster]) -> list[list[Value]]:
    """Return the values that each cluster computes, in order. A recomputed value is in several."""
    users: dict[int, list[Value]] = {}
    for v in program.values:
        for x in v.inputs:
            users.setdefault(id(x), []).append(v)
    memo: dict[int, set[Cluster]] = {}
    for v in reversed(program.values):
        _clusters_of(v, users, memo)
    index = {c: i for i, c in enumerate(clusters)}
    for c in clusters:
        for v in c.roots:  # a stored scalar also has its own kernel
            memo[id(v)] = memo[id(v)] | {c}
    out: list[list[Value]] = [[] for _ in clusters]
    for v in program.values:
        for c in sorted((c for c in memo[id(v)] if c in index), key=index.__getitem__):
            out[index[c]].append(v)
    return out


def why_stored(v: Value) -> list[str]:
    """Return the reasons why a value is stored, which the rules of fusion have noted."""
    whole = v.parent if v.parent is not None else v
    return list(dict.fromkeys(_explain_stored(whole, why) for why in (*whole.why, *v.why)))


def _explain_stored(v: Value, why: str | Cluster) -> str:
    if isinstance(why, str):
        return why
    alone = why_alone(why)
    return alone if why is v.cluster else f"{alone}: it reads its operands from memory"


def bytes_text(n: int) -> str:
    """Return a number of bytes as text with a unit."""
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{n} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{n} B"


def message_text(v: Value) -> str:
    """Describe a message between processes and its size; "" for other operations."""
    if not is_over_mesh(v.params) or not v.inputs:
        return ""
    (axis,) = v.params["axis_name"]
    groups = v.params["axis_index_groups"]
    n = len(axis.members(groups))
    size = v.inputs[0].aval.nbytes
    facts = v.op.collective
    sent = size if facts is None or facts.sent is None else facts.sent(size, n)
    of = v.params.get("of", v.op.name)
    return f"a message of {of} over {axis!r}: each of {n} processes sends {bytes_text(sent)}"


def why_alone(c: Cluster) -> str:
    """Return why an operation does not share a kernel with others."""
    v = c.roots[0]
    if c.form == "own":
        return (
            f"{v.op.user_name} is a {'native loop' if v.op.kind == 'loop' else 'separate kernel'}"
        )
    if v.op.kind == "opaque":
        return f"{v.op.user_name} is {message_text(v) or 'a library call'}"
    if v.op.kind == "callback":
        return f"{v.op.user_name} calls a Python function"
    if v.op.kind == "loop":
        return f"{v.op.user_name} runs its programs as a separate loop"
    if _empty(v):
        return f"{v.op.user_name} has nothing to compute: an operand or the result is empty"
    if v.op.kind in ("map", "reduce") and v.op.scalar is None and v.op.combine is None:
        return f"{v.op.user_name} has no text for kernels: its NumPy function is called"
    types = {
        a.dtype.name for a in (v.aval, *[x.aval for x in v.inputs]) if not isinstance(a, tuple)
    }
    return f"{v.op.user_name} on {', '.join(sorted(types))}: kernels do not take this dtype"


def _empty(v: Value) -> bool:
    avals = [*v.avals, *[x.aval for x in v.inputs]]
    return any(not isinstance(a, tuple) and a.size == 0 for a in avals)


def form_text(c: Cluster) -> str:
    """Return the loop form of a kernel as text."""
    if c.axes is None:
        return c.form
    axes = c.axes or ()
    return f"{c.form} (reduced {'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))})"


def cluster_parts(
    program: Program, numbers: dict[Cluster, int]
) -> list[tuple[int, str, list[Value]]]:
    """Return for each cluster the number of its step, a text with its index space and its fused
    values, and the values that it stores."""
    clusters = list(numbers)
    inside = members(program, clusters)
    parts: list[tuple[int, str, list[Value]]] = []
    for c, values in zip(clusters, inside, strict=True):
        if c.form in ("host", "own"):
            v = c.roots[0]
            why = why_alone(c)
            what = (
                why.replace(f"{v.op.user_name} is ", "") if c.form == "own" else f"no kernel: {why}"
            )
            parts.append((numbers[c], f"{v.op.user_name} %{v.id}, {what}", [v]))
        else:
            done = [v for v in values if v.op.kind != "view"] or values
            names = ", ".join(f"{v.op.user_name} %{v.id}" for v in done)
            views = len(values) - len(done)
            part = f" (cut into {count_cells(c.cuts)} cells)" if c.cuts else ""
            text = f"{form_text(c)} kernel over {list(c.shape)}{part}: {names or 'copy'}"
            text += f"; read through {views} views" if views else ""
            parts.append((numbers[c], text, c.roots))
    return parts


def cluster_lines(program: Program, numbers: dict[Cluster, int]) -> list[str]:
    """Return the same as lines, with the reasons why values are stored."""
    lines: list[str] = []
    for i, text, stored in cluster_parts(program, numbers):
        lines.append(f"step {i}: {text}")
        lines += [f"    stores %{v.id}: {'; '.join(why_stored(v))}" for v in stored]
    return lines
