"""Random programs as source code: nested elementwise functions, reductions, indices, products,
control flow and transformations, on real, complex, empty and 0-d arrays.

A seed gives an expression over `jnp`, `lax`, `jax` and the arrays of `arrays()`, for both
libraries.
"""

from __future__ import annotations

import random
import re

import numpy as np

# Each kind of value by its templates. `{v}` is a value of kind v; in `{v:m}` a new variable of kind
# m, written `@`, is there too. v, m: real, of shapes (3,) and (3, 3); s: 0-d; c: complex (3,);
# e: empty (0, 3); i: places; b: bools.
PARTS = {
    "v": """
        jnp.sin({v}*0.5) | jnp.tanh({v}) | jnp.exp({v}*0.3) | jnp.abs({v}) | ({v}+{v}) | ({v}*{v})
        ({v}/(2+{v}**2)) | ({v}*{n}) | ({n}-{v}) | ({v}*{s}) | ({m} @ {v}) | {m}.sum(0)
        {m}.max(1)
        {m}.prod(0) | jnp.where({b},{v},{v}) | jnp.where({b},{v},0.) | ({v})[{i}] | ({v})[::-1]
        jnp.asarray({v}).at[1].set({s}) | jnp.asarray({v}).at[::2].add({s}) | jnp.cumsum({v})
        jnp.sort({v}) | jnp.cumprod({v}) | {c}.real | jnp.abs({c}+3) | ({e}.sum(0)+{v})
        jnp.concatenate([{v}[:2],{v}[2:]]) | lax.cond({s}>0,lambda @: {v:v},lambda @: -@,{v})
        lax.switch(n[0],[lambda @: {v:v},lambda @: @*@],{v}) | lax.map(lambda @: {s:v},{m})
        lax.scan(lambda @,r: (jnp.tanh({v:v})*r,r),{v},{m},reverse=True)[0]
        lax.fori_loop(0,{k},lambda _,@: jnp.sin({v:v})*@,{v})
        jax.grad(lambda @: {s:v})({v})
        (lambda q: jax.jvp(lambda @: {v:v},(q,),(jnp.cos(q),))[1])({v})
        (lambda y,pull: pull(jnp.cos(y))[0])(*jax.vjp(lambda @: {v:v},{v}))
        jax.linearize(lambda @: {v:v},{v})[1](jnp.asarray(w)*1)
        jax.vmap(lambda @: {v:v})({m}).sum(0)
        jax.jit(lambda @: {v:v})({v}) | jax.checkpoint(lambda @: {v:v})({v})
        lax.stop_gradient({v})
        jnp.linalg.solve({m}*0.1+3*jnp.eye(3),{v}) | jnp.einsum('ij,j->i',{m},{v})
        jax.nn.gelu({v})
        jnp.convolve({v},{v},mode='same') | lax.associative_scan(jnp.add,{v})
        jnp.clip({v},-1,{s})
    """,
    "m": """
        jnp.cos({m}) | ({m}+{v}) | ({m} @ {m}) | {m}.T | jnp.stack([{v},{v},{v}])
        jnp.outer({v},{v})
        jax.vmap(lambda @: {v:v})({m}) | jax.vmap(lambda @: {v:v},1,1)({m}) | jnp.sort({m},axis=0)
        jax.jacfwd(lambda @: {v:v})({v}) | jax.jacrev(lambda @: {v:v})({v})
        jnp.cumsum({m},axis=1)
        jax.hessian(lambda @: {s:v})({v}) | jnp.asarray({m}).at[1].set({v})
        jax.nn.softmax({m},axis=0)
        lax.scan(lambda @,r: (jnp.tanh({v:v}),r+@),{v},{m})[1]
    """,
    "s": """
        {v}.sum() | {v}.mean() | jnp.prod({v}) | {v}.max() | jnp.linalg.norm({v}+3) | ({v} @ {v})
        jnp.vdot({c},{c}).real | jax.nn.logsumexp({v}) | {e}.sum() | ({v})[jnp.argmax({v})]
        {m}.trace() | jax.grad(lambda @: {s:s}*1.)({s}*1.) | jnp.median({v}) | jnp.var({v})
        ({s}*{n})
        lax.cond({s}>0,lambda @: {s:s}*1.,lambda @: @*2.,{s}*1.) | jnp.tanh({s})
    """,
    "c": """
        jnp.exp(1j*{v}) | ({c}*{c}) | ({c}+{v}) | {c}.conj() | jnp.cumsum({c}) | jnp.fft.fft({c})
        jnp.where({b},{c},{v}) | jax.jit(lambda @: {c:c})({c}) | ({m} @ {c}) | ({c})[{i}]
        jax.grad(lambda @: jnp.abs({c:c}+2).sum())({c}) | lax.complex({v}*1.,{v}*1.)
        lax.scan(lambda @,r: (jnp.sin({c:c})*@,r),{c},{m})[0]
    """,
    "e": "jnp.sin({e}) | ({e}+{v}) | {m}[:0] | jax.vmap(lambda @: {v:v})({e}) | jnp.sin({m})[i]",
    "i": "n | jnp.argsort({v}) | (n+1)%3 | jnp.arange(3) | np.array([2,0,-1])",
    "b": "({v}>0.1) | ({v}<{v}) | np.array([True,False,True]) | (n==1)",
    "n": "2 | 0.5 | np.float32(0.7) | np.float64(1.3) | jnp.float32(0.3) | True | np.int8(2)",
    "k": "0 | 1 | 3",
}
TEMPLATES = {k: [t.strip() for t in re.split(r"[|\n]", x) if t.strip()] for k, x in PARTS.items()}
LEAVES = {"v": ["x", "w"], "m": ["m"], "s": ["s"], "c": ["c"], "e": ["e"]}
WAYS = [
    "{f}", "{f}", "jax.jit(lambda x, c: {f})(x, c)",
    "jax.value_and_grad(lambda x, m, s, c, e: {total}, (0, 1, 2, 3, 4))(x, m, s, c, e)",
    "jax.jvp(lambda x, m, s, c: {f}, (x, m, s, c), (w, m * 2, s + 1, c * 1j))",
    "jax.vmap(lambda x, s, c: {f})(m, w, jnp.stack([c, c * 2, c.conj()]))",
    "jax.vmap(jax.grad(lambda x, s: {total}, (0, 1)), (1, 0))(m, w)",
    "jax.hessian(lambda x: {total})(x)",
]  # fmt: skip


