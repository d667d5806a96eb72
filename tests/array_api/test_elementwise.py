"""Elementwise functions, operators, types and creation functions, compared with
`array_api_strict`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from array_api.drawing import KINDS, agree, arrays, draws, several
from hypothesis import strategies as st

import accnp
import accnp.numpy as jnp

UNARY = {
    "numeric": "abs conj positive negative sign square real round",
    "inexact": "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 "
    "reciprocal sin sinh sqrt tan tanh",
    "real": "ceil floor trunc",
    "bits": "bitwise_invert",
    "bool": "logical_not",
    "any": "isfinite isinf isnan",
    "float": "signbit",
    "complex": "imag",
}
BINARY = {
    "numeric": "add subtract multiply pow",
    "inexact": "divide",
    "float": "atan2 copysign hypot logaddexp nextafter",
    "bits": "bitwise_and bitwise_or bitwise_xor",
    "integer": "bitwise_left_shift bitwise_right_shift",
    "any": "equal not_equal",
    "real": "greater greater_equal less less_equal maximum minimum remainder floor_divide",
    "bool": "logical_and logical_or logical_xor",
}
OPERATORS = {
    "numeric": "add sub mul pow",
    "inexact": "truediv",
    "real": "floordiv mod lt le gt ge",
    "any": "eq ne",
    "bits": "and_ or_ xor",
    "integer": "lshift rshift",
}


def table(names: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, kind) for kind, text in names.items() for name in text.split()]


def fit(name: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return operands for which the standard specifies the result; None if there are none."""
    kind = np.result_type(x, y).kind
    if name in ("pow", "bitwise_left_shift", "bitwise_right_shift", "lshift", "rshift"):
        if kind == "c":
            return None
        return (x, abs(y)) if kind in "iu" else (x, y)
    if kind in "iu" and name in ("remainder", "floor_divide", "mod", "floordiv"):
        return x, np.where(y == 0, np.ones_like(y), y)
    return x, y


@pytest.mark.parametrize(("name", "kind"), table(UNARY))
def test_unary(name: str, kind: str) -> None:
    draws(arrays(kind))(lambda x: agree(name, x))()


@pytest.mark.parametrize(("name", "kind"), table(BINARY))
def test_binary(name: str, kind: str) -> None:
    @draws(several(2, kind))
    def go(pair: Any) -> None:
        fitting = fit(name, *pair)
        if fitting is not None:
            agree(name, *fitting)

    go()


SCALARS = {"b": bool, "i": int, "u": abs, "f": float, "c": complex}


@pytest.mark.parametrize(("name", "kind"), table(BINARY))
def test_python_numbers_beside_arrays(name: str, kind: str) -> None:
    @draws(st.tuples(arrays(kind), st.sampled_from([1, 2, -3])))
    def go(drawn: Any) -> None:
        x, number = drawn
        value = SCALARS[x.dtype.kind](number)
        fitting = fit(name, x, np.asarray(value, x.dtype))
        if fitting is not None:
            agree(name, fitting[0], np.asarray(fitting[1]).item())
        fitting = fit(name, np.asarray(value, x.dtype), x)
        if fitting is not None:
            agree(name, value, fitting[1])

    go()


@pytest.mark.parametrize(("name", "kind"), table(OPERATORS))
def test_operators(name: str, kind: str) -> None:
    @draws(several(2, kind))
    def go(pair: Any) -> None:
        fitting = fit(name, *pair)
        if fitting is None:
            return
        x, y = fitting
        agree(lambda xp, a, b: getattr(operator, name)(a, b), x, y)
        number = SCALARS[x.dtype.kind](1)
        agree(lambda xp, a: getattr(operator, name)(a, number), x)
        agree(lambda xp, a: getattr(operator, name)(number, a), y)
        in_place = getattr(operator, f"i{name.strip('_')}", None)
        fits = x.shape == np.broadcast_shapes(x.shape, y.shape) and x.dtype == y.dtype
        if in_place is not None and fits:
            agree(lambda xp, a, b: in_place(a, b), x, y)

    go()


@pytest.mark.parametrize(("name", "kind"), [("neg", "numeric"), ("pos", "numeric"),
                                            ("abs", "numeric"), ("invert", "bits")])  # fmt: skip
def test_unary_operators(name: str, kind: str) -> None:
    draws(arrays(kind))(lambda x: agree(lambda xp, a: getattr(operator, name)(a), x))()


@pytest.mark.parametrize("convert", [bool, int, float, complex, operator.index])
def test_conversions_to_python(convert: Any) -> None:
    kind = {int: "real", float: "real", complex: "numeric", operator.index: "integer"}
    draws(arrays(kind.get(convert, "any"), ()))(lambda x: agree(lambda xp, a: convert(a), x))()


@draws(several(3, "any", same_dtype=True))
def test_where(drawn: Any) -> None:
    c, x, y = drawn
    c = c.astype(bool)
    agree("where", c, x, y)
    agree("where", c, x, x.dtype.type(1).item())
    agree("where", c, x.dtype.type(0).item(), y)


@draws(several(3, "real", same_dtype=True))
def test_clip(drawn: Any) -> None:
    x, low, high = drawn
    if np.broadcast_shapes(x.shape, low.shape, high.shape) == x.shape:
        agree("clip", x, np.minimum(low, high), np.maximum(low, high))
    agree("clip", x, SCALARS[x.dtype.kind](1), SCALARS[x.dtype.kind](3))
    agree("clip", x)
    agree("clip", x, max=np.ones((), x.dtype))


