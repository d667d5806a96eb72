"""Random numbers compared with JAX: bit-identical, or within a few ulp for transcendental
functions.
"""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from api.oracle import jax_result
from api.tables import split_cases
from jax import random as theirs

import accnp
import accnp.numpy as jnp
from accnp import random as ours
from accnp.config import config

EXACT = """
bits(k) | bits(k,(5,)) | bits(k,(2,3),'uint8') | bits(k,(3,),'uint16') | split(k) | split(k,3)
split(k,(2,3)) | fold_in(k,7) | fold_in(k,np.int32(-3)) | uniform(k,(3,4)) | uniform(k)
uniform(k,(3,),minval=-2,maxval=5.) | uniform(k,(2,3),'float16') | uniform(k,(5,),'bfloat16')
uniform(k,(3,),minval=np.arange(3.),maxval=9.) | randint(k,(7,),0,10)
randint(k,(7,),-5,1000000) | randint(k,(7,),10,0) | randint(k,(7,),0,256,'uint8')
randint(k,(7,),-128,127,'int8') | randint(k,(3,),0,np.array([1,2,3]))
randint(k,(3,),-2**31,2**31-1) | bernoulli(k,0.3,(9,)) | bernoulli(k,np.array([.1,.9]))
bernoulli(k,.3,(4,),mode='high') | permutation(k,10) | permutation(k,np.arange(12).reshape(4,3))
permutation(k,np.arange(12).reshape(4,3),1) | permutation(k,np.arange(12).reshape(4,3),1,True)
permutation(k,np.arange(7.)) | choice(k,5) | choice(k,5,(3,),False)
choice(k,np.arange(10.),(2,3)) | choice(k,np.arange(12).reshape(4,3),(2,),False,axis=0)
choice(k,np.arange(12).reshape(4,3),(2,2),axis=1) | choice(k,4,(6,),p=np.array([.1,.2,.3,.4]))
choice(k,4,(3,),False,p=np.array([.1,.2,.3,.4])) | categorical(k,np.zeros((2,5),'f'))
categorical(k,np.zeros((2,5),'f'),0) | categorical(k,np.zeros((2,5),'f'),shape=(3,2))
categorical(k,np.zeros((2,5),'f'),shape=(3,2),replace=False) | rademacher(k,(5,))
"""
NEAR = """
normal(k,(5,)) | normal(k,(2,),'complex64') | normal(k,(3,),'bfloat16') | gumbel(k,(4,))
gumbel(k,(4,),mode='high') | truncated_normal(k,-2.,2.,(4,))
truncated_normal(k,np.array([-1.,0]),3.) | exponential(k,(5,)) | laplace(k,(5,))
logistic(k,(5,)) | cauchy(k,(5,)) | lognormal(k,.5,(5,)) | pareto(k,2.,(5,))
rayleigh(k,2.,(5,)) | weibull_min(k,2.,3.,(5,)) | triangular(k,0.,.3,1.,(5,))
geometric(k,.3,(9,)) | maxwell(k,(5,)) | double_sided_maxwell(k,1.,2.,(5,))
multivariate_normal(k,np.zeros(3,'f'),np.eye(3,dtype='f')*2)
multivariate_normal(k,np.zeros(3,'f'),np.eye(3,dtype='f')*2,(4,)) | orthogonal(k,3)
pareto(k,np.array([1.,2.]))
"""


def _both(text: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    scope = {"np": np}
    mine = eval(
        text, {**{n: getattr(ours, n) for n in ours.__all__}, **scope, "k": ours.PRNGKey(seed)}
    )
    other = jax_result(
        lambda: eval(text, {**vars(theirs), **scope, "k": theirs.PRNGKey(seed)}), text
    )
    assert mine.shape == other.shape
    assert mine.dtype == other.dtype
    out = [np.asarray(v) for v in (mine, other)]
    small = (np.float16, ml_dtypes.bfloat16)
    return tuple([v.astype(np.float32) if v.dtype in small else v for v in out])  # type: ignore[return-value]


@pytest.mark.parametrize("seed", [0, 42])
@pytest.mark.parametrize("text", split_cases(EXACT))
def test_same_bits(text: str, seed: int) -> None:
    np.testing.assert_array_equal(*_both(text, seed))


@pytest.mark.parametrize("text", split_cases(NEAR))
def test_same_to_a_few_ulp(text: str) -> None:
    a, b = _both(text, 3)
    tolerance = 1e-2 if "bfloat16" in text else 1e-5
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=1e-7)


