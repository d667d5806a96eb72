"""float16 and bfloat16 in kernels: two bytes in memory, float32 in registers, rounded after each
operation."""

import jax
import jax.numpy as jn
import numpy as np
import pytest
from api.oracle import jax_result
from cuda.support import points, same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from primitives.cases import CASES

import accnp as jnp
from accnp import engine
from accnp.array_type import from_numpy
from accnp.caches import BoundedCache
from accnp.compiler.kernel_cache import get_kernel
from accnp.compiler.llvm import lower
from accnp.compiler.llvm.scalars import cold
from accnp.ir.kernel import HALVES, code_dtype
from accnp.ir.node import items, record
from accnp.ir.op import OPS

CODES = sorted(HALVES)
EVERY = {code: np.arange(65536, dtype="u2").view(code_dtype(code)) for code in CODES}
SPELLED = {"f2": np.dtype("f2"), "e2": np.dtype(jnp.bfloat16)}
both = pytest.mark.parametrize("code", CODES)


@pytest.fixture(params=["instructions", "integers"])
def way(request, monkeypatch):
    """With the processor's conversions of float16, if it has them, and without."""
    if request.param == "integers":
        monkeypatch.setattr(cold, "halves", False)
        monkeypatch.setattr(lower, "_templates", BoundedCache("type_cache_size"))
        # Other texts, or a kernel made before would be found.
        return "    k = 0\n"
    return ""


def edges(code):
    """float32 at, below and above each number of the format and each middle between two."""
    dtype = SPELLED[code]
    u = EVERY[code].astype("f4").view("i4")[:, None]
    step = 0x1000 if code == "f2" else 0x8000
    near = np.array([0, 1, -1, step - 1, step, step + 1])
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2**32, 100_000, dtype="u4").view("f4")
    tiny = (rng.standard_normal(20_000) * np.finfo("f4").tiny).astype("f4")
    small = (rng.standard_normal(20_000) * float(jnp.finfo(dtype).tiny)).astype("f4")
    return np.concatenate([(u + near).astype("i4").view("f4").ravel(), anything, tiny, small])


@both
def test_all_numbers_widen_exactly(code, way):
    x = EVERY[code]
    source = (
        f"def kernel(lo, hi, x, y):\n{way and '    k = 0' + chr(10)}    for i in range(lo, hi):\n"
    )
    kernel = get_kernel(source + "        y[i] = f4(x[i])\n", "kernel", (f"{code}*", "f4*"))
    y = np.empty(x.size, "f4")
    kernel.call(x.size, x.size, x.ctypes.data, y.ctypes.data)
    assert same_bits(y, x.astype("f4")).all()


@both
@pytest.mark.parametrize("scalar", [False, True])
def test_rounding_is_to_the_nearest_even_number(code, way, scalar):
    x = edges(code)
    y = np.empty(x.size, SPELLED[code])
    source = f"def kernel(lo, hi, x, y):\n{way}"
    loop = "    for i in range(lo, hi):\n        y[i] = x[i]\n"
    if scalar:
        loop = "    i = lo\n    while i < hi:\n        y[i] = x[i]\n        i = i + 1\n"
    kernel = get_kernel(source + loop, "kernel", ("f4*", f"{code}*"))
    kernel.call(x.size, x.size, x.ctypes.data, y.ctypes.data)
    with np.errstate(all="ignore"):
        assert same_bits(y, x.astype(y.dtype)).all()


