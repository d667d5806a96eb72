"""Every value that is stored in memory has a reason, as text from the rule that decided it."""

import pytest

import accnp as jnp
from accnp.compiler.fusion.describe import why_stored


def concatenated(x):
    h = jnp.concatenate([jnp.exp(x), x[:1] * 2])
    return h[1:] + h[:-1]


def several_readers(x):
    h = jnp.exp(x)
    return h.sum(0)[None] * x, h.T.reshape(-1), jnp.fft.fft(h)


def chain(x):
    for i in range(150):
        x = x * float(i) + jnp.sin(x)
    return x


PROGRAMS = {
    "fft": (lambda x: jnp.fft.rfft(jnp.exp(x), axis=0).real, "fft is a library call: it reads"),
    "gather": (lambda x: jnp.exp(x)[jnp.array([1, 2])], "gather reads it at computed places"),
    "fold": (lambda x: x / jnp.sqrt((x * x).sum()), "a long reduction is computed in chunks"),
    "columns": (lambda x: x - x.mean(0), "other index space: a map kernel over [600, 40]"),
    "reshape": (lambda x: jnp.exp(x).T.reshape(-1, 5) + 1, "no strides can say transpose"),
    "concatenate": (concatenated, "concatenate, which is expensive to recompute"),
    "readers": (several_readers, "kernels read it: "),
    "chain": (chain, "size limit: a kernel computes"),
    "loop": (
        lambda x: jnp.lax.fori_loop(0, 3, lambda i, c: c * 2, jnp.exp(x)).sum(),
        "is a native loop: it reads",
    ),
    "scalar": (lambda x: x * jnp.exp(x[0, 0]), ""),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_stored_value_has_its_reason(name):
    f, reason = PROGRAMS[name]
    looked = jnp.inspect(f)(jnp.ones((600, 40)))
    stored = [v for v in looked.program.values if v.stored]
    outputs = {id(v) for v in looked.program.outputs}
    assert stored
    for v in stored:
        assert why_stored(v), v
        assert ("an output" in why_stored(v)) == (id(v) in outputs)
    assert any(reason in text for v in stored for text in why_stored(v))
