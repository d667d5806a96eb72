"""Random axes of `vmap` and random groups of collectives, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import accnp

SETTINGS = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def mapped(draw: Any, n: int) -> tuple[np.ndarray, int | None]:
    """Draw an array and its mapped axis, of length n, or None."""
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    if draw(st.booleans()):
        return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) - 2, None
    at = draw(st.integers(0, len(shape)))
    shape.insert(at, n)
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) - 2
    return x, at - len(shape) * draw(st.booleans())


@SETTINGS
@given(st.data())
def test_axes(data: Any) -> None:
    n = data.draw(st.integers(1, 4), "length")
    (x, a), (y, b) = (data.draw(mapped(n)) for _ in range(2))

    def one(m: Any, u: Any, v: Any) -> tuple[Any, Any]:
        return u * v.sum(), m.tensordot(u, v, 0)

    ranks = [x.ndim - (a is not None), x.ndim + y.ndim - (a is not None) - (b is not None)]
    out = tuple([data.draw(st.integers(-r - 1, r), "out") for r in ranks])
    actual = accnp.vmap(lambda u, v: one(accnp, u, v), (a, b), out, axis_size=n)(x, y)
    rows = [
        one(np, x if a is None else x.take(i, a), y if b is None else y.take(i, b))
        for i in range(n)
    ]
    for g, column, axis in zip(actual, zip(*rows, strict=True), out, strict=True):
        np.testing.assert_allclose(g, np.stack(column, axis), rtol=1e-5)


@st.composite
def partition(draw: Any, n: int, even: bool) -> list[list[int]]:
    order = draw(st.permutations(range(n)))
    if even:
        k = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
        return [order[i : i + k] for i in range(0, n, k)]
    cuts = sorted(draw(st.sets(st.integers(1, n - 1)))) if n > 1 else []
    return [order[i:j] for i, j in zip([0, *cuts], [*cuts, n], strict=True)]


def over(f: Any, x: np.ndarray) -> np.ndarray:
    return np.asarray(accnp.vmap(f, axis_name="i")(x))


@SETTINGS
@given(st.data())
def test_reductions_in_groups(data: Any) -> None:
    n = data.draw(st.integers(1, 6), "length")
    groups = data.draw(partition(n, False), "groups")
    x = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32)
    for name, reduction in (("psum", np.sum), ("pmax", np.max), ("pmin", np.min)):
        expected = np.empty_like(x)
        for g in groups:
            expected[g] = reduction(x[g], 0)
        function = getattr(accnp.lax, name)
        actual = over(lambda v, f=function: f(v, "i", axis_index_groups=groups), x)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@SETTINGS
@given(st.data())
def test_exchanges_in_groups(data: Any) -> None:
    n = data.draw(st.integers(1, 6), "length")
    groups = data.draw(partition(n, True), "groups")
    k = len(groups[0])
    split, join = data.draw(st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1)]), "axes")
    shape = [3, 3]
    shape[split] = 2 * k
    x = np.random.default_rng(n).normal(size=(n, *shape)).astype(np.float32)
    gathered: list[Any] = [None] * n
    exchanged: list[Any] = [None] * n
    scattered: list[Any] = [None] * n
    for g in groups:
        for place, i in enumerate(g):
            part = (
                np.s_[:, 2 * place : 2 * place + 2] if split else np.s_[2 * place : 2 * place + 2]
            )
            gathered[i] = np.concatenate(list(x[g]), join)
            exchanged[i] = np.concatenate([x[s][part] for s in g], join)
            scattered[i] = x[g].sum(0)[part]
    lax, by = accnp.lax, {"axis_index_groups": groups, "tiled": True}
    actual = over(lambda v: lax.all_gather(v, "i", axis=join, **by), x)
    np.testing.assert_array_equal(actual, np.stack(gathered))
    actual = over(lambda v: lax.all_to_all(v, "i", split, join, **by), x)
    np.testing.assert_array_equal(actual, np.stack(exchanged))
    actual = over(lambda v: lax.psum_scatter(v, "i", scatter_dimension=split, **by), x)
    np.testing.assert_allclose(actual, np.stack(scattered), rtol=1e-5, atol=1e-6)


@SETTINGS
@given(st.data())
def test_permutations(data: Any) -> None:
    n = data.draw(st.integers(1, 9), "length")
    some = data.draw(st.integers(0, n), "how many")
    sources = data.draw(st.permutations(range(n)))[:some]
    targets = data.draw(st.permutations(range(n)))[:some]
    perm = list(zip(sources, targets, strict=True))
    x = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32)
    expected, back = np.zeros_like(x), np.zeros_like(x)
    for a, b in perm:
        expected[b], back[a] = x[a], x[b]
    np.testing.assert_array_equal(over(lambda v: accnp.lax.ppermute(v, "i", perm), x), expected)
    gradient = accnp.grad(
        lambda v: (
            accnp.vmap(lambda r: accnp.lax.ppermute(r, "i", perm), axis_name="i")(v) * x
        ).sum()
    )(x)
    np.testing.assert_array_equal(gradient, back)
