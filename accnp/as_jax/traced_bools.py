"""`jax.numpy.asarray` for libraries that find out by it whether a function is being traced.

array-api-extra calls `bool(xp.asarray(False))`, which raises an error within `jit` of JAX, whose
constants are traced. Those of accnp have values. Here, a Python bool becomes a traced array.
"""

from __future__ import annotations

import functools
from typing import Any

from accnp.array_type import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.ir.trace import current, tracing
from accnp.numpy import creation

__all__ = ["asarray"]


@api_boundary
@functools.wraps(creation.asarray)
def asarray(a: Any, *args: Any, **kwargs: Any) -> Array:
    """Convert a value to an array; in a traced function, a Python bool to a traced one."""
    x = creation.asarray(a, *args, **kwargs)
    return wrap(o.copy(x._node)) if type(a) is bool and tracing and current() is not None else x
