"""Random programs as source code: a seed gives a `Program` with leaves, and statements over v0, v1,
...

Nothing is computed here: each statement is drawn from the templates of
`statement_templates.py` and kept if accnp can record it. A program that fails can be reduced to
the statements that it needs.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from chance.statement_templates import FAMILIES, FAMILY_WEIGHTS, Template
from chance.values import NARROW, WIDE, dtype_of, kind_of, leaf

import accnp
import accnp.numpy as jnp
from accnp import lax, nn, ops

NAMESPACE = {"jax": accnp, "jnp": jnp, "lax": lax, "nn": nn, "ops": ops, "np": np, "leaf": leaf}
HEADER = """import numpy as np
import accnp as jax, accnp.numpy as jnp
from accnp import lax, nn, ops
from chance.values import leaf  # tests/ is on the path
"""
# Sizes around where kernels, blocks of threads and ways to compute change.
SIZES = [1, 2, 3, 5, 7, 8, 16, 30, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 500, 511, 512, 513,
         1000, 1023, 1024, 1025, 2047, 2048, 2049, 3000, 4095, 4096, 4097, 8191, 8192, 8193, 10000,
         16384, 32767, 32768, 32769, 65535, 65536, 65537, 100_003, 131072, 262143, 262145, 1 << 20,
         (1 << 20) + 1, 3_000_001]  # fmt: skip
EXACT, ROUNDED, DISCONTINUOUS = (
    0,
    1,
    2,
)  # on a GPU: the processor's bits, its values, another answer


class Value(NamedTuple):
    """A variable of a program."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    how: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Line(NamedTuple):
    """A statement: the variable that it assigns, its text, and the variables that it reads."""

    name: str
    text: str
    reads: tuple[str, ...]


class Program(NamedTuple):
    seed: int
    x64: bool
    leaves: list[tuple[int, tuple[int, ...], str, bool]]
    lines: list[Line]
    outputs: list[str]
    how: dict[str, int]

    def arrays(self) -> list[np.ndarray]:
        return [leaf(*x) for x in self.leaves]

    def cut(self, output: str) -> Program:
        """Return the program with one output, and the statements that it needs."""
        need, lines = {output}, []
        for line in reversed(self.lines):
            if line.name in need:
                lines.insert(0, line)
                need |= set(line.reads)
        return self._replace(lines=lines, outputs=[output])

    def text(self) -> str:
        """Return the source of the program as a function of the leaves."""
        names = ", ".join([f"v{i}" for i in range(len(self.leaves))])
        lines = [f"    {x.name} = {x.text}\n" for x in self.lines]
        return f"def f({names}):\n{''.join(lines)}    return {', '.join(self.outputs)},\n"

    def function(self) -> Callable[..., tuple[Any, ...]]:
        scope = dict(NAMESPACE)
        exec(compile(self.text(), f"<program {self.seed}>", "exec"), scope)
        return scope["f"]

    def reproducer(self) -> str:
        """Return Python source that runs the program on its own."""
        leaves = ", ".join([f"leaf{x}" for x in self.leaves])
        wide = 'jax.config.update("enable_x64", True)\n' if self.x64 else ""
        return f"{HEADER}{wide}\n{self.text()}\nxs = [{leaves}]\n"


