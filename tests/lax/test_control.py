"""Control flow compared with JAX: values, derivatives, batches, and combinations with `jit`."""

import jax
import jax.numpy
import numpy as np
import pytest
from api.oracle import jax_result

import accnp
import accnp.numpy
import accnp.numpy as jnp


class Both:
    """One of the two libraries, with the names that the test programs use."""

    def __init__(self, top, numpy):
        self.top, self.np, self.lax = top, numpy, top.lax


OURS = Both(accnp, accnp.numpy)
THEIRS = Both(jax, jax.numpy)

RNG = np.random.default_rng(7)
V3 = RNG.normal(size=3).astype(np.float32)
W3 = RNG.normal(size=3).astype(np.float32)
V5 = RNG.normal(size=5).astype(np.float32)
M53 = RNG.normal(size=(5, 3)).astype(np.float32)


def cond_plain(b, x):
    return b.lax.cond(x[0] > 0, lambda v: b.np.sin(v) * v, b.np.exp, x)


def cond_closure(b, x, y):
    return b.lax.cond(x[0] > 0, lambda: b.np.sin(x) * y, lambda: x)


def cond_trees(b, x, y):
    return b.lax.cond(
        x[0] > y[0],
        lambda d: {"a": d["a"] * 2, "b": (d["b"],)},
        lambda d: {"a": d["b"], "b": (d["a"] * d["b"],)},
        {"a": x, "b": y},
    )


def cond_number(b, x):
    return b.lax.cond(x[0], lambda v: v, lambda v: -v, x)


def switch_three(b, x):
    index = b.np.int32(b.np.abs(x[0]) * 2)
    return b.lax.switch(index, [b.np.sin, lambda v: v * v, lambda v: v * x], x)


def scan_both(b, x):
    return b.lax.scan(lambda c, v: (b.np.sin(c) * v, c * v), x[0], x)


def scan_reversed(b, x, w):
    return b.lax.scan(lambda c, v: (b.np.tanh(c * w + v), (c, v)), w, x, reverse=True)


def scan_counter(b, x, w):
    return b.lax.scan(lambda c, v: (c + 1, (v * w, c)), 0, x)


def scan_no_xs(b, x, w):
    return b.lax.scan(lambda c, _: (c * x[0], c), w, None, length=4)


def scan_forwarding(b, x, w):
    return b.lax.scan(lambda c, v: ((c[0] * b.np.sin(v), c[1]), (v, c[1] * c[0])), (x[0], w), x)


def scan_nested(b, x, w):
    def step(c, v):
        c = b.lax.cond(v[0] > 0, lambda c: b.np.sin(c) * w, lambda c: c * v, c)
        return c, b.lax.scan(lambda s, t: (s * t, s), v[0], c)[1]

    return b.lax.scan(step, w, x)


def fori_static(b, x, w):
    return b.lax.fori_loop(0, 4, lambda i, c: b.np.sin(c) * w + i, x)


def map_plain(b, x, w):
    return b.lax.map(lambda v: b.np.sin(v) * w, x)


def map_batches(b, x, w):
    return b.lax.map(lambda v: b.np.sin(v) * w, x, batch_size=2)


def associative(b, x):
    return b.lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (x, x * 2))


def while_counter(b, x, w):
    return b.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, b.np.sin(c[1]) * w), (0, x))


def while_on_data(b, x, w):
    return b.lax.while_loop(
        lambda c: b.np.abs(c[0]) < b.np.abs(w[0]) * 4 + 3,
        lambda c: (c[0] * 1.5 + b.np.abs(w[1]) + 1, c[1] * x[0]),
        (x[0], w),
    )


def fori_traced(b, x, w):
    return b.lax.fori_loop(0, b.np.int32(b.np.abs(w[0]) * 3), lambda i, c: b.np.sin(c) * x + i, x)


REVERSIBLE = [
    (cond_plain, V3),
    (cond_closure, V3, W3),
    (cond_trees, V3, W3),
    (cond_number, V3),
    (switch_three, V3),
    (scan_both, V5),
    (scan_reversed, M53, W3),
    (scan_counter, M53, W3),
    (scan_no_xs, M53, W3),
    (scan_forwarding, M53, W3),
    (scan_nested, M53, W3),
    (fori_static, V3, W3),
    (map_plain, M53, W3),
    (map_batches, M53, W3),
    (associative, V5[:3]),
]
FORWARD = [(while_counter, V3, W3), (while_on_data, V5, W3), (fori_traced, V3, W3)]
ALL = REVERSIBLE + FORWARD

