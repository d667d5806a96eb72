"""`accnp.scipy.spatial`: rotations.

>>> import accnp as jax
>>> jax.scipy.spatial.transform.Rotation.identity().magnitude().item()
0.0
"""

from accnp.missing import nearest as _nearest
from accnp.scipy.spatial import transform

__all__ = ["transform"]

__getattr__ = _nearest(__name__, __all__)
