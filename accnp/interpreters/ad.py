"""`accnp.interpreters.ad`: derivative rules of primitives."""

from accnp.jax_compat.jaxprs.rules import (
    UndefinedPrimal,
    Zero,
    add_tangents,
    defbilinear,
    defjvp,
    defjvp2,
    deflinear,
    deflinear2,
    instantiate_zeros,
    is_undefined_primal,
    primitive_jvps,
    primitive_transposes,
    zeros_like_aval,
)
from accnp.jax_compat.primitives.known_primitives import add_jaxvals_p
from accnp.jax_compat.tracing.trace_queries import JVPTracer
from accnp.module_getattr import install_getattr as _install_getattr

add_jaxvals = add_jaxvals_p.bind

__all__ = [
    "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents",
    "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2", "instantiate_zeros",
    "is_undefined_primal", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip

_install_getattr(__name__, __all__)
