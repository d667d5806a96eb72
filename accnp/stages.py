# isort: skip_file
"""`accnp.stages`: the stages of a jitted function: traced, lowered, and compiled.

>>> import accnp as jax
>>> jax.jit(lambda x: x + 1).lower(1).compile()(2).item()
3
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.jit.jit import JitFunction as Wrapped
    from accnp.api.jit.stages import (
        ArgInfo, Compiled, CompiledMemoryStats, CompilerOptions, Lowered,
    )  # fmt: skip
    from accnp.api.jit.stages import TracedStage as Traced

__all__ = [
    "ArgInfo", "Compiled", "CompiledMemoryStats", "CompilerOptions", "Lowered", "Traced", "Wrapped",
]  # fmt: skip

_install_getattr(__name__, __all__)
