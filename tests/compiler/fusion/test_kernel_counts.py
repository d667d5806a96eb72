"""How many kernels common programs become, and of which form."""

import numpy as np
import pytest
from compiler.fusion.support import plan_of, steps_of

import accnp as jnp
from accnp.engine.steps import KernelStep

X = np.linspace(-1, 1, 64 * 48, dtype=np.float32).reshape(64, 48)
S = np.linspace(-1, 1, 48 * 48, dtype=np.float32).reshape(48, 48)
V = np.linspace(-1, 1, 48, dtype=np.float32)
AT = np.arange(5, dtype=np.int32)  # indices
K = np.int32(3)  # a traced place


def softmax(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x, scale, shift):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / jnp.sqrt(v + 1e-5) * scale + shift


def selu(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


def laplace(u):
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]


CASES = {
    "polynomial": (lambda x: x * x + x * 2, [X], ["map"]),
    "selu": (selu, [X], ["map"]),
    "stencil of slices": (laplace, [X], ["map"]),
    "outer product": (lambda v: v[:, None] * v[None, :], [V], ["map"]),
    "mask from indices": (lambda x: jnp.where(jnp.arange(48) > 3, x, 0), [X], ["map"]),
    "transposed consumer": (lambda x: jnp.exp(x).T + 1, [X], ["map"]),
    "transpose made flat": (lambda x: x.T.reshape(-1), [X], ["map"]),
    "both orders": (lambda x: x + x.T, [S], ["map"]),
    "reversed": (lambda x: x[::-1] + x, [X], ["map"]),
    "several outputs": (lambda x, y: (x + y, x * y, jnp.exp(x)), [X, X], ["map"]),
    "softmax over rows": (softmax, [X], ["row"]),
    "layer normalization": (layer_norm, [X, V, V], ["row"]),
    "mean and variance of rows": (lambda x: (x.mean(1), x.var(1)), [X], ["row"]),
    "distances": (lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1), [X, X], ["row"]),
    "cross entropy with its slope": (
        lambda s, y: jnp.value_and_grad(lambda s: -(jnp.nn.log_softmax(s) * y).sum(1).mean())(s),
        [X, X],
        ["row", "split", "map"],
    ),
    "sum, max and min": (lambda x: (x.sum(), x.max(), x.min()), [X], ["split"]),
    "norm of all": (lambda x: x / jnp.sqrt((x * x).sum()), [X], ["split", "map"]),
    "long sum": (lambda x: x.sum(), [np.ones(100_000, np.float32)], ["split", "rest"]),
    "column mean": (lambda x: x.mean(0), [X], ["column"]),
    "column deviation": (lambda x: x.std(0), [X], ["column", "column"]),
    "column normalization": (
        lambda x: (x - x.mean(0)) / x.std(0),
        [X],
        ["column", "column", "map"],  # sums of float32 and of float64 in one pass
    ),
    "column moments": (lambda x: (x.mean(0), (x * x).mean(0)), [X], ["column"]),
    "column extremes": (lambda x: (x.min(0) + 1, x.max(0) * 2), [X], ["column", "column"]),
    "columns of two arrays": (lambda x, y: (x.sum(0), (x * y).sum(0)), [X, X + 1], ["column"] * 2),
    "columns over other axes": (
        lambda x: (x.reshape(5, 4, -1).sum(0), x.reshape(5, 4, -1).sum(1)),
        [X[:20]],
        ["column"] * 2,
    ),
    "long work for columns": (
        lambda x: (x.sum(0) + 1, (jnp.exp(jnp.sin(x)) * x).sum(0)),
        [X],
        ["column"] * 2,
    ),
    "parts of a concatenation": (
        lambda x, y: jnp.concatenate([jnp.exp(x), y * 2]),
        [X, X],
        ["map"],
    ),
    "a stack of twenty": (lambda x: jnp.stack([x * i for i in range(20)]), [X], ["map"]),
    "Laplacian of rolls": (
        lambda x: sum(jnp.roll(x, s, a) for s in (1, -1) for a in (0, 1)) - 4 * x,
        [X],
        ["map"],
    ),
    "blur of a padded image": (
        lambda x: (lambda y: y[:-2] + 2 * y[1:-1] + y[2:])(jnp.pad(x, 1, mode="edge")),
        [X],
        ["map"],
    ),
    "shallow water": (
        lambda h, u, v: (
            h - 0.1 * (jnp.roll(u, -1, 0) - u + jnp.roll(v, -1, 1) - v),
            u - 0.2 * (h - jnp.roll(h, 1, 0)),
            v - 0.2 * (h - jnp.roll(h, 1, 1)),
        ),
        [X, X, X],
        ["map"],
    ),
    "gradient of a stencil": (
        jnp.grad(lambda x: (x[1:-1, :-2] * x[1:-1, 2:] + x[:-2, 1:-1] * x[2:, 1:-1]).sum()),
        [X],
        ["map"],
    ),
    "separable blur": (
        lambda x: (lambda y: y[:-4] + 4 * y[2:-2] + y[4:])(x[:, :-4] + 4 * x[:, 2:-2] + x[:, 4:]),
        [X],
        ["map"],
    ),
    "heavy under shifts": (
        lambda x: (lambda y: y[:-1] + y[1:])(jnp.exp(x)),
        [X],
        ["map"],  # and another before it, in bands
    ),
    "bias and activation": (
        lambda x, w, b: jnp.maximum(x @ w + b, 0),
        [X, S, V],
        ["dot_general", "map"],
    ),
}


