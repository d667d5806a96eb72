"""Programs over meshes of four devices, run in JAX, in one process and in four processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 7
V = np.arange(8, dtype=np.float32)
W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def mesh(m: Any, *shape: int) -> Any:
    names = "ab"[: len(shape)]
    devices = np.array(m.devices()[: int(np.prod(shape))]).reshape(shape)
    return m.sharding.Mesh(devices, tuple(names))


def in_use(m: Any, f: Any) -> Any:
    def inside(*args: Any) -> Any:
        devices = m.make_mesh((4,), ("a",), (m.sharding.AxisType.Auto,))
        with m.set_mesh(devices):
            return f(*args)

    return inside


def over(m: Any, f: Any, ins: Any, outs: Any, *shape: int, **more: Any) -> Any:
    return m.shard_map(f, mesh=mesh(m, *(shape or (4,))), in_specs=ins, out_specs=outs, **more)


def loss(m: Any) -> Callable[..., Any]:
    """Return the mean over all shards of a loss of one shard."""

    def f(w: Any, x: Any) -> Any:
        return m.lax.pmean((m.numpy.sin(x @ w) ** 2).mean(), "a")

    return f


def local(m: Any) -> Callable[..., Any]:
    return lambda w, x: (m.numpy.sin(x @ w) ** 2).mean()


def mixed(m: Any) -> Callable[..., Any]:
    """A term that differs between the shards, and one that does not."""
    return lambda w, x: m.lax.psum((x @ w).sum(), "a") ** 2 + (w**3).sum()


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "each": lambda m, P: over(m, lambda x: x * 2, P("a"), P("a"))(X),
    "other axis": lambda m, P: over(m, lambda x: x.sum(0), P(None, "a"), P("a"))(X),
    "two axes": lambda m, P: over(m, lambda x: x - x.max(), P("a", "b"), P("a", "b"), 2, 2)(X),
    "axes on one": lambda m, P: over(m, lambda x: x - x.max(), P(("a", "b")), P(("a", "b")), 2, 2)(
        V
    ),
    "axes turned": lambda m, P: over(m, lambda x: x - x.max(), P(("b", "a")), P("b", "a"), 2, 2)(
        X
    ),
    "transposed": lambda m, P: over(m, lambda x: x.T, P("a", "b"), P("b", "a"), 2, 2)(X),
    "sum": lambda m, P: over(m, lambda x: m.lax.psum(x, "a"), P("a"), P())(V),
    "sum over both": lambda m, P: over(
        m, lambda x: m.lax.psum(x.sum(), ("a", "b")), P("a", "b"), P(), 2, 2
    )(X),
    "sum over one": lambda m, P: over(
        m, lambda x: m.lax.psum(x, "b"), P("a", "b"), P("a"), 2, 2
    )(X),
    "whole operand": lambda m, P: over(m, lambda w, x: x @ w, (P(), P("a")), P("a"))(W, X),
    "trees": lambda m, P: over(
        m, lambda t: {"s": t["x"] * t["k"]}, ({"x": P("a"), "k": P()},), {"s": P("a")}
    )({"x": V, "k": np.float32(3)}),
    "one spec for all": lambda m, P: over(m, lambda x, y: (x, y + 1), P("a"), P("a"))(V, X),
    "repeated result": lambda m, P: over(m, lambda x: m.numpy.ones(2), P("a"), P())(V),
    "repeated along a named axis": lambda m, P: over(m, lambda x: x * 0 + 1, P(), P("a"))(V),
    "index": lambda m, P: over(
        m, lambda x: x + 10 * m.lax.axis_index("a"), P("a"), P("a")
    )(V),
    "indices": lambda m, P: over(
        m, lambda x: x + 10 * m.lax.axis_index(("a", "b")), P("a", "b"), P("a", "b"), 2, 2
    )(X),
    "sizes": lambda m, P: over(m, lambda x: x * m.lax.axis_size("a"), P("a"), P("a"))(V),
    "shift": lambda m, P: over(
        m, lambda x: m.lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)]), P("a"), P("a")
    )(V),
    "gather": lambda m, P: over(
        m, lambda x: m.lax.all_gather(x, "a", tiled=True) * x.sum(), P("a"), P("a")
    )(V),
    "scatter": lambda m, P: over(
        m, lambda x: m.lax.psum_scatter(x, "a", tiled=True), P(None, "a"), P("a")
    )(X),
    "exchange": lambda m, P: over(
        m, lambda x: m.lax.all_to_all(x, "a", 1, 0, tiled=True), P("a"), P("a")
    )(X),
    "jit": lambda m, P: m.jit(over(m, lambda x: x * m.lax.psum(x.sum(), "a"), P("a"), P("a")))(V),
    "jit inside": lambda m, P: over(
        m, lambda x: m.jit(lambda y: y * m.lax.psum(y.sum(), "a"))(x), P("a"), P("a")
    )(V),
    "vmap of it": lambda m, P: m.vmap(
        over(m, lambda x: x * m.lax.psum(x.sum(), "a"), P("a"), P("a"))
    )(X.T),
    "vmap inside": lambda m, P: over(
        m, m.vmap(lambda x: x * m.lax.psum(x.sum(), "a")), P("a"), P("a")
    )(X),
    "scan inside": lambda m, P: over(
        m, lambda x: m.lax.scan(lambda c, r: (c + r, c * r), x[0], x), P("a"), (P("a"), P("a"))
    )(X),
    "gradient of it": lambda m, P: m.grad(over(m, loss(m), (P(), P("a")), P()), (0, 1))(W, X),
    "gradient of jit": lambda m, P: m.jit(m.grad(over(m, mixed(m), (P(), P("a")), P())))(W, X),
    "gradient inside": lambda m, P: over(m, m.grad(loss(m)), (P(), P("a")), P())(W, X),
    "gradient of a part inside": lambda m, P: over(m, m.grad(local(m)), (P(), P("a")), P())(W, X),
    "both gradients inside": lambda m, P: over(
        m, m.grad(loss(m), (0, 1)), (P(), P("a")), (P(), P("a"))
    )(W, X),
    "mixed gradient inside": lambda m, P: over(m, m.grad(mixed(m)), (P(), P("a")), P())(W, X),
    "value and gradient in jit": lambda m, P: m.jit(
        over(m, m.value_and_grad(mixed(m)), (P(), P("a")), P())
    )(W, X),
    "jit of a gradient inside": lambda m, P: over(
        m, lambda w, x: m.jit(m.grad(mixed(m)))(w, x), (P(), P("a")), P()
    )(W, X),
    "gradient of what counts as varying": lambda m, P: over(
        m, lambda w, x: m.grad(local(m))(m.lax.pcast(w, "a", to="varying"), x)[None],
        (P(), P("a")), P("a"),
    )(W, X),
    "sum of what is the same": lambda m, P: over(
        m, m.grad(lambda w, x: m.lax.psum((w**2).sum(), "a")), (P(), P("a")), P()
    )(W, X),
    "gradient over two axes": lambda m, P: over(
        m, m.grad(lambda w, x: m.lax.psum((x @ w).sum() ** 2, ("a", "b"))),
        (P("b"), P("a", "b")), P("b"), 2, 2,
    )(W, X),
    "gradient with a scan": lambda m, P: over(
        m,
        m.grad(
            lambda w, x: m.lax.psum(
                m.lax.scan(lambda c, r: (c + m.numpy.sin(r @ w).sum(), None), x[0, 0] * 0, x)[0],
                "a",
            )
        ),
        (P(), P("a")), P(),
    )(W, X),
    "gradient unchecked": lambda m, P: over(
        m, lambda w, x: m.lax.pmean(m.grad(local(m))(w, x), "a"), (P(), P("a")), P(),
        check_vma=False,
    )(W, X),
    "unchecked": lambda m, P: over(m, lambda x: x.sum(), P("a"), P(), check_vma=False)(V),
    "some axes": lambda m, P: m.jit(
        over(m, lambda x: x - x.max(), P("a"), P("a"), 2, 2, axis_names={"a"})
    )(X),
    "custom rule inside": lambda m, P: over(
        m, m.grad(lambda w, x: m.lax.psum((m.nn.relu(x @ w) ** 2).sum(), "a")), (P(), P("a")), P()
    )(W, X),
    "checkpoint inside": lambda m, P: over(
        m, m.grad(lambda w, x: m.lax.psum(m.checkpoint(local(m))(w, x), "a")), (P(), P("a")), P()
    )(W, X),
    "put": lambda m, P: m.device_put(X, m.NamedSharding(mesh(m, 4), P("a"))) * 2,
    "put by two": lambda m, P: m.device_put(X, m.NamedSharding(mesh(m, 2, 2), P("a", "b"))) + X,
    "put, whole": lambda m, P: m.device_put(X, m.NamedSharding(mesh(m, 2, 2), P())) + 1,
    "constraint": lambda m, P: m.jit(
        lambda x: m.lax.with_sharding_constraint(x + 1, m.NamedSharding(mesh(m, 4), P("a")))
    )(X),
    "jit puts": lambda m, P: m.jit(
        lambda x, n: x * n,
        static_argnums=1,
        in_shardings=m.NamedSharding(mesh(m, 4), P("a")),
        out_shardings=m.NamedSharding(mesh(m, 4), P(None, "a")),
    )(X, 3),
    "jit puts, by name": lambda m, P: m.jit(
        lambda x, n, y: x * n + y,
        static_argnames="n",
        in_shardings=(m.NamedSharding(mesh(m, 4), P("a")), None),
    )(X, 3, X),
    "jit puts, from the end": lambda m, P: m.jit(
        lambda x, n: x * n, static_argnums=-1, in_shardings=(m.NamedSharding(mesh(m, 4), P("a")),)
    )(X, 3),
    "constraint, axes of the mesh in use": lambda m, P: in_use(
        m,
        m.jit(
            lambda x: m.lax.with_sharding_constraint(
                x + 1, m.NamedSharding(m.sharding.get_abstract_mesh(), P("a"))
            )
        ),
    )(X),
    "constraint, axes of the value's mesh": lambda m, P: m.jit(
        lambda x: m.lax.with_sharding_constraint(
            x, m.NamedSharding(mesh(m, 4).abstract_mesh, P("a"))
        )
    )(m.device_put(X, m.NamedSharding(mesh(m, 4), P(None, "a")))),
    "constraint, axes of no mesh": lambda m, P: m.jit(
        lambda x: m.lax.with_sharding_constraint(
            x * 2, m.NamedSharding(m.sharding.AbstractMesh((4,), ("a",)), P("a"))
        )
    )(X),
    "jit puts trees": lambda m, P: m.jit(
        lambda t: {"x": t["x"] * 2},
        in_shardings=({"x": m.NamedSharding(mesh(m, 4), P("a"))},),
        out_shardings=m.NamedSharding(mesh(m, 4), P("a")),
    )({"x": X}),
    "from a callback": lambda m, P: m.make_array_from_callback(
        X.shape, m.NamedSharding(mesh(m, 2, 2), P("b", "a")), lambda i: X[i]
    ),
    "from parts": lambda m, P: m.make_array_from_single_device_arrays(
        (8,), m.NamedSharding(mesh(m, 4), P("a")),
        [m.device_put(V[2 * i : 2 * i + 2], d) for i, d in enumerate(m.devices()[:4])],
    ),
    "of the process": lambda m, P: m.make_array_from_process_local_data(
        m.NamedSharding(mesh(m, 4), P("a")), X
    ),
}  # fmt: skip
