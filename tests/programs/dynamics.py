"""Programs that integrate, search and solve: differential equations, fixed points, beam search,
automata.

Each function takes a module with JAX's API, and returns a function of arrays and its arguments as
NumPy arrays.
"""

from typing import Any

import numpy as np
from programs.learning import Made, normal


def neural_ode(m: Any) -> Made:
    """Adaptive Heun steps in `while_loop` with a directional derivative, and fixed steps with a
    reverse-mode gradient."""
    jnp = m.numpy

    def field(p, y):
        return jnp.tanh(y @ p["w1"]) @ p["w2"]

    def heun(p, y, h):
        k1 = field(p, y)
        k2 = field(p, y + h * k1)
        return y + h / 2 * (k1 + k2), h / 2 * jnp.abs(k2 - k1).max()

    def adaptive(p, y):
        def going(state):
            return state[0] < 1.0

        def step(state):
            t, h, y, count = state
            h = jnp.minimum(h, 1.0 - t)
            new, error = heun(p, y, h)
            good = error < 1e-3
            scale = jnp.clip(0.9 * jnp.sqrt(1e-3 / (error + 1e-9)), 0.3, 3.0)
            return jnp.where(good, t + h, t), h * scale, jnp.where(good, new, y), count + 1

        _, _, y, count = m.lax.while_loop(going, step, (0.0, 0.3, y, 0))
        return y, count

    def fixed_loss(p, y):
        def step(y, _):
            return heun(p, y, 0.1)[0], None

        return jnp.sum(m.lax.scan(step, y, None, length=10)[0] ** 2)

    def run(p, y, direction):
        end, count = adaptive(p, y)
        forward = m.jvp(lambda y: adaptive(p, y)[0], (y,), (direction,))[1]
        return end, count, forward, m.value_and_grad(fixed_loss)(p, y)

    p = {"w1": normal(0, 2, 16), "w2": normal(1, 16, 2, scale=0.5)}
    return run, (p, normal(2, 6, 2), normal(3, 6, 2))


def fixed_point(m: Any) -> Made:
    """Implicit differentiation through a fixed point by `custom_vjp`, with a `while_loop` in both
    passes."""
    jnp = m.numpy

    def converge(f, x):
        def going(state):
            before, now = state
            return jnp.max(jnp.abs(before - now)) > 1e-5

        return m.lax.while_loop(going, lambda s: (s[1], f(s[1])), (x, f(x)))[1]

    def body(p, x):
        return jnp.tanh(p["w"] @ x + p["b"])

    @m.custom_vjp
    def solution(p, start):
        return converge(lambda x: body(p, x), start)

    def forward(p, start):
        x = solution(p, start)
        return x, (p, x)

    def backward(saved, cotangent):
        p, x = saved
        _, back_x = m.vjp(lambda x: body(p, x), x)
        _, back_p = m.vjp(lambda p: body(p, x), p)
        u = converge(lambda u: cotangent + back_x(u)[0], cotangent)
        return back_p(u)[0], jnp.zeros_like(x)

    solution.defvjp(forward, backward)

    def loss(p, start):
        return jnp.sum(solution(p, start) ** 3)

    def run(p, starts):
        one = m.value_and_grad(loss)(p, starts[0])
        return one, m.vmap(m.grad(loss), in_axes=(None, 0))(p, starts)

    return run, ({"w": normal(0, 5, 5, scale=0.2), "b": normal(1, 5)}, normal(2, 3, 5))


