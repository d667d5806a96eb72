# isort: skip_file
"""`accnp.experimental.ode`: ordinary differential equations, re-exported."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/public_names.py
    from accnp.api.flow.odes import odeint

__all__ = ["odeint"]

_install_getattr(__name__, __all__)
