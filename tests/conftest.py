"""Fixtures and collection hooks for all tests.

Kernels are verified as they are compiled, and accnp and JAX both have four CPU devices. Environment
variables select a part of the tests.
"""

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
# each case is a separate example or op.
SAMPLED = {
    "api/": 14,
    "array_api/": 4,
    "compiler/": 14,
    "cuda/": 14,
    "jax_compat/": 6,
    "lax/": 6,
    "libraries/": 2,
    "numpy/": 14,
    "primitives/": 14,
    "processes/": 14,
    "programs/": 2,
    "random/": 9,
    "scipy/": 6,
    "test_accuracy.py": 9,
    "test_docs_site.py": 1,
    "test_doctests.py": 1,
    "test_every_op.py": 1,
    "test_gallery.py": 2,
    "test_layers.py": 1,
    "transforms/": 6,
    "": 3,
}


def _mark_samples(items):
    """Mark all but a sample of the cases of long tables `full`.

    The sample is chosen by the names of the cases, so that it is the same in each run and each
    process. On a GPU, all cases run.
    """
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
    """Mark the tests that `-m "not full"` deselects, and keep the requested share of the others."""
    _mark_samples(items)
    yield
    _keep_share(session, items)


def _keep_share(session, items):
    """Keep the part of the tests that the environment selects; the others count as deselected.

    ACCNP_TEST_SHARE=k/n : one of n parts of the test functions, chosen by their names. All cases
        of a function are in one part, since they share most of their kernels.
    ACCNP_TEST_CASE=r/m : one in m cases of each function, at least one; different ones for each r.

    Without LLVM, a part omits modules that define `BY_LLVM` and tests that use `by_llvm`, because
    `make test` runs them in the same way.
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
    """Exclude modules and collected tests from garbage collection.

    With JAX, these are millions of objects, and each `gc.collect` in a test would take two seconds.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _checks():
    """Verify programs, kernels and plans as they are made."""
    config.update("enable_checks", True)
    yield
    config.update("enable_checks", False)


@pytest.fixture
def own_cache(tmp_path):
    """Provide an empty cache folder that applies to all threads.

    A context manager would only apply to its own thread; other threads would use the default folder
    and find kernels of earlier runs.
    """
    before = config.cache_dir
    config.update("cache_dir", str(tmp_path / "kernels"))
    yield
    config.update("cache_dir", before)


@pytest.fixture(autouse=True, scope="module")
def _one_tier(request):
    """Compile kernels in one tier only if ACCNP_TEST_ONE_TIER=1 is set.

    It is meant for runs without kernels on disk: most calls of a test end before the second tier of
    their kernel is compiled, which takes a quarter of all CPU time. Modules about the tiers define
    `BOTH_TIERS`. Kernels of processes that tests start, and long calls, still have both tiers.
    """
    one = os.environ.get("ACCNP_TEST_ONE_TIER") == "1"
    with pytest.MonkeyPatch.context() as patch:
        if one and not getattr(request.module, "BOTH_TIERS", False):
            patch.setattr(background_compile, "optimize_later", lambda *_: None)
        yield


@contextmanager
def _compiled_by_llvm():
    """Compile kernels by LLVM in this block, also in processes that it starts."""
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
    """Use LLVM in modules that define `BY_LLVM` if ACCNP_COMPILER=numba is set.

    These modules test features of the LLVM back end only: tiers, kernels on disk, code symbols and
    non-temporal stores. Single tests use the fixture `by_llvm`.
    """
    with _compiled_by_llvm() if getattr(request.module, "BY_LLVM", False) else nullcontext():
        yield


@pytest.fixture
def by_llvm():
    """Use LLVM for a test in a module whose other tests use both back ends."""
    with _compiled_by_llvm():
        yield


@pytest.fixture(autouse=True, scope="module")
def _clear_jax_caches():
    """Clear JAX's caches after each module; its compiled programs would take gigabytes."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture(autouse=True, scope="module")
def _fast_paths_are_enabled():
    """Check that a module leaves no option set that disables the fast paths.

    Later tests that count kernels or traces would fail.
    """
    yield
    uses_gpu = os.environ.get("ACCNP_TEST_GPU") == "1"
    assert (list(scoped), watch.on, watch.unkeyed_options) == ([], False, False)
    assert uses_gpu or not device.gpu_possible
