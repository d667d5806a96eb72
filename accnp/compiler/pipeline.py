"""Run the passes on a kernel, or find the pass that changes its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from accnp.compiler.loops.ir import Kernel
from accnp.compiler.passes.carry_starts import carry_starts
from accnp.compiler.passes.find_independent import find_independent
from accnp.compiler.passes.inline_indices import inline_indices
from accnp.compiler.passes.join_rows import join_rows
from accnp.compiler.passes.lower_reductions import lower_reductions
from accnp.compiler.passes.unroll import unroll
from accnp.compiler.passes.vectorize import vectorize
from accnp.lazy_imports import imported

__all__ = ["PASSES", "Target", "bisect", "run_passes"]


class Target(NamedTuple):
    """The processor for which kernels are compiled."""

    vector_bytes: int  # of a register; 0 if vectors are left to LLVM
    fast: bool = False  # whether operations on floats may be reordered and fused


PASSES: dict[str, Callable[[Kernel, Target], Kernel]] = {
    "unroll": lambda kernel, target: unroll(kernel),
    "inline_indices": lambda kernel, target: inline_indices(kernel),
    "find_independent": lambda kernel, target: find_independent(kernel),
    "lower_reductions": lambda kernel, target: lower_reductions(kernel),
    "join_rows": lambda kernel, target: join_rows(kernel),
    "vectorize": lambda kernel, target: vectorize(kernel, target.vector_bytes),
    "carry_starts": lambda kernel, target: carry_starts(kernel),
}


def run_passes(
    kernel: Kernel, target: Target, count: int | None = None, check: bool = False
) -> Kernel:
    """Return a kernel after the passes.

    Parameters
    ----------
    kernel : Kernel
        A kernel of the loop IR.
    target : Target
        What it is compiled for.
    count : int, optional
        How many of the passes are run; all by default.
    check : bool, optional
        Whether the kernel is verified before the passes, and after each of them.

    Raises
    ------
    VerificationError
        If a pass leaves a kernel that is not well formed.
    """
    verify = imported("accnp.compiler.ir_tools.verifier").verify if check else None
    if verify is not None:
        verify(kernel)
    for run in list(PASSES.values())[:count]:
        kernel = run(kernel, target)
        if verify is not None:
            verify(kernel)
    return kernel


def bisect(kernel: Kernel, target: Target, is_right: Callable[[Kernel], bool]) -> str | None:
    """Return the name of the first pass that fails, leaves a kernel that is not well formed, or
    after which the kernel is wrong; None if there is none.

    Parameters
    ----------
    kernel : Kernel
        A kernel that is right.
    target : Target
        What it is compiled for.
    is_right : callable
        Whether a kernel computes what it should.
    """
    verify = imported("accnp.compiler.ir_tools.verifier").verify
    for name, run in PASSES.items():
        try:
            kernel = run(kernel, target)
            verify(kernel)
        except Exception:  # a pass may fail in any way
            return name
        if not is_right(kernel):
            return name
    return None
