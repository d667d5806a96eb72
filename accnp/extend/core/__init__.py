# isort: skip_file
"""`accnp.extend.core`: the parts of jaxprs, their evaluation, and primitives."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.tracing.core_names import (
        AbstractToken, CallPrimitive, Effect, Effects, TraceTag, array_types, call_impl,
        find_top_trace, get_opaque_trace_state, nonempty_axis_env_DO_NOT_USE, set_current_trace,
        take_current_trace, unsafe_am_i_under_a_jit_DO_NOT_USE, unsafe_am_i_under_a_vmap_DO_NOT_USE,
        unsafe_get_axis_names_DO_NOT_USE,
    )  # fmt: skip
    from accnp.jax_compat.jaxprs.evaluation import jaxpr_as_fun
    from accnp.jax_compat.jaxprs.primitives import Primitive
    from accnp.jax_compat.tracing.trace_queries import (
        check_jaxpr, concrete_or_error, mapped_aval, primal_dtype_to_tangent_dtype, unmapped_aval,
        valid_jaxtype,
    )  # fmt: skip
    from accnp.lax.staging import Token
    from accnp.errors import InconclusiveDimensionOperation, JaxprTypeError
    from accnp.extend.core import primitives
    from accnp.ir.equations import (
        ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var, gensym, jaxprs_in_params,
        new_jaxpr_eqn, no_effects, subjaxprs,
    )  # fmt: skip

__all__ = [
    "AbstractToken", "CallPrimitive", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects",
    "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive",
    "Token", "TraceTag", "Var", "array_types", "call_impl", "check_jaxpr", "concrete_or_error",
    "find_top_trace", "gensym", "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params",
    "mapped_aval", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype", "primitives", "set_current_trace", "subjaxprs",
    "take_current_trace", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip

_install_getattr(__name__, __all__)
