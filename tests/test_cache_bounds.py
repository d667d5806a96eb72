"""All caches are bounded: memory use levels off, and entries in use stay."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp.api.jit.jit import JitFunction
from accnp.array_type import ArrayLike
from accnp.caches import BoundedCache, caches
from accnp.compiler import elf_loader
from accnp.config import config
from accnp.runtime import buffer
from tests import memory

BOUND = 16
OPTIONS = (
    "trace_cache_size", "plan_cache_size", "dispatch_cache_size", "kernel_cache_size",
    "type_cache_size",
)  # fmt: skip


@pytest.fixture
def bounds() -> Iterator[None]:
    before = {name: config.read(name) for name in OPTIONS}
    jax.clear_caches()
    for name in OPTIONS:
        config.update(name, BOUND)
    yield
    for name, value in before.items():
        config.update(name, value)


def entries(name: str) -> int:
    count = jax.memory_stats()[name]["entries"]
    assert count is not None
    return count


def test_evicts_least_recently_used_entry() -> None:
    cache: BoundedCache[int, int] = BoundedCache("type_cache_size")
    before = config.read("type_cache_size")
    config.update("type_cache_size", 8)
    try:
        for i in range(1, 100):
            cache.store(i, i)
            assert (cache.get(1) or cache.recall(1)) == 1  # used all the time
            assert cache.count <= 8
        assert cache.get(99) == 99
        assert cache.get(50) is cache.recall(50) is None
        assert cache.evicted >= 90
        cache.clear()
        assert cache.count == 0
    finally:
        config.update("type_cache_size", before)


@pytest.mark.usefixtures("bounds")
def test_signatures_used_often_stay() -> None:
    traced = []

    def f(x: ArrayLike) -> jax.Array:
        traced.append(np.shape(x))
        return jnp.multiply(x, 2)

    jitted = jax.jit(f)
    used = np.ones(1000, np.float32)
    for n in range(1, 5 * BOUND):
        for _ in range(3):  # so that dispatch entries are made
            jitted(np.ones(n, np.float32))
        jitted(used)  # by its dispatch entry, after the first calls
    assert traced.count((1000,)) == 1
    assert len(traced) == 5 * BOUND
    assert entries("traces") <= BOUND
    assert isinstance(jitted, JitFunction)
    assert len(jitted._records) <= BOUND
    assert jitted(np.ones(2, np.float32)).tolist() == [2, 2]  # traced again
    assert traced.count((2,)) == 2


@pytest.mark.usefixtures("bounds")
def test_machine_code_is_unmapped() -> None:
    jitted = jax.jit(lambda x, n: jnp.sin(x) * n + n, static_argnums=1)
    most = 0
    for n in range(4 * BOUND):
        jitted(np.ones(3, np.float32), n + 0.5).block_until_ready()
        most = max(most, len(elf_loader.mapped))
    assert most <= 4 * BOUND  # two tiers, and those of plans of traces
    result = jitted(np.ones(3, np.float32), 0.5)
    np.testing.assert_allclose(result, np.sin(1) * 0.5 + 0.5, rtol=1e-6)
    jax.clear_caches()
    gc.collect()
    assert len(elf_loader.mapped) < BOUND
    assert jitted(np.ones(3, np.float32), 0.5).tolist() == result.tolist()


@pytest.mark.usefixtures("bounds")
def test_every_cache_keeps_its_bound() -> None:
    keep = []
    for i in range(5 * BOUND):
        x = jnp.ones(i + 1)
        np.asarray((x * 2 + x).sum())
        np.asarray(x**3 + float(i))
        keep.append(jax.jit(lambda x, i=i: x + i))
        keep[-1](x)
        np.asarray(jax.lax.scan(lambda c, r: (c + r, c), 0.0, x)[0])
        np.asarray(x[jnp.arange(i + 1)])
    for name in ("traces", "plans", "literals", "integer powers", "index recipes", "leaf names"):
        assert entries(name) <= BOUND, name
    assert entries("dispatch entries") <= BOUND
    assert keep[0](jnp.ones(1)).tolist() == [1]


@pytest.mark.usefixtures("bounds")
def test_types_in_use_exist_once() -> None:
    x = jnp.ones((3, 77))
    for i in range(5 * BOUND):
        np.asarray(jnp.ones((i + 1, 5)))
    assert jnp.zeros((3, 77)).aval is x.aval
    assert (x + jnp.zeros((3, 77))).tolist() == x.tolist()
    assert entries("types") <= BOUND


def test_clear_caches_empties_all() -> None:
    f = jax.jit(lambda x: jnp.cos(x) + 1)
    f(jnp.ones(5)).block_until_ready()
    np.asarray(jnp.ones(7) ** 5 - 2.5)
    jax.clear_caches()
    left = {n: c.size() for n, c in caches.items() if not c.in_bytes and n != "kernels"}
    assert {n: k for n, k in left.items() if k} == {}


def test_pool_evicts_the_size_that_was_not_used_for_the_longest_time() -> None:
    before = config.read("pool_max_bytes")
    buffer.trim()
    small = buffer.pool_stats()["kept_bytes"]  # pieces of slabs
    config.update("pool_max_bytes", small + (10 << 20))
    try:
        for size in (2 << 20, 3 << 20, 4 << 20):
            del_me = buffer.empty(size)
            del del_me
        assert buffer.pool_stats()["kept_bytes"] - small == 9 << 20
        again = buffer.empty(2 << 20)  # used last
        del again
        other = buffer.empty(5 << 20)
        del other
        lengths = {b.size: len(b) for b in buffer._pool.sizes() if b.size >= 2 << 20 and len(b)}
        assert lengths == {2 << 20: 1, 5 << 20: 1}
        assert buffer.pool_stats()["kept_bytes"] <= buffer.pool_stats()["limit_bytes"]
    finally:
        config.update("pool_max_bytes", before)


@memory.needs_glibc
def test_memory_use_is_bounded() -> None:
    """Use five times as many shapes, static values, functions and graphs as the bounds allow."""
    program = """
import json, sys
import numpy as np
import accnp as jax, accnp.numpy as jnp
from tests.memory import in_use
for name in sys.argv[1:]:
    jax.config.update(name, 64)
f = jax.jit(lambda x: (x * 2 + 1).sum())
g = jax.jit(lambda x, n: x * n + n, static_argnums=1)
def shapes(i): f(np.ones(i, np.float32)).block_until_ready()
def statics(i): g(np.ones(3, np.float32), float(i)).block_until_ready()
def functions(i): jax.jit(lambda x: x + 1)(np.ones(3, np.float32)).block_until_ready()
def graphs(i):
    x = jnp.ones(5)
    for b in range(9):
        x = x + 1.5 if i >> b & 1 else x * x
    np.asarray(x)
grown = {}
for case in (shapes, statics, functions, graphs):
    for i in range(1, 1 + 2 * 64):
        case(i)
    before = in_use()
    for i in range(1 + 2 * 64, 1 + 5 * 64):
        case(i)
    grown[case.__name__] = (in_use() - before) / 1e6
print(json.dumps(grown))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *OPTIONS],
        env={**os.environ, "ACCNP_THREADS": "1", "PYTHONMALLOC": "malloc"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # Without bounds, 192 shapes take 6 MB, static values 3 MB and graphs 5 MB.
    assert {n: mb for n, mb in json.loads(done.stdout).items() if mb > 1.5} == {}, done.stdout
