"""Internal JAX names that libraries use: functions of flat arguments, partial evaluation, layers
and flags. The results are compared with JAX.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import jax.extend.random
import numpy as np
import pytest
from jax import api_util as theirs_util
from jax.example_libraries import stax as theirs_stax
from jax.extend import linear_util as theirs_lu
from jax.interpreters import partial_eval as theirs_pe

import accnp
import accnp.numpy as jnp
from accnp import api_util
from accnp.example_libraries import optimizers, stax
from accnp.extend import linear_util as lu
from accnp.interpreters import partial_eval as pe


def wrapped(f):
    return lu.wrap_init(f, debug_info=api_util.debug_info("test", f, (), {}))


# --- functions of flat arguments -----------------------------------------------------------------


def test_a_function_is_flattened_and_its_structure_known_after_the_call():
    leaves, tree = accnp.tree.flatten(((1.0, {"a": 2.0}), {"k": 3.0}))
    flat, out_tree = api_util.flatten_fun(wrapped(lambda x, d, k: {"s": x + d["a"], "k": k}), tree)
    with pytest.raises(lu.StoreException, match="call it first"):
        out_tree()
    assert flat.call_wrapped(*leaves) == [3.0, 3.0]
    assert accnp.tree.unflatten(out_tree(), [1, 2]) == {"k": 1, "s": 2}
    flat, _ = api_util.flatten_fun_nokwargs(wrapped(max), accnp.tree.structure((1, 2)))
    assert flat.call_wrapped(3, 5) == [5]


def test_some_arguments_are_fixed():
    f, dynamic = api_util.argnums_partial(wrapped(lambda a, b, c: (a, b, c)), (0, -1), [1, 2, 3])
    assert dynamic == [1, 3]
    assert f.call_wrapped(10, 30) == (10, 2, 30)
    with pytest.raises(ValueError, match=r"argnums_partial: .*got 5"):
        api_util.argnums_partial(wrapped(max), 5, [1, 2])


@pytest.mark.parametrize("axes", [0, (0, None), (0, {"a": 1, "b": None}), [0]])
def test_axes_are_spread_over_structures_as_jax_spreads_them(axes):
    def spread(module, tree_util):
        tree = tree_util.tree_structure((1, {"a": 2, "b": 3}))
        try:
            return module.flatten_axes("in_axes", tree, axes)
        except ValueError:
            return "refused"

    assert spread(api_util, accnp.tree_util) == spread(theirs_util, jax.tree_util)


def test_sequences_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match=r"safe_map: .*got \[2, 1\]"):
        api_util.safe_map(max, [1, 2], [3])


def test_transformations_of_functions_run_around_them():
    @lu.transformation_with_aux
    def counted(scale, *xs, **kw):
        out = yield [scale * x for x in xs], kw
        yield out + 1, len(xs)

    @lu.transformation2
    def twice(f, *xs):
        return f(*xs), f(*xs)

    f, aux = counted(wrapped(lambda a, b: a + b), 10)
    assert twice(f).call_wrapped(1, 2) == (31, 31)
    assert aux() == 2
    other = counted(wrapped(max), 1)[1]
    assert lu.merge_linear_aux(aux, other) == (True, 2)
    assert lu.merge_linear_aux(other, aux) == (False, 2)
    with pytest.raises(lu.StoreException, match="got 2"):
        lu.merge_linear_aux(aux, aux)


# --- partial evaluation --------------------------------------------------------------------------


def of_both(jnp, x, y):
    z = jnp.sin(x) + jnp.ones(3)
    return [z * 2, z * y, jnp.arange(3.0) + x]


@pytest.mark.parametrize("instantiate", [False, [True, False, False]])
def test_partial_evaluation_computes_known_values(instantiate):
    def run(module, jnp, pe, lu, util):
        x = jnp.array([0.5, 1.0, 2.0])
        fun = lambda x, y: of_both(jnp, x, y)  # noqa: E731
        fun = lu.wrap_init(fun, debug_info=util.debug_info("test", fun, (x, x), {}))
        aval = module.core.ShapedArray((3,), np.dtype("float32"))
        pvals = [pe.PartialVal.known(x), pe.PartialVal.unknown(aval)]
        jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(fun, pvals, instantiate)
        return jaxpr, outs, consts

    jaxpr, outs, consts = run(accnp, accnp.numpy, pe, lu, api_util)
    _, theirs, _ = run(jax, jax.numpy, theirs_pe, theirs_lu, theirs_util)
    for mine, other in zip(outs, theirs, strict=True):
        assert mine.is_known() == other.is_known()
        if mine.is_known():
            np.testing.assert_allclose(mine.get_known(), other.get_known(), rtol=1e-6)
        else:
            assert str(mine.get_aval()) == str(other.get_aval())
    ones = accnp.numpy.ones(3)
    whole = of_both(accnp.numpy, accnp.numpy.array([0.5, 1.0, 2.0]), ones)
    actual = accnp.core.eval_jaxpr(jaxpr, consts, ones)
    expected = [w for w, out in zip(whole, outs, strict=True) if not out.is_known()]
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def both(x, y):
    return x + 1, y * 2


@pytest.mark.parametrize(
    "f",
    [
        accnp.jit(both),
        accnp.checkpoint(accnp.jit(both)),
        lambda x, y: accnp.lax.cond(x > 0, both, lambda x, y: (y, x), x, y),
        lambda x, y: accnp.lax.cond(x > 0, both, lambda x, y: (x * 2, y), x, y),
        lambda x, y: accnp.lax.fori_loop(0, 1, lambda i, c: both(*c), (x, y)),
        lambda x, y: accnp.lax.while_loop(lambda c: c[0] < 4, lambda c: both(*c), (x, y)),
        lambda x, y: accnp.lax.while_loop(lambda c: c[1] < 4, lambda c: both(*c), (x, y)),
    ],
    ids=["jit", "checkpoint", "cond, mixed", "cond", "fori", "while", "while, unknown"],
)
def test_partial_evaluation_splits_calls(f, request):
    """The scan of a checkpointed module in flax creates its parameters in such a call."""
    aval = accnp.core.ShapedArray((), np.dtype("float32"))
    pvals = [pe.PartialVal.known(accnp.numpy.float32(3)), pe.PartialVal.unknown(aval)]
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(wrapped(lambda x, y: list(f(x, y))), pvals)
    name = request.node.callspec.id
    known = name not in ("cond, mixed", "while, unknown")
    assert [out.is_known() for out in outs] == [known, False]
    if known:
        assert outs[0].const == 4
    assert accnp.core.eval_jaxpr(jaxpr, consts, 3.5)[-1] == f(3.0, 3.5)[1]


def test_a_function_is_recorded_with_all_arguments_unknown():
    aval = accnp.core.ShapedArray((2,), np.dtype("float32"))
    jaxpr, avals, _ = pe.trace_to_jaxpr_dynamic(wrapped(lambda x: [x * 2]), [aval])
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["mul"]
    assert avals[0].shape == (2,)


# --- layers --------------------------------------------------------------------------------------

LAYERS = {
    "dense": ("s.Dense(4)", (2, 3)),
    "conv": ("s.Conv(4, (3, 3), padding='SAME')", (2, 8, 8, 3)),
    "strided": ("s.Conv(4, (3, 3), (2, 2))", (2, 8, 8, 3)),
    "transposed": ("s.ConvTranspose(4, (3, 3), (2, 2))", (2, 4, 4, 3)),
    "transposed 1-D": ("s.Conv1DTranspose(4, (3,), (2,))", (2, 8, 3)),
    "numbers": ("s.GeneralConv(('NCHW', 'OIHW', 'NHWC'), 5, (2, 3))", (2, 8, 8, 3)),
    "batch norm": ("s.BatchNorm()", (2, 8, 8, 3)),
    "gamma only": ("s.BatchNorm(axis=(0,), center=False)", (2, 8)),
    "max": ("s.MaxPool((2, 3))", (2, 8, 8, 3)),
    "sum": ("s.SumPool((3, 3), (2, 2), 'SAME')", (2, 8, 8, 3)),
    "mean": ("s.AvgPool((3, 3), (2, 2), 'SAME', spec='NCHW')", (2, 3, 8, 8)),
    "dropout": ("s.Dropout(.7)", (5, 8)),
    "no dropout": ("s.Dropout(.7, 'test')", (5, 8)),
    "flat": ("s.serial(s.Tanh, s.Exp, s.Flatten, s.Dense(5), s.LogSoftmax)", (2, 4, 4)),
    "units": (
        "s.serial(s.Elu, s.LeakyRelu, s.Selu, s.Gelu, s.Softplus, s.Sigmoid, s.Softmax)", (2, 4)
    ),
    "fans": (
        "s.serial(s.FanOut(3), s.parallel(s.Identity, s.Dense(3), s.serial(s.Dense(2),"
        " s.Dropout(.5))), s.FanInConcat(), s.FanOut(2), s.parallel(s.Dense(2), s.Dense(2)),"
        " s.FanInSum, s.shape_dependent(lambda shape: s.Dense(shape[-1])))", (4, 3)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_the_parameters_and_the_values_of_jax(name):
    text, shape = LAYERS[name]
    x = np.random.default_rng(0).normal(size=shape).astype("float32")

    def run(module, s):
        init, apply = eval(text, {"s": s})
        key = module.random.PRNGKey(3)
        out_shape, params = init(key, shape)
        out = apply(params, module.numpy.asarray(x), rng=key)
        assert tuple(int(n) for n in out_shape) == out.shape
        return [*map(np.asarray, module.tree.leaves(params)), np.asarray(out)]

    for mine, other in zip(run(accnp, stax), run(jax, theirs_stax), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-6)


def test_a_network_of_layers_is_trained_on_batches_of_any_size():
    init, apply = stax.serial(stax.Conv(4, (3, 3)), stax.Relu, stax.Flatten, stax.Dense(2))
    shape, params = init(accnp.random.PRNGKey(0), (-1, 6, 6, 1))
    assert shape == (-1, 2)
    start, update, get = optimizers.adam(0.01)
    x = accnp.random.normal(accnp.random.PRNGKey(1), (16, 6, 6, 1))
    loss = lambda p: ((apply(p, x) - 1) ** 2).mean()  # noqa: E731
    step = accnp.jit(lambda i, s: update(i, accnp.grad(loss)(get(s)), s))
    state, before = start(params), float(loss(params))
    for i in range(20):
        state = step(i, state)
    assert float(loss(get(state))) < before / 2


def test_dropout_needs_a_key():
    with pytest.raises(ValueError, match=r"Dropout: .*rng=key"):
        stax.Dropout(0.5)[1]((), accnp.numpy.ones(3))


# --- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (4,), (3, 3), ()])
def test_threefry_enciphers_as_jax_does(shape):
    key = np.array([17, 42], "uint32")
    counts = np.arange(np.prod(shape, dtype=int), dtype="uint32").reshape(shape)
    mine = accnp.extend.random.threefry_2x32((key[0], key[1]), counts)
    other = jax.extend.random.threefry_2x32(
        tuple(jax.numpy.asarray(key)), jax.numpy.asarray(counts)
    )
    np.testing.assert_array_equal(mine, other)
    with pytest.raises(TypeError, match=r"threefry_2x32: .*uint32"):
        accnp.extend.random.threefry_2x32((key[0], key[1]), 1.5)


def test_current_mesh_by_its_older_name():
    from accnp.interpreters import pxla

    assert pxla.thread_resources.env.physical_mesh.empty
    with accnp.make_mesh((1,), ("x",)):
        assert pxla.thread_resources.env.physical_mesh.axis_names == ("x",)


def test_lines_of_libraries_are_left_out_of_tracebacks(tmp_path):
    (tmp_path / "between.py").write_text("def call(f, x):\n    return f(x)\n")
    program = f"""
