# isort: skip_file
"""`accnp.scipy.cluster.vq`: vector quantization."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.cluster.vector_quantization import vq

__all__ = ["vq"]

_install_getattr(__name__, __all__)
