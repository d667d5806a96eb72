"""`accnp.interpreters`: rules of primitives for each transformation.

>>> import accnp as jax
>>> from accnp.interpreters import ad
>>> callable(ad.deflinear)
True
"""

from accnp.interpreters import ad, batching, mlir, partial_eval, pxla, xla
from accnp.missing import nearest as _nearest

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]

__getattr__ = _nearest(__name__, __all__)
