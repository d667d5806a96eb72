# isort: skip_file
"""`accnp.stages`: the stages of a jitted function: traced, lowered, and compiled.

>>> import accnp as jax
>>> jax.jit(lambda x: x + 1).lower(1).compile()(2).item()
3
"""

from accnp.api.compiled.jit import JitFunction as Wrapped
from accnp.api.compiled.stages import (
    ArgInfo,
    Compiled,
    CompiledMemoryStats,
    CompilerOptions,
    Lowered,
)
from accnp.api.compiled.stages import TracedStage as Traced
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = [
    "ArgInfo", "Compiled", "CompiledMemoryStats", "CompilerOptions", "Lowered", "Traced", "Wrapped",
]  # fmt: skip

_install_getattr(__name__, __all__)
