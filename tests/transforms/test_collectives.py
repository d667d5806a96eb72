"""Collectives over a named mapped axis, compared with JAX: values, derivatives, and other mapped
axes.

Groups of positions, and permutations that omit some, need several devices in JAX; they are in
api/jit/test_pmap.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from api.oracle import jax_result

import accnp

X = np.asarray([1.0, 2.0, 4.0], np.float32)
M = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
W = np.arange(54, dtype=np.float32).reshape(3, 6, 3) / 10
Program = Callable[[Any], Callable[..., Any]]
PROGRAMS: dict[str, tuple[Program, np.ndarray]] = {
    "psum": (lambda m: lambda x: m.lax.psum(x * x, "i"), X),
    "psum of a number": (lambda m: lambda x: x / m.lax.psum(1, "i"), X),
    "psum of numbers": (lambda m: lambda x: x * m.lax.psum(X, "i"), X),
    "psum of bool": (lambda m: lambda x: m.lax.psum(x > 1, "i"), X),
    "psum of a tree": (lambda m: lambda x: m.lax.psum({"a": x, "b": (2, x * 2, None)}, "i"), X),
    "psum of an axis": (lambda m: lambda x: m.lax.psum(x, 0), M),
    "psum of an axis, too": (lambda m: lambda x: m.lax.psum(x, ("i", 1)), M),
    "psum of nothing": (lambda m: lambda x: m.lax.psum(x, ()), X),
    "pmean": (lambda m: lambda x: x - m.lax.pmean(x, "i"), X),
    "pmean of int": (lambda m: lambda x: m.lax.pmean(x, "i"), X.astype(np.int32)),
    "pmean of bool": (lambda m: lambda x: m.lax.pmean(x > 1, "i"), X),
    "pmax and pmin": (lambda m: lambda x: m.lax.pmax(x, "i") - m.lax.pmin(x, "i") + x, X),
    "pmax of bool": (lambda m: lambda x: m.lax.pmax(x > 1, "i"), X),
    "pmax of a number": (lambda m: lambda x: m.lax.pmax(2.0, "i") + x, X),
    "index and size": (lambda m: lambda x: x * m.lax.axis_index("i") + m.lax.axis_size("i"), X),
    "all_gather": (lambda m: lambda x: m.lax.all_gather(x, "i") * x, X),
    "all_gather axis": (lambda m: lambda x: m.lax.all_gather(x, "i", axis=1), M),
    "all_gather last": (lambda m: lambda x: m.lax.all_gather(x, "i", axis=-1), M),
    "all_gather tiled": (lambda m: lambda x: m.lax.all_gather(x, "i", axis=1, tiled=True), M),
    "all_gather tiled last": (lambda m: lambda x: m.lax.all_gather(x, "i", axis=-1, tiled=True), M),
    "all_gather of a number": (lambda m: lambda x: m.lax.all_gather(2.0, "i") * x, X),
    "ppermute": (lambda m: lambda x: m.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), X),
    "pshuffle": (lambda m: lambda x: m.lax.pshuffle(x, "i", [2, 0, 1]), M),
    "all_to_all": (lambda m: lambda x: m.lax.all_to_all(x, "i", 0, 1), M),
    "all_to_all back": (lambda m: lambda x: m.lax.all_to_all(x, "i", 0, 0), M),
    "all_to_all tiled": (lambda m: lambda x: m.lax.all_to_all(x, "i", 0, 1, tiled=True), W),
    "all_to_all tiled back": (lambda m: lambda x: m.lax.all_to_all(x, "i", 1, 0, tiled=True), W),
    "pswapaxes": (lambda m: lambda x: m.lax.pswapaxes(x, "i", 0), M),
    "pswapaxes last": (lambda m: lambda x: m.lax.pswapaxes(x, "i", 1), W),
    "psum_scatter": (lambda m: lambda x: m.lax.psum_scatter(x, "i"), M),
    "psum_scatter last": (lambda m: lambda x: m.lax.psum_scatter(x, "i", scatter_dimension=1), W),
    "psum_scatter tiled": (lambda m: lambda x: m.lax.psum_scatter(x, "i", tiled=True), W),
    "pbroadcast": (lambda m: lambda x: m.lax.pbroadcast(x, "i", 1) + x, M),
    "under jit": (lambda m: m.jit(lambda x: x / m.lax.psum(x, "i")), X),
    "in a scan": (
        lambda m: lambda x: m.lax.scan(lambda c, v: (c + m.lax.psum(v, "i"), c), 0.0, x[0])[0],
        M,
    ),
    "in cond": (
        lambda m: lambda x: m.lax.cond(x > 1, lambda y: m.lax.psum(y, "i"), lambda y: y, x),
        X,
    ),
    "index alone under jit": (lambda m: lambda x: m.jit(lambda: m.lax.axis_index("i"))() + x, X),
    "hidden name": (
        lambda m: (
            lambda x: m.vmap(lambda y: m.lax.psum(y, "i"), axis_name="i")(x) + m.lax.psum(x, "i")
        ),
        M,
    ),
}
LINEAR = [
    "psum", "pmean", "all_gather", "all_gather axis", "all_gather tiled", "all_gather tiled last",
    "ppermute", "pshuffle", "all_to_all back", "all_to_all tiled", "all_to_all tiled back",
    "pswapaxes", "pswapaxes last", "psum_scatter", "psum_scatter last", "psum_scatter tiled",
    "psum of an axis, too", "under jit", "in a scan", "in cond",
]  # fmt: skip


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def compare(run: Callable[[Any], Any], rtol: float = 1e-5) -> None:
    functions = [c.cell_contents for c in run.__closure__ or () if callable(c.cell_contents)]
    expected = jax_result(lambda: jax.tree.leaves(run(jax)), run, functions)
    for g, w in zip(leaves(run(accnp)), leaves(expected), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    make, x = PROGRAMS[name]
    compare(lambda m: m.vmap(make(m), axis_name="i")(x))


@pytest.mark.parametrize("name", LINEAR)
def test_derivatives(name: str) -> None:
    """Reverse mode inside and outside of the map, and forward mode outside."""
    make, x = PROGRAMS[name]

    def run(m: Any) -> Any:
        def loss(y: Any) -> Any:
            return sum((m.numpy.sin(z)).sum() for z in jax.tree.leaves(make(m)(y)))

        mapped = m.vmap(loss, axis_name="i")

        def every(v: Any) -> Any:
            return (
                m.grad(lambda u: (mapped(u) * X).sum())(v),
                m.vmap(m.grad(loss), axis_name="i")(v),
                m.jvp(mapped, (v,), (v + 1,)),
            )

        return m.jit(every)(x)

    compare(run, 1e-4)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "pbroadcast"])  # jax fails on it
def test_other_axes_around(name: str) -> None:
    """The same within a map over another axis, outside and inside, named and unnamed."""
    make, x = PROGRAMS[name]
    wide = np.stack([x, x[::-1]])

    def run(m: Any) -> Any:
        outside = m.vmap(m.vmap(make(m), axis_name="i"), axis_name="o")
        inside = m.vmap(m.vmap(make(m)), axis_name="i")
        return outside(wide), inside(np.moveaxis(wide, 0, 1))

    compare(run)


def test_pbroadcast_with_another_axis_around() -> None:
    def f(x: Any) -> Any:
        return accnp.lax.pbroadcast(x, "i", 1)

    wide = np.stack([M, M[::-1]])
    actual = accnp.vmap(accnp.vmap(f, axis_name="i"))(wide)
    np.testing.assert_array_equal(actual, np.broadcast_to(wide[:, 1:2], wide.shape))
    gradient = accnp.grad(lambda v: (accnp.vmap(f, axis_name="i")(v) * M).sum())(M)
    np.testing.assert_array_equal(gradient, np.stack([M[0] * 0, M.sum(0), M[0] * 0]))
    inside = accnp.vmap(accnp.grad(lambda x: (f(x) * 3).sum()), axis_name="i")(M)
    np.testing.assert_array_equal(inside, np.stack([M[0] * 0, M[0] * 0 + 9, M[0] * 0]))


def test_two_names() -> None:
    def both(m: Any) -> Any:
        def one(x: Any) -> Any:
            lax = m.lax
            return (
                lax.psum(x, "i"),
                lax.psum(x, ("i", "j")),
                lax.psum(x, ["j", "i"]),
                lax.pmean(x, ("i", "j")),
                lax.pmax(x, ("j", "i")),
                lax.all_gather(x, "i") + x,
                lax.axis_index(("i", "j")),
                lax.axis_index(("j", "i")),
                x * lax.axis_size(("i", "j")),
                x * lax.psum(2, ("i", "j")),
            )

        return m.vmap(m.vmap(one, axis_name="j"), axis_name="i")(M)

    compare(both)


def test_two_axis_names_that_jax_does_not_support() -> None:
    """Examples are numbered in row-major order, with the first name slowest."""
    names = ("i", "j")
    x = np.arange(3 * 2 * 6 * 5, dtype=np.float32).reshape(3, 2, 6, 5)
    flat = x.reshape(6, 6, 5)

    def over_both(f: Callable[[Any], Any]) -> np.ndarray:
        return np.asarray(accnp.vmap(accnp.vmap(f, axis_name="j"), axis_name="i")(x))

    lax = accnp.lax
    gathered = over_both(lambda v: lax.all_gather(v, names, axis=1))
    np.testing.assert_array_equal(gathered[2, 1], flat.transpose(1, 0, 2))
    tiled = over_both(lambda v: lax.all_gather(v, names, axis=1, tiled=True))
    np.testing.assert_array_equal(tiled[0, 0], np.concatenate(list(flat), 1))
    for concat in (0, 1):
        swapped = over_both(lambda v, c=concat: lax.all_to_all(v, names, 0, c))
        expected = np.stack([np.stack(list(flat[:, k]), concat) for k in range(6)])
        np.testing.assert_array_equal(swapped.reshape(expected.shape), expected)
        joined = over_both(lambda v, c=concat: lax.all_to_all(v, names, 0, c, tiled=True))
        expected = np.stack([np.concatenate(list(flat[:, k : k + 1]), concat) for k in range(6)])
        np.testing.assert_array_equal(joined.reshape(expected.shape), expected)
    parts = over_both(lambda v: lax.psum_scatter(v, names))
    np.testing.assert_allclose(parts.reshape(6, 5), flat.sum(0), rtol=1e-6)
    parts = over_both(lambda v: lax.psum_scatter(v, names, tiled=True))
    np.testing.assert_allclose(parts.reshape(6, 5), flat.sum(0), rtol=1e-6)


@pytest.mark.parametrize("function", ["pmax", "pmin"])
def test_derivative_of_an_extreme(function: str) -> None:
    """JAX has no rule. It is the derivative of the maximum of an array, shared among equal
    elements."""
    x = np.asarray([1.0, 4.0, 4.0, 1.0], np.float32)
    reduction = getattr(accnp.lax, function)
    plain = {"pmax": accnp.max, "pmin": accnp.min}[function]
    actual = accnp.grad(
        lambda v: (accnp.vmap(lambda a: reduction(a, "i"), axis_name="i")(v) * x).sum()
    )(x)
    expected = accnp.grad(lambda v: (plain(v) * x).sum())(x)
    np.testing.assert_allclose(actual, expected)


def test_rules_of_the_users() -> None:
    def run(m: Any) -> Any:
        lax = m.lax

        @m.custom_jvp
        def f(x: Any) -> Any:
            return lax.psum(x**2, "i") * x

        @f.defjvp
        def f_jvp(primals: Any, tangents: Any) -> Any:
            (x,), (t,) = primals, tangents
            return f(x), lax.psum(t, "i") * 3 + lax.axis_index("i") * t

        @m.custom_vjp
        def g(x: Any) -> Any:
            return lax.psum(x**2, "i") * x

        def bwd(res: Any, ct: Any) -> Any:
            return (lax.psum(ct * res[0], "i") + res[1],)

        g.defvjp(lambda x: (g(x), (x, lax.axis_index("i"))), bwd)
        out = []
        for h in (f, g):
            mapped = m.vmap(h, axis_name="i")
            looped = m.vmap(
                lambda x, h=h: lax.scan(lambda c, _: (m.numpy.sin(h(c)), None), x, None, length=2)[
                    0
                ],
                axis_name="i",
            )
            out.append(m.jit(m.grad(lambda v, k=mapped: k(v).sum()))(X))
            out.append(m.jit(m.vmap(m.grad(h), axis_name="i"))(X))
            out.append(m.jit(m.grad(lambda v, k=looped: k(v).sum()))(X))
        return out

    compare(run, 1e-4)


AXIS = {"axis_name": "i"}
WRONG: dict[str, tuple[Callable[[Any], Any], np.ndarray, type[Exception], str]] = {
    "unbound": (lambda lax: lambda x: lax.psum(x, "k"), X, NameError, "unbound axis name: k"),
    "name twice": (lambda lax: lambda x: lax.psum(x, ("i", "i")), X, ValueError, "twice"),
    "split": (lambda lax: lambda x: lax.all_to_all(x, "i", 0, 0), W, ValueError, "length 6.* 3 ex"),
    "split tiled": (
        lambda lax: lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        M,
        ValueError,
        "length 2 .*multiple of 3",
    ),
    "gather axis": (lambda lax: lambda x: lax.all_gather(x, "i", axis=4), M, ValueError, "out of"),
    "gather of numbers, tiled": (
        lambda lax: lambda x: lax.all_gather(x, "i", tiled=True),
        X,
        ValueError,
        "out of bounds",
    ),
    "shuffle": (lambda lax: lambda x: lax.pshuffle(x, "i", [0, 0, 1]), X, ValueError, "permutat"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    make, x, kind, text = WRONG[name]
    with pytest.raises(kind):
        jax.vmap(make(jax.lax), **AXIS)(x)
    with pytest.raises(kind, match=text):
        accnp.vmap(make(accnp.lax), **AXIS)(x)


def test_errors_of_permutations() -> None:
    for perm, text in (
        ([(0, 1), (0, 2)], "unique"),
        ([(0, 1), (2, 1)], "unique"),
        ([(0, 7)], r"be in \[0, 3\)"),
    ):
        with pytest.raises(ValueError, match=text):
            accnp.vmap(lambda x, p=perm: accnp.lax.ppermute(x, "i", p), **AXIS)(X)
    with pytest.raises(NameError):
        accnp.lax.axis_index("i")


@pytest.mark.parametrize("groups", [[0, 1], [[0], 1], 3, [["a"]]])
@pytest.mark.parametrize("name", ["psum", "all_gather"])
def test_groups_must_be_lists_of_lists(name, groups):
    f = getattr(accnp.lax, name)
    words = f"^{name}: axis_index_groups must be a list of lists of indices, such as .*; got "
    with pytest.raises(TypeError, match=words):
        accnp.vmap(lambda x: f(x, "i", axis_index_groups=groups), axis_name="i")(X[:2])
