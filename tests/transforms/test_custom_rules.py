"""Functions with custom derivative rules behave as jax's under every transformation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp
import accnp as jnp
from accnp import errors
from accnp.custom_derivatives import CustomVJPPrimal, SymbolicZero

X = np.array([0.5, -1.5, 2.0], np.float32)
Y = np.array([1.0, 0.3, -0.7], np.float32)
STEPS = np.arange(1, 4, dtype=np.float32)


# --- functions of (x, y), for either library: each has a rule that is wrong on purpose -----------


def forward_rule(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    @f.defjvp
    def rule(p: Any, t: Any) -> Any:
        return f(*p), 3 * n.cos(p[0]) * t[0] + p[0] * p[1] * t[1]

    return f


def forward_rules_each(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    f.defjvps(None, lambda t, out, x, y: 5 * t * out + x)
    g = m.custom_jvp(lambda x, y: n.exp(x) * y)
    g.defjvps(lambda t, out, x, y: t * out, lambda t, out, x, y: 2 * t * n.exp(x))
    return lambda x, y: g(n.sin(x), y) * x


def forward_symbolic(m: Any, n: Any) -> Callable[..., Any]:
    kind = m.custom_derivatives.SymbolicZero

    @m.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    def rule(p: Any, t: Any) -> Any:
        zeros = [isinstance(v, kind) for v in t]
        out = 0.0 * p[0]
        if not zeros[0]:
            out = out + (7 if zeros[1] else 3) * t[0]
        if not zeros[1]:
            out = out + p[0] * t[1]
        return f(*p), out

    f.defjvp(rule, symbolic_zeros=True)
    return f


def forward_fixed(m: Any, n: Any) -> Callable[..., Any]:
    @functools.partial(m.custom_jvp, nondiff_argnums=(0, 3))
    def apply(fn: Any, x: Any, y: Any, scale: Any = 2.0) -> Any:
        return fn(x) * y * scale

    @apply.defjvp
    def rule(fn: Any, scale: Any, p: Any, t: Any) -> Any:
        return apply(fn, *p, scale), fn(p[0]) * t[0] * scale + t[1]

    named = m.custom_jvp(lambda x, kind, y: x * y + len(kind), nondiff_argnames=("kind",))
    named.defjvp(lambda kind, p, t: (named(p[0], kind, p[1]), len(kind) * t[0] + 2 * t[1]))
    return lambda x, y: apply(n.sin, x, y=y) + named(x, kind="abc", y=y)


def forward_trees(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_jvp
    def f(p: Any, k: Any) -> Any:
        return {"a": p["x"] * p["y"][0], "n": k + 1}, n.cos(p["x"])

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        t, tk = tangents
        out = f(*primals)
        assert tk.dtype == m.dtypes.float0
        return out, ({"a": t["x"] * 2 + t["y"][0], "n": tk}, 3 * t["x"])

    def g(x: Any, y: Any) -> Any:
        out, c = f({"x": x, "y": [y]}, 3)
        return out["a"] * c * out["n"]

    return g


def reverse_rule(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    def fwd(x: Any, y: Any) -> Any:
        return f(x, y), (n.cos(x), n.sin(x), y)

    f.defvjp(fwd, lambda res, ct: (res[0] * ct * res[2] * 3, res[1] * ct * 10))
    return f


def reverse_symbolic(m: Any, n: Any) -> Callable[..., Any]:
    zero = m.custom_derivatives.SymbolicZero

    @m.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y, n.cos(y)

    def fwd(x: Any, y: Any) -> Any:
        return f(x.value, y.value), (x.value, y.value if y.perturbed else None)

    def bwd(res: Any, cts: Any) -> Any:
        x, y = res
        known = isinstance(cts[1], zero)
        ct = cts[0] * (2 if known else 3)
        return ct * x, None if y is None else ct * y

    f.defvjp(fwd, bwd, symbolic_zeros=True)

    def g(x: Any, y: Any) -> Any:
        a, _ = f(x, y)
        b, c = f(x, 2.0 * n.ones_like(y))
        return a + b * c * y

    return g


def reverse_fixed(m: Any, n: Any) -> Callable[..., Any]:
    @functools.partial(m.custom_vjp, nondiff_argnums=(0,), nondiff_argnames=("kind",))
    def apply(fn: Any, x: Any, y: Any, kind: str) -> Any:
        return fn(x) * y

    def fwd(fn: Any, x: Any, y: Any, kind: str) -> Any:
        return apply(fn, x, y, kind), {"x": x, "y": y, "note": 2.0}

    def bwd(fn: Any, kind: str, res: Any, ct: Any) -> Any:
        return fn(res["y"]) * ct * len(kind), res["x"] * ct * res["note"]

    apply.defvjp(fwd, bwd)
    return lambda x, y: apply(n.tanh, x, y, kind="abc")


def reverse_trees(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_vjp
    def f(p: Any, k: Any) -> Any:
        return {"out": p["a"] * p["b"][0] * k, "count": k + 1}

    def fwd(p: Any, k: Any) -> Any:
        return f(p, k), p

    def bwd(res: Any, ct: Any) -> Any:
        assert ct["count"].dtype == m.dtypes.float0
        return [{"a": ct["out"] * res["b"][0] * 4, "b": [None]}, None]

    f.defvjp(fwd, bwd)
    return lambda x, y: f({"a": x, "b": [y]}, 3)["out"] * y


def gradient(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_gradient
    def f(x: Any, y: Any) -> Any:
        s = n.sin(x)
        return {"a": s * y, "k": 3}, lambda ct: (ct["a"] * s, ct["a"] * y * 2)

    single = m.custom_gradient(lambda x: (x**2, lambda ct: ct * n.cos(x)))
    return lambda x, y: f(x, y)["a"] + single(x) * y


def converted(m: Any, n: Any) -> Callable[..., Any]:
    """Implicit differentiation of a fixed point of a closure."""

    @functools.partial(m.custom_vjp, nondiff_argnums=(0,))
    def fixed(fn: Any, start: Any, *extra: Any) -> Any:
        z = start
        for _ in range(30):
            z = fn(z, *extra)
        return z

    def fwd(fn: Any, start: Any, *extra: Any) -> Any:
        z = fixed(fn, start, *extra)
        return z, (z, extra)

    def bwd(fn: Any, res: Any, ct: Any) -> Any:
        z, extra = res
        _, pull = m.vjp(lambda z, *e: fn(z, *e), z, *extra)
        w = ct
        for _ in range(30):
            w = ct + pull(w)[0]
        return (n.zeros_like(z), *pull(w)[1:])

    fixed.defvjp(fwd, bwd)

    def g(x: Any, y: Any) -> Any:
        step, extra = m.closure_convert(lambda z: 0.5 * n.cos(z * x) + 0.1 * y, n.zeros_like(x))
        return fixed(step, n.zeros_like(x), *extra)

    return g


def rule_in_rule(m: Any, n: Any) -> Callable[..., Any]:
    inner = reverse_rule(m, n)
    outer = m.custom_jvp(lambda x, y: inner(x, y) * x)
    outer.defjvp(lambda p, t: (outer(*p), t[0] * p[1] * 2 + n.sin(p[0]) * t[1]))
    return lambda x, y: outer(inner(x, y), y)


FORWARD = [forward_rule, forward_rules_each, forward_symbolic, forward_fixed, forward_trees]
REVERSE = [
    reverse_rule,
    reverse_symbolic,
    reverse_fixed,
    reverse_trees,
    gradient,
    converted,
    rule_in_rule,
]

BOTH_MODES: dict[str, Callable[..., Any]] = {
    "value": lambda m, n, f: f(n.asarray(X), n.asarray(Y)),
    "grad": lambda m, n, f: m.value_and_grad(lambda x, y: f(x, y).sum(), (0, 1))(
        n.asarray(X), n.asarray(Y)
    ),
    "grad of one": lambda m, n, f: m.grad(lambda y: f(n.asarray(X), y).sum())(Y),
    "jit of grad": lambda m, n, f: m.jit(m.grad(lambda x, y: f(x, y).sum(), (0, 1)))(
        n.asarray(X), n.asarray(Y)
    ),
    "grad of jit": lambda m, n, f: m.grad(lambda x, y: m.jit(f)(x, y).sum(), (0, 1))(
        n.asarray(X), n.asarray(Y)
    ),
    "vmap of grad": lambda m, n, f: m.vmap(m.grad(f, (0, 1)), (0, None))(
        n.asarray(X), n.asarray(Y[0])
    ),
    "grad of vmap": lambda m, n, f: m.grad(lambda x, y: m.vmap(f, (None, 0))(x, y).sum(), (0, 1))(
        X[0], Y
    ),
    "grad of jit of vmap": lambda m, n, f: m.grad(
        lambda x, y: m.jit(m.vmap(f))(x, y).sum(), (0, 1)
    )(n.asarray(X), n.asarray(Y)),
    "grad of scan": lambda m, n, f: m.grad(
        lambda x, y: m.lax.scan(lambda c, a: (f(c * a, y), c), x, STEPS)[0].sum(), (0, 1)
    )(n.asarray(X), n.asarray(Y)),
    "vmap of grad of scan": lambda m, n, f: m.vmap(
        m.grad(lambda x, y: m.lax.scan(lambda c, a: (f(c * a, y), c), x, STEPS)[0], (0, 1))
    )(n.asarray(X), n.asarray(Y)),
    "grad of cond": lambda m, n, f: m.grad(
        lambda x, y: m.lax.cond(x[0] > 0, f, lambda x, y: x * y, x, y).sum(), (0, 1)
    )(n.asarray(X), n.asarray(Y)),
    "grad of checkpoint": lambda m, n, f: m.grad(
        lambda x, y: m.checkpoint(f)(n.sin(x), y).sum(), (0, 1)
    )(n.asarray(X), n.asarray(Y)),
    "grad of grad": lambda m, n, f: m.grad(lambda x: m.grad(f, 1)(x, x * 2))(n.asarray(X[0])),
    "jacrev": lambda m, n, f: m.jacrev(f, (0, 1))(n.asarray(X), n.asarray(Y)),
    "vjp": lambda m, n, f: m.vjp(f, n.asarray(X), n.asarray(Y))[1](n.asarray(Y)),
}
FORWARD_MODE: dict[str, Callable[..., Any]] = {
    "hessian": lambda m, n, f: m.hessian(lambda x: f(x, x).sum())(n.asarray(X)),
    "jvp": lambda m, n, f: m.jvp(f, (n.asarray(X), n.asarray(Y)), (n.asarray(Y), n.asarray(X))),
    "jvp of one": lambda m, n, f: m.jvp(
        lambda x: f(x, n.asarray(Y)), (n.asarray(X),), (n.asarray(Y),)
    ),
    "jit of jvp": lambda m, n, f: m.jit(lambda x, y: m.jvp(f, (x, y), (y, x)))(
        n.asarray(X), n.asarray(Y)
    ),
    "jvp of vmap": lambda m, n, f: m.jvp(
        m.vmap(f), (n.asarray(X), n.asarray(Y)), (n.asarray(Y), n.asarray(X))
    ),
    "jacfwd": lambda m, n, f: m.jacfwd(f)(n.asarray(X), n.asarray(Y)),
    "linearize": lambda m, n, f: m.linearize(f, n.asarray(X), n.asarray(Y))[1](
        n.asarray(Y), n.asarray(X)
    ),
    "jvp of while": lambda m, n, f: m.jvp(
        lambda x: m.lax.while_loop(lambda c: c[1] < 3, lambda c: (f(c[0], c[0]), c[1] + 1), (x, 0))[
            0
        ],
        (n.asarray(X),),
        (n.asarray(Y),),
    ),
}
# Each function in a third of the ways, and each way for a third of the functions; two in all ways.
CASES = [
    (f, w)
    for i, f in enumerate((*FORWARD, *REVERSE))
    for j, w in enumerate((*BOTH_MODES, *FORWARD_MODE) if f in FORWARD else BOTH_MODES)
    if (i + j) % 3 == 0 or f in (forward_symbolic, reverse_symbolic)
]
CASES += [(gradient, "hessian")]


@pytest.mark.parametrize(("body", "way"), CASES)
def test_like_jax(body: Any, way: str) -> None:
    run = {**BOTH_MODES, **FORWARD_MODE}[way]
    _assert_equal(lambda m, n: run(m, n, body(m, n)))


def _assert_equal(program: Callable[..., Any]) -> None:
    want = jax.tree.leaves(program(jax, jax.numpy))
    got = accnp.tree_util.tree_leaves(program(accnp, accnp.numpy))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-4, atol=1e-5)
        assert (g.dtype, g.shape) == (w.dtype, w.shape)


@pytest.mark.parametrize("way", [w for w in FORWARD_MODE if w != "hessian"])
@pytest.mark.parametrize("body", [reverse_rule, gradient])
def test_reverse_rules_refuse_forward_mode(body: Any, way: str) -> None:
    for m, n in ((jax, jax.numpy), (accnp, accnp.numpy)):
        with pytest.raises(TypeError, match="forward-mode"):
            m.block_until_ready(FORWARD_MODE[way](m, n, body(m, n)))


def messages(program: Callable[..., Any]) -> list[type[Exception] | None]:
    """The exceptions of both libraries: jax's, ours."""
    out: list[Any] = []
    for m, n in ((jax, jax.numpy), (accnp, accnp.numpy)):
        try:
            m.block_until_ready(program(m, n))
            out.append(None)
        except Exception as error:
            out.append(error)
    return out