@both
def test_conversions_are_those_of_numpy(code):
    dtype, rng = SPELLED[code], np.random.default_rng(1)
    every = jnp.asarray(EVERY[code])
    with np.errstate(all="ignore"):
        for kind in ("i4", "u4", "i2", "u1", "?"):
            x = points({"?": "b1"}.get(kind, kind), 5000, 3).astype(kind)
            assert same_bits(np.asarray(jnp.asarray(x).astype(dtype)), x.astype(dtype)).all(), kind
            expected = np.asarray(jnp.asarray(EVERY[code].astype("f4")).astype(kind))
            assert (np.asarray(every.astype(kind)) == expected).all(), kind
        with jnp.enable_x64():
            x = np.concatenate([rng.standard_normal(1000), [1 + 2**-11 + 2**-40, 65520 - 2**-30]])
            assert same_bits(np.asarray(jnp.asarray(x).astype(dtype)), x.astype(dtype)).all()
            assert (np.asarray(every.astype("f8")) == EVERY[code].astype("f8"))[:1000].all()
        bits = np.asarray(jnp.lax.bitcast_convert_type(every, jnp.uint16))
        assert (bits == np.arange(65536)).all()
        again = jnp.lax.bitcast_convert_type(jnp.asarray(bits), dtype)
        assert same_bits(np.asarray(again), EVERY[code]).all()


PRODUCTS = ("dot_general", "conv_general_dilated")  # tested by themselves
KINDS = ("map", "view", "reduce", "assemble")
CASES_OF = [
    pytest.param(c, id=str(c))
    for cases in CASES.values()
    for c in cases[:1]
    if not c.pre
    and (OPS[c.op].kind in KINDS or OPS[c.op].halves)
    and c.op not in PRODUCTS
    and c.op not in ("complex", "bitcast_convert_type")
    if any(x.dtype.kind == "f" for x in c.inputs)
]


def ulps(actual, expected):
    """How many numbers of the format lie between two arrays; any NaN is any other."""
    bits = [np.asarray(x).view("u2").astype("i4") for x in (actual, expected)]
    place = [np.where(b & 0x8000, 0x8000 - b, b) for b in bits]
    nan = np.isnan(actual.astype("f4")) & np.isnan(expected.astype("f4"))
    return np.where(nan, 0, abs(place[0] - place[1]))


@both
@pytest.mark.parametrize("case", CASES_OF)
def test_every_operation_is_that_of_float32_rounded(case, code):
    """To one number of the format: float32 functions of NumPy's and of kernels differ."""
    dtype, op = SPELLED[code], OPS[case.op]
    inputs = [x.astype(dtype) if x.dtype.kind == "f" else x for x in case.inputs]
    doubles = [k for k, v in case.params.items() if isinstance(v, np.dtype) and v == "f8"]
    params = {**case.params, **dict.fromkeys(doubles, dtype)}
    node = record(op, tuple(from_numpy(x)._node for x in inputs), params)
    actual = [engine.array_of(n) for n in (items(node) if isinstance(node.aval, tuple) else [node])]
    narrow = case.op == "nextafter"  # the next number depends on the format
    wide = [x if narrow else x.astype("f4") if x.dtype == dtype else x for x in inputs]
    with np.errstate(all="ignore"):
        references = op.numpy(*wide, **params)
    references = list(references) if isinstance(node.aval, tuple) else [references]
    for result, expected in zip(actual, references, strict=True):
        assert result.shape == expected.shape
        if result.dtype == dtype and "scatter" in op.name:
            # Sums are rounded once for each update, at the size that they have then.
            size = max(abs(x).max(initial=0) for x in (*wide, expected) if x.dtype == "f4")
            apart = abs(result.astype("f4") - expected).max(initial=0)
            assert apart <= 3 * size * float(jnp.finfo(dtype).eps)
        elif result.dtype == dtype:
            assert ulps(result, expected.astype(dtype)).max(initial=0) <= 1
        else:
            assert (result == expected).all()


def gelu_like(m, x):
    return 0.5 * x * (1 + m.tanh(0.7978 * (x + 0.0447 * x * x * x)))


