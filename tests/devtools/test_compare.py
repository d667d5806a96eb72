"""`debug.compare`, which runs a function in several execution modes and reports the operation at
which the results diverge.
"""

import functools

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import lax
from accnp.devtools.inspect import comparing
from accnp.ir.op import OPS

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(6, 4)

PROGRAMS = {
    "chain": lambda x: (jnp.tanh(x @ x.T) * 2 + x.sum()).mean(0),
    "tree": lambda x: {"a": jnp.sort(x, 1), "b": (jnp.argmax(x, 0), x[::2])},
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 1.5 + i, x),
    "branch": lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    "factors": lambda x: jnp.linalg.svd(x)[1] + jnp.linalg.qr(x)[1][0],
    "random": lambda x: accnp.random.normal(accnp.random.key(0), (4,)) + x[0],
    "updates": lambda x: x.at[1].set(0.0).at[:, 0].add(x[:, 1]),
    "gradient": lambda x: accnp.grad(lambda x: (jnp.exp(x) ** 2).sum())(x),
    "integers": lambda x: (x * 3).astype(jnp.int32) // 2,
    "halves": lambda x: (x.astype(jnp.bfloat16) * 1.1).sum(),
    "constant": lambda x: jnp.arange(4.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_execution_modes_agree(name):
    comparison = accnp.debug.compare(PROGRAMS[name], X)
    assert comparison, comparison
    assert "agree" in repr(comparison)


def plain(x):
    y = jnp.exp(x)
    z = jnp.sin(y) + 1  # the line that is to be named
    return z.sum()


@pytest.fixture
def wrong_sine():
    """Make the reference function of `sin` wrong for large operands."""
    op = OPS["sin"]
    right = op.numpy
    object.__setattr__(op, "numpy", lambda x: right(x) + (x > 2) * np.float32(1e-3))
    yield
    object.__setattr__(op, "numpy", right)


def test_a_wrong_reference_is_found_by_line(wrong_sine):
    comparison = accnp.debug.compare(plain, X)
    assert not comparison
    (difference,) = comparison.differences
    assert (difference.way, difference.operation) == ("NumPy", "sin")
    line = plain.__code__.co_firstlineno + 2
    assert f"test_compare.py:{line}" in difference.line
    assert "NumPy: sin, recorded at" in repr(comparison)
    assert accnp.debug.compare(plain, X, rtol=1e-2)


@pytest.mark.parametrize("way", comparing.WAYS)
def test_other_bits_are_found_at_the_first_operation_that_has_them(monkeypatch, way):
    values = comparing._values

    def faulty(graph, outputs, arrays, how):
        results = values(graph, outputs, arrays, how)
        if how == way and accnp.config.fusion_limit:
            for i, x in enumerate(outputs):
                names = {n.op.name for n in comparing.with_outputs(graph, [x]).nodes}
                if "sin" in names:
                    results[i] = np.nextafter(results[i], np.float32(9))
        return results

    monkeypatch.setattr(comparing, "_values", faulty)
    (difference,) = accnp.debug.compare(plain, X).differences
    assert (difference.way, difference.operation) == (way, "sin")


def test_eager_divergence_is_found():
    def f(x):
        return x * 2 if isinstance(x, accnp.core.Tracer) else x * 3

    (difference,) = accnp.debug.compare(f, jnp.asarray(X)).differences
    assert (difference.way, difference.operation) == ("eager", "mul")


def test_the_element_that_differs_is_shown():
    inf = np.float32(np.inf)
    a, b = np.array([inf, 1, np.nan, 2]), np.array([inf, 1, np.nan, 3])
    assert comparing._first_difference(a, b) == (3,)
    assert comparing._first_difference(np.array([1, -0.0]), np.array([1, 0.0])) == (1,)
    z = np.array([1 + 0j, 0 - 0j], np.complex64)
    assert not comparing._same_bits(z.conj(), np.array([1, 0], np.complex64))
    assert comparing._same_bits(a, a.copy())


def test_an_operation_with_several_results_has_its_name():
    op = OPS["sort"]
    right = op.numpy
    object.__setattr__(op, "numpy", lambda *xs, **p: [right(*xs, **p)[0] * 2, *right(*xs, **p)[1:]])
    try:
        comparison = accnp.debug.compare(lambda x: lax.sort((x, x), num_keys=1)[0], X[:, 0])
    finally:
        object.__setattr__(op, "numpy", right)
    assert [p.operation for p in comparison.differences] == ["sort"]


@pytest.mark.parametrize(
    "f", [lambda x: (x**3).sum(), lambda x: x.T @ x[::-1] ** 2, lambda x: jnp.fft.fft(x, axis=0)]
)
def test_sums_that_cancel_are_not_reported(f):
    comparison = accnp.debug.compare(f, X)  # is odd
    assert comparison, comparison


def test_untraceable_functions_are_refused():
    with pytest.raises(TypeError):
        accnp.debug.compare(lambda x: x if x > 0 else -x, 1.0)
    with pytest.raises(TypeError, match="compare"):
        accnp.debug.compare(lambda x: x, "text")


def power(x, n, mode="power"):
    return x**n if mode == "power" else x * n


class Model:
    exponent = 3

    @functools.partial(accnp.jit, static_argnums=(0, 2))
    def method(self, x, n):
        return x**self.exponent + n

    @functools.partial(accnp.jit, static_argnames=("self", "n"))
    def __call__(self, x, n):
        return x[:n] * self.exponent


def loss(x, n):
    return (x**n).sum()


STATIC = {
    "number": (accnp.jit(power, static_argnums=1), (X, 3), {}),
    "from the end": (accnp.jit(loss, static_argnums=-1), (X, 3), {}),
    "name": (accnp.jit(power, static_argnames=("n", "mode")), (X, 3, "product"), {}),
    "keyword": (accnp.jit(power, static_argnames=("n", "mode")), (X,), {"n": 3, "mode": "product"}),
    "function": (accnp.jit(lambda f, x: f(x), static_argnums=0), (jnp.sin, X), {}),
    "partial": (functools.partial(accnp.jit(power, static_argnums=1), X), (3,), {}),
    "partial from the end": (functools.partial(accnp.jit(loss, static_argnums=-1), X), (3,), {}),
    "partial by name": (functools.partial(accnp.jit(power, static_argnums=1), n=3), (X,), {}),
    "method": (Model().method, (X, 3), {}),
    "object": (Model(), (X, 3), {}),
    "object by name": (Model(), (X,), {"n": 3}),
    "gradient": (accnp.grad(accnp.jit(loss, static_argnums=1)), (X, 3), {}),
}


@pytest.mark.parametrize("name", STATIC)
def test_static_arguments_of_a_jitted_function_stay_static(name):
    f, args, kwargs = STATIC[name]
    comparison = accnp.debug.compare(f, *args, **kwargs)
    assert comparison, comparison
    assert comparison.operations >= 1


def test_keyword_arguments_are_traced():
    comparison = accnp.debug.compare(lambda x, *, y: x + y["a"] * 2, X, y={"a": X})
    assert comparison
    assert comparison.operations == 2


def test_static_arguments_must_be_hashable():
    with pytest.raises(ValueError, match="Non-hashable static arguments are not supported"):
        accnp.debug.compare(accnp.jit(power, static_argnums=1), X, [3])


def test_donated_arguments_stay_usable():
    x = jnp.asarray(X) + 0
    f = accnp.jit(lambda x: jnp.sin(x * 2) + 1, donate_argnums=0)
    assert accnp.debug.compare(f, x)
    assert accnp.debug.compare(f, x)
    np.testing.assert_array_equal(x, X)


SCALAR = accnp.ShapeDtypeStruct((), np.float32)
CALLBACKS = {
    "plain": lambda x: accnp.pure_callback(np.sin, accnp.ShapeDtypeStruct(x.shape, x.dtype), x) + 1,
    "several results": lambda x: (
        accnp.pure_callback(lambda v: (v.sum(), v.max()), (SCALAR, SCALAR), x)[1] + x
    ),
    "no arguments": lambda x: accnp.pure_callback(lambda: np.float32(3), SCALAR) + x,
    "mapped": accnp.vmap(
        lambda v: accnp.pure_callback(np.sum, SCALAR, v, vmap_method="sequential")
    ),
    "in a loop": lambda x: lax.scan(
        lambda c, v: (c + accnp.pure_callback(np.sum, SCALAR, v), v[0]), 0.0, x
    ),
    "with an effect": lambda x: accnp.experimental.io_callback(np.sum, SCALAR, x, ordered=True) + x,
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_agree(name):
    comparison = accnp.debug.compare(CALLBACKS[name], X)
    assert comparison, comparison
    assert "agree" in repr(comparison)


def test_a_callback_with_other_results_in_each_call_is_found():
    calls = iter(range(100))
    call = lambda v: v + np.float32(next(calls))  # noqa: E731
    comparison = accnp.debug.compare(lambda x: accnp.pure_callback(call, SCALAR, x) * 2, 1.0)
    assert [p.way for p in comparison.differences] == [*comparing.WAYS, "NumPy"]
    assert {p.operation for p in comparison.differences} == {"pure_callback"}


def test_nondeterministic_functions_are_found():
    generator = np.random.default_rng(0)
    (difference,) = accnp.debug.compare(lambda x: x + np.float32(generator.random()), X).differences
    assert (difference.way, difference.operation) == ("eager", "add")


KEYS = {
    "key": accnp.random.key(3),
    "words": accnp.random.PRNGKey(3),
    "other bits": accnp.random.key(3, impl="rbg"),
}


@pytest.mark.parametrize("name", KEYS)
def test_random_functions_of_keys_agree(name):
    def f(key, x):
        key, inner = accnp.random.split(key)
        return key, accnp.random.permutation(inner, x), accnp.random.gamma(key, x[:, 0] + 3)

    comparison = accnp.debug.compare(f, KEYS[name], X)
    assert comparison, comparison
