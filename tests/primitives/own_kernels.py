"""Helper functions for tests of ops with their own kernels: they draw operands as views of other
arrays, and run an op compiled, as plain Python and by its reference function.
"""

from __future__ import annotations

import os

import numpy as np
from fuzz import executors
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from accnp import engine
from accnp.engine import execute
from accnp.engine.steps import HostStep
from accnp.ir.aval import make_aval
from accnp.ir.graph import build
from accnp.ir.node import items, record
from accnp.ir.op import OPS, o
from accnp.runtime import buffer as pool

DTYPES = ["f4", "f8", "i1", "i4", "i8", "u1", "u4", "u8", "?", "c8", "c16"]
INDEX = ["i1", "u1", "i4", "u4", "i8", "u8"]


def draw_settings(n):
    """Return the settings of a test that draws n reproducible examples; ACCNP_FUZZ=5 draws 5n."""
    n *= int(os.environ.get("ACCNP_FUZZ", "1"))
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(
        max_examples=n, deadline=None, suppress_health_check=quiet, derandomize=True, database=None
    )


def distinct_values(draw, shape, dtype):
    """Return an array of values that are all different, as far as the dtype allows."""
    n = int(np.prod(shape))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = rng.normal(size=shape)
    if kind == "c":
        x = x + 1j * rng.normal(size=shape)
    x = np.array(x, dtype)
    if n and draw(st.integers(0, 3)) == 0:
        x.flat[rng.integers(0, n)] = np.nan
        x.flat[rng.integers(0, n)] = -0.0
    return x


class OperandView:
    """An operand: its values, the array that it is a view of, and how to record it from
    that array."""

    def __init__(self, value, base=None, view=lambda node: node):
        self.value = np.array(value, order="C")
        self.base = self.value if base is None else np.array(base, order="C")
        self.view = view


def draw_view(draw, x):
    """Draw an array as it is, or as a view of another array."""
    rank = x.ndim
    how = draw(st.sampled_from(["plain", "plain", "turned", "back", "cut", "wide"]))
    if how == "turned" and rank > 1:
        order = tuple(draw(st.permutations(range(rank))))
        back = tuple(int(k) for k in np.argsort(order))
        return OperandView(x, x.transpose(order), lambda node: o.transpose(node, permutation=back))
    if how == "back" and rank:
        axes = (draw(st.integers(0, rank - 1)),)
        return OperandView(x, np.flip(x, axes), lambda node: o.rev(node, dimensions=axes))
    if how == "cut" and rank and x.size:
        base = np.zeros([2 * n + 1 for n in x.shape], x.dtype)
        base[(slice(1, None, 2),) * rank] = x
        cut = {
            "start_indices": (1,) * rank,
            "limit_indices": tuple(2 * n for n in x.shape),
            "strides": (2,) * rank,
        }
        return OperandView(x, base, lambda node: o.slice(node, **cut))
    if how == "wide" and rank and x.size:
        d = draw(st.integers(0, rank - 1))
        base = x.take(0, axis=d)
        value = np.broadcast_to(np.expand_dims(base, d), x.shape)
        remaining = tuple(k for k in range(rank) if k != d)
        return OperandView(
            value,
            base,
            lambda node: o.broadcast_in_dim(node, shape=x.shape, broadcast_dimensions=remaining),
        )
    return OperandView(x)


def draw_initial_operand(draw, x):
    """Draw the operand that an update starts with: any operand, or one with a single value."""
    if x.size and draw(st.booleans()):
        value = np.full(x.shape, x.flat[0])
        wide = {"shape": x.shape, "broadcast_dimensions": ()}
        return OperandView(value, x.flat[0], lambda node: o.broadcast_in_dim(node, **wide))
    return draw_view(draw, x)


def plan_op(op, operands, params):
    """Return the plan of one op on these operands."""

    def whole(leaves):
        nodes = tuple(g.view(x) for g, x in zip(operands, leaves, strict=True))
        node = record(OPS[op], nodes, params)
        return list(items(node)) if isinstance(node.aval, tuple) else [node]

    avals = [make_aval(g.base.shape, g.base.dtype) for g in operands]
    plan, free = engine.plan_of_graph(build(whole, avals, op))
    assert not free
    return plan


def run_native(plan, operands):
    """Return the results of the compiled kernels; check that nothing else is overwritten."""
    buffers = [pool.copy_in(g.base) for g in operands]
    outs = execute.run(plan, [*buffers, *plan.constants])
    for b, g in zip(buffers, operands, strict=True):
        assert executors.same_bits(b.view(g.base.shape, g.base.dtype), g.base), (
            "an operand was changed"
        )
    return [b.view(a.shape, a.dtype) for b, a in zip(outs, plan.out_avals, strict=True)]


def run_as_plain_python(plan, operands):
    """Return the results of the kernel sources run as plain Python with bounds checks."""
    leaves = [executors.as_bytes(g.base) for g in operands]
    outs = executors.run_plan_as_plain_python(plan, leaves)
    outputs = []
    for (data, seen), aval in zip(outs, plan.out_avals, strict=True):
        assert seen[: aval.nbytes].all(), "an output element was never written"
        outputs.append(data[: aval.nbytes].view(aval.dtype).reshape(aval.shape))
    return outputs


def is_near(a, b):
    """Compare up to the rounding of complex products, in which NumPy may use FMA."""
    if a.dtype.kind != "c":
        return executors.same_bits(a, b)
    eps = float(np.finfo(a.dtype).eps)
    gap = np.abs(a - b) <= 64 * eps * np.abs(b)
    return bool((gap | ~(np.isfinite(a) & np.isfinite(b))).all())


def check_op(op, operands, params, same=executors.same_bits, kernels=True):
    """Check that compiled kernel, plain Python and reference agree, and that the op is
    one kernel."""
    plan = plan_op(op, operands, params)
    if kernels:
        assert not any(isinstance(s, HostStep) and s.op.name == op for s in plan.steps)
    values = [g.value for g in operands]
    with np.errstate(all="ignore"):
        expected = OPS[op].numpy(*values, **params)
    aval = OPS[op].infer(*[make_aval(x.shape, x.dtype) for x in values], **params)
    pairs = zip(expected, aval, strict=True) if isinstance(aval, tuple) else [(expected, aval)]
    expected = [np.broadcast_to(np.asarray(w, a.dtype), a.shape) for w, a in pairs]
    for how in (run_native, run_as_plain_python):
        for actual, w in zip(how(plan, operands), expected, strict=True):
            assert same(actual, w), f"{op} {how.__name__}: {actual}, wanted {w}"
    return plan
