# isort: skip_file
"""`accnp.experimental.ode`: ordinary differential equations."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.experimental.ode.solver import odeint

__all__ = ["odeint"]

_install_getattr(__name__, __all__)
