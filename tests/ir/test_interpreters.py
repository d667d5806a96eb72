"""User-defined interpreters of jaxprs, run with JAX and accnp from the same source."""

from collections import Counter
from functools import partial, wraps

import jax
import jax.extend.core
import jax.interpreters.ad
import jax.interpreters.batching
import jax.interpreters.mlir
import numpy as np
import pytest

import accnp

X = np.linspace(0.2, 0.9, 4, dtype=np.float32)
M = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
LIBRARIES = pytest.mark.parametrize("lib", [jax, accnp], ids=["jax", "accnp"])


def evaluator(lib):
    """The evaluation loop of JAX's tutorial on custom interpreters."""
    core = lib.extend.core

    def eval_jaxpr(jaxpr, consts, *args):
        env = {}

        def read(var):
            if type(var) is core.Literal:
                return var.val
            return env[var]

        def write(var, val):
            env[var] = val

        list(map(write, jaxpr.invars, args))
        list(map(write, jaxpr.constvars, consts))
        for eqn in jaxpr.eqns:
            invals = list(map(read, eqn.invars))
            outvals = eqn.primitive.bind(*invals, **eqn.params)
            if not eqn.primitive.multiple_results:
                outvals = [outvals]
            list(map(write, eqn.outvars, outvals))
        return list(map(read, jaxpr.outvars))

    return eval_jaxpr


def inverter(lib):
    """The tutorial's inverse of a function, which evaluates its jaxpr backwards."""
    core, lax, jnp = lib.extend.core, lib.lax, lib.numpy
    registry = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh, lax.sin_p: jnp.arcsin}

    def inverse(fun):
        @wraps(fun)
        def wrapped(*args, **kwargs):
            closed = lib.make_jaxpr(fun)(*args, **kwargs)
            out = inverse_jaxpr(closed.jaxpr, closed.literals, *args)
            return out[0]

        return wrapped

    def inverse_jaxpr(jaxpr, consts, *args):
        env = {}

        def read(var):
            if type(var) is core.Literal:
                return var.val
            return env[var]

        def write(var, val):
            env[var] = val

        list(map(write, jaxpr.outvars, args))
        list(map(write, jaxpr.constvars, consts))
        for eqn in jaxpr.eqns[::-1]:
            invals = list(map(read, eqn.outvars))
            if eqn.primitive.name == "jit":
                inner = eqn.params["jaxpr"]
                outval = inverse_jaxpr(inner.jaxpr, inner.consts, *invals)[0]
            elif eqn.primitive not in registry:
                raise NotImplementedError(f"{eqn.primitive} does not have registered inverse.")
            else:
                outval = registry[eqn.primitive](*invals)
            list(map(write, eqn.invars, [outval]))
        return list(map(read, jaxpr.invars))

    return inverse


@LIBRARIES
def test_evaluation_loop(lib):
    jnp = lib.numpy
    c = jnp.asarray(X + 1)

    def f(x, m):
        y = lib.jit(lambda v: jnp.sin(v) * 2 + c)(x)
        z = lib.lax.cond(y.sum() > 0, jnp.cos, jnp.exp, y)
        w, steps = lib.lax.scan(lambda a, b: (a + b * z[0], a), 0.0, m[0])
        w = lib.lax.while_loop(lambda v: v < 3, lambda v: v + z[1] ** 2 + 0.1, w)
        return jnp.sort(z)[::-1], (m @ z, w), steps, jnp.where(x > 0.5, x, 0.0), m[1:, ::2]

    closed = lib.make_jaxpr(f)(X, M)
    actual = evaluator(lib)(closed.jaxpr, closed.literals, X, M)
    other = lib.core.eval_jaxpr(closed.jaxpr, closed.consts, X, M)
    expected = jax.tree.leaves(lib.tree.leaves(f(X, M)))
    assert len(actual) == len(other) == len(expected)
    for a, b, d in zip(actual, other, expected, strict=True):
        np.testing.assert_allclose(a, d, rtol=1e-6)
        np.testing.assert_allclose(b, d, rtol=1e-6)