import sys, traceback, accnp
sys.path.insert(0, {str(tmp_path)!r})
import between
accnp.extend.source_info_util.register_exclusion(between.__file__)
try:
    accnp.jit(lambda x: between.call(lambda y: y.reshape(7), x))(accnp.numpy.ones(3))
except TypeError as error:
    print([f.filename for f in traceback.extract_tb(error.__traceback__)])
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip() == "['<string>', '<string>', '<string>']", out


def test_flags_of_a_command_line_set_switches(tmp_path):
    program = "import accnp; accnp.config.parse_flags_with_absl(); print(accnp.config.enable_x64)"
    arguments = ["--jax_enable_x64=true", "--other=1"]
    out = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True
    )
    assert out.stdout.strip() == "True", out


def test_types_include_their_sharding():
    def places(module):
        sharding = module.typeof(module.numpy.ones((2, 3))).sharding
        x = module.numpy.zeros((2, 3), out_sharding=sharding)
        aval = module.core.ShapedArray((2, 3), np.dtype("float32"), sharding=sharding)
        return str(sharding.spec), sharding.mesh.axis_names, x.shape, str(aval)

    assert places(accnp) == places(jax)


def test_einsum_uses_the_given_dot_general():
    x = accnp.numpy.arange(6.0).reshape(2, 3)
    actual = accnp.numpy.einsum("ij,kj->ik", x, x, _dot_general=accnp.lax.dot_general)
    np.testing.assert_array_equal(actual, x @ x.T)
    with pytest.raises(NotImplementedError, match="einsum: _dot_general"):
        accnp.numpy.einsum("ij,kj->ik", x, x, _dot_general=lambda *a, **k: None)


