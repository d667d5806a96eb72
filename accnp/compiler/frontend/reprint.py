"""Print kernels in restricted Python as sources for Numba.

The front end reads a kernel and those that it calls, and `numba.source` prints them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from accnp.compiler.frontend.program import Callees, read_source
from accnp.compiler.loops.ir import Kernel, Share
from accnp.compiler.loops.visiting import statements
from accnp.compiler.numba.source import numba_source

__all__ = ["reprint"]


def reprint(
    source: str, name: str, signature: Sequence[str], callees: Callees = (),
    programs: Mapping[str, Kernel] | None = None, to_compile: bool = False,
) -> tuple[str, Collection[str]]:  # fmt: skip
    """Return the source for Numba of a kernel and its callees, and the names of those callees whose
    steps threads share.

    The arguments are those of `frontend.program.read_source` and of `numba_source`.
    """
    kernel, others = read_source(source, name, signature, callees, programs)
    kernels = [*others, kernel]
    shared = {s.kernel for k in kernels for s in statements(k.body) if isinstance(s, Share)}
    return "\n".join([numba_source(k, to_compile) for k in kernels]), shared
