"""`accnp.debug`: printing and calling functions from programs while they run.

>>> import accnp as jax
>>> jax.jit(lambda x: jax.debug.print("x = {}", x))(1)
x = 1
"""

from accnp.api.effects.debug import callback, log, print
from accnp.api.effects.debugger import breakpoint
from accnp.devtools.inspect.comparing import Comparison, compare
from accnp.module_getattr import install_getattr as _install_getattr
from accnp.sharding.visualization import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)  # fmt: skip

__all__ = [
    "Comparison", "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "compare",
    "inspect_array_sharding", "log", "print", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip


class DebugEffect:
    """Effect of programs that print or call Python functions.

    JAX lists it in the effects of a jaxpr. The jaxprs of accnp keep such operations without it.

    Examples
    --------
    >>> import accnp as jnp
    >>> issubclass(jnp.debug.OrderedDebugEffect, jnp.debug.DebugEffect)
    True
    """


class OrderedDebugEffect(DebugEffect):
    """Effect of programs that print or call Python functions in a fixed order.

    Examples
    --------
    >>> import accnp as jnp
    >>> isinstance(jnp.debug.OrderedDebugEffect(), jnp.debug.DebugEffect)
    True
    """


_install_getattr(__name__, __all__)
