# isort: skip_file
"""`accnp.extend.source_info_util`: exclude files from tracebacks and messages."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.environment.process import register_exclusion

__all__ = ["register_exclusion"]

_install_getattr(__name__, __all__)
