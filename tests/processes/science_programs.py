"""Typical user programs that run over n processes, or over n devices of one process.

Each is a function of the library (accnp or JAX) and the number n. It returns a pytree of sharded
arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def mesh_of(m: Any, shape: tuple[int, ...], names: tuple[str, ...], kind: str = "Explicit") -> Any:
    """Return a mesh over the first devices."""
    devices = np.array(m.devices()[: int(np.prod(shape))]).reshape(shape)
    types = (getattr(m.sharding.AxisType, kind),) * len(names)
    return m.sharding.Mesh(devices, names, axis_types=types)


def put(m: Any, mesh: Any, x: Any, *spec: Any) -> Any:
    return m.device_put(x, m.NamedSharding(mesh, m.P(*spec)))


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def train(m: Any, n: int) -> Any:
    """Data-parallel training: each process has rows of the data, and gradients are averaged."""
    jnp, P = m.numpy, m.P
    mesh = mesh_of(m, (n,), ("data",))
    x, y = (put(m, mesh, v, "data") for v in (numbers(0, 32, 5), numbers(1, 32, 1)))
    w = put(m, mesh, {"a": numbers(2, 5, 8), "b": numbers(3, 8, 1)})

    def loss(w: Any, x: Any, y: Any) -> Any:
        return m.lax.pmean(((jnp.tanh(x @ w["a"]) @ w["b"] - y) ** 2).mean(), "data")

    total = m.shard_map(loss, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())

    @m.jit
    def step(w: Any, x: Any, y: Any) -> Any:
        value, gradient = m.value_and_grad(total)(w, x, y)
        return value, m.tree.map(lambda a, g: a - 0.1 * g, w, gradient)

    losses = []
    for _ in range(5):
        value, w = step(w, x, y)
        losses.append(value)
    assert float(losses[-1]) < float(losses[0])
    return w, losses


def tensor_parallel(m: Any, n: int) -> Any:
    """An MLP with a sharded hidden layer; the program has no collectives, only shardings."""
    jnp = m.numpy
    mesh = mesh_of(m, (n,), ("model",), "Auto")
    x = put(m, mesh, numbers(0, 6, 5))
    a, b = put(m, mesh, numbers(1, 5, 8), None, "model"), put(m, mesh, numbers(2, 8, 3), "model")
    whole = m.NamedSharding(mesh, m.P())

    def forward(a: Any, b: Any, x: Any) -> Any:
        return m.lax.with_sharding_constraint(jnp.tanh(x @ a) @ b, whole)

    hidden = m.jit(lambda a, x: jnp.tanh(x @ a))(a, x)
    return hidden, m.jit(forward)(a, b, x)


def shallow_water(m: Any, n: int) -> Any:
    """Shallow-water waves on a torus; each process has a block and receives halos from its
    neighbors."""
    jnp, P = m.numpy, m.P
    shape = (2, n // 2)
    mesh = mesh_of(m, shape, ("y", "x"))
    side = np.linspace(-1, 1, 16, dtype=np.float32)
    height = 1 + 0.1 * np.exp(-20 * (side[:, None] ** 2 + side**2)).astype(np.float32)
    state = [put(m, mesh, v, "y", "x") for v in (height, 0 * height, 0 * height)]

    def neighbor(x: Any, name: str, d: int, by: int) -> Any:
        """Return the values of the previous (by 1) or next (by -1) process along an axis."""
        size = shape[0 if name == "y" else 1]
        edge = m.lax.slice_in_dim(x, x.shape[d] - 1, None, axis=d) if by == 1 else (
            m.lax.slice_in_dim(x, 0, 1, axis=d))  # fmt: skip
        edge = m.lax.ppermute(edge, name, [(i, (i + by) % size) for i in range(size)])
        rest = m.lax.slice_in_dim(x, 0, -1, axis=d) if by == 1 else (
            m.lax.slice_in_dim(x, 1, None, axis=d))  # fmt: skip
        return jnp.concatenate([edge, rest] if by == 1 else [rest, edge], axis=d)

    def difference(x: Any, name: str, d: int) -> Any:
        return (neighbor(x, name, d, -1) - neighbor(x, name, d, 1)) / 2

    def steps(h: Any, u: Any, v: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            h, u, v = state
            u = u - 0.1 * difference(h, "x", 1)
            v = v - 0.1 * difference(h, "y", 0)
            return h - 0.1 * (difference(h * u, "x", 1) + difference(h * v, "y", 0)), u, v

        return m.lax.fori_loop(0, 10, step, (h, u, v))

    spec = P("y", "x")
    specs = (spec,) * 3
    return m.jit(m.shard_map(steps, mesh=mesh, in_specs=specs, out_specs=specs))(*state)


def pencil_fft(m: Any, n: int) -> Any:
    """A two-dimensional Fourier transform: rows, then columns after an all-to-all exchange."""
    jnp, P = m.numpy, m.P
    mesh = mesh_of(m, (n,), ("p",))
    x = put(m, mesh, numbers(0, 8, 12), "p")

    def transform(x: Any) -> Any:
        x = jnp.fft.fft(x, axis=1)
        x = m.lax.all_to_all(x, "p", split_axis=1, concat_axis=0, tiled=True)
        return jnp.fft.fft(x, axis=0)

    return m.jit(m.shard_map(transform, mesh=mesh, in_specs=P("p"), out_specs=P(None, "p")))(x)


def summa(m: Any, n: int) -> Any:
    """A matrix product with operands sharded in both dimensions (SUMMA): panels are broadcast."""
    jnp, P = m.numpy, m.P
    shape = (2, n // 2)
    mesh = mesh_of(m, shape, ("i", "j"))
    a, b = (put(m, mesh, numbers(s, 8, 8), "i", "j") for s in (0, 1))

    def product(a: Any, b: Any) -> Any:
        row = m.lax.all_gather(a, "j", axis=1, tiled=True)
        column = m.lax.all_gather(b, "i", axis=0, tiled=True)
        total = jnp.zeros((a.shape[0], b.shape[1]), np.float32)
        for k in range(0, 8, 4):
            total = total + row[:, k : k + 4] @ column[k : k + 4]
        return total

    spec = P("i", "j")
    return m.jit(m.shard_map(product, mesh=mesh, in_specs=(spec, spec), out_specs=spec))(a, b)


def n_body(m: Any, n: int) -> Any:
    """Bodies that attract each other; positions travel around a ring of processes."""
    jnp, P = m.numpy, m.P
    mesh = mesh_of(m, (n,), ("ring",))
    x, v = put(m, mesh, numbers(0, 16, 3), "ring"), put(m, mesh, numbers(1, 16, 3), "ring")
    around = [(i, (i + 1) % n) for i in range(n)]

    def force(x: Any, y: Any) -> Any:
        d = y[None] - x[:, None]
        return (d / (1e-2 + (d**2).sum(-1, keepdims=True)) ** 1.5).sum(1)

    def steps(x: Any, v: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            x, v = state
            others, total = x, jnp.zeros_like(x)
            for _ in range(n):
                total = total + force(x, others)
                others = m.lax.ppermute(others, "ring", around)
            v = v + 0.01 * total
            return (x + 0.01 * v, v), (v**2).sum()

        (x, v), energy = m.lax.scan(step, (x, v), None, length=4)
        return x, v, m.lax.psum(energy, "ring")

    specs = P("ring"), P("ring"), P()
    return m.jit(m.shard_map(steps, mesh=mesh, in_specs=specs[:2], out_specs=specs))(x, v)


def chains(m: Any, n: int) -> Any:
    """Eight independent Markov chains; each process runs some of them."""
    jnp, P = m.numpy, m.P
    mesh = mesh_of(m, (n,), ("chains",))
    keys = put(m, mesh, m.random.split(m.random.key(0), 8), "chains")

    def log_density(x: Any) -> Any:
        return -0.5 * ((x - 1) ** 2).sum() / 0.25

    def chain(key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            move, accept = m.random.split(key)
            new = state + 0.4 * m.random.normal(move, (2,))
            ratio = log_density(new) - log_density(state)
            state = jnp.where(jnp.log(m.random.uniform(accept)) < ratio, new, state)
            return state, state

        return m.lax.scan(step, m.random.normal(key, (2,)), m.random.split(key, 50))[1]

    def run(keys: Any) -> Any:
        samples = m.vmap(chain)(keys)
        return samples, m.lax.pmean(samples[:, 25:].mean((0, 1)), "chains")

    return m.jit(m.shard_map(run, mesh=mesh, in_specs=P("chains"), out_specs=(P("chains"), P())))(
        keys
    )


PROGRAMS: dict[str, Callable[[Any, int], Any]] = {
    "data-parallel training": train,
    "tensor-parallel network": tensor_parallel,
    "shallow water": shallow_water,
    "pencil FFT": pencil_fft,
    "SUMMA": summa,
    "ring N-body": n_body,
    "Markov chains": chains,
}
