"""Kernels as files: a generated kernel with what it takes to run it alone, and back.

In: a kernel step of a plan. Out: the text of a Python file that launches its kernel; from such a
file, edited, the source of the kernel.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from typing import Any

from accnp.compiler.frontend.definitions import with_definitions
from accnp.compiler.frontend.syntax import functions_of, parsed
from accnp.compiler.fusion.program import Program
from accnp.engine.steps import HostStep, KernelStep, Plan

__all__ = ["kernel_file", "kernel_text", "memory_of"]

_HEAD = '''\
"""{title}

Edit the functions below and run this file: it makes operands, runs the kernel and times it.
`accnp.override(kernel, "this file")` puts them in the place of the generated kernel, which is
launched as before; what LAUNCH says is for this file.

{how} Pointers are
indexed as flat arrays, and nothing checks the bounds. Functions such as exp, block_sum and f4 (a
conversion to float32) are those of accnp's kernels; what Numba compiles may stand here as well.
"""

LAUNCH = {{
{launch}
}}

'''
_TAIL = """

if __name__ == "__main__":
    from accnp.api.kernels.launcher import main

    main(__file__, LAUNCH)
"""


def memory_of(plan: Plan, program: Program | None) -> dict[int, int]:
    """Bytes of the slots of a plan, as far as these are known."""
    sizes: dict[int, int] = {}
    for slot, v in enumerate(program.leaves if program is not None else ()):
        sizes[slot] = v.aval.nbytes
    for step in plan.steps:
        if hasattr(step, "allocs"):  # a kernel, or a call of a GPU's library
            sizes.update(step.allocs)
            sizes.update((slot, n) for slot, _, n, _ in step.takes)
        else:
            several: Any = step.aval if isinstance(step, HostStep) else step.avals
            for slot, i in step.results:
                aval: Any = several if i < 0 or not isinstance(several, tuple) else several[i]
                sizes[slot] = aval.nbytes
    return sizes


def kernel_file(step: KernelStep, sizes: dict[int, int], fastmath: bool, title: str) -> str:
    """The text of a file with a kernel and its launch."""
    slots = list(dict.fromkeys(slot for slot, _ in step.pointers))
    memory = [sizes.get(slot, 0) for slot in slots]
    pointers = [(slots.index(slot), offset) for slot, offset in step.pointers]
    for constant in step.constants:
        pointers.append((len(memory), 0))
        memory.append(constant.nbytes)
    facts: dict[str, tuple[Any, str]] = {
        "signature": (tuple(step.text.signature), "arguments after lo, hi"),
        "memory": (tuple(memory), "bytes of what pointers point into"),
        "pointers": (tuple(pointers), "which of these, and how many bytes from its beginning"),
        "ints": (tuple(step.ints[len(step.constants) :]), "the other arguments"),
        "extent": (step.extent, "lo..hi are parts of 0..extent"),
        "chunk": (step.grain, "what a thread takes at a time, where there are several"),
        "work": (step.work, "simple operations; few are done by one thread"),
        "moved": (step.moved, "bytes that must be read and written"),
        "callees": (step.callees, "functions that are kernels themselves: name, signature"),
        "fastmath": (fastmath, "whether sums may be reordered"),
    }
    how = "A call does the indices lo..hi of 0..extent; several threads may do parts of it."
    if hasattr(step, "blocks"):  # a `DeviceStep`: a GPU's
        text: Any = step.text
        how = "Every thread of a GPU calls it; thread() and threads() say which one, of how many."
        if text.tasks:
            how = "Threads of a GPU call it for single indices, lo and the next."
        gpu: Any = step
        words = (*([step.extent] if text.tasks else []), *text.ints)
        del facts["ints"], facts["chunk"], facts["work"]
        facts["extent"] = step.extent, "how many indices there are"
        facts["words"] = words, "the other arguments of the launch"
        facts["tasks"] = bool(text.tasks), "whether a thread does indices of lo..hi, one by one"
        facts["blocks"] = gpu.blocks, "blocks of threads"
        facts["threads"] = gpu.threads, "threads of a block"
    launch = "\n".join(f'    "{k}": {v!r},  # {what}' for k, (v, what) in facts.items())
    source = with_definitions(step.text.source).rstrip()
    return _HEAD.format(title=title, how=how, launch=launch) + source + "\n" + _TAIL


def kernel_text(edited: Any) -> str:
    """The source of the kernel in a file or a text, without what launches it.

    Raises:
        ValueError: it is no Python, or has no function `kernel`.
    """
    text = edited
    if isinstance(edited, os.PathLike) or (isinstance(edited, str) and "\n" not in edited):
        with open(edited, encoding="utf-8") as file:
            text = file.read()
    if not isinstance(text, str):
        raise TypeError(
            f"override: needs the text of a kernel or a path of it; got {type(edited).__name__}; "
            "pass one of the two"
        )
    try:
        body = parsed(text).body
    except SyntaxError as error:
        raise ValueError(
            f"override: the kernel is no Python: {error}; mend line {error.lineno}"
        ) from None
    if not any(isinstance(n, ast.FunctionDef) and n.name == "kernel" for n in body):
        raise ValueError(
            "override: the text must define the function kernel; got none; see .source"
        )
    lines = text.split("\n")
    dropped = [n for i, n in enumerate(body) if _is_frame(n, i)]
    for n in dropped:
        for k in range(n.lineno - 1, n.end_lineno or n.lineno):
            lines[k] = ""
    return "\n".join(lines).strip() + "\n"


def _is_frame(n: ast.stmt, place: int) -> bool:
    """Whether a statement is there for people and for the launch only."""
    if isinstance(n, ast.Expr):
        return place == 0 and isinstance(n.value, ast.Constant)
    if isinstance(n, ast.Assign):
        return [getattr(t, "id", "") for t in n.targets] == ["LAUNCH"]
    return isinstance(n, ast.If) and "__name__" in ast.unparse(n.test)


def defined(source: str, callees: Sequence[Any]) -> tuple[Any, ...]:
    """Those of the callees of a kernel that a source defines."""
    names = functions_of(source)
    return tuple([c for c in callees if c[0] in names])
