# isort: skip_file
"""`accnp.ad_checkpoint`: names for policies, and a look at what a backward pass keeps."""

from accnp import checkpoint_policies
from accnp.api.differentiation.checkpoint import (
    Offloadable, Recompute, Saveable, checkpoint, checkpoint_name, print_saved_residuals, remat,
    saved_residuals,
)  # fmt: skip
from accnp.missing import install_getattr as _install_getattr

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals", "remat", "saved_residuals",
]  # fmt: skip

_install_getattr(__name__, __all__)