# A first "map" lets negative indices count from the end.
INDEXING = {
    "x[idx]": (lambda x, i: x[i], [X, AT], ["map"]),
    "x[:, idx]": (lambda x, i: x[:, i], [X, AT], ["map", "map"]),
    "x[k]": (lambda x, k: x[k], [X, K], ["map", "dynamic_slice"]),
    "take": (lambda x, i: jnp.take(x, i, axis=0), [X, AT], ["map"]),
    "dynamic_slice": (
        lambda x: jnp.lax.dynamic_slice(x, (1, 0), (3, 48)),
        [X],
        ["dynamic_slice"],
    ),
    "static place": (lambda x: x.at[3].set(1.0), [X], ["dynamic_update_slice"]),
    "static element": (lambda x: x.at[3, 5].set(1.0), [X], ["dynamic_update_slice"]),
    "static rows": (lambda x: x.at[3:9].add(1.0), [X], ["scatter_add"]),
    "every other row": (lambda x: x.at[::2].set(1.0), [X], ["update_slice"]),
    "rows that are computed": (lambda x: x.at[3:9].add(x[:6] * 2.0), [X], ["map", "update_slice"]),
    "rows of another": (lambda x, y: x.at[3:9].add(jnp.sin(y[:6])), [X, X], ["map"]),
    "every other row of another": (lambda x, y: x.at[::-2].min(y[::2] * 2.0), [X, X], ["map"]),
    "parts of a new array": (
        lambda x: jnp.zeros(9).at[:5].set(x[0, :5] * 2).at[5:].set(x[1, :4] + 1),
        [X],
        ["map"],
    ),
    "the inside of a new array": (
        lambda x: jnp.zeros_like(x).at[1:-1].set(x[2:] - x[:-2]) * 2,
        [X],
        ["map"],
    ),
    "the edges of a computed array": (
        lambda x: jnp.sin(x).at[0].set(0.0).at[:, -1].multiply(x[:, 0] + 1),
        [X],
        ["map", "map"],
    ),
    "traced row": (lambda x, k: x.at[k].set(1.0), [X, K], ["map", "scatter"]),
    "counted": (lambda i: jnp.zeros(9).at[i].add(1.0), [AT], ["map", "scatter_add"]),
    "columns": (lambda x, i: x.at[:, i].multiply(2.0), [X, AT], ["map", "scatter_mul"]),
    "swapped": (
        lambda x, k: x.at[k].set(x[k + 1]).at[k + 1].set(x[k]),
        [X, K],
        ["map", "map", "dynamic_slice", "dynamic_slice", "scatter", "scatter"],
    ),
    "cumsum of a product": (lambda x: jnp.cumsum(x * x, 1), [X], ["map", "cumsum"]),
    "argmax": (lambda x: jnp.argmax(x, 1), [X], ["argmax"]),
    "argsort": (jnp.argsort, [V], ["map", "sort"]),
    "top_k": (lambda v: jnp.lax.top_k(v, 3), [V], ["top_k"]),
    "searchsorted": (jnp.searchsorted, [V, V], ["searchsorted"]),
}


@pytest.mark.parametrize("name", [*CASES, *INDEXING])
def test_steps(name):
    f, arrays, steps = {**CASES, **INDEXING}[name]
    assert steps_of(f, *arrays) == steps


@pytest.mark.parametrize("name", INDEXING)
def test_indexing_uses_only_kernels(name):
    f, arrays, _ = INDEXING[name]
    assert all(isinstance(step, KernelStep) for step in plan_of(f, *arrays).steps)


def copies(f, *arrays):
    """How many arrays are copied, for an update, and how many are written over."""
    takes = [take for step in plan_of(f, *arrays).steps for take in step.updated_slots]
    return [over for *_, over in takes].count(False), [over for *_, over in takes].count(True)


