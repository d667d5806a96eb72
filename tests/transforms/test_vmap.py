"""`vmap` compared with JAX: axes, error messages, random keys and axis names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

M = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(3, dtype=np.float32)
T = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def compare(run: Callable[[Any], Any], rtol: float = 1e-6) -> None:
    actual, expected = run(accnp), run(jax)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for g, w in zip(leaves(actual), leaves(expected), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol)


# --- axes ----------------------------------------------------------------------------------------

AXES: dict[str, Callable[[Any], Any]] = {
    "int": lambda m: m.vmap(lambda x: x * 2, 1)(M),
    "negative": lambda m: m.vmap(lambda x, y: x + y, (-1, -2), -1)(T, np.ones((4, 3), np.float32)),
    "out in the middle": lambda m: m.vmap(lambda x: x[:, None] * x, 2, 1)(T),
    "one out axis each": lambda m: m.vmap(lambda x: (x, x.sum(), x), 0, (1, 0, -1))(T),
    "None": lambda m: m.vmap(lambda x, y: x @ y, (0, None))(M, M.T),
    "list": lambda m: m.vmap(lambda x, y: x + y, [0, 1])(M, M.T),
    "tree": lambda m: m.vmap(
        lambda p, x: p["w"] @ x + p["b"], ({"w": None, "b": 0}, 1), {"y": 0}["y"]
    )({"w": M, "b": np.ones((5, 3), np.float32)}, np.ones((4, 5), np.float32)),
    "tree of containers": lambda m: m.vmap(lambda x, y: x * y[0] + y[1], (0, [0, None]))(
        V, [V, np.float32(2)]
    ),
    "prefix": lambda m: m.vmap(lambda p: p["a"] + p["b"][0], ({"a": 0, "b": 1},))(
        {"a": V, "b": [M.T]}
    ),
    "out tree": lambda m: m.vmap(
        lambda x: {"a": x, "b": (x.sum(), V)}, 0, {"a": 1, "b": (0, None)}
    )(M),
    "out None": lambda m: m.vmap(lambda x: (x, M.sum()), out_axes=(0, None))(V),
    "keywords": lambda m: m.vmap(lambda x, *, y: x + y["z"])(V, y={"z": V}),
    "defaults": lambda m: m.vmap(lambda x, y=M: x * y.sum())(V),
    "axis_size": lambda m: m.vmap(lambda: 1.0, axis_size=3)(),
    "nothing mapped": lambda m: m.vmap(lambda x: x, None, axis_size=2)(V),
    "empty": lambda m: m.vmap(lambda x: x.sum())(np.ones((0, 3), np.float32)),
    "None as argument": lambda m: m.vmap(lambda x, y: x if y is None else y)(V, None),
    "not an array, not mapped": lambda m: m.vmap(lambda s, x: x if s == "a" else -x, (None, 0))(
        "b", V
    ),
    "partial": lambda m: m.vmap(functools.partial(lambda x, y: x - y, y=M))(V),
    "twice": lambda m: m.vmap(m.vmap(lambda x, y: x * y, (0, None)), (None, 0))(V, M),
    "spmd_axis_name": lambda m: m.vmap(lambda x: x + 1, spmd_axis_name=("a", "b"))(V),
    "a result that is an argument": lambda m: m.vmap(lambda x, y: (y, x), (0, None))(V, M),
    "a result from outside": lambda m: m.vmap(lambda x: V)(M),
}


@pytest.mark.parametrize("name", AXES)
def test_axes(name: str) -> None:
    compare(AXES[name])


# --- errors --------------------------------------------------------------------------------------

# name: (program, error, what accnp says; jax's error is of the same class)
WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "lengths": (
        lambda m: m.vmap(lambda x, y: x)(M, np.ones(4)),
        ValueError,
        r"(?s)inconsistent sizes for array axes to be mapped.*"
        r"had size 3: axis 0 of argument x of type float32\[3,4\];.*4: axis 0 of argument y",
    ),
    "lengths in trees": (
        lambda m: m.vmap(lambda p: p)({"a": M, "b": [np.ones(4), V]}),
        ValueError,
        r"(?s)3: .* of argument p\['a'\] .* of argument p\['b'\]\[1\].*"
        r"4: axis 0 of argument p\['b'\]\[0\]",
    ),
    "lengths along axes": (
        lambda m: m.vmap(lambda x, y: x, (0, 1))(M, M),
        ValueError,
        "(?s)3: axis 0 of argument x.*4: axis 1 of argument y",
    ),
    "lengths of *args": (
        lambda m: m.vmap(lambda *a: a)(V, np.ones(5)),
        ValueError,
        r"(?s)3: axis 0 of argument a\[0\].*5: axis 0 of argument a\[1\]",
    ),
    "lengths by keyword": (
        lambda m: m.vmap(lambda x, y: x)(M, y={"k": np.ones(4)}),
        ValueError,
        r"(?s)3: axis 0 of argument x.*4: axis 0 of argument y\['k'\]",
    ),
    "lengths of keys": (
        lambda m: m.vmap(lambda k, x: x)(m.random.split(m.random.key(0), 2), V),
        ValueError,
        r"(?s)2: axis 0 of argument k of type key<fry>\[2\].*3: axis 0 of argument x",
    ),
    "axis_size": (
        lambda m: m.vmap(lambda x: x, axis_size=5)(M),
        ValueError,
        "(?s)5: the `axis_size` argument.*3: axis 0 of argument x",
    ),
    "nothing mapped": (
        lambda m: m.vmap(lambda x: x, None)(M),
        ValueError,
        "must have at least one non-None value in in_axes",
    ),
    "no arguments": (lambda m: m.vmap(lambda: 1)(), ValueError, "or pass axis_size"),
    "rank": (
        lambda m: m.vmap(lambda p: p, ({"a": 2},))({"a": M}),
        ValueError,
        r"axis 2, .*at least 3, but is only 2 \(its shape is \(3, 4\)\); it is p\['a'\]",
    ),
    "negative rank": (lambda m: m.vmap(lambda x: x, -3)(M), ValueError, "axis -3.*at least 3"),
    "number": (lambda m: m.vmap(lambda x, y: x)(M, 1.0), ValueError, "axis 0.*it is y"),
    "rank of keys": (
        lambda m: m.vmap(lambda k: k, 1)(m.random.split(m.random.key(0), 3)),
        ValueError,
        r"at least 2, but is only 1 \(its shape is \(3,\)",
    ),
    "too few axes": (
        lambda m: m.vmap(lambda x, y: x, (0,))(M, M),
        ValueError,
        r"got len\(in_axes\)=1, len\(args\)=2",
    ),
    "in_axes text": (
        lambda m: m.vmap(lambda x: x, "a"),
        TypeError,
        "vmap in_axes must be an int, None, or a tuple",
    ),
    "in_axes float": (lambda m: m.vmap(lambda x: x, (0.5,))(M), TypeError, "got .0.5,."),
    "in_axes bool": (
        lambda m: m.vmap(lambda x: x, (True,))(M),
        TypeError,
        "in_axes must be an int, None, or .nested. container",
    ),
    "in_axes dict": (
        lambda m: m.vmap(lambda x: x, {"a": 0}),
        TypeError,
        "vmap in_axes must be an int, None, or a tuple",
    ),
    "in_axes prefix": (
        lambda m: m.vmap(lambda p: p, ({"a": 0},))({"a": M, "b": M}),
        ValueError,
        r"vmap in_axes specification must be a tree prefix of the corresponding value.*keys 'b'",
    ),
    "out_axes text": (
        lambda m: m.vmap(lambda x: x, 0, "a")(M),
        TypeError,
        "out_axes must be an int, None, or .nested. container",
    ),
    "out_axes prefix": (
        lambda m: m.vmap(lambda x: x, 0, (0, 0))(M),
        ValueError,
        "vmap out_axes specification must be a tree prefix",
    ),
    "out_axes range": (lambda m: m.vmap(lambda x: x, 0, 2)(V), ValueError, "axis 2 is out of"),
    "out_axes None": (
        lambda m: m.vmap(lambda x: {"a": x, "b": 1}, 0, {"a": None, "b": None})(V),
        ValueError,
        r"at vmap out_axes\['a'\], got axis spec None but output was batched",
    ),
    "text": (
        lambda m: m.vmap(lambda x: x)("abc"),
        TypeError,
        "Error interpreting argument to vmap as an abstract array: x: Argument 'abc'",
    ),
    "object": (
        lambda m: m.vmap(lambda p: 1)({"a": object()}),
        TypeError,
        r"Error interpreting argument to vmap as an abstract array: p\['a'\]: Argument",
    ),
    "result": (
        lambda m: m.vmap(lambda x: {"a": ["b"]})(V),
        TypeError,
        r"at output component \['a'\]\[0\], which is not a valid JAX type; got 'b'",
    ),
    "no function": (lambda m: m.vmap(3), TypeError, "callable"),
    "branch": (
        lambda m: m.vmap(lambda x: 1 if x > 0 else 2)(V),
        TypeError,
        "(?s)for vmap.*argument x",
    ),
    "unbound": (lambda m: m.vmap(lambda x: m.lax.psum(x, "j"))(V), NameError, "unbound axis name"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind):
        call(jax)
    with pytest.raises(kind, match=text):
        call(accnp)


# --- random keys ---------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform": lambda r, k: r.uniform(k, (2, 3)),
    "uniform scalar": lambda r, k: r.uniform(k),
    "bits": lambda r, k: r.bits(k, (5,)),
    "bits8": lambda r, k: r.bits(k, (5,), "uint8"),
    "randint": lambda r, k: r.randint(k, (4,), 0, 10),
    "normal": lambda r, k: r.normal(k, (3,)),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (6,)),
    "categorical": lambda r, k: r.categorical(k, np.log(V + 1)),
    "permutation": lambda r, k: r.permutation(k, 6),
    "choice": lambda r, k: r.choice(k, 5, (3,)),
    "exponential": lambda r, k: r.exponential(k, (2,)),
    "gumbel": lambda r, k: r.gumbel(k, (2,)),
    "truncated_normal": lambda r, k: r.truncated_normal(k, -1.0, 1.0, (3,)),
    "split": lambda r, k: r.uniform(r.split(k, 3)[1]),
    "fold_in": lambda r, k: r.uniform(r.fold_in(k, 7)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name: str) -> None:
    """Typed and raw keys, eager and jitted, mapped once and twice, draw the same numbers as JAX."""

    def draws(m: Any, seed: Callable[[int], Any], jitted: bool) -> Any:
        keys = m.random.split(seed(3), 4)
        f = m.vmap(functools.partial(DRAWS[name], m.random))
        return (m.jit(f) if jitted else f)(keys)

    expected = np.asarray(draws(jax, jax.random.key, True))
    for seed in (accnp.random.key, accnp.random.PRNGKey):
        for jitted in (False, True):
            actual = draws(accnp, seed, jitted)
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(actual, expected, rtol=3e-6)
    keys = accnp.random.split(accnp.random.key(3), 4).reshape(2, 2)
    twice = accnp.vmap(accnp.vmap(functools.partial(DRAWS[name], accnp.random)))(keys)
    np.testing.assert_allclose(twice.reshape(expected.shape), expected, rtol=3e-6)


KEYS: dict[str, Callable[[Any], Any]] = {
    "keys as results": lambda m: m.random.key_data(
        m.vmap(m.random.split)(m.random.split(m.random.key(0), 3))
    ),
    "keys made of numbers": lambda m: m.random.key_data(m.vmap(m.random.key)(np.arange(4))),
    "raw keys made of numbers": lambda m: m.vmap(m.random.PRNGKey)(np.arange(4)),
    "fold_in of many": lambda m: m.random.key_data(
        m.vmap(m.random.fold_in, (None, 0))(m.random.key(1), np.arange(4))
    ),
    "last axis": lambda m: m.vmap(m.random.uniform, -1)(m.random.split(m.random.key(0), (2, 3))[0]),
    "last out axis": lambda m: m.random.key_data(
        m.vmap(lambda k: m.random.split(k, 5), out_axes=-1)(m.random.split(m.random.key(0), 3))
    ),
    "second axis": lambda m: m.vmap(lambda k: m.vmap(m.random.uniform)(k), 1, 1)(
        m.random.split(m.random.key(0), (2, 3))
    ),
    "one key for all": lambda m: m.vmap(lambda x: x + m.random.normal(m.random.key(5)))(V),
    "in a tree": lambda m: m.vmap(lambda s: m.random.normal(s["key"]) * s["x"])(
        {"key": m.random.split(m.random.key(0), 3), "x": V}
    ),
    "in a scan": lambda m: m.vmap(
        lambda k: m.lax.scan(
            lambda c, _: (m.random.split(c)[0], m.random.uniform(c)), k, None, length=3
        )[1]
    )(m.random.split(m.random.key(0), 3)),
    "parameters of distributions": lambda m: m.vmap(lambda k, p: m.random.bernoulli(k, p, (5,)))(
        m.random.split(m.random.key(0), 3), np.float32([0.1, 0.5, 0.9])
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys(name: str) -> None:
    compare(KEYS[name], 3e-6)


# --- names and traces ----------------------------------------------------------------------------


def test_traced_once_with_its_name() -> None:
    traces = []

    def square(x: Any) -> Any:
        """Square it."""
        traces.append(x)
        return x * x

    f = accnp.vmap(square)
    np.testing.assert_allclose(f(V), V * V)
    assert (f.__name__, f.__wrapped__) == ("square", square)
    assert f.__doc__.startswith("Vectorized version of square.")
    assert f.__doc__.endswith("Square it.")
    assert len(traces) == 1
    assert traces[0].shape == ()
    with pytest.raises(accnp.errors.UnexpectedTracerError):
        traces[0] + 1


def test_jitted_functions_know_the_axis() -> None:
    """A function traced for one length of an axis is traced again for another length."""
    f = accnp.jit(lambda x: x * accnp.lax.psum(1, "i") + accnp.lax.all_gather(x, "i").sum())
    for n in (3, 4, 3):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_allclose(accnp.vmap(f, axis_name="i")(x), x * n + x.sum())
    assert f._cache_size() == 2


UNMAPPED = {
    "a constant": lambda x, n: x * (2.0 if jnp.ones(3).sum() > 2 else 1.0),
    "float": lambda x, n: x * float(jnp.arange(4).sum()),
    "an argument that is not mapped": lambda x, n: x * int(n * 2),
    "a shape": lambda x, n: jnp.ones(int(n) + 1).sum() + x,
    "NumPy": lambda x, n: x + np.asarray(jnp.cumsum(jnp.arange(3)))[-1],
    "a mask": lambda x, n: x + jnp.arange(4)[jnp.arange(4) > n].sum(),
    "a slice": lambda x, n: x + jnp.arange(4)[: n + 1].sum(),
    "nonzero": lambda x, n: x + jnp.nonzero(jnp.arange(4) - n)[0].sum(),
    "text": lambda x, n: x * int(str(n + 1)),
    "a slope": lambda x, n: accnp.grad(lambda v: v * (3.0 if n > 1 else 1.0))(x),
}


@pytest.mark.parametrize("name", UNMAPPED)
def test_unmapped_values_are_concrete(name):
    """As in JAX, `vmap` alone traces only mapped arguments."""
    fn, xs = UNMAPPED[name], np.arange(3.0, dtype=np.float32)
    actual = accnp.vmap(fn, (0, None))(xs, jnp.asarray(2))
    np.testing.assert_array_equal(actual, [fn(x, jnp.asarray(2)) for x in xs])


@pytest.mark.parametrize(
    "call",
    [
        lambda xs: accnp.vmap(lambda x: x * bool(x > 1))(xs),
        lambda xs: accnp.jit(accnp.vmap(lambda x: x * bool(jnp.ones(3).sum() > 1)))(xs),
        lambda xs: accnp.vmap(accnp.jit(lambda x: x * bool(jnp.ones(3).sum() > 1)))(xs),
        lambda xs: accnp.vmap(lambda x: x * int(accnp.lax.axis_index("i")), axis_name="i")(xs),
    ],
)
def test_mapped_and_traced_values_are_not_concrete(call):
    with pytest.raises(accnp.errors.ConcretizationTypeError):
        call(jnp.arange(3.0))


@pytest.mark.parametrize("out_axis", [1, -2])
def test_returned_argument_is_not_transposed_twice(out_axis: int) -> None:
    jaxpr = accnp.make_jaxpr(accnp.vmap(lambda x: x, 1, out_axis))(jnp.ones((2, 3, 4)))
    assert len(jaxpr.eqns) <= 1  # at most the move of the argument's axis to the front
    assert jaxpr.jaxpr.outvars == jaxpr.jaxpr.invars
