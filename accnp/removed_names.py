"""Replacements for names that accnp does not have, although JAX had them or NumPy has them.

`REMOVED_NAMES` maps the full name to a text that says what to use instead, or to "=module:name",
the object that the name stands for. `accnp/module_getattr.py` imports this file when a module is
asked for an unknown name, and uses the text in the AttributeError.
"""

_TREES = "leaves map structure flatten unflatten all reduce transpose leaves_with_path"
_ARRAYS = "to store arrays in files, use jax.checkpoints.save"
_SHARDED = "use jax.sharding.NamedSharding(mesh, PartitionSpec(...))"
_TRACES = "the tracing state is not public; use jax.make_jaxpr, jax.core.Tracer or jax.typeof"
_MAPS = "use jax.vmap or jax.shard_map"
_BACKEND = "use jax.default_backend() and jax.devices()"

_JAX = {
    **{f"tree_{name}": f"=tree_util:tree_{name}" for name in _TREES.split()},
    "tools": "accnp does not support Colab TPUs; remove the call; jax.devices() lists the devices",
    "device_put_replicated": "=jax_compat.deprecated_functions:device_put_replicated",
    "device_put_sharded": "=jax_compat.deprecated_functions:device_put_sharded",
    "custom_transforms": "use jax.custom_jvp or jax.custom_vjp",
    "defvjp": "use jax.custom_vjp and its defvjp",
    "defvjp_all": "use jax.custom_vjp and its defvjp",
    "defjvp_all": "use jax.custom_jvp and its defjvp",
    "linear_util": "use jax.extend.linear_util",
    "pxla": "use jax.Array and jax.sharding",
    "util": "use zip(..., strict=True) for safe_zip, a list comprehension over it for safe_map, "
    "and functools or itertools for the other functions",
    "abstract_arrays": "use jax.core.ShapedArray",
    "xla": "use jax.interpreters.xla or jax.make_jaxpr",
    "partial": "use functools.partial",
    "soft_pmap": "use jax.pmap or jax.vmap",
    "mask": "use jnp.where",
    "shapecheck": "use jax.eval_shape",
    "invertible": "use jax.custom_vjp",
    "host_callback": "use jax.pure_callback or jax.experimental.io_callback",
    "clear_backends": "=api.environment.process:clear_caches",
    "core.TraceTag": _TRACES,
    "core.set_current_trace": _TRACES,
    "core.take_current_trace": _TRACES,
    "core.cur_sublevel": _TRACES,
    "core.thread_local_state": _TRACES,
    "core.full_lower": "values need no lowering; remove the call",
    "core.raise_to_shaped": "abstract values always have shapes; remove the call, or use "
    "jax.typeof",
    "core.ConcreteArray": "use jax.core.get_aval or jax.typeof",
    "core.DimSize": "use int",
    "core.Shape": "use tuple[int, ...]",
    "core.NamedShape": "use tuple[int, ...]",
    "core.new_sublevel": _TRACES,
    "core.as_named_shape": "use x.shape",
    "errors.JAXRuntimeError": "use RuntimeError, or jax.errors.JaxRuntimeError",
    "errors.XlaRuntimeError": "use RuntimeError, or jax.errors.JaxRuntimeError",
    "experimental.jax2tf": "accnp cannot convert programs to TensorFlow; pass arrays with "
    "np.asarray or jax.dlpack",
    "experimental.array_serialization": _ARRAYS,
    "experimental.maps": _MAPS,
    "experimental.stax": "=example_libraries:stax",
    "experimental.hijax": "user-defined types are not supported while tracing; use pytrees with "
    "jax.custom_vjp, or primitives of jax.extend.core",
    "experimental.cur_qdd": "hijax is not supported; use jax.new_ref for mutable values",
    "experimental.mosaic": "the TPU compiler is not supported; use accnp.experimental.pallas or "
    "accnp.kernel",
    "experimental.colocated_python": "arrays are stored on this host; call the function directly, "
    "or with jax.pure_callback",
    "experimental.topologies": "programs run on this machine only; see jax.devices",
    "experimental.serialize_executable": "use jax.export.export and its method serialize",
    "experimental.MutableArray": "use jax.Ref, made by jax.new_ref",
    "experimental.mutable_array": "use jax.new_ref",
    "experimental.host_callback": "use jax.pure_callback or jax.experimental.io_callback",
    "experimental.roofline": "use accnp.explain(f, *arguments), which compares a program with the "
    "limits of the hardware",
    "experimental.ann": "use jax.lax.approx_max_k",
    "experimental.djax": "use jax.jit, which traces each shape once and does not recompile for it",
    "experimental.global_device_array": "use jax.Array",
    "experimental.layout.DeviceLocalLayout": "use jax.experimental.layout.Layout",
    "experimental.loops": "use jax.lax.fori_loop, while_loop or scan",
    "experimental.vectorize": "use jnp.vectorize",
    "extend.core.primitives.xla_pmap_p": "pmap has no primitive; use jax.pmap",
    "extend.random.PRNGImpl": "generators cannot be defined by users; use jax.random.key(seed, "
    "impl=...) and jax.random.key_impl",
    "interpreters.batching.is_vmappable": "use isinstance(x, jax.Array)",
    "lax.infeed_p": "use jax.pure_callback or jax.experimental.io_callback",
    "lax.outfeed_p": "use jax.pure_callback or jax.experimental.io_callback",
    "lax.infeed": "use jax.pure_callback or jax.experimental.io_callback",
    "lax.outfeed": "use jax.pure_callback or jax.experimental.io_callback",
    "lax.random_gamma_grad_p": "use jax.lax.random_gamma_grad",
    "lax.tie_in": "it had no effect; use its second argument",
    "lib.xla_client": _BACKEND,
    "lib.xla_extension": "use jax.errors.JaxRuntimeError for XlaRuntimeError, and jax.distributed "
    "for the other names",
    "lib.pytree": "use jax.tree_util",
    "numpy.DeviceArray": "=array_type:Array",
    "numpy.trapz": "=numpy:trapezoid",
    "numpy.in1d": "use jnp.isin",
    "numpy.product": "use jnp.prod",
    "numpy.cumproduct": "use jnp.cumprod",
    "numpy.sometrue": "use jnp.any",
    "numpy.alltrue": "use jnp.all",
    "numpy.round_": "use jnp.round",
    "numpy.issubsctype": "use jnp.issubdtype",
    "numpy.msort": "use jnp.sort(x, axis=0)",
    "numpy.float": "use float, or jnp.float32",
    "numpy.int": "use int, or jnp.int32",
    "numpy.object": "use object",
    "numpy.complex": "use complex, or jnp.complex64",
    "random.KeyArray": "=key_array:PRNGKeyArray",
    "random.PRNGKeyArray": "=key_array:PRNGKeyArray",
    "random.PkeyKey": "use jax.random.PRNGKey",
    "random.shuffle": "=jax_compat.deprecated_functions:shuffle",
    "random.default_prng_impl": "use jax.config.jax_default_prng_impl",
    "sharding.PositionalSharding": _SHARDED,
    "sharding.OpShardingSharding": _SHARDED,
    "sharding.XLACompatibleSharding": "use jax.sharding.Sharding",
    "sharding.MeshPspecSharding": _SHARDED,
    "tree_util.AttributeKeyPathEntry": "use jax.tree_util.GetAttrKey",
    "tree_util.GetitemKeyPathEntry": "use jax.tree_util.DictKey or SequenceKey",
    "tree_util.KeyPathEntry": "use jax.tree_util.KeyEntry",
    "tree_util.register_keypaths": "use jax.tree_util.register_pytree_with_keys",
    "tree_util.tree_multimap": "=tree_util:tree_map",
    "tree_multimap": "=tree_util:tree_map",
    "xla_computation": "use jax.jit(f).lower(...)",
    "abstract_eval": "use jax.eval_shape",
}

