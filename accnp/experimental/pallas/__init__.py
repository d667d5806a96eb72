# isort: skip_file
"""`accnp.experimental.pallas`: kernels over grids, by the names of `jax.experimental.pallas`.

A kernel is a loop of accnp's over the steps of its grid (`docs/pallas.md`).

>>> import accnp as jnp
>>> from accnp.experimental import pallas as pl
>>> def add(x_ref, y_ref, o_ref):
...     o_ref[...] = x_ref[...] + y_ref[...]
>>> pl.pallas_call(add, jnp.ShapeDtypeStruct((2,), jnp.float32))(jnp.ones(2), jnp.ones(2))
Array([2., 2.], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.numpy.creation import empty
from accnp.numpy.manipulation import broadcast_to
from accnp.api.arrays.reference_parts import Slice, ds
from accnp.jax_compat.pallas.calls import estimate_cost, pallas_call
from accnp.jax_compat.pallas.kernel_functions import (
    align_to, cdiv, debug_check, debug_print, empty_like, empty_ref_like, loop, multiple_of,
    next_power_of_2, num_programs, program_id, reciprocal, run_scoped, run_state,
    strides_from_shape, when, with_scoped,
)  # fmt: skip
from accnp.jax_compat.pallas.specs import (
    Blocked, BlockSpec, BoundedSlice, Buffered, CostEstimate, Element, GridSpec, Indirect,
    MemoryRef, MemorySpace, RevisitMode, Squeezed, no_block_spec, squeezed,
)  # fmt: skip
from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use
    from accnp.experimental.pallas import tpu, triton

dslice = ds
ANY, HOST = MemorySpace.ANY, MemorySpace.HOST

__all__ = [
    "ANY", "HOST", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CostEstimate", "Element",
    "GridSpec", "Indirect", "MemoryRef", "MemorySpace", "RevisitMode", "Slice", "Squeezed",
    "align_to", "broadcast_to", "cdiv", "debug_check", "debug_print", "ds", "dslice", "empty",
    "empty_like", "empty_ref_like", "estimate_cost", "loop", "multiple_of", "next_power_of_2",
    "no_block_spec", "num_programs", "pallas_call", "program_id", "reciprocal", "run_scoped",
    "run_state", "squeezed", "strides_from_shape", "tpu", "triton", "when", "with_scoped",
]  # fmt: skip

_install_getattr(__name__, __all__)
