"""`accnp.test_util`: checks of derivatives against finite differences."""

from accnp.api.differentiation.gradient_checks import check_grads, check_jvp, check_vjp
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_install_getattr(__name__, __all__)
