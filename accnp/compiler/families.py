"""Generate kernels for GPUs: as loop IR if it covers them, otherwise as Python text."""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.frontend.users import users_functions
from accnp.compiler.loops.ir import Buffer, Kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.specs.grid import WAVE, build_for_grid
from accnp.compiler.specs.grid_cells import build_cells_for_grid
from accnp.compiler.text.grid import generate_grid
from accnp.compiler.unsupported import Unsupported
from accnp.ir.generated import Generated
from accnp.ir.kernel import KernelSpec

__all__ = ["cells_for_grid", "generated_for_grid"]


def generated_for_grid(spec: KernelSpec, wave: int = WAVE) -> Generated:
    """Return the kernel of a description for a GPU, which holds `wave` blocks of threads at a time,
    and how it is launched."""
    try:
        kernel, out = build_for_grid(spec, wave)
    except Unsupported:
        return generate_grid(spec, wave=wave)
    for more in out.then:
        _printed(more.kernel, more)
    return _printed(kernel, out)


def cells_for_grid(specs: Sequence[KernelSpec], wave: int = WAVE) -> Generated | None:
    """Return the kernel that does several maps in one launch; None if some are not maps."""
    if any(spec.form != "map" for spec in specs):
        return None
    return _printed(*build_cells_for_grid(specs, wave))


def _printed(kernel: Kernel, out: Generated) -> Generated:
    out.source = numba_source(kernel)
    # Numba compiles the source if it calls functions of users.
    out.kernel = None if users_functions(kernel) else kernel
    arguments = kernel.parameters if kernel.threads else kernel.arguments
    out.signature = tuple([f"{a.dtype.token}{'*' * isinstance(a, Buffer)}" for a in arguments])
    return out
