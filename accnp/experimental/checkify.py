# isort: skip_file
"""`accnp.experimental.checkify`: run-time errors as values."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.effects.checkify import (
        Error, ErrorCategory, JaxRuntimeError, all_checks, automatic_checks, check, check_error,
        checkify, debug_check, div_checks, float_checks, index_checks, init_error, nan_checks,
        user_checks,
    )  # fmt: skip

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]  # fmt: skip

_install_getattr(__name__, __all__)
