"""`accnp.typing`: names for annotations.

>>> from accnp.typing import ArrayLike
>>> def double(x: ArrayLike):
...     return 2 * x
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.array import Array
from accnp.missing import install_getattr as _install_getattr

__all__ = ["ArrayLike", "DTypeLike"]

ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype

_install_getattr(__name__, __all__)