def test_computed_values_are_updated_in_place():
    assert copies(lambda x: x.at[3].set(1.0).at[4].set(2.0), X) == (1, 1)
    assert copies(lambda x: jnp.cumsum(x, 0).at[3].set(1.0), X) == (0, 1)
    assert copies(lambda x: (x + 1).at[3].set(1.0), X) == (0, 0)  # one kernel writes all
    assert copies(lambda x, i: (x + 1).at[i].add(1.0), X, AT) == (0, 1)
    # Other readers come first.
    assert copies(lambda x, k: ((y := x + 1).at[k].set(0.0), y.sum(), y[k]), X, K) == (0, 1)
    # Both are wanted: one of them is a copy.
    assert copies(lambda x: ((y := x + 1), y.at[3].set(0.0)), X) == (1, 0)
    assert copies(lambda x: ((y := x + 1).at[3].set(0.0), y.at[4].set(0.0)), X) == (1, 1)


def test_updates_of_one_value_need_no_array_of_it():
    i, rows = np.arange(300, dtype=np.int32), np.ones((300, 7), np.float32)

    def table(e, i):
        return jnp.grad(lambda e: (e[i] ** 2).sum())(e)

    for f, arrays, size in [
        (lambda i: jnp.full(9000, 2.0).at[i].add(1.0), [i], 9000),
        (lambda x, i: jnp.zeros((400, 7)).at[i].max(x), [rows, i], 2800),
        (lambda x, k: jnp.lax.dynamic_update_slice(jnp.ones((900, 7)), x, (k, 0)), [rows, K], 6300),
        (lambda x, i: jnp.ops.segment_sum(x, i, 5), [rows, i], 35),
        (table, [np.ones((900, 7), np.float32), i], 6300),
    ]:
        steps = plan_of(f, *arrays).steps
        assert not any(step.updated_slots for step in steps)
        assert "broadcast" not in " ".join(step.label for step in steps)
        last = steps[-1].moved
        assert last >= 4 * size
        assert last <= 4 * size + 4 * 7 * 300 + 4 * 300 + 8
    # The zeros are an output, too, so they are materialized.
    both = plan_of(lambda i: ((z := jnp.zeros(9)), z.at[i].add(1.0)), AT).steps
    assert len([take for step in both for take in step.updated_slots]) == 1


def operations(f, *arrays):
    """The operations in the sources, in order; each call or sign counts each time it is written."""
    return "".join(step.text.source for step in plan_of(f, *arrays).steps)


def test_dead_code_is_not_computed():
    source = operations(lambda x: (jnp.exp(x), x + 1)[1], X)
    assert "exp" not in source
    assert " + " in source


def test_common_subexpressions_are_computed_once():
    assert operations(lambda x: jnp.exp(x) + jnp.exp(x) * jnp.exp(x), X).count("exp(") == 1


def test_calls_of_a_jitted_function_share_common_subexpressions():
    inner = jnp.jit(lambda x: jnp.exp(x) * 2.0)
    assert operations(lambda x: inner(x) + inner(x), X).count("exp(") == 1


def test_expensive_values_are_kept_between_passes_over_a_row():
    assert operations(softmax, X).count("exp(") == 1


def test_value_read_through_two_views_is_stored_once():
    plan = plan_of(lambda x: (jnp.exp(x) + jnp.exp(x).T, jnp.exp(x) * 2), S)
    assert "".join(s.text.source for s in plan.steps).count("exp(") == 1


def chain(n):
    def f(x):
        for _ in range(n):
            x = x * 0.999 + 0.001
        return x

    return f


def centred(n):
    def f(x):
        for _ in range(n):
            x = x - x.mean(1, keepdims=True)
        return x

    return f


def branching(n):
    def f(x):
        a = b = x
        for _ in range(n):
            a, b = a * b + 1.0, a - b
        return a, b

    return f


def calls(n):
    inner = jnp.jit(lambda x: x * 2.0 + 1.0)

    def f(x):
        for _ in range(n):
            x = inner(x)
        return x

    return f


@pytest.mark.parametrize("x", [X, np.float32(1)], ids=["matrix", "rank 0"])
@pytest.mark.parametrize("make", [chain, branching, calls])
def test_kernels_of_long_programs_stay_short(make, x):
    plan = plan_of(make(1000), x)
    assert max(len(s.text.source.splitlines()) for s in plan.steps) < 200
    assert len(plan.steps) < 150


def test_many_reductions_of_one_row_are_split():
    plan = plan_of(centred(100), X)
    assert max(len(s.text.source.splitlines()) for s in plan.steps) < 200
    assert len(plan.steps) < 20


def test_many_outputs_share_kernels():
    plan = plan_of(lambda x: [x * float(i) for i in range(200)], X)
    assert len(plan.steps) < 20
