"""Typed random keys in programs that are longer than one expression: custom rules, memory,
serialization.

The expressions are in `families/keys.txt`. Here, programs with keys are compared with the same
programs on the key data.
"""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import accnp as jax
import accnp.random.key_functions
from accnp import numpy as jnp
from accnp.api.arguments.non_numeric import KEY_HANDLERS
from accnp.extend import linear_util as lu
from accnp.interpreters import partial_eval as pe

IMPLS = ["threefry2x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32", "threefry4x32"]


def same(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_array_equal(jax.random.key_data(a), jax.random.key_data(b))


@pytest.fixture(params=IMPLS)
def keys(request):
    return jax.random.split(jax.random.key(3, impl=request.param), 4)


def test_manipulation_functions_accept_key_arrays(keys):
    words = jax.random.key_data(keys)
    impl = jax.random.key_impl(keys)

    def of(x):
        return jax.random.wrap_key_data(x, impl=impl)

    same(jnp.stack([keys, keys[::-1]], 1), of(jnp.stack([words, words[::-1]], 1)))
    same(jnp.roll(keys, 1), of(jnp.roll(words, 1, 0)))
    same(jnp.repeat(keys, 2).reshape(2, 4), of(jnp.repeat(words, 2, 0).reshape(2, 4, -1)))
    same(jnp.where(jnp.arange(4) > 1, keys, keys[0]), of(words[jnp.array([0, 0, 2, 3])]))
    same(keys.at[1:3].set(keys[0]), of(words.at[1:3].set(words[0])))
    same(jax.jit(lambda k, i: k[i])(keys, 2), of(words[2]))
    same(jnp.zeros_like(keys), of(jnp.zeros_like(words)))


def test_functions_for_keys_exist():
    assert KEY_HANDLERS
    assert set(accnp.random.key_functions.__all__) >= KEY_HANDLERS


@pytest.mark.parametrize(
    "function",
    [
        lambda k: jax.image.resize(k, (2,), "nearest"),
        lambda k: jax.numpy.linalg.cond(k[None]),
        lambda k: jnp.add(k, k),
        lambda k: jax.nn.relu(k),
    ],
)
def test_functions_that_do_not_declare_it_refuse_keys(keys, function):
    """`jnp.resize` moves elements, and `image.resize` computes: they are told apart."""
    with pytest.raises(jax.errors.KeyArrayError, match="random keys"):
        function(keys)


def test_keys_are_leaves_in_every_view_of_a_tree(keys):
    tree = {"k": keys, "x": [jnp.ones(2), keys[0]]}
    assert [x.shape for x in jax.tree.leaves(tree)] == [(4,), (2,), ()]
    assert jax.tree.structure(tree) == jax.tree.structure({"k": 0, "x": [0, 0]})
    traced = jax.jit(lambda t: t["x"]).trace(tree)
    assert traced.in_tree == jax.tree.structure(((tree,), {}))
    assert traced.out_tree == jax.tree.structure([0, 0])
    assert traced.in_avals[0][0]["k"].dtype == keys.dtype
    assert traced.lower().args_info[0][0]["x"][1].shape == ()


def test_memory_of_keys(keys):
    same(pickle.loads(pickle.dumps(keys)), keys)
    same(copy.copy(keys), keys)
    same(copy.deepcopy(keys), keys)
    copied = keys.copy()
    after = jax.jit(lambda k: k[::-1], donate_argnums=0)(keys)
    assert keys.is_deleted()
    assert not copied.is_deleted()
    same(after, copied[::-1])


def test_rules_of_users_get_keys_and_float0(keys):
    key, seen = keys[0], []
    f = jax.custom_jvp(lambda k, x: x * jax.random.normal(k))

    @f.defjvp
    def rule(primals, tangents):
        seen.append((primals[0].dtype, primals[0].shape, tangents[0].dtype, tangents[0].shape))
        return f(*primals), tangents[1] * jax.random.uniform(primals[0])

    assert jax.grad(f, 1)(key, 2.0) == jax.random.uniform(key)
    assert seen == [(keys.dtype, (), jax.dtypes.float0, ())]
    g = jax.custom_vjp(lambda k, x: (x * jax.random.normal(k), k))

    def backward(k, ct):
        seen.append((ct[1].dtype, ct[1].shape))
        return np.zeros(k.shape, jax.dtypes.float0), ct[0] * jax.random.uniform(k)

    g.defvjp(lambda k, x: (g(k, x), k), backward)
    assert jax.jit(jax.grad(lambda k, x: g(k, x)[0], 1))(key, 2.0) == jax.random.uniform(key)
    assert seen[-1] == (jax.dtypes.float0, ())
    h = jax.custom_vjp(lambda k, x: x, nondiff_argnums=(0,))
    h.defvjp(lambda k, x: (x, None), lambda k, _, ct: (ct * jax.random.uniform(k),))
    assert jax.grad(h, 1)(key, 2.0) == jax.random.uniform(key)


def test_rules_for_batches_get_keys(keys):
    f = jax.custom_batching.custom_vmap(lambda k, x: jax.random.normal(k) + x)
    seen = []

    @f.def_vmap
    def rule(size, batched, k, x):
        seen.append((size, list(batched), k.shape))
        return jax.lax.map(lambda k: jax.random.normal(k) + x, k), True

    plain = jax.lax.map(lambda k: jax.random.normal(k) + 1.0, keys)
    np.testing.assert_array_equal(jax.vmap(f, (0, None))(keys, 1.0), plain)
    assert seen == [(4, [True, False], (4,))]
    g = jax.custom_batching.sequential_vmap(lambda k: jax.random.split(k)[0])
    same(jax.vmap(g)(keys), jax.lax.map(lambda k: jax.random.split(k)[0], keys))


def test_a_registered_class_holds_keys(keys):
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        key: object
        step: object

    @jax.jit
    def move(state):
        return State(jax.random.split(state.key)[0], state.step + 1)

    state = move(move(State(keys[0], 0)))
    assert int(state.step) == 2
    same(state.key, jax.random.split(jax.random.split(keys[0])[0])[0])


def test_exported_programs_take_and_return_keys(keys):
    f = jax.jit(lambda k, x: (jax.random.split(k), x + jax.random.uniform(k)))
    stored = jax.export.deserialize(jax.export.export(f)(keys[0], 1.0).serialize())
    children, x = stored.call(keys[0], 1.0)
    same(children, jax.random.split(keys[0]))
    assert x == 1.0 + jax.random.uniform(keys[0])


def test_callbacks_get_words(keys):
    seen = []

    def look(words):
        seen.append((str(words.dtype), words.shape))

    jax.jit(lambda k: jax.experimental.io_callback(look, None, k))(keys)
    jax.effects_barrier()
    assert seen == [("uint32", jax.random.key_data(keys).shape)]
    with pytest.raises(TypeError):
        jax.pure_callback(lambda k: k, jax.ShapeDtypeStruct((), keys.dtype), keys[0])


def test_loops_without_jit(keys):
    with jax.disable_jit():
        rows = jax.lax.scan(lambda c, k: (k, c), keys[0], keys)[1]
        last = jax.lax.fori_loop(0, 2, lambda i, k: jax.random.fold_in(k, i), keys[0])
    same(rows, jax.lax.scan(lambda c, k: (k, c), keys[0], keys)[1])
    same(last, jax.random.fold_in(jax.random.fold_in(keys[0], 0), 1))


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (lambda k: jnp.sum(k), r"sum does not accept dtype key<fry>.*key_data"),
        (
            lambda k: jnp.stack([k, jnp.zeros(2)]),
            r"stack: random keys combine only with keys .*float32",
        ),
        (lambda k: k.at[0].set(3), r"set: random keys combine only with keys .*got key<fry>, 3"),
        (lambda k: jax.lax.associative_scan(jnp.add, k), r"associative_scan: random keys"),
        (
            lambda k: jax.grad(lambda k: 1.0)(k),
            r"grad requires real- or complex-valued inputs .*key<fry>",
        ),
        (lambda k: np.asarray(k), r"cannot be converted.*key_data"),
        (
            lambda k: jax.lax.scan(lambda c, _: (jax.random.key_data(c), None), k, length=2),
            r"has type key<fry>\[4\].*has type uint32\[4,2\]",
        ),
    ],
)
def test_texts_of_refusals(program, text):
    with pytest.raises(TypeError, match=text):
        program(jax.random.split(jax.random.key(0), 4))


def test_keys_are_close_where_they_are_equal():
    a, b = jax.random.split(jax.random.key(0))
    assert bool(jnp.allclose(a, a))
    assert not bool(jnp.allclose(a, b))
    assert bool(jnp.array_equiv(a, a))
    assert not bool(jnp.array_equiv(a, b))
    np.testing.assert_array_equal(jnp.isclose(jax.random.split(a), jax.random.split(a)), True)


def test_partial_evaluation_accepts_keys():
    """The scan in flax does this with its body."""
    key = jax.random.key(1)
    fun = lu.wrap_init(lambda k, x: [jax.random.fold_in(key, 3), k, x + jax.random.uniform(k)])
    unknown = [pe.PartialVal.unknown(jax.typeof(v)) for v in (key, jnp.ones(()))]
    _, outs, _ = pe.trace_to_jaxpr_nounits(fun, unknown)
    assert [v.is_known() for v in outs] == [True, False, False]
    assert outs[0].get_known() == jax.random.fold_in(key, 3)
    assert outs[1].get_aval().dtype == key.dtype
