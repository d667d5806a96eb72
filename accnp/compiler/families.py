"""Generate kernels for GPUs: as loop IR if it covers them, otherwise as Python text."""

from __future__ import annotations

from accnp.compiler.loops.ir import Buffer
from accnp.compiler.numba.source import numba_source
from accnp.compiler.specs.grid import build_for_grid
from accnp.compiler.text.grid import generate_grid
from accnp.compiler.text.grid_writer import WAVE
from accnp.compiler.unsupported import Unsupported
from accnp.ir.generated import Generated
from accnp.ir.kernel import KernelSpec

__all__ = ["generated_for_grid"]


def generated_for_grid(spec: KernelSpec, wave: int = WAVE) -> Generated:
    """Return the kernel of a description for a GPU, which holds `wave` blocks of threads at a time,
    and how it is launched."""
    try:
        kernel, out = build_for_grid(spec, wave)
    except Unsupported:
        return generate_grid(spec, wave=wave)
    out.kernel = kernel
    out.source = numba_source(kernel)
    arguments = kernel.parameters if kernel.threads else kernel.arguments
    out.signature = tuple([f"{a.dtype.token}{'*' * isinstance(a, Buffer)}" for a in arguments])
    return out
