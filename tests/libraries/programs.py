"""Small programs that use libraries written for JAX. Each returns a dictionary of arrays.

`run.py` runs them with JAX or with accnp in its place. Each function imports its library, so that a
missing library affects only its own program.
"""

import jax
import jax.numpy as jnp
import numpy as np

DATA = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
TARGET = (DATA @ np.array([1.0, -2.0, 0.5, 3.0], np.float32) + 0.1).astype(np.float32)


def optax():
    import optax

    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(0.1, 30))
    )
    w = jnp.zeros(4)
    state = optimizer.init(w)

    @jax.jit
    def step(w, state):
        loss, gradient = jax.value_and_grad(lambda w: optax.huber_loss(DATA @ w, TARGET).mean())(w)
        updates, state = optimizer.update(gradient, state, w)
        return optax.apply_updates(w, updates), state, loss

    for _ in range(20):
        w, state, loss = step(w, state)
    return {"weights": w, "loss": loss}


def equinox():
    import equinox as eqx
    import optax

    model = eqx.nn.MLP(4, 1, 8, 2, key=jax.random.key(0))
    optimizer = optax.sgd(0.05)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state):
        def loss(model):
            return jnp.mean((jax.vmap(model)(DATA)[:, 0] - TARGET) ** 2)

        value, gradient = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(model, updates), state, value

    for _ in range(10):
        model, state, loss = step(model, state)
    return {"loss": loss, "first": model.layers[0].weight}


def flax_linen():
    import flax.linen as nn

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.BatchNorm(use_running_average=not train)(nn.Dense(8)(x))
            return nn.Dense(1)(nn.Dropout(0.2, deterministic=not train)(nn.gelu(x)))

    model = Model()
    variables = model.init(jax.random.key(0), DATA, False)

    @jax.jit
    def step(variables, key):
        def loss(params):
            y, changed = model.apply(
                {**variables, "params": params}, DATA, True,
                rngs={"dropout": key}, mutable=["batch_stats"],
            )  # fmt: skip
            return jnp.mean((y[:, 0] - TARGET) ** 2), changed

        (value, changed), gradient = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        params = jax.tree.map(lambda p, g: p - 0.05 * g, variables["params"], gradient)
        return {"params": params, **changed}, value

    for i in range(5):
        variables, loss = step(variables, jax.random.key(i))
    return {"loss": loss, "output": model.apply(variables, DATA, False)}


def flax_nnx():
    import optax
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(4, 8, rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.dropout = nnx.Dropout(0.2, rngs=rngs)
            self.last = nnx.Linear(8, 1, rngs=rngs)

        def __call__(self, x):
            return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.05), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        def loss(model):
            return jnp.mean((model(DATA)[:, 0] - TARGET) ** 2)

        value, gradient = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradient)
        return value

    losses = [step(model, optimizer) for _ in range(5)]
    model.eval()
    return {"losses": jnp.stack(losses), "output": model(DATA)}


def diffrax():
    import diffrax

    def field(t, y, a):
        return jnp.array([y[1], -a * y[0] - 0.1 * y[1]])

    @jax.jit
    @jax.value_and_grad
    def final(a):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 3.0, 0.1, jnp.array([1.0, 0.0]), a,
            saveat=diffrax.SaveAt(ts=jnp.linspace(0, 3, 5)),
            stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
        )  # fmt: skip
        return jnp.sum(solution.ys**2)

    value, gradient = final(2.0)
    return {"value": value, "gradient": gradient}


def lineax():
    import lineax as lx

    matrix = jnp.asarray(DATA[:4]) + 3 * jnp.eye(4)
    right = jnp.asarray(TARGET[:4])
    lu = lx.linear_solve(lx.MatrixLinearOperator(matrix), right).value
    positive = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
    cg = lx.linear_solve(positive, right, lx.CG(rtol=1e-5, atol=1e-5)).value
    least = lx.linear_solve(
        lx.MatrixLinearOperator(jnp.asarray(DATA)), jnp.asarray(TARGET), lx.QR()
    ).value
    return {"lu": lu, "cg": cg, "least squares": least}


def optimistix():
    import optimistix as optx

    root = optx.root_find(
        lambda y, a: jnp.array([y[0] ** 2 + y[1] - a, y[0] - y[1]]),
        optx.Newton(rtol=1e-6, atol=1e-6), jnp.array([1.0, 0.5]), 3.0,
    )  # fmt: skip
    lowest = optx.minimise(
        lambda y, _: (1 - y[0]) ** 2 + 10 * (y[1] - y[0] ** 2) ** 2,
        optx.BFGS(rtol=1e-6, atol=1e-6), jnp.zeros(2), max_steps=200,
    )  # fmt: skip
    return {"root": root.value, "lowest": lowest.value}


