"""Generated sources: the same text for every size of a layout, and plain Python that NumPy arrays
can run."""

import re

import numpy as np
import pytest
from compiler.fusion.support import plan_of
from fuzz.executors import as_bytes, run_plan_as_plain_python

import accnp as jnp
from accnp import engine
from accnp.array_type import from_numpy, wrap
from accnp.compiler.loops.ir import Cast, Const
from accnp.compiler.loops.types import dtype_of
from accnp.compiler.passes.reduction_lanes import initial_value
from accnp.ir.graph import build


def softmax(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


PROGRAMS = {
    "map": (lambda x: x * x + 2.5, lambda x: x * x + np.float32(2.5)),
    "row": (softmax, lambda x: (e := np.exp(x - x.max(1)[:, None])) / e.sum(1)[:, None]),
    "column": (lambda x: x.sum(0) * 2, lambda x: x.sum(0) * 2),
    "split": (lambda x: (x * x).sum(), lambda x: (x * x).sum()),
    "transposed": (lambda x: x.T + 1, lambda x: x.T + 1),
    "strided": (lambda x: x[::2, ::-1] * 3, lambda x: x[::2, ::-1] * 3),
    "indices": (lambda x: x + jnp.arange(x.shape[1]),
                lambda x: x + np.arange(x.shape[1], dtype="f4")),
    "joined": (lambda x: jnp.concatenate([x, -x], 1), lambda x: np.concatenate([x, -x], 1)),
}  # fmt: skip


def example(rows, columns):
    return np.linspace(-2, 1, rows * columns, dtype=np.float32).reshape(rows, columns)


def sources(f, x):
    return [s.text.source for s in plan_of(f, x).steps]


@pytest.mark.parametrize("name", PROGRAMS)
def test_source_does_not_depend_on_sizes(name):
    f, _ = PROGRAMS[name]
    texts = {tuple(sources(f, example(*shape))) for shape in ((12, 34), (56, 78), (90, 21))}
    assert len(texts) == 1
    numbers = {
        int(n) for text in texts for part in text for n in re.findall(r"(?<![\w.])\d+", part)
    }
    assert not numbers & {12, 34, 56, 78, 90, 21}


@pytest.mark.parametrize("name", PROGRAMS)
def test_source_runs_as_plain_python(name):
    f, ref = PROGRAMS[name]
    x = example(7, 9)
    plan = plan_of(f, x)
    ((data, _),) = run_plan_as_plain_python(plan, [as_bytes(x), *_constants(f, x)])
    expected = np.asarray(ref(x))
    np.testing.assert_allclose(
        data.view(expected.dtype).reshape(expected.shape), expected, rtol=1e-5
    )


def _constants(f, x):
    graph = build(lambda xs: [f(wrap(xs[0]))._node], [from_numpy(x)._node.aval])
    return [as_bytes(np.array(engine.array_of(n))) for n in engine.plan_of_graph(graph)[1]]


@pytest.mark.parametrize(("f", "ref"), [(jnp.tanh, np.tanh), (jnp.negative, np.negative)])
def test_sums_of_a_few_columns(f, ref):
    def twice(x):
        return f(x).sum(1) * 2

    x = example(35, 3).reshape(5, 7, 3)
    ((data, _),) = run_plan_as_plain_python(plan_of(twice, x), [as_bytes(x), *_constants(twice, x)])
    expected = ref(x).sum(1) * 2
    np.testing.assert_allclose(data.view(np.float32).reshape(5, 3), expected, rtol=1e-6, atol=1e-6)


def test_equal_programs_have_equal_source():
    assert sources(softmax, example(5, 6)) == sources(softmax, example(5, 6))


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int32, np.uint8, np.bool_, np.complex64]
)
@pytest.mark.parametrize("combine", ["sum", "prod", "max", "min", "and", "or"])
def test_identities_change_nothing(dtype, combine):
    dtype = np.dtype(dtype)
    if dtype.kind == "c" and combine not in ("sum", "prod"):
        return
    if dtype.kind == "f" and combine in ("and", "or"):
        return
    of = dtype_of(dtype)
    assert of is not None
    start = initial_value(combine, of)
    start = start.value if isinstance(start, Cast) else start
    assert isinstance(start, Const)
    value = dtype.type(start.value)
    reduction = {
        "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
        "and": np.bitwise_and, "or": np.bitwise_or,
    }[combine]  # fmt: skip
    if dtype.kind == "b" and combine in ("sum", "prod"):
        reduction = {"sum": np.logical_or, "prod": np.logical_and}[combine]
    for x in np.array([0, 1, 3], dtype):
        assert reduction(x, value) == x


def test_sums_of_single_precision_are_gathered_in_double():
    (source,) = sources(lambda x: x.sum(1), example(4, 5))
    assert "f8(" in source
    x = np.full((2, 3_000_000), 0.1, np.float32)
    actual = np.asarray(jnp.asarray(x).sum(1))
    np.testing.assert_allclose(actual, x.astype(np.float64).sum(1), rtol=5e-7)


@pytest.mark.parametrize(("shape", "axis"), [((6, 50), 1), ((50, 40), 0), ((50000,), 0)])
def test_a_sum_that_its_condition_makes_zero_is_left_out(shape, axis):
    """The second sum of logsumexp is made for rows, or tiles of columns, that are beside 0."""
    x = np.random.default_rng(0).uniform(-40, -20, shape).astype(np.float32)
    f = lambda x: jnp.nn.logsumexp(x, axis)  # noqa: E731
    (text,) = [t for t in sources(f, x) if "f4(0.75)" in t and "exp(" in t]
    assert re.search(r" = select\(fmax\(.*\) < f4\(0.75\), \w+, \w+\)\n|select\(some != 0, ", text)
    for top in (1e-6, 30):
        x[(0,) * x.ndim] = top
        buffers = [as_bytes(x), *_constants(f, x)]
        ((data, _),) = run_plan_as_plain_python(plan_of(f, x), buffers)
        np.testing.assert_allclose(data.view(np.float32), np.asarray(f(x)).ravel(), rtol=1e-6)