def _jvp_returning(make: Callable[..., Any]) -> Callable[..., Any]:
    def program(m: Any, n: Any) -> Any:
        f = m.custom_jvp(lambda x: x * 2)
        f.defjvp(lambda p, t: make(n, p[0], t[0]))
        return m.grad(lambda x: n.sum(m.jit(f)(x)))(X)

    return program


def _vjp_returning(fwd: Callable[..., Any], bwd: Callable[..., Any]) -> Callable[..., Any]:
    def program(m: Any, n: Any) -> Any:
        f = m.custom_vjp(lambda x, y: x * 2)
        f.defvjp(lambda x, y: fwd(n, x), lambda res, ct: bwd(n, m, ct))
        return m.grad(lambda x: n.sum(m.jit(f)(x, Y)))(X)

    return program


def _good(n: Any, x: Any) -> Any:
    return x * 2, None


def _traced_fixed(m: Any, n: Any) -> Any:
    f = m.custom_vjp(lambda x, k: x * k, nondiff_argnums=(1,))
    f.defvjp(lambda x, k: (x * k, None), lambda k, res, ct: (ct * k,))
    return m.grad(f, (0, 1))(2.0, 3.0)


def _keyword_only(m: Any, n: Any) -> Any:
    def fun(x: Any, *, k: Any) -> Any:
        return x * k

    f = m.custom_jvp(fun)
    f.defjvp(lambda p, t: (p[0], t[0]))
    return f(1.0, k=2.0)


