"""`accnp.experimental.layout`: the order of an array's elements in memory. It is the rows' here."""

from accnp.api.arrays.layouts import Format, Layout, with_layout_constraint
from accnp.missing import nearest as _nearest

__all__ = ["Format", "Layout", "with_layout_constraint"]

__getattr__ = _nearest(__name__, __all__)