KIND_NAMES = (
    "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", ("bool", "integral"),
)  # fmt: skip


@draws(several(2, "any"), 30)
def test_types(drawn: Any) -> None:
    x, y = drawn
    agree(lambda xp, a, b: xp.zeros(1, dtype=xp.result_type(a, b)), x, y)
    agree(lambda xp, a, b: xp.zeros(1, dtype=xp.result_type(a, b)), x, y.dtype)
    for kind in KIND_NAMES:
        agree(lambda xp, a, k=kind: xp.isdtype(a, k), x.dtype)
    agree(lambda xp, a, b: xp.isdtype(a, b), x.dtype, y.dtype)
    agree(lambda xp, a, b: xp.isdtype(a, (b, "bool")), x.dtype, y.dtype)
    if "c" not in (x.dtype.kind, y.dtype.kind) or x.dtype == y.dtype:
        agree("can_cast", x.dtype, y.dtype)
        agree("can_cast", x, y.dtype)
    # The conversion of negative numbers to unsigned integers is not defined.
    representable = y.dtype.kind != "u" or x.dtype.kind in "bu"
    if representable and (x.dtype.kind != "c" or y.dtype.kind == "c"):
        agree("astype", x, y.dtype)
        agree("astype", x, y.dtype, copy=False)


@pytest.mark.parametrize("name", KINDS["inexact"] + KINDS["integer"])
def test_limits(name: str) -> None:
    dtype = np.dtype(name)
    whole = dtype.kind in "iu"
    fields = ("bits", "max", "min") + (() if whole else ("eps", "smallest_normal"))
    function = "iinfo" if whole else "finfo"
    for dtype_or_array in (dtype, np.ones(2, dtype)):
        draws(st.just(dtype_or_array), 1)(
            lambda g: agree(lambda xp, a: [getattr(getattr(xp, function)(a), f) for f in fields], g)
        )()
        draws(st.just(dtype_or_array), 1)(
            lambda g: agree(lambda xp, a: xp.zeros(1, dtype=getattr(xp, function)(a).dtype), g)
        )()


DTYPES = st.sampled_from([None, *(np.dtype(d) for d in KINDS["any"])])
SIZES = st.integers(0, 4)


@draws(st.tuples(arrays("any"), DTYPES, SIZES, SIZES, st.integers(-2, 3)), 25)
def test_creation(drawn: Any) -> None:
    x, dtype, n, m, step = drawn
    kw: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    for name in ("zeros", "ones"):
        agree(name, x.shape, **kw)
        agree(f"{name}_like", x, **kw)
        agree(name, n, **kw)
    agree(lambda xp, s, **k: xp.zeros_like(xp.empty(s, **k)), x.shape, **kw)
    agree(lambda xp, a, **k: xp.zeros_like(xp.empty_like(a, **k)), x, **kw)
    agree("eye", n, m, k=step, **kw)
    agree("eye", n, **kw)
    target = x.dtype if dtype is None else dtype
    value = SCALARS[target.kind](1)
    agree("full", x.shape, value, **kw)
    agree("full_like", x, value, **kw)
    if target.kind in "if":
        agree("arange", n, **kw)
        agree("arange", -n, m, step or 1, **kw)
        if dtype is None or target.kind == "f":
            agree("arange", -n / 2, m + 0.3, 0.7, **kw)
    if dtype is None or target.kind in "fc":
        agree("linspace", -float(n), float(m), n + 2, **kw)
        agree("linspace", -float(n), float(m), n, endpoint=False, **kw)
        agree("linspace", 1, 4, 1, **kw)


@pytest.mark.parametrize("value", [1, 1.5, True, 2j, [1, 2], [[1.0, 2]], [True, False], [1j], []])
def test_asarray(value: Any) -> None:
    draws(st.just(value), 1)(lambda v: agree("asarray", v))()


BESIDE = [
    lambda a, n: a + n, lambda a, n: n - a, lambda a, n: a // n, lambda a, n: a == n,
    lambda a, n: n > a, lambda a, n: a & n, jnp.maximum, jnp.searchsorted, jnp.isin, jnp.full_like,
    lambda a, n: jnp.clip(a, max=n), lambda a, n: jnp.full(2, n, dtype=a.dtype),
]  # fmt: skip


@pytest.mark.parametrize("call", BESIDE)
def test_integers_that_only_the_array_holds(call: Any) -> None:
    """A Python number takes the dtype of the array if that dtype can represent it."""
    with accnp.enable_x64():
        x = jnp.asarray(np.array([1, 2**63, 2**64 - 1], np.uint64))
        actual = np.asarray(call(x, 2**63 + 1))
        expected = np.asarray(call(x, jnp.asarray(np.uint64(2**63 + 1))))
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)
        for beyond in (2**64, -(2**63) - 1):
            with pytest.raises(OverflowError, match="too large"):
                call(x, beyond)


def test_large_integers_beside_floats() -> None:
    for dtype in (jnp.float32, jnp.bfloat16):
        result = jnp.ones(2, dtype) + 2**70
        assert result.dtype == dtype
        assert result.tolist() == [2.0**70] * 2
    with pytest.raises(OverflowError, match="too large"):
        jnp.ones(2, jnp.int32) + 2**70
