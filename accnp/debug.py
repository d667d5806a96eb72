"""`accnp.debug`: printing and calling functions from programs while they run.

>>> import accnp as jax
>>> jax.jit(lambda x: jax.debug.print("x = {}", x))(1)
x = 1
"""

from accnp.api.effects.debug import callback, log, print
from accnp.api.effects.debugger import breakpoint
from accnp.api.inspect.comparing import Comparison, compare
from accnp.api.sharding.pictures import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)  # fmt: skip
from accnp.missing import install_getattr as _install_getattr

__all__ = [
    "Comparison", "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "compare",
    "inspect_array_sharding", "log", "print", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip


class DebugEffect:
    """What a program does that prints or calls back."""


class OrderedDebugEffect(DebugEffect):
    """The same, in the order of the program."""


_install_getattr(__name__, __all__)
