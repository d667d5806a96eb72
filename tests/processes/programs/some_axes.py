"""`shard_map` over some axes of a mesh: processes along the other axes compute the same."""

import numpy as np
from processes.program_helpers import gather

import accnp as jnp
from accnp import P, lax

jnp.distributed.initialize()
values = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
weights = np.random.default_rng(1).normal(size=(8, 6)).astype(np.float32)


def check(name, actual, expected):
    np.testing.assert_allclose(gather(actual), expected, rtol=1e-5, atol=1e-6, err_msg=name)


def check_all(kind):
    mesh = jnp.make_mesh((2, 2), ("x", "y"), axis_types=(kind, kind))

    def over(name, f, ins, out):
        return jnp.shard_map(f, mesh=mesh, in_specs=ins, out_specs=out, axis_names={name})

    def total(a, w):
        return over("x", lambda a: lax.psum(a.sum(0), "x"), P("x"), P())(a)

    def scaled(a, w):
        return over("x", lambda a, w: (a @ w) * lax.axis_index("x"), (P("x"), P()), P("x"))(a, w)

    def loss(w, a):
        def of_rows(a, w):
            return lax.pmean((jnp.numpy.sin(a @ w) ** 2).mean(), "x")

        return over("x", of_rows, (P("x"), P()), P())(a, w)

    def swapped(a, w):
        def swap(a):
            return lax.ppermute(a, "y", [(0, 1), (1, 0)])

        return over("y", swap, P(None, "y"), P(None, "y"))(a)

    def prefixes(a, w):
        def scan(a):
            return lax.scan(lambda c, row: (c + lax.psum(row, "y"), None), jnp.numpy.zeros(4), a)[0]

        return over("y", scan, P(None, "y"), P())(a)

    product = values @ weights
    halves = np.split(values, 2, 1)
    gradient = jnp.grad(lambda w: (jnp.numpy.sin(values @ w) ** 2).mean())(weights)
    expected = {
        total: values.sum(0),
        scaled: np.concatenate([product[:2] * 0, product[2:]]),
        lambda a, w: jnp.grad(loss)(w, a): gradient,
        swapped: np.concatenate(halves[::-1], 1),
        prefixes: sum(halves).sum(0),
    }
    for spec, other in ((("x",), ()), (("x", "y"), ("y",)), ((None, "y"), (None, "x")), ((), ())):
        a = jnp.device_put(values, jnp.NamedSharding(mesh, P(*spec)))
        w = jnp.device_put(weights, jnp.NamedSharding(mesh, P(*other)))
        for f, reference in expected.items():
            check(f.__name__, f(a, w), reference)
            check(f.__name__, jnp.jit(f)(a, w), reference)


check_all(jnp.sharding.AxisType.Explicit)
check_all(jnp.sharding.AxisType.Auto)
