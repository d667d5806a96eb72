# isort: skip_file
"""`accnp.scipy.signal`: convolutions and spectra.

>>> import accnp as jax
>>> jax.scipy.signal.convolve(jax.numpy.ones(3), jax.numpy.ones(2))
Array([1., 2., 2., 1.], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.signal.convolving import (
        convolve, convolve2d, correlate, correlate2d, fftconvolve,
    )  # fmt: skip
    from accnp.scipy.signal.spectra import csd, detrend, istft, stft, welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft",
    "stft", "welch",
]  # fmt: skip

_install_getattr(__name__, __all__)
