"""Time first calls in fresh processes with an empty cache: `python -m benchmarks.first_calls`.

Each program runs in processes of accnp and of JAX in turns. The table shows the ratio of the
fastest first calls in CPU time and in wall time; for scripts with many small calls, the whole
process is timed. The bar applies to the wall time. The cases of `benchmarks.external`, run with
64-bit numbers, have one bar for the geometric mean of their ratios. The exit status is 1 if the
median of the runs exceeds a bar.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.external import cases

BAR = 1.0


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


# A step of rigid bodies


def rigid_bodies(m: Any, contacts: bool = False) -> Callable[[], Any]:  # noqa: C901
    """Return a position-based dynamics step of a cart with a pole.

    It has 3,000 operations after inlining, and 7,800 with contacts.
    """
    np_ = m.numpy
    dt = 0.005
    up = np.array([0.0, 0.0, 1.0], "float32")

    def product(a: Any, b: Any) -> Any:
        """Multiply two quaternions."""
        return np_.array(
            [
                a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
                a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
                a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
                a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
            ]
        )

    def inverse(q: Any) -> Any:
        return q * np.array([1, -1, -1, -1], "float32")

    def rotated(v: Any, q: Any) -> Any:
        s, u = q[0], q[1:]
        turned = 2 * np_.dot(u, v) * u + (s * s - np_.dot(u, u)) * v
        return turned + 2 * s * np_.cross(u, v)

    def length(v: Any) -> Any:
        zero = np_.allclose(v, 0.0)
        safe = np_.where(zero, np_.ones_like(v), v)
        return np_.where(zero, 0.0, np_.linalg.norm(safe))

    def unit(v: Any) -> Any:
        return v / (length(v) + 1e-6)

    def turned(q: Any, w: Any) -> Any:
        """Apply an infinitesimal rotation."""
        rate = np_.concatenate([np_.zeros(1, "float32"), w])
        return unit(q + 0.5 * product(rate, q))

    def inertia(v: Any, q: Any, inverse_inertia: Any) -> Any:
        return rotated(inverse_inertia * rotated(v, inverse(q)), q)

    def push(body: dict[str, Any], at: Any, impulse: Any, sign: float) -> dict[str, Any]:
        """Move and rotate a body by an impulse at a point."""
        x = body["x"] + sign * impulse * body["im"]
        w = inertia(np_.cross(at - body["x"], impulse), body["q"], body["ii"])
        return {**body, "x": x, "q": turned(body["q"], sign * w)}

    def weight(body: dict[str, Any], at: Any, n: Any) -> Any:
        arm = np_.cross(at - body["x"], n)
        return body["im"] + np_.dot(arm, inertia(arm, body["q"], body["ii"]))

    def joined(a: dict[str, Any], b: dict[str, Any], joint: dict[str, Any]) -> tuple[Any, Any]:
        """Correct two bodies for a joint: its anchors, its axis and its limits."""
        here = a["x"] + rotated(joint["a"], a["q"])
        there = b["x"] + rotated(joint["b"], b["q"])
        apart = here - there
        size, n = length(apart), unit(apart)
        share = weight(a, here, n) + weight(b, there, n)
        impulse = -size / (share + 1e-6) * n
        a, b = push(a, here, impulse, 1.0), push(b, there, impulse, -1.0)
        axis_a, axis_b = rotated(joint["axis"], a["q"]), rotated(joint["axis"], b["q"])
        wrong = np_.cross(axis_a, axis_b)
        angle, n = length(wrong), unit(wrong)
        share = np_.dot(n, inertia(n, a["q"], a["ii"])) + np_.dot(n, inertia(n, b["q"], b["ii"]))
        turn = angle / (share + 1e-6) * n
        a = {**a, "q": turned(a["q"], inertia(turn, a["q"], a["ii"]))}
        b = {**b, "q": turned(b["q"], -inertia(turn, b["q"], b["ii"]))}
        relative = product(inverse(a["q"]), b["q"])
        theta = 2 * np_.arctan2(np_.dot(relative[1:], joint["axis"]), relative[0])
        beyond = theta - np_.clip(theta, joint["low"], joint["high"])
        n = rotated(joint["axis"], a["q"])
        share = np_.dot(n, inertia(n, a["q"], a["ii"])) + np_.dot(n, inertia(n, b["q"], b["ii"]))
        turn = beyond / (share + 1e-6) * n
        a = {**a, "q": turned(a["q"], inertia(turn, a["q"], a["ii"]))}
        return a, {**b, "q": turned(b["q"], -inertia(turn, b["q"], b["ii"]))}

    def lifted(body: dict[str, Any]) -> dict[str, Any]:
        """Correct a capsule for the contacts of both ends with the ground."""
        for end in (-0.3, 0.3):
            tip = body["x"] + rotated(np.array([0, 0, end], "float32"), body["q"])
            depth = np_.maximum(0.05 - np_.dot(tip, up), 0.0)
            at = tip - 0.05 * up
            impulse = depth / (weight(body, at, up) + 1e-6) * up
            body = push(body, at, impulse, 1.0)
            slip = at - (body["x"] + rotated(np.array([0, 0, end], "float32"), body["q"]))
            slip = slip - np_.dot(slip, up) * up
            n = unit(slip)
            most = np_.minimum(length(slip) / (weight(body, at, n) + 1e-6), 0.5 * depth)
            body = push(body, at, most * n, 1.0)
        return body

    def moved(body: dict[str, Any], force: Any, torque: Any) -> dict[str, Any]:
        v = body["v"] + dt * (force * body["im"] - 9.81 * up)
        local = rotated(body["w"], inverse(body["q"]))
        gyroscopic = np_.cross(local, local / (body["ii"] + 1e-6))
        change = inertia(torque, body["q"], body["ii"]) - rotated(gyroscopic, body["q"]) * 1e-3
        w = 0.99 * (body["w"] + dt * change)
        return {**body, "x": body["x"] + dt * v, "q": turned(body["q"], dt * w), "v": v, "w": w}

    def velocities(body: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
        d = product(body["q"], inverse(before["q"]))
        w = np_.where(d[0] >= 0, 1.0, -1.0) * 2 * d[1:] / dt
        return {**body, "v": (body["x"] - before["x"]) / dt, "w": w}

    def bounced(body: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
        for end in (-0.3, 0.3):
            arm = rotated(np.array([0, 0, end], "float32"), body["q"])
            old = before["v"] + np_.cross(before["w"], arm)
            new = body["v"] + np_.cross(body["w"], arm)
            touches = np_.dot(body["x"] + arm, up) < 0.05
            jump = np_.where(touches, -np_.dot(new, up) - 0.2 * np_.minimum(np_.dot(old, up), 0), 0)
            impulse = jump / (weight(body, body["x"] + arm, up) + 1e-6) * up
            v = body["v"] + impulse * body["im"]
            w = body["w"] + inertia(np_.cross(arm, impulse), body["q"], body["ii"])
            body = {**body, "v": v, "w": w}
        return body

    def step(state: list[dict[str, Any]], joints: list[dict[str, Any]], action: Any) -> Any:
        before = state
        state = [
            moved(b, np_.array([1.0, 0, 0]) * action[0] * (i == 0), up * action[1] * 0.1)
            for i, b in enumerate(state)
        ]
        for i, joint in enumerate(joints):
            state[i], state[i + 1] = joined(state[i], state[i + 1], joint)
        if contacts:
            state = [lifted(body) for body in state]
        state = [velocities(b, old) for b, old in zip(state, before)]
        if contacts:
            state = [bounced(b, old) for b, old in zip(state, before)]
        seen = np_.concatenate([np_.concatenate([b["x"], b["q"], b["v"], b["w"]]) for b in state])
        return state, np_.clip(seen, -10, 10), 1.0 - np_.sum(seen * seen) * 1e-3

    def vector(*numbers: float) -> np.ndarray:
        return np.array(numbers, "float32")

    state = [
        {
            "x": vector(0.1 * i, 0, 0.3 + 0.5 * i),
            "q": vector(1, 0, 0.1 * i, 0) / np.float32(np.hypot(1, 0.1 * i)),
            "v": vector(0, 0, 0),
            "w": vector(0, 0.1, 0),
            "im": np.float32(1 + i),
            "ii": vector(4, 4, 9),
        }
        for i in range(2)
    ]
    joint = {
        "a": vector(0, 0, 0.25), "b": vector(0, 0, -0.25), "axis": vector(0, 1, 0),
        "low": np.float32(-0.3), "high": np.float32(0.3),
    }  # fmt: skip
    place = lambda tree: m.tree.map(np_.asarray, tree)  # noqa: E731
    arguments = place(state), place([joint]), np_.asarray(vector(0.5, 0.1))
    call = m.jit(step)
    return lambda: np.asarray(m.block_until_ready(call(*arguments))[1])


# Derivatives of many small functions


def derivatives(m: Any) -> Callable[[], Any]:
    """Return eager checks of first and second derivatives of products against finite
    differences."""
    np_ = m.numpy

    def checked(f: Callable[[Any], Any], x: np.ndarray) -> float:
        """Return the largest error of the gradient and of a Hessian-vector product."""
        direction = np.ones_like(x) / np.sqrt(x.size)
        total = lambda x: np_.sum(np_.sin(f(x)))  # noqa: E731
        gradient = m.grad(total)
        h = np.float32(1e-2)
        errors = []
        for g, d in ((total, gradient), (lambda x: np_.vdot(gradient(x), direction), None)):
            derivative = np_.vdot((d or m.grad(g))(x), direction)
            differences = (g(x + h * direction) - g(x - h * direction)) / (2 * h)
            errors.append(float(abs(derivative - differences)))
        return max(errors)

    def run() -> Any:
        gradient_errors = []
        for shape in ((3,), (2, 3), (4, 2, 3)):
            x = _values(*shape)
            gradient_errors.append(checked(lambda x: np_.cross(x, x[..., ::-1] + 1), x))
        for shape in ((3, 4, 2), (2, 4, 3)):
            axis = shape.index(3)
            gradient_errors.append(
                checked(lambda x, axis=axis: np_.cross(x, x + 1, axis=axis), _values(*shape))
            )
        x = _values(2, 3, 2)
        for axis in (None, 0, 1, 2, -1, (0, 2)):
            for keep in (False, True):
                function = lambda x, axis=axis, keep=keep: np_.prod(x, axis, keepdims=keep)  # noqa: E731
                gradient_errors.append(checked(function, x))
        for first, second in (((3,), (2,)), ((2, 3), (2,)), ((2,), (2, 2)), ((2, 2), (3, 2))):
            other = _values(*second)
            function = lambda x, other=other: np_.kron(x, other)  # noqa: E731
            gradient_errors.append(checked(function, _values(*first)))
        deep = lambda x: np_.sin(x) * np_.sum(x**3)  # noqa: E731
        for _ in range(3):
            deep = m.jacobian(deep) if hasattr(m, "jacobian") else m.jacrev(deep)
            gradient_errors.append(float(np_.sum(deep(_values(3)))))
        return np.asarray(gradient_errors)

    return run


# Whether the whole process counts, as in a test suite, or the call alone.
PROGRAMS: dict[str, tuple[Callable[[Any], Callable[[], Any]], bool]] = {
    "rigid bodies": (rigid_bodies, False),
    "with contacts": (lambda m: rigid_bodies(m, contacts=True), False),
    "derivative checks": (derivatives, True),
}
# Cases of `benchmarks.external`, of several domains.
CASES = (
    "interp 3x8000", "histogram 3x8000", "choice 3x8000", "unique 3x8000", "hessian(det) 4x4",
    "x[..., p] * c in loop", "sparse segment_sum 1000", "alternating directions 100x100",
    "vmap of while_loop 4x5000", "x @ x @ x 800", "triangular solve in loop 500",
    "contour integral, vmap", "Lennard-Jones pairs, 1", "variational Monte Carlo", "neuron",
    "gradient of neuron", "2-D stencil, 150x150", "tridiagonal 64x64x60", "intersect1d 3x8000",
    "CRC-16 of 20000 bytes",
)  # fmt: skip


def work(name: str, library: str) -> None:
    """Print the wall and CPU seconds of a first call, and the sum of its results."""
    module = importlib.import_module(library)
    if name in PROGRAMS:
        call = PROGRAMS[name][0](module)
    else:
        module.config.update("jax_enable_x64", True)
        call = next(case.program(module) for case in cases() if case.name == name)
    start, cpu = perf_counter(), _cpu()
    result = call()
    print(perf_counter() - start, _cpu() - cpu, float(np.nansum(np.abs(result))))


def _cpu(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def process(name: str, library: str) -> tuple[float, float]:
    """Return the wall and CPU seconds of a program in a fresh process."""
    code = [sys.executable, "-m", "benchmarks.first_calls", "--work", name, library]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "ACCNP_CACHE_DIR": cache, "JAX_PLATFORMS": "cpu"}
        start, cpu = perf_counter(), _cpu(resource.RUSAGE_CHILDREN)
        text = subprocess.run(code, env=environment, capture_output=True, text=True, check=True)
        whole = perf_counter() - start, _cpu(resource.RUSAGE_CHILDREN) - cpu
    wall, used, _ = map(float, text.stdout.split())
    return whole if name in PROGRAMS and PROGRAMS[name][1] else (wall, used)


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if a program misses the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.work:
        work(*options.work)
        return 0
    missed = 0
    of_cases: list[list[float]] = []  # the ratios of each case
    print(f"{'program':32} {'accnp s':>8} {'jax s':>8} {'bar':>5}  wall ratios, CPU ratios")
    for name in (*PROGRAMS, *CASES):
        if not any(fnmatch.fnmatch(name, f"*{pattern}*") for pattern in options.only):
            continue
        walls, cpus, ours, theirs = [], [], [], []
        for _ in range(options.runs):
            pairs = [(process(name, "accnp"), process(name, "jax")) for _ in range(options.rounds)]
            ours = [min(values) for values in zip(*(a for a, _ in pairs))]
            theirs = [min(values) for values in zip(*(b for _, b in pairs))]
            walls.append(ours[0] / theirs[0])
            cpus.append(ours[1] / theirs[1])
        misses = name in PROGRAMS and statistics.median(walls) > BAR
        missed += misses
        if name not in PROGRAMS:
            of_cases.append(walls)
        rows = ", ".join(" ".join(f"{r:5.2f}" for r in ratios) for ratios in (walls, cpus))
        remark = "  misses" if misses else ""
        print(f"{name:32} {ours[0]:8.2f} {theirs[0]:8.2f} {BAR:5.2f}  {rows}{remark}", flush=True)
    if of_cases:
        means = [statistics.geometric_mean(column) for column in zip(*of_cases, strict=True)]
        rows = " ".join(f"{r:5.2f}" for r in means)
        misses = statistics.median(means) > BAR
        missed += misses
        remark = "  misses" if misses else ""
        print(f"{f'geometric mean of {len(of_cases)} cases':50} {BAR:5.2f}  {rows}{remark}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
