"""Collectives of all dtypes, under all transformations, compared with NumPy."""

import ml_dtypes
import numpy as np

import accnp as jnp
from accnp import P

jnp.distributed.initialize()
me, n = jnp.process_index(), jnp.process_count()
mesh = jnp.make_mesh((n,), ("x",), (jnp.sharding.AxisType.Auto,))
lax = jnp.lax


ROWS = P("x")


def over(f, outs=ROWS, ins=ROWS, **more):
    return jnp.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **more)


def own(x):
    return np.asarray(x.addressable_data(0))


rng = np.random.default_rng(0)
shift = [(i, (i + 1) % n) for i in range(n)]
for dtype in ("bool", "int8", "uint32", "float16", ml_dtypes.bfloat16, "float32", "complex64"):
    x = (rng.standard_normal((n, n, 6)) * 3).astype(dtype)  # one row for each process
    total = x.astype("int32" if x.dtype == bool else x.dtype)
    wide = total.astype("float32") if x.dtype.itemsize == 2 else total
    acc = wide[0]
    for row in wide[1:]:
        acc = acc + row
    total = acc.astype(total.dtype)
    flat = x.reshape(n * n, 6)
    f = over(lambda a: lax.psum(a, "x"), P())
    assert np.asarray(f(flat)).tobytes() == total.tobytes(), dtype
    assert np.asarray(jnp.jit(f)(flat)).tobytes() == total.tobytes(), dtype
    gathered = over(lambda a: lax.all_gather(a, "x"), P("x"))(flat)
    assert own(gathered).tobytes() == x.tobytes()
    moved = over(lambda a: lax.ppermute(a, "x", shift))(flat)
    assert own(moved).tobytes() == x[me - 1].tobytes()
    some = over(lambda a: lax.ppermute(a, "x", shift[:1]))(flat)
    assert own(some).tobytes() == (x[0] if me == 1 else np.zeros_like(x[0])).tobytes()
    mixed = over(lambda a: lax.pshuffle(a, "x", [*range(1, n), 0]))(flat)
    assert own(mixed).tobytes() == x[(me + 1) % n].tobytes()
    exchanged = over(lambda a: lax.all_to_all(a, "x", 0, 0))(flat)
    assert own(exchanged).tobytes() == x[:, me].tobytes()
    first = over(lambda a: lax.pbroadcast(a, "x", n - 1), P())(flat)
    assert np.asarray(first).tobytes() == x[n - 1].tobytes()
    if x.dtype != bool:
        part = over(lambda a: lax.psum_scatter(a, "x"))(flat)
        assert own(part).tobytes() == total[me].tobytes()
    if x.dtype.kind not in "cb":
        assert np.array_equal(over(lambda a: lax.pmax(a, "x"), P())(flat), x.max(0))
        assert np.array_equal(over(lambda a: lax.pmin(a, "x"), P())(flat), x.min(0))
    if x.dtype.kind == "f":
        mean = np.asarray(over(lambda a: lax.pmean(a, "x"), P())(flat))
        assert np.allclose(mean, x.astype("float32").mean(0), rtol=1e-2, atol=1e-2)

# Sums of signed zeros, infinities and NaN are those of the batched program of one process, whether
# all processes add their arrays or pairs of them, which send them to each other.
special = np.array([-0.0, 0.0, np.inf, -np.inf, np.nan, 1e-3, 2049], "float32")
for dtype in ("float16", ml_dtypes.bfloat16, "float32", "complex64", "int32"):
    x = np.stack([special if i == 0 else special[[0, *range(2, 7), 1]] for i in range(n)])
    x = np.nan_to_num(x).astype(dtype) if dtype == "int32" else x.astype(dtype)
    for groups in (None, [[i, i + 1] for i in range(0, n, 2)]):

        def added(a, groups=groups):
            return lax.psum(a, "x", axis_index_groups=groups)

        want = np.asarray(jnp.vmap(added, axis_name="x")(x))
        for f in (over(added, check_vma=False), jnp.jit(over(added, check_vma=False))):
            assert own(f(x))[0].tobytes() == want[me].tobytes(), (dtype, groups)

