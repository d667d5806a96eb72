"""accnp.config: names, values, environment, threads, scopes."""

import contextlib
import os
import subprocess
import sys
import threading

import jax
import pytest

from accnp.config import config
from accnp.runtime import device

# `accnp.config` as an attribute is the object with the switches, not the module.
switches = sys.modules["accnp.config"]


@pytest.fixture(autouse=True)
def _restore():
    before = config.values()
    yield
    for name, value in before.items():
        config.update(name, value)


def run(code, **environment):
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-c", "from accnp.config import config\n" + code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )


def test_update_with_and_without_prefix():
    for name in ("jax_enable_x64", "enable_x64", "x64"):
        config.update(name, True)
        assert config.x64
        assert config.jax_enable_x64
        assert config.enable_x64
        assert config.x64_enabled
        config.update(name, False)
        assert not config.x64
    assert config.read("jax_enable_x64") is False


# Options that jax has once its other modules have been imported, or on other machines.
LATER = [
    "check_vma", "eager_constant_folding", "jax2tf_default_native_serialization",
    "jax_cross_host_transfer_socket_address", "jax_debug_leaked_clients_on_clear_backends",
    "jax_disallow_mesh_context_manager", "jax_force_dcn_cross_host_transfers",
    "jax_oneapi_visible_devices", "jax_pallas_enable_debug_checks", "jax_pallas_poison_buffers",
    "jax_pallas_use_mosaic_gpu", "jax_pallas_verbose_errors", "jax_use_emit_pipeline_primitive",
    "mock_num_gpu_processes",
]  # fmt: skip


def test_every_option_of_jax_is_known():
    unknown = []
    for name in {*jax.config.values, *LATER}:
        try:
            config.read(name)
        except AttributeError:
            unknown.append(name)
    assert unknown == []


def test_unknown_names_raise_with_the_nearest():
    with pytest.raises(AttributeError, match="jax_enable_x64"):
        config.update("jax_enable_x65", True)
    with pytest.raises(AttributeError, match="'fastmath'"):
        config.read("fastmaths")
    with pytest.raises(AttributeError, match="fastmaths"):
        _ = config.fastmaths
    with pytest.raises(AttributeError, match=r"values\(\)"):
        config.read("qqqqqq")


def test_attributes_are_read_only():
    with pytest.raises(AttributeError, match=r"config.update\('jax_enable_x64', True\)"):
        config.jax_enable_x64 = True
    assert not config.x64


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("enable_x64", "maybe", "True or False"),
        ("enable_x64", 2, "True or False"),
        ("numpy_rank_promotion", "maybe", "'allow', 'warn', 'raise'"),
        ("numpy_dtype_promotion", None, "'standard', 'strict'"),
        ("threads", "many", "a number"),
        ("debug", 9, "one of 0, 1, 2"),
        ("cache_dir", 3, "a string"),
    ],
)
def test_bad_values(name, value, message):
    before = config.read(name)
    with pytest.raises(ValueError, match=message):
        config.update(name, value)
    assert config.read(name) == before


def test_values_are_converted():
    config.update("enable_x64", "on")
    assert config.x64 is True
    config.update("threads", "3")
    assert config.threads == 3
    config.update("threads", None)
    assert config.threads >= 1
    config.update("numpy_dtype_promotion", jax.config.jax_numpy_dtype_promotion)
    assert config.numpy_dtype_promotion == "standard"


def test_scopes_nest_and_restore():
    with switches.enable_x64():
        assert config.x64
        with switches.enable_x64(False):
            assert not config.x64
            config.update("enable_x64", True)  # the inner scope still wins here
            assert not config.x64
        assert config.x64
    assert config.x64  # the update is seen after the scopes
    config.update("enable_x64", False)
    assert not config.x64


def test_scope_is_left_on_error():
    with contextlib.suppress(KeyError), switches.debug_nans(True):
        assert config.debug_nans
        raise KeyError
    assert not config.debug_nans


def test_scope_decorates():
    @switches.enable_x64(True)
    def inside():
        return config.x64

    assert inside()
    assert inside()
    assert not config.x64


def test_scope_without_needed_value():
    with pytest.raises(TypeError, match="numpy_dtype_promotion"):
        switches.numpy_dtype_promotion()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable_x64", True), ("debug_nans", True), ("debug_infs", True), ("disable_jit", True),
        ("fastmath", True), ("numpy_dtype_promotion", "strict"), ("numpy_rank_promotion", "raise"),
        ("default_matmul_precision", "highest"), ("default_device", object()), ("threads", 2),
        ("transfer_guard", "log"), ("debug", 3), ("default_prng_impl", "rbg"),
        ("log_compiles", True),
        ("cache_dir", "/nowhere"), ("check_tracer_leaks", True),
    ],
)  # fmt: skip
def test_each_scope_sets_its_option(name, value):
    before = config.read(name)
    with getattr(switches, name)(value):
        assert config.read(name) == value
    assert config.read(name) == before


def test_gpu_possible_follows_the_default_device_scope():
    assert not device.gpu_possible
    with switches.default_device("gpu"):
        assert device.gpu_possible
    assert not device.gpu_possible


def test_threads_see_updates_but_not_scopes():
    seen = {}
    ready, go = threading.Event(), threading.Event()

    def other():
        seen["first"] = config.x64
        ready.set()
        go.wait(10)
        seen["second"] = config.x64, config.fastmath, config.key

    thread = threading.Thread(target=other)
    with switches.enable_x64():
        thread.start()
        ready.wait(10)
        config.update("fastmath", True)
        go.set()
        thread.join()
        assert config.x64
        assert config.fastmath
    assert seen["first"] is False
    assert seen["second"][:2] == (False, True)
    assert seen["second"][2] == config.key


def test_key_changes_with_what_changes_recording():
    before = config.key
    for scope in (
        switches.enable_x64(),
        switches.fastmath(),
        switches.numpy_dtype_promotion("strict"),
    ):
        with scope:
            assert config.key != before
            hash(config.key)
        assert config.key == before
    with switches.debug(2):
        assert config.key == before


@pytest.mark.parametrize("name", ["JAX_ENABLE_X64", "ACCNP_ENABLE_X64", "ACCNP_X64"])
@pytest.mark.parametrize(("text", "expected"), [("1", "True"), ("true", "True"), ("0", "False")])
def test_environment_x64(name, text, expected):
    assert run("print(config.x64)", **{name: text}).stdout.strip() == expected


def test_environment_of_other_options(tmp_path):
    code = "print(config.debug, config.threads, config.cache_dir, config.numpy_dtype_promotion)"
    done = run(
        code,
        ACCNP_DEBUG="3",
        ACCNP_THREADS="5",
        ACCNP_CACHE_DIR=str(tmp_path),
        JAX_NUMPY_DTYPE_PROMOTION="strict",
    )
    assert done.stdout.split() == ["3", "5", str(tmp_path), "strict"]


def test_cache_dir_default(tmp_path):
    completed = run("print(config.cache_dir)", XDG_CACHE_HOME=str(tmp_path), ACCNP_CACHE_DIR="")
    assert completed.returncode == 0
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    code = "import os; os.environ.pop('ACCNP_CACHE_DIR', None)\nfrom accnp.config import config"
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", code + "\nprint(config.cache_dir)"],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(tmp_path / "accnp")


def test_bad_environment_names_the_option():
    done = run("print(config.x64)", JAX_ENABLE_X64="maybe")
    assert done.returncode != 0
    assert "enable_x64" in done.stderr
    assert "'maybe'" in done.stderr


def test_repr_shows_changes():
    with switches.fastmath():
        assert "fastmath=True" in repr(config)
