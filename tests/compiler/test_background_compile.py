"""Kernels in two tiers: unoptimized code for the first calls, then optimized code; same bits."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp.compiler import background_compile, cache_state, kernel_cache
from accnp.compiler.llvm import objects
from accnp.config import cache_dir, scope

BY_LLVM = True

BOTH_TIERS = True
SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.3, 2.5, 7.0, -30.0, 1e-40, 3e38, np.inf, -np.inf, np.nan]


@pytest.fixture
def no_upgrades(monkeypatch):
    """No thread upgrades kernels: `kernel_cache.wait_for_background()` does."""
    kernel_cache.wait_for_background()
    if (
        thread := background_compile._thread
    ) is not None:  # that of a test before may not have ended yet
        thread.join()
    monkeypatch.setattr(background_compile, "_thread", object())
    with cache_dir(""):
        yield
        kernel_cache.wait_for_background()


@pytest.fixture
def no_disk():
    with cache_dir(""):
        yield


def fresh(f):
    """A jitted function, and what gives the kernels that were made since."""
    before = set(kernel_cache._kernels)
    return accnp.jit(f), lambda: [
        k for key, k in kernel_cache._kernels.items() if key not in before
    ]


def forget():
    for kernels in (kernel_cache._kernels, kernel_cache._alive):  # plans may keep some alive
        for key in [key for key in kernels if key[1] == "kernel"]:
            kernels.pop(key, None)


def program(x):
    return jnp.tanh(x) * 2 + x.sum(0)


def test_optimized_code_replaces_first_tier(no_upgrades):
    forget()
    x = jnp.asarray(np.linspace(-3, 3, 1024, dtype=np.float32).reshape(32, 32))
    f, kernels = fresh(program)
    compiles = kernel_cache.counters.compiles
    first = np.asarray(f(x))
    quick = {k: k.address for k in kernels()}
    assert (
        len(background_compile._waiting)
        == len(quick)
        == kernel_cache.counters.compiles - compiles
        == 2
    )
    for _ in range(40):  # some in machine code, with the addresses in a table
        np.testing.assert_array_equal(np.asarray(f(x)), first)
    kernel_cache.wait_for_background()
    assert not background_compile._waiting
    assert all(k.address != address for k, address in quick.items())
    for _ in range(40):
        np.testing.assert_array_equal(np.asarray(f(x)), first)
    forget()  # a plan made now has the new addresses
    with scope("background_compilation", False):
        np.testing.assert_array_equal(np.asarray(accnp.jit(program)(x)), first)
    assert not background_compile._waiting


@pytest.mark.parametrize(
    ("size", "vectors", "waits"),
    [(1 << 10, False, 1), (1 << 20, True, 1), (1 << 20, False, 0), (1 << 23, True, 0)],
)
def test_longer_kernels_start_in_the_first_tier_if_they_are_vector_code(
    no_upgrades, monkeypatch, size, vectors, waits
):
    monkeypatch.setattr(objects, "is_vector_code", lambda text, linked: vectors)
    forget()
    f, _ = fresh(lambda x: x * 3 - 1)
    f(np.zeros(size, np.float32)).block_until_ready()
    assert len(background_compile._waiting) == waits


def test_calls_by_first_tier_address_reach_optimized_code(no_upgrades):
    forget()
    f, kernels = fresh(lambda x: x * 3 - 1)
    x = jnp.asarray(np.arange(10.0))
    first = np.asarray(f(x))
    (upgrade,) = background_compile._waiting
    seen = []
    spy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        lambda *arguments: seen.append(arguments[2:])
    )
    word = ctypes.c_int64.from_address(upgrade.slot)
    assert word.value == 0
    word.value = ctypes.cast(spy, ctypes.c_void_p).value
    f(x).block_until_ready()
    assert [n for n, _ in seen] == [10]
    kernel_cache.wait_for_background()
    (kernel,) = kernels()
    assert word.value == kernel.address
    np.testing.assert_array_equal(np.asarray(f(x)), first)
    assert len(seen) == 1


UNARY = """
abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv
erfc exp exp2 expm1 floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin
sinh sqrt square tan tanh
"""
BINARY = "add atan2 div eq ge gt igamma igammac le lt max min mul ne nextafter pow rem sub"


@pytest.mark.parametrize("x64", [False, True])
def test_both_tiers_have_the_same_bits(no_upgrades, x64):
    def all_of(x, y):
        one = [getattr(accnp.lax, n)(x) for n in UNARY.split()]
        two = [getattr(accnp.lax, n)(x, y) for n in BINARY.split()]
        return [*one, *two, x.sum(), x.max(), x @ y.T]

    with accnp.enable_x64(x64):
        forget()
        rng = np.random.default_rng(5)
        values = np.concatenate([SPECIAL, rng.standard_normal(11) * 5])
        grid = np.meshgrid(values, values)
        x, y = (jnp.asarray(g.ravel()[: 24 * 24].reshape(24, 24)) for g in grid)
        f = accnp.jit(all_of)
        quick = [np.asarray(r) for r in f(x, y)]
        assert background_compile._waiting
        kernel_cache.wait_for_background()
        whole = [np.asarray(r) for r in f(x, y)]
    names = [*UNARY.split(), *BINARY.split(), "sum", "max", "matmul"]
    for name, a, b in zip(names, quick, whole, strict=True):
        # Which of two nans an operation returns depends on the processor: their bits may differ.
        np.testing.assert_array_equal(a, b, err_msg=name)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]), name)


def test_long_looping_or_precompiled_kernels_skip_first_tier(no_upgrades):
    x, large = (jnp.asarray(np.ones(n, np.float32)) for n in (50, 2_000_000))

    def starts(f, *args):
        forget()
        f(*args)
        waiting = len(background_compile._waiting)
        kernel_cache.wait_for_background()
        return waiting

    def go(f):
        return lambda *args: accnp.block_until_ready(accnp.jit(f)(*args))

    assert starts(go(lambda x: x * 2 + 7), x) == 1
    assert starts(go(lambda x: x * 2 + 7), large) == 0
    assert starts(go(lambda x: accnp.lax.fori_loop(0, 5, lambda i, c: c * 2 + i, x)), x) == 0
    assert starts(lambda x: accnp.jit(lambda x: x * 2 + 8).lower(x).compile()(x), x) == 0
    with scope("fastmath", True):  # the tiers would contract other products and sums
        assert starts(go(lambda x: x * x * 2 + x.sum()), x) == 0
    with accnp.threads(1):  # it would have none to itself
        assert starts(go(lambda x: x * 2 + 7), x) == 0
    with scope("background_compilation", False):
        assert starts(go(lambda x: x * 2 + 7), x) == 0


def test_background_thread_optimizes_without_request(no_disk):
    forget()
    f, kernels = fresh(lambda x: jnp.sin(x) - x.mean())
    x = jnp.arange(20.0)
    first = np.asarray(f(x))
    kernel_cache.wait_for_background()
    assert not background_compile._waiting
    assert not background_compile._under_way
    assert background_compile._thread is None or background_compile._thread.daemon
    np.testing.assert_array_equal(np.asarray(f(x)), first)
    assert kernels()


def test_kernel_keeps_first_tier_if_optimization_fails(no_upgrades, monkeypatch, capsys):
    forget()
    f, _ = fresh(lambda x: jnp.cos(x) - 4)
    x = jnp.arange(20.0)
    first = np.asarray(f(x))

    def refuses(bitcode):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(objects, "build_optimized", refuses)
    with scope("debug", 1):
        kernel_cache.wait_for_background()
    assert "not optimized: RuntimeError: no such instruction" in capsys.readouterr().err
    np.testing.assert_array_equal(np.asarray(f(x)), first)
    assert not background_compile._waiting


SHORT = """
import accnp.numpy as jnp
from accnp import counters, jit
print(float(jit(lambda x: jnp.tanh(x * 2).sum())(jnp.ones(30))), counters()["disk_hits"])
"""


def test_optimized_code_is_cached_on_disk(tmp_path):
    run = [sys.executable, "-c", SHORT]
    env = os.environ | {"ACCNP_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert first[0] == second[0]
    assert first[1] == "0"
    assert int(second[1]) > 0


def test_fork_waits_for_pending_optimizations(no_disk, monkeypatch):
    monkeypatch.setattr(background_compile, "PATIENCE", 100.0)  # other tests have the processors
    forget()
    f, _ = fresh(lambda x: jnp.exp(x) - 4)
    x = jnp.asarray(np.arange(20.0))
    first = np.asarray(f(x))
    pid = os.fork()
    if not pid:
        same = (
            (np.asarray(f(x)) == first).all()
            and not background_compile._waiting
            and not background_compile._paused
        )
        os._exit(0 if same else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert not background_compile._paused


def test_forked_child_continues_pending_optimizations(no_upgrades, monkeypatch):
    monkeypatch.setattr(background_compile, "PATIENCE", 0)
    forget()
    f, _ = fresh(lambda x: jnp.exp(x) - 4)
    x = jnp.asarray(np.arange(20.0))
    first = np.asarray(f(x))
    waiting = len(background_compile._waiting)
    assert waiting
    pid = os.fork()
    if not pid:
        with_it = accnp.jit(lambda x: jnp.sin(x) * 3 - 4)(x).block_until_ready()
        kernel_cache.wait_for_background()
        same = (
            (np.asarray(f(x)) == first).all()
            and not background_compile._waiting
            and len(with_it) == 20
        )
        os._exit(0 if same else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(background_compile._waiting) == waiting
    assert not background_compile._paused


def test_failed_optimization_does_not_block_others(no_disk):
    source = "def kernel(a):\n    return a.nonsense(\n"
    for _ in range(2):
        with pytest.raises((ValueError, kernel_cache.CompileError)):
            kernel_cache.get_kernel(source, "kernel", ("int64",))
    assert not cache_state.is_compiling()


def test_long_run_switches_to_optimized_code(no_upgrades):
    """Code of the first tier is up to four times slower, which such a run would be to its end."""
    # What one program does to arrays of several lengths is one kernel.
    small, large = (jnp.asarray(np.ones(n, np.float32)) for n in (50, 2_000_000))
    for together in ([small], [large, small], [small, large]):
        forget()
        f, kernels = fresh(lambda *args: [x * 2 + 9 for x in args])
        accnp.block_until_ready(f(*together))
        (kernel,) = kernels()
        assert len(background_compile._waiting) == (len(together) == 1)
        address = kernel.address
        np.testing.assert_array_equal(np.asarray(f(*[large] * len(together))[-1])[-3:], [11] * 3)
        assert not background_compile._waiting
        assert (kernel.address == address) == (len(together) == 2)
        kernel_cache.wait_for_background()


def test_interrupted_optimization_is_queued_again(no_upgrades, monkeypatch):
    forget()
    f, _ = fresh(lambda x: jnp.cos(x) - 5)
    f(jnp.arange(20.0)).block_until_ready()

    def stopped(bitcode):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(objects, "build_optimized", stopped)
        with pytest.raises(KeyboardInterrupt):
            kernel_cache.wait_for_background()
    assert background_compile._waiting
    assert not background_compile._under_way
    kernel_cache.wait_for_background()
    assert not background_compile._waiting


@pytest.mark.parametrize(
    ("platform", "own", "set_to"),
    [("linux", 0, [background_compile._NICE]), ("linux", 15, [15]), ("darwin", 0, [])],
)
def test_worker_has_lower_priority_than_the_program(
    no_upgrades, monkeypatch, platform, own, set_to
):
    seen = []
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "getpriority", lambda *which: own, raising=False)
    monkeypatch.setattr(os, "setpriority", lambda *which: seen.append(which), raising=False)
    background_compile._run_worker()
    assert [value for *_, value in seen] == set_to


def test_full_queue_compiles_optimized_code_directly(no_upgrades, monkeypatch):
    monkeypatch.setattr(background_compile, "MANY", 2)
    forget()
    x = jnp.asarray(np.ones(20, np.float32))
    for f in (jnp.sin, jnp.cos, jnp.exp, jnp.tanh):
        accnp.jit(lambda x, f=f: f(x) - 6)(x).block_until_ready()
    assert len(background_compile._waiting) == 2


def test_worker_ignores_busy_program_if_queue_is_long(no_upgrades, monkeypatch):
    forget()
    x = jnp.asarray(np.ones(20, np.float32))
    for f in (jnp.sin, jnp.cos, jnp.exp):
        accnp.jit(lambda x, f=f: f(x) - 7)(x).block_until_ready()
    monkeypatch.setattr(background_compile, "MANY", 2)
    monkeypatch.setattr(cache_state, "is_compiling", lambda: True)
    worker = threading.Thread(target=background_compile._run_worker)
    worker.start()
    while len(background_compile._waiting) > 1:
        time.sleep(0.001)
    monkeypatch.setattr(cache_state, "is_compiling", lambda: False)
    worker.join()
    assert not background_compile._waiting
