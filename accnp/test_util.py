"""`accnp.test_util`: checks of derivatives."""

from accnp.api.differentiation.gradient_checks import check_grads, check_jvp, check_vjp
from accnp.missing import nearest as _nearest

__all__ = ["check_grads", "check_jvp", "check_vjp"]

__getattr__ = _nearest(__name__, __all__)
