"""`accnp.typing`: types for annotations.

>>> from accnp.typing import ArrayLike
>>> def double(x: ArrayLike):
...     return 2 * x
"""

from __future__ import annotations

from accnp.array import ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["ArrayLike", "DTypeLike"]

_install_getattr(__name__, __all__)
