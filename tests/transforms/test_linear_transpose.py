"""Transposes of linear functions of integers, which have no tangents."""

import jax
import jax.numpy
import numpy as np
import pytest

import accnp
import accnp.numpy

ROW = np.arange(3, dtype=np.int32)
FUNCTIONS = {
    "scaled": (lambda m: lambda x: 2 * x, (1,), 3),
    "sum": (lambda m: lambda x: (2 * x)[::-1].sum() + x[0], (ROW,), np.int32(5)),
    "two": (
        lambda m: lambda x, y: (x - 3 * y, y.reshape(3, 1)),
        (ROW, ROW),
        (ROW, ROW.reshape(3, 1)),
    ),
    "joined": (lambda m: lambda x: m.numpy.concatenate([x, x]) * 2, (ROW[:2],), np.arange(4)),
    "chosen": (lambda m: lambda x: m.numpy.where(ROW > 1, x, 0), (ROW,), ROW + 4),
    "written": (lambda m: lambda x: x.at[0].add(x[1]), (ROW,), ROW + 5),
    "jitted": (lambda m: lambda x: m.jit(lambda y: -y)(x) * 4, (ROW,), ROW),
    "scanned": (
        lambda m: lambda x: m.lax.scan(lambda c, _: (c * 2, None), x, None, length=3)[0],
        (3,),
        2,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers(name):
    make, primals, ct = FUNCTIONS[name]
    actual, expected = [], []
    for m, out in ((accnp, actual), (jax, expected)):
        arguments = jax.tree.map(m.numpy.asarray, primals)
        cts = jax.tree.map(m.numpy.asarray, ct)
        out += m.linear_transpose(make(m), *arguments)(cts)
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_a_weak_integer_has_a_weak_cotangent():
    (cotangent,) = accnp.linear_transpose(lambda x: 2 * x, 1)(3)
    assert (int(cotangent), cotangent.weak_type) == (6, True)


def test_products():
    """JAX only has float0 cotangents here."""
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    (cotangent,) = accnp.linear_transpose(lambda x: accnp.lax.dot(a, x), ROW)(
        np.array([1, 2], np.int32)
    )
    np.testing.assert_array_equal(np.asarray(cotangent), a.T @ [1, 2])


@pytest.mark.parametrize(
    ("f", "x", "ct"),
    [(lambda x: x * 1.5, 1, 2.0), (lambda x: (x * 3).astype(np.int32), 1.0, 2)],
)
def test_integers_and_floating_numbers_are_not_mixed(f, x, ct):
    with pytest.raises(TypeError, match=r"only supports .* and integer -> integer functions"):
        accnp.linear_transpose(f, x)(ct)


@pytest.mark.parametrize(
    "f", [lambda x: x * x, lambda x: accnp.lax.fori_loop(0, 3, lambda i, c: c * 2, x)]
)
def test_nonlinear_functions_are_refused(f):
    with pytest.raises(NotImplementedError, match="linear"):
        accnp.linear_transpose(f, 3)(2)


def test_a_transpose_can_be_returned_from_jit():
    make = accnp.jit(lambda f, x: accnp.linear_transpose(f, x), static_argnums=0)
    (cotangent,) = make(lambda x: 2.0 * x, 1.0)(3.0)
    assert float(cotangent) == 6.0


@pytest.mark.parametrize("values", [([True],), ([True], [1])])
@pytest.mark.parametrize("np_", [jax, accnp])
def test_booleans_are_refused(np_, values):
    x = [np_.numpy.array(v) for v in values]
    with pytest.raises(TypeError, match="linear_transpose only supports"):
        np_.linear_transpose(lambda x: x, x)(x)


def test_weak_types_follow_the_cotangent() -> None:
    """As in JAX, a strong cotangent gives a strong result even if the primal is weak."""
    cases = [
        (1, accnp.numpy.int32(3), False),
        (1, 3, True),
        (1.0, accnp.numpy.float32(3), False),
    ]
    for primal, ct, weak in cases:
        (back,) = accnp.linear_transpose(lambda x: x * 3, primal)(ct)
        assert back == 9
        assert back.weak_type is weak
