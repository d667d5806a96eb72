# isort: skip_file
"""`accnp.export`: export of jitted functions as programs that can be stored.

>>> import accnp as jax
>>> program = jax.export.export(jax.jit(lambda x: x + 1))(1.0)
>>> jax.export.deserialize(program.serialize()).call(2.0).item()
3.0
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.export.symbolic_sizes import (
        SymbolicScope, is_symbolic_dim, symbolic_args_specs, symbolic_shape,
    )  # fmt: skip
    from accnp.jax_compat.export.exported import Exported, deserialize, export
    from accnp.jax_compat.export.options import (
        DisabledSafetyCheck, default_export_platform, maximum_supported_calling_convention_version,
        minimum_supported_calling_convention_version,
    )  # fmt: skip
    from accnp.jax_compat.export.tree_serialization import (
        register_namedtuple_serialization, register_pytree_node_serialization,
    )  # fmt: skip

__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape",
]  # fmt: skip

_install_getattr(__name__, __all__)
