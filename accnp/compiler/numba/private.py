"""Names of Numba that are not part of its public API, for this back end and for kernels of users.

`tests/compiler/test_private_names.py` says which of them a version of Numba has changed.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.typeconv.castgraph import Conversion

__all__ = ["COMPILER_LOCK", "Conversion", "global_compiler_lock"]

# The lock inside of what Numba's functions are wrapped in: a fork takes and releases it.
COMPILER_LOCK: Any = global_compiler_lock._lock
