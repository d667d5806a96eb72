# isort: skip_file
"""`accnp.numpy.fft`: Fourier transforms.

>>> import accnp.numpy as jnp
>>> jnp.fft.rfft(jnp.ones(4))
Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.numpy.fft.transforms import (
        fft, fft2, fftfreq, fftn, fftshift, hfft, ifft, ifft2, ifftn, ifftshift, ihfft, irfft,
        irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn,
    )  # fmt: skip

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_install_getattr(__name__, __all__)
