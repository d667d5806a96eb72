"""Dtypes and weak flags of the results of functions with one or two operands, for a sample of
dtypes.

The functions are those with such signatures in `names.tsv`, in both precisions. JAX's results are
stored; `ACCNP_ORACLE=1` runs JAX again. Nothing is computed, because types are known when an
operation is recorded.
"""

from __future__ import annotations

import importlib
import itertools
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from api.oracle import stored_result
from api.test_names import NAMES, find_object

import accnp

SPACES = ("numpy", "lax", "nn", "scipy.special")
ONE = {"(x, /)", "(x)", "(val, /)", "(x, *, accuracy=None)", "(x, /, out=None)", "(p)"}
TWO = {"(x, y, /)", "(x1, x2, /)", "(x1, x2)", "(x, y)", "(a, b)", "(a, x)", "(p, q)"}
# What is no elementwise function, or gives no array.
OTHERS = {
    "copy", "iscomplexobj", "isrealobj", "iterable", "promote_types", "matvec", "vecmat", "vecdot",
    "integer_pow", "shape", "ndim", "size", "isscalar",
}  # fmt: skip
# What is computed where jax refuses: half precision, whole numbers, unsigned numbers.
PERMISSIVE = {"ndtr", "ndtri", "spence", "polygamma", "abs", "log1mexp", "ldexp", "igamma"}
# jax's weak flag of a complex number depends on the precision.
UNSETTLED = {"loggamma"}
DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
NUMBERS = (True, 1, 1.0, 1j)


def operand_count(name: str) -> int:
    kind, signature = NAMES[name]
    space, _, last = name.rpartition(".")
    if space not in SPACES or kind not in ("function", "ufunc") or last in OTHERS:
        return 0
    if kind == "ufunc":
        return 1 if last == "negative" else 2
    return 1 if signature in ONE else 2 if signature in TWO else 0


FUNCTIONS = [name for name in NAMES if operand_count(name) and find_object(name) is not None]


def draw_operands(name: str) -> list[tuple[Any, ...]]:
    """Return operands: names of dtypes, and Python numbers."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if operand_count(name) == 1:
        return [(d,) for d in rng.permutation(DTYPES)[:7].tolist()] + [(n,) for n in NUMBERS]
    pairs: list[tuple[Any, ...]] = [tuple(rng.choice(DTYPES, 2).tolist()) for _ in range(8)]
    for _ in range(3):
        dtype, number = str(rng.choice(DTYPES)), NUMBERS[rng.integers(4)]
        pairs += [(dtype, number), (number, dtype)]
    return [*pairs, (NUMBERS[rng.integers(4)], NUMBERS[rng.integers(4)])]


def make_operand(m: Any, what: Any) -> Any:
    if not isinstance(what, str):
        return what
    dtype = ml_dtypes.bfloat16 if what == "bfloat16" else what
    return m.numpy.asarray(np.array([1, 1], dtype))


def result_types(m: Any, name: str, operands: tuple[Any, ...]) -> Any:
    """Return shape, dtype and weak flag of each result, or "refused"."""
    space, _, last = name.rpartition(".")
    function = getattr(importlib.import_module(f"{m.__name__}.{space}"), last)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = [make_operand(m, v) for v in operands]
        try:
            out = m.eval_shape(lambda: function(*values))
        except (TypeError, ValueError, NotImplementedError, OverflowError):
            return "refused"
    return [
        [list(x.shape), x.dtype.name, bool(x.weak_type) if x.dtype != bool else None]
        for x in m.tree.leaves(out)
    ]


def jax_result_types(name: str, x64: bool) -> Any:
    def run() -> Any:
        jax = importlib.import_module("jax")
        with jax.enable_x64(x64):
            return [result_types(jax, name, operands) for operands in draw_operands(name)]

    return run


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_types(name: str, x64: bool) -> None:
    expected = stored_result(
        "result_types", f"{name} {'x64' if x64 else 'x32'}", jax_result_types(name, x64)
    )
    last = name.rpartition(".")[2]
    with accnp.enable_x64(x64):
        for operands, expected_types in zip(draw_operands(name), expected, strict=True):
            actual = result_types(accnp, name, operands)
            if expected_types == "refused" and last in PERMISSIVE:
                continue
            if last in UNSETTLED and expected_types != "refused":
                actual, expected_types = ([x[:2] for x in xs] for xs in (actual, expected_types))
            assert actual == expected_types, operands


@pytest.mark.parametrize("traced", [False, True])
def test_reshaped_numpy_arrays_stay_concrete(traced):
    """As in JAX: libraries read elements of such arrays while they trace."""
    a = np.arange(6, dtype=np.float64).reshape(2, 3)

    def check():
        for shape, order in (((3, 2), "C"), (-1, "C"), ((3, 2), "F"), ((2, 3), "C")):
            reshaped = accnp.numpy.reshape(a, shape, order)
            assert type(reshaped) is np.ndarray
            assert reshaped.dtype == np.float64
            np.testing.assert_array_equal(reshaped, a.reshape(shape, order=order))
        assert not np.shares_memory(accnp.numpy.reshape(a, 6, copy=True), a)
        assert type(accnp.numpy.reshape(np.float32(2), (1,))) is np.ndarray
        assert isinstance(accnp.numpy.reshape(2.0, (1,)), accnp.Array)
        with pytest.raises(ValueError, match="cannot reshape array of shape"):
            accnp.numpy.reshape(a, (4,))
        return 0

    (accnp.jit(check) if traced else check)()


BASES_AND_EXPONENTS: list[Callable[[Any], Any]] = [
    lambda m: True,
    lambda m: m.numpy.array(True),
    lambda m: 3,
    lambda m: m.numpy.asarray(3),
    lambda m: m.numpy.int32(3),
    lambda m: m.numpy.int8(3),
    lambda m: 2.0,
    lambda m: m.numpy.asarray(2.5),
    lambda m: m.numpy.float32(2.5),
    lambda m: m.numpy.bfloat16(2.5),
    lambda m: 2j,
    lambda m: m.numpy.arange(3),
]


@pytest.mark.parametrize("name", ["numpy.power", "numpy.float_power", "lax.pow"])
def test_types_of_powers(name: str) -> None:
    """Powers of integers by arrays have strong types, and so do powers by strongly typed
    integers.
    """

    def types(m: Any, base: Callable[[Any], Any], exponent: Callable[[Any], Any]) -> list[Any]:
        module, function = name.split(".")
        f = getattr(getattr(m, module), function)
        descriptions: list[Any] = []
        for call, args in (
            (lambda: f(base(m), exponent(m)), ()),
            (f, (base(m), exponent(m))),
            (lambda x: f(x, exponent(m)), (base(m),)),
            (lambda y: f(base(m), y), (exponent(m),)),
        ):
            try:
                (out,) = m.make_jaxpr(call)(*args).out_avals
            except TypeError:
                descriptions.append(TypeError)
            else:
                descriptions.append((out.shape, out.dtype, out.weak_type))
        return descriptions

    for base, exponent in itertools.product(BASES_AND_EXPONENTS, repeat=2):
        actual, expected = [types(m, base, exponent) for m in (accnp, jax)]
        assert actual == expected, (base(jax), exponent(jax))


def test_values_of_strong_powers() -> None:
    for m in (accnp, jax):
        x = m.numpy.asarray(3)
        for f in (lambda x: 2**x, lambda x: x**x, lambda x: True**x):
            power = m.jit(f)(x)
            assert not power.weak_type
            assert int(power) == f(3)
        assert (x**2).weak_type
