# isort: skip_file
"""`accnp.ops`: folds of rows by segment, as in `jax.ops`, re-exported one by one."""

from accnp.api.folds.segments import segment_max, segment_min, segment_prod, segment_sum
from accnp.missing import nearest as _nearest

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

__getattr__ = _nearest(__name__, __all__)