def arrays() -> dict[str, np.ndarray]:
    """Return the arrays that programs use."""
    return {
        "x": np.array([0.3, -0.7, 1.2]), "w": np.array([1.1, 0.4, -0.6]), "s": np.array(0.8),
        "m": np.arange(9.0).reshape(3, 3) * 0.37 % 1.1 - 0.4, "e": np.zeros((0, 3)),
        "c": np.array([0.3 + 1j, -0.5j, 1.5 - 0.2j]), "n": np.array([1, 2, 0]),
        "i": np.zeros(0, np.int64),
    }  # fmt: skip


class Texts:
    """A random program for a seed."""

    def __init__(self, seed: int, depth: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        f = self.make(self.random.choice("vvvsscme"), depth, LEAVES)
        total = f"(lambda y: (jnp.real(y)*jnp.cos(jnp.arange(y.size)).reshape(y.shape)).sum())({f})"
        self.text = self.random.choice(WAYS).replace("{f}", f).replace("{total}", total)

    def make(self, kind: str, depth: int, known: dict[str, list[str]]) -> str:
        if depth <= 0 and kind in known:
            return self.random.choice(known[kind])
        template = self.random.choice(TEMPLATES[kind])
        self.count += 1
        name = f"a{self.count}"

        def part(match: re.Match[str]) -> str:
            inner, bound = match[1], match[2]
            more = {**known, bound: [name, name, *known[bound]]} if bound else known
            return self.make(inner, depth - 1, more)

        return re.sub(r"\{(\w)(?::(\w))?\}", part, template).replace("@", name)
