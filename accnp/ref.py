# isort: skip_file
"""`accnp.ref`: mutable references to arrays.

>>> import accnp as jax
>>> box = jax.ref.new_ref(jax.numpy.zeros(2))
>>> box[0] = 5.0
>>> box[...]
Array([5., 0.], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.arrays.references import (
        AbstractRef, Ref, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap,
    )  # fmt: skip

__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set",
    "swap",
]  # fmt: skip

_install_getattr(__name__, __all__)
