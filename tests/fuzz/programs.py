"""Random programs over the op table: a source of choices (hypothesis or a seeded generator) gives a
`Program`.

In exact programs, every float is a small multiple of a power of two, so that any order of summation
gives the same bits and all ways of running a program must agree exactly.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import prod

import numpy as np
from fuzz.tables import (
    ARITY,
    B1,
    BY_KIND,
    COMPARE,
    DTYPES,
    EXACT_BITS,
    EXACT_HALF,
    F4,
    I4,
    LARGE,
    MAX_SIZE,
    RARE_DTYPES,
    REDUCE,
    SHAPES,
    WILD,
    WILD_COMPLEX,
)

from accnp.ir.aval import make_aval
from accnp.ir.op import OPS


class SeededChoices:
    """Choices by a seeded generator."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def integer(self, low, high):
        return self.random.randint(low, high)


class HypothesisChoices:
    """Choices drawn by hypothesis, which shrinks them."""

    def __init__(self, draw, strategies):
        self.draw = draw
        self.integers = strategies.integers

    def integer(self, low, high):
        return self.draw(self.integers(low, high))


@dataclass
class Step:
    op: str
    inputs: tuple
    params: dict

    def __repr__(self):
        arguments = ", ".join(
            [f"v{i}" for i in self.inputs] + [f"{k}={v}" for k, v in self.params.items()]
        )
        return f"{self.op}({arguments})"


@dataclass
class Program:
    """Values are numbered: first the leaves, then the results of each step."""

    leaves: list = field(default_factory=list)  # arrays, or ("literal", value, dtype)
    steps: list = field(default_factory=list)
    first: list = field(default_factory=list)  # number of each step's first result
    outputs: list = field(default_factory=list)
    held: list = field(default_factory=list)  # kept alive in eager code, but never read
    looked: list = field(default_factory=list)  # steps after which eager code looks at the result
    exact: bool = True
    called: tuple = (0, 0)  # steps [a, b) are inside a jitted function of their own

    def __repr__(self):
        lines = [f"Program(exact={self.exact}, called={self.called})"]
        for i, x in enumerate(self.leaves):
            lines.append(
                f"  v{i} = {x!r}" if isinstance(x, tuple) else f"  v{i} = {x.dtype}{x.shape}"
            )
        for at, s in zip(self.first, self.steps, strict=True):
            lines.append(f"  v{at} = {s!r}")
        lines.append(f"  outputs {self.outputs}, held {self.held}, looked {self.looked}")
        return "\n".join(lines)


