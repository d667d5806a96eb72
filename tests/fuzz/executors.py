"""The ways to run a program of `programs.py`: NumPy, eager, op by op, jitted, and its generated
source as plain Python."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np

from accnp import engine
from accnp.api.jit.jit import jit
from accnp.array_type import from_numpy, wrap
from accnp.compiler.ir_tools import python_functions
from accnp.engine.steps import KernelStep
from accnp.ir.graph import build
from accnp.ir.node import items, literal, record
from accnp.ir.op import OPS


def literal_node(leaf):
    return literal(leaf[1], leaf[2])


def array_leaves(p):
    return [x for x in p.leaves if not isinstance(x, tuple)]


def with_literals(p, arrays):
    """Return all leaves as nodes, given the nodes of the array leaves."""
    rest = iter(arrays)
    return [literal_node(x) if isinstance(x, tuple) else next(rest) for x in p.leaves]


def record_step(step, values):
    node = record(OPS[step.op], tuple([values[i] for i in step.inputs]), step.params)
    return list(items(node)) if isinstance(node.aval, tuple) else [node]


def record_steps(p, nodes, looked=()):
    """Record all steps and return the nodes of all values. Some steps may run in a jitted
    function.
    """
    values = list(nodes)
    a, b = p.called
    k = 0
    while k < len(p.steps):
        if k == a and b > a:
            values += record_in_jit(p, values, a, b)
            k = b
        else:
            values += record_step(p.steps[k], values)
            k += 1
        if k - 1 in looked:
            engine.array_of(values[-1])
    return values


def record_in_jit(p, values, a, b):
    count = len(values)

    def inner(*xs):
        inside = [x._node for x in xs]
        for step in p.steps[a:b]:
            inside += record_step(step, inside)
        return tuple(wrap(x) for x in inside[count:])

    return [x._node for x in jit(inner)(*[wrap(x) for x in values])]


def run_by_numpy(p):
    """Compute all values by the reference functions."""
    values = [np.asarray(x[1]).astype(x[2]) if isinstance(x, tuple) else x for x in p.leaves]
    for s in p.steps:
        values += run_reference(s, [values[i] for i in s.inputs])
    return values


def run_reference(step, arrays):
    op = OPS[step.op]
    aval = op.infer(*[_aval(x) for x in arrays], **step.params)
    with np.errstate(all="ignore"):
        out = op.numpy(*arrays, **step.params)
    several = isinstance(aval, tuple)
    return [
        np.asarray(x).astype(a.dtype).reshape(a.shape)
        for x, a in zip(out if several else [out], aval if several else [aval], strict=True)
    ]


def _aval(x):
    from accnp.ir.aval import make_aval

    return make_aval(x.shape, x.dtype)


def run_eagerly(p):
    """Compute the outputs lazily. Values that are not referenced may be fused."""
    values = record_steps(
        p, with_literals(p, [from_numpy(x)._node for x in array_leaves(p)]), p.looked
    )
    outputs = [values[i] for i in p.outputs]
    held_arrays = [values[i] for i in p.held]
    del values
    results = [np.array(engine.array_of(x)) for x in outputs]
    late = [np.array(engine.array_of(x)) for x in held_arrays]
    return results, late


def run_step_by_step(p):
    """Compute all values, one operation at a time."""
    values = with_literals(p, [from_numpy(x)._node for x in array_leaves(p)])
    for step in p.steps:
        new = record_step(step, values)
        for x in new:
            engine.ready(x)
        values += new
    return [np.array(engine.array_of(x)) for x in values]


def run_jitted(p):
    """Return the outputs of the program as one jitted function.

    It is called twice, because the first call runs step by step, like eager code.
    """

    def whole(*xs):
        values = record_steps(p, with_literals(p, [x._node for x in xs]))
        return tuple(wrap(values[i]) for i in p.outputs)

    f, arrays = jit(whole), [from_numpy(x) for x in array_leaves(p)]
    f(*arrays)
    return [np.asarray(x) for x in f(*arrays)]


# --- generated source as plain Python ---


class CheckedPointer:
    """A NumPy array in place of a C pointer, which checks bounds and that elements are written
    before they are read.
    """

    def __init__(self, data, at, seen):
        self.data = data
        self.at = at
        self.seen = seen

    def __getitem__(self, k):
        if isinstance(k, slice):
            first, last = self.at + int(k.start or 0), self.at + int(k.stop)
            assert 0 <= first <= last <= len(self.data), (first, last, len(self.data))
            assert self.seen[first:last].all(), "read before written"
            return self.data[first:last]
        place = self.at + int(k)
        assert 0 <= place < len(self.data), (place, len(self.data))
        assert self.seen[place], "read before written"
        return self.data[place]

    def __setitem__(self, k, value):
        if isinstance(k, slice):
            for i, element in enumerate(value, int(k.start or 0)):
                self[i] = element
            return
        place = self.at + int(k)
        assert 0 <= place < len(self.data), (place, len(self.data))
        assert np.asarray(value).dtype == self.data.dtype, (
            np.asarray(value).dtype,
            self.data.dtype,
        )
        self.seen[place] = True
        self.data[place] = value

    def moved(self, k):
        return CheckedPointer(self.data, self.at + k, self.seen)


NAMESPACE = python_functions.NAMESPACE


def run_plan_as_plain_python(plan, buffers, seed=0):
    """Run a plan with every kernel's source as plain Python, in chunks in any order.

    Buffers are pairs of bytes and flags that tell which bytes were written.
    """
    rng = random.Random(seed)
    slots = [*buffers, *[None] * (plan.n_slots - len(buffers))]
    for step in plan.steps:
        if isinstance(step, KernelStep):
            _kernel(step, slots, rng)
        else:
            _run_host_step(step, slots)
        for slot in step.frees:
            slots[slot] = None
    return [slots[s] for s in plan.output_slots]


def _kernel(step, slots, rng):
    for slot, nbytes in step.allocs:
        slots[slot] = (np.full(nbytes, 0xA5, np.uint8), np.zeros(nbytes, bool))
    for slot, source, nbytes, over in step.updated_slots:
        buffers = slots[source]
        slots[slot] = buffers if over else tuple(part[:nbytes].copy() for part in buffers)
    codes = [c[:-1] for c in step.text.signature if c.endswith("*")]
    pointers = []
    for (slot, offset), code in zip(step.pointers, codes, strict=True):
        dtype = np.dtype(python_functions.DTYPES[code])
        data, seen = slots[slot]
        n = len(data) // dtype.itemsize
        # One flag for each element of this dtype: the first of its bytes.
        pointers.append(
            CheckedPointer(
                data[: n * dtype.itemsize].view(dtype),
                offset // dtype.itemsize,
                _Flags(seen, dtype.itemsize, n),
            )
        )
    scope = dict(NAMESPACE)
    exec(compile(step.text.source, "<kernel>", "exec"), scope)
    cuts = sorted({0, step.extent, *[rng.randint(0, step.extent) for _ in range(2)]})
    parts = list(pairwise(cuts))
    rng.shuffle(parts)
    with np.errstate(all="ignore"):
        for lo, hi in parts:
            scope["kernel"](lo, hi, *pointers, *[int(n) for n in step.ints])


class _Flags:
    """Which elements were written, as one flag for each byte, so that it is valid for any dtype."""

    def __init__(self, seen, size, n):
        self.seen = seen[: n * size].reshape(n, size) if n else seen[:0].reshape(0, size)

    def __getitem__(self, k):
        return self.seen[k].all() if not isinstance(k, slice) else self.seen[k]

    def __setitem__(self, k, value):
        self.seen[k] = value


def _run_host_step(step, slots):
    arrays = []
    for slot, shape, dtype, strides, offset, size in step.operands:
        data, seen = slots[slot]
        assert seen[: size * dtype.itemsize].all(), "read before written"
        flat = data[: size * dtype.itemsize].view(dtype)
        if strides is None:
            arrays.append(flat.reshape(shape))
        else:
            arrays.append(
                np.lib.stride_tricks.as_strided(
                    flat[offset // dtype.itemsize :], shape, strides, writeable=False
                )
            )
    with np.errstate(all="ignore"):
        out = step.op.numpy(*arrays, **step.params)
    for slot, index in step.results:
        aval = step.avals[max(index, 0)]
        value = np.asarray(out if index < 0 else out[index])
        slots[slot] = as_bytes(np.broadcast_to(value, aval.shape).astype(aval.dtype))


def as_bytes(x):
    data = np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8).copy()
    return data, np.ones(len(data), bool)


def plan_of(p):
    """Return the plan of a whole program, and its leaves in addition to the arrays."""
    arrays = array_leaves(p)
    avals = [_aval(x) for x in arrays]

    def whole(leaves):
        values = record_steps(p, with_literals(p, leaves))
        return [values[i] for i in p.outputs]

    graph = build(whole, avals, "fuzz")
    plan, free = engine.plan_of_graph(graph)
    return plan, free


def run_as_plain_python(p, seed=0):
    """Compute the outputs by running the generated source of the whole program as plain Python."""
    plan, free = plan_of(p)
    leaves = array_leaves(p) + [np.array(engine.array_of(x)) for x in free]
    outs = run_plan_as_plain_python(plan, [as_bytes(x) for x in leaves], seed)
    results = []
    for (data, seen), aval in zip(outs, plan.out_avals, strict=True):
        assert seen[: aval.nbytes].all(), "an output element was never written"
        results.append(data[: aval.nbytes].view(aval.dtype).reshape(aval.shape))
    return results


# --- comparing ---


def same_bits(a, b):
    """Return whether arrays are bitwise equal; any two NaNs are equal."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real.copy(), b.real.copy()) and same_bits(a.imag.copy(), b.imag.copy())
    if a.dtype.kind == "f":
        nan = np.isnan(a) & np.isnan(b)
        bits = np.dtype(f"u{a.dtype.itemsize}")
        equal = np.ascontiguousarray(a).reshape(-1).view(bits) == np.ascontiguousarray(b).reshape(
            -1
        ).view(bits)
        return bool((equal.reshape(a.shape) | nan).all())
    return bool((a == b).all())


def same_values(a, b):
    """Return whether arrays are equal; zeros of both signs are equal, and any two NaNs are."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    )
