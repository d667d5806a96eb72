"""`accnp.extend.random`: the generator of random bits beneath `accnp.random`."""

from accnp.api.sampling.bit_generators import threefry_2x32
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["threefry_2x32"]

_install_getattr(__name__, __all__)
