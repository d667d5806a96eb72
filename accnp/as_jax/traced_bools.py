"""A version of `jax.numpy.asarray` for libraries that use it to detect tracing.

array-api-extra calls `bool(xp.asarray(False))` for this. Within `jit` of JAX the call raises an
error, because constants are traced there; accnp's constants have values. The function of this
module therefore returns a traced array for a Python bool.
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
