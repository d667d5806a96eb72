# isort: skip_file
"""`accnp.scipy`: the parts of SciPy that `jax.scipy` has, for lazy arrays.

Each part is imported on first use.

>>> import accnp as jax
>>> jax.scipy.special.logsumexp(jax.numpy.zeros(2)).item() == jax.numpy.log(2).item()
True
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy import (
        cluster, fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial,
        special, stats,
    )  # fmt: skip

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
]  # fmt: skip

_install_getattr(__name__, __all__)
