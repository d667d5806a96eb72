"""`checkify`, compared with JAX: which error is reported first, its message, and the results next
to it.
"""

import functools

import jax
import jax.experimental.checkify
import numpy as np
import pytest
from api.oracle import assert_same_result, stored_result

import accnp as jnp
import accnp.experimental.checkify
from accnp import checkify

F32 = np.float32
X = np.arange(3, dtype=F32)


def get_checkify(m):
    return m.experimental.checkify


def positive(m):
    def f(x):
        get_checkify(m).check(x > 0, "must be positive, not {}", x)
        return x + 1

    return f


def loop_check(m):
    def body(c):
        get_checkify(m).check(c < 3, "c {}", c)
        return c + 1

    return lambda n: m.lax.while_loop(lambda c: c < n, body, 0)


def test_check(m):
    def more(c, n):
        get_checkify(m).check(c < 3, "t {}", c)
        return c < n

    return lambda n, start: m.lax.while_loop(lambda c: more(c, n), lambda c: c + 1, start)


test_check.__test__ = False


def scan_check(m):
    return lambda xs: m.lax.scan(lambda c, x: (c + 1, positive(m)(x - c)), F32(0), xs)


def nested_checks(m):
    """A check in a while loop in a cond in a scan in a jitted function."""

    def inner(v, x):
        get_checkify(m).check(x < 3, "deep {}", x)
        return v + 1

    def step(c, x):
        yes = lambda: m.lax.while_loop(lambda v: v < 2, lambda v: inner(v, x), F32(0))  # noqa: E731
        return m.lax.cond(x > 0, yes, lambda: x / 0.0), c

    return m.jit(lambda xs: m.lax.scan(step, F32(0), xs))


def custom_jvp(m):
    @m.custom_jvp
    def f(x):
        get_checkify(m).check(x > 0, "own {}", x)
        return m.numpy.log(x)

    f.defjvps(lambda t, y, x: t / x)
    return f


def custom_vjp(m):
    @m.custom_vjp
    def f(x):
        get_checkify(m).check(x > 0, "own {}", x)
        return m.numpy.log(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct / x,))
    return f


def two_checks(first, second):
    def make(m):
        def f(x):
            for bound, text in (first, second):
                get_checkify(m).check(x > bound, text, x)
            return x

        return f

    return make


def index_array(m):
    return lambda x, i: x[i]


