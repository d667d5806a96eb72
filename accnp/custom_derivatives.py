# isort: skip_file
"""`accnp.custom_derivatives`: functions with derivative rules of the user's, and what rules get."""

from accnp.api.custom_jvp import custom_jvp
from accnp.api.custom_rules import SymbolicZero, zero_from_primal
from accnp.api.custom_vjp import (
    CustomVJPPrimal, closure_convert, custom_gradient, custom_vjp, custom_vjp_primal_tree_values,
)  # fmt: skip

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_vjp", "custom_vjp_primal_tree_values", "zero_from_primal",
]  # fmt: skip
