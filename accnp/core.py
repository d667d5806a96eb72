# isort: skip_file
# ruff: noqa: F401  (names outside __all__ are deprecated or undocumented in JAX)
"""`accnp.core`: abstract values, tracers, and the evaluation of jaxprs.

>>> import accnp as jax
>>> closed = jax.make_jaxpr(lambda x: x * 2)(1.0)
>>> jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)[0].item()
6.0
"""

from typing import TYPE_CHECKING, Any

from accnp.jax_compat.jaxprs.evaluation import eval_jaxpr
from accnp.jax_compat.tracing.trace_queries import Tracer, ensure_compile_time_eval
from accnp.ir.aval import AbstractValue
from accnp.ir.aval import Aval as ShapedArray
from accnp.ir.equations import Atom
from accnp.ir.trace import Trace
from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py; most are deprecated in JAX
    from accnp.jax_compat.tracing.core_names import (
        AbstractToken, CallPrimitive, Effect, Effects, JaxprPpContext, JaxprPpSettings, OutputType,
        abstract_token, aval_mapping_handlers, call, call_p, concretization_function_error,
        custom_typechecks, find_top_trace, get_aval, get_opaque_trace_state, is_concrete,
        is_constant_dim, is_constant_shape, literalable_types, max_dim, min_dim, no_axis_name,
        nonempty_axis_env_DO_NOT_USE, pytype_aval_mappings, trace_ctx, traverse_jaxpr_params,
        unsafe_am_i_under_a_jit_DO_NOT_USE, unsafe_am_i_under_a_vmap_DO_NOT_USE,
        unsafe_get_axis_names_DO_NOT_USE,
    )  # fmt: skip
    from accnp.jax_compat.jaxprs.primitives import Primitive
    from accnp.jax_compat.tracing.trace_queries import (
        check_jaxpr, concrete_or_error, mapped_aval, primal_dtype_to_tangent_dtype, unmapped_aval,
        valid_jaxtype,
    )  # fmt: skip
    from accnp.errors import InconclusiveDimensionOperation, JaxprTypeError
    from accnp.ir.equations import (
        ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var, gensym, jaxprs_in_params,
        new_jaxpr_eqn, no_effects, subjaxprs,
    )  # fmt: skip

# Aliases that JAX defines in `jax.core`.
ParamDict = dict[str, Any]
Value = Any
eval_context = ensure_compile_time_eval

__all__ = [
    "AbstractValue", "Atom", "ParamDict", "ShapedArray", "Trace", "Tracer", "Value",
    "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "max_dim", "min_dim",
]  # fmt: skip

_install_getattr(__name__, __all__)
