"""Each process reads different results, or in a different order; all send the same messages."""

import numpy as np

import accnp as jnp
from accnp import P

jnp.distributed.initialize()
me, n = jnp.process_index(), jnp.process_count()
mesh = jnp.make_mesh((n,), ("x",), (jnp.sharding.AxisType.Auto,))
lax = jnp.lax


def over(f, ins, outs):
    return jnp.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs)


def total(k):
    return over(lambda a: lax.psum(a * k, "x"), P("x"), P())


def loss(w, a):
    return lax.pmean(((a * w) ** 2).mean(), "x")


x = jnp.arange(4.0 * n)
columns = np.arange(4.0 * n).reshape(n, 4).sum(0)
found = [total(k)(x) for k in range(6)]
for k in range(6) if me == 0 else reversed(range(6)):
    if k % n == me or k == 5:
        assert np.allclose(found[k], k * columns)

eager = jnp.value_and_grad(over(loss, (P(), P("x")), P()))
step = jnp.jit(eager)
w = jnp.float32(1)
for _ in range(5):
    (v, g), (v2, g2) = step(w, x), eager(w, x)
    w = w - 0.001 * g
    if me == 0:
        assert float(v) == float(v2)
    if me == n - 1:
        assert float(g2) == float(g)

# Large work is queued; a small one that is recorded behind it waits.
big = jnp.ones(n << 20)
queued = jnp.jit(over(lambda b: lax.psum(jnp.sin(b), "x"), P("x"), P()))
results = [queued(big) for _ in range(3)]
last = total(1)(x)
if me == 0:
    assert last[0] == columns[0]
if me == n - 1:
    assert np.isclose(results[1][0], n * np.sin(1), rtol=1e-6)

# A value that only one process uses, of arrays over all of them.
rows = jnp.device_put(np.arange(4.0 * n), jnp.NamedSharding(mesh, P("x")))
sums = [(rows * k).sum() for k in range(4)]
if me == 0:
    assert float(sums[3]) == 3 * np.arange(4 * n).sum()

# Loops in which results are not used, and functions that are derived in one process only.
unused = over(lambda a: (lax.psum(a, "x"), a)[1], P("x"), P("x"))
for _ in range(3):
    jnp.jit(unused)(x)
jnp.jit(total(2))(x).block_until_ready()
print(f"process {me} is done")
