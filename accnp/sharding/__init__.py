# isort: skip_file
"""`accnp.sharding`: meshes of devices, and the distribution of arrays over them.

>>> import accnp as jax
>>> mesh = jax.make_mesh((1,), ("x",))
>>> jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")).shard_shape((4,))
(4,)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.sharding.shard_mapping import Infer
    from accnp.sharding.meshes import (
        AbstractDevice, AbstractMesh, AxisType, ManualAxisType, Mesh, get_abstract_mesh, get_mesh,
        set_mesh, use_abstract_mesh,
    )  # fmt: skip
    from accnp.sharding.constraints import auto_axes, explicit_axes, reshard
    from accnp.sharding.partition_specs import (
        NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding, make_single_device_sharding,
    )  # fmt: skip
    from accnp.sharding.partition_specs import PartitionSpec as P

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Infer", "ManualAxisType", "Mesh",
    "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding", "auto_axes",
    "explicit_axes", "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "reshard",
    "set_mesh", "use_abstract_mesh",
]  # fmt: skip

_install_getattr(__name__, __all__)
