"""`export`: serialized programs in another process, with symbolic sizes and derivatives.

Results and properties are compared with the original function and with JAX.
"""

from __future__ import annotations

import collections
import subprocess
import sys
from pathlib import Path

import jax as peer
import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import export, lax

W = {"w": np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5), "b": np.ones(5, np.float32)}


def model(p, x):
    h = jax.nn.relu(x @ p["w"] + p["b"])
    h = lax.scan(lambda c, _: (jnp.tanh(c) * 2, None), h, None, length=3)[0]
    return {
        "soft": jax.nn.softmax(h), "std": jnp.std(h, 0), "order": jnp.argsort(h, axis=0)[:3],
        "sum": jnp.cumsum(h, 0)[-1], "set": h.at[0].set(5.0), "mean": h.mean(),
    }  # fmt: skip


def data(n):
    return np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)


def kinds(text, **more):
    return jax.ShapeDtypeStruct(export.symbolic_shape(text, **more), np.float32)


def exported(f, *args):
    return export.export(jax.jit(f))(*args)


def test_one_program_for_all_sizes_with_its_derivative():
    read = export.deserialize(exported(model, W, kinds("b, 4")).serialize(vjp_order=1))
    assert repr(read.in_avals[2]) == "ShapedArray(float32[b,4])"
    assert repr(read.out_avals[3]) == "ShapedArray(float32[b,5])"
    for n in (3, 9, 50):
        actual, expected = read.call(W, data(n)), model(W, data(n))
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), actual, expected))

    def loss(p, f):
        return (f(p, data(6))["soft"][:, 0] ** 2).sum()

    actual, expected = jax.grad(loss)(W, read.call), jax.grad(loss)(W, model)
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, b, rtol=1e-5), actual, expected))


