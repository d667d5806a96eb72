"""Programs of machine learning: regression, recurrent networks, attention, meta-learning.

Each function takes a module with JAX's API, and returns a function of arrays and its arguments as
NumPy arrays.
"""

from typing import Any

import numpy as np

Made = tuple[Any, tuple]


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def logistic_newton(m: Any) -> Made:
    """Logistic regression by five Newton steps with the Hessian of the loss."""
    jnp = m.numpy

    def loss(w, x, y):
        margin = jnp.where(y, 1.0, -1.0) * (x @ w)
        return jnp.mean(m.nn.softplus(-margin)) + 0.05 * w @ w

    def step(w, x, y):
        gradient, curvature = m.grad(loss)(w, x, y), m.hessian(loss)(w, x, y)
        return w - jnp.linalg.solve(curvature, gradient), (gradient, curvature)

    def fit(x, y):
        w = jnp.zeros(x.shape[1])
        for _ in range(5):
            w, (gradient, curvature) = step(w, x, y)
        return {"w": w, "loss": loss(w, x, y), "gradient": gradient, "curvature": curvature}

    x = normal(0, 60, 5)
    return fit, (x, x @ normal(1, 5) + normal(2, 60) > 0)


def recurrent(m: Any) -> Made:
    """A recurrent network by `scan`, with gradients with respect to weights and inputs."""
    jnp = m.numpy

    def forward(p, xs):
        def cell(h, x):
            h = jnp.tanh(p["in"] @ x + p["over"] @ h + p["b"])
            return h, p["out"] @ h

        return m.lax.scan(cell, jnp.zeros(p["b"].shape), xs)

    def loss(p, xs, targets):
        last, ys = forward(p, xs)
        return jnp.mean((ys - targets) ** 2) + 0.01 * jnp.sum(last**2)

    def run(p, xs, targets):
        return m.value_and_grad(loss, argnums=(0, 1))(p, xs, targets)

    p = {
        "in": normal(0, 8, 3, scale=0.5),
        "over": normal(1, 8, 8, scale=0.3),
        "out": normal(2, 2, 8, scale=0.3),
        "b": np.zeros(8, np.float32),
    }
    return run, (p, normal(3, 20, 3), normal(4, 20, 2))


def long_short_term(m: Any) -> Made:
    """An LSTM cell over a batch of sequences, by `scan` under `vmap`, with gradients."""
    jnp = m.numpy

    def cell(p, state, x):
        h, c = state
        gates = jnp.concatenate([x, h]) @ p["w"] + p["b"]
        keep, write, new, show = jnp.split(gates, 4)
        c = m.nn.sigmoid(keep + 1.0) * c + m.nn.sigmoid(write) * jnp.tanh(new)
        h = m.nn.sigmoid(show) * jnp.tanh(c)
        return (h, c), h

    def one(p, xs):
        zero = jnp.zeros(6)
        (h, _), hs = m.lax.scan(lambda s, x: cell(p, s, x), (zero, zero), xs)
        return h @ p["readout"], hs.mean(0)

    def loss(p, batch, labels):
        scores, mean = m.vmap(one, in_axes=(None, 0))(p, batch)
        likelihood = m.nn.log_softmax(scores)
        return -likelihood[jnp.arange(labels.shape[0]), labels].mean() + (mean**2).mean(), scores

    def run(p, batch, labels):
        return m.value_and_grad(loss, has_aux=True)(p, batch, labels)

    p = {"w": normal(0, 10, 24, scale=0.4), "b": normal(1, 24), "readout": normal(2, 6, 3)}
    return run, (p, normal(3, 5, 9, 4), np.array([0, 2, 1, 1, 0], np.int32))