_KEYS = "random functions take a key; use jax.random.{} with jax.random.key(seed)"
_RANDOM = {
    "rand": "uniform", "random": "uniform", "random_sample": "uniform", "randn": "normal",
    "standard_normal": "normal", "default_rng": "key", "RandomState": "key", "Generator": "key",
    "seed": "key", "get_state": "key_data", "set_state": "wrap_key_data",
    "random_integers": "randint", "integers": "randint", "standard_exponential": "exponential",
    "standard_gamma": "gamma", "standard_cauchy": "cauchy", "standard_t": "t",
}  # fmt: skip

_FILES = "use np.{}, and convert the result with jnp.asarray"
_HERE = "arrays are immutable, so sharing memory has no effect; remove the call"
_PLAIN = "use np.{}, which does not compute with arrays"
_NUMPY = {
    "random": "use jax.random, whose functions take a key: jax.random.normal(key, shape)",
    "ma": "masked arrays are not supported; use the where= argument of reductions, jnp.where, or "
    "functions such as jnp.nanmean",
    # For xarray, which calls lib.stride_tricks.sliding_window_view of an array's namespace.
    "lib": "=api.arrays.numpy_protocols:lib",
    "nditer": "use functions of whole arrays, or jnp.ndindex or jnp.ndenumerate",
    "nested_iters": "use functions of whole arrays, or jnp.ndindex",
    "flatiter": "use x.ravel()",
    "poly1d": "use jnp.polyval, polyadd, polymul, polyder, polyint, roots",
    "polynomial": "use jnp.polyval, polyadd, polymul, polyfit, roots",
    "matrix": "use jnp.array and the operator @",
    "asmatrix": "use jnp.atleast_2d and the operator @",
    "bmat": "use jnp.block",
    **dict.fromkeys(
        ("void", "recarray", "record", "rec"),
        "structured arrays are not supported; use one array for each field",
    ),
    "memmap": _FILES.format("memmap"),
    "fromregex": _FILES.format("fromregex"),
    **{
        name: f"arrays of strings are not supported; use np.{name}"
        for name in ("str_", "bytes_", "char", "strings")
    },
    "broadcast": "use jnp.broadcast_shapes or jnp.broadcast_arrays",
    "copyto": "arrays are immutable; use jnp.where(where, src, dst)",
    "putmask": "arrays are immutable; use jnp.where(mask, values, x) or x.at[mask].set(...)",
    "common_type": "use jnp.result_type",
    "mintypecode": "use jnp.result_type",
    "min_scalar_type": "use jnp.result_type",
    "real_if_close": "the dtype of a result cannot depend on values; use jnp.real",
    "emath": "the dtype of a result cannot depend on values; convert to a complex dtype first",
    "may_share_memory": _HERE,
    "shares_memory": _HERE,
    "seterr": "use jax.config.update('jax_debug_nans', True)",
    "geterr": "use jax.config.jax_debug_nans",
    "seterrcall": "use jax.config.update('jax_debug_nans', True)",
    "geterrcall": "use jax.config.update('jax_debug_nans', True)",
    **dict.fromkeys(
        ("datetime64", "timedelta64", "datetime_as_string", "datetime_data", "isnat"),
        "arrays of dates are not supported; use those of NumPy, or numbers of seconds",
    ),
    **dict.fromkeys(
        ("busday_count", "busday_offset", "busdaycalendar", "is_busday"),
        "arrays of dates are not supported; use those of NumPy",
    ),
    **dict.fromkeys(
        ("complex256", "clongdouble", "float128", "longdouble"),
        "extended precision is not supported; use float64 or complex128 with jax_enable_x64",
    ),
    **{
        name: _PLAIN.format(name)
        for name in (
            "ScalarType", "ctypeslib", "f2py", "get_include", "getbufsize", "info",
            "little_endian", "sctypeDict", "setbufsize", "show_config", "show_runtime", "test",
            "typecodes", "typename",
        )
    },
    "fft.test": _PLAIN.format("fft.test"),
    "linalg.test": _PLAIN.format("linalg.test"),
}  # fmt: skip