every = pytest.mark.parametrize(("f", "args"), [(p[0], p[1:]) for p in ALL])
reversible = pytest.mark.parametrize(("f", "args"), [(p[0], p[1:]) for p in REVERSIBLE])
deep = pytest.mark.parametrize(
    ("f", "args"),
    [(p[0], p[1:]) for p in REVERSIBLE if p[0] in (cond_closure, scan_both, scan_nested)],
)
forward_only = pytest.mark.parametrize(("f", "args"), [(p[0], p[1:]) for p in FORWARD])


def bind(f, b):
    return lambda *args: f(b, *args)


def same(actual, expected, rtol=3e-5):
    a, spec = accnp.tree_util.tree_flatten(actual)
    b, other = jax.tree_util.tree_flatten(expected)
    assert str(spec) == str(other)
    for x, y in zip(map(np.asarray, a), map(np.asarray, b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-5)


def total(b, f):
    """Return a scalar function of the same arguments: a weighted sum over all floating-point
    results."""

    def g(*args):
        s = 0.0
        for y in b.top.tree_util.tree_leaves(f(b, *args)):
            if y.dtype.kind == "f":
                s = s + (y * b.np.cos(y)).sum()
        return s

    return g


def numbers(args):
    return tuple(range(len(args)))


@every
def test_values_eager_and_jitted(f, args):
    expected = jax_result(lambda: jax.jit(bind(f, THEIRS))(*args), f, args)
    arrays = [accnp.numpy.asarray(a) for a in args]
    same(bind(f, OURS)(*arrays), expected)
    same(accnp.jit(bind(f, OURS))(*arrays), expected)


@every
def test_values_without_jit(f, args):

    def ask():
        with jax.disable_jit():
            return bind(f, THEIRS)(*map(jax.numpy.asarray, args))

    expected = jax_result(ask, f, args)
    with accnp.disable_jit():
        same(bind(f, OURS)(*[accnp.numpy.asarray(a) for a in args]), expected)


@every
def test_forward_derivatives(f, args):
    tangents = tuple(np.cos(a) for a in args)
    expected = jax_result(lambda: jax.jvp(jax.jit(total(THEIRS, f)), args, tangents), f, args)
    same(accnp.jit(lambda a, t: accnp.jvp(total(OURS, f), a, t))(args, tangents), expected, 2e-4)


@reversible
def test_gradients(f, args):
    expected = jax_result(lambda: jax.grad(total(THEIRS, f), numbers(args))(*args), f, args)
    mine = accnp.grad(total(OURS, f), numbers(args))
    same(accnp.jit(mine)(*args), expected, 2e-4)
    if f in (cond_plain, switch_three, scan_reversed, fori_static):
        same(mine(*args), expected, 2e-4)
        same(accnp.grad(accnp.jit(total(OURS, f)), numbers(args))(*args), expected, 2e-4)


@deep
def test_second_derivatives(f, args):
    def curvature(b):
        g = b.top.grad(total(b, f))
        return b.top.grad(lambda *a: (g(*a) ** 2).sum())

    expected = jax_result(lambda: jax.jit(curvature(THEIRS))(*args), f, args)
    same(accnp.jit(curvature(OURS))(*args), expected, 2e-3)


@every
@pytest.mark.parametrize("where", ["all", "first", "last"])
def test_batches(f, args, where):
    flags = [
        where == "all" or i == (0 if where == "first" else len(args) - 1) for i in numbers(args)
    ]
    rows = [np.stack([a, a * 2, -a]) if m else a for a, m in zip(args, flags, strict=True)]
    axes = tuple(0 if m else None for m in flags)
    expected = jax_result(lambda: jax.vmap(jax.jit(bind(f, THEIRS)), axes)(*rows), f, rows)
    mine = accnp.vmap(bind(f, OURS), axes)
    same((mine if where == "all" else accnp.jit(mine))(*rows), expected)


@deep
def test_batches_of_gradients(f, args):
    rows = [np.stack([a, a * 2, -a]) for a in args]
    expected = jax_result(lambda: jax.vmap(jax.grad(total(THEIRS, f)))(*rows), f, rows)
    same(accnp.vmap(accnp.grad(total(OURS, f)))(*rows), expected, 2e-4)


@forward_only
def test_unknown_trip_counts_refuse_reverse_mode(f, args):
    g = accnp.jit(total(OURS, f))
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work for"):
        accnp.grad(g)(*args)


def test_custom_rules_inside_control_flow():
    def gradient(b):
        top = b.top

        @top.custom_vjp
        def g(x):
            return b.np.sin(x)

        g.defvjp(lambda x: (b.np.sin(x), x), lambda r, ct: (ct * b.np.cos(r) * 2,))

        @top.custom_jvp
        def h(x):
            return b.np.exp(x)

        h.defjvp(lambda p, t: (b.np.exp(p[0]), t[0] * 3 * p[0]))

        def f(x):
            y = b.lax.cond(x[0] > 0, lambda v: g(v) * h(v), lambda v: v, x)
            return b.lax.scan(lambda c, v: (g(c) * h(v), c), 1.0, y)[0]

        return top.jit(top.vmap(top.grad(f)))

    rows = np.stack([V3, -V3])
    same(gradient(OURS)(rows), gradient(THEIRS)(rows), 2e-4)


def test_weakly_typed_carry_takes_the_type_of_the_body():
    def f(b):
        return b.lax.scan(lambda c, x: (c + x, c), 0, np.ones(3, np.float32))

    same(f(OURS), f(THEIRS))

    def g(b):
        return b.lax.while_loop(lambda c: c < 3, lambda c: c + np.float32(1), 0)

    same(g(OURS), g(THEIRS))


def test_python_numbers_that_no_step_changes_come_out_as_they_went_in():
    carry = lax.scan(lambda c, x: ((c[0] + x, *c[1:]), x), (0.0, 1.5, True, 2), jnp.ones(3))[0]
    assert [type(x) for x in carry] == [accnp.Array, float, bool, int]
    assert lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1]), (0.0, 7)) == (3.0, 7)
    out = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, 2.5))
    assert type(out[1]) is float
    assert out == (3, 2.5)
    # One that changes is an array, as is what a jitted function returns.
    assert type(lax.fori_loop(0, 3, lambda i, c: c + 1, 0)) is accnp.Array
    assert type(accnp.jit(lambda: lax.fori_loop(0, 3, lambda i, c: c, 1.5))()) is accnp.Array


