"""Generation of GPU kernels from descriptions, as loop IR and as source that is printed from it."""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.frontend.users import users_functions
from accnp.compiler.loops.ir import Buffer, Kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.specs.grid import WAVE, build_for_grid
from accnp.compiler.specs.grid_horizontal_fusion import fuse_horizontally_for_grid
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import KernelSpec

__all__ = ["build_fused_grid_kernel", "build_grid_kernel"]


def build_grid_kernel(spec: KernelSpec, wave: int = WAVE) -> GeneratedKernel:
    """Return the kernel of a description for a GPU, which holds `wave` blocks of threads at a time,
    and how it is launched."""
    kernel, out = build_for_grid(spec, wave)
    for more in out.then:
        _print(more.kernel, more)
    return _print(kernel, out)


def build_fused_grid_kernel(
    specs: Sequence[KernelSpec], wave: int = WAVE
) -> GeneratedKernel | None:
    """Return the kernel that does several maps in one launch; None if some are not maps."""
    if any(spec.form != "map" for spec in specs):
        return None
    return _print(*fuse_horizontally_for_grid(specs, wave))


def _print(kernel: Kernel, out: GeneratedKernel) -> GeneratedKernel:
    """Add a kernel and its source to how it is launched."""
    out.source = numba_source(kernel)
    # Functions of users are written into the kernel that is read from the source.
    out.kernel = None if users_functions(kernel) else kernel
    tokens = [f"{a.dtype.token}{'*' * isinstance(a, Buffer)}" for a in kernel.parameters]
    out.signature = tuple(tokens)
    return out