# Pallas: old names, and names for cores and kinds of memory that accnp does not have.
_CORES = "meshes of cores are not supported; use pallas_call, whose grid is a loop, or accnp.kernel"
_WAITS = (
    "kernels run on one thread with one memory, so copies are synchronous and need no semaphores; "
    "remove the call, or assign to the reference"
)
_PALLAS = {
    **{name: f"=jax_compat.pallas.masked_access:{name}_at" for name in ("load", "store", "swap")},
    **{
        name: f"=jax_compat.pallas.masked_access:{name}"
        for name in (
            "atomic_add",
            "atomic_and",
            "atomic_cas",
            "atomic_max",
            "atomic_min",
            "atomic_or",
            "atomic_xchg",
            "atomic_xor",
            "dot",
            "max_contiguous",
        )
    },
    **dict.fromkeys(("core_map", "delay", "kernel", "mosaic_gpu", "tpu_sc"), _CORES),
    **dict.fromkeys(
        (
            "semaphore",
            "semaphore_read",
            "semaphore_signal",
            "semaphore_wait",
            "DeviceIdType",
            "tpu.async_remote_copy",
            "tpu.core_barrier",
            "tpu.get_barrier_semaphore",
            "tpu.make_async_remote_copy",
            "tpu.semaphore_read",
            "tpu.semaphore_signal",
            "tpu.semaphore_wait",
        ),
        _WAITS,
    ),
    "get_global": _CORES,
    "pallas_call_p": "pallas_call has no primitive, it is recorded as a scan; see jax.make_jaxpr",
    "ops": "kernels for TPUs are not supported; use functions such as jax.nn.dot_product_attention",
    "select_ref": "use jax.lax.cond with branches that read references",
    "tpu.prng_seed": "pass a key as an operand and use jax.random",
    "tpu.prng_random_bits": "pass a key as an operand and use jax.random.bits",
    "tpu.repeat": "use jnp.tile",
    "tpu.TPUCompilerParams": "=jax_compat.pallas.device_names:CompilerParams",
    "tpu.TPUMemorySpace": "=jax_compat.pallas.device_names:TpuMemorySpace",
    "triton.TritonCompilerParams": "=jax_compat.pallas.device_names:TritonParams",
}