def _unknown_keyword(m: Any, n: Any) -> Any:
    f = m.custom_vjp(lambda x: x)
    f.defvjp(_good, _good)
    return f(1.0, z=2.0)


def _rules_and_fixed(m: Any, n: Any) -> Any:
    m.custom_jvp(lambda x, k: x, nondiff_argnums=(1,)).defjvps(lambda *a: a[0])


def _symbolic_remat(m: Any, n: Any) -> Any:
    m.custom_vjp(lambda x: x).defvjp(_good, _good, symbolic_zeros=True, optimize_remat=True)


def _values_of_arrays(m: Any, n: Any) -> Any:
    return m.custom_derivatives.custom_vjp_primal_tree_values([n.ones(3)])


def _other_structure(m: Any, n: Any) -> Any:
    fn, extra = m.closure_convert(lambda x: x["a"], {"a": 1.0})
    return fn([1.0], *extra)


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "no pair": (_jvp_returning(lambda n, x, t: x), "must produce a pair"),
    "other structures": (_jvp_returning(lambda n, x, t: (x, [t])), "equal container"),
    "not the function's structure": (_jvp_returning(lambda n, x, t: ([x], [t])), "structure"),
    "not the function's shape": (_jvp_returning(lambda n, x, t: (x[0], t[0])), "same shape/dtype"),
    "tangent of another shape": (_jvp_returning(lambda n, x, t: (x, t[0])), "Expected"),
    "fwd gives no pair": (_vjp_returning(lambda n, x: x, lambda n, m, ct: (ct, ct)), "pair"),
    "fwd gives another structure": (
        _vjp_returning(lambda n, x: ([x], None), lambda n, m, ct: (ct, ct)),
        "structure",
    ),
    "fwd gives another shape": (
        _vjp_returning(lambda n, x: (x[0], None), lambda n, m, ct: (ct, ct)),
        "shapes/dtypes",
    ),
    "bwd gives no tuple": (_vjp_returning(_good, lambda n, m, ct: ct), "length equal"),
    "bwd gives too few": (_vjp_returning(_good, lambda n, m, ct: (ct,)), "length equal"),
    "bwd gives a dict": (_vjp_returning(_good, lambda n, m, ct: ({"a": ct}, ct)), "length equal"),
    "bwd gives another shape": (
        _vjp_returning(_good, lambda n, m, ct: (n.ones(4), ct)),
        r"at output\[0\]",
    ),
    "bwd gives another zero": (
        _vjp_returning(
            _good,
            lambda n, m, ct: (
                m.custom_derivatives.SymbolicZero.from_primal_value(n.ones(4)),
                ct,
            ),
        ),
        r"at output\[0\] the SymbolicZero",
    ),
    "traced fixed argument": (_traced_fixed, "nondiff_argnums"),
    "keyword only": (_keyword_only, "could not be resolved"),
    "unknown keyword": (_unknown_keyword, "could not be resolved"),
    "defjvps with fixed": (_rules_and_fixed, "nondiff_argnums"),
    "symbolic remat": (_symbolic_remat, "symbolic zeros"),
    "no primal records": (_values_of_arrays, "unexpected leaf type"),
    "other structure converted": (_other_structure, "Pytree"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_like_jax(name: str) -> None:
    program, text = WRONG[name]
    want, got = messages(program)
    assert want is not None
    assert type(got).__name__ == type(want).__name__
    for error in (want, got):
        with pytest.raises(type(error), match=text):
            raise error


def test_closed_over_values() -> None:
    def g(w: Any, x: Any) -> Any:
        f = jnp.custom_jvp(lambda x: x * w)
        f.defjvp(lambda p, t: (f(p[0]), 10 * t[0] * w))
        h = jnp.custom_vjp(lambda x: x * w)
        h.defvjp(lambda x: (h(x), None), lambda res, ct: (ct * w * 100,))
        return f(x) + h(x)

    assert float(jnp.grad(g, 1)(2.0, 3.0)) == 220.0
    assert float(jnp.jit(jnp.grad(g, 1))(2.0, 3.0)) == 220.0
    np.testing.assert_allclose(jnp.vmap(jnp.grad(g, 1), (0, None))(X, 3.0), X * 110)
    with pytest.raises(errors.UnexpectedTracerError, match="closes over"):
        jnp.grad(g, 0)(2.0, 3.0)


def test_symbolic_zeros_describe_themselves() -> None:
    seen: list[Any] = []
    f = jnp.custom_jvp(lambda i, x, y: x * y * i)

    def rule(p: Any, t: Any) -> Any:
        seen.extend(t)
        return f(*p), t[1] * 2

    f.defjvp(rule, symbolic_zeros=True)
    assert np.asarray(jnp.grad(f, 1)(3, 2.0, 4.0)) == 2.0
    assert isinstance(seen[0], SymbolicZero)
    assert isinstance(seen[2], SymbolicZero)
    assert (seen[0].dtype, seen[2].dtype, seen[2].shape) == (accnp.float0, np.float32, ())
    assert repr(seen[2]) == "SymbolicZero"
    zero = SymbolicZero.from_primal_value(X)
    assert (zero.shape, zero.ndim, zero.size) == ((3,), 1, 3)
    made = accnp.custom_derivatives.zero_from_primal({"a": X, "b": 3}, symbolic_zeros=True)
    assert [type(v) for v in made.values()] == [SymbolicZero, SymbolicZero]
    made = accnp.custom_derivatives.zero_from_primal({"a": X, "b": 3})
    assert made["a"].tolist() == [0, 0, 0]
    assert made["b"].dtype == accnp.float0


def test_primal_records() -> None:
    seen: list[Any] = []
    f = jnp.custom_vjp(lambda p, k: p["x"] * p["y"] * k)

    def fwd(p: Any, k: Any) -> Any:
        seen.extend([p["x"], p["y"], k])
        values = accnp.custom_derivatives.custom_vjp_primal_tree_values((p, k))
        return f(*values), values[0]

    f.defvjp(fwd, lambda p, ct: ({"x": ct * p["y"], "y": None}, None), symbolic_zeros=True)
    assert float(jnp.grad(lambda x: f({"x": x, "y": 3.0}, 2))(1.0)) == 3.0
    assert [type(s) for s in seen] == [CustomVJPPrimal] * 3
    assert [s.perturbed for s in seen] == [True, False, False]


def test_methods_and_metadata() -> None:
    class Model:
        scale = 3.0

        @functools.partial(jnp.custom_jvp, nondiff_argnums=(0,))
        def f(self, x: Any) -> Any:
            """The documentation."""
            return x * self.scale

        @f.defjvp
        def f_jvp(self, p: Any, t: Any) -> Any:
            return p[0] * self.scale, t[0] * 7

    model = Model()
    assert float(jnp.grad(model.f)(2.0)) == 7.0
    assert Model.f.__name__ == "f"
    assert Model.f.__doc__ == "The documentation."


def test_rule_runs_once_for_all_results() -> None:
    count = 0
    f = jnp.custom_jvp(lambda x: (x, x * 2, {"c": x * 3}))

    def rule(p: Any, t: Any) -> Any:
        nonlocal count
        count += 1
        return f(*p), (t[0], t[0], {"c": t[0]})

    f.defjvp(rule)
    jnp.grad(lambda x: sum(accnp.tree_util.tree_leaves(f(x))))(1.0)
    assert count == 1
