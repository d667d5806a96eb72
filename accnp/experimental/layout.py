"""`accnp.experimental.layout`: the order of an array's elements in memory. It is the rows' here."""

from accnp.api.arrays.layouts import Format, Layout, with_layout_constraint
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["Format", "Layout", "with_layout_constraint"]

_install_getattr(__name__, __all__)