class PlaceholderValues:
    """The substitutions for the placeholders of one statement; each is drawn once and then
    reused.
    """

    def __init__(self, maker: ProgramGenerator, template: Template, a: Value) -> None:
        self.maker, self.template, self.r = maker, template, maker.r
        self.a, self.used = a, [a]
        self.axis = self.r.randrange(len(a.shape)) if a.shape else 0
        self.length = a.shape[self.axis] if a.shape else 1
        self.count = self.r.choice([1, 3, 17, 100, 1000, self.length])
        if self.count * a.size // max(self.length, 1) > 2 * maker.most:
            self.count = 3
        self.draws = self.r.randrange(1000)
        self.body = "c"  # what {c} stands for
        self.found: dict[str, str] = {}

    def fill(self, text: str) -> str:
        return re.sub(r"\{([^{}]+)\}", lambda m: self.word(m[1]), text)

    def word(self, hole: str) -> str:
        if hole == "c":
            return self.body
        if hole not in self.found:
            self.found[hole] = (
                self.r.choice(hole.split("|")) if "|" in hole else str(getattr(self, "_" + hole)())
            )
        return self.found[hole]

    def _other(self, fits: Callable[[Value], bool]) -> str:
        other = self.maker.value(fits) or self.a
        self.used.append(other)
        return other.name

    def _a(self) -> str:
        return self.a.name

    def _b(self) -> str:
        def fits(v: Value) -> bool:
            try:
                shape = np.broadcast_shapes(v.shape, self.a.shape)
            except ValueError:
                return False
            return kind_of(v.dtype) in self.template.kinds and math.prod(shape) <= (
                2 * self.maker.most
            )

        return self._other(fits)

    def _t(self) -> str:
        return self._other(lambda v: (v.shape, v.dtype) == (self.a.shape, self.a.dtype))

    _w = _t

    def _j(self) -> str:
        def rest(v: Value) -> tuple[int, ...]:
            return v.shape[: self.axis] + v.shape[self.axis + 1 :]

        return self._other(
            lambda v: (
                v.dtype == self.a.dtype
                and len(v.shape) == len(self.a.shape)
                and rest(v) == rest(self.a)
            )
        )

    def _again(self) -> str:
        return self.r.choice(["", f", {self.a.name}"])

    def _d(self) -> int:
        return self.axis

    def _d2(self) -> int:
        return self.r.randrange(len(self.a.shape))

    def _n(self) -> int:
        return self.length

    def _one(self) -> str:
        return str(self.axis) if self.a.shape else "None"

    def _axes(self) -> str:
        rank = len(self.a.shape)
        if rank == 0 or self.r.random() < 0.15:
            return "None"
        axes = [d for d in range(rank) if self.r.random() < 0.5] or [self.axis]
        self.r.shuffle(axes)
        return str(axes[0] if len(axes) == 1 else tuple(axes))

    def _keep(self) -> str:
        return self.r.choice(["", ", keepdims=True"])

    def _order(self) -> tuple[int, ...]:
        return tuple(self.r.sample(range(len(self.a.shape)), len(self.a.shape)))

    def _cuts(self) -> str:
        return ", ".join([self._cut(n) for n in self.a.shape])

    def _cut(self, n: int) -> str:
        r, k = self.r, self.r.randrange(9)
        if k < 3 or n == 0:
            return ":"
        low = r.randrange(n)
        high = r.randrange(low, n) + 1
        return {3: "::-1", 4: f"{low}:{high}", 5: f"{low}:{high}:{r.choice([2, 3, 5])}",
                6: f"{high - 1}:{low - 1 if low else ''}:{-r.choice([1, 2, 3])}",
                7: str(low), 8: f"{low}:"}[k]  # fmt: skip

    def _factored(self) -> tuple[int, ...]:
        size, out = self.a.size, []
        if size == 0:
            return (0, 3)
        while size > 1 and len(out) < 3:
            n = self.r.choice([n for n in range(2, min(size, 4000) + 1) if size % n == 0] or [size])
            out.append(n)
            size //= n
        out += [size] * (size > 1) + [1] * (self.r.random() < 0.25)
        self.r.shuffle(out)
        return tuple(out)

    def _to(self) -> str:
        name = self.r.choice(self.maker.dtypes[:-1] if "c8" in self.maker.dtypes[-1:] else NARROW)
        return "jnp.bfloat16" if name == "bf16" else repr(name)

    def _wide(self) -> list[tuple[int, int]]:
        return [(self.r.choice([0, 0, 1, 2, 5]), self.r.choice([0, 1, 3])) for _ in self.a.shape]

    def _inner(self) -> list[tuple[int, int, int]]:
        r = self.r
        return [
            (r.choice([-1, 0, 1, 2]), r.choice([-1, 0, 2]), r.choice([0, 0, 1]))
            for _ in self.a.shape
        ]

    def _pre(self) -> str:
        return ":, " * self.axis

    def _places(self, what: str) -> str:
        return f"jnp.asarray(np.random.default_rng({self.draws}).{what})"

    def _idx(self) -> str:
        low = self.r.choice([0, 0, -self.length])
        return self._places(f"integers({low}, {self.length}, {self.count})")

    def _far(self) -> str:
        n = 2 * self.length
        return self._places(f"integers({-n}, {n}, {self.count})")

    def _once(self) -> str:
        self.count = min(self.count, self.length)
        return self._places(f"permutation({self.length})[:{self.count}]")

    def _seg(self) -> str:
        return self._places(f"integers(0, {self.r.choice([2, 40])}, {self.a.shape[0]})")

    def _u(self) -> str:
        front, behind = self.a.shape[: self.axis], self.a.shape[self.axis + 1 :]
        shape = (*front, self.count, *behind)
        there = self.maker.value(lambda v: (v.shape, v.dtype) == (shape, self.a.dtype))
        if there:
            self.used.append(there)
            return there.name
        return self._places(f"integers(-3, 4, {shape})") + f".astype({self.a.name}.dtype)"

    def _s(self) -> str:
        """A matrix view of the value."""
        *front, rows, columns = (1, 1, *self.a.shape)[-max(2, len(self.a.shape)) :]
        if len(self.a.shape) < 2:
            return f"{self.a.name}.reshape(1, -1)[:, :700]"
        cuts = ["0"] * len(front) + [f":{min(rows, 700)}", f":{min(columns, 700)}"]
        return f"{self.a.name}[{', '.join(cuts)}]"

    def _f(self) -> str:
        return f"{self.word('s')}.astype('f4')"

    def _low(self) -> str:
        return f"np.array(-np.inf, {self.a.name}.dtype)"

    def _zero(self) -> str:
        return f"np.array(0, {self.a.name}.dtype)"

    def _key(self) -> str:
        return f"jax.random.{self.r.choice(['key', 'PRNGKey'])}({self.draws})"

    def _count(self) -> int:
        return self.r.randint(0, 5)

    def _fix(self) -> str:
        return f"(lambda z: z.astype({self.a.name}.dtype))"

    def _e(self) -> str:
        """An expression in c, one or two operations deep."""
        self.body = "c"
        for _ in range(self.r.choice([1, 2, 2])):
            template = self.r.choice(FAMILIES["body"])
            for hole in [h for h in self.found if "|" in h]:
                del self.found[hole]
            self.body = f"({self.fill(template.text)})"
        body, self.body = self.body, "c"
        return body

    _e2 = _e


