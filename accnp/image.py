"""`accnp.image`: images of another size, re-exported one by one.

>>> import accnp as jax
>>> jax.image.resize(jax.numpy.arange(2.0), (4,), "nearest")
Array([0., 0., 1., 1.], dtype=float32)
"""

from accnp.api.scientific.resizing import ResizeMethod, resize, scale_and_translate
from accnp.missing import nearest as _nearest

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

__getattr__ = _nearest(__name__, __all__)
