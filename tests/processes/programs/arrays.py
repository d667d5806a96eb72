"""Arrays sharded over processes: the shards of each process, and unsupported uses."""

import numpy as np
from processes.program_helpers import assert_raises

import accnp as jnp
from accnp import P
from accnp.experimental import multihost_utils as utils

jnp.distributed.initialize()
me, n = jnp.process_index(), jnp.process_count()
mesh = jnp.make_mesh((n,), ("x",))
rows, whole = jnp.NamedSharding(mesh, P("x")), jnp.NamedSharding(mesh, P())
values = np.arange(24, dtype=np.float32).reshape(8, 3)
own = slice(8 // n * me, 8 // n * (me + 1))

# --- made of shards ---
asked = []


def part(index):
    asked.append(index)
    return values[index]


x = jnp.make_array_from_callback((8, 3), rows, part)
assert asked == [(own, slice(None))]
assert (x.shape, x.is_fully_addressable, x.is_fully_replicated) == ((8, 3), False, False)
(shard,) = x.addressable_shards
assert (shard.device, shard.index, shard.replica_id) == (jnp.local_devices()[0], asked[0], 0)
assert np.array_equal(shard.data, values[own])
assert [s.data is None for s in x.global_shards] == [d != me for d in range(n)]
assert x.sharding.addressable_devices == {jnp.local_devices()[0]}
assert [*x.sharding.addressable_devices_indices_map((8, 3))] == jnp.local_devices()
assert mesh.is_multi_process
assert mesh.local_mesh.size == 1
for y in (
    jnp.device_put(values, rows),
    jnp.make_array_from_process_local_data(rows, values[own]),
    jnp.make_array_from_process_local_data(rows, values, (8, 3)),
    jnp.make_array_from_single_device_arrays((8, 3), rows, [jnp.asarray(values[own])]),
    utils.host_local_array_to_global_array(values[own], mesh, P("x")),
):
    assert np.array_equal(y.addressable_data(0), values[own])
    assert y.sharding == rows
assert np.array_equal(utils.global_array_to_host_local_array(x, mesh, P("x")), values[own])

# --- the same in all processes ---
r = jnp.make_array_from_callback((8, 3), whole, lambda i: values[i])
assert r.is_fully_replicated
assert not r.is_fully_addressable
assert r.addressable_shards[0].replica_id == me
assert np.array_equal(r, values)
assert str(r) == str(values)

# --- moved ---
assert np.array_equal(jnp.reshard(x, whole), values)
assert np.array_equal(utils.process_allgather(x, tiled=True), values)
columns = jnp.NamedSharding(mesh, P(None, "x"))
square = np.arange(16.0).reshape(4, 4)
turned = jnp.reshard(jnp.device_put(square, rows), columns)
width = 4 // n
assert np.array_equal(turned.addressable_data(0), square[:, width * me : width * (me + 1)])
half = jnp.jit(lambda a: jnp.lax.with_sharding_constraint(a * 2, whole))(x)
assert np.array_equal(half, values * 2)
keys = jnp.device_put(jnp.random.split(jnp.random.key(0), 4), rows)
mine = jnp.random.key_data(keys.addressable_data(0))
assert np.array_equal(
    mine,
    jnp.random.key_data(jnp.random.split(jnp.random.key(0), 4))[4 // n * me : 4 // n * (me + 1)],
)

# --- errors ---
gone = "spans non-addressable"
assert repr(x) == str(x) == "Array(shape=(8, 3), dtype=float32)"
assert_raises(RuntimeError, gone, lambda: np.asarray(x))
assert_raises(RuntimeError, gone, lambda: x.tolist())
assert_raises(RuntimeError, gone, lambda: memoryview(x.__array__()))
assert_raises(ValueError, "tiled=True", lambda: utils.process_allgather(x))
assert_raises(ValueError, "must divide", lambda: jnp.device_put(values[:7], rows))
assert_raises(
    ValueError, "addressable devices", lambda: jnp.device_put(1.0, jnp.devices()[n - 1 - me])
)
assert_raises(
    ValueError,
    "must have shape",
    lambda: jnp.make_array_from_callback((8, 3), rows, lambda i: values),
)
assert_raises(
    ValueError,
    "pass the shard",
    lambda: jnp.make_array_from_process_local_data(rows, values[:3], (8, 3)),
)

# --- agreement ---
utils.sync_global_devices("here")
assert utils.process_allgather(np.full(2, me)).tolist() == [[r, r] for r in range(n)]
assert utils.process_allgather(me).tolist() == [*range(n)]
assert utils.broadcast_one_to_all({"a": np.arange(2) + me})["a"].tolist() == [0, 1]
assert utils.broadcast_one_to_all(np.float32(me), me == n - 1) == n - 1
assert_raises(
    ValueError, "one process must be the source", lambda: utils.broadcast_one_to_all(1, True)
)
utils.assert_equal(np.arange(3))
assert_raises(AssertionError, "differ", lambda: utils.assert_equal(np.arange(3) + me))
mapped = jnp.pmap(lambda a: jnp.lax.psum(a, "i") + 10 * jnp.lax.axis_index("i"), axis_name="i")
assert mapped(jnp.array([1.0 + me])).tolist() == [sum(range(1, n + 1)) + 10 * me]
print(f"process {me} is done")