ONE, NEG, INF = F32(1), F32(-1), F32(np.inf)
NAN = F32(np.nan)
SIGNS = np.array([1, -1, -2], F32)
# name: (errors, program of a library, arguments)
PROGRAMS = {
    "ok": ("user", positive, ONE),
    "bad": ("user", positive, NEG),
    "bad in jit": ("user", lambda m: m.jit(positive(m)), NEG),
    "bad in vmap": ("user", lambda m: m.vmap(positive(m)), SIGNS),
    "two, first": ("user", two_checks((2, "a {}"), (1, "b {}")), F32(0.5)),
    "two, second": ("user", two_checks((0, "a {}"), (1, "b {}")), F32(0.5)),
    "not enabled": ("nan", positive, NEG),
    "grad": ("user", lambda m: m.grad(positive(m)), NEG),
    "formats": ("user", lambda m: lambda x: get_checkify(m).check(
        x < 0, "{a[k]} {b:.2f} {c}", a={"k": x}, b=x + 1, c=X), ONE),
    "debug_check": ("user", lambda m: lambda x: get_checkify(m).debug_check(x > 0, "x"), NEG),
    "structure": ("user", lambda m: lambda x: {"a": (positive(m)(x), None)}, NEG),
    "sin": ("nan", lambda m: m.numpy.sin, INF),
    "log times 0": ("nan", lambda m: lambda x: m.numpy.log(x) * 0, NEG),
    "masked": ("nan", lambda m: lambda x: m.numpy.where(x > 0, m.numpy.log(x), 0.0), NEG),
    "not used": ("nan", lambda m: lambda x: (m.numpy.log(x), x)[1], NEG),
    "in, add": ("nan", lambda m: lambda x: m.numpy.add(x, 1), NAN),
    "in, negative": ("nan", lambda m: lambda x: m.numpy.negative(x), NAN),
    "in, maximum": ("nan", lambda m: lambda x: m.numpy.maximum(x, 1), NAN),
    "in, square": ("nan", lambda m: m.numpy.square, NAN),
    "sum": ("nan", lambda m: m.numpy.sum, np.array([1, NAN])),
    "dot": ("nan", lambda m: lambda x: m.numpy.dot(x, x), np.array([1, NAN], F32)),
    "prod": ("nan", lambda m: m.numpy.prod, np.array([INF, 0])),
    "cumsum": ("nan", lambda m: m.numpy.cumsum, np.array([INF, -INF])),
    "std": ("nan", lambda m: m.numpy.std, np.array([1, INF], F32)),
    "sort": ("nan", lambda m: m.numpy.sort, np.array([NAN, 1], F32)),
    "softmax": ("nan", lambda m: m.nn.softmax, np.array([INF, 1], F32)),
    "rem": ("all", lambda m: m.lax.rem, ONE, F32(0)),
    "division": ("div", lambda m: m.numpy.divide, np.ones(2, F32), np.array([1, 0], F32)),
    "0/0, nan": ("nan", lambda m: m.numpy.divide, F32(0), F32(0)),
    "0/0, both": ("float", lambda m: m.numpy.divide, F32(0), F32(0)),
    "integers": ("div", lambda m: m.lax.div, np.int32(1), np.int32(0)),
    "floor division": ("div", lambda m: m.numpy.floor_divide, np.int32(1), np.int32(0)),
    "mod": ("div", lambda m: m.numpy.mod, np.int32(1), np.int32(0)),
    "mean of nothing": ("all", lambda m: m.numpy.mean, np.zeros(0, F32)),
    "unit vector": ("all", lambda m: lambda x: x / m.numpy.linalg.norm(x), np.zeros(2, F32)),
    "index": ("index", index_array, X, np.int32(5)),
    "index from the end": ("index", index_array, X, np.int32(-3)),
    "index before the start": ("index", index_array, X, np.int32(-5)),
    "index, static": ("index", lambda m: lambda x: x[5], X),
    "indices": ("index", index_array, X, np.array([0, 3, 7])),
    "indices of unsigned": ("index", index_array, X, np.array([0, 3], np.uint8)),
    "indices, 2": ("index", lambda m: lambda x, i: x[i, i], np.ones((2, 3), F32), np.array([0, 2])),
    "indices, none": ("index", index_array, X, np.zeros(0, np.int32)),
    "set": ("index", lambda m: lambda x, i: x.at[i].set(1), X, np.array([0, 3])),
    "add at": ("index", lambda m: lambda x, i: x.at[i].add(1), X, np.int32(4)),
    "window": ("index", lambda m: lambda x, i: x.at[i, 1:].set(0), np.ones((2, 3), F32),
               np.int32(4)),
    "get": ("index", lambda m: lambda x, i: x.at[i].get(mode="clip"), X, np.int32(4)),
    "dynamic_slice": ("index", lambda m: lambda x, i: m.lax.dynamic_slice(x, (i,), (2,)), X,
                      np.int32(2)),
    "dynamic_slice, ok": ("index", lambda m: lambda x, i: m.lax.dynamic_slice(x, (i,), (2,)), X,
                          np.int32(1)),
    "dynamic_update": ("index", lambda m: lambda x, i: m.lax.dynamic_update_slice(
        x, X[:2], (i,)), X, np.int32(2)),
    "take": ("index", lambda m: m.numpy.take, X, np.array([5])),
    "take_along_axis": ("index", lambda m: lambda x, i: m.numpy.take_along_axis(x, i, 0), X,
                        np.array([4])),
    "argmax": ("all", lambda m: lambda x: x[m.numpy.argmax(x)], X),
    "vmap of index": ("index", lambda m: m.vmap(lambda x, i: x[i]), np.ones((2, 3), F32),
                      np.array([1, 5])),
    "cond, taken": ("user", lambda m: lambda x: m.lax.cond(
        x > 0, lambda y: positive(m)(y - 2), lambda y: y, x), ONE),
    "cond, not taken": ("user", lambda m: lambda x: m.lax.cond(
        x > 0, lambda y: y, positive(m), x), ONE),
    "cond, kinds": ("all", lambda m: lambda x, i: m.lax.cond(
        x > 0, lambda y: m.numpy.asarray(X)[i], lambda y: y / 0, x), NEG, np.int32(7)),
    "switch": ("user", lambda m: lambda i: m.lax.switch(i, [
        lambda: positive(m)(i - ONE), lambda: ONE, lambda: ONE]), np.int32(0)),
    "scan": ("user", scan_check, np.array([1, 3, 1, 0], F32)),
    "scan, jit": ("user", lambda m: m.jit(scan_check(m)), np.array([1, 3, 1, 0], F32)),
    "scan, kinds": ("all", lambda m: lambda xs: m.lax.scan(
        lambda c, x: (m.numpy.log(x), x / c), ONE, xs), np.array([1, 1, -1], F32)),
    "scan, index": ("all", lambda m: lambda i: m.lax.scan(
        lambda c, i: (c, m.numpy.asarray(X)[i]), F32(0), i), np.array([1, 5, 6])),
    "scan, no steps": ("user", scan_check, np.zeros(0, F32)),
    "while": ("user", loop_check, np.int32(6)),
    "while, ok": ("user", loop_check, np.int32(3)),
    "while, test": ("user", test_check, np.int32(6), np.int32(0)),
    "while, first test": ("user", test_check, np.int32(6), np.int32(6)),
    "while, nan": ("all", lambda m: lambda n: m.lax.while_loop(
        lambda c: c[1] < n, lambda c: (m.numpy.log(c[0]), c[1] + 1), (F32(2), 0)), np.int32(6)),
    "vmap of while": ("user", lambda m: m.vmap(loop_check(m)), np.array([1, 6])),
    "fori": ("user", lambda m: lambda n: m.lax.fori_loop(
        0, n, lambda i, c: positive(m)(c - 2), F32(3)), np.int32(4)),
    "fori, static": ("user", lambda m: lambda x: m.lax.fori_loop(
        0, 4, lambda i, c: positive(m)(c - 2), x), F32(3)),
    "deep": ("user", nested_checks, np.array([1, 2, 5, 7], F32)),
    "deep, kinds": ("all", nested_checks, np.array([1, 2, 5, -7], F32)),
    "grad of sqrt": ("all", lambda m: m.grad(m.numpy.sqrt), F32(0)),
    "grad, masked": ("all", lambda m: m.grad(lambda x: m.numpy.where(
        x > 0, m.numpy.sqrt(x), 0.0)), F32(0)),
    "jit of grad": ("all", lambda m: m.jit(m.grad(lambda x: m.numpy.log(x) ** 2)), F32(0)),
    "custom_jvp": ("user", custom_jvp, NEG),
    "custom_jvp, all": ("all", custom_jvp, NEG),
    "custom_jvp, grad": ("all", lambda m: m.grad(custom_jvp(m)), NEG),
    "custom_vjp": ("user", custom_vjp, NEG),
    "custom_vjp, grad": ("all", lambda m: m.grad(custom_vjp(m)), F32(0)),
    "remat": ("user", lambda m: m.checkpoint(positive(m)), NEG),
    "remat, grad": ("user", lambda m: m.grad(m.checkpoint(lambda x: positive(m)(x) * x)), NEG),
    "check_error": ("user", lambda m: lambda x: get_checkify(m).check_error(
        m.jit(get_checkify(m).checkify(positive(m)))(x)[0]), NEG),
    "check_error of many": ("user", lambda m: lambda x: get_checkify(m).check_error(
        m.vmap(get_checkify(m).checkify(positive(m)))(x)[0]), SIGNS),
    "checked twice": ("user", lambda m: lambda x: get_checkify(m).checkify(positive(m))(x)[1], NEG),
    "random": ("all", lambda m: lambda n: m.random.normal(
        m.random.PRNGKey(n), (3,)), 0),
}  # fmt: skip
WAYS = {
    "plain": lambda m, f: f,
    "jit": lambda m, f: m.jit(f),
    "vmap": lambda m, f: m.vmap(f),
}


