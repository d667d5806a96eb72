# isort: skip_file
"""`accnp.extend.linear_util`: functions wrapped for transformations."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.tracing.flat_functions import (
        StoreException, merge_linear_aux, transformation, transformation2, transformation_with_aux,
        transformation_with_aux2,
    )  # fmt: skip
    from accnp.jax_compat.tracing.wrapped_functions import WrappedFun, wrap_init

__all__ = [
    "StoreException", "WrappedFun", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip

_install_getattr(__name__, __all__)
