# isort: skip_file
"""`accnp.image`: resizing of images.

>>> import accnp as jax
>>> jax.image.resize(jax.numpy.arange(2.0), (4,), "nearest")
Array([0., 0., 1., 1.], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.image.resizing import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

_install_getattr(__name__, __all__)
