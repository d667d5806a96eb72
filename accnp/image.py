"""`accnp.image`: resizing of images.

>>> import accnp as jax
>>> jax.image.resize(jax.numpy.arange(2.0), (4,), "nearest")
Array([0., 0., 1., 1.], dtype=float32)
"""

from accnp.api.scientific.resizing import ResizeMethod, resize, scale_and_translate
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

_install_getattr(__name__, __all__)
