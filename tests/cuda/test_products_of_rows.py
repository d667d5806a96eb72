"""Products (`prod`) of rows on GPUs in which partial products overflow or underflow but the result
does not. Results match the CPU bitwise; such blocks are recomputed with separate exponents.
"""

import numpy as np
import pytest
from cuda.kernel_cases import Case, grid_kernels
from cuda.support import same_bits

import accnp as jax
import accnp.numpy as jnp
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.passes import reduce_rows
from accnp.compiler.specs import grid
from accnp.compiler.specs.launches import build_generated
from accnp.engine.steps import elementwise_operands
from accnp.ir.kernel import CHUNK


def f4(*shape):
    return np.zeros(shape, np.float32)


def alternating_magnitudes(n, dtype, rng):
    """Return alternating large and small numbers, runs of common and of small ones, zeros and
    special values.
    """
    real = np.dtype(dtype).type(0).real.dtype
    k, big = np.arange(n), {2: 200.0, 4: 1e30, 8: 1e250}[real.itemsize]
    x = rng.uniform(0.9, 1.1, n) * rng.choice([-1, 1], n) * np.where(k % 2, big, 1 / big)
    x = np.where(k // 977 % 5 == 1, 1.5, np.where(k // 977 % 5 == 2, 0.25, x))
    x = x * np.exp(1j * k) if np.dtype(dtype).kind == "c" else x
    edges = [0, -0.0, np.inf, np.nan, 1e-42, 5e-324]
    x[rng.choice(n, n // 700 + (n > 90))] = edges[n % len(edges)]
    return x.astype(dtype)


def row_values(a, n, rng):
    return np.ones(1) if n == 1 else alternating_magnitudes(n, a.dtype, rng)


def finite_products(n, rng):
    """Return such numbers without special values, so that the product of each row is finite."""
    return rng.uniform(0.6, 0.74, n) * np.where(np.arange(n) % 2, 1e30, 1e-30)


def reduce_in_passes(x):
    """A kernel whose last pass reduces values that the previous pass left in shared memory."""
    e = jnp.fmod(x, jnp.abs(x).max(1, keepdims=True) * 1.5)
    y = e * jnp.sign(e.sum(1, keepdims=True))
    return y, y.prod(1)


PROGRAMS = {
    "few": (lambda x: x.prod(1), f4(41, 7)),
    "blocks": (lambda x: x.prod(1), f4(3, 2500)),
    "whole": (lambda x: x.prod(), f4(CHUNK + 77)),
    "two axes": (lambda x: x[:, ::2, ::3].prod((1, 2)), f4(5, 12, 70)),
    "beside": (lambda x, y: ((x * y).prod(1), (x * y).sum(1)), f4(9, 300), f4(300)),
    "and stored": (lambda x: (x * 2, (x * 2).prod(1)), f4(9, 300)),
    "whole and stored": (lambda x: (x * 2, (x * 2).prod()), f4(3000)),
    "in passes": (reduce_in_passes, f4(5, 300)),
    "across, by rows": (lambda x, y: (x * y).T.prod(1), f4(1050, 40), f4(40)),
    "doubles": (lambda x: x.prod(1), np.zeros((5, 300))),
    "complex across": (lambda x: x.T.prod(1), np.zeros((90, 40), np.complex64)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("cpu_formulas")
def test_results_match_cpu_bitwise(name):
    f, *arrays = PROGRAMS[name]
    with np.errstate(all="ignore"):
        for spec, text in grid_kernels(f, *arrays):
            assert text.kernel is not None
            verify(text.kernel)
            assert "not_normal(" in text.source
            case = Case(spec, values=row_values)
            expected, rooms = case.run_on_cpu(build_generated(spec)), case.scratch
            actual = case.interpret(text)
            assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True))
            assert all(same_bits(x, rooms[k]).all() for k, x in case.scratch.items())


@pytest.mark.parametrize("axis", [None, 1, (1, 2)])
def test_product_matches_cpu_bitwise(axis, gpu):
    x = alternating_magnitudes(4 * 30 * 33, np.float32, np.random.default_rng(2)).reshape(4, 30, 33)
    expected = np.asarray(jnp.asarray(x).prod(axis))
    actual = np.asarray(jax.device_put(x, gpu).prod(axis))
    assert same_bits(actual, expected).all()
    there = jax.device_put(np.ascontiguousarray(x.transpose(2, 1, 0)), gpu)
    assert same_bits(np.asarray(there.transpose(2, 1, 0).prod(axis)), expected).all()


@pytest.mark.usefixtures("cpu_formulas")
def test_result_buffer_holds_the_reduced_values(monkeypatch):
    """If shared memory is too small for a row, a pass stores the values to reduce in the result's
    row.
    """
    monkeypatch.setattr(grid, "MAX_UNROLLED_COST", 0)
    monkeypatch.setattr(reduce_rows, "ROOM", 0)

    def f(x):
        e = jnp.fmod(x * 1.5, jnp.abs(x).max(1, keepdims=True) * 1.5 * 1.5)
        return e * e.prod(1, keepdims=True)

    ((spec, text),) = grid_kernels(f, f4(2, 1100))
    x, out = [next(a for a in spec.accesses if a.store == s and any(a.strides)) for s in (0, 1)]
    assert [v is x.value for v in elementwise_operands(spec)] == [True]
    case = Case(
        spec, values=lambda a, n, rng: finite_products(n, rng) if n > 1 else np.full(1, 1.5)
    )
    expected = case.run_on_cpu(build_generated(spec))[case.position[id(out.value)]]
    assert np.isfinite(np.log(expected)).all()
    case.position[id(out.value)] = case.position[id(x.value)]
    assert same_bits(case.interpret(text)[case.position[id(x.value)]], expected).all()


@pytest.mark.usefixtures("cpu_formulas")
def test_only_float_products_are_considered():
    for f, x in (
        (lambda x: (x.sum(1), x.max(1)), f4(9, 300)),
        (lambda x: x.prod(1), np.ones((9, 300), np.int32)),
    ):
        ((_, text),) = grid_kernels(f, x)
        assert "not_normal(" not in text.source