def outcome(m, name, way="plain"):
    errors, program, *args = PROGRAMS[name]
    errors = getattr(get_checkify(m), f"{errors}_checks")
    if way == "vmap":
        args = [np.stack([a, a]) for a in args]
    try:
        error, out = WAYS[way](m, get_checkify(m).checkify(program(m), errors))(
            *[m.numpy.asarray(a) if isinstance(a, np.ndarray | np.generic) else a for a in args]
        )
        return error.get(), [np.asarray(x) for x in m.tree_util.tree_leaves(out)]
    except (ValueError, TypeError) as error:
        return type(error), []


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    expected = stored_result("checkify", name, lambda: outcome(jax, name))
    assert_same_result(outcome(jnp, name), expected, 1e-5)


@pytest.mark.parametrize("way", ["jit", "vmap"])
@pytest.mark.parametrize(
    "name", ["bad", "ok", "index", "scan", "scan, kinds", "cond, kinds", "deep", "grad of sqrt",
             "custom_jvp, grad", "0/0, both", "set"]
)  # fmt: skip
def test_transformed(name, way):
    expected = stored_result("checkify", f"{name} ({way})", lambda: outcome(jax, name, way)[0])
    assert outcome(jnp, name, way)[0] == expected


def test_checks_in_loops_under_vmap():
    """JAX 0.10.2 raises an internal error here, so the expected message is that of a scan."""
    f = jnp.vmap(checkify.checkify(loop_check(jnp)))
    error, out = f(jnp.array([1, 6]))
    assert error.get() == "at mapped index 1: c 3 (`check` failed)"
    np.testing.assert_array_equal(out, [1, 6])


