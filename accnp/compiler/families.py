"""Generate kernels: as loop IR if it covers them, otherwise as Python text.

`generated` is the only public function.
"""

from __future__ import annotations

from accnp.codegen.cpu import generate
from accnp.codegen.generated import Generated
from accnp.compiler.numba.source import numba_source
from accnp.compiler.specs import build
from accnp.compiler.unsupported import Unsupported
from accnp.ir.kernel import KernelSpec

__all__ = ["generated"]


def generated(spec: KernelSpec) -> Generated:
    """Return the kernel of a description and how it is called."""
    try:
        kernel, out = build(spec)
    except Unsupported:
        return generate(spec)
    out.kernel = kernel
    out.source = numba_source(kernel)
    signature = [f"{b.dtype.token}*" for b in kernel.buffers]
    out.signature = (*signature, *["i8"] * len(kernel.integers))
    return out
