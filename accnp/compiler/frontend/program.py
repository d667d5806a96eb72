"""Lower a source in restricted Python, a kernel and those that it calls, to LLVM text.

`read_source` reads the source into kernels of the loop IR. `lower_source` also runs the passes and
the LLVM back end, and returns the texts of modules for `llvm/objects.py`. A kernel that is called
by another one is inlined there if it has no inner loop, and if the text that would be inlined is
not longer than `MAX_INLINED` in total. Otherwise it is compiled on its own.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from accnp.compiler.frontend.source import read_kernel
from accnp.compiler.frontend.syntax import parse_source
from accnp.compiler.frontend.users import constants_of, write_users_functions
from accnp.compiler.llvm.entry import DRIVER, LIBRARY, VECTORS
from accnp.compiler.llvm.lower import write_function
from accnp.compiler.loops.ir import (
    Call,
    Callee,
    Const,
    For,
    Kernel,
    Let,
    Run,
    Share,
    Stmt,
    Var,
)
from accnp.compiler.loops.types import DTYPES, I8, Pointer, Type
from accnp.compiler.loops.visiting import statements
from accnp.compiler.passes.distribute_steps import distribute_steps
from accnp.compiler.passes.find_independent import find_independent
from accnp.compiler.passes.inline_indices import inline_indices
from accnp.compiler.pipeline import Target, run_passes
from accnp.compiler.unsupported import Unsupported
from accnp.compiler.user_definitions import with_definitions

__all__ = ["lower_source", "read_source"]

# Characters of LLVM text of called kernels that are inlined into one kernel. A physics step (a loop
# over 4,800 operations, 2.6 million characters) took 25 s to compile with everything inlined, and
# 6 s with calls (x86-64 with AVX-512, 2 threads, 2026-11-28).
MAX_INLINED = 400_000
Callees = tuple[tuple[str, tuple[str, ...]], ...]


def read_source(
    source: str, name: str, signature: Sequence[str], callees: Callees = (),
    programs: Mapping[str, Kernel] | None = None, threads: int = 0, distribute: bool = False,
    check: bool = False,
) -> tuple[Kernel, list[Kernel]]:  # fmt: skip
    """Return the kernel of a source, and those that it calls.

    Parameters
    ----------
    source : str
        Definitions of functions.
    name : str
        The name of the kernel.
    signature : sequence of str
        A token for each argument after `lo` and `hi`.
    callees : tuple
        The other kernels in the source with their signatures; each calls only those before it.
    programs : mapping of str to Kernel, optional
        Kernels that exist as loop IR, by name; their source is not read.
    threads : int, optional
        For GPUs, the number of threads of a block.
    distribute : bool, optional
        Whether to distribute the steps of the kernel, which is one for CPUs, to the threads of a
        GPU.
    check : bool, optional
        Whether the kernels are verified.

    Raises
    ------
    Unsupported
        If the source uses something that the language does not have, or a kernel is not well
        formed.
    ValueError
        If the source does not have the kernel, or the signature is not one of its arguments.
    """
    text = with_definitions(source)
    module = parse_source(text)
    trees = {d.name: d for d in module.body if isinstance(d, ast.FunctionDef)}
    if name not in trees:
        raise ValueError(f"get_kernel: the source must define the function; got name={name!r}")
    kernels = {name, *[callee for callee, _ in callees]}
    functions = {n: tree for n, tree in trees.items() if n not in kernels}
    known: list[Callee] = []
    read: list[Kernel] = []
    try:
        constants = constants_of(module)
        for callee, its in (*callees, (name, signature)):
            program = (programs or {}).get(callee)
            if program is None:
                program = read_kernel(
                    trees[callee], its, known, functions, constants, threads,
                    distribute or callee != name, check,
                )  # fmt: skip
            read.append(_with_short_vectors(write_users_functions(program)))
            known.append(Callee(callee, tuple([_type(t) for t in its])))
        *others, kernel = _with_nontemporal_arguments(read)
        return (distribute_steps(kernel) if distribute else kernel), others
    except Unsupported as error:
        error.move(source.count("\n") - text.count("\n"))
        raise


def _with_nontemporal_arguments(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return kernels with the argument that enables non-temporal stores (`Kernel.nontemporal`): the
    one for which a caller passes the result of `nontemporal_requested()`."""
    if any(k.threads for k in kernels):
        return list(kernels)  # GPUs have no such stores
    flags: dict[str, Var] = {}
    arguments = {k.name: k.arguments for k in kernels}
    request = Call("nontemporal_requested", (), I8)
    for k in kernels:
        body = list(statements(k.body))
        requests = {s.var for s in body if isinstance(s, Let) and s.value == request}
        for s in body:
            if isinstance(s, Run | Share):
                for a, x in zip(arguments[s.kernel], s.args, strict=True):
                    if x in requests and isinstance(a, Var):
                        flags[s.kernel] = a
    return [k._replace(nontemporal=flags.get(k.name, k.nontemporal)) for k in kernels]


