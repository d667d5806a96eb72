"""Options: `config.update(name, value)`, environment variables, and context managers.

Input: the name of an option, with or without the prefix `jax_`, and a value. Output: attributes of
`config`. Each thread has its own attributes, so that a read is a plain attribute lookup. `update`
writes those of all threads, and a context manager those of its thread. Other modules can register
functions that check a value, or that are called after a change.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, overload

from accnp.docstrings import Sentinel
from accnp.forks import renewed
from accnp.lazy_imports import imported

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off", ""})
_FILTERS = ("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames")
_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


class IgnoredOptionWarning(UserWarning):
    """An option that has no effect in accnp was set to a value other than its default.

    The warning is issued once for each option, after the option is set, so that a program which
    turns warnings into errors can catch it. To silence it, use
    `warnings.filterwarnings("ignore", category=IgnoredOptionWarning)`.
    """


class Option:
    """An option and the values that it can have.

    `kind` is its type. `traced` options are part of the cache key of `jit`, and `ours` marks
    options that JAX does not have.
    """

    __slots__ = ("choices", "default", "kind", "least", "name", "ours", "traced")

    def __init__(
        self,
        name: str,
        kind: type,
        default: Any,
        choices: tuple[Any, ...] = (),
        traced: bool = False,
        ours: bool = False,
        least: int | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.choices = choices
        self.traced = traced
        self.ours = ours
        self.least = least

    def parse(self, value: Any) -> Any:
        """Convert a value to the type of the option; raises ValueError."""
        if self.kind is bool:
            if isinstance(value, str):
                if value.strip().lower() in _TRUE | _FALSE:
                    return value.strip().lower() in _TRUE
            elif value in (0, 1):
                return bool(value)
            raise self._invalid_value_error(value, "True or False")
        if value is None and self.default is None:
            return None
        if self.choices:
            # The string enums of JAX have the text in `.value`.
            text = getattr(value, "value", value)
            if text not in self.choices:
                raise self._invalid_value_error(
                    value, "one of " + ", ".join(map(repr, self.choices))
                )
            return text
        if self.kind in (int, float):
            try:
                number = self.kind(value)  # pyright: ignore
            except (TypeError, ValueError):
                raise self._invalid_value_error(value, f"a number ({self.kind.__name__})") from None
            if self.least is not None and number < self.least:
                raise self._invalid_value_error(value, f"{self.least} or more")
            return number
        if self.kind is str and not isinstance(value, str):
            if isinstance(value, os.PathLike):
                return os.fspath(value)
            raise self._invalid_value_error(value, "a string")
        return value

    def _invalid_value_error(self, value: Any, expected: str) -> ValueError:
        return ValueError(f"config: {self.name} cannot be set; got {value!r}; pass {expected}")


def _default_cache_dir() -> str:
    """Return the default folder of the kernel cache; "" if the user has no home folder.

    Relative values of XDG_CACHE_HOME are ignored, as its specification requires: they would select
    another folder, perhaps one of another user, in each working directory.
    """
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):
        root = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "accnp") if os.path.isabs(root) else ""


def default_threads() -> int:
    """Return the number of usable CPUs, limited by the CPU quota of the control groups."""
    return within_quota(usable_cpus())


def within_quota(cpus: int) -> int:
    """Return how many of some CPUs the control groups of this process allow to use at a time."""
    return cpus if _QUOTA is None else max(1, min(cpus, math.ceil(_QUOTA)))


def usable_cpus() -> int:
    """Return the number of CPUs that this process may run on."""
    return len(cpu_numbers())


def cpu_numbers() -> set[int]:
    """Return the numbers of the CPUs that this process may run on."""
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # not available on all systems
        return set(range(os.cpu_count() or 1))


def _quota(root: str = "/sys/fs/cgroup", groups: str = "/proc/self/cgroup") -> float | None:
    """Return the number of CPUs that the control groups of this process allow (Linux).

    This is the minimum over its group and all enclosing groups; None if there is no limit.
    """
    quotas = []
    try:
        with open(groups, errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", "other", "")
        if controllers and "cpu" not in controllers.split(","):
            continue
        # In a container, paths are those of the host, and the root is the group of the container.
        for folder in {f"{path[:i]}" for i, c in enumerate(f"{path}/") if c == "/"} | {""}:
            if controllers:  # version 1
                base = f"{root}/{controllers}{folder}"
                limit = [_read_words(f"{base}/cpu.cfs_{x}_us") for x in ("quota", "period")]
                words = [x[0] for x in limit if x]
            else:
                words = _read_words(f"{root}{folder}/cpu.max")
            if len(words) == 2 and all(map(str.isdecimal, words)) and int(words[1]):
                quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _read_words(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except (OSError, ValueError):  # missing, or not text
        return []


_QUOTA = _quota()  # read once, when the process starts

MATMUL = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "fastest",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "F32_F32_F32",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F16_F16_F32", "F64_F64_F64", "F16_F16_F16",
    "BF16_BF16_BF16", "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
)  # fmt: skip

_OPTIONS = [
    Option("enable_x64", bool, False, traced=True),
    Option("numpy_dtype_promotion", str, "standard", ("standard", "strict"), traced=True),
    Option("numpy_rank_promotion", str, "allow", ("allow", "warn", "raise"), traced=True),
    Option("debug_nans", bool, False, traced=True),
    Option("debug_infs", bool, False, traced=True),
    Option("debug_key_reuse", bool, False, traced=True),
    Option("disable_jit", bool, False, traced=True),
    Option("check_tracer_leaks", bool, False),
    Option("enable_checks", bool, False),
    Option("log_compiles", bool, False),
    Option("explain_cache_misses", bool, False),
    Option("log_checkpoint_residuals", bool, False),
    Option("no_tracing", bool, False),
    Option("default_device", object, None),
    Option("default_matmul_precision", str, None, MATMUL, traced=True),
    Option("default_prng_impl", str, "threefry2x32", traced=True),
    Option("threefry_partitionable", bool, True, traced=True),
    Option("enable_custom_prng", bool, False, traced=True),
    Option("legacy_prng_key", str, "allow", ("allow", "warn", "error")),
    Option("random_seed_offset", int, 0, traced=True),
    Option("check_static_indices", bool, False, traced=True),
    Option("explicit_x64_dtypes", str, "warn", ("warn", "error", "allow"), traced=True),
    Option("allow_f16_reductions", bool, True, traced=True),
    Option("no_execution", bool, False, traced=True),
    Option("softmax_custom_jvp", bool, False, traced=True),
    Option("traceback_filtering", str, "auto", _FILTERS),
    Option("tracer_error_num_traceback_frames", int, 5),
    Option("transfer_guard", str, None, _GUARDS),
    Option("transfer_guard_host_to_device", str, None, _GUARDS),
    Option("transfer_guard_device_to_device", str, None, _GUARDS),
    Option("transfer_guard_device_to_host", str, None, _GUARDS),
    Option("num_cpu_devices", int, -1),
    Option("platforms", str, None),
    Option("platform_name", str, ""),
    Option("cpu_enable_async_dispatch", bool, True),
    Option("enable_compilation_cache", bool, True),
    # Options of accnp only.
    Option("cache_dir", str, None, ours=True),
    Option("cache_max_bytes", int, 512 * 1024 * 1024, ours=True),
    # Bounds of the caches in memory, in entries; see docs/caches.md.
    Option("trace_cache_size", int, 4096, ours=True, least=1),
    Option("plan_cache_size", int, 4096, ours=True, least=1),
    Option("dispatch_cache_size", int, 1024, ours=True, least=1),
    Option("kernel_cache_size", int, 4096, ours=True, least=1),
    Option("type_cache_size", int, 4096, ours=True, least=1),
    Option("pool_max_bytes", int, None, ours=True, least=0),  # see runtime/buffer.py
    Option("threads", int, None, ours=True, least=1),
    Option("background_compilation", bool, True, ours=True),  # see compiler/background_compile.py
    Option("compiler", str, "llvm", ("llvm", "numba"), ours=True),  # see compiler/__init__.py
    Option("collective_timeout", float, 300.0, ours=True, least=0),  # see runtime/mpi.py
    Option("debug_collectives", bool, False, ours=True),
    # Sums over processes by MPI_Allreduce, whose order is not fixed.
    Option("mpi_allreduce", bool, False, traced=True, ours=True),
    Option("code_symbols", bool, False, ours=True),  # see compiler/code_symbols.py
    Option("fastmath", bool, False, traced=True, ours=True),
    Option("numpy_dispatch", bool, False, traced=True, ours=True),  # api/arrays/numpy_protocols.py
    Option("item_assignment", bool, False, traced=True, ours=True),  # numpy/assigning.py
    Option("fusion_limit", int, 20_000, traced=True, ours=True, least=0),  # compiler/fusion
    Option("user_contexts", object, None, traced=True, ours=True),  # see api/jit/user_contexts.py
    Option("user_globals", object, None, traced=True, ours=True),
    Option("kernel_overrides", object, None, traced=True, ours=True),  # api/kernels/override.py
    Option("debug", int, 0, (0, 1, 2, 3, 4, 5), ours=True),
]  # fmt: skip

# Options of JAX for XLA or for back ends that accnp does not have, with JAX's defaults. They can be
# set, but have no effect. A value other than the default causes a warning.
_IGNORED: dict[str, Any] = {
    "array_garbage_collection_guard": None,
    "auto_pcast": True,
    "backend_target": "",
    "bcoo_cusparse_lowering": False,
    "captured_constants_report_frames": 0,
    "captured_constants_warn_bytes": 2000000000,
    "check_proxy_envs": True,
    "check_vma": False,
    "compilation_cache_check_contents": False,
    "compilation_cache_expect_pgle": False,
    "compilation_cache_include_metadata_in_key": False,
    "compiler_detailed_logging_min_ops": 10,
    "compiler_enable_remat_pass": True,
    "cpu_collectives_implementation": "gloo",
    "cpu_get_global_topology_timeout_minutes": 5,
    "cpu_get_local_topology_timeout_minutes": 2,
    "cross_host_transfer_socket_address": "",
    "cross_host_transfer_timeout_seconds": None,
    "cross_host_transfer_transfer_size": None,
    "cross_host_transport_addresses": "",
    "cuda_visible_devices": "all",
    "custom_vjp3": False,
    "debug_leaked_clients_on_clear_backends": False,
    "debug_log_modules": "",
    "disable_bwd_checks": False,
    "disable_most_optimizations": False,
    "disable_vmap_shmap_error": False,
    "disallow_mesh_context_manager": False,
    "distributed_debug": False,
    "dump_ir_modes": "stablehlo",
    "dump_ir_to": "",
    "eager_constant_folding": False,
    "embedded_constants_max_bytes": 32,
    "enable_pgle": False,
    "enable_preemption_service": True,
    "enable_recoverability": False,
    "error_checking_behavior_divide": "ignore",
    "error_checking_behavior_nan": "ignore",
    "error_checking_behavior_oob": "ignore",
    "exec_time_optimization_effort": 0.0,
    "experimental_unsafe_xla_runtime_errors": False,
    "export_calling_convention_version": 10,
    "export_ignore_forward_compatibility": False,
    "force_dcn_cross_host_transfers": False,
    "high_dynamic_range_gumbel": False,
    "hlo_source_file_canonicalization_regex": None,
    "include_debug_info_in_dumps": True,
    "include_full_tracebacks_in_locations": True,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "logging_level": "NOTSET",
    "memory_fitting_effort": 0.0,
    "memory_fitting_level": "O2",
    "mock_gpu_topology": "",
    "mock_num_gpu_processes": 0,
    "mosaic_allow_hlo": False,
    "mutable_array_checks": True,
    "oneapi_visible_devices": "all",
    "optimization_level": "UNKNOWN",
    "pallas_enable_debug_checks": False,
    "pallas_poison_buffers": False,
    "pallas_use_mosaic_gpu": True,
    "pallas_verbose_errors": False,
    "persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "persistent_cache_min_compile_time_secs": 1.0,
    "persistent_cache_min_entry_size_bytes": 0,
    "pgle_aggregation_percentile": 90,
    "pgle_profiling_runs": 3,
    "pjrt_client_create_options": None,
    "pprint_use_color": True,
    "ragged_dot_use_gpu_pallas_triton_lowering": False,
    "ragged_dot_use_ragged_dot_instruction": True,
    "raise_persistent_cache_errors": False,
    "refs_to_pins": False,
    "remat3": False,
    "remove_custom_partitioning_ptr_from_cache_key": False,
    "remove_size_one_mesh_axis_from_type": False,
    "rocm_visible_devices": "all",
    "scan3": False,
    "send_traceback_to_runtime": "off",
    "serialization_version": 0,
    "share_binary_between_hosts": False,
    "share_binary_between_hosts_timeout_ms": 1200000,
    "sort_devices_by_process_index": True,
    "source_url_schema": None,
    "thread_guard": False,
    "threefry_gpu_kernel_lowering": False,
    "traceback_in_locations_limit": 100,
    "use_direct_linearize": True,
    "use_emit_pipeline_primitive": False,
    "use_magma": "auto",
    "use_shardy_partitioner": True,
    "use_simplified_jaxpr_constants": False,
    "xla_backend": "",
    "xla_profile_version": 0,
}
_OPTIONS += [Option(name, object, default) for name, default in _IGNORED.items()]
# Options that are read or checked, but for which other values have no effect.
_IGNORED |= {
    "cpu_enable_async_dispatch": True,
    "enable_custom_prng": False,
    "softmax_custom_jvp": False,
    "tracer_error_num_traceback_frames": 5,
}

OPTIONS: dict[str, Option] = {option.name: option for option in _OPTIONS}
# Other names of options.
_ALIASES = {
    "x64": "enable_x64",
    "x64_enabled": "enable_x64",
    "compilation_cache_dir": "cache_dir",
    "compilation_cache_max_size": "cache_max_bytes",
    "platform": "platforms",
    "pool_bytes": "pool_max_bytes",
}
_SPELLINGS = {
    name: tuple(
        prefix + spelling
        for spelling in (name, *(alias for alias, target in _ALIASES.items() if target == name))
        for prefix in (("",) if option.ours and spelling == name else ("", "jax_"))
    )
    for name, option in OPTIONS.items()
}
_TRACED = tuple(option.name for option in _OPTIONS if option.traced)


def _resolve(name: str) -> str:
    """Return the canonical name of an option; raises AttributeError with a similar name."""
    short = name.removeprefix("jax_").removeprefix("accnp_")
    short = _ALIASES.get(short, short)
    if short in OPTIONS:
        return short
    import difflib  # takes 5 ms, so it is imported for errors only

    near = difflib.get_close_matches(short, [*OPTIONS, *_ALIASES], n=1)
    if near:
        prefix = "jax_" if name.startswith("jax_") else ""
        hint = f"did you mean {prefix + near[0]!r}?"
    else:
        hint = "see accnp.config.values() for the names"
    raise AttributeError(f"config: Unrecognized config option: {name!r}; {hint}")


def _from_environment(option: Option) -> Any:
    prefixes = ("ACCNP_",) if option.ours else ("ACCNP_", "JAX_")
    names = [option.name, *(alias for alias, name in _ALIASES.items() if name == option.name)]
    for prefix in prefixes:
        for name in names:
            text = os.environ.get(prefix + name.upper())
            if text is None:
                continue
            value: Any = text
            if option.choices and isinstance(option.choices[0], int) and text.strip().isdigit():
                value = int(text)
            try:
                return option.parse(value)
            except ValueError as error:
                error.args = (f"{error}; it was read from the variable {prefix}{name.upper()}",)
                raise
    if option.name == "cache_dir":
        return _default_cache_dir()
    if option.name == "threads":
        return default_threads()
    return option.default


_lock = renewed(threading.RLock())
# Called after every change. They set flags for rare modes, so that hot paths test only the flags.
listeners: list[Callable[[], None]] = []
# Called before an option is changed for the whole process. They raise if the value is not allowed.
guards: dict[str, Callable[[Any], None]] = {}
# Called before an option is enabled, in one thread or in all.
preparations: dict[str, Callable[[], None]] = {}
_global: dict[str, Any] = {}
# Cached objects that depend on options compare `epoch["now"]`, which is a new object after each
# change for the whole process, and test that `scoped`, the changes by single threads, is empty.
epoch: dict[str, object] = {"now": object()}
scoped: list[_Setting] = []


class _Setting:
    """The value that a `with` block sets."""

    def __init__(self, value: Any) -> None:
        self.value = value


def new_epoch() -> None:
    """Invalidate objects that were cached for the current options and registrations."""
    epoch["now"] = object()


# The attribute dictionaries of all live threads, so that an update reaches each of them.
_threads: weakref.WeakKeyDictionary[threading.Thread, dict[str, Any]] = weakref.WeakKeyDictionary()


class Config(threading.local):
    """The options as attributes. Hot paths read `x64`, `promotion` and `key`."""

    x64: bool
    promotion: tuple[bool, str]  # x64 and numpy_dtype_promotion
    key: tuple[Any, ...]  # the values of traced options, which are part of the cache key of jit
    enable_x64: bool
    numpy_dtype_promotion: str
    traceback_filtering: str
    debug: int
    threads: int
    cache_dir: str
    background_compilation: bool
    compiler: str
    code_symbols: bool
    collective_timeout: float
    debug_collectives: bool
    mpi_allreduce: bool
    fastmath: bool
    numpy_dispatch: bool
    item_assignment: bool
    fusion_limit: int
    user_contexts: Any
    user_globals: Any
    kernel_overrides: Any

    def __init__(self) -> None:
        with _lock:
            if not _global:
                _global.update(
                    {name: _from_environment(option) for name, option in OPTIONS.items()}
                )
            mine = self.__dict__
            mine["_scoped"] = {}
            for name, value in _global.items():
                _write(mine, name, value)
            _refresh(mine)
            _threads[threading.current_thread()] = mine

    def update(self, name: str, value: object) -> None:
        """Set an option for the whole process.

        Parameters
        ----------
        name : str
            Name of the option, with or without the prefix "jax_".
        value : object
            New value, as text or in the type of the option.

        Raises
        ------
        AttributeError
            If the option is unknown. The message names the nearest one.
        ValueError
            If the option cannot have this value.

        See Also
        --------
        config.read : Value of an option.
        config.values : Values of all options.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.config.update("jax_debug_nans", True)
        >>> jnp.config.read("jax_debug_nans")
        True
        >>> jnp.config.update("jax_debug_nans", False)
        """
        name = _resolve(name)
        value = OPTIONS[name].parse(value)
        if name in guards:
            guards[name](value)
        if value and name in preparations:
            preparations[name]()
        if value is None and name in ("threads", "cache_dir"):
            value = default_threads() if name == "threads" else _default_cache_dir()
        with _lock:
            _global[name] = value
            for mine in list(_threads.values()):
                if not mine["_scoped"].get(name):
                    _write(mine, name, value)
                    _refresh(mine)
            new_epoch()  # after the values, so that a new epoch implies new values
            _notify_listeners()
        if name in _IGNORED:
            _warn_ignored(name, value)

    def read(self, name: str) -> Any:
        """Return the value of an option in this thread.

        Parameters
        ----------
        name : str
            Name of the option, with or without the prefix "jax_".

        Returns
        -------
        object
            Current value.

        Raises
        ------
        AttributeError
            If the option is unknown. The message names the nearest one.

        See Also
        --------
        config.update : Set an option.
        config.values : Values of all options.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.config.read("jax_enable_x64")
        False
        """
        return self.__dict__[_resolve(name)]

    def values(self) -> dict[str, Any]:
        """Return all options and their values in this thread.

        Returns
        -------
        dict
            Names and values.

        See Also
        --------
        config.read : Value of one option.
        config.update : Set an option.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.config.values()["debug_nans"]
        False
        """
        return {name: self.__dict__[name] for name in OPTIONS}

    @property
    def config_with_absl(self) -> Any:
        """The function that defines a flag of absl for each option."""
        return imported("accnp.command_line_flags").config_with_absl

    @property
    def parse_flags_with_absl(self) -> Any:
        """The function that sets options by the flags of the command line."""
        return imported("accnp.command_line_flags").parse_flags_with_absl

    @property
    def config(self) -> Config:
        """The options themselves, for programs that use `jax.config.config`."""
        return self

    @property
    def FLAGS(self) -> Any:
        """Not supported; JAX had this attribute."""
        raise AttributeError(
            "config has no attribute 'FLAGS': options are attributes of config itself; "
            "set them with config.update(name, value)"
        )

    # There is no __getattr__, because it makes every read slower (0.16 instead of 0.06 us).

    def anywhere(self, name: str) -> list[Any]:
        """Return the values of an option in the process and in each of its threads."""
        with _lock:
            return [_global[name], *[mine[name] for mine in list(_threads.values())]]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"config: attributes are read-only; got an assignment to {name!r}; "
            f"call config.update({name!r}, {value!r})"
        )

    def __repr__(self) -> str:
        changed = {n: v for n, v in self.values().items() if v != OPTIONS[n].default}
        return f"Config({', '.join(f'{n}={v!r}' for n, v in changed.items())})"


def _write(mine: dict[str, Any], name: str, value: Any) -> None:
    for spelling in _SPELLINGS[name]:
        mine[spelling] = value


def _refresh(mine: dict[str, Any]) -> None:
    mine["promotion"] = (mine["enable_x64"], mine["numpy_dtype_promotion"])
    mine["key"] = tuple([mine[name] for name in _TRACED])


def _notify_listeners() -> None:
    for listener in listeners:
        listener()


_warned: set[str] = set()


def _warn_ignored(name: str, value: Any) -> None:
    if value != _IGNORED[name]:
        warn_once(
            f"config: the option {name} has no effect in accnp; got {value!r}; to silence this "
            "warning, ignore accnp.config.IgnoredOptionWarning",
            name,
        )


def warn_once(text: str, name: str) -> None:
    """Warn once in this process that an option is ignored."""
    if name in _warned:
        return
    _warned.add(name)
    imported("accnp.errors").warn(text, IgnoredOptionWarning)  # a module that imports this one


@contextlib.contextmanager
def scope(name: str, value: Any) -> Iterator[None]:
    """Set an option for this thread inside a `with` block (or a decorated function)."""
    name = _resolve(name)
    value = OPTIONS[name].parse(value)
    if name in _IGNORED:
        _warn_ignored(name, value)
    if value and name in preparations:
        preparations[name]()
    config.x64  # noqa: B018 - creates the attribute dictionary of this thread
    mine = config.__dict__
    setting = _Setting(value)
    try:
        mine["_scoped"].setdefault(name, []).append(setting)
        scoped.append(setting)
        _write(mine, name, value)
        _refresh(mine)
        _notify_listeners()
        yield
    finally:
        try:
            _undo(mine, name, setting)
        except BaseException:  # raised by a signal handler: a second call completes the work
            _undo(mine, name, setting)
            raise


def _undo(mine: dict[str, Any], name: str, setting: _Setting) -> None:
    with _lock:
        values: list[_Setting] = mine["_scoped"].get(name, [])
        if setting in values:
            values.remove(setting)
        _write(mine, name, values[-1].value if values else _global[name])
        _refresh(mine)
        if setting in scoped:
            scoped.remove(setting)
        _notify_listeners()


_REQUIRED = Sentinel("<required>")


if TYPE_CHECKING:

    class Switch(Protocol):
        """Enables or disables an option while a `with` block runs."""

        def __call__(self, new_val: bool = True) -> contextlib.AbstractContextManager[None]: ...

    class Setter(Protocol):
        """Sets an option to one of its values while a `with` block runs."""

        def __call__(self, new_val: object) -> contextlib.AbstractContextManager[None]: ...


@overload
def _switch(name: str, effect: str) -> Setter: ...
@overload
def _switch(name: str, effect: str, default: bool) -> Switch: ...
def _switch(name: str, effect: str, default: object = _REQUIRED) -> Any:
    def switch(new_val: object = default) -> contextlib.AbstractContextManager[None]:
        if new_val is _REQUIRED:
            raise TypeError(f"{name}: the value is missing; pass it, as in `with {name}(value):`")
        return scope(name, new_val)

    option = OPTIONS[name]
    values = "bool" if default is True else " or ".join(map(repr, option.choices)) or "object"
    if len(values) > 60:
        values = "str"
    optional = "" if default is _REQUIRED else ", optional"
    left = "" if default is _REQUIRED else f" The default is {default}."
    missing = "    TypeError\n        If the value is missing.\n" if default is _REQUIRED else ""
    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"""Context manager that sets the option `{name}` in this thread.

    {effect}

    Parameters
    ----------
    new_val : {values}{optional}
        Setting of the option inside the `with` block.{left}

    Returns
    -------
    context manager
        Sets the option on entry and restores it on exit. It can also decorate a function.

    Raises
    ------
{missing}    ValueError
        If the option cannot have this value.

    See Also
    --------
    config.update : Set an option for the whole process.

    Notes
    -----
    The shapes of results do not depend on options, and dtypes only on those about types.

    Examples
    --------
    >>> from accnp.config import config, {name}
    >>> with {name}(config.{name}):
    ...     pass
    """
    return switch


config = Config()

_IGNORED_HERE = "It has no effect in accnp, and causes a warning; present for compatibility."

enable_x64 = _switch("enable_x64", "If True, dtypes have 64 bits by default; otherwise 32.", True)
debug_nans = _switch("debug_nans", "If True, raise an error if an operation returns NaN.", True)
debug_infs = _switch(
    "debug_infs", "If True, raise an error if an operation returns an infinity.", True
)
debug_key_reuse = _switch(
    "debug_key_reuse", "If True, raise an error if a PRNG key is used more than once.", True
)
check_tracer_leaks = checking_leaks = _switch(
    "check_tracer_leaks", "If True, raise an error if a traced array outlives its trace.", True
)
enable_checks = _switch("enable_checks", "If True, verify the IR of each new plan.", True)
enable_custom_prng = _switch("enable_custom_prng", _IGNORED_HERE, True)
log_compiles = _switch("log_compiles", "If True, log each compilation of a function.", True)
explain_cache_misses = _switch(
    "explain_cache_misses", "If True, log why a jitted function is traced again.", True
)
fastmath = _switch(
    "fastmath", "If True, the compiler may reorder and contract floating-point arithmetic.", True
)
numpy_dispatch = _switch(
    "numpy_dispatch",
    "If True, functions of NumPy call the functions of `accnp.numpy` with the same names for "
    "accnp arrays.",
    True,
)
item_assignment = _switch(
    "item_assignment",
    "If True, `x[index] = values` makes the array object `x` hold the result of "
    "`x.at[index].set(values)`.",
    True,
)
softmax_custom_jvp = _switch("softmax_custom_jvp", _IGNORED_HERE, True)
threefry_partitionable = _switch(
    "threefry_partitionable",
    "If True, the default, threefry counts elements so that a part of a sample can be drawn "
    "independently.",
    True,
)
no_tracing = _switch("no_tracing", "If True, raise an error if a jitted function is traced.", True)
numpy_dtype_promotion = _switch(
    "numpy_dtype_promotion", "With 'strict', operands of different dtypes are an error."
)
numpy_rank_promotion = _switch(
    "numpy_rank_promotion",
    "Whether broadcasting operands of different rank is allowed, a warning or an error.",
)
default_device = _switch("default_device", "Device on which arrays are created by default.")
default_matmul_precision = _switch(
    "default_matmul_precision", "Precision of matrix products that do not name one."
)
default_prng_impl = _switch("default_prng_impl", "Generator of PRNG keys that do not name one.")
legacy_prng_key = _switch(
    "legacy_prng_key", "Whether raw uint32 PRNG keys are allowed, a warning or an error."
)
cache_dir = _switch("cache_dir", "Folder in which compiled kernels are stored.")
debug = _switch("debug", "Amount of debug logging, from 0 (none) to 5.")
transfer_guard_host_to_device = _switch(
    "transfer_guard_host_to_device", "How transfers from the host to devices are treated."
)
transfer_guard_device_to_device = _switch(
    "transfer_guard_device_to_device", "How transfers between devices are treated."
)
transfer_guard_device_to_host = _switch(
    "transfer_guard_device_to_host", "How transfers from devices to the host are treated."
)
allow_f16_reductions = _switch(
    "allow_f16_reductions", "If False, reductions that would be computed in float16 fail.", True
)
array_garbage_collection_guard = _switch("array_garbage_collection_guard", _IGNORED_HERE)
auto_pcast = _switch("auto_pcast", _IGNORED_HERE, True)
jax2tf_associative_scan_reductions = _switch(
    "jax2tf_associative_scan_reductions", _IGNORED_HERE, True
)
no_execution = _switch("no_execution", "If True, raise an error if a jitted function runs.", True)
remove_size_one_mesh_axis_from_type = _switch(
    "remove_size_one_mesh_axis_from_type", _IGNORED_HERE, True
)
thread_guard = _switch("thread_guard", _IGNORED_HERE, True)


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """Context manager that runs jitted functions operation by operation in this thread.

    Values, shapes and dtypes do not change. Errors point at the line of the function that failed.

    Parameters
    ----------
    disable : bool, optional
        Value of the option inside the `with` block. The default is True.

    Returns
    -------
    context manager
        Sets the option on entry and restores it on exit.

    Raises
    ------
    ValueError
        If the value is not True or False.

    See Also
    --------
    jit : Compile a function.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.disable_jit():
    ...     jnp.jit(lambda x: x + 1)(1)
    2
    """
    return scope("disable_jit", disable)


def transfer_guard(new_val: str) -> contextlib.AbstractContextManager[None]:
    """Context manager that sets how transfers between host and devices are treated in this thread.

    Parameters
    ----------
    new_val : str
        "allow", "log" or "disallow" for implicit transfers; "log_explicit" or "disallow_explicit"
        for all transfers.

    Returns
    -------
    context manager
        Sets the option on entry and restores it on exit.

    Raises
    ------
    ValueError
        If the value is not one of these.

    See Also
    --------
    transfer_guard_host_to_device : Only for transfers to devices.
    transfer_guard_device_to_host : Only for transfers to the host.
    device_put : Explicit transfer to a device.

    Notes
    -----
    Shapes and dtypes do not depend on it.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.transfer_guard("allow"):
    ...     x = jnp.ones(2)
    """
    return scope("transfer_guard", new_val)


def threads(number: int | None) -> contextlib.AbstractContextManager[None]:
    """Context manager that sets the number of threads of kernels, Fourier transforms and BLAS.

    It applies to everything recorded in the `with` block of this thread, even if it is computed
    later. Results do not depend on it.

    Parameters
    ----------
    number : int or None
        Number of threads, at least 1. None is the number of CPUs that the process may use.

    Returns
    -------
    context manager
        Sets the option on entry and restores it on exit.

    Raises
    ------
    ValueError
        If the number is less than 1.

    See Also
    --------
    config.update : Set an option for the whole process.

    Notes
    -----
    `ACCNP_THREADS` and `config.update("threads", n)` set it for the whole process. BLAS has one
    number for the process: the last one that was set.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.threads(1):
    ...     total = float(jnp.arange(1_000_000.0).sum())
    """
    return scope("threads", default_threads() if number is None else number)