class _ProgramGenerator:
    def __init__(self, source, exact, large):
        self.source = source
        self.shapes = LARGE if large else SHAPES
        self.max_size = 1_000_000 if large else MAX_SIZE
        self.p = Program(exact=exact)
        self.avals = []
        self.bits = []  # (bits before the point, bits behind it) that hold every element exactly

    # --- choices ---

    def pick(self, options):
        return options[self.source.integer(0, len(options) - 1)]

    def chance(self, of):
        """True once in `of` times; shrinks to False."""
        return self.source.integer(0, of - 1) == of - 1

    def dtype(self):
        return self.pick(DTYPES) or self.pick(RARE_DTYPES)

    def value(self, test=lambda a: True):
        """An existing value, later ones more often."""
        options = [i for i, a in enumerate(self.avals) if test(a)]
        if not options:
            return None
        if not self.chance(3):
            options = options[-4:]
        return self.pick(options)

    # --- values ---

    def leaf(self, shape, dtype):
        rng = np.random.default_rng(self.source.integer(0, 1 << 30))
        if dtype.kind == "b":
            x = rng.integers(0, 2, shape).astype(bool)
        elif dtype.kind in "iu":
            x = rng.integers(0 if dtype.kind == "u" else -9, 9, shape).astype(dtype)
        elif not self.p.exact:
            x = rng.standard_normal(shape).astype(dtype)
            if dtype.kind == "c":
                x = (x + 1j * rng.standard_normal(shape)).astype(dtype)
        else:
            x = (rng.integers(-6, 7, shape) / 2).astype(dtype)
            if dtype.kind == "c":
                x = (x + 1j * rng.integers(-3, 4, shape)).astype(dtype)
        self.p.leaves.append(np.asarray(x))
        self.avals.append(make_aval(tuple(shape), dtype))
        self.bits.append((2, 1))

    def literal(self, dtype):
        number = self.source.integer(0, 3)
        value = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind](number)
        self.p.leaves.append(("literal", value, dtype))
        self.avals.append(make_aval((), dtype, True))
        self.bits.append((2, 0))

    def step(self, op, *inputs, **params):
        """Append a step; return the number of its (first) result, or None if the step is not
        allowed.
        """
        bits = self.bits_of(op, inputs, params)
        if bits is None:
            return None
        aval = OPS[op].infer(*[self.avals[i] for i in inputs], **params)
        several = aval if isinstance(aval, tuple) else (aval,)
        if any(a.size > self.max_size for a in several):
            return None
        self.p.steps.append(Step(op, tuple(inputs), params))
        self.p.first.append(len(self.avals))
        for a in several:
            self.avals.append(a)
            self.bits.append(bits)
        return len(self.avals) - len(several)

    def bits_of(self, op, inputs, params):
        """Return the number of bits that represent the result exactly; None if a float32 has too
        few.
        """
        if not inputs:
            return (8, 0)
        whole = max(self.bits[i][0] for i in inputs)
        part = max(self.bits[i][1] for i in inputs)
        kind = self.avals[inputs[0]].dtype.kind
        if kind in "iub" and op != "convert_element_type":
            return (self.avals[inputs[0]].dtype.itemsize * 8, 0)
        if op in ("add", "sub"):
            whole += 1
        elif op in ("mul", "square"):
            both = [self.bits[i] for i in inputs] * (2 if op == "square" else 1)
            whole, part = sum(b[0] for b in both), sum(b[1] for b in both)
            whole += kind == "c"
        elif op == "integer_pow":
            whole, part = whole * params["y"], part * params["y"]
        elif op in ("reduce_sum", "reduce_prod", "cumsum"):
            shape = self.avals[inputs[0]].shape
            n = (
                prod(shape[a] for a in params["axes"])
                if "axes" in params
                else shape[params["axis"]]
            )
            if op == "reduce_prod":
                whole, part = (whole + (kind == "c")) * n, part * n
            else:
                whole += int(n).bit_length()
        elif op == "convert_element_type":
            new = np.dtype(params["new_dtype"])
            if kind in "iu" and new.kind in "fc" and whole > EXACT_BITS:
                # Wrapped integers fill their whole width.
                return None if self.p.exact else (8, 0)
            if new.kind in "iu" and whole > 7 and self.p.exact:
                return None
            if kind == "b":
                whole, part = 1, 0
        target = params.get("new_dtype", self.avals[inputs[0]].dtype)
        limit = EXACT_HALF if np.dtype(target) == np.float16 else EXACT_BITS
        if self.p.exact and whole + part > limit and np.dtype(target).kind in "fc":
            return None
        return whole, part

    # --- fitting one value to another ---

    def fit(self, i, shape, dtype, keep_scalar=False):
        """Convert value i to this shape and dtype; None if that is impossible."""
        a = self.avals[i]
        if a.dtype != dtype:
            i = self.convert(i, dtype)
            if i is None:
                return None
        if a.shape == shape or (keep_scalar and a.shape == ()):
            return i
        if a.size == prod(shape) and self.chance(3):
            return self.step("reshape", i, new_sizes=tuple(shape), dimensions=None)
        dims, at = [], 0
        for n in a.shape:
            free = [d for d in range(at, len(shape)) if n in (1, shape[d])]
            if not free:
                break
            d = self.pick(free)
            dims.append(d)
            at = d + 1
        if len(dims) == len(a.shape):
            return self.step(
                "broadcast_in_dim", i, shape=tuple(shape), broadcast_dimensions=tuple(dims)
            )
        if a.size == prod(shape):
            return self.step("reshape", i, new_sizes=tuple(shape), dimensions=None)
        name = (
            "reduce_or"
            if dtype.kind == "b"
            else "reduce_sum"
            if dtype.kind == "c"
            else "reduce_max"
        )
        if a.size == 0:
            return None
        i = self.step(name, i, axes=tuple(range(a.ndim)))
        if i is None:
            return None
        return (
            i
            if keep_scalar
            else self.step("broadcast_in_dim", i, shape=tuple(shape), broadcast_dimensions=())
        )

    def convert(self, i, dtype):
        return self.step("convert_element_type", i, new_dtype=dtype, weak_type=False)

    # --- kinds of step ---

    def map(self):
        x = self.value()
        a = self.avals[x]
        kind = a.dtype.kind
        names = BY_KIND[kind]
        if not self.p.exact and kind in "fc" and self.chance(2):
            names = WILD if kind == "f" else WILD_COMPLEX
        op = self.pick(names)
        if self.chance(5):
            return self.select(x)
        if self.chance(6):
            op = self.pick(COMPARE[:2] if kind == "c" else COMPARE)
            if kind == "b":
                op = "eq"
        arity = ARITY.get(op, 2)
        inputs = [x]
        for _ in range(arity - 1):
            y = self.fit(self.value(), a.shape, a.dtype, keep_scalar=not self.chance(3))
            if y is None:
                return None
            inputs.append(y)
        if arity == 2 and self.chance(2):
            inputs.reverse()
        if op == "clamp":
            shapes = [self.avals[i].shape for i in inputs]
            if not (shapes[0] in ((), shapes[1]) and shapes[2] in ((), shapes[1])):
                return None
            inputs = [inputs[1], inputs[0], inputs[2]] if shapes[1] == a.shape else inputs
            inputs = [self.fit(i, a.shape, a.dtype) for i in inputs]
        params = {"y": self.source.integer(1, 3)} if op == "integer_pow" else {}
        return self.step(op, *inputs, **params)

    def select(self, x):
        a = self.avals[x]
        which = self.value(lambda v: v.dtype == B1)
        if which is None:
            which = self.convert(self.value(), B1)
        which = self.fit(which, a.shape, B1, keep_scalar=True)
        y = self.fit(self.value(), a.shape, a.dtype)
        if which is None or y is None:
            return None
        return self.step("select_n", which, x, y)

    def view(self):
        x = self.value(lambda v: v.ndim > 0)
        if x is None:
            return None
        a = self.avals[x]
        kind = self.pick(
            ["transpose", "slice", "rev", "reshape", "broadcast_in_dim", "squeeze", "slice"]
        )
        if kind == "transpose":
            order = list(range(a.ndim))
            for i in range(a.ndim - 1, 0, -1):
                j = self.source.integer(0, i)
                order[i], order[j] = order[j], order[i]
            return self.step(kind, x, permutation=tuple(order))
        if kind == "rev":
            dims = tuple(d for d in range(a.ndim) if self.chance(2))
            return self.step(kind, x, dimensions=dims)
        if kind == "squeeze":
            ones = tuple(d for d in range(a.ndim) if a.shape[d] == 1 and not self.chance(3))
            return self.step(kind, x, dimensions=ones)
        if kind == "slice":
            start, limit, steps = [], [], []
            for n in a.shape:
                start.append(self.source.integer(0, n // 2))
                limit.append(n - self.source.integer(0, (n - start[-1]) // 2))
                steps.append(self.pick([1, 1, 1, 2, 3]))
            strides = None if all(s == 1 for s in steps) else tuple(steps)
            return self.step(
                kind, x, start_indices=tuple(start), limit_indices=tuple(limit), strides=strides
            )
        if kind == "reshape":
            return self.step(kind, x, new_sizes=self.factored(a.size), dimensions=None)
        shape = list(a.shape)
        dims = list(range(a.ndim))
        at = self.source.integer(0, a.ndim)
        shape.insert(at, self.pick([1, 2, 3, 5]))
        dims = [d + (d >= at) for d in dims]
        shape = [
            self.pick([1, 4]) if n == 1 and d != at and self.chance(2) else n
            for d, n in enumerate(shape)
        ]
        return self.step(kind, x, shape=tuple(shape), broadcast_dimensions=tuple(dims))

    def factored(self, size):
        if size == 0:
            return self.pick([(0,), (0, 3), (2, 0, 1)])
        out = []
        while size > 1 and len(out) < 3:
            n = self.pick([n for n in range(2, min(size, 400) + 1) if size % n == 0] or [size])
            out.append(n)
            size //= n
        if size > 1:
            out.append(size)
        if self.chance(3):
            out.insert(self.source.integer(0, len(out)), 1)
        return tuple(out)

    def reduce(self):
        x = self.value(lambda v: v.ndim > 0)
        if x is None:
            return None
        a = self.avals[x]
        axes = tuple(d for d in range(a.ndim) if self.chance(2))
        if not axes and not self.chance(6):
            axes = (self.source.integer(0, a.ndim - 1),)
        op = "reduce_" + self.pick(REDUCE[a.dtype.kind])
        y = self.step(op, x, axes=axes)
        if y is not None and self.chance(2):  # back over the row, as in softmax
            remaining_axes = tuple(d for d in range(a.ndim) if d not in axes)
            return self.step(
                "broadcast_in_dim", y, shape=a.shape, broadcast_dimensions=remaining_axes
            )
        return y

    def iota(self):
        shape = self.pick([s for s in self.shapes if s])
        dimension = self.source.integer(0, len(shape) - 1)
        return self.step("iota", dtype=self.pick([I4, F4]), shape=shape, dimension=dimension)

    def assemble(self):
        x = self.value(lambda v: v.ndim > 0)
        if x is None:
            return None
        a = self.avals[x]
        if self.chance(2):
            config = []
            for _ in a.shape:
                config.append(
                    tuple(
                        [
                            self.source.integer(-1, 2),
                            self.source.integer(-1, 2),
                            self.pick([0, 0, 1]),
                        ]
                    )
                )
            fill = self.fit(self.value(), (), a.dtype)
            if fill is None or any(
                n + p + q + max(0, n - 1) * m < 0
                for n, (p, q, m) in zip(a.shape, config, strict=True)
            ):
                return None
            return self.step("pad", x, fill, padding_config=tuple(config))
        inputs = [x]
        for _ in range(self.source.integer(1, 2)):
            y = self.fit(self.value(), a.shape, a.dtype)
            if y is None:
                return None
            inputs.append(y)
        return self.step("concatenate", *inputs, dimension=self.source.integer(0, a.ndim - 1))

    def opaque(self):
        x = self.value(lambda v: v.ndim > 0 and v.dtype.kind in "fi" and v.size > 0)
        if x is None:
            return None
        a = self.avals[x]
        axis = self.source.integer(0, a.ndim - 1)
        op = self.pick(["cumsum", "cummax", "sort", "argmax", "top_k", "sort2"])
        if op in ("cumsum", "cummax"):
            return self.step(op, x, axis=axis, reverse=self.chance(2))
        if op == "argmax":
            return self.step(op, x, axes=(axis,), index_dtype=I4)
        if op == "top_k":
            return self.step(op, x, k=self.source.integer(1, a.shape[axis]), axis=axis)
        if op == "sort2":
            y = self.fit(self.value(), a.shape, I4)
            if y is None:
                return None
            return self.step("sort", x, y, dimension=axis, is_stable=True, num_keys=1)
        return self.step("sort", x, dimension=axis, is_stable=True, num_keys=1)

    def row_idiom(self):
        """Like softmax and normalization: reduce, broadcast, combine, and reduce again."""
        x = self.value(lambda v: v.ndim > 0 and v.dtype.kind == "f" and v.size > 0)
        if x is None:
            return None
        a = self.avals[x]
        first = self.source.integer(0, a.ndim - 1)
        axes = tuple(range(first, a.ndim)) if not self.chance(3) else (first,)
        remaining_axes = tuple(d for d in range(a.ndim) if d not in axes)
        for _ in range(self.source.integer(1, 2)):
            m = self.step(self.pick(["reduce_max", "reduce_sum", "reduce_min"]), x, axes=axes)
            if m is None:
                return None
            wide = self.step(
                "broadcast_in_dim", m, shape=a.shape, broadcast_dimensions=remaining_axes
            )
            x = self.step(self.pick(["sub", "max", "add"]), x, wide)
            if x is not None and not self.p.exact:
                x = self.step("exp", self.step("neg", self.step("abs", x)))
            if x is None:
                return None
        return x

    # --- the whole ---

    def run(self, length):
        dtype = self.dtype()
        for _ in range(self.source.integer(1, 3)):
            self.leaf(self.pick(self.shapes), dtype if self.chance(2) else self.dtype())
        for _ in range(self.source.integer(0, 2)):
            self.literal(self.dtype())
        moves = [
            self.map, self.map, self.map, self.view, self.view, self.reduce, self.map, self.view,
            self.reduce, self.assemble, self.iota, self.row_idiom, self.row_idiom, self.opaque,
        ]  # fmt: skip
        for _ in range(self.source.integer(1, length)):
            self.pick(moves)()  # a step that is refused leaves dead code, which is tested as well
        p = self.p
        computed = list(range(len(p.leaves), len(self.avals)))
        if not computed:
            self.step("copy" if self.avals[0].dtype.kind != "" else "", 0)
            computed = [len(self.avals) - 1]
        p.outputs = [computed[-1]]
        for _ in range(self.source.integer(0, 2)):
            p.outputs.append(self.pick(list(range(len(self.avals)))))
        for _ in range(self.source.integer(0, 2)):
            p.held.append(self.pick(computed))
        if self.chance(3):
            p.looked.append(self.pick(list(range(len(p.steps)))))
        if self.chance(3):
            a = self.source.integer(0, len(p.steps) - 1)
            p.called = (a, self.source.integer(a, len(p.steps)))
        return p


def make_program(source, exact=True, length=10, large=False):
    """Return a random program. With large arrays, its kernels have several blocks, chunks and
    tiles.
    """
    return _ProgramGenerator(source, exact, large).run(length)
