# isort: skip_file
"""`accnp.experimental.layout`: the order of an array's elements in memory, always row-major."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.sharding.layouts import Format, Layout, with_layout_constraint

__all__ = ["Format", "Layout", "with_layout_constraint"]

_install_getattr(__name__, __all__)
