"""Meshes, shardings and `shard_map` compared with JAX, both with four CPU devices (see
conftest.py).
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from transforms.shard_programs import PROGRAMS, V, X, mesh, over

import accnp


@pytest.mark.parametrize("name", PROGRAMS)
def test_shard_map_matches_jax(name: str) -> None:
    expected = jax.tree.leaves(PROGRAMS[name](jax, jax.P))
    actual = accnp.tree.leaves(PROGRAMS[name](accnp, accnp.P))
    assert len(actual) == len(expected)
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, atol=1e-6)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if "gradient" not in name and "vmap" not in name and name != "some axes":
            assert text(x.sharding) == text(y.sharding)
            if name != "unchecked":  # in JAX, the replicas of that result differ
                compare_shards(x, y)


def text(sharding: Any) -> str:
    return str(sharding)


def compare_shards(x: Any, y: Any) -> None:
    ours, theirs = (
        sorted(array.addressable_shards, key=lambda s: s.device.id) for array in (x, y)
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
def test_invalid_arguments_raise(name: str) -> None:
    program, message = WRONG[name]
    with pytest.raises(Exception):  # noqa: B017, PT011 - JAX raises several classes
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


def test_shardings_report_shard_positions() -> None:
    for spec in (("a",), (None, "b"), ("b", "a"), (("a", "b"),), ()):
        theirs, ours = (m.NamedSharding(mesh(m, 2, 2), m.P(*spec)) for m in (jax, accnp))
        expected, actual = (
            {d.id: i for d, i in s.devices_indices_map((8, 4)).items()} for s in (theirs, ours)
        )  # fmt: skip
        assert actual == expected
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