@LIBRARIES
def test_inverse(lib):
    jnp = lib.numpy
    inverse = inverter(lib)

    def f(x):
        return jnp.exp(jnp.tanh(x))

    f_inv = inverse(f)
    np.testing.assert_allclose(f_inv(f(1.0)), 1.0, rtol=1e-5)
    jaxpr = lib.make_jaxpr(inverse(f))(f(1.0))
    assert [e.primitive.name for e in jaxpr.eqns] == ["log", "atanh"]
    many = lib.jit(lib.vmap(lib.grad(inverse(f))))((jnp.arange(5) + 1.0) / 5)
    expected = jax.vmap(jax.grad(lambda y: jax.numpy.arctanh(jax.numpy.log(y))))(
        (jax.numpy.arange(5) + 1.0) / 5
    )
    np.testing.assert_allclose(many, expected, rtol=1e-4)
    inner = inverse(lambda x: lib.jit(jnp.sin)(jnp.exp(x)))
    np.testing.assert_allclose(inner(0.5), np.log(np.arcsin(0.5)), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="cos does not have registered inverse"):
        inverse(jnp.cos)(0.5)


def counted(lib, closed):
    """Count the primitives of a program and of its inner programs."""
    counts = Counter()

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            counts[eqn.primitive.name] += 1
            for inner in lib.extend.core.jaxprs_in_params(eqn.params):
                walk(inner)

    walk(closed.jaxpr)
    return counts


def test_counting_primitives():
    counts = []
    for lib in (jax, accnp):
        jnp = lib.numpy

        def f(x, lib=lib, jnp=jnp):
            y = lib.lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) * i, x)
            return lib.jit(lambda v: jnp.exp(v) + jnp.exp(-v))(y).sum()

        programs = (f, lib.vmap(f), lib.jit(lib.grad(f)))
        counts.append([counted(lib, lib.make_jaxpr(g)(X)) for g in programs])
    assert counts[0][:2] == counts[1][:2]
    for name in ("jit", "scan", "sin", "cos", "exp"):
        assert counts[0][2][name] == counts[1][2][name], name


def flops(lib, jaxpr):
    """Count multiplications and additions, including elementwise operations, products and loop
    iterations.
    """
    total = 0
    for eqn in jaxpr.eqns:
        name, out = eqn.primitive.name, eqn.outvars[0].aval
        if name in ("add", "mul", "sub", "add_any"):
            total += out.size
        elif name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            total += 2 * out.size * int(np.prod([eqn.invars[0].aval.shape[i] for i in contracted]))
        elif name == "scan":
            total += eqn.params["length"] * flops(lib, eqn.params["jaxpr"].jaxpr)
        elif name == "cond":
            total += max(flops(lib, b.jaxpr) for b in eqn.params["branches"])
        elif name == "reduce_sum":
            total += eqn.invars[0].aval.size
        else:
            total += sum(flops(lib, j) for j in lib.extend.core.jaxprs_in_params(eqn.params))
    return total


def test_counting_flops():
    flop_counts = []
    for lib in (jax, accnp):
        jnp = lib.numpy

        def mlp(ws, x, jnp=jnp, lib=lib):
            for w in ws:
                x = lib.jit(lambda w, x: jnp.tanh(x @ w) * 2 + 1)(w, x)
            x, _ = lib.lax.scan(lambda c, _: (c * x + x, None), x, None, length=5)
            return lib.lax.cond(x[0, 0] > 0, lambda: x * 2, lambda: x * x + x).sum()

        args = ([np.ones((4, 8), np.float32), np.ones((8, 2), np.float32)], M)
        grads = lib.make_jaxpr(lib.grad(lambda x, jnp=jnp: jnp.tanh(M @ x).sum()))(X)
        flop_counts.append((flops(lib, lib.make_jaxpr(mlp)(*args).jaxpr), flops(lib, grads.jaxpr)))
    assert flop_counts[0] == flop_counts[1]
    assert flop_counts[0][0] > 300