def test_numbers_that_the_body_only_converts_come_out_converted():
    def convert(b, n):
        count = b.lax.fori_loop(0, n, lambda i, c: c.astype("float32"), 2)
        half = b.lax.scan(lambda c, x: (c.astype("float16"), c), 0.5, np.ones(3, np.float32))[0]
        return count, half, b.lax.while_loop(lambda c: c > 3, lambda c: c.astype("float16"), 1.5)

    same(convert(OURS, 3), convert(THEIRS, 3))
    same(accnp.jit(bind(convert, OURS))(3), jax.jit(bind(convert, THEIRS))(3))


def test_scan_of_length_zero():
    def f(b, x):
        return b.lax.scan(lambda c, v: (c + v, c * 2), 1.0, x)

    empty = np.ones((0,), np.float32)
    same(accnp.jit(bind(f, OURS))(empty), jax.jit(bind(f, THEIRS))(empty))


def test_old_spelling_of_cond():
    assert int(accnp.lax.cond(True, lambda x: x + 1, lambda x: x - 1, operand=1)) == 2
    assert int(accnp.lax.cond(False, 1, lambda x: x + 1, 5, lambda x: x * 2)) == 10


def test_switch_clamps_its_index():
    branches = [lambda: 0, lambda: 1, lambda: 2]
    assert [int(accnp.lax.switch(i, branches)) for i in (-5, 0, 2, 9)] == [0, 0, 2, 2]


def test_long_loops_run():
    out = accnp.lax.fori_loop(0, 10_000, lambda i, x: x + 1, 0)
    assert int(out) == 10_000
    last, seen = accnp.lax.scan(lambda c, x: (c + x, c), 0, accnp.numpy.arange(1000))
    assert int(last) == 499500
    assert int(seen[-1]) == 498501


# --- errors ---

lax = accnp.lax
A3 = accnp.numpy.ones(3)

