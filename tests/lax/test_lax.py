"""Strict `lax` functions compared with JAX: operands must have equal dtypes and are not promoted.

Also covers functions that move, slice and reduce arrays.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from api.support import assert_agree, assert_same

import accnp
import accnp.numpy as jnp
from accnp import lax, nn

F = np.array([[3, -1, 2], [0.5, 5, -4]], np.float32)
I = F.astype(np.int32)  # noqa: E741
B = F > 0
UNARY = [
    "abs",
    "ceil",
    "cos",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "is_finite",
    "lgamma",
    "digamma",
    "log1p",
    "logistic",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "square",
    "tanh",
]
BINARY = [
    "add",
    "atan2",
    "div",
    "eq",
    "ge",
    "lt",
    "max",
    "min",
    "mul",
    "nextafter",
    "pow",
    "rem",
    "sub",
]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical"]


def _both(name: str) -> tuple[Any, Any]:
    return getattr(lax, name), getattr(jax.lax, name)


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str) -> None:
    assert_agree(*_both(name), np.abs(F) / 6 if name in ("erf_inv", "log1p", "rsqrt") else F)
    assert_agree(*_both(name), I)


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str) -> None:
    assert_agree(*_both(name), np.abs(F), F)
    assert_agree(*_both(name), np.abs(F), 2.0)
    assert_agree(*_both(name), F, I)
    assert_agree(*_both(name), F, 2)


@pytest.mark.parametrize("name", [*BITS, "population_count", "clz", "bitwise_not"])
def test_bits(name: str) -> None:
    count = 1 if name in ("population_count", "clz", "bitwise_not") else 2
    assert_agree(*_both(name), *[np.abs(I)] * count)


def test_dtypes_are_not_promoted() -> None:
    assert_same(lax.add(jnp.float32(1), 1.0), jax.lax.add(jax.numpy.float32(1), 1.0))
    with pytest.raises(TypeError) as caught:
        lax.add(1, 1.0)
    assert str(caught.value).startswith(
        "lax.add requires arguments to have the same dtypes, "
        "got int32, float32; convert with astype, or use the jnp function"
    )
    assert jnp.add(1, 1.0) == 2.0


def test_shapes_are_not_broadcast() -> None:
    with pytest.raises(
        TypeError, match=r"add got incompatible shapes for broadcasting: \(2,\), \(3,\)"
    ):
        lax.add(jnp.ones(2), jnp.ones(3))
    with pytest.raises(TypeError):
        lax.add(jnp.ones(2), jnp.ones((2, 2)))


@pytest.mark.parametrize("name", ["add", "mul", "sub", "div", "max", "pow", "atan2", "lt"])
def test_axes_of_length_one_stretch(name: str) -> None:
    column = np.array([[0.5], [1.5], [2.0]], np.float32)
    row = np.array([[1.0, 2.5, 0.7, 3.0]], np.float32)
    op, its = getattr(lax, name), getattr(jax.lax, name)
    np.testing.assert_allclose(op(column, row), its(column, row), rtol=1e-6)
    many = np.stack([column, column + 1])
    for axes, args in (((0, None), (many, row)), ((None, 0), (row, many)), ((0, 0), (many, many))):
        actual = accnp.jit(accnp.vmap(op, axes))(*args)
        np.testing.assert_allclose(actual, jax.vmap(its, axes)(*args), rtol=1e-6)
    if name == "lt":
        return

    def loss(lib: Any, op: Any) -> Any:
        return lib.grad(lambda a, b: (op(a, b) * 2.0).sum(), argnums=(0, 1))

    for actual, expected in zip(
        loss(accnp, op)(column, row), loss(jax, its)(column, row), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    _, tangent = accnp.jvp(op, (column, row), (column, row))
    np.testing.assert_allclose(
        tangent, jax.jvp(its, (column, row), (column, row))[1], rtol=1e-5, atol=1e-6
    )


CALLS: list[tuple[str, Any]] = [
    ("full", lambda n, x: n.full((2, 3), 1.5)),
    ("full dtype", lambda n, x: n.full((2,), 1, np.int8)),
    ("full_like", lambda n, x: n.full_like(x, 2)),
    ("iota", lambda n, x: n.iota(np.int32, 4)),
    ("broadcasted_iota", lambda n, x: n.broadcasted_iota(np.float32, (2, 3), 1)),
    ("broadcast", lambda n, x: n.broadcast(x, (2, 1))),
    ("broadcast_in_dim", lambda n, x: n.broadcast_in_dim(x, (2, 4, 3), (0, 2))),
    ("broadcast_in_dim bad", lambda n, x: n.broadcast_in_dim(x, (2, 4, 4), (0, 2))),
    ("reshape", lambda n, x: n.reshape(x, (3, 2))),
    ("reshape bad", lambda n, x: n.reshape(x, (4, 2))),
    ("reshape order", lambda n, x: n.reshape(x, (6,), (1, 0))),
    ("transpose", lambda n, x: n.transpose(x, (1, 0))),
    ("rev", lambda n, x: n.rev(x, (1,))),
    ("transpose bad", lambda n, x: n.transpose(x, (1, 1))),
    ("squeeze", lambda n, x: n.squeeze(n.reshape(x, (2, 1, 3)), (1,))),
    ("squeeze bad", lambda n, x: n.squeeze(x, (1,))),
    ("expand", lambda n, x: n.expand_dims(x, (0, 2))),
    ("collapse", lambda n, x: n.collapse(n.expand_dims(x, (0,)), 0, 2)),
    ("slice", lambda n, x: n.slice(x, (0, 1), (2, 3), (1, 2))),
    ("slice bad", lambda n, x: n.slice(x, (0, 1), (2, 5))),
    ("slice_in_dim", lambda n, x: n.slice_in_dim(x, 0, -1, 1, 1)),
    ("index_in_dim", lambda n, x: n.index_in_dim(x, -1, 1, False)),
    ("dynamic_slice", lambda n, x: n.dynamic_slice(x, (0, 2), (2, 2))),
    ("dynamic_slice negative", lambda n, x: n.dynamic_slice(x, (0, -2), (2, 1))),
    ("dynamic_index", lambda n, x: n.dynamic_index_in_dim(x, 1, 0, False)),
    ("dynamic_slice_in_dim", lambda n, x: n.dynamic_slice_in_dim(x, 1, 2, 1)),
    ("update", lambda n, x: n.dynamic_update_slice(x, x[:1, :2], (1, 1))),
    ("update_index", lambda n, x: n.dynamic_update_index_in_dim(x, x[0], 1, 0)),
    ("update_slice", lambda n, x: n.dynamic_update_slice_in_dim(x, x[:, :1], 2, 1)),
    ("concatenate", lambda n, x: n.concatenate([x, x], 1)),
    ("concatenate bad", lambda n, x: n.concatenate([x, x[:, :1]], 0)),
    ("pad", lambda n, x: n.pad(x, np.float32(7), ((1, 0, 1), (-1, 2, 0)))),
    ("pad bad", lambda n, x: n.pad(x, 7, ((1, 0, 1), (-1, 2, 0)))),
    ("select", lambda n, x: n.select(x > 0, x, -x)),
    ("select_n", lambda n, x: n.select_n(x > 0, x, -x)),
    ("clamp", lambda n, x: n.clamp(np.float32(-1), x, np.float32(2))),
    ("integer_pow", lambda n, x: n.integer_pow(x, 3)),
    ("round", lambda n, x: n.round(x / 2)),
    ("round even", lambda n, x: n.round(x / 2, n.RoundingMethod.TO_NEAREST_EVEN)),
    ("convert", lambda n, x: n.convert_element_type(x, np.int8)),
    ("convert weak", lambda n, x: n.convert_element_type(x, int)),
    ("bitcast", lambda n, x: n.bitcast_convert_type(x, np.int32)),
    ("bitcast narrow", lambda n, x: n.bitcast_convert_type(x, np.uint8)),
    (
        "bitcast wide",
        lambda n, x: n.bitcast_convert_type(n.bitcast_convert_type(x, np.int16), np.int32),
    ),
    ("reduce_sum", lambda n, x: n.reduce_sum(x, (1,))),
    ("reduce_max", lambda n, x: n.reduce_max(x, (0, 1))),
    ("reduce_and", lambda n, x: n.reduce_and(x > 0, (0,))),
    ("argmax", lambda n, x: n.argmax(x, 1, np.int32)),
    ("reduce bad", lambda n, x: n.reduce_sum(x, (2,))),
    ("reduce", lambda n, x: n.reduce(x, np.float32(1), n.add, (1,))),
    ("reduce max", lambda n, x: n.reduce(x, np.float32(1), n.max, (0,))),
    ("cumsum", lambda n, x: n.cumsum(x, 1, reverse=True)),
    ("cummax", lambda n, x: n.cummax(x)),
    ("cumprod", lambda n, x: n.cumprod(x, 1)),
    ("cummin", lambda n, x: n.cummin(x, 1)),
    ("cumlogsumexp", lambda n, x: n.cumlogsumexp(x, 1)),
    ("sort", lambda n, x: n.sort(x)),
    ("sort_key_val", lambda n, x: n.sort_key_val(x, n.iota(np.int32, 6).reshape(2, 3))),
    ("top_k", lambda n, x: n.top_k(x, 2)),
    ("dot", lambda n, x: n.dot(x, x.T)),
    ("dot_general", lambda n, x: n.dot_general(x, x, (((1,), (1,)), ((), ())))),
    ("dot_general batch", lambda n, x: n.dot_general(x, x, (((1,), (1,)), ((0,), (0,))))),
    ("stop_gradient", lambda n, x: n.stop_gradient(x)),
    ("complex", lambda n, x: n.complex(x, x)),
    ("conj", lambda n, x: n.conj(x)),
    ("split", lambda n, x: n.split(x, (1, 2), 1)),
    ("zeta", lambda n, x: n.zeta(x * x + 2, x * x + 1)),
    ("bessel", lambda n, x: n.bessel_i0e(x) + n.bessel_i1e(x)),
    ("polygamma", lambda n, x: n.polygamma(n.full_like(x, 1), x * x + 1)),
]


@pytest.mark.parametrize("call", [c for _, c in CALLS], ids=[n for n, _ in CALLS])
def test_calls(call: Any) -> None:
    assert_agree(lambda x: call(lax, x), lambda x: call(jax.lax, x), F)


ACTIVATIONS = [
    "relu",
    "gelu",
    "selu",
    "elu",
    "celu",
    "softplus",
    "sigmoid",
    "silu",
    "softmax",
    "log_softmax",
    "tanh",
    "relu6",
    "hard_tanh",
    "leaky_relu",
    "soft_sign",
    "log_sigmoid",
    "hard_sigmoid",
    "hard_silu",
    "squareplus",
    "mish",
    "standardize",
    "sparse_plus",
    "sparse_sigmoid",
    "log1mexp",
]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    x = np.array([[-3, -0.5, 0, 0.7], [1, 2, 7, np.nan]], np.float32)
    assert_agree(getattr(nn, name), getattr(jax.nn, name), np.abs(x) if name == "log1mexp" else x)


def test_glu_one_hot_logsumexp() -> None:
    assert_agree(nn.glu, jax.nn.glu, F[:, :2])
    assert_agree(nn.glu, jax.nn.glu, F)
    assert_agree(nn.one_hot, jax.nn.one_hot, np.array([0, 2, 5], np.int32), 3)
    assert_agree(nn.one_hot, jax.nn.one_hot, np.array([0, 2], np.int32), 3, axis=0, dtype=np.int8)
    assert_agree(nn.gelu, jax.nn.gelu, F, approximate=False)
    assert_agree(nn.softmax, jax.nn.softmax, F, axis=0, where=B)
    assert_agree(nn.logmeanexp, jax.nn.logmeanexp, F, axis=1)


def wrong_calls(m: Any, np_: Any) -> Any:
    """Return calls that JAX rejects."""
    lax, one, two = m.lax, np_.ones(2), np_.ones((2, 3))
    dims = lax.GatherDimensionNumbers((), (0,), (0,))
    return [
        lambda: lax.gather(one, np_.zeros((1, 1), int), dims, (2,)),
        lambda: lax.broadcasted_iota(int, (2, 3), -1),
        lambda: lax.full((2,), one),
        lambda: lax.bitcast_convert_type(one, bool),
        lambda: lax.collapse(two, 1, 0),
        lambda: lax.broadcast_in_dim(one, (2, 3), (0, 1)),
        lambda: lax.pad(one, one, [(1, 1, 0)]),
        lambda: lax.rev(one, (1,)),
        lambda: lax.rev(one, (-1,)),
        lambda: lax.rev(one, (0, 0)),
        lambda: lax.rev(one, 0),
        lambda: lax.concatenate([one, one], 1),
        lambda: lax.concatenate([one, one], -1),
        lambda: lax.concatenate([], 0),
        lambda: lax.squeeze(two[:1], 0),
        lambda: lax.reshape(two, (7,)),
        lambda: lax.broadcast(one, 2),
        lambda: lax.broadcast_in_dim(one, 2, (0,)),
        lambda: lax.broadcast_in_dim(one, (2,), 0),
        lambda: lax.slice(one, (1, 2), (3,)),
        lambda: lax.slice(one, 1, 2),
        lambda: lax.dynamic_slice(one, (1,), (2, 2)),
        lambda: lax.full((2,), None),
        lambda: lax.full_like(one, one),
        lambda: lax.full_like(one, None),
        lambda: lax.iota(None, 2),
        lambda: lax.broadcasted_iota(bool, (3,), 0),
        lambda: lax.split(two, 2),
        lambda: lax.map(abs, one, batch_size=2.0),
        lambda: lax.custom_linear_solve(lambda x: x[:1], one, lambda mv, b: b),
        lambda: lax.custom_linear_solve(lambda x: x, one, lambda mv, b: (b, 1)),
        lambda: lax.associative_scan(lambda a, b: (a[0],), (one, one)),
        lambda: m.nn.one_hot(np_.arange(2), -1),
        lambda: m.scipy.stats.mode(one, nan_policy="x"),
        lambda: m.scipy.stats.sem(one, nan_policy="x"),
    ]


def test_wrong_calls_raise_what_jax_raises() -> None:
    for ours, theirs in zip(wrong_calls(accnp, jnp), wrong_calls(jax, jax.numpy), strict=True):
        with pytest.raises((TypeError, ValueError)) as jax_error:
            theirs()
        with pytest.raises(jax_error.type):
            ours()
    assert_agree(accnp.scipy.stats.poisson.pmf, jax.scipy.stats.poisson.pmf, F, 2.0)
    assert lax.scan(lambda c, x: (c + 1, x), 0, length=3.0)[0] == 3  # type: ignore[arg-type]


def test_rare_operands() -> None:
    """Integers that are symmetrized, attention without heads or batch, and an axis scaled twice."""
    square = np.array([[4, 1], [2, 5]])
    assert_agree(lax.linalg.cholesky, jax.lax.linalg.cholesky, square)
    assert_agree(lax.linalg.eigh, jax.lax.linalg.eigh, square)
    for shape in ((4,), (3, 4), (2, 3, 4)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 8
        assert_agree(nn.dot_product_attention, jax.nn.dot_product_attention, x, x, x)
    x = np.arange(18, dtype=np.float32).reshape(3, 3, 2) / 8
    assert_agree(nn.dot_product_attention, jax.nn.dot_product_attention, x, x[0], x[1])
    twice = np.float32([2, 3]), np.float32([0.5, 0])
    for axes in ((0, 0), (1, 1), (0, -2)):
        ours, theirs = accnp.image.scale_and_translate, jax.image.scale_and_translate
        assert_agree(ours, theirs, F, (4, 6), axes, *twice, "linear")
    with pytest.raises(ValueError, match="multinomial"):
        accnp.random.multinomial(accnp.random.key(0), jnp.ones(2), jnp.ones(2))


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logsumexp_is_one_pass(name: str) -> None:
    ours, theirs = getattr(jnp, name).reduce, getattr(jax.numpy, name).reduce
    for x in (F, I, F.astype(jnp.bfloat16), F.astype(np.float16)):
        for options in ({"axis": 1}, {"axis": None}, {"axis": 0, "keepdims": True}):
            assert_agree(ours, theirs, x, **options)
    assert_agree(ours, theirs, F, initial=3.0)
    assert_agree(ours, theirs, F, where=B, initial=-np.inf)
    many = jnp.ones(100, jnp.bfloat16)
    assert float(ours(many)) == pytest.approx(1 + np.log2(100) * (np.log(2), 1)["2" in name], 0.01)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [-1, 2])
def test_searches_along_nonnegative_axes(name, axis):
    with pytest.raises(ValueError, match=f"lax.{name}: axis {axis} is out of bounds"):
        getattr(lax, name)(jnp.ones((2, 3)), axis, np.int32)


def test_stop_gradient_keeps_values_of_the_host():
    """As in JAX, numbers outside of traces stay numbers and keep their types."""
    host_values = {
        "a": np.arange(3),
        "b": 2.0,
        "c": np.float32(1),
        "d": True,
        "e": 1j,
        "f": accnp.ones(2),
    }
    stopped = accnp.lax.stop_gradient(host_values)
    kinds = [np.ndarray, float, np.ndarray, bool, complex, accnp.Array]
    assert [isinstance(x, k) for x, k in zip(stopped.values(), kinds, strict=True)] == [True] * 6
    assert stopped["a"].dtype == np.int32
    assert (stopped["b"].dtype, stopped["b"].weak_type) == (np.float32, True)
    zeros = np.zeros(2, accnp.dtypes.float0)
    assert accnp.lax.stop_gradient(zeros) is zeros
    assert isinstance(accnp.lax.shape_as_value((2, 3)), np.ndarray)
    assert accnp.grad(lambda x: x * accnp.lax.stop_gradient(2.0))(1.0) == 2
    with pytest.raises(accnp.errors.ConcretizationTypeError):
        accnp.jit(lambda: float(accnp.lax.stop_gradient(3.0)))()


@pytest.mark.parametrize("count", [3, 9, 400])
def test_select_n_of_many_cases(count: int):
    which = (np.arange(1000) % (count + 4) - 2).astype(np.int32)  # beyond both ends, too
    cases = np.arange(count * 1000, dtype=np.float32).reshape(count, 1000)
    actual = lax.select_n(jnp.asarray(which), *map(jnp.asarray, cases))
    np.testing.assert_array_equal(
        actual, np.take_along_axis(cases, which.clip(0, count - 1)[None], 0)[0]
    )