def multiplied(lib):
    """An interpreter that rewrites programs, including jitted functions and loops in them: integer
    powers become products, exp(x) becomes exp2(x / ln 2).
    """
    core, lax, jnp = lib.extend.core, lib.lax, lib.numpy

    def powers(x, *, y):
        out = x
        for _ in range(abs(y) - 1):
            out = out * x
        return 1 / out if y < 0 else out

    rules = {
        lax.integer_pow_p: powers,
        lax.exp_p: lambda x, **_: jnp.exp2(x / np.float32(np.log(2))),
        lax.square_p: lambda x: x * x,
    }

    def run(jaxpr, consts, *args):
        env = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

        def read(v):
            return v.val if isinstance(v, core.Literal) else env[v]

        for eqn in jaxpr.eqns:
            ins = [read(v) for v in eqn.invars]
            params = eqn.primitive.get_bind_params(eqn.params)
            if eqn.primitive in rules:
                outs = rules[eqn.primitive](*ins, **params)
            elif eqn.primitive.name == "jit":
                inner = params["jaxpr"]
                outs = lib.jit(partial(run, inner.jaxpr, inner.consts))(*ins)
            elif eqn.primitive.name == "scan":
                inner = params["jaxpr"]
                closed = lib.make_jaxpr(partial(run, inner.jaxpr, inner.consts))(*inner.in_avals)
                outs = eqn.primitive.bind(*ins, **{**params, "jaxpr": closed})
            else:
                outs = eqn.primitive.bind(*ins, **params)
            outs = outs if eqn.primitive.multiple_results else [outs]
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def rewrite(fun):
        def rewritten(*args):
            closed, shape = lib.make_jaxpr(fun, return_shape=True)(*args)
            out = run(closed.jaxpr, closed.consts, *args)
            return lib.tree.unflatten(lib.tree.structure(shape), out)

        return rewritten

    return rewrite


@LIBRARIES
def test_rewriting_and_tracing_again(lib):
    jnp = lib.numpy
    rewrite = multiplied(lib)

    def f(x):
        y = lib.jit(lambda v: v**3 + jnp.exp(v))(x)
        y, _ = lib.lax.scan(lambda c, v: (c * 0.5 + v**2, None), y, M)
        return {"a": y.sum(), "b": x**-2}

    def plain(x):
        y = x**3 + jax.numpy.exp(x)
        for row in M:
            y = y * 0.5 + row**2
        return {"a": y.sum(), "b": x**-2}

    g = rewrite(f)
    names = counted(lib, lib.make_jaxpr(g)(X))
    assert names["integer_pow"] == names["exp"] == 0
    assert names["exp2"] == 1
    for h in (g, lib.jit(g), rewrite(g)):
        actual = h(X)
        np.testing.assert_allclose(actual["a"], plain(X)["a"], rtol=1e-5)
        np.testing.assert_allclose(actual["b"], plain(X)["b"], rtol=1e-5)
    expected = jax.grad(lambda x: plain(x)["a"])(X)
    for h in (lib.grad(lambda x: g(x)["a"]), lib.jit(lib.grad(lambda x: lib.jit(g)(x)["a"]))):
        np.testing.assert_allclose(h(X), expected, rtol=1e-5)


