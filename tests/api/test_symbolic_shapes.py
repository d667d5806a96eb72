"""Shapes of results where sizes of arguments are symbols."""

import jax
import numpy as np
import pytest
from jax import export as their_export

import accnp
import accnp.numpy
from accnp import export
from accnp.errors import InconclusiveDimensionOperation

PROGRAMS = {
    "identity": lambda m, a, w: a,
    "joined": lambda m, a, w: m.numpy.concatenate([a, a]),
    "product": lambda m, a, w: a @ w,
    "square": lambda m, a, w: a @ a.T,
    "flat": lambda m, a, w: a.reshape(-1),
    "sums": lambda m, a, w: {"rows": a.sum(1), "all": (a.mean(), a.max(0))},
    "network": lambda m, a, w: m.nn.softmax(m.nn.relu(a @ w), -1),
    "padded": lambda m, a, w: m.numpy.pad(a, ((1, 2), (0, 0))),
    "strided": lambda m, a, w: a[1:, ::2],
    "random": lambda m, a, w: m.random.normal(m.random.key(0), a.shape),
    "dtype": lambda m, a, w: (a > 0).astype("int8"),
    "mapped": lambda m, a, w: m.vmap(lambda r: r @ w)(a),
    "loop": lambda m, a, w: m.lax.fori_loop(0, 3, lambda i, c: c * 2, a),
    "gradient": lambda m, a, w: m.grad(lambda a: (a @ w).sum())(a),
}


def types(m, e, name, through):
    (d,) = e.symbolic_shape("d", constraints=["d >= 3"])
    a = m.ShapeDtypeStruct((d, 4), np.float32)
    w = m.ShapeDtypeStruct((4, 5), np.float32)

    def f(a, w):
        return PROGRAMS[name](m, a, w)

    found = m.jit(f).eval_shape(a, w) if through == "jit" else m.eval_shape(f, a, w)
    return [(tuple(map(str, x.shape)), x.dtype) for x in m.tree_util.tree_leaves(found)]


@pytest.mark.parametrize("through", ["eval_shape", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name, through):
    assert types(accnp, export, name, through) == types(jax, their_export, name, through)


def test_several_symbols():
    a, b = export.symbolic_shape("a, b")
    x = accnp.ShapeDtypeStruct((a, b), np.float32)
    found = accnp.eval_shape(lambda x: (x.T, x.reshape(-1)), x)
    assert [x.shape for x in found] == [(b, a), (a * b,)]
    (c,) = export.symbolic_shape("c")
    with pytest.raises(ValueError, match="one scope"):
        accnp.eval_shape(lambda x, y: x, x, accnp.ShapeDtypeStruct((c,), np.float32))


def test_what_a_size_does_not_allow_is_refused():
    (d,) = export.symbolic_shape("d")
    x = accnp.ShapeDtypeStruct((d, 3), np.float32)
    with pytest.raises(TypeError):
        accnp.eval_shape(lambda x: x.reshape(4, -1), x)


REMAINDERS = {
    "every other": lambda a: a[::2],
    "the others": lambda a: a[1::2],
    "half": lambda a: a[: a.shape[0] // 2],
    "scaled by half": lambda a: a * (a.shape[0] // 2),
}


@pytest.mark.parametrize("name", REMAINDERS)
def test_halves_of_sizes_are_right_for_odd_and_even_ones(name):
    """Sizes that were all odd made halves look like polynomials, wrong at even sizes."""
    f = REMAINDERS[name]
    (d,) = export.symbolic_shape("d")
    made = export.export(accnp.jit(f))(accnp.ShapeDtypeStruct((d,), np.float32))
    again = export.deserialize(made.serialize())
    for n in range(4, 12):
        x = np.arange(n, dtype=np.float32)
        for exported in (made, again):
            np.testing.assert_array_equal(np.asarray(exported.call(x)), f(x))


@pytest.mark.parametrize("f", [lambda a: a + a.shape[0] % 2, lambda a: a + a.shape[0] % 3])
def test_what_follows_no_rule_is_refused(f):
    (d,) = export.symbolic_shape("d")
    with pytest.raises(InconclusiveDimensionOperation):
        export.export(accnp.jit(f))(accnp.ShapeDtypeStruct((d,), np.float32))
