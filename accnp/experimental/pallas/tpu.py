# isort: skip_file
"""`accnp.experimental.pallas.tpu`: memory spaces, scalar prefetch, and asynchronous copies.

>>> from accnp.experimental.pallas import tpu as pltpu
>>> pltpu.VMEM((8, 128), "float32").shape
(8, 128)
"""

from accnp.jax_compat.pallas.device_names import (
    AsyncCopyDescriptor, ChipVersion, CompilerParams, GridDimensionSemantics, SemaphoreType,
    SideEffectType, async_copy, bitcast, emit_pipeline, get_tpu_info, is_tpu_device,
    make_async_copy, roll, sync_copy,
)  # fmt: skip
from accnp.jax_compat.pallas.device_names import TpuMemorySpace as MemorySpace
from accnp.jax_compat.pallas.masked_access import load, store
from accnp.jax_compat.pallas.specs import MemoryRef, PrefetchScalarGridSpec
from accnp.module_getattr import install_getattr as _install_getattr

PARALLEL = GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY
CMEM, HBM, SEMAPHORE = MemorySpace.CMEM, MemorySpace.HBM, MemorySpace.SEMAPHORE
SMEM, VMEM, VMEM_SHARED = MemorySpace.SMEM, MemorySpace.VMEM, MemorySpace.VMEM_SHARED

__all__ = [
    "ARBITRARY", "CMEM", "CORE_PARALLEL", "HBM", "PARALLEL", "SEMAPHORE", "SMEM",
    "SUBCORE_PARALLEL", "VMEM", "VMEM_SHARED", "AsyncCopyDescriptor", "ChipVersion",
    "CompilerParams", "GridDimensionSemantics", "MemoryRef", "MemorySpace",
    "PrefetchScalarGridSpec", "SemaphoreType", "SideEffectType", "async_copy", "bitcast",
    "emit_pipeline", "get_tpu_info", "is_tpu_device", "load", "make_async_copy", "roll", "store",
    "sync_copy",
]  # fmt: skip

_install_getattr(__name__, __all__)