def test_many_uniforms_and_normals() -> None:
    a, b = _both("uniform(k, (300, 1000))", 1)
    np.testing.assert_array_equal(a, b)
    a, b = _both("uniform(k, (100_000,), minval=0.1, maxval=0.7)", 1)
    np.testing.assert_array_equal(a, b)
    a, b = _both("normal(k, (100_000,))", 1)
    assert float(np.max(np.abs(a - b) / np.spacing(np.abs(b)))) <= 4
    a, b = _both("permutation(k, 100_000)", 1)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "seed",
    [0, 1, -1, 2**31, 2**32 + 5, 2**40, -(2**40), np.uint32(7), np.int64(2**33), True, np.int8(-2)],
)
def test_seeds(seed: Any) -> None:
    np.testing.assert_array_equal(np.asarray(ours.PRNGKey(seed)), np.asarray(theirs.PRNGKey(seed)))


def test_64_bits() -> None:
    with accnp.enable_x64(), jax.enable_x64(True):
        for text in (
            "bits(k, (3,), 'uint64')", "uniform(k, (4,))", "randint(k, (5,), 0, 10**12)",
            "poisson(k, 3.0, (4,))", "binomial(k, 10, np.float32(0.3), (4,))",
            "bits(key(3, impl='rbg'), (3,), 'uint64')",
        ):  # fmt: skip
            np.testing.assert_array_equal(*_both(text, 5))
        a, b = _both("normal(k, (50,))", 5)
        np.testing.assert_allclose(a, b, rtol=1e-12)
        seed = 2**40 + 3
        np.testing.assert_array_equal(
            np.asarray(ours.PRNGKey(seed)), np.asarray(theirs.PRNGKey(seed))
        )


def test_typed_keys() -> None:
    k, other = ours.key(7), theirs.key(7)
    assert repr(k) == repr(other)
    assert (k.shape, k.ndim, k.size, str(k.dtype)) == ((), 0, 1, "key<fry>")
    many = ours.split(k, (2, 3))
    assert many.shape == (2, 3)
    assert many[1].shape == (3,)
    assert many[0, 1].shape == ()
    assert len(list(many)) == 2
    assert many.reshape(-1).shape == (6,)
    np.testing.assert_array_equal(
        np.asarray(ours.key_data(many)), np.asarray(theirs.key_data(theirs.split(other, (2, 3))))
    )
    assert bool(k == ours.wrap_key_data(ours.PRNGKey(7)))
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(k)


@pytest.mark.parametrize(
    "show",
    [
        lambda k: k.T,
        lambda k: k.transpose(),
        lambda k: k.transpose(None),
        lambda k: k.transpose(1, 0, 2),
        lambda k: k.transpose((2, 0, 1)),
        lambda k: k.transpose(-1, 0, 1),
        lambda k: k.swapaxes(0, -1),
        lambda k: k.squeeze(),
        lambda k: k.squeeze(1),
        lambda k: k.squeeze((-2,)),
        lambda k: k.squeeze(()),
        lambda k: k[0, 0, 0].transpose(),
        lambda k: k[:, 0].transpose(1, 0),
        lambda k: k.copy(),
    ],
)
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_methods_that_move_keys(show: Any, impl: str) -> None:
    data = np.arange(6 * (2 if impl == "threefry2x32" else 4), dtype=np.uint32)
    data = data.reshape(2, 1, 3, -1)
    keys = ours.wrap_key_data(data, impl=impl)
    expected = np.asarray(theirs.key_data(show(theirs.wrap_key_data(data, impl=impl))))
    np.testing.assert_array_equal(np.asarray(ours.key_data(show(keys))), expected)
    np.testing.assert_array_equal(
        np.asarray(ours.key_data(accnp.jit(show)(keys))), expected, strict=True
    )
    assert ours.key_impl(show(keys)) == impl


@pytest.mark.parametrize(
    ("kind", "show"),
    [
        (TypeError, lambda k: k.transpose(0, 1)),  # jax's kinds
        (TypeError, lambda k: k.transpose(0, 0, 1)),
        (ValueError, lambda k: k.transpose(-4, 0, 1)),
        (ValueError, lambda k: k.swapaxes(0, 3)),
        (ValueError, lambda k: k.squeeze(0)),
        (ValueError, lambda k: k.squeeze(3)),
    ],
)
def test_methods_that_move_keys_name_the_axis_that_is_wrong(kind: Any, show: Any) -> None:
    with pytest.raises(kind, match=r"axis|axes"):
        show(ours.split(ours.key(0), (2, 1, 3)))


@pytest.mark.parametrize("make", [ours.key, ours.PRNGKey])
def test_under_transformations(make: Any) -> None:
    def draw(k: Any) -> Any:
        a, b = ours.split(k)
        return ours.normal(a, (3,)) + ours.uniform(b)

    expected = np.asarray(draw(make(1)))
    np.testing.assert_array_equal(np.asarray(accnp.jit(draw)(make(1))), expected)
    keys = ours.split(make(1), 4)
    batched = np.asarray(accnp.vmap(draw)(keys))
    np.testing.assert_array_equal(batched, np.stack([np.asarray(draw(keys[i])) for i in range(4)]))
    step = accnp.lax.scan(lambda k, _: (ours.split(k)[0], ours.uniform(k)), make(1), None, length=3)
    k, want_list = make(1), []
    for _ in range(3):
        want_list.append(float(ours.uniform(k)))
        k = ours.split(k)[0]
    assert np.asarray(step[1]).tolist() == want_list


