"""The mapping from modules and names of JAX to those of accnp, for `accnp.as_jax`.

`jax.x.y` is `accnp.x.y` if that module exists. The tables contain the differences: modules and
names that accnp has elsewhere, and private names of JAX that popular libraries import.
"""

from __future__ import annotations

__all__ = ["MODULES", "NAMES", "NEWER", "VERSION"]

VERSION = "0.10.2"  # of JAX, whose namespace accnp has

# Names that JAX has had since 0.11, and that libraries use where they exist.
NEWER = (
    "jax.Inline",
    "jax.checkpoint_policies.SaveAndOffloadOnlyTheseNames",
    "jax.checkpoint_policies.SaveAnyNamesButThese",
    "jax.checkpoint_policies.SaveOnlyTheseNames",
    "jax.custom_remat",
    "jax.experimental.hijax.HiPrimitive",
    "jax.experimental.hijax.HiType",
    "jax.experimental.hijax.MutableHiType",
    "jax.experimental.hijax.aval_method",
    "jax.experimental.hijax.aval_property",
    "jax.experimental.hijax.register_hitype",
)

# Modules, by the module of accnp that has their names; "" if only NAMES has them.
MODULES = {
    "jax._src": "",
    "jax._src.ad_util": "accnp.extend.core.primitives",
    "jax._src.api": "accnp",
    "jax._src.array": "",
    "jax._src.checkify": "accnp.experimental.checkify",
    "jax._src.compiler": "",
    "jax._src.core": "accnp.core",
    "jax._src.dispatch": "",
    "jax._src.distributed": "accnp.distributed",
    "jax._src.dtypes": "accnp.dtypes",
    "jax._src.flatten_util": "accnp.flatten_util",
    "jax._src.literals": "",
    "jax._src.numpy": "accnp.numpy",
    "jax._src.random": "accnp.random",
    "jax._src.state": "",
    "jax._src.state.types": "",
    "jax._src.traceback_util": "",
    "jax._src.tree_util": "accnp.tree_util",
    "jax._src.typing": "accnp.typing",
    "jax._src.xla_bridge": "",
    "jax.experimental.hijax": "accnp.as_jax.hijax",
    "jax.experimental.pallas.ops": "",
    "jax.experimental.pallas.ops.tpu": "",
    "jax.experimental.pallas.ops.tpu.splash_attention": "",
    "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel": "",
    "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask": "",
    "jax.version": "",
    "jaxlib": "",
    "jaxlib.version": "",
}

# Names of a module that its module of accnp does not have or has with another meaning:
# "module:name".
_PRIVATE = "accnp.as_jax.private_names"
_NEWER = "accnp.as_jax.newer_names"
_CHECKPOINT = "accnp.api.differentiation.checkpoint"
NAMES = {
    "jax": {
        "Inline": f"{_NEWER}:Inline", "__version__": f"{_PRIVATE}:VERSION",
        "__version_info__": f"{_PRIVATE}:VERSION_INFO", "custom_remat": f"{_NEWER}:custom_remat",
    },
    "jax.checkpoint_policies": {
        "SaveAndOffloadOnlyTheseNames": f"{_CHECKPOINT}:SaveAndOffloadOnlyTheseNames",
        "SaveAnyNamesButThese": f"{_CHECKPOINT}:SaveAnyNamesButThese",
        "SaveOnlyTheseNames": f"{_CHECKPOINT}:SaveOnlyTheseNames",
    },
    "jax.version": {
        "__version__": f"{_PRIVATE}:VERSION", "__version_info__": f"{_PRIVATE}:VERSION_INFO",
    },
    "jaxlib": {"__version__": f"{_PRIVATE}:VERSION"},
    "jaxlib.version": {
        "__version__": f"{_PRIVATE}:VERSION", "__version_info__": f"{_PRIVATE}:VERSION_INFO",
    },
    "jax.numpy": {"asarray": "accnp.as_jax.traced_bools:asarray"},
    "jax._src.array": {
        "ArrayImpl": "accnp:Array", "_reconstruct_array": f"{_PRIVATE}:reconstruct_array",
    },
    "jax._src.checkify": {
        "JaxException": "accnp.experimental.checkify:JaxRuntimeError",
        "Out": f"{_PRIVATE}:Out",
    },
    "jax._src.core": {
        "trace_state_clean": f"{_PRIVATE}:trace_state_clean",
        "physical_aval": f"{_PRIVATE}:physical_aval",
    },
    "jax.experimental": {"cur_qdd": "accnp.as_jax.hijax:cur_qdd"},
    "jax.core": {"trace_state_clean": f"{_PRIVATE}:trace_state_clean"},
    "jax._src.dispatch": {"wait_for_tokens": "accnp:effects_barrier"},
    "jax._src.dtypes": {"TypePromotionError": "accnp.errors:TypePromotionError"},
    "jax._src.literals": {
        "LiteralArray": f"{_PRIVATE}:LiteralArray", "TypedNdArray": f"{_PRIVATE}:TypedNdArray",
    },
    "jax._src.state.types": {"AbstractRef": "accnp.api.arrays.references:AbstractRef"},
    "jax._src.traceback_util": {
        "_exclude_paths": f"{_PRIVATE}:excluded_paths",
        "api_boundary": f"{_PRIVATE}:api_boundary",
        "include_frame": f"{_PRIVATE}:include_frame",
        "register_exclusion": "accnp.extend.source_info_util:register_exclusion",
    },
    "jax._src.tree_util": {
        "_registry": f"{_PRIVATE}:registered_classes",
        "flatten_one_level": f"{_PRIVATE}:flatten_one_level",
    },
    "jax._src.xla_bridge": {"_backends": f"{_PRIVATE}:backends"},
}  # fmt: skip
