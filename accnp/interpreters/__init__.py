# isort: skip_file
"""`accnp.interpreters`: rules of primitives for each transformation.

>>> import accnp as jax
>>> from accnp.interpreters import ad
>>> callable(ad.deflinear)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.interpreters import ad, batching, mlir, partial_eval, pxla, xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]

_install_getattr(__name__, __all__)

# Fills the tables of rules of built-in primitives (`ad.primitive_jvps` and others).
import_module("accnp.jax_compat.primitives.lowering_rules")