def forward_mode(lib):
    """Forward-mode derivatives with symbolic zeros: a tangent is an array or None."""
    core, ad = lib.extend.core, lib.interpreters.ad

    def jvp(fun, primals, tangents):
        closed = lib.make_jaxpr(fun)(*primals)
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.constvars, ((c, None) for c in closed.consts), strict=True))
        env.update(zip(jaxpr.invars, zip(primals, tangents, strict=True), strict=True))
        skipped = 0

        def read(v):
            return (v.val, None) if isinstance(v, core.Literal) else env[v]

        for eqn in jaxpr.eqns:
            xs, ts = zip(*map(read, eqn.invars), strict=True)
            if all(t is None for t in ts):
                skipped += 1
                out, tout = eqn.primitive.bind(*xs, **eqn.params), None
            else:
                avals = [v.aval for v in eqn.invars]
                instantiated = [
                    ad.Zero(a) if t is None else t for t, a in zip(ts, avals, strict=True)
                ]
                out, tout = ad.primitive_jvps[eqn.primitive](xs, instantiated, **eqn.params)
            env[eqn.outvars[0]] = (out, None if type(tout) is ad.Zero else tout)
        out, tout = read(jaxpr.outvars[0])
        return out, tout, skipped

    return jvp


def test_forward_mode_with_symbolic_zeros():
    results = []
    for lib in (jax, accnp):
        jnp = lib.numpy

        def f(x, w, jnp=jnp, lib=lib):
            scale = jnp.sin(w) * 3.0  # no derivative flows here
            return jnp.tanh(x * scale) + lib.lax.reduce_max(w, axes=(0,)) * x

        results.append(forward_mode(lib)(f, (X, X + 1), (np.ones_like(X), None)))
    (a, ta, na), (b, tb, nb) = results
    assert na == nb == 3
    np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(ta, tb, rtol=1e-5)


@LIBRARIES
def test_free_variables_and_liveness(lib):
    """A liveness analysis: the last equation that uses each variable."""
    core = lib.extend.core
    closed = lib.make_jaxpr(lambda x, y: (x * y + x, y * 2))(1.0, 2.0)
    last = {}
    for i, eqn in enumerate(closed.eqns):
        for v in eqn.invars:
            if isinstance(v, core.Var):
                last[v] = i
    x, y = closed.jaxpr.invars
    assert [last[x], last[y]] == [1, 2]
    assert not set(last) & {v for v in closed.jaxpr.outvars if isinstance(v, core.Var)}


def closing(lib, kind, x, w):
    """A product with `w`, by an inner program that closes over it."""

    def times(t):
        return lib.numpy.sin(t) * w

    if kind == "jit":
        times = lib.jit(times)
    if kind == "linearize":
        x, times = lib.linearize(times, x)
    closed = lib.make_jaxpr(times)(x)
    return lib.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]


@LIBRARIES
@pytest.mark.parametrize("kind", ["plain", "jit", "linearize"])
def test_derivatives_with_respect_to_closed_over_values(lib, kind):
    f = partial(closing, lib, kind)
    gradient = lib.grad(f, argnums=1)(0.5, 3.0)
    assert gradient != 0
    assert np.isclose(gradient, (f(0.5, 3.01) - f(0.5, 2.99)) / 0.02, rtol=1e-3)
    assert np.isclose(lib.grad(lib.jit(f), argnums=1)(0.5, 3.0), gradient)
    assert np.isclose(lib.jvp(partial(f, 0.5), (3.0,), (2.0,))[1], 2 * gradient)


@LIBRARIES
@pytest.mark.parametrize("kind", ["plain", "jit", "linearize"])
def test_programs_in_custom_rules_close_over_nondifferentiable_values(lib, kind):
    @lib.custom_jvp
    def f(x, w):
        return closing(lib, kind, x, w)

    f.defjvp(lambda primals, tangents: (f(*primals), 100.0 * tangents[1]))

    assert lib.grad(f, argnums=1)(0.5, 3.0) == 100
    assert lib.grad(lib.jit(f), argnums=1)(0.5, 3.0) == 100
    assert lib.grad(lib.jit(lambda x, w: lib.lax.stop_gradient(f(x, w))), argnums=1)(0.5, 3.0) == 0