def test_default_generator() -> None:
    with accnp.default_prng_impl("rbg"), jax.default_prng_impl("rbg"):
        np.testing.assert_array_equal(*_both("uniform(k, (4,))", 5))
        assert ours.PRNGKey(5).shape == (4,)
        assert repr(ours.key(5)) == repr(theirs.key(5))


HALVED = """
bits(k) | bits(k,(7,)) | bits(k,(0,)) | bits(k,(2,3),'uint8') | bits(k,(5,),'uint16') | split(k,3)
split(k,(2,3)) | fold_in(k,7) | uniform(k,(3,5)) | randint(k,(7,),0,10) | permutation(k,10)
gamma(k,2.,(3,)) | key_data(split(key(3,impl='rbg'),3)) | bits(k,(5,),'uint64')
"""


@pytest.mark.parametrize("text", split_cases(HALVED))
def test_threefry_partitionable_off_matches_jax(text: str) -> None:
    def at(k: Any, names: Any) -> Any:
        loaded = {n: getattr(names, n) for n in getattr(names, "__all__", ())}
        return eval(text, {**vars(names), **loaded, "k": k})

    k = ours.PRNGKey(42)
    wide = "64" in text
    with jax.threefry_partitionable(False), jax.enable_x64(wide):
        expected = np.asarray(at(theirs.PRNGKey(42), theirs))
    with accnp.threefry_partitionable(False), accnp.enable_x64(wide):
        plain, mapped = at(k, ours), accnp.vmap(accnp.jit(lambda k: at(k, ours)))(k[None])[0]
    np.testing.assert_allclose(plain, expected, rtol=1e-6)
    np.testing.assert_array_equal(plain, mapped)


def test_halved_counters_are_words() -> None:
    with (
        accnp.threefry_partitionable(False),
        pytest.raises(ValueError, match=r"is limited to 2\*\*32 words; got 5000000000"),
    ):
        ours.bits(ours.PRNGKey(0), (5 * 10**9,))


def test_gradient_by_the_bounds() -> None:
    k = ours.key(0)
    gradient = accnp.grad(lambda b: jnp.sum(ours.uniform(k, (5,), minval=0.0, maxval=b)))(2.0)
    assert float(gradient) == pytest.approx(float(jnp.sum(ours.uniform(k, (5,)))), rel=1e-6)


def test_gradient_by_a_parameter_beside_mapped_keys() -> None:
    keys = ours.split(ours.key(0), 2)
    one = [accnp.grad(lambda a, k=k: ours.gamma(k, a))(3.0) for k in keys]
    gradient = accnp.grad(lambda a: accnp.vmap(lambda k: ours.gamma(k, a))(keys).sum())(3.0)
    assert float(gradient) == pytest.approx(float(one[0] + one[1]), rel=1e-6)


def test_random_bits_are_not_stored() -> None:
    out = ours.uniform(ours.key(0), (100,)) * 2
    text = str(accnp.make_jaxpr(lambda k: ours.uniform(k, (100,)) * 2)(ours.PRNGKey(0)))
    assert "threefry_xor" in text
    assert out.shape == (100,)