WRONG = [
    (lambda: lax.cond(None, lambda: 1, lambda: 2), TypeError, "predicate is None"),
    (lambda: lax.cond(A3, lambda: 1, lambda: 2), TypeError, "must be a scalar"),
    (lambda: lax.cond("x", lambda: 1, lambda: 2), TypeError, "must be a scalar"),
    (lambda: lax.cond(1j, lambda: 1, lambda: 2), TypeError, "boolean or number"),
    (lambda: lax.cond(True, 1, 2, 3), TypeError, "function|callable"),
    (lambda: lax.cond(True, lambda: 1, lambda: (1,)), TypeError, "structure, but they differ at"),
    (lambda: lax.cond(True, lambda: 1, lambda: 1.0), TypeError, r"int32\[\].*float32\[\]"),
    (
        lambda: lax.cond(True, lambda: {"w": A3}, lambda: {"w": A3[:2]}),
        TypeError,
        r"\['w'\].*float32\[3\].*float32\[2\]",
    ),
    (lambda: lax.cond(True, lambda x: 1, lambda x: 1, object()), TypeError, "operands"),
    (lambda: lax.switch(0, []), ValueError, "Empty branch sequence"),
    (lambda: lax.switch(0.5, [lambda: 0, lambda: 1]), TypeError, "must be an integer"),
    (lambda: lax.switch(A3, [lambda: 0, lambda: 1]), TypeError, "must be scalar"),
    (lambda: lax.scan(lambda c, x: c, 0, A3), TypeError, "must be a pair"),
    (lambda: lax.scan(lambda c, x: (A3, x), 0.0, A3), TypeError, r"float32\[\].*float32\[3\]"),
    (
        lambda: lax.scan(lambda c, x: ({"w": A3[:2]}, x), {"w": A3}, A3),
        TypeError,
        r"c\['w'\].*float32\[3\].*float32\[2\]",
    ),
    (lambda: lax.scan(lambda c, x: ((c, c), x), 0, A3), TypeError, "same pytree structure"),
    (lambda: lax.scan(lambda c, x: (c, x), 0), ValueError, "scan got no values to scan over"),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0, 1.0),
        ValueError,
        "scan got value with no leading axis to scan over",
    ),
    (lambda: lax.scan(lambda c, x: (c, x), 0, A3, length=4), ValueError, "disagrees"),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0, (A3, A3[:2])),
        ValueError,
        "different leading axis sizes",
    ),
    (lambda: lax.scan(1, 0, A3), TypeError, "function|callable"),
    (lambda: lax.while_loop(lambda x: x, lambda x: x, 1), TypeError, "boolean scalar"),
    (lambda: lax.while_loop(lambda x: A3 > 0, lambda x: x, 1), TypeError, "boolean scalar"),
    (
        lambda: lax.while_loop(lambda x: x[0] < 3, lambda x: (x[0] + 1, A3), (0, 1.0)),
        TypeError,
        r"x\[1\].*float32\[\].*float32\[3\]",
    ),
    (
        lambda: lax.fori_loop(np.int32(0), np.float32(3), lambda i, x: x, 0),
        TypeError,
        "must have equal types",
    ),
    (
        lambda: lax.fori_loop(0, 3, lambda i, v: {"w": v["w"] * 1.5}, {"w": np.int32(1)}),
        TypeError,
        r"fori_loop body.*v\['w'\].*int32\[\].*float32\[\]",
    ),
    (
        lambda: accnp.jit(lambda n: lax.fori_loop(0, n, lambda i, v: (v, v), 1))(3),
        TypeError,
        "fori_loop body function carry input.*at the top.*is the output",
    ),
    (lambda: lax.fori_loop(0, 3, 5, 0), TypeError, "body_fun argument should be a callable"),
    (lambda: accnp.jit(lambda n: lax.fori_loop(0, n, max, 0, unroll=2))(3), ValueError, "unroll"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, length=-1), ValueError, "negative"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, A3, unroll=-1), ValueError, "unroll"),
    (lambda: lax.switch(0, [lambda: 1, 3]), TypeError, "function|callable"),
    (
        lambda: lax.switch(0, [lambda: 1, lambda: 2, lambda: {"a": A3}]),
        TypeError,
        "result of branch 0.*result of branch2|result of branch2.*result of branch 0",
    ),
    (lambda: lax.map(3, A3), TypeError, "f argument should be a callable"),
    (lambda: lax.map(lambda x: x, A3, batch_size=-1), ValueError, "batch_size"),
    (
        lambda: lax.associative_scan(lambda a, b: {"k": a["k"] * 1.5}, {"k": np.arange(3)}),
        TypeError,
        r"\['k'\].*float32\[1\].*int32\[1\]",
    ),
    (lambda: lax.select_n(A3 > 0), ValueError, "case"),
    (lambda: lax.select(A3 > 0, A3, 1.0), TypeError, "shape"),
    (lambda: lax.select_n(A3[:2] > 0, A3, A3), TypeError, r"\(2,\).*\(3,\)"),
    (lambda: lax.associative_scan(accnp.numpy.add, A3, axis=2), ValueError, "axis 2"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_use_raises_helpful_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_traced_length_is_refused():
    f = accnp.jit(lambda n: lax.scan(lambda c, _: (c, None), 0, None, length=n)[0])
    with pytest.raises(TypeError, match="n"):
        f(3)


NAMED = [
    (lambda: lax.fori_loop(0, 3, lambda i, v: v["w"] if v["w"] > 0 else v, {"w": 1}), r"v\['w'\]"),
    (lambda: lax.fori_loop(0, 3, lambda i, v: v if i > 0 else -v, 1), "argument i."),
    (lambda: lax.while_loop(lambda v: bool(v[1]), lambda v: v, (1, 2)), r"v\[1\]"),
    (lambda: lax.scan(lambda c, row: (c, 1 if row["k"] else 2), 0, {"k": A3}), r"row\['k'\]"),
    (lambda: lax.map(lambda row: 1 if row > 0 else 2, A3), "argument row."),
    (lambda: lax.map(lambda row: 1 if row > 0 else 2, A3, batch_size=2), "argument row."),
    (lambda: lax.cond(True, lambda u, v: u if v["z"] else -u, lambda u, v: u, 1, {"z": 2}), "'z'"),
]


@pytest.mark.parametrize(("call", "name"), NAMED)
def test_python_branch_in_a_body_names_the_argument(call, name):
    with pytest.raises(accnp.errors.TracerBoolConversionError, match=name):
        call()


@pytest.mark.parametrize("pred", [True, False])
@pytest.mark.parametrize("jitted", [True, False])
def test_weak_types_of_branches(pred, jitted):
    def both(b):
        cases = [
            (lambda: 1, lambda: b.np.int32(2)),
            (lambda: b.np.int32(1), lambda: 2),
            (lambda: 1, lambda: 2),
        ]
        runs = [lambda p, c=c: b.lax.cond(p, *c) for c in cases]
        return [(b.top.jit(run) if jitted else run)(pred) for run in runs]

    for actual, expected in zip(both(OURS), both(THEIRS), strict=True):
        assert (int(actual), actual.weak_type) == (int(expected), expected.weak_type)


def test_selectors_out_of_bounds_take_the_first_or_the_last():
    for which in (np.int32([-7, 1, 9]), np.int8([0, 2, 5])):
        cases = [np.full(3, k, np.float32) for k in range(3)]
        same(lax.select_n(which, *cases), jax.lax.select_n(which, *cases))


def test_a_branch_that_occurs_several_times_is_traced_once():
    """Haiku relies on this: it passes one function several times to `switch`."""
    traced = []
    table = jnp.arange(3.0)  # closed over: the branches share it

    def branch(x):
        traced.append(x)
        return x + table

    def other(x):
        return x * 2 - table

    actual = accnp.jit(lambda i, x: accnp.lax.switch(i, [branch, other, branch], x))(2, jnp.ones(3))
    np.testing.assert_array_equal(actual, [1, 2, 3])
    assert len(traced) == 1
    gradient = accnp.grad(lambda x: accnp.lax.cond(x[0] > 0, branch, branch, x).sum())(jnp.ones(3))
    np.testing.assert_array_equal(gradient, [1, 1, 1])


def test_traced_arrays_stay_in_device_get():
    doubled = accnp.jit(lambda x: accnp.device_get({"x": x})["x"] * 2)(jnp.ones(3))
    np.testing.assert_array_equal(doubled, [2, 2, 2])


def test_bodies_are_retraced_if_closed_over_values_change():
    traced, factor = [], [2.0]

    def piece(v):
        traced.append(v.shape)
        return v * factor[0]

    x = jnp.arange(4.0)
    for _ in range(3):
        assert jnp.piecewise(x, [x < 2], [piece, 7]).tolist() == [0.0, 2.0, 7.0, 7.0]
    assert len(traced) == 1
    factor[0] = 3.0
    assert jnp.piecewise(x, [x < 2], [piece, 7]).tolist() == [0.0, 3.0, 7.0, 7.0]
    assert jnp.piecewise(x, [x < 2], [piece, 8]).tolist() == [0.0, 3.0, 8.0, 8.0]
    assert jnp.piecewise(x.astype(int), [x < 2], [piece, True]).tolist() == [0, 3, 1, 1]
