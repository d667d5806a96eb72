"""Time training steps and samplers of libraries written for JAX: `python -m benchmarks.libraries`.

Each program runs in one process with JAX, and in one with accnp in place of JAX (`python -m
accnp.as_jax`). The two processes take turns. The first step is measured in fresh processes with an
empty kernel cache, so it includes tracing and compilation. The steady-state time of a turn is that
of its fastest block of some milliseconds, which reduces the influence of other processes; the ratio
is the median over the turns. Wall time and CPU time are shown. The exit status is 1 if a wall-time
ratio exceeds its bar.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any

import numpy as np

FIRST, STEADY = 0.6, 0.8  # bars
TURN, BLOCK = 0.2, 0.002  # seconds

Step = Callable[[], Any]  # returns arrays to wait for

_random = np.random.default_rng(0)
INPUTS = _random.standard_normal((64, 16)).astype("float32")
TARGETS = np.tanh(INPUTS @ _random.standard_normal((16, 1))).astype("float32")
CLASSES = (INPUTS @ _random.standard_normal((16, 4))).argmax(1)


# --- programs; they import libraries when they run, with JAX or accnp as `jax` --------------------


def optax_adamw() -> Step:
    """An MLP without a layer library, trained by AdamW with a schedule and gradient clipping."""
    import jax
    import jax.numpy as jnp
    import optax

    keys = jax.random.split(jax.random.key(0), 3)
    sizes = [(16, 64), (64, 64), (64, 1)]
    params = [
        {"w": jax.random.normal(key, size) / np.sqrt(size[0]), "b": jnp.zeros(size[1])}
        for key, size in zip(keys, sizes, strict=True)
    ]
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 100, 10_000)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))

    def loss(params: Any, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            x = jax.nn.gelu(x @ layer["w"] + layer["b"])
        return jnp.mean((x @ params[-1]["w"] + params[-1]["b"] - y) ** 2)

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    state: list[Any] = [params, optimizer.init(params)]
    x, y = jnp.asarray(INPUTS), jnp.asarray(TARGETS)

    def run() -> Any:
        state[0], state[1], value = step(state[0], state[1], x, y)
        return value

    return run


def equinox_mlp() -> Step:
    """`eqx.nn.MLP` under `filter_jit`, with Adam."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    model = eqx.nn.MLP(16, 1, 64, 2, key=jax.random.key(0))
    optimizer = optax.adam(1e-3)

    @eqx.filter_value_and_grad
    def loss(model: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    @eqx.filter_jit
    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradient = loss(model, x, y)
        updates, state = optimizer.update(gradient, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    state: list[Any] = [model, optimizer.init(eqx.filter(model, eqx.is_array))]
    x, y = jnp.asarray(INPUTS), jnp.asarray(TARGETS)

    def run() -> Any:
        state[0], state[1], value = step(state[0], state[1], x, y)
        return value

    return run


def flax_linen() -> Step:
    """A classifier with layer normalization and dropout, in a `TrainState`."""
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import optax
    from flax.training import train_state

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x: Any, train: bool) -> Any:
            for _ in range(2):
                x = nn.relu(nn.LayerNorm()(nn.Dense(64)(x)))
                x = nn.Dropout(0.1, deterministic=not train)(x)
            return nn.Dense(4)(x)

    model = Model()
    x, labels = jnp.asarray(INPUTS), jnp.asarray(CLASSES)
    params = model.init(jax.random.key(0), x, False)["params"]
    initial = train_state.TrainState.create(
        apply_fn=model.apply, params=params, tx=optax.adam(1e-3)
    )

    @jax.jit
    def step(state: Any, key: Any, x: Any, labels: Any) -> Any:
        key = jax.random.fold_in(key, state.step)

        def loss(params: Any) -> Any:
            logits = state.apply_fn({"params": params}, x, True, rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, gradient = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=gradient), value

    state, key = [initial], jax.random.key(1)

    def run() -> Any:
        state[0], value = step(state[0], key, x, labels)
        return value

    return run


def flax_nnx() -> Step:
    """The same classifier with batch normalization, as mutable modules."""
    import jax.numpy as jnp
    import optax
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.first, self.second = nnx.Linear(16, 64, rngs=rngs), nnx.Linear(64, 64, rngs=rngs)
            self.norm = nnx.BatchNorm(64, rngs=rngs)
            self.dropout = nnx.Dropout(0.1, rngs=rngs)
            self.last = nnx.Linear(64, 4, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = self.dropout(nnx.relu(self.norm(self.first(x))))
            return self.last(nnx.relu(self.second(x)))

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    x, labels = jnp.asarray(INPUTS), jnp.asarray(CLASSES)

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any, labels: Any) -> Any:
        def loss(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()

        value, gradient = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradient)
        return value

    return lambda: step(model, optimizer, x, labels)


def numpyro_nuts() -> Step:
    """A linear regression with 8 coefficients: 200 warm-up steps and 200 samples of NUTS."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model(x: Any, y: Any) -> None:
        intercept = numpyro.sample("intercept", dist.Normal(0, 5))
        coefficients = numpyro.sample("slopes", dist.Normal(0, 1).expand([8]).to_event(1))
        scale = numpyro.sample("scale", dist.HalfNormal(2))
        with numpyro.plate("data", len(x)):
            numpyro.sample("y", dist.Normal(intercept + x @ coefficients, scale), obs=y)

    chain = MCMC(NUTS(model), num_warmup=200, num_samples=200, progress_bar=False)
    x, y = jnp.asarray(INPUTS[:, :8]), jnp.asarray(TARGETS[:, 0])
    key = jax.random.key(0)

    def run() -> Any:
        chain.run(key, x, y)
        return chain.get_samples()["scale"]

    return run


def numpyro_svi() -> Step:
    """A step of stochastic variational inference for that regression."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    def model(x: Any, y: Any) -> None:
        coefficients = numpyro.sample("slopes", dist.Normal(0, 1).expand([8]).to_event(1))
        scale = numpyro.sample("scale", dist.HalfNormal(2))
        with numpyro.plate("data", len(x)):
            numpyro.sample("y", dist.Normal(x @ coefficients, scale), obs=y)

    x, y = jnp.asarray(INPUTS[:, :8]), jnp.asarray(TARGETS[:, 0])
    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
    state, update = [svi.init(jax.random.key(0), x, y)], jax.jit(svi.update)

    def run() -> Any:
        state[0], value = update(state[0], x, y)
        return value

    return run


PROGRAMS: dict[str, Callable[[], Step]] = {
    "optax, AdamW": optax_adamw,
    "equinox, MLP": equinox_mlp,
    "flax.linen, classifier": flax_linen,
    "flax.nnx, classifier": flax_nnx,
    "numpyro, NUTS": numpyro_nuts,
    "numpyro, SVI": numpyro_svi,
}


# --- processes -----------------------------------------------------------------------------------


def work(name: str) -> None:
    """Print the wall and CPU seconds of the first step, then time steady steps on request.

    Each number of seconds on standard input is answered with the wall and CPU seconds of a step in
    the fastest block. A block waits for its last results.
    """
    warnings.simplefilter("ignore")
    import jax

    step = PROGRAMS[name]()
    start, cpu = perf_counter(), process_time()
    jax.block_until_ready(step())
    print(perf_counter() - start, process_time() - cpu, flush=True)
    for line in sys.stdin:
        blocks, end = [], perf_counter() + float(line)
        while not blocks or perf_counter() < end:
            count, start, cpu = 0, perf_counter(), process_time()
            while count == 0 or perf_counter() - start < BLOCK:
                result, count = step(), count + 1
            jax.block_until_ready(result)
            blocks.append(((perf_counter() - start) / count, (process_time() - cpu) / count))
        print(*(min(times) for times in zip(*blocks)), flush=True)


class _Worker:
    """A process that runs a program."""

    def __init__(self, name: str, ours: bool, cache: str) -> None:
        command = [sys.executable, *(["-m", "accnp.as_jax"] if ours else []), __file__]
        self.process = subprocess.Popen(
            [*command, "--work", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ACCNP_CACHE_DIR": cache, "JAX_PLATFORMS": "cpu"},
        )
        self.first = self._read_answer()

    def _read_answer(self) -> tuple[float, float]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with status {self.process.wait()}")
        wall, cpu = map(float, line.split())
        return wall, cpu

    def seconds(self) -> tuple[float, float]:
        """Return the wall and CPU seconds of a step in the fastest block of a turn."""
        assert self.process.stdin
        self.process.stdin.write(f"{TURN}\n")
        self.process.stdin.flush()
        return self._read_answer()

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def _workers(name: str) -> Iterator[tuple[_Worker, _Worker]]:
    """Start fresh processes of accnp and JAX."""
    with tempfile.TemporaryDirectory() as cache:
        both = [_Worker(name, ours, cache) for ours in (True, False)]
        try:
            yield both[0], both[1]
        finally:
            for worker in both:
                worker.end()


def measure(name: str, processes: int, turns: int) -> Iterator[tuple[str, list[Any], float]]:
    """Yield rows: a description, pairs of (wall, CPU) seconds of accnp and JAX, and the bar."""
    first, steady = [], []
    for k in range(processes):
        with _workers(name) as (ours, theirs):
            first.append((ours.first, theirs.first))
            for _ in range(turns if k == processes - 1 else 0):
                steady.append((ours.seconds(), theirs.seconds()))
    yield "first", first, FIRST
    yield "steady", steady[1:], STEADY  # kernels may be compiled again in the background


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if a program misses a bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--processes", type=int, default=3, help="for first steps")
    parser.add_argument("--turns", type=int, default=21, help="for steady steps")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.work:
        work(options.work)
        return 0
    missed = 0
    print("| Program | Step | accnp, ms | JAX, ms | Wall ratio | CPU ratio |")
    print("|---|---|---|---|---|---|")
    for name in PROGRAMS:
        if not any(fnmatch.fnmatch(name, f"*{pattern}*") for pattern in options.only):
            continue
        for what, pairs, bar in measure(name, options.processes, options.turns):
            ours, theirs = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
            wall, cpu = (statistics.median(a[i] / b[i] for a, b in pairs) for i in (0, 1))
            missed += wall > bar
            remark = f" (bar {bar})" if wall > bar else ""
            print(
                f"| {name} | {what} | {1e3 * ours:.4g} | {1e3 * theirs:.4g} | {wall:.2f}{remark} | "
                f"{cpu:.2f} |",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