class ProgramGenerator:
    """Draws one program. `small` is for interpreters; `most` is the number of elements of the
    largest leaf.
    """

    def __init__(self, seed: int, small: bool = False, most: int | None = None) -> None:
        self.r = random.Random(seed)
        self.x64 = self.r.random() < 0.3
        self.small = small
        self.most = most or (300 if small else self.r.choice([300, 5000, 300_000, 1 << 20]))
        self.dtypes = [*NARROW[:-1], *(WIDE if self.x64 else []), "c8"]
        self.about = self.r.choice(["everything", *FAMILY_WEIGHTS])
        self.values: list[Value] = []
        self.lines: list[Line] = []
        self.leaves: list[tuple[int, tuple[int, ...], str, bool]] = []

    def make(self, seed: int) -> Program:
        with accnp.enable_x64(self.x64):
            self._leaves()
            families = list(FAMILY_WEIGHTS[self.about])
            weights = list(FAMILY_WEIGHTS[self.about].values())
            expected = self.r.randint(1, 8)
            for _ in range(40):
                if len(self.lines) >= expected:
                    break
                self.statement(self.r.choices(families, weights)[0])
            if not self.lines:
                self._take("v0 + 1", self.values[:1], "")
        names = [x.name for x in self.lines]
        outputs = [names[-1], *[n for n in names[:-1] if self.r.random() < 0.3]]
        how = {v.name: v.how for v in self.values}
        return Program(seed, self.x64, self.leaves, self.lines, outputs, how)

    def _shape(self) -> tuple[int, ...]:
        r, left = self.r, self.most
        rank = r.choice([0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5])
        shape = [0] * rank
        for d in r.sample(range(rank), rank):
            fits = [n for n in SIZES if n <= left]
            near = r.random() < 0.35
            shape[d] = r.choice(fits[-8:] if near else fits[: max(1, len(fits) * 2 // 3)])
            left = max(1, left // shape[d])
        if rank and r.random() < 0.2:  # axes of one element are everywhere
            shape.insert(r.randint(0, rank), 1)
        if rank and r.random() < 0.03:
            shape[r.randrange(len(shape))] = 0
        return tuple(shape)

    def _like(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that usually broadcasts with another one."""
        r = self.r
        if not shape or r.random() < 0.5:
            return shape[::-1] if r.random() < 0.15 else shape
        out = tuple(1 if r.random() < 0.4 else n for n in shape)
        return out[r.randrange(len(out)) :] if r.random() < 0.5 else out

    def _leaves(self) -> None:
        r, base = self.r, self._shape()
        first = "f4" if r.random() < 0.5 else r.choice(self.dtypes)
        for i in range(r.randint(1, 4)):
            name = first if r.random() < 0.75 else r.choice(self.dtypes)
            entry = (r.randrange(1 << 30), self._like(base) if i else base, name, r.random() < 0.12)
            self.leaves.append(entry)
            self.values.append(Value(f"v{i}", entry[1], dtype_of(name), EXACT))

    def value(self, fits: Callable[[Value], bool]) -> Value | None:
        """Return a suitable variable, usually one of the last."""
        fitting = [v for v in self.values if fits(v)]
        if not fitting:
            return None
        return self.r.choice(fitting[-4:] if self.r.random() < 0.6 else fitting)

    def statement(self, family: str) -> None:
        template = self.r.choice(FAMILIES[family])
        most = 300_000 if family in ("loop", "derived") else 4 * self.most
        a = self.value(lambda v: kind_of(v.dtype) in template.kinds and v.size <= most)
        if a is None:
            return
        holes = PlaceholderValues(self, template, a)
        try:
            text = holes.fill(template.text)
        except (ValueError, IndexError):  # an axis of a number
            return
        self._take(text, holes.used, template.flags)

    def _take(self, text: str, used: list[Value], flags: str) -> None:
        """Keep a statement if it can be recorded and its result is not too large."""
        used = list(dict.fromkeys([v for v in used if re.search(rf"\b{v.name}\b", text)]))
        names = [v.name for v in used]
        structs = [accnp.ShapeDtypeStruct(v.shape, v.dtype) for v in used]
        try:
            result = accnp.eval_shape(
                lambda *xs: eval(text, {**NAMESPACE, **dict(zip(names, xs))}), *structs
            )
            shape, dtype = tuple(result.shape), np.dtype(result.dtype)
        except Exception:  # refused: another one is drawn
            return
        if math.prod(shape) > 2 * self.most:
            return
        how = max([v.how for v in used], default=EXACT)
        if "l" in flags and kind_of(dtype) in "fc":
            how = max(how, ROUNDED)
        if how and ("d" in flags or (kind_of(dtype) in "iub" and flags != "l")):
            how = DISCONTINUOUS
        self.lines.append(Line(f"v{len(self.values)}", text, tuple(names)))
        self.values.append(Value(f"v{len(self.values)}", shape, dtype, how))


def generate_program(seed: int, small: bool = False, most: int | None = None) -> Program:
    return ProgramGenerator(seed, small, most).make(seed)
