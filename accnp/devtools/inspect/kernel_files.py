"""Kernels as files: a generated kernel with everything that is needed to run it alone, and back.

`kernel_file` makes the text of a Python file from a kernel step of a plan; the file launches its
kernel. `kernel_text` reads the source of the kernel back from such a file after a user edited it.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from accnp.compiler.frontend.syntax import (
    TOO_DEEP,
    functions_of,
    line_of_deepest,
    line_of_longest,
    parse_source,
)
from accnp.compiler.fusion.program import Program
from accnp.compiler.kernel_cache import Callees, CompileError
from accnp.compiler.unsupported import Unsupported
from accnp.compiler.user_definitions import with_definitions
from accnp.engine.steps import KernelStep, Plan
from accnp.lazy_imports import imported

__all__ = ["KernelText", "defined", "explain", "kernel_file", "kernel_text", "memory_of"]

# What no path contains, and every text of a kernel.
_LOOKS_LIKE_SOURCE = re.compile(r"\n|\bdef\s")

_HEAD = '''\
"""{title}

Run this file to launch the kernel on made-up operands and to time it. To use an edited version in
place of the generated kernel, pass this file to `accnp.override(kernel, path)`. LAUNCH is for this
file only; `override` launches the kernel as before.

{how} Pointers are
indexed as flat arrays, and nothing checks the bounds. A kernel calls accnp's own functions, such as
exp, block_sum, and f4 (a conversion to float32), and functions of numbers of math, NumPy, and this
file. The page "The language of kernels" of accnp's documentation defines what else it may contain.
"""

LAUNCH = {{
{launch}
}}

'''
_TAIL = """

if __name__ == "__main__":
    from accnp.devtools.inspect.kernel_launcher import main

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
            sizes.update((slot, n) for slot, _, n, _ in step.updated_slots)
        else:
            for slot, i in step.results:
                sizes[slot] = step.avals[max(i, 0)].nbytes
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
    how = "A call computes the indices lo to hi of 0 to extent; threads may divide them."
    if hasattr(step, "blocks"):  # a `DeviceStep`: a GPU's
        text: Any = step.text
        how = "Every thread of a GPU calls it; thread() is its number, and threads() their count."
        if text.tasks:
            how = "Each thread of a GPU calls it for single indices: hi is lo + 1."
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


class KernelText(NamedTuple):
    """The source of a kernel, and where it comes from: a file, or "" for a text, and how many lines
    of it are before the source."""

    source: str
    path: str
    before: int

    def place(self, line: int) -> str:
        """A line of the source for a message."""
        location = f"line {line + self.before}{f' of {self.path}' if self.path else ''}"
        lines = self.source.split("\n")
        return f"{location}: {lines[line - 1].strip()!r}" if line <= len(lines) else location


def kernel_text(edited: Any) -> KernelText:
    """Return the source of the kernel in a file or a text, without what launches it.

    Raises
    ------
    TypeError
        If the argument is neither a text nor a path.
    FileNotFoundError
        If there is no such file.
    ValueError
        If the text is not valid Python, or does not define a function `kernel`.
    """
    if not isinstance(edited, str | os.PathLike):
        raise TypeError(
            f"override: needs the text of a kernel or a path of it; got {type(edited).__name__}; "
            "pass one of the two"
        )
    text, path = str(edited), ""
    if isinstance(edited, os.PathLike) or (text and not _LOOKS_LIKE_SOURCE.search(text)):
        path = text
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise type(error)(
                f"override: cannot read the file of the kernel ({error.strerror}); got {path!r}; "
                "pass the text of a kernel, or the path of a file"
            ) from None
    where = f" of {path}" if path else ""
    try:
        body = parse_source(text).body
        compile(text, path or "<kernel>", "exec", dont_inherit=True)  # finds more than parsing does
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = "is not valid Python"
        if isinstance(error, RecursionError | MemoryError):
            what, line, reason = "cannot be parsed", line_of_longest(text), TOO_DEEP
        else:
            line = getattr(error, "lineno", None) or 1
            reason = getattr(error, "msg", None) or str(error)
        code = text.split("\n")[line - 1 : line]
        shown = f": {code[0].strip()!r}" if code else ""
        raise ValueError(
            f"override: the kernel {what}; got {reason}, at line {line}{where}{shown}; "
            "fix the source"
        ) from None
    if not any(isinstance(n, ast.FunctionDef) and n.name == "kernel" for n in body):
        names = ", ".join([n.name for n in body if isinstance(n, ast.FunctionDef)])
        raise ValueError(
            "override: the text must define the function kernel; got "
            f"{names or 'no function'}{where}; edit the .source of the kernel"
        )
    lines = text.split("\n")
    for i, n in enumerate(body):
        if _is_frame(n, i):
            lines[n.lineno - 1 : n.end_lineno] = [""] * ((n.end_lineno or n.lineno) - n.lineno + 1)
    source = "\n".join(lines)
    before = source[: len(source) - len(source.lstrip())].count("\n")
    return KernelText(source.strip() + "\n", path, before)


def _is_frame(n: ast.stmt, place: int) -> bool:
    """Return whether a statement is there for people and for the launch only."""
    if isinstance(n, ast.Expr):
        return place == 0 and isinstance(n.value, ast.Constant)
    if isinstance(n, ast.Assign):
        return [getattr(t, "id", "") for t in n.targets] == ["LAUNCH"]
    return isinstance(n, ast.If) and "__name__" in ast.unparse(n.test)


def explain(error: BaseException, text: KernelText) -> str:
    """Return what the compiler says of the text of a kernel, and the line that it means."""
    if isinstance(error, CompileError):
        error = error.__cause__ or error
    line: int | None = None
    if isinstance(error, Unsupported):
        reason, line = str(error), error.line
    elif isinstance(error, RecursionError):
        reason, line = TOO_DEEP, line_of_deepest(parse_source(text.source))
    elif isinstance(error, ValueError):
        reason = str(error).removeprefix("get_kernel: ")
    else:
        user: Any = imported("accnp.compiler.numba.user_functions")
        reason, line = user.gist(error), user.line_in(error, "<accnp kernel kernel>")
    if line is None:
        definition = functions_of(text.source).get("kernel")
        line = 1 if definition is None else definition.lineno
    return f"{reason}, at {text.place(line)}"


def defined(source: str, callees: Callees) -> Callees:
    """Those of the callees of a kernel that a source defines."""
    names = functions_of(source)
    return tuple([c for c in callees if c[0] in names])
