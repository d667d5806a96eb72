# isort: skip_file
"""`accnp.nn.initializers`: initial weights.

>>> import accnp as jax
>>> jax.nn.initializers.he_normal()(jax.random.key(0), (3, 4), "float32").shape
(3, 4)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.nn.initializers.initializers import (
        Initializer, constant, delta_orthogonal, glorot_normal, glorot_uniform, he_normal,
        he_uniform, kaiming_normal, kaiming_uniform, lecun_normal, lecun_uniform, normal, ones,
        orthogonal, truncated_normal, uniform, variance_scaling, xavier_normal, xavier_uniform,
        zeros,
    )  # fmt: skip

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip

_install_getattr(__name__, __all__)
