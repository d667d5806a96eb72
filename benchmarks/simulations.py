"""Simulations in the style of libraries for JAX, which `external.py` compares with their bars.

Each is a function of a module with JAX's API that returns a function without arguments, as
described by `external.Program`: molecular dynamics, variational Monte Carlo, a compartmental neuron
model, and the gradient of an ODE by the adjoint method. The programs are written as such libraries
write them (vmap over particles, masks for absent neighbors, scans, loops over pytrees of small
arrays).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_PARTICLES = 256


def _values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def _compile_call(m: Any, function: Callable[..., Any], *arrays: np.ndarray) -> Callable[[], Any]:
    call = m.jit(function)
    places = [m.numpy.asarray(x) for x in arrays]
    return lambda: m.block_until_ready(call(*places))


# Molecular dynamics


def _lattice() -> tuple[np.ndarray, np.ndarray, float]:
    """Return positions and velocities of particles in a periodic square, and the length of its
    side."""
    side = int(_PARTICLES**0.5)
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2)
    box = 1.2 * side
    return (
        (1.2 * grid + 0.05 * _values(_PARTICLES, 2)).astype("float32"),
        0.3 * _values(_PARTICLES, 2, seed=1),
        box,
    )


def _lennard_jones(m: Any, squared: Any) -> Any:
    """Return the energy of a pair at this squared distance, cut off smoothly at 2.5."""
    np_ = m.numpy
    near = (squared > 0) & (squared < 2.5**2)
    safe = np_.where(near, squared, 1.0)
    sixth = (1.0 / safe) ** 3
    smooth = (1.0 - safe / 2.5**2) ** 2
    return np_.where(near, 4.0 * (sixth * sixth - sixth) * smooth, 0.0)


def _dynamics(m: Any, energy: Callable[[Any], Any], steps: int, box: float) -> Callable[..., Any]:
    """Run steps of the velocity Verlet method."""
    force = m.grad(lambda positions: -energy(positions))
    dt = 1e-3

    def step(_: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        positions, velocities, forces = state
        velocities = velocities + 0.5 * dt * forces
        positions = m.numpy.mod(positions + dt * velocities, box)
        forces = force(positions)
        return positions, velocities + 0.5 * dt * forces, forces

    def run(positions: Any, velocities: Any) -> Any:
        state = (positions, velocities, force(positions))
        if steps == 1:
            return step(0, state)[0]
        return m.lax.fori_loop(0, steps, step, state)[0]

    return run


def _displacement(m: Any, box: float) -> Callable[[Any, Any], Any]:
    return lambda a, b: m.numpy.mod(a - b + 0.5 * box, box) - 0.5 * box


def all_pairs(steps: int) -> Callable[[Any], Callable[[], Any]]:
    """Lennard-Jones particles, with forces between all pairs."""
    positions, velocities, box = _lattice()

    def program(m: Any) -> Callable[[], Any]:
        displacement = _displacement(m, box)
        products = m.vmap(m.vmap(displacement, (0, None)), (None, 0))

        def energy(r: Any) -> Any:
            squared = m.numpy.sum(products(r, r) ** 2, axis=-1)
            return 0.5 * m.numpy.sum(_lennard_jones(m, squared))

        return _compile_call(m, _dynamics(m, energy, steps, box), positions, velocities)

    return program


def neighbor_lists(steps: int) -> Callable[[Any], Callable[[], Any]]:
    """Lennard-Jones particles with neighbor lists; absent neighbors are masked."""
    positions, velocities, box = _lattice()
    apart = positions[:, None] - positions[None]
    apart -= box * np.round(apart / box)
    near = ((apart**2).sum(-1) < 3.0**2) & ~np.eye(_PARTICLES, dtype=bool)
    length = int(near.sum(1).max()) + 3
    lists = np.full((_PARTICLES, length), _PARTICLES, np.int32)
    for i in range(_PARTICLES):
        neighbors = np.flatnonzero(near[i])
        lists[i, : neighbors.size] = neighbors

    def program(m: Any) -> Callable[[], Any]:
        displacement = _displacement(m, box)
        each = m.vmap(m.vmap(displacement, (None, 0)), (0, 0))

        def run(r: Any, v: Any, lists: Any) -> Any:
            def energy(r: Any) -> Any:
                squared = m.numpy.sum(each(r, r[lists]) ** 2, axis=-1)
                pairs = m.numpy.where(lists < _PARTICLES, _lennard_jones(m, squared), 0.0)
                return 0.5 * m.numpy.sum(pairs)

            return _dynamics(m, energy, steps, box)(r, v)

        return _compile_call(m, run, positions, velocities, lists)

    return program


# Variational Monte Carlo


def electrons(m: Any) -> Callable[[], Any]:
    """A step for 3 particles in a trap with a neural wave function.

    It consists of Metropolis sampling, local energies with the Laplacian by forward over reverse
    mode, the gradient, and the update.
    """
    np_ = m.numpy
    walkers, size, hidden = 256, 6, 32
    parameters = {
        "w1": 0.3 * _values(size, hidden),
        "b1": np.zeros(hidden, "float32"),
        "w2": 0.3 * _values(hidden, hidden, seed=1),
        "b2": np.zeros(hidden, "float32"),
        "w3": 0.3 * _values(hidden, seed=2),
    }

    def log_psi(p: Any, x: Any) -> Any:
        h = np_.tanh(x @ p["w1"] + p["b1"])
        h = np_.tanh(h @ p["w2"] + p["b2"])
        return h @ p["w3"] - 0.5 * np_.sum(x * x)

    def kinetic(p: Any, x: Any) -> Any:
        gradient = m.grad(log_psi, argnums=1)

        def along(direction: Any) -> Any:
            value, curved = m.jvp(lambda x: gradient(p, x), (x,), (direction,))
            return np_.dot(value, direction) ** 2 + np_.dot(curved, direction)

        return -0.5 * np_.sum(m.vmap(along)(np_.eye(size, dtype=x.dtype)))

    def potential(x: Any) -> Any:
        r = x.reshape(3, 2)
        apart = np_.sqrt(np_.sum((r[:, None] - r[None]) ** 2, -1) + np_.eye(3, dtype=x.dtype))
        return 0.5 * np_.sum(x * x) + np_.sum(np_.triu(1.0 / apart, 1))

    def step(p: Any, x: Any, key: Any) -> Any:
        batched = m.vmap(log_psi, (None, 0))

        def move(state: tuple[Any, Any], key: Any) -> tuple[tuple[Any, Any], Any]:
            x, old = state
            first, second = m.random.split(key)
            tried = x + 0.3 * m.random.normal(first, x.shape, "float32")
            new = batched(p, tried)
            chance = np_.exp(2.0 * (new - old))
            accepted = m.random.uniform(second, (walkers,), "float32") < chance
            state = np_.where(accepted[:, None], tried, x), np_.where(accepted, new, old)
            return state, np_.mean(accepted.astype("float32"))

        (x, _), _ = m.lax.scan(move, (x, batched(p, x)), m.random.split(key, 10))
        local = m.vmap(lambda x: kinetic(p, x) + potential(x))(x)
        centred = m.lax.stop_gradient(local - np_.mean(local))
        gradient = m.grad(lambda p: 2.0 * np_.mean(centred * batched(p, x)))(p)
        updated = m.tree.map(lambda a, b: a - 0.01 * b, p, gradient)
        return m.tree.reduce(lambda a, b: a + b, m.tree.map(np_.sum, updated))

    call = m.jit(step)
    p = {name: np_.asarray(value) for name, value in parameters.items()}
    x, key = np_.asarray(_values(walkers, size, seed=3)), m.random.key(0)
    return lambda: m.block_until_ready(call(p, x, key))


def spins(m: Any) -> Callable[[], Any]:
    """A step for the Ising chain in a transverse field with a restricted Boltzmann machine.

    It consists of Metropolis sampling of single flips, energies from all connected states, and the
    gradient.
    """
    np_ = m.numpy
    sites, chains = 16, 64
    parameters = {
        "a": 0.05 * _values(sites),
        "b": 0.05 * _values(2 * sites, seed=1),
        "w": 0.05 * _values(sites, 2 * sites, seed=2),
    }

    def log_psi(p: Any, s: Any) -> Any:
        t = s @ p["w"] + p["b"]
        return s @ p["a"] + np_.sum(np_.logaddexp(t, -t), -1)

    def step(p: Any, s: Any, key: Any) -> Any:
        def flip(state: tuple[Any, Any], key: Any) -> tuple[tuple[Any, Any], Any]:
            s, old = state
            first, second = m.random.split(key)
            site = m.random.randint(first, (chains,), 0, sites)
            tried = s.at[np_.arange(chains), site].multiply(-1.0)
            new = log_psi(p, tried)
            accepted = m.random.uniform(second, (chains,), "float32") < np_.exp(2.0 * (new - old))
            return (np_.where(accepted[:, None], tried, s), np_.where(accepted, new, old)), s

        _, samples = m.lax.scan(flip, (s, log_psi(p, s)), m.random.split(key, 32))
        x = samples[::8].reshape(-1, sites)
        flipped = x[:, None, :] * (1.0 - 2.0 * np_.eye(sites, dtype=x.dtype))
        ratios = np_.exp(log_psi(p, flipped) - log_psi(p, x)[:, None])
        local = -np_.sum(x * np_.roll(x, 1, 1), 1) - 0.7 * np_.sum(ratios, 1)
        centred = m.lax.stop_gradient(local - np_.mean(local))
        gradient = m.grad(lambda p: 2.0 * np_.mean(centred * log_psi(p, x)))(p)
        updated = m.tree.map(lambda a, b: a - 0.01 * b, p, gradient)
        return m.tree.reduce(lambda a, b: a + b, m.tree.map(np_.sum, updated))

    call = m.jit(step)
    p = {name: np_.asarray(value) for name, value in parameters.items()}
    s, key = np_.asarray(np.sign(_values(chains, sites, seed=3))), m.random.key(0)
    return lambda: m.block_until_ready(call(p, s, key))


# A neuron


def neuron(gradient: bool, compartments: int = 24) -> Callable[[Any], Callable[[], Any]]:
    """400 steps of a cable with Hodgkin-Huxley channels.

    The voltages come from an implicit step, whose tridiagonal system is solved by two scans.
    """

    def program(m: Any) -> Callable[[], Any]:
        np_ = m.numpy
        dt = 0.025

        def rate(x: Any, scale: float) -> Any:
            """Return x / (1 - exp(-x / scale)), accurately also near zero."""
            near = np_.abs(x) < 1e-4
            safe = np_.where(near, 1.0, x)
            return np_.where(near, scale, safe / (1.0 - np_.exp(-safe / scale)))

        def relax(x: Any, alpha: Any, beta: Any) -> Any:
            steady = alpha / (alpha + beta)
            return steady + (x - steady) * np_.exp(-dt * (alpha + beta))

        def solve(lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
            def forth(carry: tuple[Any, Any], row: tuple[Any, ...]) -> Any:
                l, d, u, r = row  # noqa: E741
                below = d - l * carry[0]
                pair = (u / below, (r - l * carry[1]) / below)
                return pair, pair

            zero = np_.zeros((), right.dtype)
            _, (c, d) = m.lax.scan(forth, (zero, zero), (lower, diagonal, upper, right))

            def back(x: Any, row: tuple[Any, Any]) -> Any:
                x = row[1] - row[0] * x
                return x, x

            return m.lax.scan(back, zero, (c, d), reverse=True)[1]

        def simulate(conductances: Any, axial: Any) -> Any:
            ends = np_.ones(compartments).at[0].set(0.0).astype("float32")
            lower, upper = -axial * ends, -axial * ends[::-1]

            def step(state: dict[str, Any], current: Any) -> Any:
                v = state["v"]
                gates = {
                    "m": relax(
                        state["m"], 0.1 * rate(v + 40.0, 10.0), 4.0 * np_.exp(-(v + 65.0) / 18.0)
                    ),
                    "h": relax(
                        state["h"],
                        0.07 * np_.exp(-(v + 65.0) / 20.0),
                        1.0 / (1.0 + np_.exp(-(v + 35.0) / 10.0)),
                    ),
                    "n": relax(
                        state["n"],
                        0.01 * rate(v + 55.0, 10.0),
                        0.125 * np_.exp(-(v + 65.0) / 80.0),
                    ),
                }
                sodium = conductances[0] * gates["m"] ** 3 * gates["h"]
                potassium = conductances[1] * gates["n"] ** 4
                leak = conductances[2]
                linear = sodium + potassium + leak
                constant = sodium * 50.0 - potassium * 77.0 - leak * 54.3
                constant = constant.at[0].add(current)
                diagonal = 1.0 + dt * (linear - lower - upper)
                v = solve(dt * lower, diagonal, dt * upper, v + dt * constant)
                return {"v": v, **gates}, v[-1]

            start = np_.full(compartments, -65.0, "float32")
            state = {"v": start, "m": 0.05 + 0 * start, "h": 0.6 + 0 * start, "n": 0.32 + 0 * start}
            pulse = np_.where(np_.arange(400) < 100, 20.0, 0.0).astype("float32")
            return m.lax.scan(step, state, pulse)[1]

        def loss(conductances: Any, axial: Any) -> Any:
            return np_.mean((simulate(conductances, axial) + 60.0) ** 2)

        channels = np.array([120.0, 36.0, 0.3], "float32")[:, None]
        conductances = np.repeat(channels, compartments, 1)
        function = m.grad(loss) if gradient else simulate
        return _compile_call(m, function, conductances, np.full(compartments, 2.0, "float32"))

    return program


# An adjoint equation


def adjoint(points: int = 40) -> Callable[[Any], Callable[[], Any]]:
    """The gradient of an ODE solution at save points by the adjoint method.

    The adjoint equation is solved backwards with adaptive steps (the Bogacki-Shampine pair). States
    and parameters are pytrees of scalars.
    """

    def program(m: Any) -> Callable[[], Any]:
        np_ = m.numpy

        def field(y: dict[str, Any], p: dict[str, Any]) -> dict[str, Any]:
            prey, hunters = y["prey"], y["hunters"]
            return {
                "prey": p["a"] * prey - p["b"] * prey * hunters,
                "hunters": -p["c"] * hunters + p["d"] * prey * hunters,
            }

        def combined(y: Any, h: Any, weights: tuple[float, ...], stages: tuple[Any, ...]) -> Any:
            return m.tree.map(
                lambda y, *k: y + h * sum(w * k for w, k in zip(weights, k) if w), y, *stages
            )

        def solve(f: Callable[[Any], Any], y: Any, start: Any, stop: Any) -> Any:
            """Return the state at `stop`."""
            direction = np_.sign(stop - start)

            def unfinished(state: tuple[Any, ...]) -> Any:
                return (state[2] < 500) & ((stop - state[0]) * direction > 1e-6)

            def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
                t, y, count, h, k1 = state
                short = np_.minimum(h, np_.abs(stop - t))
                signed = short * direction
                k2 = f(combined(y, signed, (0.5,), (k1,)))
                k3 = f(combined(y, signed, (0.0, 0.75), (k1, k2)))
                new = combined(y, signed, (2 / 9, 1 / 3, 4 / 9), (k1, k2, k3))
                k4 = f(new)
                zero = m.tree.map(np_.zeros_like, y)
                error = combined(zero, signed, (-5 / 72, 1 / 12, 1 / 9, -1 / 8), (k1, k2, k3, k4))
                scaled = m.tree.map(
                    lambda e, a, b: (
                        (e / (1e-5 + 1e-4 * np_.maximum(np_.abs(a), np_.abs(b)))) ** 2
                    ),
                    error, y, new,
                )  # fmt: skip
                leaves = m.tree.leaves(scaled)
                norm = np_.sqrt(sum(np_.sum(leaf) for leaf in leaves) / len(leaves))
                good = norm < 1.0
                factor = np_.clip(0.9 * np_.maximum(norm, 1e-6) ** (-1 / 3), 0.2, 5.0)
                chosen = lambda a, b: m.tree.map(  # noqa: E731
                    lambda a, b: np_.where(good, a, b), a, b
                )
                return (
                    np_.where(good, t + signed, t),
                    chosen(new, y),
                    count + 1,
                    short * factor,
                    chosen(k4, k1),
                )

            first = (start, y, 0, np_.float32(0.05), f(y))
            return m.lax.while_loop(unfinished, step, first)[1]

        times = np_.linspace(0.0, 10.0, points + 1).astype("float32")

        @m.custom_vjp
        def saved(y: Any, p: Any) -> Any:
            def advance(y: Any, k: Any) -> Any:
                y = solve(lambda y: field(y, p), y, times[k], times[k + 1])
                return y, y

            return m.lax.scan(advance, y, np_.arange(points))[1]

        def forward(y: Any, p: Any) -> Any:
            ys = saved(y, p)
            return ys, (ys, p)

        def backward(residuals: Any, cotangents: Any) -> Any:
            ys, p = residuals

            def f(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
                y, a, _ = state
                derivative, pull = m.vjp(field, y, p)
                ay, ap = pull(a)
                return derivative, m.tree.map(lambda x: -x, ay), m.tree.map(lambda x: -x, ap)

            def retreat(state: tuple[Any, Any], k: Any) -> tuple[tuple[Any, Any], None]:
                a, ap = state
                at = lambda tree: m.tree.map(lambda x: x[k], tree)  # noqa: E731
                a = m.tree.map(lambda x, y: x + y, a, at(cotangents))
                _, a, ap = solve(f, (at(ys), a, ap), times[k + 1], times[k])
                return (a, ap), None

            zero = m.tree.map(np_.zeros_like, (m.tree.map(lambda x: x[0], ys), p))
            return m.lax.scan(retreat, zero, np_.arange(points), reverse=True)[0]

        saved.defvjp(forward, backward)

        def loss(y: Any, p: Any) -> Any:
            return sum(np_.sum(leaf**2) for leaf in m.tree.leaves(saved(y, p)))

        def total(y: Any, p: Any) -> Any:
            leaves = m.tree.leaves(m.grad(loss, argnums=(0, 1))(y, p))
            return np_.stack(leaves)

        y = {"prey": np_.float32(1.0), "hunters": np_.float32(1.5)}
        p = {name: np_.float32(x) for name, x in zip("abcd", (1.1, 0.4, 0.4, 0.3))}
        call = m.jit(total)
        return lambda: m.block_until_ready(call(y, p))

    return program


# Small systems of equations


def triangular(n: int) -> tuple[Callable[[Any], Callable[[], Any]], Callable[[], Any]]:
    """Forward substitution, one row at a time, and the same in NumPy."""
    rng = np.random.default_rng(0)
    factor = np.tril(rng.standard_normal((n, n))) / np.sqrt(n) + np.eye(n)
    right = rng.standard_normal(n)

    def program(m: Any) -> Callable[[], Any]:
        def solve(a: Any, b: Any) -> Any:
            def step(i: Any, x: Any) -> Any:
                return x.at[i].set((b[i] - m.numpy.dot(a[i], x)) / a[i, i])

            return m.lax.fori_loop(0, n, step, m.numpy.zeros_like(b))

        return _compile_call(m, solve, factor, right)

    def plain() -> Any:
        x = np.zeros_like(right)
        for i in range(n):
            x[i] = (right[i] - factor[i, :i] @ x[:i]) / factor[i, i]
        return x

    return program, plain


def contour(unrolled: bool) -> tuple[Callable[[Any], Callable[[], Any]], Callable[[], Any]]:
    """Moments of a resolvent along a circle: 32 complex 50x50 systems with 50 right-hand sides."""
    rng = np.random.default_rng(0)
    n, count = 50, 32
    terms = rng.standard_normal((3, n, n)) + 1j * rng.standard_normal((3, n, n))
    right = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    points = np.exp(2j * np.pi * np.arange(count) / count) * 1.5

    def matrix(z: Any, terms: Any) -> Any:
        return terms[0] * z + terms[1] + terms[2] / z

    def program(m: Any) -> Callable[[], Any]:
        def moments(terms: Any, right: Any, points: Any) -> Any:
            solve = lambda z: m.numpy.linalg.solve(matrix(z, terms), right)  # noqa: E731
            if unrolled:
                solved = [(z, solve(z)) for z in (points[k] for k in range(count))]
                return m.numpy.stack([sum(x for _, x in solved), sum(z * x for z, x in solved)])
            x = m.vmap(solve)(points)
            return m.numpy.stack([x.sum(0), (points[:, None, None] * x).sum(0)])

        return _compile_call(m, moments, terms, right, points)

    def plain() -> Any:
        first = np.zeros((n, n), complex)
        second = np.zeros((n, n), complex)
        for z in points:
            x = np.linalg.solve(matrix(z, terms), right)
            first += x
            second += z * x
        return np.stack([first, second])

    return program, plain
