# isort: skip_file
# ruff: noqa: E402
"""accnp: the API of JAX and jax.numpy with lazy arrays and fused kernels, compiled with LLVM.

`import accnp as jnp` provides the names of `jax.numpy` and the top-level names of `jax`.
`import accnp as jax; import accnp.numpy as jnp` works as well.

>>> import accnp as jnp
>>> jnp.sum(jnp.arange(4) ** 2)
Array(14, dtype=int32)
"""

import sys
from typing import TYPE_CHECKING

# Remove the modules of an earlier import that an exception in a signal handler ended. They would be
# mixed with those that are loaded now.
for _name in [name for name in sys.modules if name.startswith("accnp.")]:
    del sys.modules[_name]

from accnp.numpy_start import load_numpy

load_numpy()

from accnp import dtypes, errors, numpy
from accnp.api.jit.jit import jit
from accnp.api.arrays.methods import set_namespace as _set_namespace
from accnp.sharding.device_placement import device_put
from accnp.api.environment.synchronization import (
    block_until_ready, copy_to_host_async, counters, device_get, effects_barrier,
)  # fmt: skip
from accnp.array_type import Array
from accnp.numpy import ufunc_objects as _ufunc_objects  # noqa: F401 - gives ufuncs their methods
from accnp.config import (
    allow_f16_reductions, array_garbage_collection_guard, auto_pcast, check_tracer_leaks,
    checking_leaks, config, debug_infs, debug_key_reuse, debug_nans, default_device,
    default_matmul_precision, default_prng_impl, disable_jit, enable_checks, enable_custom_prng,
    enable_x64, explain_cache_misses, fastmath, item_assignment,
    jax2tf_associative_scan_reductions, legacy_prng_key, log_compiles, no_execution, no_tracing,
    numpy_dispatch, numpy_dtype_promotion, numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type, softmax_custom_jvp, thread_guard, threads,
    threefry_partitionable, transfer_guard, transfer_guard_device_to_device,
    transfer_guard_device_to_host, transfer_guard_host_to_device,
)  # fmt: skip
from accnp.dtypes.names import float0
from accnp.module_getattr import install_getattr as _install_getattr
from accnp.version import __version__ as __version__
from accnp.runtime.device import (
    Device, default_backend, device_count, devices, local_device_count, local_devices,
)  # fmt: skip

if TYPE_CHECKING:  # loaded on first use
    from accnp import (
        ad_checkpoint, api_util, checkpoint_policies, checkpoints, core, custom_batching,
        custom_derivatives, debug, distributed, dlpack, experimental, export, extend, ffi,
        flatten_util, image, interpreters, lax, lib, memory, monitoring, nn, ops, random, ref,
        scipy, sharding, stages, test_util, tree, tree_util, typing, version,
    )  # fmt: skip
    from accnp import profiler as profiler
    from accnp.as_jax import as_jax
    from accnp.api.effects.callbacks import pure_callback
    from accnp.api.differentiation.checkpoint import checkpoint, remat
    from accnp.api.differentiation.custom_jvp import custom_jvp
    from accnp.api.differentiation.derivatives import (
        grad, jvp, linear_transpose, linearize, value_and_grad, vjp,
    )  # fmt: skip
    from accnp.api.differentiation.custom_vjp import closure_convert, custom_gradient, custom_vjp
    from accnp.api.jit.user_contexts import make_user_context
    from accnp.api.differentiation.linear_maps import ad
    from accnp.api.differentiation.forward_backward import fwd_and_bwd
    from accnp.devtools.inspect.inspecting import inspect
    from accnp.api.kernels.kernel import kernel
    from accnp.api.kernels.override import override
    from accnp.devtools.explain.explain import explain
    from accnp.api.differentiation.jacobians import hessian, jacfwd, jacobian, jacrev
    from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct, eval_shape, make_jaxpr, typeof
    from accnp.jax_compat.tracing.trace_queries import ensure_compile_time_eval
    from accnp.api.jit.pmap import pmap
    from accnp.api.mapping.vmap import vmap
    from accnp.api.environment.process import (
        clear_caches, device_memory_stats, host_count, host_id, host_ids, live_arrays, memory_stats,
        named_call, named_scope, print_environment_info, process_count, process_index,
        process_indices,
    )  # fmt: skip
    from accnp.api.arrays.references import Ref, ds, empty_ref, free_ref, freeze, new_ref
    from accnp.sharding.shard_mapping import shard_map, smap
    from accnp.sharding.meshes import make_mesh, set_mesh
    from accnp.sharding.constraints import reshard
    from accnp.sharding.shards import (
        Shard, make_array_from_callback, make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )  # fmt: skip
    from accnp.sharding.partition_specs import NamedSharding, P
    from accnp.bench.magic import load_ipython_extension as load_ipython_extension
    from accnp.bench.magic import unload_ipython_extension as unload_ipython_extension
    from accnp.bench.measure import timeit
    from accnp.experimental import checkify
    from accnp.version import __version_info__ as __version_info__
    from accnp.numpy import *  # noqa: F403  (all names of jax.numpy, listed there)


__all__ = [
    "Array", "Device", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard", "ad",
    "ad_checkpoint", "allow_f16_reductions", "api_util", "array_garbage_collection_guard", "as_jax",
    "auto_pcast", "block_until_ready", "check_tracer_leaks", "checkify", "checking_leaks",
    "checkpoint", "checkpoint_policies", "checkpoints", "clear_caches", "closure_convert", "config",
    "copy_to_host_async", "core", "counters", "custom_batching", "custom_derivatives",
    "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse",
    "debug_nans", "default_backend", "default_device", "default_matmul_precision",
    "default_prng_impl", "device_count", "device_get", "device_memory_stats", "device_put",
    "devices", "disable_jit", "distributed", "dlpack", "ds", "dtypes", "effects_barrier",
    "empty_ref", "enable_checks", "enable_custom_prng", "enable_x64", "ensure_compile_time_eval",
    "errors", "eval_shape", "experimental", "explain", "explain_cache_misses", "export", "extend",
    "fastmath", "ffi", "flatten_util", "float0", "free_ref", "freeze", "fwd_and_bwd", "grad",
    "hessian", "host_count", "host_id", "host_ids", "image", "inspect", "interpreters",
    "item_assignment", "jacfwd", "jacobian", "jacrev", "jax2tf_associative_scan_reductions", "jit",
    "jvp", "kernel", "lax", "legacy_prng_key", "lib", "linear_transpose", "linearize",
    "live_arrays", "local_device_count", "local_devices", "log_compiles",
    "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_user_context",
    "memory", "memory_stats", "monitoring", "named_call", "named_scope", "new_ref", "nn",
    "no_execution", "no_tracing", "numpy", "numpy_dispatch", "numpy_dtype_promotion",
    "numpy_rank_promotion", "ops", "override", "pmap", "print_environment_info", "process_count",
    "process_index", "process_indices", "profiler", "pure_callback", "random", "ref", "remat",
    "remove_size_one_mesh_axis_from_type", "reshard", "scipy", "set_mesh", "shard_map", "sharding",
    "smap", "softmax_custom_jvp", "stages", "test_util", "thread_guard", "threads",
    "threefry_partitionable", "timeit", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree", "tree_util", "typeof",
    "typing", "value_and_grad", "version", "vjp", "vmap",
]  # fmt: skip
__all__ += numpy.__all__

_set_namespace(numpy)
_install_getattr(__name__, __all__)
