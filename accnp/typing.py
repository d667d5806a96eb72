"""`accnp.typing`: names for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.array import Array
from accnp.missing import nearest as _nearest

__all__ = ["ArrayLike", "DTypeLike"]

ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype

__getattr__ = _nearest(__name__, __all__)
