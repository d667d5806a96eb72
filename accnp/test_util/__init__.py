# isort: skip_file
"""`accnp.test_util`: checks of derivatives against finite differences."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.test_util.gradient_checks import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_install_getattr(__name__, __all__)
