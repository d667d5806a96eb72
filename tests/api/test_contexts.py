"""User-defined contexts, `live_arrays`, forward and backward passes, pictures of graphs, and the
debugger prompt.
"""

import io

import numpy as np
import pytest

import accnp


def test_user_context_is_part_of_the_cache_key():
    seen = []
    scale = accnp.make_user_context(1)
    other = accnp.make_user_context()

    @accnp.jit
    def f(x):
        seen.append((scale.value, other.value))
        return x * scale.value

    assert float(f(2.0)) == 2.0
    with scale(3), other("a"):
        assert (float(f(2.0)), float(f(3.0))) == (6.0, 9.0)
    with scale(3):
        f(2.0)
    assert float(f(2.0)) == 2.0
    assert seen == [(1, None), (3, "a"), (3, None)]


def test_live_arrays():
    x = accnp.numpy.arange(3.0)
    x = (x + 1).block_until_ready()
    y = x + 1  # nothing is computed yet
    live = accnp.live_arrays()
    assert any(x is a for a in live)
    assert not any(y is a for a in live)
    with pytest.raises(RuntimeError, match="'tpu' is not available"):
        accnp.live_arrays("tpu")


@pytest.mark.parametrize("jitted", [True, False])
def test_forward_and_backward(jitted):
    traces = []

    def f(w, k, x):
        traces.append(1)
        y = accnp.numpy.sin(x @ w["w"]) * k
        return y.sum(), y.shape

    fwd, bwd = accnp.fwd_and_bwd(lambda w, k, x: f(w, k, x)[0], (0, 2), jitted=jitted)
    w, x = {"w": np.full(3, 0.5, np.float32)}, np.ones((2, 3), np.float32)
    for _ in range(3):
        value, residuals = fwd(w, 2.0, x)
        actual = bwd(residuals, 1.0)
    expected = accnp.grad(lambda w, x: f(w, 2.0, x)[0], (0, 1))(w, x)
    assert float(value) == float(f(w, 2.0, x)[0])
    for a, b in zip(accnp.tree.leaves(actual), accnp.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert len(traces) == (3 if jitted else 5)


def test_forward_with_auxiliary_data():
    fwd, bwd = accnp.fwd_and_bwd(lambda x: (x * x, x + 1), 0, has_aux=True)
    value, aux, residuals = fwd(3.0)
    assert (float(value), float(aux)) == (9.0, 4.0)
    assert [float(ct) for ct in bwd(residuals, 1.0)] == [6.0]


def test_sharding_visualization(capsys):
    grid = accnp.sharding.Mesh(np.array(accnp.devices()[:4]).reshape(2, 2), ("a", "b"))
    place = accnp.NamedSharding(grid, accnp.P("a"))
    accnp.debug.visualize_sharding((4, 4), place, max_width=40)
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip("|").strip() for line in lines[1::2]] == ["CPU 0,1", "CPU 2,3"]
    x = accnp.device_put(np.ones((4, 4)), accnp.NamedSharding(grid, accnp.P("a", "b")))
    accnp.debug.visualize_array_sharding(x, max_width=24)
    lines = capsys.readouterr().out.splitlines()
    assert [[c.strip() for c in line.strip("|").split("|")] for line in lines[1::2]] == [
        ["CPU 0", "CPU 1"], ["CPU 2", "CPU 3"],
    ]  # fmt: skip
    assert len({len(line) for line in lines}) == 1
    with pytest.raises(ValueError, match="rank 1 and 2"):
        accnp.debug.visualize_sharding((2, 2, 2), place)


def prompt(text, **more):
    out = io.StringIO()

    def outer(x):
        y = x * 2
        inner(y)
        return y

    def inner(z):
        accnp.debug.breakpoint(stdin=io.StringIO(text), stdout=out, **more)

    return outer, out


@pytest.mark.parametrize("transform", [lambda f: f, accnp.jit])
def test_the_prompt_shows_values(transform):
    f, out = prompt("p float(z)\nu\np float(x), float(y)\nbt\nl\np nothing\nwhat\nc\n")
    assert float(transform(f)(3.0)) == 6.0
    accnp.effects_barrier()
    output = out.getvalue()
    assert "6.0" in output
    assert "(3.0, 6.0)" in output
    assert "in outer" in output
    assert "NameError: name 'nothing' is not defined" in output
    assert "unknown: 'what'" in output


def test_the_prompt_stops_a_program():
    f, _ = prompt("q\n")

    def run():
        accnp.block_until_ready(f(3.0))
        accnp.effects_barrier()

    with pytest.raises(BaseException, match="stopped at the prompt"):
        run()


def test_a_context_has_a_global_value():
    seen = []
    scale = accnp.make_user_context(1)

    @accnp.jit
    def f(x):
        seen.append(scale.value)
        return x * scale.value

    assert (scale.get_global(), float(f(2.0))) == (1, 2.0)
    scale.set_global(3)
    assert (scale.get_global(), scale.value, float(f(2.0))) == (3, 3, 6.0)
    with scale(5):
        assert (scale.get_global(), scale.value, float(f(2.0))) == (3, 5, 10.0)
        scale.set_global(4)
        assert (scale.get_global(), scale.value) == (4, 5)
    assert float(f(2.0)) == 8.0
    assert seen == [1, 3, 5, 4]
    assert accnp.make_user_context("a").get_global() == "a"


def test_environment_info_begins_with_the_versions():
    lines = accnp.print_environment_info(return_string=True).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["jax:", "jaxlib:", "numpy:"]
    assert f"jax:    {accnp.__version__}" in lines[0]