def attention(m: Any) -> Made:
    """A block of causal attention with two heads, layer normalization and GELU, with gradients."""
    jnp = m.numpy

    def layer_norm(x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return scale * centred * m.lax.rsqrt(centred.var(-1, keepdims=True) + 1e-5)

    def block(p, x):
        t, d = x.shape
        q, k, v = jnp.split(layer_norm(x, p["norm"][0]) @ p["qkv"], 3, axis=-1)
        q, k, v = (a.reshape(t, 2, d // 2).transpose(1, 0, 2) for a in (q, k, v))
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / jnp.sqrt(d / 2)
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("hqk,hkd->qhd", m.nn.softmax(scores, axis=-1), v).reshape(t, d)
        x = x + mixed @ p["out"]
        return x + m.nn.gelu(layer_norm(x, p["norm"][1]) @ p["up"]) @ p["down"]

    def loss(p, batch):
        out = m.vmap(block, (None, 0))(p, batch)
        return jnp.mean((out[:, :-1] - batch[:, 1:]) ** 2)

    p = {
        "qkv": normal(0, 8, 24, scale=0.3),
        "out": normal(1, 8, 8, scale=0.3),
        "up": normal(2, 8, 16, scale=0.3),
        "down": normal(3, 16, 8, scale=0.3),
        "norm": [np.ones(8, np.float32), np.ones(8, np.float32)],
    }
    return m.value_and_grad(loss), (p, normal(4, 3, 7, 8))


def learning_to_learn(m: Any) -> Made:
    """MAML on sine waves: the gradient is taken through the gradient steps of every task."""
    jnp = m.numpy

    def forward(p, x):
        for w, b in p[:-1]:
            x = m.nn.relu(x @ w + b)
        w, b = p[-1]
        return x @ w + b

    def loss(p, x, y):
        return jnp.mean((forward(p, x) - y) ** 2)

    def adapted(p, x, y):
        for _ in range(2):
            gradient = m.grad(loss)(p, x, y)
            p = m.tree_util.tree_map(lambda a, g: a - 0.05 * g, p, gradient)
        return p

    def task_loss(p, x1, y1, x2, y2):
        return loss(adapted(p, x1, y1), x2, y2)

    def meta(p, *tasks):
        return jnp.mean(m.vmap(task_loss, in_axes=(None, 0, 0, 0, 0))(p, *tasks))

    sizes = [(1, 12), (12, 12), (12, 1)]
    p = [
        (normal(i, a, b, scale=a**-0.5), normal(10 + i, b, scale=0.1))
        for i, (a, b) in enumerate(sizes)
    ]
    x1, x2, phase = normal(20, 4, 6, 1), normal(21, 4, 6, 1), normal(22, 4, 1, 1)
    return m.value_and_grad(meta), (p, x1, np.sin(x1 + phase), x2, np.sin(x2 + phase))


def per_example(m: Any) -> Made:
    """Per-example gradients by vmap(grad), clipped to a norm and averaged."""
    jnp = m.numpy

    def loss(p, x, label):
        hidden = jnp.tanh(x @ p["w1"] + p["b1"])
        return -m.nn.log_softmax(hidden @ p["w2"])[label]

    def run(p, x, labels):
        gradients = m.vmap(m.grad(loss), in_axes=(None, 0, 0))(p, x, labels)
        squares = [
            (g**2).reshape(g.shape[0], -1).sum(1) for g in m.tree_util.tree_leaves(gradients)
        ]
        norms = jnp.sqrt(sum(squares))
        share = jnp.minimum(1.0, 0.5 / norms)
        mean = m.tree_util.tree_map(lambda g: jnp.einsum("b,b...->...", share, g) / 16, gradients)
        return mean, norms, gradients

    p = {"w1": normal(0, 6, 10, scale=0.4), "b1": normal(1, 10), "w2": normal(2, 10, 4)}
    return run, (p, normal(3, 16, 6), np.arange(16, dtype=np.int32) % 4)


def advantages(m: Any) -> Made:
    """PPO: generalized advantages by a reverse `scan`, the clipped objective and its gradients."""
    jnp = m.numpy

    def advantage(rewards, values, ended):
        def step(carry, now):
            later, value_after = carry
            reward, value, end = now
            alive = 1.0 - end
            error = reward + 0.95 * value_after * alive - value
            later = error + 0.95 * 0.9 * alive * later
            return (later, value), later

        start = (jnp.zeros_like(values[0]), values[-1])
        return m.lax.scan(step, start, (rewards, values[:-1], ended), reverse=True)[1]

    def objective(p, seen, actions, old, rewards, ended):
        values = (seen @ p["value"])[..., 0]
        gain = m.lax.stop_gradient(advantage(rewards, values, ended))
        policy = m.nn.log_softmax(seen[:-1] @ p["policy"])
        chosen = jnp.take_along_axis(policy, actions[..., None], axis=-1)[..., 0]
        ratio = jnp.exp(chosen - old)
        gain_scaled = (gain - gain.mean()) / (gain.std() + 1e-6)
        clipped = jnp.clip(ratio, 0.8, 1.2)
        entropy = -(jnp.exp(policy) * policy).sum(-1).mean()
        value_loss = ((values[:-1] - gain - m.lax.stop_gradient(values[:-1])) ** 2).mean()
        gained = jnp.minimum(ratio * gain_scaled, clipped * gain_scaled).mean()
        return -gained + 0.5 * value_loss - 0.01 * entropy

    p = {"value": normal(0, 4, 1), "policy": normal(1, 4, 3, scale=0.5)}
    rng = np.random.default_rng(2)
    ended = (rng.random((12, 3)) < 0.2).astype(np.float32)
    actions = rng.integers(0, 3, (12, 3)).astype(np.int32)
    return m.value_and_grad(objective), (
        p,
        normal(3, 13, 3, 4),
        actions,
        normal(4, 12, 3, scale=0.1) - 1.1,
        normal(5, 12, 3),
        ended,
    )


def autoencoder(m: Any) -> Made:
    """A variational autoencoder with sampled codes, trained by Adam for three steps."""
    jnp, tree_map = m.numpy, m.tree_util.tree_map

    def bound(p, key, x):
        mean, log_deviation = jnp.split(jnp.tanh(x @ p["up"]) @ p["code"], 2, axis=-1)
        code = mean + jnp.exp(log_deviation) * m.random.normal(key, mean.shape)
        scores = jnp.tanh(code @ p["down"]) @ p["out"]
        fit = jnp.sum(x * m.nn.log_sigmoid(scores) + (1 - x) * m.nn.log_sigmoid(-scores), -1)
        spread = 0.5 * jnp.sum(jnp.exp(2 * log_deviation) + mean**2 - 1 - 2 * log_deviation, -1)
        return jnp.mean(spread - fit)

    def train(p, x):
        first = second = tree_map(jnp.zeros_like, p)
        losses = []
        for i in range(1, 4):
            key = m.random.fold_in(m.random.PRNGKey(0), i)
            value, gradient = m.value_and_grad(bound)(p, key, x)
            first = tree_map(lambda a, g: 0.9 * a + 0.1 * g, first, gradient)
            second = tree_map(lambda a, g: 0.99 * a + 0.01 * g**2, second, gradient)
            rate = 0.05 * (1 - 0.99**i) ** 0.5 / (1 - 0.9**i)
            p = tree_map(lambda a, f, s, r=rate: a - r * f / (jnp.sqrt(s) + 1e-3), p, first, second)
            losses.append(value)
        return p, jnp.stack(losses)

    p = {
        "up": normal(0, 9, 12, scale=0.3),
        "code": normal(1, 12, 4, scale=0.3),
        "down": normal(2, 2, 12, scale=0.3),
        "out": normal(3, 12, 9, scale=0.3),
    }
    return train, (p, (normal(4, 10, 9) > 0).astype(np.float32))


PROGRAMS = [
    logistic_newton,
    recurrent,
    long_short_term,
    attention,
    learning_to_learn,
    per_example,
    advantages,
    autoencoder,
]
