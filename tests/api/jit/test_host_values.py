"""Functions that return Python numbers and NumPy arrays unchanged, compared with JAX: the result is
the same object, or an array of the same dtype and value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

VALUES: dict[str, Any] = {
    "int": 3,
    "float": 2.5,
    "bool": True,
    "complex": 1j,
    "int64 array": np.arange(3),
    "float64 array": np.ones(3),
    "float32 array": np.ones(3, np.float32),
    "float64 scalar": np.float64(1.5),
    "int32 scalar": np.int32(3),
    "bool array": np.array([True, False, True]),
    "float64 rank 0": np.array(1.5),
}


def call_converted_closure(m: Any, x: Any) -> Any:
    """Call a function converted by `closure_convert` that returns its argument and a constant."""
    f, consts = m.closure_convert(lambda y: (y, x), 1.0)
    return f(x, *consts) if np.ndim(x) == 0 and isinstance(x, float) else f(1.0, *consts)


def call_custom_vjp(m: Any, x: Any) -> Any:
    """Call a function with a custom derivative that returns its argument."""
    f = m.custom_vjp(lambda x: (x, None))
    f.defvjp(lambda x: ((x, None), x), lambda x, ct: (ct[0],))
    return f(x)


def map_shared_argument(m: Any, x: Any) -> Any:
    """Call a mapped function that returns an argument shared by all examples."""
    f = m.vmap(lambda a, b: (a, b, x), in_axes=(0, None), out_axes=(0, None, None))
    return f(m.numpy.ones(3), x)


def apply_collective(m: Any, name: str, x: Any) -> Any:
    """Apply a collective to a constant."""
    reduce = getattr(m.lax, name)
    return m.vmap(lambda _: reduce(x, "i"), axis_name="i", out_axes=None)(m.numpy.ones(3))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "checkpoint": lambda m, x: m.checkpoint(lambda x: (x, x))(x),
    "checkpoint of a constant": lambda m, x: m.checkpoint(lambda y: (x, y + 1))(1.0),
    "custom_vjp": call_custom_vjp,
    "stop_gradient": lambda m, x: m.lax.stop_gradient(x),
    "vmap, shared": map_shared_argument,
    "fori_loop": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c, x),
    "fori_loop of no steps": lambda m, x: m.lax.fori_loop(3, 0, lambda i, c: c, (x, 1.0)),
    "fori_loop, dynamic": lambda m, x: m.lax.fori_loop(0, m.numpy.int32(3), lambda i, c: c, x),
    "while_loop": lambda m, x: m.lax.while_loop(lambda c: False, lambda c: c, x),
    "scan": lambda m, x: m.lax.scan(lambda c, y: (c, c), x, m.numpy.zeros(3)),
    "scan of no steps": lambda m, x: m.lax.scan(lambda c, y: (c, y), x, None, length=0),
    "associative_scan": lambda m, x: m.lax.associative_scan(m.numpy.add, np.ravel(x)[:1]),
    "associative_scan, reversed": lambda m, x: m.lax.associative_scan(
        m.numpy.add, np.ravel(x)[:1], reverse=True
    ),
    "associative_scan of nothing": lambda m, x: m.lax.associative_scan(
        m.numpy.add, np.ravel(x)[:0]
    ),
    "psum without axes": lambda m, x: m.lax.psum(x, ()),
    "pmean without axes": lambda m, x: m.lax.pmean(x, ()),
    "psum": lambda m, x: apply_collective(m, "psum", x),
    "pmean": lambda m, x: apply_collective(m, "pmean", x),
    "closure_convert": call_converted_closure,
    "custom_linear_solve": lambda m, x: m.lax.custom_linear_solve(
        lambda x: x, x, lambda _, b: (b, x), has_aux=True, symmetric=True
    ),
    "sequential_vmap": lambda m, x: m.custom_batching.sequential_vmap(lambda x: x)(x),
    "linear_transpose": lambda m, x: (
        m.linear_transpose(lambda x: x, x)(x) if np.asarray(x).dtype != bool else None
    ),
    "linear_transpose, one of two": lambda m, x: (
        m.linear_transpose(lambda x, y: x, x, x)(x) if np.asarray(x).dtype != bool else None
    ),
}


def describe_leaves(tree: Any) -> list[Any]:
    """Return class, dtype, shape and weak flag of each leaf."""
    descriptions = []
    for x in jax.tree.leaves(tree):
        array = isinstance(x, jax.Array | accnp.Array)
        of = "Array" if array else type(x).__name__.replace("TypedNdArray", "ndarray")
        descriptions.append((of, getattr(x, "dtype", None), np.shape(x), array and x.weak_type))
    return descriptions


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kinds_of_results(name: str) -> None:
    for label, x in VALUES.items():
        actual, expected = FUNCTIONS[name](accnp, x), FUNCTIONS[name](jax, x)
        assert describe_leaves(actual) == describe_leaves(expected), label
        for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
            if np.asarray(b).dtype != jax.dtypes.float0:
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b), label)


def test_identities_return_their_argument() -> None:
    for m in (jax, accnp):
        for x in (m.numpy.ones(3), np.ones(3), m.random.key(0)[None]):
            assert m.vmap(lambda x: x)(x) is x or isinstance(x, np.ndarray)
        x = m.numpy.ones(3)
        assert m.vmap(lambda x, y: y, in_axes=(0, None), out_axes=None)(x, x) is x
        assert m.vmap(lambda y: x, out_axes=None)(x) is x  # noqa: B023
        transposed = m.vmap(lambda x: x, in_axes=1, out_axes=0)(np.ones((2, 3)))
        assert type(transposed) is np.ndarray
        assert transposed.shape == (3, 2)


def test_arrays_while_tracing() -> None:
    """Operations on traced values are recorded, but loops pass NumPy arrays through."""
    for m in (jax, accnp):
        seen: list[Any] = []

        def f(x: Any) -> Any:
            seen.append(m.checkpoint(lambda x: x)(2.0))  # noqa: B023
            seen.append(m.lax.fori_loop(0, 3, lambda i, c: c, np.ones(2)))  # noqa: B023
            return x

        m.jit(f)(1.0)
        assert isinstance(seen[0], m.core.Tracer if m is jax else accnp.Array)
        assert type(seen[1]) is np.ndarray


def test_derivatives_of_solvers_that_return_their_argument() -> None:
    """The solution of a system has the implicit derivative even if it is the right-hand side
    itself.
    """
    for m in (jax, accnp):

        def f(a: Any) -> Any:
            solve = m.lax.custom_linear_solve  # noqa: B023
            return solve(lambda x: a * x, 2.0, lambda _, b: b, lambda _, b: b)

        assert float(m.jvp(f, (1.0,), (1.0,))[1]) == -2.0
        assert float(m.grad(f)(1.0)) == -2.0


def test_weak_types_of_sums_of_shared_values() -> None:
    for m in (jax, accnp):
        x = m.numpy.asarray(2.0)
        for name in ("psum", "pmean"):
            reduce = getattr(m.lax, name)
            reduced = m.vmap(lambda _: reduce(x, "i"), axis_name="i")(m.numpy.ones(3))  # noqa: B023
            assert reduced.weak_type


def test_dtypes_of_linear_solvers_may_differ() -> None:
    for m in (jax, accnp):
        solution = m.lax.custom_linear_solve(lambda x: 2 * x, np.arange(3), lambda _, b: b / 2)
        assert solution.dtype == np.float32
        np.testing.assert_array_equal(solution, [0, 0.5, 1])


def test_typed_numbers() -> None:
    """Numbers that are passed through keep their dtype, print as in JAX, and are Python numbers."""
    for x in (2, 2.5, 1j):
        actual, expected = accnp.lax.stop_gradient(x), jax.lax.stop_gradient(x)
        assert repr(actual) == repr(expected)
        assert actual == x
        assert (actual * accnp.numpy.ones(2, "int8")).dtype == (
            actual * jax.numpy.ones(2, "int8")
        ).dtype
        assert "2.5" in str(accnp.make_jaxpr(lambda y: y * 2.5)(1.0))
