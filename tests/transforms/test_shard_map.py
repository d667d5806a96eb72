"""Meshes, shardings and `shard_map` against jax, both with four CPU devices (see conftest.py)."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

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
    """The mean over all parts of a loss of one part."""

    def f(w: Any, x: Any) -> Any:
        return m.lax.pmean((m.numpy.sin(x @ w) ** 2).mean(), "a")

    return f


def local(m: Any) -> Callable[..., Any]:
    return lambda w, x: (m.numpy.sin(x @ w) ** 2).mean()


def mixed(m: Any) -> Callable[..., Any]:
    """A term that differs between the parts and one that does not."""
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


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_jax(name: str) -> None:
    wanted = jax.tree.leaves(PROGRAMS[name](jax, jax.P))
    found = accnp.tree.leaves(PROGRAMS[name](accnp, accnp.P))
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(f), np.asarray(w), rtol=1e-5, atol=1e-6)
        assert (f.shape, f.dtype) == (w.shape, w.dtype)
        if "gradient" not in name and "vmap" not in name and name != "some axes":
            assert text(f.sharding) == text(w.sharding)
            if name != "unchecked":  # theirs keeps the other parts, hidden
                compare_parts(f, w)


def text(sharding: Any) -> str:
    return str(sharding)


def compare_parts(f: Any, w: Any) -> None:
    ours, theirs = (
        sorted(x.addressable_shards, key=lambda s: s.device.id) for x in (f, w)
    )  # fmt: skip
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.device.id, a.index, a.replica_id) == (b.device.id, b.index, b.replica_id)
        np.testing.assert_allclose(a.data, b.data, rtol=1e-5, atol=1e-6)


WRONG: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "uneven": (lambda m, P: over(m, lambda x: x, P("a"), P("a"))(V[:6]), "must divide"),
    "differs": (lambda m, P: over(m, lambda x: x, P("a"), P())(V), r"differs along.*'a'"),
    "unknown axis": (lambda m, P: over(m, lambda x: x, P("q"), P())(V), "'q'"),
    "rank": (lambda m, P: over(m, lambda x: x, P(None, "a"), P())(V), "rank 1"),
    "rank of the result": (lambda m, P: over(m, lambda x: x.sum(), P("a"), P("a"))(V), "rank 0"),
    "number of specs": (lambda m, P: over(m, lambda x: x, (P(), P()), P())(V), "each argument"),
    "unbound": (lambda m, P: over(m, lambda x: m.lax.psum(x, "z"), P("a"), P())(V), "unbound"),
    "put uneven": (
        lambda m, P: m.device_put(V[:6], m.NamedSharding(mesh(m, 4), P("a"))),
        "must divide its length; got 6",
    ),
    "put rank": (
        lambda m, P: m.device_put(V, m.NamedSharding(mesh(m, 4), P(None, "a"))), "rank 2"
    ),
    "axis of no mesh": (lambda m, P: m.NamedSharding(mesh(m, 4), P("q")), "no axis 'q'"),
    "axis twice": (lambda m, P: m.NamedSharding(mesh(m, 4), P("a", "a")), "twice"),
    "names": (lambda m, P: m.sharding.Mesh(np.array(m.devices()[:2]), ("a", "b")), "one name"),
    "no mesh": (lambda m, P: m.lax.with_sharding_constraint(V, P("a")), "needs a mesh"),
    "too many": (lambda m, P: m.make_mesh((9,), ("a",)), "needs 9 devices"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    program, message = WRONG[name]
    with pytest.raises(Exception):  # noqa: B017, PT011 - some are of kinds of their own
        program(jax, jax.P)
    kind = NameError if name == "unbound" else ValueError
    with pytest.raises(kind, match=message):
        program(accnp, accnp.P)


def test_specs_and_meshes_are_those_of_jax() -> None:
    for a, b in (
        (m.P("x", None, ("y", "z")), m.P("x", ("y",), [])) for m in (jax, accnp)
    ):  # fmt: skip
        assert repr(a) == "P('x', None, ('y', 'z'))"
        assert tuple(b) == ("x", "y", None)
        assert tuple(a + b) == (*a, *b)
        assert b != ("x", "y", None)
        assert hash(a) != hash(b)
    assert pickle.loads(pickle.dumps(accnp.P("x", unreduced={"y"}))) == accnp.P(
        "x", unreduced={"y"}
    )
    theirs, ours = (m.make_mesh((2, 2), ("a", "b")) for m in (jax, accnp))
    for name in ("shape", "size", "axis_names", "axis_sizes", "empty", "is_multi_process"):
        assert getattr(theirs, name) == getattr(ours, name)
    assert (str(ours), repr(ours)) == (str(theirs), repr(theirs))
    assert ours.device_ids.tolist() == theirs.device_ids.tolist()
    assert str(ours.abstract_mesh) == str(theirs.abstract_mesh)
    assert ours == accnp.make_mesh((2, 2), ("a", "b"))
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_meshes_in_use() -> None:
    for m in (jax, accnp):
        grid = mesh(m, 4)
        with m.set_mesh(grid):
            x = m.jit(lambda x: x * 2, out_shardings=m.P("a"))(V)
            assert x.sharding == m.NamedSharding(grid, m.P("a"))
            assert m.sharding.get_abstract_mesh().axis_names == ("a",)
            total = functools.partial(m.lax.psum, axis_name="a")
            y = m.shard_map(total, in_specs=m.P("a"), out_specs=m.P())(x)
            assert np.asarray(y).tolist() == [24, 32]
        assert m.sharding.get_mesh().empty


def test_shardings_say_where_parts_lie() -> None:
    for spec in (("a",), (None, "b"), ("b", "a"), (("a", "b"),), ()):
        theirs, ours = (m.NamedSharding(mesh(m, 2, 2), m.P(*spec)) for m in (jax, accnp))
        wanted, found = (
            {d.id: i for d, i in s.devices_indices_map((8, 4)).items()} for s in (theirs, ours)
        )  # fmt: skip
        assert found == wanted
        assert ours.shard_shape((8, 4)) == theirs.shard_shape((8, 4))
        assert ours.is_fully_replicated == theirs.is_fully_replicated
    one = accnp.NamedSharding(mesh(accnp, 2, 2), accnp.P(("a", "b")))
    other = accnp.NamedSharding(mesh(accnp, 4), accnp.P("a"))
    assert one.is_equivalent_to(other, 1)
    assert not one.is_equivalent_to(other.update(spec=accnp.P(None, "a")), 2)


def test_operands_on_other_devices_are_refused() -> None:
    a = accnp.device_put(V, accnp.NamedSharding(mesh(accnp, 4), accnp.P("a")))
    b = accnp.device_put(V, accnp.devices()[0])
    with pytest.raises(ValueError, match="different devices"):
        a + b


def test_the_function_is_traced_once() -> None:
    traces = []

    def f(x: Any) -> Any:
        traces.append(x.shape)
        return x * accnp.lax.psum(x, ("a", "b"))

    P = accnp.P
    g = accnp.jit(over(accnp, f, P("a", "b"), P("a", "b"), 2, 2))
    g(X)
    g(X + 1)
    assert traces == [(4, 2)]
