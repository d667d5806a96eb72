"""`accnp.test_util`: checks of derivatives."""

from accnp.api.differentiation.gradient_checks import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]
