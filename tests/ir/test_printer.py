"""The printed form of jaxprs, compared with JAX."""

import jax
import jax.numpy
import numpy as np
import pytest

import accnp
import accnp.numpy

X = np.arange(3, dtype=np.float32)
M = np.ones((2, 3), np.float32)
I32 = np.arange(4, dtype=np.int32)
ONE = np.float32(1.0)


class Both:
    """JAX or accnp, as a program sees it."""

    def __init__(self, top, numpy):
        self.jit = top.jit
        self.grad = top.grad
        self.vmap = top.vmap
        self.np = numpy
        self.lax = top.lax
        self.make_jaxpr = top.make_jaxpr


OURS = Both(accnp, accnp.numpy)
THEIRS = Both(jax, jax.numpy)


def both(program, *args, **options):
    """Return the jaxpr texts of accnp and JAX for a program (a function from a library to a
    function).
    """
    texts = []
    for library in (OURS, THEIRS):
        texts.append(str(library.make_jaxpr(program(library), **options)(*args)))
    return texts


def two_results(b):
    return lambda x: (x + 1, x, 2.0, None, {"a": x * 2})


def dead_code(b):
    def f(x):
        b.np.tanh(x)
        b.np.cos(x)
        return x + 1

    return f


def constants(b):
    c, d = b.np.asarray(np.ones(3, np.float32)), np.full(3, 2.0, np.float32)
    return lambda x: (x + c) * d + c


def scalar_constant(b):
    c = np.float32(3)
    return lambda x: x * c + np.float32(0.1)


def long_chain(b):
    def f(x):
        for _ in range(30):
            x = x * 2.5
        return x

    return f


def many_arguments(b):
    return lambda *xs: sum(xs)


def scan_of_cond(b):
    def step(c, x):
        c = b.lax.cond(x > 0, lambda c: c * 2, lambda c: c + x, c)
        return c, c

    return lambda x: b.lax.scan(step, 0.0, x)


def scan_with_constants(b):
    c = b.np.asarray(X + 1)
    return lambda x: b.lax.scan(lambda a, _: (a * c + x, None), x, None, length=3)


def while_with_constants(b):
    return lambda x, n: b.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, x))


def scan_forwards(b):
    return lambda x, w: b.lax.scan(lambda c, v: ((c[0] * c[1], c[1]), (v, c[0])), (w, w), x)


def nested_jit(b):
    g = b.jit(lambda y: y * 2)
    return lambda x: g(x) + 1


def shared_jit(b):
    c = np.ones(3, np.float32)
    g = b.jit(lambda y: (y * 2 + c, y))
    return lambda x: g(x)[0] + g(x)[0]


def long_jit(b):
    def big(x):
        for _ in range(6):
            x = x * 2 + 1
        return x

    return lambda x: b.jit(big)(x)


def jit_over_closure(b):
    return lambda x: b.jit(lambda y: y * 2 + x)(x)


def unused_jit(b):
    return lambda x: (b.jit(lambda y: y * 2)(x), x)[1]


def log2(b):
    return lambda x: b.np.log(x) / b.np.log(2.0)


def polynomial(b):
    return lambda x: 2 * x * x + 3 * x + 3


