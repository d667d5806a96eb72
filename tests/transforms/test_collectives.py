"""Functions over a named mapped axis, against jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

X = np.asarray([1.0, 2.0, 4.0], np.float32)
M = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
PROGRAMS: dict[str, tuple[Callable[[Any], Callable[..., Any]], np.ndarray]] = {
    "psum": (lambda m: lambda x: m.lax.psum(x * x, "i"), X),
    "psum of a constant": (lambda m: lambda x: x / m.lax.psum(1, "i"), X),
    "pmean": (lambda m: lambda x: x - m.lax.pmean(x, "i"), X),
    "pmax and pmin": (lambda m: lambda x: m.lax.pmax(x, "i") - m.lax.pmin(x, "i") + x, X),
    "index and size": (lambda m: lambda x: x * m.lax.axis_index("i") + m.lax.axis_size("i"), X),
    "all_gather": (lambda m: lambda x: m.lax.all_gather(x, "i") * x, X),
    "all_gather axis": (lambda m: lambda x: m.lax.all_gather(x, "i", axis=1), M),
    "all_gather tiled": (lambda m: lambda x: m.lax.all_gather(x, "i", axis=1, tiled=True), M),
    "ppermute": (lambda m: lambda x: m.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), X),
    "pshuffle": (lambda m: lambda x: m.lax.pshuffle(x, "i", [2, 0, 1]), X),
    "all_to_all": (lambda m: lambda x: m.lax.all_to_all(x, "i", 0, 1), M),
    "all_to_all back": (lambda m: lambda x: m.lax.all_to_all(x, "i", 0, 0), M),
    "psum_scatter": (lambda m: lambda x: m.lax.psum_scatter(x, "i"), M),
    "grad of psum": (lambda m: m.grad(lambda x: m.lax.psum(x**2, "i")), X),
    "grad of pmean": (lambda m: m.grad(lambda x: m.lax.pmean(x**2, "i")), X),
    "grad of all_gather": (
        lambda m: m.grad(lambda x: (m.lax.all_gather(x, "i") ** 2).sum() * x),
        X,
    ),
    "jvp of psum": (lambda m: lambda x: m.jvp(lambda y: m.lax.psum(y**2, "i"), (x,), (x,)), X),
    "under jit": (lambda m: m.jit(lambda x: x / m.lax.psum(x, "i")), X),
    "in a scan": (
        lambda m: lambda x: m.lax.scan(lambda c, v: (c + m.lax.psum(v, "i"), c), 0.0, x[0])[0],
        M,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_jax(name: str) -> None:
    make, x = PROGRAMS[name]
    want = jax.tree.leaves(jax.vmap(make(jax), axis_name="i")(x))
    got = accnp.tree_util.tree_leaves(accnp.vmap(make(accnp), axis_name="i")(x))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6)
        assert g.dtype == w.dtype


def test_two_axes() -> None:
    def both(m: Any) -> Any:
        inner = m.vmap(
            lambda x: (m.lax.psum(x, "i"), m.lax.psum(x, ("i", "j")), m.lax.all_gather(x, "i") + x),
            axis_name="j",
        )
        return m.vmap(inner, axis_name="i")(M)

    for g, w in zip(both(accnp), both(jax), strict=True):
        np.testing.assert_allclose(g, np.asarray(w), rtol=1e-6)


def test_unbound_name() -> None:
    for m in (jax, accnp):
        with pytest.raises(NameError, match="unbound axis name: k"):
            m.vmap(lambda x, m=m: m.lax.psum(x, "k"), axis_name="i")(X)
    with pytest.raises(NameError):
        accnp.lax.axis_index("i")


def test_wrong_permutation() -> None:
    with pytest.raises(ValueError, match="unique"):
        accnp.vmap(lambda x: accnp.lax.ppermute(x, "i", [(0, 1), (0, 2)]), axis_name="i")(X)
