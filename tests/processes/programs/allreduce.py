"""Sums by MPI_Allreduce, which the option `mpi_allreduce` selects."""

import numpy as np

import accnp as jax
from accnp import P

jax.distributed.initialize()
n = jax.process_count()
mesh = jax.make_mesh((n // 2, 2), ("x", "y"))
rows = jax.NamedSharding(mesh, P(("x", "y")))


def total(axis):
    spec = P(("x", "y")) if axis == ("x", "y") else P("x" if axis == "y" else "y")
    return jax.shard_map(
        lambda x: jax.lax.psum(x, axis),
        mesh=mesh,
        in_specs=P(("x", "y")),
        out_specs=P() if axis == ("x", "y") else spec,
    )


for dtype in ("int8", "uint32", "int32", "float32", "complex64", "float16", "bfloat16"):
    for size in (3, 1 << 15):
        values = (np.random.default_rng(0).uniform(-9, 9, (n, size))).astype(dtype)
        x = jax.device_put(values, rows)
        for axis in ("x", "y", ("x", "y")):
            ordered = total(axis)(x)
            before = jax.jit(total(axis))
            want = before(x)
            jax.config.update("mpi_allreduce", True)
            for f in (total(axis), jax.jit(total(axis)), before):
                got = f(x)
                assert got.sharding == ordered.sharding
                a, b = (np.asarray(y.addressable_data(0)) for y in (got, ordered))
                exact = dtype[:3] in ("int", "uin", "bfl") or dtype == "float16"
                np.testing.assert_allclose(
                    a.astype("c16"),
                    b.astype("c16"),
                    rtol=0 if exact else 1e-5,
                    atol=0 if exact else 1e-5,
                )
            jax.config.update("mpi_allreduce", False)
            assert (
                np.asarray(before(x).addressable_data(0)).tobytes()
                == np.asarray(want.addressable_data(0)).tobytes()
            )

x = jax.device_put(np.arange(4.0 * n, dtype="f"), rows)
for on in (False, True):
    jax.config.update("mpi_allreduce", on)
    text = str(jax.explain(total(("x", "y")), x))
    assert ("mesh_sum" in text, "mesh_swap" in text) == (on, not on), text
gradient = jax.grad(lambda x: total(("x", "y"))(x * x).sum())(x)
assert np.array_equal(gradient.addressable_data(0), 2 * x.addressable_data(0))
print(f"process {jax.process_index()} is done")