REFUSED = [
    (lambda k: ours.PRNGKey(1.5), TypeError, "integer"),
    (lambda k: ours.PRNGKey(2**70), OverflowError, "64 signed bits"),
    (lambda k: ours.uniform(3), TypeError, "key"),
    (lambda k: ours.uniform(jnp.zeros(3, "uint32")), TypeError, r"shape=\(3,\)"),
    (lambda k: ours.uniform(jnp.zeros(2)), TypeError, "uint32"),
    (lambda k: ours.uniform(ours.split(k)), ValueError, "single key"),
    (lambda k: ours.uniform(k, (2,), dtype=int), ValueError, "float"),
    (lambda k: ours.uniform(k, -1), ValueError, "negative"),
    (lambda k: ours.uniform(k, (2,), minval=jnp.zeros(3)), ValueError, "broadcast"),
    (lambda k: ours.normal(k, (2,), dtype=int), ValueError, "float or complex"),
    (
        lambda k: ours.randint(k, (3,), 0, 10, dtype="float32"),
        TypeError,
        "must be an integer dtype",
    ),
    (lambda k: ours.fold_in(k, -1), OverflowError, "uint32"),
    (lambda k: ours.key(0, impl="philox"), ValueError, "rbg"),
    (lambda k: ours.choice(k, 3, (5,), replace=False), ValueError, "larger sample"),
    (lambda k: ours.choice(k, 0, (5,)), ValueError, "greater than 0"),
    (lambda k: ours.permutation(k, 1.5), TypeError, "integer"),
    (lambda k: accnp.jit(lambda n: ours.uniform(k, (n,)))(3), TypeError, "static"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_invalid_arguments_raise(call: Any, error: type[Exception], text: str) -> None:
    assert not config.x64
    with pytest.raises(error, match=text):
        call(ours.key(0))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_one_key_draws_for_all_examples(impl: str) -> None:
    """For counter-based bits, JAX draws those of a batch by the first key."""

    def drawn(j: Any) -> list[Any]:
        r, v = j.random, j.vmap
        k = r.key(5, impl=impl)
        keys = r.split(k, 4)
        rows = r.split(k, (2, 3))

        def chain(q: Any) -> Any:
            a, b = r.split(r.fold_in(q, 3))
            return r.normal(a, (2,)), r.key_data(b), r.bits(q, (5,), "uint8")

        def step(q: Any, _: Any) -> Any:
            return r.split(q)[0], r.uniform(q, (2,))

        body = j.checkpoint(lambda q: j.lax.scan(step, q, None, length=2)[1])
        raw = j.numpy.arange(12, dtype="uint32").reshape(3, 4)
        generate = j.lax.rng_bit_generator
        return [
            chain(k),
            v(chain)(keys),
            v(v(chain))(rows),
            v(j.jit(chain))(keys),
            j.jit(v(chain))(keys),
            v(lambda q: v(chain)(r.split(q, 2)))(keys),
            v(lambda i: chain(r.fold_in(k, i)))(j.numpy.arange(3)),
            v(lambda i: (chain(k), i))(j.numpy.arange(3)),
            v(body)(keys),
            v(lambda q: generate(q, (3,)), 0)(raw),
            v(v(lambda q: generate(q, (2,), "uint16"), 1), 0)(raw.reshape(1, 4, 3)),
        ]

    for ours_, theirs_ in zip(drawn(accnp), jax_result(lambda: drawn(jax), drawn), strict=True):
        for a, b in zip(jax.tree.leaves(ours_), jax.tree.leaves(theirs_), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-6)


def test_samples_by_loops_take_their_own_keys() -> None:
    keys = ours.split(ours.key(5, impl="rbg"), 3)
    many = np.asarray(accnp.vmap(lambda k: ours.gamma(k, 2.0, (2,)))(keys))
    single = [np.asarray(ours.gamma(keys[i], 2.0, (2,))) for i in range(3)]
    np.testing.assert_array_equal(many, single)


@pytest.mark.parametrize(
    "name", ["uniform", "exponential", "laplace", "logistic", "cauchy", "maxwell"]
)
def test_a_sampler_without_parameters_needs_a_shape(name):
    with pytest.raises(TypeError, match=f"{name}: Shapes must be 1D sequences of concrete values"):
        getattr(accnp.random, name)(accnp.random.key(0), None)
    with pytest.raises(TypeError, match="randint: Shapes must be 1D sequences"):
        accnp.random.randint(accnp.random.key(0), None, 0, 5)


def test_geometric_takes_a_draw_of_zero_for_one():
    """The logarithm of 0 is infinite, so one in 128 numbers of bfloat16 was the largest integer."""
    p = np.array([0.5, 1.0, 0.1, 0.02], "float32")
    for dtype in ("bfloat16", "float16"):
        actual, expected = (
            m.random.geometric(m.random.key(3), m.numpy.asarray(p).astype(dtype), (5000, 4))
            for m in (accnp, jax)
        )
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("logits", "axis", "shape"),
    [
        ((1, 4, 5), -1, (3, 4)),
        ((4, 1, 5), -1, (4, 3)),
        ((4, 1, 5), -1, (2, 4, 3)),
        ((5, 1, 4), 0, (2, 3, 4)),
        ((1, 5), 1, (6,)),
    ],
)
def test_categorical_draws_for_each_element_that_the_batch_broadcasts_to(logits, axis, shape):
    x = np.linspace(-1, 1, int(np.prod(logits)), dtype=np.float32).reshape(logits)
    actual = ours.categorical(ours.key(3), x, axis=axis, shape=shape)
    expected = theirs.categorical(theirs.key(3), x, axis=axis, shape=shape)
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def test_categorical_refuses_shapes_to_which_the_batch_does_not_broadcast():
    for shape, replace in [((4,), True), ((4, 3), False)]:
        with pytest.raises(ValueError, match="must be broadcast-compatible with shape argument"):
            ours.categorical(ours.key(0), np.zeros((4, 1, 5)), shape=shape, replace=replace)