# --- what libraries do with types, programs and rules --------------------------------------------


def test_eval_shape_accepts_avals():
    """As in JAX, also for jitted and transformed functions; functions such as `jnp.add` are
    accepted only here."""
    struct = accnp.ShapeDtypeStruct((3,), "float32")
    jnp, lax = accnp.numpy, accnp.lax
    for call, shape in (
        (lambda: accnp.jit(lambda x: x + 1)(struct), (3,)),
        (lambda: jnp.sin(struct), (3,)),
        (lambda: lax.add(struct, struct), (3,)),
        (lambda: jnp.sum(struct), ()),
        (lambda: accnp.vmap(jnp.sin)(struct), (3,)),
        (lambda: accnp.grad(jnp.sum)(struct), (3,)),
        (lambda: lax.scan(lambda c, x: (c + x, x), 0.0, struct)[1], (3,)),
        (lambda: jnp.concatenate([struct, struct]), (6,)),
        (lambda: accnp.jit(lambda: jnp.sin(struct))(), (3,)),
    ):
        out = accnp.eval_shape(call)
        assert (out.shape, out.dtype) == (shape, np.float32)
        with pytest.raises(TypeError, match="ShapeDtypeStruct"):
            call()
        with pytest.raises(TypeError, match="ShapeDtypeStruct"):
            accnp.jit(call)()