text = str(jnp.explain(over(lambda a: lax.psum(a, "x"), P()), np.ones((n, 7), "float32")))
assert ("mesh_swap" in text, "mesh_gather" in text) == (n == 2, n > 2), text

# Large arrays are summed in parts, of which the last is shorter.
large = rng.standard_normal((n, 50_001)).astype(np.float32)
acc = large[0]
for row in large[1:]:
    acc = acc + row
found = jnp.jit(over(lambda a: lax.psum(a, "x"), P()))(large)
assert np.asarray(found).tobytes() == acc[None].tobytes()

# Groups, each with a communicator of its own.
if n == 4:
    small = np.arange(4, dtype=np.float32)
    pairs = [[0, 3], [1, 2]]
    g = over(lambda a: lax.psum(a, "x", axis_index_groups=pairs), check_vma=False)
    assert own(g(small)) == [3]
    g = over(lambda a: lax.psum(a, "x", axis_index_groups=[[0], [1, 2, 3]]), check_vma=False)
    assert own(g(small)) == ([0] if me == 0 else [6])
    g = over(lambda a: lax.all_gather(a, "x", axis_index_groups=pairs)[None])
    assert own(g(small)).tolist() == [[[0], [3]] if me in (0, 3) else [[1], [2]]]

# Derivatives: a whole operand's gradient is the sum over processes.
w, xs = np.float32([1, 2, 3]), rng.standard_normal((8, 3)).astype(np.float32)


def loss(w, x):
    return lax.pmean((jnp.sin(x @ w) ** 2).mean(), "x")


want = jnp.grad(lambda w: (jnp.sin(xs @ w) ** 2).mean())(jnp.asarray(w))
inside = over(jnp.grad(loss), P(), (P(), P("x")))
around = jnp.grad(over(loss, P(), (P(), P("x"))))
unchecked = jnp.grad(over(loss, P(), (P(), P("x")), check_vma=False))
for f in (inside, around, unchecked, jnp.jit(inside), jnp.jit(around)):
    assert np.allclose(f(w, xs), want, rtol=1e-5)
sharded = jnp.device_put(xs, jnp.NamedSharding(mesh, P("x")))
for g in (around, jnp.jit(around)):
    assert np.allclose(g(w, sharded), want, rtol=1e-5)
both = jnp.jit(jnp.grad(over(loss, P(), (P(), P("x"))), (0, 1)))
assert np.allclose(own(both(w, sharded)[1]).shape, (8 // n, 3))
top = jnp.grad(over(lambda a: lax.pmax(a, "x").sum(), P()))
assert np.allclose(top(np.arange(float(n))), np.eye(n)[n - 1])


# Loops and branches.
def steps(a):
    return lax.fori_loop(0, 5, lambda i, c: lax.ppermute(c + i, "x", shift), a)


want = np.roll(np.arange(float(n)) + 10, 5)
for f in (over(steps), jnp.jit(over(steps))):
    assert own(f(np.arange(float(n)))) == want[me]
until = over(
    lambda a: lax.while_loop(
        lambda c: lax.psum(c.sum(), "x") < 100, lambda c: c * 2 + lax.psum(c, "x") * 0, a
    )
)
assert own(until(np.ones(n)))[0] * n >= 100
branch = over(
    lambda a: lax.cond(
        lax.psum(a.sum(), "x") > 0, lambda c: lax.psum(c, "x") + c * 0, lambda c: c * 0, a
    )
)
assert own(branch(np.ones(n))) == [n]
scan = over(lambda a: lax.scan(lambda c, r: (lax.psum(r, "x"), c), a[0] * 0, a)[0][None])
assert own(scan(np.arange(2.0 * n))) == sum(range(1, 2 * n, 2))
batch = jnp.vmap(over(lambda a: a - lax.pmean(a, "x")))
assert np.allclose(own(batch(np.tile(np.arange(float(n)), (3, 1)))), me - (n - 1) / 2)
print(f"process {me} is done")
