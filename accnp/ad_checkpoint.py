# isort: skip_file
"""`accnp.ad_checkpoint`: rematerialization (`checkpoint`), names of values for its policies, and
the residuals that a backward pass saves."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp import checkpoint_policies
    from accnp.api.differentiation.checkpoint import (
        Offloadable, Recompute, Saveable, checkpoint, checkpoint_name, print_saved_residuals, remat,
        saved_residuals,
    )  # fmt: skip

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals", "remat", "saved_residuals",
]  # fmt: skip

_install_getattr(__name__, __all__)
