# isort: skip_file
"""`accnp.interpreters.partial_eval`: partial evaluation and dead code elimination of jaxprs."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.tracing.partial_evaluation import (
        PartialVal,
        trace_to_jaxpr_dynamic,
        trace_to_jaxpr_nounits,
    )
    from accnp.jax_compat.tracing.trace_queries import dce_jaxpr

__all__ = ["PartialVal", "dce_jaxpr", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]

_install_getattr(__name__, __all__)
