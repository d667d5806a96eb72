"""`accnp.dtypes`, compared with JAX: promotion of all pairs, canonical dtypes, and type
predicates.
"""

import importlib
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import accnp
from accnp import dtypes
from accnp.errors import TypePromotionError

# `accnp.config` is the object with the options, so the module is imported by name.
config = importlib.import_module("accnp.config")

ALL = [name for name in dtypes.DTYPES if hasattr(jnp, name)]
MAIN = [
    name for name in ALL if name[0] not in "bf" or name in ("bool", "bfloat16", "float16")
] + ["float32", "float64", "float8_e4m3fn", "float8_e5m2"]  # fmt: skip
WEAK = ["int8", "int32", "int64", "uint8", "uint64", "bfloat16", "float16", "float32", "float64"]
WEAK += ["complex64", "complex128"]
SUB_BYTE_INTS = [name for name in ALL if name.lstrip("u") in ("int1", "int2", "int4")]
ABSTRACT = [
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
    np.floating, np.complexfloating,
]  # fmt: skip


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with config.enable_x64(request.param), jax.enable_x64(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        # the oracle's remark on 64-bit types
        warnings.filterwarnings("ignore", message="Explicitly requested dtype")
        yield


class WeakValue:
    """The attributes of a weakly typed array that JAX's promotion rule uses."""

    def __init__(self, name):
        self.dtype, self.weak_type, self.shape = dtypes.DTYPES[name], True, ()
        self.aval = jax.core.ShapedArray((), self.dtype, weak_type=True)


def oracle(types):
    args = [WeakValue(name) if weak else getattr(jnp, name) for name, weak in types]
    try:
        return jax.dtypes.result_type(*args, return_weak_type_flag=True)
    except ValueError:
        return "refused"


def ours(types):
    try:
        return dtypes.promote(tuple((dtypes.DTYPES[name], weak) for name, weak in types))
    except TypePromotionError:
        return "refused"


def check_promotion(cases):
    wrong = [(case, ours(case), oracle(case)) for case in cases if ours(case) != oracle(case)]
    assert wrong == []


@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promotion_of_all_pairs(x64, mode):
    operands = [(name, False) for name in ALL] + [(name, True) for name in WEAK]
    with config.numpy_dtype_promotion(mode), jax.numpy_dtype_promotion(mode):
        check_promotion([(a,) for a in operands])
        check_promotion(list(itertools.product(operands, operands)))


def test_promotion_of_triples(x64):
    operands = [
        ("bool", False), ("int8", False), ("uint8", False), ("uint32", False), ("int64", False),
        ("bfloat16", False), ("float16", False), ("float32", False), ("complex64", False),
        ("float8_e5m2", False), ("int4", False), ("int32", True), ("float32", True),
        ("complex64", True),
    ]  # fmt: skip
    check_promotion(list(itertools.combinations_with_replacement(operands, 3)))


def test_promotion_does_not_depend_on_order():
    operands = [
        (dtypes.DTYPES[n], w) for n, w in [("int8", False), ("float32", True), ("uint8", False)]
    ]
    results = {dtypes.promote(order) for order in itertools.permutations(operands)}
    assert len(results) == 1


@pytest.mark.parametrize(
    "args",
    [
        (1,), (1.0,), (True,), (1j,), (int,), (float,), (complex,), (bool,), (None,), ("int64",),
        (np.float64(3),), (np.int8(1), 2.0), (np.int8(1), 2), (True, 1), (1, 1.0), (np.zeros(2), 1),
        (np.zeros(2, np.int64), np.uint8(1)), (jnp.float32, 1j), ("bfloat16", "float16"),
        (int, 1.5),
        (np.bool_(True), 2.0), (2**40,),
    ],
)  # fmt: skip
def test_result_type(x64, args):
    expected = jax.dtypes.result_type(*args, return_weak_type_flag=True)
    assert dtypes.result_type(*args, return_weak_type_flag=True) == expected
    assert dtypes.result_type(*args) == expected[0]


def test_result_type_reads_the_weak_flag_of_arrays(x64):
    for array in (jnp.asarray(1), jnp.asarray(1, jnp.int32), jnp.asarray(1.5) * 2):
        expected = jax.dtypes.result_type(array, np.int8(1), return_weak_type_flag=True)
        assert dtypes.result_type(array, np.int8(1), return_weak_type_flag=True) == expected


@pytest.mark.parametrize("bad", ["O", "U3", object, str, "M8[ns]", "longdouble"])
def test_result_type_refuses_unsupported_types(bad):
    with pytest.raises(TypeError, match="can only have numeric dtypes"):
        dtypes.result_type(bad)


def test_result_type_needs_an_argument():
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()


def test_promotion_errors_advise():
    with pytest.raises(TypePromotionError, match=r"int4.*astype\('int32'\)"):
        dtypes.promote_types("int4", "float32")
    with pytest.raises(TypePromotionError, match=r"float8_e5m2.*astype\('float32'\)"):
        dtypes.promote_types("float8_e5m2", "float16")
    with (
        config.numpy_dtype_promotion("strict"),
        pytest.raises(TypePromotionError, match=r"'Python float', 'int32'.*strict"),
    ):
        dtypes.result_type(np.int32(1), 1.0)


def test_promote_types(x64):
    def answer(function, *args):
        try:
            return function(*args)
        except ValueError:
            return "refused"

    wrong = [
        (a, b)
        for a, b in itertools.product([*ALL, int, float, complex, bool], repeat=2)
        if answer(dtypes.promote_types, a, b) != answer(jnp.promote_types, a, b)
    ]
    assert wrong == []


def test_value_type(x64):
    for value in (1, 1.0, True, 1j, np.float64(1), np.int64(1), np.zeros(3, np.uint64), np.True_):
        expected = jax.dtypes.result_type(value, return_weak_type_flag=True)
        assert dtypes.value_type(value) == expected
    with pytest.raises(TypeError, match="'a'"):
        dtypes.value_type("a")


def test_scalar_type_of():
    for value in (
        1,
        1.5,
        True,
        2j,
        np.int8(1),
        np.zeros(2, np.complex64),
        jnp.zeros(2, "bfloat16"),
    ):
        assert dtypes.scalar_type_of(value) is jax.dtypes.scalar_type_of(value)


@pytest.mark.parametrize("name", ALL)
def test_canonicalize_dtype(x64, name):
    assert dtypes.canonicalize_dtype(name) == jax.dtypes.canonicalize_dtype(getattr(jnp, name))


def test_requested_dtype_warns_only_for_explicit_64_bits():
    with pytest.warns(UserWarning, match="dtype float64 requested in zeros"):
        assert dtypes.requested_dtype("float64", "zeros") == np.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.requested_dtype(float, "zeros") == np.float32
        assert dtypes.requested_dtype(int, "zeros") == np.int32
        with config.enable_x64():
            assert dtypes.requested_dtype("float64", "zeros") == np.float64
    with pytest.raises(TypeError, match="zeros: arrays can only have numeric"):
        dtypes.requested_dtype(object, "zeros")


def test_short_names():
    program = jax.make_jaxpr(lambda *xs: xs)
    with jax.enable_x64(True):
        for name in ALL:
            text = str(program(jax.ShapeDtypeStruct((2,), dtypes.DTYPES[name])))
            assert f"a:{dtypes.short_name(name)}[2]" in text
    assert dtypes.short_name(dtypes.key_dtype()) == "key<fry>"
    assert dtypes.short_name(dtypes.float0) == "float0"
    assert str(jax.random.key(0).dtype) == str(dtypes.key_dtype())


def test_issubdtype():
    classes = [*ABSTRACT, np.float32, np.int8, np.bool_, float, int, "bfloat16", "float16", "int4"]
    wrong = [
        (a, b)
        for a in [*(dtypes.DTYPES[n] for n in ALL), int, float, bool, "int8", *ABSTRACT]
        for b in classes
        if dtypes.issubdtype(a, b) != jnp.issubdtype(a, b)
    ]
    assert wrong == []


def test_issubdtype_of_keys():
    key = dtypes.key_dtype()
    assert dtypes.issubdtype(key, dtypes.prng_key)
    assert dtypes.issubdtype(key, dtypes.extended)
    assert dtypes.issubdtype(key, np.generic)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert not dtypes.issubdtype(key, np.number)
    assert not dtypes.issubdtype(np.float32, dtypes.extended)
    assert dtypes.result_type(key, key) is key
    with pytest.raises(TypePromotionError, match="key<fry>"):
        dtypes.result_type(key, np.float32)


def test_isdtype():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating"]
    kinds += [
        "complex floating",
        "numeric",
        ("bool", "real floating"),
        np.float32,
        ("int8", np.int16),
    ]
    for name, kind in itertools.product(ALL, kinds):
        assert dtypes.isdtype(name, kind) == jnp.isdtype(name, kind), (name, kind)
    with pytest.raises(ValueError, match="nokind"):
        dtypes.isdtype("int8", "nokind")
    with pytest.raises(TypeError, match="got 3"):
        dtypes.isdtype("int8", 3)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_can_cast(casting):
    for a, b in itertools.product(MAIN, repeat=2):
        expected = jnp.can_cast(getattr(jnp, a), getattr(jnp, b), casting)
        assert dtypes.can_cast(a, b, casting) == expected, (a, b)
    with pytest.raises(TypeError, match="can_cast"):
        dtypes.can_cast(1.0, "float32", casting)


def test_limits():
    for name in ALL:
        if dtypes.issubdtype(name, np.inexact):
            first, second = dtypes.finfo(name), jnp.finfo(getattr(jnp, name))
            assert (first.max, first.eps, first.bits) == (second.max, second.eps, second.bits)
        elif name != "bool":
            first, second = dtypes.iinfo(name), jnp.iinfo(getattr(jnp, name))
            assert (first.min, first.max, first.bits) == (second.min, second.max, second.bits)
    for name in ("float16", "bfloat16", "float32", "complex64", "float64"):
        limits, real = dtypes.finfo(name), dtypes.finfo(name).dtype
        for field in ("eps", "max", "min", "smallest_normal", "tiny", "epsneg", "resolution"):
            assert type(getattr(limits, field)) is float
        assert np.asarray(limits.max, real) == limits.max
    assert dtypes.iinfo(3).dtype == np.int64
    with pytest.raises(ValueError, match=r"inexact|finfo"):  # text of NumPy to 2.4, of later ones
        dtypes.finfo("int32")
    with pytest.raises(ValueError, match="Invalid integer"):
        dtypes.iinfo("float32")


def test_itemsize_bits():
    for name in ALL:
        assert dtypes.itemsize_bits(name) == jax.dtypes.itemsize_bits(getattr(jnp, name)), name


def test_to_inexact(x64):
    for name in ALL:
        if name in SUB_BYTE_INTS:  # jax has no square root of these; ours is float32
            assert dtypes.to_inexact(dtypes.DTYPES[name]) == np.float32
            continue
        canonical = dtypes.canonicalize_dtype(name)
        assert (
            dtypes.to_inexact(canonical)
            == jax.eval_shape(jnp.sqrt, jax.ShapeDtypeStruct((), canonical)).dtype
        )


def test_issubdtype_takes_arrays_for_their_dtypes():
    x = accnp.ones(2)
    assert dtypes.issubdtype(x, np.floating)
    assert not dtypes.issubdtype(x, np.integer)
    assert dtypes.issubdtype(x.astype("int4"), np.signedinteger)
    assert not dtypes.issubdtype(np.floating, x)


def test_64_bit_arrays_after_disabling_x64():
    anp = accnp.numpy
    with config.enable_x64(True):
        x, n = anp.arange(6.0).reshape(2, 3), anp.arange(3)
        # What was recorded while the types were on is no memory for the time after it.
        wide = [v for _ in range(2) for v in (x + 1, 1 - x, x * anp.ones(3), anp.sum(x), n / n)]
        assert {str(v.dtype) for v in wide} == {"float64"}
        assert str((n + 1).dtype) == "int64"
    results = [
        x.T,
        x[0],
        x.at[0].add(1.5),
        anp.sort(x),
        anp.concatenate([x, x]),
        x * x,
        -x,
        x @ x.T,
    ]
    results += [
        accnp.jit(lambda v: v * v)(x),
        accnp.grad(lambda v: (v * v).sum())(x),
        anp.asarray(x),
    ]
    results += [anp.sin(x), x / x, n / n, anp.exp(n), anp.arctan2(x, x)]
    assert {str(v.dtype) for v in results} == {"float64"}
    narrowed = [x * anp.ones(3), anp.sum(x), x.mean(), anp.cumsum(x), x + n, x + 1, 1 - x]
    narrowed += [x.astype(float), anp.median(x), anp.linalg.norm(x), anp.where(x > 1, x, 0)]
    narrowed += [accnp.jit(anp.sum)(x), accnp.nn.softmax(x), accnp.nn.log_softmax(n)]
    assert {str(v.dtype) for v in narrowed} == {"float32"}
    assert {str(v.dtype) for v in (n.sum(), n + 1, n.astype(int))} == {"int32"}


def test_the_type_of_bfloat16_has_instances():
    """Code that loads values uses `isinstance` with the scalar type."""
    assert dtypes.bfloat16 is jax.dtypes.bfloat16
    assert isinstance(dtypes.bfloat16(1), dtypes.bfloat16)
    assert accnp.numpy.ones(2, dtypes.bfloat16).dtype == dtypes.bfloat16


@pytest.mark.parametrize("code", ["f4", "i2", "c8"])
def test_swapped_byte_order_keeps_numpy_dtypes(code):
    """A copy of a dtype equals the built-in dtype but is not identical to it, and arrays that were
    created later used it.
    """
    x = accnp.numpy.asarray(np.arange(3, dtype=f">{code}"))
    for dtype in (x.dtype, accnp.numpy.zeros(2, f">{code}").dtype, np.asarray(x).dtype):
        assert (dtype, dtype.isbuiltin) == (np.dtype(code), 1)
