# isort: skip_file
"""`accnp.custom_derivatives`: functions with custom derivative rules, and the arguments of rules.

>>> import accnp as jax
>>> f = jax.custom_derivatives.custom_gradient(lambda x: (x**2, lambda ct: ct * x))
>>> jax.grad(f)(3.0).item()
3.0
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.differentiation.custom_jvp import custom_jvp
    from accnp.api.differentiation.custom_rules import SymbolicZero, zero_from_primal
    from accnp.api.differentiation.custom_vjp import (
        CustomVJPPrimal, closure_convert, custom_gradient, custom_vjp,
        custom_vjp_primal_tree_values,
    )  # fmt: skip
    from accnp.jax_compat.linear_call import linear_call
    from accnp.jax_compat.primitives.known_primitives import custom_jvp_call_p, custom_vjp_call_p
    from accnp.jax_compat.primitives.rare_primitives import remat_opt_p

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
    "linear_call", "remat_opt_p", "zero_from_primal",
]  # fmt: skip

_install_getattr(__name__, __all__)