def beam_search(m: Any) -> Made:
    """A beam of sequences in `while_loop`: top_k, gathers, and dynamic slices written in place."""
    jnp, lax = m.numpy, m.lax
    width, length, stop = 3, 8, 0

    def run(table, start):
        def going(state):
            step, _, _, done = state
            return (step < length) & ~jnp.all(done)

        def extend(state):
            step, beams, scores, done = state
            last = lax.dynamic_slice(beams, (0, step - 1), (width, 1))[:, 0]
            growth = m.nn.log_softmax(table[last])
            n = growth.shape[1]
            growth = jnp.where(
                done[:, None], jnp.where(jnp.arange(n) == stop, 0.0, -jnp.inf), growth
            )
            best, where = lax.top_k((scores[:, None] + growth).ravel(), width)
            parent, token = where // n, where % n
            beams = lax.dynamic_update_slice(
                beams[parent], token[:, None].astype(beams.dtype), (0, step)
            )
            return step + 1, beams, best, done[parent] | (token == stop)

        beams = jnp.zeros((width, length), jnp.int32).at[:, 0].set(start)
        scores = jnp.array([0.0, -jnp.inf, -jnp.inf])
        return lax.while_loop(going, extend, (1, beams, scores, jnp.zeros(width, bool)))

    return run, (normal(0, 6, 6, scale=2.0), np.int32(4))


def automaton(m: Any) -> Made:
    """Conway's game of life by `scan` over rolled boards, and rule 110 by table lookup."""
    jnp = m.numpy

    def life(board, _):
        ring = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        near = sum(jnp.roll(board, shift, axis=(0, 1)) for shift in ring)
        board = ((near == 3) | ((near == 2) & (board == 1))).astype(board.dtype)
        return board, board.sum()

    def rule_110(cells, _):
        pattern = 4 * jnp.roll(cells, 1) + 2 * cells + jnp.roll(cells, -1)
        cells = (jnp.uint32(110) >> pattern.astype(jnp.uint32)).astype(cells.dtype) & 1
        return cells, cells

    def run(board, cells):
        return (
            m.lax.scan(life, board, None, length=12),
            m.lax.scan(rule_110, cells, None, length=20),
        )

    rng = np.random.default_rng(0)
    return run, (
        (rng.random((12, 10)) < 0.4).astype(np.int32),
        np.eye(1, 24, 23, dtype=np.int32)[0],
    )


def conjugate_gradients(m: Any) -> Made:
    """Conjugate gradients in `while_loop`; a batch of systems that converge at different steps
    under `vmap`."""
    jnp = m.numpy

    def solve(matrix, b):
        def going(state):
            _, r, _, count = state
            return (r @ r > 1e-8) & (count < 40)

        def improve(state):
            x, r, p, count = state
            along = matrix @ p
            step = (r @ r) / (p @ along)
            x, new = x + step * p, r - step * along
            return x, new, new + (new @ new) / (r @ r) * p, count + 1

        x, r, _, count = m.lax.while_loop(going, improve, (jnp.zeros_like(b), b, b, 0))
        return x, jnp.sqrt(r @ r) < 1e-3, count > 2

    def run(roots, bs):
        # Systems of rank 1, 2 and 6 above the unit matrix need that many steps.
        keep = jnp.arange(6)[None] < jnp.array([1, 2, 6])[:, None]
        roots = roots * keep[:, None]
        matrices = jnp.einsum("bij,bkj->bik", roots, roots) + jnp.eye(6)
        return m.vmap(solve)(matrices, bs)

    return run, (normal(0, 3, 6, 6), normal(1, 3, 6))


def planets(m: Any) -> Made:
    """A symplectic integrator by `scan` with `checkpoint`, and the gradient of the
    final positions."""

    def force(q, mass):
        gap = q[None] - q[:, None]
        close = (gap**2).sum(-1) + 0.05
        return (mass[None, :, None] * gap * close[..., None] ** -1.5).sum(1)

    def end(v, q, mass):
        @m.checkpoint
        def step(state, _):
            q, v = state
            v = v + 0.025 * force(q, mass)
            q = q + 0.05 * v
            v = v + 0.025 * force(q, mass)
            energy = 0.5 * (mass[:, None] * v**2).sum()
            return (q, v), energy

        (q, v), energies = m.lax.scan(step, (q, v), None, length=25)
        return (q[0] ** 2).sum(), (q, energies)

    run = m.value_and_grad(end, has_aux=True)
    return run, (normal(0, 5, 3, scale=0.3), normal(1, 5, 3), np.abs(normal(2, 5)) + 0.1)


PROGRAMS = [neural_ode, fixed_point, beam_search, automaton, conjugate_gradients, planets]
