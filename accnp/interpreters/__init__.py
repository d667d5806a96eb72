"""`accnp.interpreters`: rules of primitives for each transformation.

>>> import accnp as jax
>>> from accnp.interpreters import ad
>>> callable(ad.deflinear)
True
"""

from accnp.interpreters import ad, batching, mlir, partial_eval, pxla, xla
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]

_install_getattr(__name__, __all__)
