"""What all tests share: the compiler checks its own work; four CPU devices, here and in jax."""

import gc
import os
import sys
from contextlib import contextmanager, nullcontext
from zlib import crc32

import pytest

os.environ.setdefault("ACCNP_NUM_CPU_DEVICES", "4")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

from accnp import engine
from accnp.compiler import background_compile, kernel_cache
from accnp.config import config, scoped
from accnp.engine import watch
from accnp.runtime import device

# `make test` runs every n-th case of each test function, with this n for its folder. Where n is 1,
# each case is a separate program, example or op.
SAMPLED = {
    "api/": 14,
    "array_api/": 4,
    "compiler/": 14,
    "cuda/": 14,
    "jax_compat/": 6,
    "lax/": 6,
    "libraries/": 1,
    "numpy/": 14,
    "primitives/": 14,
    "processes/": 6,
    "programs/": 1,
    "random/": 9,
    "scipy/": 6,
    "test_accuracy.py": 9,
    "test_doctests.py": 1,
    "test_every_op.py": 1,
    "test_gallery.py": 1,
    "test_layers.py": 1,
    "transforms/": 6,
    "": 3,
}


def _mark_samples(items):
    """Mark all but a sample of the cases of long tables `full`. Names decide which, so that the
    sample is the same in each run and each process. On a GPU, all run."""
    if os.environ.get("ACCNP_TEST_GPU") == "1":
        return
    functions = {}
    for x in items:
        functions.setdefault(x.nodeid.partition("[")[0], []).append(x)
    for name, cases in functions.items():
        place = name.partition("::")[0].removeprefix("tests/")
        every = next(n for path, n in SAMPLED.items() if place.startswith(path))
        if every > 1:
            few = 2 if every < 6 else 1  # cases that run in any event
            cases = sorted(cases, key=lambda x: crc32(x.nodeid.encode()))
            for x in cases[max(few, -(-len(cases) // every)) :]:
                x.add_marker(pytest.mark.full)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(session, items):
    """Mark what `-m "not full"` then leaves out, and of the others keep what is asked for."""
    _mark_samples(items)
    yield
    _keep_share(session, items)


def _keep_share(session, items):
    """Keep the part of the tests that the environment asks for; the others count as deselected.

    ACCNP_TEST_SHARE=k/n : one of n parts of the test functions, which their names say. All cases of
        a function are in one part, since most of their kernels are the same.
    ACCNP_TEST_CASE=r/m : one in m cases of each function, at least one; other ones for each r.

    Without LLVM, a part leaves out modules that say `BY_LLVM`, and tests that ask for `by_llvm`:
    `make test` runs them the same way.
    """
    part = os.environ.get("ACCNP_TEST_SHARE")
    if part is None:
        return
    k, n = map(int, part.split("/"))
    r, m = map(int, (os.environ.get("ACCNP_TEST_CASE") or "0/1").split("/"))
    every = config.compiler == "llvm"
    functions = {}
    for x in items:
        alone = getattr(x.module, "BY_LLVM", False) or "by_llvm" in x.fixturenames
        if every or not alone:
            functions.setdefault(x.nodeid.partition("[")[0], []).append(x)
    share = []
    for name, cases in functions.items():
        if crc32(name.encode()) % n == k:
            step = min(m, len(cases))
            share += cases[r % step :: step]
    chosen = set(share)
    session.config.hook.pytest_deselected(items=[x for x in items if x not in chosen])
    items[:] = share


def pytest_collection_finish():
    """Collect garbage among what the tests made, not among modules and collected tests: with jax,
    those are some millions of objects, and each `gc.collect` of a test would take two seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _checks():
    """Programs, kernels and plans are verified as they are made."""
    config.update("enable_checks", True)
    yield
    config.update("enable_checks", False)


@pytest.fixture
def own_cache(tmp_path):
    """An empty cache folder, for all threads: what a context manager sets holds for one thread, and
    others would find what an earlier run left in the default folder."""
    before = config.cache_dir
    config.update("cache_dir", str(tmp_path / "kernels"))
    yield
    config.update("cache_dir", before)


@pytest.fixture(autouse=True, scope="module")
def _one_tier(request):
    """ACCNP_TEST_ONE_TIER=1, for runs that find no kernels on disk: most calls of a test are over
    before the second tier of their kernel is made (a quarter of all CPU). Modules that are about it
    say `BOTH_TIERS`; kernels of processes that tests start, and long calls, have it as ever."""
    one = os.environ.get("ACCNP_TEST_ONE_TIER") == "1"
    with pytest.MonkeyPatch.context() as patch:
        if one and not getattr(request.module, "BOTH_TIERS", False):
            patch.setattr(background_compile, "optimize_later", lambda *_: None)
        yield


@contextmanager
def _compiled_by_llvm():
    """A block in which kernels, also those of processes that are started, are compiled by LLVM."""
    before = config.compiler
    if before == "llvm":
        yield
        return

    def compile_by(name):
        config.update("compiler", name)
        kernel_cache.clear_kernels()
        engine._plans.clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCNP_COMPILER", "llvm")
        compile_by("llvm")
        yield
        compile_by(before)


@pytest.fixture(autouse=True, scope="module")
def _by_llvm(request):
    """Modules about what LLVM's path alone has (tiers, kernels on disk, code symbols, non-temporal
    stores) say `BY_LLVM`, for runs with ACCNP_COMPILER=numba. Single tests ask for `by_llvm`."""
    with _compiled_by_llvm() if getattr(request.module, "BY_LLVM", False) else nullcontext():
        yield


@pytest.fixture
def by_llvm():
    """Compile with LLVM a test in a module whose other tests use both back ends."""
    with _compiled_by_llvm():
        yield


@pytest.fixture(autouse=True, scope="module")
def _clear_jax_caches():
    """Clear the caches of jax after each module: its compiled programs would take gigabytes."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture(autouse=True, scope="module")
def _fast_paths_are_enabled():
    """Check that a module leaves nothing on that disables the fast paths: later tests that count
    would fail."""
    yield
    uses_gpu = os.environ.get("ACCNP_TEST_GPU") == "1"
    assert (list(scoped), watch.on, watch.unkeyed_options) == ([], False, False)
    assert uses_gpu or not device.gpu_possible
