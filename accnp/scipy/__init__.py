"""`accnp.scipy`: the parts of SciPy that `jax.scipy` has, for lazy arrays."""

from accnp.missing import nearest
from accnp.scipy import special, stats

__all__ = ["special", "stats"]

__getattr__ = nearest(__name__, __all__)
