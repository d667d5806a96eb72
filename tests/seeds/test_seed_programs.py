"""Seed programs that print graphs or numbers: the output equals JAX's exactly."""

import re

import numpy as np
import pytest

import accnp


def finished(run):
    """Return the run after checking that it raised nothing."""
    if run.error is not None:
        raise run.error
    return run


def is_traced(value) -> bool:
    """Return whether requesting the value raises an error."""
    try:
        float(value)
    except accnp.errors.ConcretizationTypeError:
        return True
    except accnp.errors.UnexpectedTracerError:
        return True
    return False


# 1, 2, 3, 20: graphs in jax 0.10's notation


def test_log2_graph_and_its_side_effect(ours, theirs):
    run = finished(ours("p01_log2"))
    assert run.output == theirs("p01_log2").output
    words = " ".join(run.output.split())
    assert words == (
        "{ lambda ; a:f32[]. let b:f32[] = log a c:f32[] = log 2.0:f32[] "
        "d:f32[] = div b c in (d,) }"
    )
    (tracer,) = run.names["global_list"]
    assert isinstance(tracer, accnp.Array)
    assert "float32[]" in repr(tracer)
    assert is_traced(tracer)


def test_log2_if_rank_2_takes_the_branch_at_trace_time(ours, theirs):
    run = finished(ours("p02_log2_if_rank_2"))
    assert run.output == theirs("p02_log2_if_rank_2").output
    assert run.output.startswith("{ lambda ; a:i32[3]. let  in (a,) }\n")


def test_polynomial_graph(ours, theirs):
    run, oracle = finished(ours("p03_polynomial")), theirs("p03_polynomial")
    printed, graph = run.output.split("\n", 1)
    assert "int32[]" in printed
    assert graph == oracle.output.split("\n", 1)[1]
    assert len(re.findall(r"= (mul|add) ", graph)) == 5
    assert is_traced(run.names["global_list"][0])


def test_polynomial_under_jit_is_one_call(ours, theirs):
    run, oracle = finished(ours("p03_polynomial_jit")), theirs("p03_polynomial_jit")
    printed, graph = run.output.split("\n", 1)
    assert "int32[]" in printed
    assert graph == oracle.output.split("\n", 1)[1]
    assert "jit[" in graph
    assert "name=f" in graph


def test_square_is_integer_pow(ours, theirs):
    run = finished(ours("p20_square"))
    assert run.output == theirs("p20_square").output
    assert "integer_pow[y=2] a" in run.output


# 4, 23: eager and jitted agree


def test_selu_eager_and_jitted(ours):
    names = finished(ours("p04_selu")).names
    x, selu, selu_jit = names["x"], names["selu"], names["selu_jit"]
    np.testing.assert_array_equal(np.asarray(selu(x)), np.asarray(selu_jit(x)))
    around_zero = accnp.linspace(-5, 5, 1001)
    a = np.asarray(around_zero)
    expected = np.float32(1.05) * np.where(
        a > 0, a, np.float32(1.67) * np.exp(a) - np.float32(1.67)
    )
    np.testing.assert_allclose(np.asarray(selu(around_zero)), expected, rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(selu(around_zero)), np.asarray(selu_jit(around_zero)))


def test_norm_eager_and_jitted(ours):
    run = finished(ours("p23_norm"))
    assert run.output == "True\n"
    X, norm, compiled = (run.names[n] for n in ("X", "norm", "norm_compiled"))
    np.testing.assert_array_equal(np.asarray(norm(X)), np.asarray(compiled(X)))
    a = np.asarray(X, dtype=np.float64)
    expected = (a - a.mean(0)) / a.std(0)
    np.testing.assert_allclose(np.asarray(norm(X)), expected, atol=2e-6)


def test_slow_f_eager_and_jitted(ours):
    names = finished(ours("p16_slow_f")).names
    for f in (names["slow_f"], names["fast_f"]):
        result = f(names["x"])
        assert result.shape == (5000, 5000)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(np.asarray(result), np.float32(3))


# 14, 15: traced values printed, arithmetic kept as written


def test_printing_under_jit(ours):
    lines = finished(ours("p14_print")).output.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("x = ")
    assert "float32[2,3]" in lines[0]
    assert lines[1] == "x.shape = (2, 3)"
    assert lines[2].startswith("jnp.array(x.shape).prod() = ")
    assert "int32[]" in lines[2]
    assert not lines[2].endswith(" 6")


def test_jit_keeps_the_arithmetic(ours):
    run = finished(ours("p15_precision"))
    first, second = run.output.split()
    assert first == second == "0.0010000467"
    x, y, f = (run.names[n] for n in ("x", "y", "f"))
    assert float(accnp.jit(f)(x, y)) == float(np.float32(1.0) + np.float32(0.001)) - 1.0


def test_fastmath_may_reassociate(ours):
    names = finished(ours("p15_precision")).names
    fast = accnp.jit(names["f"], fastmath=True)
    assert float(fast(names["x"], names["y"])) == pytest.approx(0.001, rel=1e-7)


# 16, 18, 19: derivatives, batching, strict types


def test_tanh_derivatives(ours):
    first, third = finished(ours("p16_tanh")).output.split()
    assert float(first) == pytest.approx(0.4199743, rel=2e-6)
    assert float(third) == pytest.approx(0.62162673, rel=2e-5)


def test_vmap_of_absstruct_is_the_loop(ours):
    names = finished(ours("p18_absstruct")).names
    a, b, f = names["a"], names["b"], names["absstruct"]
    loop = accnp.stack([f(b[i], a) for i in range(b.shape[0])])
    assert names["ans"].shape == (4, 1)
    np.testing.assert_array_equal(np.asarray(names["ans"]), np.asarray(loop))
    np.testing.assert_array_equal(np.asarray(names["ans"]), [[2], [2], [5], [0]])


def test_lax_is_strict_where_numpy_promotes(ours, theirs):
    run, oracle = ours("p19_lax_add"), theirs("p19_lax_add")
    assert run.output == oracle.output
    assert isinstance(run.error, TypeError)
    assert "add" in str(run.error)
    assert "int32" in str(run.error)
    assert "float32" in str(run.error)


# 21: random numbers, bit for bit


def test_uniform_has_the_same_bits(ours, theirs):
    x, expected = finished(ours("p21_random")).names["x"], theirs("p21_random").names["x"]
    assert x.shape == (5000, 5000)
    np.testing.assert_array_equal(np.asarray(x), np.asarray(expected))
    product = np.asarray(accnp.matmul(x[:300], x[:, :300]))
    a = np.asarray(expected, dtype=np.float64)
    np.testing.assert_allclose(product, a[:300] @ a[:, :300], rtol=1e-5)