def test_serialized_programs_run_in_another_process(tmp_path):
    (tmp_path / "program").write_bytes(exported(model, W, kinds("b, 4")).serialize())
    np.savez(tmp_path / "in.npz", x=data(7), **W)
    code = (
        "import sys, numpy as np, accnp; d = sys.argv[1]; x = dict(np.load(d + '/in.npz'));"
        "read = accnp.export.deserialize(open(d + '/program', 'rb').read());"
        "out = read.call({'w': x['w'], 'b': x['b']}, x['x']);"
        "np.savez(d + '/out.npz', **{k: np.asarray(v) for k, v in out.items()})"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    actual, expected = np.load(tmp_path / "out.npz"), model(W, data(7))
    assert all((actual[k] == np.asarray(expected[k])).all() for k in expected)


def test_programs_close_over_arrays_that_are_not_computed_yet() -> None:
    bias = jnp.arange(3.0) * 2  # recorded only

    def f(x: jax.Array) -> jax.Array:
        y = lax.cond(x[0] > 0, lambda v: v + bias, lambda v: v - bias, x)
        return lax.scan(lambda c, _: (c * jnp.ones(3) + bias, None), y, None, length=2)[0]

    for g in (f, jax.grad(lambda x: f(x).sum())):
        read = export.deserialize(exported(g, jnp.ones(3)).serialize())
        assert (read.call(jnp.ones(3)) == g(jnp.ones(3))).all()


def test_constants_that_share_memory_keep_their_shapes() -> None:
    x = jnp.arange(6.0).block_until_ready()
    y = x.reshape(2, 3).block_until_ready()

    def f(a: jax.Array) -> jax.Array:
        return a * y + x[1:4] * y[1]

    read = export.deserialize(exported(f, jax.ShapeDtypeStruct((3,), np.float32)).serialize())
    a = np.arange(3, dtype=np.float32)
    assert (read.call(a) == f(a)).all()


def test_exported_properties_match_jax():
    def about(m):
        f = m.jit(lambda x, *, k: (m.numpy.sin(x) * k, 2))
        e = m.export.export(f)(m.ShapeDtypeStruct((3,), np.float32), k=2.0)
        assert e.call(m.numpy.zeros(3), k=2.0)[1] == 2
        return [
            e.fun_name, repr(e.in_avals), repr(e.out_avals), repr(e.in_tree), repr(e.out_tree),
            e.platforms, e.nr_devices, e.has_vjp(), e.calling_convention_version, str(e),
            e.disabled_safety_checks, e.module_kept_var_idx, e.uses_global_constants,
        ]  # fmt: skip

    ours, theirs = about(jax), about(peer)
    assert ours == theirs


def test_symbols_are_those_of_jax():
    for m in (jax, peer):
        b, c = m.export.symbolic_shape("b, c")
        text = [b + 1, 2 * b - c, b * b, -b, b // 2, b % 2, b * c + 2 * b - 1]
        expected = "b + 1|- c + 2*b|b^2|- b|floordiv(b, 2)|mod(b, 2)|b*c + 2*b - 1"
        assert "|".join(map(str, text)) == expected
        assert (b > 0, b >= 1, b == b, b == c, b == 3) == (True, True, True, False, False)
        for ask in (lambda b=b: b > 1, lambda b=b, c=c: b > c, lambda b=b: int(b)):
            with pytest.raises(Exception, match=r"inconclusive|requires a constant"):
                ask()
        assert m.export.symbolic_shape("b", constraints=["b >= 8"])[0] >= 8
        assert m.export.symbolic_shape("b, _", like=(None, 7))[1] == 7
        specs = m.export.symbolic_args_specs((np.ones((3, 4)), {"a": np.ones(3)}), ("b, ...", None))
        assert str(specs[0].shape) == "(b, 4)"
        assert specs[1]["a"].shape == (3,)
        with pytest.raises(ValueError, match="syntax"):
            m.export.symbolic_shape("b &")
        assert m.export.is_symbolic_dim(b)
        assert not m.export.is_symbolic_dim(3)


def test_sizes_follow_from_symbols():
    assert str(exported(lambda x: x.reshape(-1), kinds("b, 4")).out_avals[0].shape) == "(4*b,)"
    even = kinds("b", constraints=["mod(b, 2) == 0"])
    halves = exported(lambda x: x.reshape(-1, 2), even)
    assert str(halves.out_avals[0].shape) == "(floordiv(b, 2), 2)"
    assert halves.call(jnp.arange(6.0)).shape == (3, 2)
    with pytest.raises(ValueError, match="mod"):
        halves.call(jnp.arange(5.0))
    two = exported(lambda x, y: jnp.concatenate([x, y]), *export.symbolic_args_specs(
        (np.ones(3, np.float32),) * 2, ("b", "2*c")))  # fmt: skip
    assert str(two.out_avals[0].shape) == "(2*c + b,)"
    assert two.call(jnp.ones(3), jnp.ones(4)).shape == (7,)
    with pytest.raises(ValueError, match="Shape mismatch"):
        two.call(jnp.ones(3), jnp.ones(5))
    with pytest.raises(jax.errors.InconclusiveDimensionOperation):
        exported(lambda x: x if x.shape[0] > 20 else -x, kinds("b"))


def test_wrong_arguments_and_bytes_are_refused():
    e = exported(lambda x: x, jnp.ones(3))
    for bad in (jnp.ones(4), jnp.ones(3, int), jnp.ones((3, 1))):
        with pytest.raises(ValueError, match="args"):
            e.call(bad)
    with pytest.raises(ValueError, match="structure"):
        e.call(jnp.ones(3), 1)
    with pytest.raises(ValueError, match="result of `jit`"):
        export.export(model)
    blob = e.serialize()
    blob[-20] ^= 1
    for bad in (b"abc", blob):
        with pytest.raises(ValueError, match="bytes"):
            export.deserialize(bad)
    with pytest.raises(NotImplementedError, match="pure_callback"):
        exported(lambda x: jax.pure_callback(lambda v: v, x, x), 1.0)
    cuda = export.export(jax.jit(lambda x: x), platforms=["cuda"])(1.0)
    with pytest.raises(ValueError, match="exported for platforms"):
        cuda.call(1.0)
    skip = [export.DisabledSafetyCheck.platform()]
    more = export.export(jax.jit(lambda x: x), platforms=["cuda"], disabled_checks=skip)(1.0)
    assert more.call(1.0) == 1


def test_derivatives_of_programs():
    @jax.custom_jvp
    def f(x):
        return x * 2

    f.defjvps(lambda t, y, x: 7 * t)
    e = exported(f, 1.0)
    assert jax.grad(e.call)(1.0) == 7
    read = export.deserialize(e.serialize(vjp_order=1))
    assert (read.call(1.0), jax.grad(read.call)(1.0)) == (2, 7)
    assert read.has_vjp()
    bare = export.deserialize(e.serialize())
    assert not bare.has_vjp()
    with pytest.raises(ValueError, match="No VJP"):
        jax.grad(bare.call)(1.0)
    sine = exported(jnp.sin, 1.0)
    assert jax.jvp(sine.call, (0.0,), (1.0,))[1] == 1
    assert jax.vmap(sine.call)(jnp.zeros(3)).tolist() == [0, 0, 0]


def test_keys_and_registered_types_go_through_bytes():
    e = exported(lambda key: jax.random.normal(key, (3,)), jax.random.key(0))
    read = export.deserialize(e.serialize())
    key = jax.random.key(5)
    assert (read.call(key) == jax.random.normal(key, (3,))).all()
    Pair = collections.namedtuple("Pair", "a b")
    make = exported(lambda x: Pair(x, [x + 1]), 1.0)
    assert make.call(1.0).b == [2]
    with pytest.raises(
        ValueError, match="values of type Pair cannot be stored; register the type with"
    ):
        make.serialize()
    export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")
    assert export.deserialize(make.serialize()).call(1.0) == Pair(1, [2])
    with pytest.raises(ValueError, match="Duplicate"):
        export.register_namedtuple_serialization(Pair, serialized_name="tests.Other")


class Box:
    def __init__(self, x, unit):
        self.x, self.unit = x, unit


def test_nodes_of_the_user_go_through_bytes():
    jax.tree_util.register_pytree_node(
        Box, lambda b: ((b.x,), b.unit), lambda unit, children: Box(children[0], unit)
    )
    more = {"serialize_auxdata": str.encode, "deserialize_auxdata": bytes.decode}
    export.register_pytree_node_serialization(Box, serialized_name="tests.Box", **more)
    e = exported(lambda b: Box(b.x * 2, b.unit), Box(1.0, "m"))
    out = export.deserialize(e.serialize()).call(Box(3.0, "m"))
    assert (out.x, out.unit) == (6, "m")


def test_programs_with_former_names_of_ops_load():
    """The file was written by commit 9e9d9e0f, when five of its ops had other names."""
    stored = Path(__file__).with_name("serialized_with_former_op_names.bin").read_bytes()
    read = export.deserialize(bytearray(stored))
    x = data(3)
    expected = {
        "gelu": jax.nn.gelu(x),
        "gelu_erf": jax.nn.gelu(x, approximate=False),
        "normal": jax.scipy.special.ndtr(x),
        "log_sum": jax.nn.logsumexp(x, axis=1),
        "digamma": jax.scipy.special.beta(jnp.abs(x) + 1, jnp.abs(x) + 2),
        "sorted": jnp.sort(x, axis=0),
        "max": x.max(1),
        "product": x @ x.T,
    }
    jax.tree.map(np.testing.assert_array_equal, read.call(x), expected)
    gradient = jax.grad(lambda v: sum(out.sum() for out in read.call(v).values()))(x)
    assert np.isfinite(np.asarray(gradient)).all()
