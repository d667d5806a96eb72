"""`accnp.extend.random`: the generator of random bits beneath `accnp.random`."""

from accnp.api.sampling.bit_generators import threefry_2x32
from accnp.missing import nearest as _nearest

__all__ = ["threefry_2x32"]

__getattr__ = _nearest(__name__, __all__)