_HOST = "use np.asarray(x).{}"
_ARRAY = {
    "base": "arrays are never views; each is independent of those that it was computed from",
    "ctypes": _HOST.format("ctypes"),
    "data": "use memoryview(x), or x.unsafe_buffer_pointer()",
    "dump": "use jnp.save(file, x), or pickle.dump(x, file)",
    "dumps": "use pickle.dumps(x)",
    "fill": "arrays are immutable; use jnp.full_like(x, value), or x.at[...].set(value)",
    "flags": _HOST.format("flags"),
    "getfield": "use x.view(dtype)",
    "itemset": "arrays are immutable; use x.at[index].set(value)",
    "newbyteorder": "arrays have the byte order of the machine; use x.byteswap()",
    "numpy": "use np.asarray(x)",
    "partition": "arrays are immutable; use jnp.partition(x, kth)",
    "put": "arrays are immutable; use jnp.put(x, indices, values, inplace=False)",
    "resize": "arrays are immutable; use jnp.resize(x, shape)",
    "setfield": "arrays are immutable; use x.at[...].set(value)",
    "setflags": "arrays are immutable; np.array(x) makes a copy that can be changed",
    "strides": _HOST.format("strides"),
    "tofile": "use jnp.save(file, x), or np.asarray(x).tofile(file)",
    "tostring": "use x.tobytes()",
}

REMOVED_NAMES = {
    **{f"accnp.Array.{name}": what for name, what in _ARRAY.items()},
    **{f"accnp.{name}": what for name, what in _JAX.items()},
    **{f"accnp.experimental.pallas.{name}": what for name, what in _PALLAS.items()},
    **{f"accnp.numpy.{name}": what for name, what in _NUMPY.items()},
    **{f"accnp.random.{name}": _KEYS.format(today) for name, today in _RANDOM.items()},
}
# `accnp` has the names of `jax.numpy` too, so it gives the same advice, except for the names of its
# own modules.
REMOVED_NAMES |= {
    f"accnp.{name}": what
    for name, what in _NUMPY.items()
    if "." not in name and name not in ("lib", "random")
}