# --- without checkify ---


@pytest.mark.parametrize("m", [jnp, jax], ids=["accnp", "jax"])
def test_checks_at_once(m):
    f, error, one = positive(m), get_checkify(m).JaxRuntimeError, m.numpy.asarray(ONE)
    assert issubclass(error, ValueError)
    with pytest.raises(error, match=r"must be positive, not -1\.0"):
        f(-one)
    with pytest.raises(error, match=r"must be positive, not -2\.0"):
        m.vmap(f)(m.numpy.asarray(SIGNS))
    with pytest.raises(error, match=r"must be positive, not -1\.0"):
        m.grad(f)(-one)
    assert float(m.grad(f)(one)) == 1.0
    with pytest.raises(ValueError, match="which was not functionalized"):
        m.jit(f)(one)
    with pytest.raises(ValueError, match="which was not functionalized"):
        scan_check(m)(m.numpy.asarray(X))
    jitted = m.jit(lambda x: (get_checkify(m).debug_check(x > 0, "x"), x)[1])
    assert float(jitted(-one)) == -1.0
    get_checkify(m).debug_check(False, "x")


def test_errors_name_the_line():
    line = positive.__code__.co_firstlineno + 2
    with pytest.raises(checkify.JaxRuntimeError) as caught:
        positive(jnp)(jnp.asarray(NEG))
    assert any(f"{__file__}:{line} (f)" in note for note in caught.value.__notes__)


def test_throw():
    error, _ = checkify.checkify(positive(jnp))(jnp.asarray(NEG))
    with pytest.raises(checkify.JaxRuntimeError, match=r"must be positive, not -1\.0"):
        error.throw()
    assert type(error.get_exception()).__name__ == "FailedCheckError"
    assert str(error) == "Error(must be positive, not -1.0 (`check` failed))"
    error, _ = checkify.checkify(positive(jnp))(jnp.asarray(ONE))
    assert (error.throw(), error.get(), error.get_exception()) == (None, None, None)
    assert checkify.init_error.get() is None
    many, _ = jnp.vmap(checkify.checkify(positive(jnp)))(jnp.asarray(SIGNS))
    with pytest.raises(checkify.JaxRuntimeError, match=r"must be positive, not -2\.0"):
        many.throw()
    with pytest.raises(TypeError, match="takes an Error"):
        checkify.check_error(3)


@pytest.mark.parametrize("pred", [1, np.bool_(True), np.ones(1, bool)])
def test_predicates_are_checked(pred):
    for m in (jnp, jax):
        for name in ("check", "debug_check"):
            with pytest.raises(TypeError, match=f"^{name}(: pred must be| takes) a scalar"):
                getattr(get_checkify(m), name)(pred, "x")
    for m in (jnp, jax):
        with pytest.raises(TypeError, match="need to be PyTrees of arrays, but got 3"):
            get_checkify(m).check(True, "{}", 3)


def test_errors_are_trees():
    """Jitted functions accept and return errors."""

    @jnp.jit
    def f(x):
        return checkify.checkify(positive(jnp))(x)

    @functools.partial(jnp.jit, static_argnums=1)
    def g(error, twice):
        return checkify.checkify(lambda: [checkify.check_error(error) for _ in range(twice)])()[0]

    error, _ = f(jnp.asarray(NEG))
    assert g(error, 2).get() == error.get()
    assert g(f(jnp.asarray(ONE))[0], 1).get() is None
    (_, aux), gradient = jnp.value_and_grad(lambda x: f(x)[::-1], has_aux=True)(jnp.asarray(NEG))
    assert aux.get() == error.get()
    assert float(gradient) == 1.0


def test_error_sets_and_public_names():
    for name in ("user", "nan", "index", "div", "float", "automatic", "all"):
        mine = getattr(checkify, f"{name}_checks")
        others = getattr(get_checkify(jax), f"{name}_checks")
        assert {e.__name__ for e in mine} == {e.__name__ for e in others}
    public = [n for n in dir(get_checkify(jax)) if not n.startswith("_")]
    assert [n for n in public if not hasattr(checkify, n)] == []
