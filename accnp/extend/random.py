# isort: skip_file
"""`accnp.extend.random`: the generator of random bits beneath `accnp.random`."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.random.bit_generators import threefry_2x32

__all__ = ["threefry_2x32"]

_install_getattr(__name__, __all__)
