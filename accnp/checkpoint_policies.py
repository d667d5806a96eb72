# isort: skip_file
"""`accnp.checkpoint_policies`: policies that select the residuals which `checkpoint` saves."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.differentiation.checkpoint import (
        checkpoint_dots, checkpoint_dots_with_no_batch_dims, dots_saveable,
        dots_with_no_batch_dims_saveable, everything_saveable, nothing_saveable,
        offload_dot_with_no_batch_dims, save_and_offload_only_these_names, save_any_names_but_these,
        save_anything_except_these_names, save_from_both_policies, save_only_these_names,
    )  # fmt: skip

__all__ = [
    "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable",
    "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
    "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
    "save_only_these_names",
]  # fmt: skip

_install_getattr(__name__, __all__)
