# isort: skip_file
"""`accnp.ops`: reductions of rows by segment, as in `jax.ops`.

>>> import accnp as jax
>>> jax.ops.segment_sum(jax.numpy.arange(3), jax.numpy.array([0, 1, 0]), num_segments=2)
Array([2, 1], dtype=int32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.ops.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_install_getattr(__name__, __all__)
