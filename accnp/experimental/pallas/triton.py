# isort: skip_file
"""`accnp.experimental.pallas.triton`: loads and stores under masks, and atomic operations.

>>> import accnp as jnp
>>> from accnp.experimental.pallas import triton as plgpu
>>> plgpu.load(jnp.new_ref(jnp.arange(3)), mask=jnp.array([True, False, True]), other=9)
Array([0, 9, 2], dtype=int32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.pallas.device_names import TritonParams as CompilerParams
    from accnp.jax_compat.pallas.masked_access import (
        approx_tanh, atomic_add, atomic_and, atomic_cas, atomic_max, atomic_min, atomic_or,
        atomic_xchg, atomic_xor, debug_barrier, dot, load, max_contiguous, store,
    )  # fmt: skip

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
    "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load",
    "max_contiguous", "store",
]  # fmt: skip

_install_getattr(__name__, __all__)
