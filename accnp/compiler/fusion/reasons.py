"""The limits of fusion, and the reasons why values are stored between kernels.

Input: the values and clusters that a fusion rule has compared. Output: a text, which `store` notes
on the value. `describe.py` shows these texts to users.
"""

from __future__ import annotations

from collections.abc import Collection

from accnp.compiler.fusion.clusters import MAX_MEMBERS, Cluster, Demand, reaches
from accnp.compiler.fusion.program import Value
from accnp.compiler.fusion.spaces import axes_longer_than_one

__all__ = [
    "LONG_REDUCTION", "MAX_MEMBERS", "MAX_REDUCTIONS", "MAX_STORES", "OUTPUT", "TOO_LONG",
    "TOO_MANY_REDUCTIONS", "TURNED", "UNFUSED", "form_of", "other_space", "store", "why_not_inline",
    "why_not_merged", "why_other_reduction",
]  # fmt: skip

# Reductions of a kernel. Each may need its own pass, and passes recompute the values they share.
MAX_REDUCTIONS = 8
# Outputs of merged kernels. More streams of stores than this slow each other down.
MAX_STORES = 16
OUTPUT = "an output"
TOO_LONG = f"size limit: a kernel computes at most {MAX_MEMBERS} operations"
UNFUSED = "the program has more operations than config.fusion_limit: each is a separate kernel"
TOO_MANY_REDUCTIONS = f"size limit: a kernel computes at most {MAX_REDUCTIONS} reductions"
TURNED = "its reduced axes lie in memory in another order than that of the reduction"
LONG_REDUCTION = (
    "a long reduction is computed in chunks: its result is complete only at the end of the kernel"
)


def form_of(c: Cluster) -> str:
    """Return a text for a kernel of this loop form."""
    if c.form in ("host", "own"):
        return "a separate step"
    return f"a {c.form} kernel"


def other_space(home: Cluster, v: Value, d: Demand) -> str:
    """Return why a value is not computed in its reader, which has another index space."""
    if home.form in ("host", "own"):
        return ""  # the step itself is already noted as the reason
    if d.how == "load":
        return f"its reader, {form_of(home)}, loads it from memory"
    through = f" through {d.chain[0].op.name}" if d.chain else ""
    return (
        f"other index space: {form_of(home)} over {list(home.shape)} reads it{through}, "
        f"it is {list(v.aval.shape)}"
    )


def why_other_reduction(home: Cluster, v: Value) -> str:
    """Return why the only reader of a reduction is not computed in the kernel of the reduction."""
    source = list(v.inputs[0].aval.shape)
    if home.shape != v.aval.shape:
        return (
            f"other index space: {form_of(home)} over {list(home.shape)} reads a "
            f"reduction of {source}"
        )
    return f"its reader is {form_of(home)}, and does not read it element by element"


def store(v: Value, why: str | Cluster) -> None:
    """Mark a value as stored; `why` is a text, or the step without fusion that reads it."""
    if not v.is_leaf:
        v.stored = True
        if why and why not in v.why:
            v.why += (why,)


def why_not_inline(homes: Collection[Cluster], refusal: str) -> str:
    """Return why a value that several kernels read is not computed in them."""
    if len(homes) < 2:
        return ""
    return f"{len(homes)} kernels read it: {refusal or 'not all of them element by element'}"


def why_not_merged(a: Cluster, b: Cluster) -> str:
    """Return why two clusters cannot become one kernel, or "" if they can."""
    if a.shape != b.shape or a.shape == ():
        return "they run over different index spaces"
    if a.form not in ("map", "row") or b.form not in ("map", "row"):
        return f"one is {form_of(a)}, another {form_of(b)}"
    if (
        a.axes
        and b.axes
        and axes_longer_than_one(a.shape, a.axes) != axes_longer_than_one(b.shape, b.axes)
    ):
        return "their rows are not the same axes"
    if len(a.roots) + len(b.roots) > MAX_STORES:
        return f"together they would write more than {MAX_STORES} arrays"
    if a.reduction_count + b.reduction_count > MAX_REDUCTIONS:
        return TOO_MANY_REDUCTIONS
    if (a.cuts and b.form != "map") or (b.cuts and a.form != "map"):
        return "only one of them can be cut into cells"
    if not a.has_room(b.size, b.cuts):
        return TOO_LONG
    return "one needs what another computes" if reaches(a, b) or reaches(b, a) else ""
