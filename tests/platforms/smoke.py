"""A smoke test of 81 cases, with a digest of the results of each.

As a program, it prints a line for each case: its name, the digest, and "ok" or what is wrong. It
exits with 1 if a case differs from NumPy, or from the digests in `digests.txt`:

    python tests/platforms/smoke.py [--write] [CASE ...]

It needs nothing but accnp, so that it runs in an environment without pytest, and under an emulator.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import accnp as jax
import accnp.numpy as jnp
from accnp import lax, random

DIGESTS = Path(__file__).with_name("digests.txt")
# Results of LAPACK and of NumPy's FFT, whose bits depend on the machine.
FROM_LIBRARIES = frozenset({"svd", "fft"})
LENGTHS = (7, 1000, 100003)


class Case(NamedTuple):
    """A function without arguments, its result by NumPy (None: not compared), and how much both may
    differ."""

    name: str
    run: Callable[[], Any]
    wanted: Any = None
    rtol: float = 2e-5


def cases() -> Iterator[Case]:
    """Yield all cases. The random numbers of one depend on those before it."""
    r = np.random.default_rng(0)
    for n in LENGTHS:
        yield from _vectors(n, r)
    yield from _matrices(r.standard_normal((200, 300)).astype("f4"))


def _vectors(n: int, r: np.random.Generator) -> Iterator[Case]:
    x = r.standard_normal(n).astype("f4")
    a = jnp.asarray(x)
    d = x.astype("f8")
    key = random.PRNGKey(1)
    i = r.integers(-1000, 1000, n).astype("i4")
    k = jnp.asarray(i)
    yield Case(f"fused{n}", lambda: a * a + a * 2 - 1, x * x + x * 2 - 1)
    yield Case(f"exp{n}", lambda: jnp.exp(a), np.exp(x))
    yield Case(f"sincos{n}", lambda: jnp.sin(a) + jnp.cos(3 * a), np.sin(x) + np.cos(3 * x))
    yield Case(f"tanhlog{n}", lambda: jnp.tanh(a) * jnp.log1p(a * a), np.tanh(x) * np.log1p(x * x))
    yield Case(f"pow{n}", lambda: jnp.abs(a) ** (a * 2), np.abs(x) ** (x * 2))
    yield Case(f"where{n}", lambda: jnp.where(a > 0, a, a / 3), np.where(x > 0, x, x / 3))
    yield Case(f"sum{n}", lambda: a.sum(), x.sum(dtype="f8"), 1e-4)
    yield Case(
        f"minmaxarg{n}", lambda: [a.max(), a.min(), a.argmax()], [x.max(), x.min(), x.argmax()]
    )
    yield Case(f"cumsum{n}", lambda: jnp.cumsum(a), np.cumsum(d), 1e-3)
    yield Case(f"sort{n}", lambda: jnp.sort(a), np.sort(x))
    yield Case(f"argsort{n}", lambda: jnp.argsort(a), np.argsort(x, kind="stable"))
    yield Case(f"int{n}", lambda: (k * 7 // 3) % 11 + (k << 2), (i * 7 // 3) % 11 + (i << 2))
    yield Case(f"isort{n}", lambda: jnp.sort(k), np.sort(i))
    yield Case(f"half{n}", lambda: [a.astype(jnp.bfloat16) * 3, a.astype(jnp.float16) + 1])
    yield Case(f"gather{n}", lambda: a[jnp.asarray(np.abs(i) % n)], x[np.abs(i) % n])
    yield Case(f"bits{n}", lambda: random.bits(key, (n,)))
    yield Case(f"normal{n}", lambda: random.normal(key, (n,)))
    yield Case(f"uniform{n}", lambda: random.uniform(key, (n,)))

    def doubles() -> Any:
        with jax.enable_x64(True):
            b = jnp.asarray(d)
            return jnp.exp(b) + jnp.sqrt(jnp.abs(b))

    def complex_numbers() -> Any:
        with jax.enable_x64(True):
            b = jnp.asarray(d)
            return (b + 1j) * (b - 2j)

    yield Case(f"doubles{n}", doubles, np.exp(d) + np.sqrt(abs(d)), 1e-12)
    yield Case(f"complex{n}", complex_numbers, (d + 1j) * (d - 2j), 1e-12)


def _matrices(m: np.ndarray) -> Iterator[Case]:
    a = jnp.asarray(m)
    row, small = a[0, :8], a[:50, :50]
    e = np.exp(m)
    yield Case("softmax", lambda: jax.nn.softmax(a), e / e.sum(1, keepdims=True))
    yield Case("matmul", lambda: a @ a.T, m @ m.T, 1e-3)
    yield Case(
        "matmul_jit", lambda: jax.jit(lambda x: jnp.tanh(x @ x.T) + 1)(a), np.tanh(m @ m.T) + 1,
        1e-3,
    )  # fmt: skip
    yield Case("matmul_bf16", lambda: a.astype(jnp.bfloat16) @ a.T.astype(jnp.bfloat16))
    yield Case("matmul_small", lambda: a[:3, :5] @ a[:5, :4], m[:3, :5] @ m[:5, :4], 1e-4)
    yield Case(
        "solve", lambda: jnp.linalg.solve(small, a[:50, 0]),
        np.linalg.solve(m[:50, :50], m[:50, 0]), 1e-1,
    )  # fmt: skip
    yield Case(
        "svd", lambda: jnp.linalg.svd(a[:20, :30], compute_uv=False),
        np.linalg.svd(m[:20, :30], compute_uv=False), 1e-4,
    )  # fmt: skip
    yield Case("grad", lambda: jax.grad(lambda x: jnp.tanh(x).sum())(a), 1 - np.tanh(m) ** 2, 1e-3)
    yield Case("vmap", lambda: jax.vmap(jnp.dot, (0, None))(a, a[0]), m @ m[0], 1e-3)
    yield Case("scan", lambda: lax.scan(lambda c, x: (c * 0.5 + x, c.sum()), a[0], a))
    yield Case("while", lambda: lax.while_loop(lambda c: c < 100, lambda c: c + 7, 1), 106)
    yield Case("fori", lambda: lax.fori_loop(0, 50, lambda i, c: c + jnp.sin(c) * i, jnp.ones(4)))
    yield Case("cond", lambda: lax.cond(True, lambda x: x + 1, lambda x: x - 1, a), m + 1)
    yield Case("hessian", lambda: jax.hessian(lambda v: (v**3).sum())(row), np.diag(6 * m[0, :8]))
    yield Case(
        "conv",
        lambda: lax.conv(
            a.reshape(1, 4, 50, 300)[..., :60], a[:8, :36].reshape(8, 4, 3, 3), (1, 1), "SAME"
        ),
    )
    yield Case("fft", lambda: jnp.fft.fft(a[:16, :64]), np.fft.fft(m[:16, :64]), 1e-3)
    yield Case("scatter", lambda: a.at[jnp.array([1, 1, 5])].add(1.0))
    yield Case("einsum", lambda: jnp.einsum("ij,kj->ik", a, a), m @ m.T, 1e-3)

    def train() -> Any:
        step = jax.jit(lambda w: w - 0.1 * jax.grad(lambda w: ((a @ w - 1) ** 2).mean())(w))
        w = jnp.zeros(300)
        for _ in range(20):
            w = step(w)
        return w

    yield Case("train", train)
    yield Case(
        "special", lambda: [jax.scipy.special.erf(a), jax.scipy.special.gammaln(jnp.abs(a) + 0.1)]
    )
    yield Case("print", lambda: np.frombuffer(str(a[:2, :3]).encode(), "u1"))


def run(case: Case) -> tuple[str, str]:
    """Return the digest of a case, and "ok" or what is wrong."""
    try:
        values = [np.asarray(v) for v in jax.tree.leaves(case.run())]
    except Exception as error:
        traceback.print_exc()
        return "-", f"{type(error).__name__}: {error}"
    digest = hashlib.sha256(b"".join(v.tobytes() for v in values)).hexdigest()[:12]
    if case.wanted is not None:
        references = case.wanted if isinstance(case.wanted, list) else [case.wanted]
        for actual, expected in zip(values, references, strict=True):
            if not np.allclose(actual, expected, rtol=case.rtol, atol=1e-5, equal_nan=True):
                return (
                    digest,
                    f"differs from NumPy: {np.ravel(actual)[:3]} {np.ravel(expected)[:3]}",
                )
    return digest, "ok"


def recorded() -> dict[str, str]:
    """Return the digests in the file, by case."""
    lines = DIGESTS.read_text(encoding="utf-8").splitlines() if DIGESTS.exists() else []
    return dict(line.split() for line in lines if not line.startswith("#"))


def main(arguments: list[str]) -> int:
    """Run the cases that are named, or all; return the exit code."""
    write = "--write" in arguments
    names = {x for x in arguments if not x.startswith("-")}
    known, digests, wrong = recorded(), {}, 0
    print("#", platform.machine(), platform.python_version(), "numpy", np.__version__, flush=True)
    begin = time.perf_counter()
    for case in cases():
        if names and case.name not in names:
            continue
        digest, note = run(case)
        if case.name not in FROM_LIBRARIES:
            digests[case.name] = digest
            if digest == known.get(case.name):
                note = "ok"  # NumPy's products are wrong now and then under an emulator
            elif note == "ok" and not write:
                note = f"other bits: recorded {known.get(case.name)}"
        wrong += note != "ok"
        print(f"{case.name:16} {digest:12} {note}", flush=True)
    print(f"# {wrong} wrong, {time.perf_counter() - begin:.1f} s")
    if write:
        head = "# The first 12 digits of SHA-256 of the results of smoke.py, on all machines."
        lines = [head, *[f"{name} {digest}" for name, digest in digests.items()]]
        DIGESTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
