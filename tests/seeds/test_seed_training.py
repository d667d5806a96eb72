"""Seed programs 25 to 27: pytrees, training steps, dead code and `.at` updates."""

import numpy as np
import pytest

import accnp
import accnp as jax
import accnp.numpy as jnp


def weights(seed: int = 0) -> dict:
    """Return the parameters of a small network as NumPy arrays."""
    rng = np.random.default_rng(seed)
    return {
        "first": {"w": rng.normal(size=(5, 16)).astype(np.float32), "b": np.zeros(16, np.float32)},
        "second": [rng.normal(size=(16, 3)).astype(np.float32), np.zeros(3, np.float32)],
    }


def train(library, steps: int):
    """Fit random labels for some steps with jit(value_and_grad), and return all results."""
    np_ = library.numpy
    rng = np.random.default_rng(1)
    x = np_.asarray(rng.normal(size=(32, 5)).astype(np.float32))
    y = np_.asarray(rng.normal(size=(32, 3)).astype(np.float32))

    def loss(params, x, y):
        hidden = np_.tanh(x @ params["first"]["w"] + params["first"]["b"])
        guess = hidden @ params["second"][0] + params["second"][1]
        return ((guess - y) ** 2).mean(), {"guess": guess, "size": np_.abs(guess).max()}

    @library.jit
    def step(params, x, y):
        (value, extra), gradient = library.value_and_grad(loss, has_aux=True)(params, x, y)
        params = library.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient)
        return params, value, extra

    params = library.tree_util.tree_map(np_.asarray, weights())
    losses = []
    for _ in range(steps):
        params, value, extra = step(params, x, y)
        losses.append(float(value))
    return params, losses, extra


def test_train_step_agrees_with_the_oracle():
    oracle = pytest.importorskip("jax")
    params, losses, extra = train(accnp, 15)
    want_params, want_losses, want_extra = train(oracle, 15)
    assert losses[-1] < losses[0] / 2
    np.testing.assert_allclose(losses, want_losses, rtol=1e-4)
    assert set(params) == {"first", "second"}
    assert isinstance(params["second"], list)
    ours = jax.tree_util.tree_leaves((params, extra))
    theirs = oracle.tree_util.tree_leaves((want_params, want_extra))
    assert len(ours) == len(theirs) == 6
    for mine, expected in zip(ours, theirs):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(expected), rtol=1e-3, atol=1e-4)


def test_gradient_has_the_structure_of_its_argument():
    params = {"a": jnp.array([1.0, 2.0]), "b": (jnp.array(3.0), [jnp.array(4.0)])}
    gradient = jax.grad(lambda p: (p["a"] ** 2).sum() * p["b"][0] + p["b"][1][0])(params)
    assert jax.tree_util.tree_structure(gradient) == jax.tree_util.tree_structure(params)
    np.testing.assert_array_equal(np.asarray(gradient["a"]), [6.0, 12.0])
    assert float(gradient["b"][0]) == 5.0
    assert float(gradient["b"][1][0]) == 1.0


def test_second_derivatives_by_nesting():
    cube = jax.grad(jax.grad(lambda x: x**3))
    assert float(cube(2.0)) == pytest.approx(12.0)
    assert float(jax.jit(cube)(2.0)) == pytest.approx(12.0)


def test_pytrees_in_and_out_of_jit():
    @jax.jit
    def swap(tree):
        return {"right": tree["left"], "left": (tree["right"], None)}

    out = swap({"left": jnp.arange(3), "right": [1.0, jnp.ones(2)]})
    assert set(out) == {"left", "right"}
    assert out["left"][1] is None
    np.testing.assert_array_equal(np.asarray(out["right"]), [0, 1, 2])
    assert float(out["left"][0][0]) == 1.0


def test_unused_results_are_not_computed():
    def lean(x):
        return x + 1.0

    def wasteful(x):
        product = x @ x
        jnp.exp(product).sum(axis=0)
        jnp.sort(x)
        return x + 1.0

    x = jnp.ones((64, 64))
    launches = []
    for f in (jax.jit(lean), jax.jit(wasteful)):
        f(x).block_until_ready()
        before = accnp.counters()["launches"]
        np.testing.assert_array_equal(np.asarray(f(x)), np.float32(2))
        launches.append(accnp.counters()["launches"] - before)
    assert launches[0] == launches[1] == 1


UPDATES = {
    "set": lambda x: x.at[1].set(9.0),
    "set slice": lambda x: x.at[::2].set(np.float32([1, 2, 3])),
    "set mask": lambda x: x.at[x > 2].set(0.0),
    "set 2-d": lambda x: x.reshape(1, 5).at[:, 1:3].set(7.0),
    "add": lambda x: x.at[np.array([0, 0, 3])].add(1.0),
    "subtract": lambda x: x.at[2].subtract(1.0),
    "multiply": lambda x: x.at[1:].multiply(3.0),
    "mul": lambda x: x.at[np.array([4, 4])].mul(2.0),
    "divide": lambda x: x.at[3].divide(2.0),
    "power": lambda x: x.at[2:].power(2.0),
    "min": lambda x: x.at[np.array([3, 4])].min(1.5),
    "max": lambda x: x.at[0].max(10.0),
    "apply": lambda x: x.at[1:3].apply(lambda v: v * v + 1),
    "get": lambda x: x.at[np.array([1, -1])].get(),
    "get fill": lambda x: x.at[np.array([1, 20])].get(mode="fill", fill_value=-1.0),
    "get clip": lambda x: x.at[np.array([1, 20])].get(mode="clip"),
    "set dropped": lambda x: x.at[20].set(1.0),
    "set clipped": lambda x: x.at[20].set(1.0, mode="clip"),
    "add negative": lambda x: x.at[-2].add(5.0),
}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_at_updates(name, mode):
    oracle = pytest.importorskip("jax")
    update = UPDATES[name]
    if mode == "jit" and name == "set mask":
        update = lambda x: x.at[np.arange(5) > 2].set(0.0)  # noqa: E731
    data = np.arange(5, dtype=np.float32)
    x = jnp.asarray(data)
    mine = jax.jit(update)(x) if mode == "jit" else update(x)
    expected = update(oracle.numpy.asarray(data))
    assert str(mine.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(np.asarray(mine), np.asarray(expected))
    np.testing.assert_array_equal(np.asarray(x), data)  # the operand is left alone


def test_item_assignment_points_to_at():
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1.0
    np.testing.assert_array_equal(np.asarray(x), 0)