def numpyro():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    def model(y):
        mean = numpyro.sample("mean", dist.Normal(0, 5))
        scale = numpyro.sample("scale", dist.HalfNormal(2))
        with numpyro.plate("data", len(y)):
            numpyro.sample("y", dist.Normal(mean, scale), obs=y)

    # Short: rounding errors grow along a chain.
    chain = MCMC(NUTS(model), num_warmup=10, num_samples=10, progress_bar=False)
    chain.run(jax.random.key(0), jnp.asarray(TARGET))
    samples = chain.get_samples()
    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
    fitted = svi.run(jax.random.key(1), 50, jnp.asarray(TARGET), progress_bar=False)
    return {
        "samples": jnp.stack([samples["mean"], samples["scale"]]),
        "losses": fitted.losses[:20],
    }


def blackjax():
    import blackjax

    kernel = blackjax.hmc(
        lambda x: -0.5 * (x**2).sum(), step_size=0.3, inverse_mass_matrix=jnp.ones(2),
        num_integration_steps=5,
    )  # fmt: skip
    state = kernel.init(jnp.ones(2))
    step = jax.jit(kernel.step)
    for key in jax.random.split(jax.random.key(0), 5):
        state, info = step(key, state)
    return {"position": state.position, "acceptance": info.acceptance_rate}


def chex():
    import chex

    @chex.dataclass
    class State:
        x: chex.Array
        count: int

    state = jax.tree.map(lambda leaf: leaf + 1, State(x=jnp.ones(3), count=1))
    chex.assert_shape(state.x, (3,))
    chex.assert_trees_all_close(state.x, jnp.full(3, 2.0))

    @jax.jit
    @chex.assert_max_traces(n=1)
    def once(x):
        return x * 2

    once(state.x)
    return {"x": once(state.x), "count": state.count}


def distrax():
    import distrax

    normal = distrax.MultivariateNormalDiag(jnp.zeros(3), jnp.array([1.0, 2.0, 0.5]))
    samples, densities = normal.sample_and_log_prob(seed=jax.random.PRNGKey(0), sample_shape=(4,))
    warped = distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Tanh())
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(logits=jnp.array([0.0, 1.0])),
        distrax.Normal(jnp.array([-1.0, 2.0]), jnp.array([0.5, 1.0])),
    )
    return {
        "samples": samples, "densities": densities,
        "warped": warped.log_prob(jnp.array([0.1, -0.7])),
        "mixture": mixture.log_prob(jnp.linspace(-2, 2, 5)),
    }  # fmt: skip


def haiku():
    import haiku as hk

    def net(x):
        x = hk.LayerNorm(-1, True, True)(hk.nets.MLP([8, 8])(x))
        core = hk.LSTM(5)
        return hk.dynamic_unroll(core, x[:, None], core.initial_state(1))[0]

    f = hk.without_apply_rng(hk.transform(net))
    params = f.init(jax.random.PRNGKey(0), DATA)
    gradients = jax.jit(jax.grad(lambda p: jnp.sum(f.apply(p, DATA) ** 2)))(params)
    return {"output": f.apply(params, DATA), "gradient": jax.tree.leaves(gradients)[0]}


def jaxtyping():
    from jaxtyping import Array, Float, Int

    fits = [
        isinstance(jnp.ones((2, 3)), Float[Array, "2 3"]),
        isinstance(jnp.ones((2, 3)), Float[Array, "3 3"]),
        isinstance(jnp.arange(3), Int[Array, "n"]),
    ]
    return {"fits": np.array(fits)}


def keras():
    import keras

    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(8, activation="relu"),
        keras.layers.LayerNormalization(), keras.layers.Dense(1),
    ])  # fmt: skip
    model.compile("adam", "mse")
    history = model.fit(DATA, TARGET, epochs=3, batch_size=8, shuffle=False, verbose=0)
    return {"loss": np.array(history.history["loss"]), "output": model.predict(DATA, verbose=0)}


PROGRAMS = {f.__name__: f for f in [
    optax, equinox, flax_linen, flax_nnx, diffrax, lineax, optimistix, numpyro, blackjax, chex,
    distrax, haiku, jaxtyping, keras,
]}  # fmt: skip
