"""Generate kernels: as loop IR if it covers them, otherwise as Python text.

`generated` is the public function for CPUs, `generated_for_grid` the one for GPUs.
"""

from __future__ import annotations

from accnp.codegen.cpu import generate
from accnp.codegen.generated import Generated
from accnp.codegen.grid import generate_grid
from accnp.codegen.grid_writer import WAVE
from accnp.compiler.loops.ir import Buffer, Kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.specs import build
from accnp.compiler.specs.grid import build_for_grid
from accnp.compiler.unsupported import Unsupported
from accnp.ir.kernel import KernelSpec

__all__ = ["generated", "generated_for_grid"]


def generated(spec: KernelSpec) -> Generated:
    """Return the kernel of a description and how it is called."""
    try:
        kernel, out = build(spec)
    except Unsupported:
        return generate(spec)
    return _finished(kernel, out)


def generated_for_grid(spec: KernelSpec, wave: int = WAVE) -> Generated:
    """Return the kernel of a description for a GPU, which holds `wave` blocks of threads at a time,
    and how it is launched."""
    try:
        kernel, out = build_for_grid(spec, wave)
    except Unsupported:
        return generate_grid(spec, wave=wave)
    return _finished(kernel, out)


def _finished(kernel: Kernel, out: Generated) -> Generated:
    out.kernel = kernel
    out.source = numba_source(kernel)
    arguments = kernel.parameters if kernel.threads else kernel.arguments
    out.signature = tuple([f"{a.dtype.token}{'*' * isinstance(a, Buffer)}" for a in arguments])
    return out