def test_types_may_be_among_the_results_of_eval_shape():
    struct = accnp.ShapeDtypeStruct((2, 3), "complex64")
    structs = accnp.eval_shape(lambda x: (x * 2, {"s": struct}), accnp.numpy.float32(1))
    assert structs[1]["s"] == struct
    assert accnp.numpy.iscomplexobj(struct)
    assert not accnp.numpy.isrealobj(struct)
    with pytest.raises(TypeError):
        accnp.jit(lambda x: struct)(1.0)


@pytest.mark.parametrize("text", ["1.0", "1", "jnp.ones(3, 'bfloat16')", "jnp.array([True])"])
def test_types_of_tangents(text):
    def tangent(module):
        aval = module.typeof(eval(text, {"jnp": module.numpy})).to_tangent_aval()
        return repr(aval), aval.dtype

    assert tangent(accnp) == tangent(jax)


def test_linear_functions_with_custom_rules_are_transposed():
    def run(module):
        jnp = module.numpy

        @module.custom_jvp
        def f(x):
            return 3 * x

        f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))

        @module.custom_vjp
        def g(x):
            return 2 * x

        g.defvjp(lambda x: (g(x), None), lambda _, ct: (2 * ct,))
        x = jnp.arange(3.0)
        summed = [lambda x: f(x).sum(), lambda x: g(x).sum()][: 1 if module is jax else 2]
        return [module.linear_transpose(h, x)(jnp.float32(1))[0] for h in summed]

    for mine in run(accnp):
        assert len(set(np.asarray(mine).tolist())) == 1
    np.testing.assert_array_equal(run(accnp)[0], run(jax)[0])


