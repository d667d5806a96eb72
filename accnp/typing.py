# isort: skip_file
"""`accnp.typing`: types for annotations.

>>> from accnp.typing import ArrayLike
>>> def double(x: ArrayLike):
...     return 2 * x
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.array_type import ArrayLike
    from accnp.dtypes.names import DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]

_install_getattr(__name__, __all__)
