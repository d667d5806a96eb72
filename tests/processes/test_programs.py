"""Programs over meshes of four processes give bit-identical results to one process with four
devices.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes.launch import run
from transforms.shard_programs import PROGRAMS

import accnp

# What is asked of processes means something else there.
OTHER = {
    "some axes": "over processes, shard_map is over all axes of the mesh",
    "unchecked": "each process keeps its own result",
    "from parts": "a process passes its own part",
    "of the process": "the data are a quarter of the array",
}
# The sums of gradients over processes are made after those within each: other bits.
ROUNDED = {"gradient of it", "gradient of jit"}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the results of each of four processes."""
    path = Path(tmp_path_factory.mktemp("shards")) / "found"
    run(4, "shards.py", str(path), *[name for name in PROGRAMS if name not in OTHER])
    shards_by_rank = []
    for rank in range(4):
        with open(f"{path}.{rank}", "rb") as file:
            shards_by_rank.append(pickle.load(file))
    return shards_by_rank


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in OTHER])
def test_processes_match_one_process(name: str, shards: list[dict[str, Any]]) -> None:
    leaves = accnp.tree.leaves(PROGRAMS[name](accnp, accnp.P))
    for rank, results in enumerate(shards):
        assert len(results[name]) == len(leaves)
        for x, (shape, dtype, sharding, parts) in zip(leaves, results[name], strict=True):
            assert (shape, dtype) == (x.shape, x.dtype.name)
            (part,) = parts
            whole = np.asarray(x)
            if part.shape == shape:  # each process has all of it
                expected = whole
            elif name == "vmap of it":  # which one process takes for one that is cut otherwise
                assert "P(None, 'a')" in sharding
                expected = whole[:, 2 * rank : 2 * rank + 2]
            else:
                assert sharding == str(x.sharding)
                (expected,) = [
                    np.asarray(s.data) for s in x.addressable_shards if s.device.id == rank
                ]
            if name in ROUNDED:
                np.testing.assert_allclose(part, expected, rtol=2e-6)
            else:
                assert part.tobytes() == expected.tobytes(), (name, rank, part, expected)


def test_messages_keep_their_order_where_threads_share_steps() -> None:
    """32 independent messages have enough work for a shared group of steps."""
    text = """
import accnp as jax
from accnp import P
jax.distributed.initialize()
jax.config.update("collective_timeout", 10)
mesh = jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,))

def f(x):
    parts = [x * 2 + i for i in range(16)]
    moved = [jax.lax.ppermute(y, "x", [(0, 1), (1, 0)]) for y in parts]
    known = [jax.lax.all_gather(y, "x").reshape(2) for y in parts]
    return jax.numpy.concatenate([*moved, *known])

h = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
x = jax.numpy.arange(2.0) * 100
other = 200.0 * (1 - jax.process_index())
for _ in range(50):
    (part,) = h(x).addressable_shards
    both = [y + i for i in range(16) for y in (0, 200)]
    assert part.data.tolist() == [*[other + i for i in range(16)], *both]
"""
    run(2, text, ACCNP_THREADS="2")


def test_messages_keep_no_traces() -> None:
    text = """
import gc, accnp as jax
from accnp import P
jax.distributed.initialize()
mesh = jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,))
x = jax.numpy.arange(2.0)

def nodes():
    def f(a):
        for i in range(40):
            a = jax.numpy.sin(a) + i
        return jax.lax.ppermute(a, "x", [(0, 1), (1, 0)])

    jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(x).block_until_ready()
    jax.clear_caches()
    gc.collect()
    return sum([type(obj).__name__ == "Node" for obj in gc.get_objects()])

nodes()
before = nodes()
after = [nodes() for _ in range(4)][-1]
assert after - before < 40, (before, after)
"""
    run(2, text)