def test_programs_with_callbacks_are_evaluated_again():
    out = accnp.ShapeDtypeStruct((), "float32")
    f = lambda x: accnp.pure_callback(lambda v: v + 1, out, accnp.pure_callback(abs, out, x))  # noqa: E731
    closed = accnp.make_jaxpr(f)(accnp.numpy.float32(-2))
    assert accnp.core.eval_jaxpr(closed.jaxpr, closed.consts, accnp.numpy.float32(-2)) == [3]


def primitive(impl):
    p = accnp.extend.core.Primitive("doubled")
    p.def_impl(impl)
    p.def_abstract_eval(lambda x: x)
    return p


@pytest.mark.parametrize("impl", [lambda x: 2 * x, lambda x: np.multiply(2, np.asarray(x))])
def test_a_primitive_that_others_lower_to_mlir_is_its_implementation(impl):
    p = primitive(impl)
    accnp.interpreters.mlir.register_lowering(p, lambda ctx, x: None)
    x = accnp.numpy.arange(3.0)
    np.testing.assert_array_equal(accnp.jit(lambda x: p.bind(x) + 1)(x), [1, 3, 5])
    with pytest.raises(TypeError, match="must be a function; got 3"):
        accnp.interpreters.mlir.register_lowering(p, 3)


def test_batching_rules_can_request_axis_size():
    p = primitive(lambda x: 2 * x)
    seen = []

    def rule(size, name, trace, args, dims):
        assert type(args) is type(dims) is tuple  # vmap takes the axes as they are
        seen.append((size, len(args)))
        return p.bind(*args), dims[0]

    accnp.interpreters.batching.axis_primitive_batchers[p] = rule
    np.testing.assert_array_equal(accnp.vmap(p.bind)(accnp.numpy.arange(3.0)), [0, 2, 4])
    assert seen == [(3, 1)]


def test_traced_values_know_their_trace():
    def f(x):
        assert isinstance(x, accnp.interpreters.ad.JVPTracer)
        value: Any = x
        assert value._trace.main is accnp.core.find_top_trace(x).main
        return x

    assert accnp.jvp(f, (1.0,), (2.0,))[1] == 2
    known: Any = accnp.numpy.ones(3)
    assert known._trace is None


def test_results_of_an_inner_derivative_belong_to_the_outer_trace():
    def f(x):
        for value in accnp.jvp(lambda y: x * y, (2.0,), (3.0,)):
            assert isinstance(value, accnp.interpreters.ad.JVPTracer)
            assert value._trace.main is accnp.core.find_top_trace(x).main
        return value

    assert accnp.jvp(f, (1.0,), (5.0,)) == (3, 15)


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 4), (0, 3)])
def test_orthogonal_weights_are_those_of_jax(shape, axis):
    def weights(module):
        return module.nn.initializers.orthogonal(2.0, axis)(module.random.PRNGKey(1), shape)

    np.testing.assert_allclose(weights(accnp), weights(jax), atol=1e-5)


def test_types_that_are_registered_stand_for_arrays():
    """TensorFlow Probability registers its variables in this way."""
    from accnp.interpreters import xla

    class Variable:
        def __init__(self, value):
            self.value = value

    with pytest.raises(TypeError, match="Variable"):
        jnp.sin(Variable(1.0))
    xla.canonicalize_dtype_handlers[Variable] = lambda v: np.asarray(v.value)
    try:
        np.testing.assert_array_equal(jnp.add(Variable([1, 2]), 1), [2, 3])
    finally:
        del xla.canonicalize_dtype_handlers[Variable]
