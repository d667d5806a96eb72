# isort: skip_file
"""`accnp.stages`: a jitted function traced, lowered, compiled; re-exported one by one.

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
from accnp.missing import nearest as _nearest

__all__ = [
    "ArgInfo", "Compiled", "CompiledMemoryStats", "CompilerOptions", "Lowered", "Traced", "Wrapped",
]  # fmt: skip

__getattr__ = _nearest(__name__, __all__)