PROGRAMS = [
    (log2, 3.0),
    (polynomial, 3),
    (polynomial, 3.0),
    (two_results, X),
    (dead_code, X),
    (constants, X),
    (scalar_constant, X),
    (long_chain, X),
    (many_arguments, *range(31)),
    (scan_of_cond, X),
    (scan_with_constants, X),
    (while_with_constants, X, 3),
    (scan_forwards, X, ONE),
    (nested_jit, X),
    (shared_jit, X),
    (long_jit, X),
    (jit_over_closure, X),
    (unused_jit, X),
    (lambda b: lambda x: None, X),
    (lambda b: lambda x: x, X),
    (lambda b: lambda x: 1.0, X),
    (lambda b: lambda x: x**2, 2.0),
    (lambda b: lambda x: x**2 + x**-3, X),
    (lambda b: lambda x: x**3.5 + x**x, X),
    (lambda b: lambda x: x * 0.123456789 + 1e-7, X),
    (lambda b: lambda x: -x * np.inf + np.nan, X),
    (lambda b: lambda x: x + 1j, X),
    (lambda b: lambda x: ~(x > 1) & (x == x), X),
    (lambda b: lambda x: b.np.exp(x) - b.np.log1p(x), M),
    (lambda b: lambda x: b.np.sum(x, axis=0) + b.np.max(x), M),
    (lambda b: lambda x: b.np.mean(x, axis=1, keepdims=True), M),
    (lambda b: lambda x: x.reshape(3, 2).T, M),
    (lambda b: lambda x: x[:, None], X),
    (lambda b: lambda x: b.np.float32(3) * x, X),
    (lambda b: lambda x: b.np.zeros((3,)) + x, X),
    (lambda b: lambda x: b.np.concatenate([x, x]), X),
    (lambda b: lambda x: x.astype(int), X),
    (lambda b: lambda x: x[1:], X),
    (lambda b: lambda x: x[0] + x[-1], X),
    (lambda b: lambda x: b.np.dot(x, x), X),
    (lambda b: lambda x: x @ x.T, M),
    (lambda b: lambda x: b.np.arange(3) + x, X),
    (lambda b: lambda x: b.np.squeeze(b.np.expand_dims(x, 1), 1), X),
    (lambda b: lambda x: b.lax.cond(x > 0, lambda x: x, lambda x: x * 2, x), ONE),
    (lambda b: lambda x: b.lax.cond(True, lambda x: x, lambda x: x * 2, x), ONE),
    (lambda b: lambda i: b.lax.switch(i, [lambda y: y, lambda y: y + 1, lambda y: y * 2], 2.0), 1),
    (lambda b: lambda x: b.lax.while_loop(lambda x: x < 3, lambda x: x + 1, x), 1.0),
    (lambda b: lambda x: b.lax.fori_loop(0, 3, lambda i, x: x + i, x), 1.0),
    (lambda b: lambda n: b.lax.fori_loop(0, n, lambda i, x: x + i, 0), 4),
    (lambda b: lambda x: b.lax.scan(lambda c, x: (c + x, c), 0, x, reverse=True), I32),
    (lambda b: lambda x: b.lax.scan(lambda c, x: (c + x, c), 0.0, x, unroll=2), X),
    (lambda b: lambda x: b.lax.map(lambda y: y * 2, x), X),
    (lambda b: lambda x: b.lax.associative_scan(b.np.add, x), np.arange(7)),
    (lambda b: lambda x: b.np.where(x > 0, x, 0), X),
    (lambda b: lambda x: b.np.where(x > 0, x, 0) + b.np.where(x > 1, x, 0), X),
    (lambda b: lambda x: b.np.clip(x, 0, 1), X),
    (lambda b: lambda x: b.np.sort(x, axis=0), M),
    (lambda b: lambda x: b.np.cumsum(x, axis=1), M),
    (lambda b: lambda x: b.np.round(x), M),
    (lambda b: b.jit(lambda x: x * 2), X),
    (lambda b: b.vmap(lambda x: x * 2), X),
]


@pytest.mark.parametrize(("program", "args"), [(p[0], p[1:]) for p in PROGRAMS])
def test_text_matches_jax(program, args):
    ours, theirs = both(program, *args)
    assert ours == theirs


def test_static_arguments_are_not_inputs():
    ours, theirs = both(lambda b: lambda x, n: x * n, 1, 3, static_argnums=(1,))
    assert ours == theirs


def test_parts_of_a_jaxpr():
    closed = accnp.make_jaxpr(lambda x: accnp.numpy.log(x) * X)(X)
    expected = jax.make_jaxpr(lambda x: jax.numpy.log(x) * X)(X)
    assert [e.primitive.name for e in closed.eqns] == [e.primitive.name for e in expected.eqns]
    assert [str(e) for e in closed.eqns] == [str(e) for e in expected.eqns]
    assert [a.shape for a in closed.in_avals] == [(3,)]
    assert [a.dtype for a in closed.out_avals] == [np.float32]
    np.testing.assert_array_equal(np.asarray(closed.consts[0]), X)
    assert len(closed.jaxpr.constvars) == 1
    assert closed.jaxpr.eqns[1].invars[0] is closed.jaxpr.eqns[0].outvars[0]


def test_shape_is_returned_on_demand():
    closed, shape = accnp.make_jaxpr(lambda x: {"a": x + 1}, return_shape=True)(X)
    assert shape == {"a": accnp.ShapeDtypeStruct((3,), np.float32)}
    assert str(closed).startswith("{ lambda ; a:f32[3]. let")


def test_a_side_effect_sees_a_traced_value():
    seen = []
    accnp.make_jaxpr(lambda x: seen.append(x))(1.0)
    assert "float32[]" in repr(seen[0])


def test_types_without_values():
    struct = accnp.ShapeDtypeStruct((2, 3), np.float32)
    out = accnp.eval_shape(lambda x, y: {"s": x.sum(), "p": x * y}, struct, 2.0)
    expected = jax.eval_shape(
        lambda x, y: {"s": x.sum(), "p": x * y}, jax.ShapeDtypeStruct((2, 3), np.float32), 2.0
    )
    assert {k: (v.shape, v.dtype) for k, v in out.items()} == {
        k: (v.shape, v.dtype) for k, v in expected.items()
    }
    assert repr(struct) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert repr(accnp.typeof(1.0)) == "ShapedArray(float32[], weak_type=True)"


def test_non_array_arguments_are_named():
    with pytest.raises(TypeError, match="x"):
        accnp.make_jaxpr(lambda x: x)("text")


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap", "mean"])
def test_a_jaxpr_of_pad(mode):
    closed = accnp.make_jaxpr(lambda x: accnp.numpy.pad(x, 1, mode=mode))(M)
    padded = accnp.core.eval_jaxpr(closed.jaxpr, closed.consts, M)[0]
    np.testing.assert_array_equal(padded, np.pad(M, 1, mode=mode))