PROGRAMS = {
    "chain": lambda m, x: gelu_like(m, x) - m.exp(-abs(x)) / 3,
    "rows": lambda m, x: (x - x.mean(-1, keepdims=True)) / m.sqrt(x.var(-1, keepdims=True) + 1),
    "columns": lambda m, x: m.exp(x).sum(0) + x.max(0) - x.min(0),
    "all": lambda m, x: (x * x).sum() + x.prod() * 0,
    "views": lambda m, x: x.T[::-1, 1:] * 2 + m.roll(x, 1, 0).T[:, :-1],
    "across": lambda m, x: x.T.reshape(x.shape) + x,
    "joined": lambda m, x: m.concatenate([x * 2, m.pad(x, 1)[1:-1, 1:-1]], 1),
    "strided": lambda m, x: x[:, ::2] * x[:, 1::2][:, ::-1],
    "gathered": lambda m, x: x[m.arange(x.shape[0]) // 2] + x[:, :1],
    "chosen": lambda m, x: m.where(x > 0, x, m.clip(x, -1, 0) * 3),
    "mixed": lambda m, x: x.astype("float32") * 3 + x,
    "integers": lambda m, x: (x * 100).astype("int32") + m.arange(x.shape[1]).astype(x.dtype),
}


@both
@pytest.mark.parametrize("shape", [(6, 8), (64, 130), (300, 5000 // 100 * 2)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_match_jax_eagerly_and_jitted(name, shape, code):
    x = np.random.default_rng(2).standard_normal(shape).astype(SPELLED[code])
    f = PROGRAMS[name]
    eager = np.asarray(f(jnp, jnp.asarray(x)))
    jitted = np.asarray(jnp.jit(lambda x: f(jnp, x))(x))
    with jnp.disable_jit():
        steps = np.asarray(f(jnp, jnp.asarray(x)))
    assert eager.tobytes() == jitted.tobytes() == steps.tobytes()
    expected = np.asarray(f(jn, jn.asarray(x)))
    assert eager.dtype == expected.dtype
    eps = float(jnp.finfo(SPELLED[code]).eps)
    scale = np.maximum(abs(expected.astype("f8")), 0.5)
    assert (abs(eager.astype("f8") - expected.astype("f8")) <= 8 * eps * scale).all()


@both
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_fused_code_matches_single_operations_bitwise(code, data):
    """Any chain of operations, on any numbers of the format."""
    dtype = SPELLED[code]
    seed = data.draw(st.integers(0, 2**32 - 1))
    n = data.draw(st.integers(1, 200))
    x, y = (np.random.default_rng(seed + k).integers(0, 65536, n, "u2").view(dtype) for k in (0, 1))
    pairs = [(jnp.asarray(x), x), (jnp.asarray(y), y)]
    with np.errstate(all="ignore"):
        for _ in range(data.draw(st.integers(1, 8))):
            f = data.draw(st.sampled_from([np.add, np.subtract, np.multiply, np.divide]))
            (a, p), (b, q) = (data.draw(st.sampled_from(pairs)) for _ in range(2))
            pairs.append((getattr(jnp, f.__name__)(a, b), f(p, q)))
        for a, p in reversed(pairs):
            assert same_bits(np.asarray(a), p).all()


@pytest.mark.parametrize("dtype", [*SPELLED.values(), np.dtype("i2"), np.dtype("u2")], ids=str)
@pytest.mark.parametrize("step", [-1, 2, 3, 4])
def test_strided_elements(step, dtype):
    """Slices of many lengths; nothing is read past the last element."""
    x = np.arange(1000).astype(dtype)
    f = jnp.jit(lambda x: x[::step] + 1)
    for n in (1, 2, 7, 31, 32, 33, 63, 64, 65, 100, 129, 255, 256, 257, 1000):
        part = np.ascontiguousarray(x[:n])
        assert (np.asarray(f(part)) == part[::step] + part.dtype.type(1)).all(), n
    rows = jnp.asarray(x[:990].reshape(30, 33))
    assert (np.asarray(jnp.exp(rows[:, ::step])) == np.asarray(jnp.exp(rows))[:, ::step]).all()


INDEXED = {
    "scan": lambda m, lax, x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), x[0], x),
    "fori": lambda m, lax, x: lax.fori_loop(0, 10, lambda i, y: m.tanh(y) * 1.5, x),
    "while": lambda m, lax, x: lax.while_loop(
        lambda c: c[1] < 7, lambda c: (c[0] * c[0] + x[0, 0], c[1] + 1), (x[0, 0], 0)
    ),
    "cond": lambda m, lax, x: lax.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x - 1, x),
    "sums by place": lambda m, lax, x: x.at[m.array([1, 2, 1, 1])].add(x[:4]),
    "largest by place": lambda m, lax, x: x.at[m.array([1, 2, 1]), 2].max(x[:3, 0]),
    "sums of many": lambda m, lax, x: m.zeros(4, x.dtype).at[m.arange(660) % 4].add(x.ravel()),
    "windows": lambda m, lax, x: lax.dynamic_update_slice(
        x, lax.dynamic_slice(x, (1, 2), (3, 4)), (5, 0)
    ),
    "taken": lambda m, lax, x: m.take(x, m.array([3, 1, 40]), axis=1, mode="fill"),
    "sorted": lambda m, lax, x: [m.sort(x, 1), m.argsort(x, 0), lax.top_k(x, 5)],
    "places": lambda m, lax, x: [x.argmax(1), x.argmin(0), m.searchsorted(m.sort(x[0]), x[1])],
    "running": lambda m, lax, x: [lax.cummax(x, 1), m.cumsum(x[:, :3], 1)],
    "middle": lambda m, lax, x: [m.median(x, 1), m.partition(x, 5, 1)[:, 5]],
}


@both
@pytest.mark.parametrize("name", INDEXED)
def test_loops_indices_and_orders(name, code):
    """In machine code, with the values of jax to two units of the last place."""
    x = np.random.default_rng(5).standard_normal((20, 33)).astype(SPELLED[code])
    x[3, 4] = np.nan if name in ("sorted", "running") else x[3, 4]
    f = INDEXED[name]
    run = jnp.jit(lambda x: f(jnp.numpy, jnp.lax, x))
    actual = [np.asarray(y) for y in jnp.tree.leaves(run(x))]
    eager = [np.asarray(y) for y in jnp.tree.leaves(f(jnp.numpy, jnp.lax, jnp.asarray(x)))]
    theirs = jax_result(lambda: jax.tree.leaves(f(jn, jax.lax, jn.asarray(x))), f, x)
    expected = [np.asarray(y) for y in theirs]
    assert "library call" not in str(jnp.inspect(run)(x)) or name == "middle"
    eps = float(jnp.finfo(SPELLED[code]).eps)
    for y, e, w in zip(actual, eager, expected, strict=True):
        assert y.dtype == w.dtype
        assert y.tobytes() == e.tobytes()
        if name == "sums of many":  # rounded after each of them, as before
            continue
        assert np.allclose(y.astype("f8"), w.astype("f8"), rtol=2 * eps, equal_nan=True)


@both
def test_a_chain_is_one_kernel_and_moves_two_bytes(code):
    x = jnp.asarray(np.ones((100, 100), SPELLED[code]))
    look = jnp.inspect(lambda x: gelu_like(jnp, x) * 2 + 1)(x)
    assert len(look.kernels) == 1
    soft = jnp.inspect(jnp.nn.softmax)(x)
    assert len(soft.kernels) == 1


@both
def test_derivatives_and_examples(code):
    x = np.random.default_rng(4).standard_normal((5, 33)).astype(SPELLED[code])
    f = lambda m: lambda v: (m.tanh(v) * v).astype("float32").sum()  # noqa: E731
    actual = jnp.vmap(jnp.grad(f(jnp)))(x)
    expected = jax_result(lambda: jax.vmap(jax.grad(f(jn)))(x), x)
    assert actual.dtype == expected.dtype
    eps = float(jnp.finfo(SPELLED[code]).eps)
    assert np.allclose(
        np.asarray(actual, "f4"), np.asarray(expected, "f4"), rtol=4 * eps, atol=4 * eps
    )


@both
def test_numpy_arrays_are_taken_without_a_copy_and_results_reuse_memory(code):
    x = np.ones(1 << 20, SPELLED[code])
    y = jnp.jit(lambda x: x * 2 + 1, donate_argnums=0)(jnp.asarray(x) * 1)
    assert (np.asarray(y).astype("f4") == 3).all()
