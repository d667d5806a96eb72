"""Native loops send parts of buffers, and use the position of the process."""

import numpy as np

import accnp as jnp
from accnp import P, lax
from accnp.experimental.multihost_utils import process_allgather

jnp.distributed.initialize()
n = jnp.process_count()
mesh = jnp.make_mesh((n,), ("x",))
whole = np.arange(8 * 6, dtype=np.float32).reshape(8, 6)
x = jnp.device_put(whole, jnp.NamedSharding(mesh, P("x")))
last = 8 // n - 1  # the number of a shard's last row
ring = [(i, (i + 1) % n) for i in range(n)]
STEPS = 3


def check(step, reference):
    """Compare a loop over shards with a loop over the list of all shards in NumPy."""
    one = jnp.shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    loop = jnp.jit(lambda a: lax.fori_loop(0, STEPS, lambda i, c: one(c), a))
    shards = np.split(whole, n)
    for _ in range(STEPS):
        shards = [reference(shards, i) for i in range(n)]
    np.testing.assert_allclose(process_allgather(loop(x), tiled=True), np.concatenate(shards))
    assert "step 0: scan %2, a native loop" in str(jnp.explain(loop, x))


def last_row(shards, i):
    updated = shards[i].copy()
    updated[0] += shards[i - 1][last]
    return updated


def column(shards, i):
    updated = shards[i].copy()
    updated[:, 0] += shards[i - 1][:, 3]
    return updated


check(lambda c: c.at[0].add(lax.ppermute(c[last], "x", ring)), last_row)
check(lambda c: c.at[:, 0].add(lax.ppermute(c[:, 3] * 1, "x", ring)), column)
check(
    lambda c: c * 0.5 + lax.psum(c[1:2], "x").sum(),
    lambda shards, i: shards[i] / 2 + np.float32(sum(s[1:2].sum() for s in shards)),
)
check(lambda c: c / 2 + lax.axis_index("x"), lambda shards, i: shards[i] / 2 + np.float32(i))