def _type(token: str) -> Type:
    if token != "i8" and not token.endswith("*"):
        raise Unsupported(f"an argument of type {token}")
    return Pointer(DTYPES[token[:-1]]) if token.endswith("*") else I8


class _Text(NamedTuple):
    """The texts of the module of a kernel that others call: to be inlined, and to be called."""

    name: str
    inline: str  # "" for a kernel with inner loops, which is not inlined
    call: str
    calls: int  # number of places where it is called
    linked: list[str]  # texts of other modules that it needs


def lower_source(
    source: str,
    name: str,
    signature: Sequence[str],
    callees: Callees,
    target: Target,
    attributes: str,
    check: bool = False,
    programs: Mapping[str, Kernel] | None = None,
) -> tuple[str, list[str], list[str]]:
    """Return the LLVM text of the kernel of a source with its entry, the texts of modules to link
    to it, and those of modules to be compiled on their own.

    Parameters
    ----------
    source, name, signature, callees, programs
        As for `read_source`.
    target : Target
        What it is compiled for.
    attributes : str
        The attributes of functions.
    check : bool, optional
        Whether kernels are verified, and after each pass again.

    Raises
    ------
    Unsupported
        If the source is beyond the language.
    """
    kernel, others = read_source(source, name, signature, callees, programs, check=check)
    calls = [s for k in (kernel, *others) for s in statements(k.body) if isinstance(s, Run | Share)]
    texts = [_callee(k, calls, target, attributes, check) for k in others]
    called: set[str] = {s.kernel for s in statements(kernel.body) if isinstance(s, Run | Share)}
    # LLVM's time grows faster than the length of a function.
    if sum([len(t.inline) * t.calls for t in texts]) <= MAX_INLINED:
        called = set()
    linked: list[str] = []
    separate: list[str] = []
    for t in texts:
        inline = [t.inline] if t.inline and t.name not in called else []
        separate += [] if inline else [t.call]
        linked = [*inline, *linked]  # callers first: the linker drops what has no reference yet
    metadata = [*[LIBRARY] * (name != "kernel"), *[DRIVER] * bool(called)]
    passed = run_passes(kernel, target, check=check)
    function = write_function(passed, target.vector_bytes, target.fast)
    linked += dict.fromkeys([*function.linked, *[module for t in texts for module in t.linked]])
    return function.text(attributes, metadata), linked, separate


def _with_short_vectors(kernel: Kernel) -> Kernel:
    """Return a kernel whose loops are marked as independent where possible.

    The loops of a source have no such marks. With them, a loop of few steps becomes one vector, and
    is not unrolled: columns of three numbers in a loop take 66 us instead of 110 us.
    """
    return find_independent(inline_indices(kernel))


def _callee(
    kernel: Kernel, calls: Sequence[Stmt], target: Target, attributes: str, check: bool
) -> _Text:
    here = [s for s in calls if isinstance(s, Run | Share) and s.kernel == kernel.name]
    passed = run_passes(kernel, target, check=check)
    loops = sum([isinstance(s, For) for s in statements(passed.body)])
    # A kernel that is specialized to its sizes has no loop over its range of one step.
    over_range = 0 if kernel.sized else 1
    short = over_range <= loops <= 1
    # A kernel that is always called for one step needs no loop, so it is scalar code.
    once = loops == over_range and all(
        isinstance(s, Run) and (s.first, s.last) == (Const(0, I8), Const(1, I8)) for s in here
    )
    if once:
        target = target._replace(vector_bytes=0)
        passed = run_passes(kernel, target, check=check)
    function = write_function(passed, target.vector_bytes, target.fast)
    shared = any(isinstance(s, Share) for s in here)
    inline = function.callee(attributes, True, shared) if short else ""
    call = function.callee(attributes, False, shared) + (f"!{VECTORS} = !{{ }}\n" if once else "")
    return _Text(kernel.name, inline, call, len(here), function.linked)
