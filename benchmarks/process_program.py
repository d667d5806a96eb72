"""The program that `benchmarks/processes.py` starts in two processes: one case, for one library.

Usage: `process_program.py LIBRARY CASE RANK PORT`, where LIBRARY is `accnp`, `jax` or `mpi4py`.
JAX's processes use RANK and PORT to connect. With "alone" as RANK, the program does the work of one
process without messages. The first process prints the seconds of one call, the minimum of several
runs.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIDE, BATCH, STEPS = 2048, 256, 5
LOOP = 2000  # messages of a loop


def fastest(call: Callable[[], Any], count: int, runs: int) -> float:
    """Return the seconds of one of `count` calls, as the minimum of several runs."""
    call()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return min(times)


def mpi_case(case: str) -> float:
    """Run a case with mpi4py alone, the baseline of the comparison."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    other = 1 - comm.rank
    kind, _, size = case.partition(" ")
    x = np.ones(int(size) // 4, np.float32)
    out = np.empty_like(x)
    count, runs = (500, 30) if x.nbytes < 1000 else (1, 15)
    if kind == "psum":
        return fastest(lambda: comm.Allreduce(x, out), count, runs)
    return fastest(lambda: comm.Sendrecv(x, other, recvbuf=out, source=other), count, runs)


class Cases:
    """The cases of accnp and JAX, whose programs are the same."""

    def __init__(self, m: Any, alone: bool) -> None:
        self.m, self.alone = m, alone
        self.n = 1 if alone else 2
        self.mesh = m.make_mesh((self.n,), ("x",), (m.sharding.AxisType.Auto,))
        self.ring = [(i, (i + 1) % self.n) for i in range(self.n)]

    def array(self, local: np.ndarray, *spec: Any) -> Any:
        """Return an array made of one shard per process."""
        m = self.m
        sharding = m.NamedSharding(self.mesh, m.P(*spec))
        return m.make_array_from_process_local_data(sharding, local)

    def mapped(self, f: Any, ins: Any, outs: Any) -> Any:
        m = self.m
        return m.jit(m.shard_map(f, mesh=self.mesh, in_specs=ins, out_specs=outs, check_vma=False))

    def message(self, kind: str, nbytes: int) -> float:
        m, P = self.m, self.m.P
        x = self.array(np.ones(nbytes // 4, np.float32), "x")
        one = self.one(kind)
        f = self.mapped(one, P("x"), P() if kind == "psum" else P("x"))
        count, runs = (100, 50) if nbytes < 1000 else (1, 12)
        return fastest(lambda: m.block_until_ready(f(x)), count, runs)

    def one(self, kind: str) -> Any:
        lax = self.m.lax
        if kind == "psum":
            return lambda x: lax.psum(x, "x")
        return lambda x: lax.ppermute(x, "x", self.ring)

    def loop(self, kind: str) -> float:
        """Send a message of 8 B in each iteration of a compiled loop."""
        m, P = self.m, self.m.P
        one = self.one(kind)
        scale = np.float32(0.5 if kind == "psum" else 1)
        f = self.mapped(
            lambda x: m.lax.fori_loop(0, LOOP, lambda i, c: one(c) * scale, x), P("x"), P("x")
        )
        x = self.array(np.ones(2, np.float32), "x")
        return fastest(lambda: m.block_until_ready(f(x)), 1, 30) / LOOP

    def stencil(self) -> float:
        """Diffusion: each process has some rows of a square and exchanges edge rows with its
        neighbors."""
        m, P = self.m, self.m.P
        jnp = m.numpy
        back = [(b, a) for a, b in self.ring]

        def step(_: Any, x: Any) -> Any:
            above, below = x[-1:], x[:1]
            if not self.alone:
                above = m.lax.ppermute(above, "x", self.ring)
                below = m.lax.ppermute(below, "x", back)
            y = jnp.concatenate([above, x, below], 0)
            y = jnp.concatenate([y[:, -1:], y, y[:, :1]], 1)
            near = y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]
            return x + np.float32(0.1) * (near - 4 * x)

        def steps(x: Any) -> Any:
            return m.lax.fori_loop(0, STEPS, step, x)

        values = np.random.default_rng(0).uniform(0, 1, (SIDE, SIDE)).astype(np.float32)
        if self.alone:
            f, x = m.jit(steps), jnp.asarray(values)
        else:
            f, x = self.mapped(steps, P("x"), P("x")), self.array(values, "x")
        return fastest(lambda: m.block_until_ready(f(x)), 1, 25) / STEPS

    def mlp(self) -> float:
        """Training steps of a 784-512-10 network with 256 examples per process."""
        m, P = self.m, self.m.P
        jnp = m.numpy
        random = np.random.default_rng(0)
        shapes = ((784, 512), (512,), (512, 10), (10,))
        w = tuple([(0.05 * random.standard_normal(s)).astype(np.float32) for s in shapes])
        images = random.uniform(0, 1, (BATCH, 784)).astype(np.float32)
        labels = random.integers(0, 10, BATCH).astype(np.int32)

        def loss(w: Any, x: Any, y: Any) -> Any:
            a, b, c, d = w
            scores = jnp.tanh(x @ a + b) @ c + d
            return -(m.nn.log_softmax(scores) * m.nn.one_hot(y, 10)).sum(1).mean()

        def step(w: Any, x: Any, y: Any) -> Any:
            g = m.grad(loss)(w, x, y)
            if not self.alone:
                g = m.lax.pmean(g, "x")
            return tuple([a - np.float32(0.1) * b for a, b in zip(w, g, strict=True)])

        if self.alone:
            f, x, y = m.jit(step), jnp.asarray(images), jnp.asarray(labels)
            w = m.tree.map(jnp.asarray, w)
        else:
            f = self.mapped(step, (P(), P("x"), P("x")), P())
            x, y = self.array(images, "x"), self.array(labels, "x")
            w = tuple([self.array(v) for v in w])
        return fastest(lambda: m.block_until_ready(f(w, x, y)), 1, 500)


def measure(m: Any, case: str, alone: bool) -> float:
    cases = Cases(m, alone)
    kind, _, rest = case.partition(" ")
    if rest == "loop":
        return cases.loop(kind)
    if rest:
        return cases.message(kind, int(rest))
    return cases.stencil() if case == "stencil" else cases.mlp()


def main() -> None:
    library, case, rank, port = sys.argv[1:]
    alone = rank == "alone"
    if library == "mpi4py":
        from mpi4py import MPI

        seconds, first = mpi_case(case), MPI.COMM_WORLD.rank == 0
    else:
        m = importlib.import_module(library)
        if not alone and library == "jax":
            m.distributed.initialize(f"127.0.0.1:{port}", 2, int(rank))
        elif not alone:
            m.distributed.initialize()
        seconds, first = measure(m, case, alone), m.process_index() == 0
    if first:
        print("seconds", seconds)  # others print to stdout, too
    sys.stdout.flush()


main()
