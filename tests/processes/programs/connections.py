"""Calls that work without the other processes, and settings on which all processes must agree."""

from functools import partial

import numpy as np
from processes.program_helpers import assert_raises

import accnp as jax
from accnp import P
from accnp import numpy as jnp
from accnp.experimental import multihost_utils as utils

jax.distributed.initialize()
me, n = jax.process_index(), jax.process_count()
mesh = jax.make_mesh((n,), ("x",))
rows, whole = jax.NamedSharding(mesh, P("x")), jax.NamedSharding(mesh, P())
values = np.arange(24, dtype=np.float32).reshape(8, 3)
own = values[8 // n * me : 8 // n * (me + 1)]
total = jax.shard_map(
    lambda x: jax.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
)
x = jax.device_put(values, rows)
plain = jnp.ones(3) + 1
placed = jax.device_put(plain, jax.local_devices()[0])
before = total(x)
assert float(before) == values.sum()

# --- left and joined again ---
for _ in range(2):
    devices = jax.devices()
    jax.distributed.shutdown()
    assert not jax.distributed.is_initialized()
    assert (jax.process_index(), jax.process_count(), jax.devices()) == (me, n, devices)
    assert np.array_equal(x.addressable_data(0), own)
    assert x.sharding == rows
    assert float(before) == values.sum()
    assert np.array_equal(plain + placed, [4, 4, 4])
    assert np.array_equal((x * 2).addressable_data(0), own * 2)  # needs no message
    for f in (lambda: float(total(x)), lambda: utils.process_allgather(x, tiled=True)):
        assert_raises(RuntimeError, "call distributed.initialize again", f)
    jax.distributed.initialize()
    assert float(total(x)) == values.sum()
    assert np.array_equal(utils.process_allgather(x, tiled=True), values)
    assert np.array_equal(plain + placed, [4, 4, 4])

# --- data of all processes ---
local = jax.make_array_from_process_local_data
assert local(rows, own).shape == (8, 3)
assert_raises(
    ValueError, "process 1: an array float32[", lambda: local(rows, np.zeros((2 + me, 3), "f"))
)
assert_raises(
    ValueError, "all processes must agree", lambda: local(rows, own.astype(f"f{4 << (me == 1)}"))
)
assert np.array_equal(utils.process_allgather(local(rows, own), tiled=True), values)

# --- devices of others ---
other = jax.devices()[(me + 1) % n]
theirs = jax.NamedSharding(jax.make_mesh((1,), ("x",), devices=[other]), P())
for place in (other, theirs, jax.sharding.SingleDeviceSharding(other)):
    put = partial(jax.device_put, values, place)
    assert_raises(ValueError, "which represents addressable devices", put)
mine = jax.NamedSharding(jax.make_mesh((1,), ("x",), devices=jax.local_devices()), P())
assert np.array_equal(jax.device_put(values, mine), values)

# --- keys ---
keys = jax.device_put(jax.random.split(jax.random.key(0), 8), rows)
assert len(keys.addressable_shards) == 1
assert [s.data is None for s in keys.global_shards] == [d != me for d in range(n)]
assert keys.global_shards[me].index == x.global_shards[me].index[:1]

# --- shardings of operands ---
for operand in (values, jax.device_put(values, whole)):
    assert_raises(ValueError, "P('x', None) does not match the specs of the input: P(None, None)",
            lambda: total(operand))  # noqa: B023  # fmt: skip
print(f"process {me} is done")
