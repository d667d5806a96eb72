"""`pmap` compared with JAX, both with four CPU devices (see conftest.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

V = np.arange(4, dtype=np.float32)
M = np.arange(24, dtype=np.float32).reshape(4, 6)
T = np.arange(32, dtype=np.float32).reshape(4, 4, 2)
PAIRS, CROSS, UNEVEN = [[0, 1], [2, 3]], [[0, 3], [2, 1]], [[0, 1, 2], [3]]


def over(m: Any, f: Callable[..., Any], *xs: Any, **options: Any) -> Any:
    return m.pmap(f, axis_name="i", **options)(*xs)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda m: m.pmap(lambda x: x * 2)(V),
    "fewer rows": lambda m: m.pmap(lambda x: x * 2)(V[:3]),
    "keywords": lambda m: m.pmap(lambda x, y: x + y)(V, y=V),
    "second argument whole": lambda m: m.pmap(lambda x, y: x + y, in_axes=(0, None))(V, V),
    "trees": lambda m: m.pmap(lambda p: p["a"] * p["b"], in_axes=({"a": 0, "b": None},))(
        {"a": V, "b": 2.0}
    ),
    "other axis": lambda m: m.pmap(lambda x: x, in_axes=1)(M[:, :4]),
    "out_axes": lambda m: m.pmap(lambda x: x, out_axes=1)(M),
    "out_axes None": lambda m: m.pmap(lambda x: x, out_axes=None)(M),
    "out_axes in a tree": lambda m: over(
        m, lambda x: {"a": x, "b": m.lax.psum(x, "i")}, M, out_axes={"a": 1, "b": None}
    ),
    "axis_size": lambda m: m.pmap(lambda x: x, axis_size=4)(V),
    "static": lambda m: m.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(V, 3),
    "static texts": lambda m: m.pmap(
        lambda n, x, k: x * n if k == "a" else x, static_broadcasted_argnums=(0, 2)
    )(3, V, "a"),
    "static with in_axes": lambda m: m.pmap(
        lambda n, x: x * n, static_broadcasted_argnums=0, in_axes=(None, 0)
    )(3, V),
    "backend": lambda m: m.pmap(lambda x: x + 1, backend="cpu")(V),
    "devices": lambda m: m.pmap(lambda x: x + 1, devices=m.devices()[2:])(V[:2]),
    "a constant on a device": lambda m: (lambda c: m.pmap(lambda x: x + c)(V))(
        m.device_put(1.0, m.devices()[1])
    ),
    "no results": lambda m: m.pmap(lambda x: None)(V),
    "keys": lambda m: m.pmap(lambda k: m.random.uniform(k, (2,)))(
        m.random.split(m.random.key(0), 4)
    ),
    "indexed": lambda m: m.pmap(lambda x: x + 1)(M)[1, 2:],
    "at": lambda m: m.pmap(lambda x: x + 1)(M).at[0].set(0.0),
    "sum of results": lambda m: (m.pmap(lambda x: x + 1)(V) * 2).sum(),
    "vmap of pmap": lambda m: m.vmap(
        m.pmap(lambda x: m.lax.psum(x, "i"), axis_name="i"), in_axes=1, out_axes=1
    )(M),
    "pmap of vmap": lambda m: over(
        m, m.vmap(lambda x: m.lax.psum(x, ("i", "j")) * x, axis_name="j"), M
    ),
    "jit of pmap": lambda m: m.jit(m.pmap(lambda x: m.lax.psum(x, "i"), axis_name="i"))(V),
    "pmap of jit": lambda m: over(m, m.jit(lambda x: m.lax.psum(x, "i") * x), V),
    "pmap in scan": lambda m: m.lax.scan(
        lambda c, _: (over(m, lambda x: m.lax.pmean(x, "i") + x, c), None), V, None, length=3
    )[0],
    "scan in pmap": lambda m: over(
        m, lambda x: m.lax.scan(lambda c, v: (c + m.lax.psum(v, "i"), c), 0.0, x), M
    ),
    "grad of pmap": lambda m: m.grad(
        lambda v: over(m, lambda x: m.lax.psum(x**2, "i") * x, v).sum()
    )(V),
    "pmap of grad": lambda m: over(m, m.grad(lambda x: m.lax.psum(x**2, "i") * x), V),
    "pmap of value_and_grad": lambda m: over(
        m, m.value_and_grad(lambda x: m.lax.pmean(x**2, "i") * x), V
    ),
    "jvp of pmap": lambda m: m.jvp(
        m.pmap(lambda x: m.lax.psum(x**2, "i") * x, axis_name="i"), (V,), (V + 1,)
    ),
    "hessian": lambda m: m.hessian(lambda v: over(m, lambda x: m.lax.psum(x**2, "i") * x, v).sum())(
        V
    ),
    "psum of bool": lambda m: over(m, lambda x: m.lax.psum(x > 1, "i"), V),
    "axis_index": lambda m: over(m, lambda x: m.lax.axis_index("i") + x, V),
    "pshuffle": lambda m: over(m, lambda x: m.lax.pshuffle(x, "i", [2, 0, 1, 3]), V),
    "ppermute": lambda m: over(m, lambda x: m.lax.ppermute(x, "i", [(0, 1), (1, 3)]), V),
    "ppermute of nothing": lambda m: over(m, lambda x: m.lax.ppermute(x, "i", []), V),
    "grad of ppermute": lambda m: over(
        m, m.grad(lambda x: m.lax.ppermute(x, "i", [(0, 1), (1, 3)]) * x), V
    ),
    "grad of all_gather": lambda m: over(
        m, m.grad(lambda x: (m.lax.all_gather(x, "i") ** 2).sum() * x), V
    ),
    "grad of psum_scatter": lambda m: over(
        m, m.grad(lambda x: (m.lax.psum_scatter(x, "i") ** 2).sum()), T
    ),
}
for name, groups in {"pairs": PAIRS, "cross": CROSS, "uneven": UNEVEN}.items():
    for fold in ("psum", "pmean", "pmax", "pmin"):
        PROGRAMS[f"{fold} in {name}"] = lambda m, f=fold, g=groups: over(
            m, lambda x: getattr(m.lax, f)(x, "i", axis_index_groups=g), V
        )
    PROGRAMS[f"constants in {name}"] = lambda m, g=groups: over(
        m, lambda x: x * m.lax.psum(1, "i", axis_index_groups=g), V
    )
    PROGRAMS[f"grad of psum in {name}"] = lambda m, g=groups: over(
        m, m.grad(lambda x: m.lax.psum(x * x, "i", axis_index_groups=g)), V
    )
for name, groups in {"pairs": PAIRS, "cross": CROSS}.items():
    PROGRAMS[f"all_gather in {name}"] = lambda m, g=groups: over(
        m, lambda x: m.lax.all_gather(x, "i", axis_index_groups=g, axis=1), M
    )
    PROGRAMS[f"all_gather tiled in {name}"] = lambda m, g=groups: over(
        m, lambda x: m.lax.all_gather(x, "i", axis_index_groups=g, axis=1, tiled=True), T
    )
    PROGRAMS[f"grad of all_gather in {name}"] = lambda m, g=groups: over(
        m,
        m.grad(lambda x: (m.lax.all_gather(x, "i", axis_index_groups=g) * V[1:3]).sum() * x),
        V,
    )
    PROGRAMS[f"all_to_all in {name}"] = lambda m, g=groups: over(
        m, lambda x: m.lax.all_to_all(x, "i", 1, 1, axis_index_groups=g), T
    )
    PROGRAMS[f"all_to_all tiled in {name}"] = lambda m, g=groups: over(
        m, lambda x: m.lax.all_to_all(x, "i", 0, 1, axis_index_groups=g, tiled=True), T
    )
    PROGRAMS[f"pswapaxes in {name}"] = lambda m, g=groups: over(
        m, lambda x: m.lax.pswapaxes(x, "i", 1, axis_index_groups=g), T
    )
    PROGRAMS[f"psum_scatter in {name}"] = lambda m, g=groups: over(
        m,
        lambda x: m.lax.psum_scatter(x, "i", scatter_dimension=1, axis_index_groups=g),
        T,
    )
    PROGRAMS[f"psum_scatter tiled in {name}"] = lambda m, g=groups: over(
        m, lambda x: m.lax.psum_scatter(x, "i", axis_index_groups=g, tiled=True), T
    )


# A gradient goes back to where the argument came from; jax leaves it on the devices.
ELSEWHERE = {"grad of pmap", "hessian"}


def places(x: Any) -> set[str]:
    return {*map(str, x.devices())}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_pmap_matches_jax(name: str) -> None:
    expected, actual = (PROGRAMS[name](m) for m in (jax, accnp))
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for g, w in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, np.asarray(w), rtol=1e-5, atol=1e-5)
        assert places(g) == ({"cpu:0"} if name in ELSEWHERE else places(w))


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "too many rows": (
        lambda: accnp.pmap(lambda x: x)(np.ones(5)),
        ValueError,
        "5 rows for 4 devices.*ACCNP_NUM_CPU_DEVICES",
    ),
    "too few devices": (
        lambda: accnp.pmap(lambda x: x, devices=accnp.devices()[:2])(V),
        ValueError,
        "4 rows for 2 devices",
    ),
    "lengths": (
        lambda: accnp.pmap(lambda x, y: x)(V, V[:3]),
        ValueError,
        r"(?s)pmap got inconsistent sizes.*4: axis 0 of argument x of type float32\[4\].*"
        "3: axis 0 of argument y",
    ),
    "nothing mapped": (
        lambda: accnp.pmap(lambda x: x, in_axes=None)(V),
        ValueError,
        "must have at least one non-None value in in_axes",
    ),
    "no rows": (lambda: accnp.pmap(lambda x: x)(1.0), ValueError, "rank should be at least 1"),
    "text": (lambda: accnp.pmap(lambda x: x)("a"), TypeError, r"pmap.*x: Argument 'a'"),
    "in_axes": (lambda: accnp.pmap(lambda x: x, in_axes=(0.5,)), TypeError, "pmap in_axes must be"),
    "out_axes": (lambda: accnp.pmap(lambda x: x, out_axes="a"), TypeError, "pmap out_axes must be"),
    "backend": (lambda: accnp.pmap(lambda x: x, backend="gpu"), RuntimeError, "'gpu' is not"),
    "no devices": (lambda: accnp.pmap(lambda x: x, devices=[]), ValueError, "devices is empty"),
    "twice": (
        lambda: accnp.pmap(lambda x: x, devices=accnp.devices()[:1] * 2),
        ValueError,
        "given twice",
    ),
    "static list": (
        lambda: accnp.pmap(lambda x, n: x, static_broadcasted_argnums=1)(V, [3]),
        ValueError,
        "Non-hashable static arguments are not supported",
    ),
    "static position": (
        lambda: accnp.pmap(lambda *xs: xs, static_broadcasted_argnums=3)(V),
        ValueError,
        "static_broadcasted_argnums",
    ),
    "unbound": (lambda: accnp.pmap(lambda x: accnp.lax.psum(x, "i"))(V), NameError, "unbound"),
    "no function": (lambda: accnp.pmap(3), TypeError, "callable"),
    "groups overlap": (
        lambda: over(accnp, lambda x: accnp.lax.psum(x, "i", axis_index_groups=[[0, 1], [1]]), V),
        ValueError,
        "cover all indices exactly once",
    ),
    "groups uneven": (
        lambda: over(accnp, lambda x: accnp.lax.all_gather(x, "i", axis_index_groups=UNEVEN), V),
        ValueError,
        "equal lengths",
    ),
    "put elsewhere": (
        lambda: accnp.pmap(lambda x: x)(V) + accnp.device_put(V, accnp.devices()[1]),
        ValueError,
        "different devices",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()


def test_arguments_come_from_anywhere() -> None:
    devices = accnp.devices()
    x, y = accnp.device_put(V, devices[1]), accnp.device_put(V, devices[2])
    out = accnp.pmap(lambda a, b: a + b)(x, y)
    np.testing.assert_allclose(out, V + V)
    assert out.devices() == set(devices)
    grad = accnp.grad(lambda a: accnp.pmap(lambda a, b: a * b)(a, y).sum())(x)
    np.testing.assert_allclose(grad, V)
    assert grad.device is devices[1]


def test_traced_once() -> None:
    traces = []
    f = accnp.pmap(lambda x: (traces.append(1), x * 2)[1])
    x = accnp.asarray(V)
    for _ in range(3):
        x = f(x)
    f(V[:2])
    assert len(traces) <= 3  # as it was given, as it comes from pmap, shorter
    np.testing.assert_allclose(x, V * 8)


def test_donation() -> None:
    x = accnp.asarray(V) + 1
    f = accnp.pmap(lambda x: x * 2, donate_argnums=0)
    np.testing.assert_allclose(f(x), (V + 1) * 2)
    assert x.is_deleted()


def test_kernels_serve_all_rows() -> None:
    def one(x: Any) -> Any:
        return (x - x.mean()) / (x.std() + 1)

    texts = [str(accnp.inspect(f)(M)) for f in (accnp.pmap(one), accnp.vmap(one))]
    assert texts[0].count("def kernel") == texts[1].count("def kernel") > 0


def training(m: Any) -> list[Any]:
    """Data-parallel training steps of a small network, with gradients averaged over devices."""
    jnp, lax = m.numpy, m.lax
    rng = np.random.default_rng(0)
    params = {
        "w": [rng.normal(size=s).astype(np.float32) * 0.3 for s in ((6, 8), (8, 3))],
        "b": [np.zeros(n, np.float32) for n in (8, 3)],
    }
    x = rng.normal(size=(4, 16, 6)).astype(np.float32)
    y = rng.integers(0, 3, (4, 16))

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = jnp.tanh(x @ p["w"][0] + p["b"][0])
        logits = h @ p["w"][1] + p["b"][1]
        chosen = jnp.take_along_axis(m.nn.log_softmax(logits), y[:, None], 1)
        return -chosen.mean()

    def step(p: Any, x: Any, y: Any) -> Any:
        value, grads = m.value_and_grad(loss)(p, x, y)
        value, grads = lax.pmean((value, grads), "batch")
        return m.tree.map(lambda a, g: a - 0.5 * g, p, grads), value

    run = m.pmap(step, axis_name="batch", donate_argnums=0)
    stacked = m.tree.map(lambda a: jnp.stack([a] * 4), params)
    losses = []
    for _ in range(5):
        stacked, value = run(stacked, x, y)
        losses.append(value)
    assert {*map(str, losses[-1].devices())} == {f"cpu:{i}" for i in range(4)}
    return [losses, stacked]


def test_data_parallel_training() -> None:
    actual, expected = (jax.tree.leaves(training(m)) for m in (accnp, jax))
    for g, w in zip(actual, expected, strict=True):
        np.testing.assert_allclose(g, np.asarray(w), rtol=2e-4, atol=1e-5)
        np.testing.assert_array_equal(g[0], g[3])
    assert float(actual[4][0]) < float(actual[0][0])
