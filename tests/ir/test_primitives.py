"""User-defined primitives, from the same source for JAX and accnp, and the attributes of jaxpr
objects.
"""

import re
from pathlib import Path

import jax
import jax.extend.core
import jax.extend.core.primitives
import jax.interpreters.ad
import jax.interpreters.batching
import jax.interpreters.mlir
import jax.interpreters.partial_eval
import numpy as np
import pytest

import accnp
from accnp.ir.op import OPS

X = np.linspace(0.2, 0.9, 4, dtype=np.float32)
Y, Z = X * 2 - 1, X**2
LIBRARIES = pytest.mark.parametrize("lib", [jax, accnp], ids=["jax", "accnp"])


def multiply_add(lib):
    """The primitive of JAX's tutorial: x * y + z."""
    core = lib.extend.core
    ad = lib.interpreters.ad
    batching = lib.interpreters.batching
    mlir = lib.interpreters.mlir
    p = core.Primitive("multiply_add")

    def prim(x, y, z):
        return p.bind(x, y, z)

    def impl(x, y, z):
        return np.add(np.multiply(x, y), z)

    p.def_impl(impl)

    def abstract_eval(xs, ys, zs):
        assert xs.shape == ys.shape == zs.shape
        return lib.core.ShapedArray(xs.shape, xs.dtype)

    p.def_abstract_eval(abstract_eval)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))

    def jvp(args, tangents):
        x, y, z = args
        xt, yt, zt = tangents
        out = prim(x, y, z)

        def make_zero(t):
            return lib.lax.full_like(x, 0) if type(t) is ad.Zero else t

        return out, prim(make_zero(xt), y, prim(x, make_zero(yt), make_zero(zt)))

    ad.primitive_jvps[p] = jvp

    def transpose(ct, x, y, z):
        if not ad.is_undefined_primal(x):
            assert ad.is_undefined_primal(y)
            ct_y = ad.Zero(y.aval) if type(ct) is ad.Zero else prim(x, ct, lib.lax.full_like(x, 0))
            return None, ct_y, ct
        assert ad.is_undefined_primal(x)
        ct_x = ad.Zero(x.aval) if type(ct) is ad.Zero else prim(ct, y, lib.lax.full_like(y, 0))
        return ct_x, None, ct

    ad.primitive_transposes[p] = transpose

    def batch(vector_args, axes):
        size = next(x.shape[d] for x, d in zip(vector_args, axes, strict=True) if d is not None)
        front = [batching.bdim_at_front(x, d, size) for x, d in zip(vector_args, axes, strict=True)]
        return prim(*front), 0

    batching.primitive_batchers[p] = batch
    return prim


@LIBRARIES
def test_multiply_add(lib):
    prim, jnp = multiply_add(lib), lib.numpy
    np.testing.assert_allclose(prim(X, Y, Z), X * Y + Z, rtol=1e-6)
    np.testing.assert_allclose(lib.jit(prim)(X, Y, Z), X * Y + Z, rtol=1e-6)
    assert str(lib.make_jaxpr(prim)(2.0, 3.0, 4.0)) == (
        "{ lambda ; a:f32[] b:f32[] c:f32[]. let d:f32[] = multiply_add a b c in (d,) }"
    )

    def square_add(a, b):
        return prim(a, a, b)

    out, tangent = lib.jvp(square_add, (2.0, 10.0), (1.0, 1.0))
    assert (float(out), float(tangent)) == (14.0, 5.0)
    assert float(lib.grad(square_add)(2.0, 10.0)) == 4.0
    assert float(lib.jit(lib.grad(square_add))(2.0, 10.0)) == 4.0
    np.testing.assert_allclose(lib.vmap(square_add)(X, Y), X * X + Y, rtol=1e-6)
    np.testing.assert_allclose(
        lib.jit(lib.vmap(lib.grad(square_add)))(jnp.asarray(X), Y), 2 * X, rtol=1e-6
    )
    many = lib.lax.scan(lambda c, v: (prim(c, v, v), c), jnp.float32(1.0), X)[0]
    expected = 1.0
    for v in X:
        expected = expected * v + v
    np.testing.assert_allclose(many, expected, rtol=1e-5)


def several(lib):
    """A primitive with two results, a parameter, and rules that are defined by helper functions."""
    p = lib.extend.core.Primitive("sum_and_scaled")
    p.multiple_results = True
    p.def_impl(lambda x, *, k: [np.sum(x), np.asarray(x) * k])
    p.def_abstract_eval(
        lambda x, *, k: [lib.core.ShapedArray((), x.dtype), lib.core.ShapedArray(x.shape, x.dtype)]
    )
    jnp = lib.numpy
    lib.interpreters.mlir.register_lowering(
        p, lib.interpreters.mlir.lower_fun(lambda x, *, k: [jnp.sum(x), x * k])
    )

    def transpose(cts, x, *, k):
        a, b = map(lib.interpreters.ad.instantiate_zeros, cts)
        return [jnp.broadcast_to(a, x.aval.shape) + b * k]

    lib.interpreters.ad.deflinear2(p, transpose)

    def batch(args, dims, *, k):
        (x,), (d,) = args, dims
        return [jnp.sum(jnp.moveaxis(x, d, 0), axis=1), x * k], [0, d]

    lib.interpreters.batching.primitive_batchers[p] = batch
    return p


@LIBRARIES
def test_several_results(lib):
    p = several(lib)
    total, scaled = p.bind(X, k=3)
    np.testing.assert_allclose(total, X.sum(), rtol=1e-6)
    np.testing.assert_allclose(scaled, X * 3, rtol=1e-6)

    def loss(x):
        total, scaled = p.bind(lib.numpy.sin(x), k=3)
        return total * 2 + (scaled * Y).sum()

    expected = np.cos(X) * (2 + 3 * Y)
    np.testing.assert_allclose(lib.grad(loss)(X), expected, rtol=1e-5)
    np.testing.assert_allclose(lib.jit(lib.grad(loss))(X), expected, rtol=1e-5)
    only_total = lib.grad(lambda x: p.bind(x, k=2)[0])(X)
    np.testing.assert_allclose(only_total, np.ones_like(X))
    m = np.stack([X, Y, Z])
    totals, scales = lib.vmap(lambda x: p.bind(x, k=2), in_axes=1)(m)
    np.testing.assert_allclose(totals, m.sum(0), rtol=1e-5)
    np.testing.assert_allclose(scales, m.T * 2, rtol=1e-6)
    assert "sum_and_scaled[k=3] " in str(lib.make_jaxpr(lambda x: p.bind(x, k=3))(X))


@LIBRARIES
def test_rules_by_helpers(lib):
    ad, batching = lib.interpreters.ad, lib.interpreters.batching
    jnp = lib.numpy
    p = lib.extend.core.Primitive("outer_like")
    p.def_impl(lambda x, y: jnp.asarray(x) * y)
    p.def_abstract_eval(lambda x, y: lib.core.ShapedArray(x.shape, x.dtype))
    lib.interpreters.mlir.register_lowering(
        p, lib.interpreters.mlir.lower_fun(lambda x, y: x * y, multiple_results=False)
    )
    ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
    batching.defbroadcasting(p)
    gradients = lib.grad(lambda x, y: p.bind(x, y).sum(), argnums=(0, 1))(X, Y)
    np.testing.assert_allclose(gradients, (Y, X), rtol=1e-6)
    np.testing.assert_allclose(lib.vmap(p.bind, (0, 0))(X, Y), X * Y, rtol=1e-6)

    q = lib.extend.core.Primitive("softened")
    q.def_impl(lambda x: jnp.log1p(jnp.exp(x)))
    q.def_abstract_eval(lambda x: x)
    lib.interpreters.mlir.register_lowering(
        q, lib.interpreters.mlir.lower_fun(lambda x: jnp.log1p(jnp.exp(x)), multiple_results=False)
    )
    ad.defjvp(q, lambda t, x: t * lib.nn.sigmoid(x))
    batching.defvectorized(q)
    np.testing.assert_allclose(
        lib.vmap(lib.grad(q.bind))(jnp.asarray(X)), jax.nn.sigmoid(X), rtol=1e-5
    )


@LIBRARIES
def test_missing_rule_is_named(lib):
    p = lib.extend.core.Primitive("bare")
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'bare' not implemented"):
        p.bind(1.0)
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'bare' not impl"):
        lib.make_jaxpr(p.bind)(1.0)
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'bare' not impl"):
        lib.jvp(p.bind, (1.0,), (1.0,))
    with pytest.raises(NotImplementedError, match="Batching rule for 'bare' not implemented"):
        lib.vmap(p.bind)(X)
    with pytest.raises(TypeError):
        p.bind("text")
    assert (str(p), repr(p)) == ("bare", "bare")


def test_impl_runs_on_the_host_under_jit():
    seen = []

    def impl(x):
        seen.append(type(x))
        return np.cbrt(x)

    p = accnp.extend.core.Primitive("on_host")
    p.def_impl(impl)
    p.def_abstract_eval(lambda x: x)
    f = accnp.jit(lambda x: p.bind(accnp.numpy.exp(x)) * 2)
    np.testing.assert_allclose(f(X), np.cbrt(np.exp(X)) * 2, rtol=1e-6)
    assert seen == [np.ndarray]
    with pytest.raises(TypeError, match="on_host must be a function; got 'text'"):
        accnp.interpreters.mlir.register_lowering(p, "text")


@LIBRARIES
def test_bind_of_known_primitives(lib):
    lax = lib.lax
    assert float(lax.add_p.bind(1.0, 2.0)) == 3.0
    np.testing.assert_allclose(lax.reduce_sum_p.bind(lib.numpy.asarray(X), axes=(0,)), X.sum())
    assert lax.sort_p.multiple_results
    assert not lax.reduce_sum_p.multiple_results
    (s,) = lax.sort_p.bind(lib.numpy.asarray(Y[::-1]), dimension=0, is_stable=True, num_keys=1)
    np.testing.assert_array_equal(s, np.sort(Y))
    with pytest.raises(TypeError, match=r"same dtypes|one dtype"):
        lax.add_p.bind(1, 2.0)
    column, row = X[:, None], Y[None]
    np.testing.assert_allclose(
        lax.mul_p.bind(lib.numpy.asarray(column), lib.numpy.asarray(row)), column * row
    )


def test_primitives_have_the_names_of_jax():
    ours, theirs = accnp.extend.core.primitives, jax.extend.core.primitives
    for name in ours.__all__:
        mine = getattr(ours, name)
        its = getattr(theirs, name, None) or getattr(jax.lax, name)
        assert mine.name == its.name
        if name not in ("optimization_barrier_p", "psum_p", "pmax_p", "pmin_p"):
            assert mine.multiple_results == its.multiple_results, name
        assert getattr(accnp.lax, name, mine) is mine


@LIBRARIES
def test_parts_can_be_replaced(lib):
    core, jnp = lib.extend.core, lib.numpy
    closed = lib.make_jaxpr(lambda x: jnp.cos(jnp.sin(x) * X))(0.5)
    first, *rest = closed.eqns
    swapped = closed.replace(
        jaxpr=closed.jaxpr.replace(eqns=[first.replace(primitive=lib.lax.exp_p), *rest])
    )
    (out,) = core.jaxpr_as_fun(swapped)(0.5)
    np.testing.assert_allclose(out, np.cos(np.exp(0.5) * X), rtol=1e-5)
    (out,) = core.jaxpr_as_fun(closed.replace(consts=[X * 2]))(0.5)
    np.testing.assert_allclose(out, np.cos(np.sin(0.5) * X * 2), rtol=1e-5)
    assert closed == closed
    assert closed != closed.replace()
    assert len({closed.jaxpr, closed.jaxpr.replace()}) == 2
    with pytest.raises(ValueError, match="nknown"):
        closed.jaxpr.replace(unknown=1)

    new = core.Var(lib.core.ShapedArray((4,), np.float32))
    eqn = core.new_jaxpr_eqn([closed.eqns[-1].outvars[0]], [new], lib.lax.neg_p, {}, set())
    longer = closed.jaxpr.replace(eqns=[*closed.eqns, eqn], outvars=[new])
    (out,) = lib.core.eval_jaxpr(longer, closed.consts, 0.5)
    np.testing.assert_allclose(out, -np.cos(np.sin(0.5) * X), rtol=1e-5)


@LIBRARIES
def test_programs_in_programs(lib):
    core = lib.extend.core
    closed = lib.make_jaxpr(
        lambda x: lib.lax.cond(x > 0, lib.numpy.sin, lib.jit(lib.numpy.cos), x)
    )(1.0)
    assert len(list(core.subjaxprs(closed.jaxpr))) == 2
    inner = list(core.jaxprs_in_params(closed.eqns[-1].params))
    assert all(isinstance(j, core.Jaxpr) for j in inner)
    assert [str(j.eqns[0].primitive) for j in inner] == ["jit", "sin"]
    branch = closed.eqns[-1].params["branches"][1]
    assert isinstance(branch, core.ClosedJaxpr)
    np.testing.assert_allclose(core.jaxpr_as_fun(branch)(0.5), [np.sin(0.5)], rtol=1e-6)


@LIBRARIES
def test_dead_code_is_dropped(lib):
    closed = lib.make_jaxpr(lambda x, y, z: (x * 2, lib.numpy.sin(y) + x))(1.0, 2.0, 3.0)
    pe = lib.interpreters.partial_eval
    jaxpr, used = pe.dce_jaxpr(closed.jaxpr, [True, False])
    assert used == [True, False, False]
    assert [e.primitive.name for e in jaxpr.eqns] == ["mul"]
    jaxpr, used = pe.dce_jaxpr(closed.jaxpr, [False, True], instantiate=True)
    assert used == [True, True, True]
    assert len(jaxpr.outvars) == 1


@LIBRARIES
def test_checking_programs(lib):
    core = lib.extend.core
    closed = lib.make_jaxpr(lambda x: lib.jit(lambda y: y * 2)(lib.numpy.sin(x)) + X)(1.0)
    core.check_jaxpr(closed.jaxpr)
    jaxpr = closed.jaxpr
    unknown = core.Var(lib.core.ShapedArray((), np.float32))
    wide = core.Var(lib.core.ShapedArray((3,), np.float32))
    first, *rest = jaxpr.eqns
    for broken in (
        jaxpr.replace(outvars=[unknown]),
        jaxpr.replace(eqns=rest),
        jaxpr.replace(eqns=[first.replace(outvars=[wide]), *rest]),
    ):
        with pytest.raises(lib.errors.JaxprTypeError):
            core.check_jaxpr(broken)


@LIBRARIES
def test_literals_keep_their_types(lib):
    jnp, core = lib.numpy, lib.extend.core
    half = np.ones(3, np.float16)
    f = lambda x, h: (x * 2.5, h * 2.5, x + np.float32(1.5), x > 0, 3)  # noqa: E731
    closed = lib.make_jaxpr(f)(X, half)
    literals = [v for e in closed.eqns for v in e.invars if isinstance(v, core.Literal)]
    assert [v.aval.weak_type for v in literals if float(v.val) == 1.5] == [False]
    for actual, expected in zip(
        core.jaxpr_as_fun(closed)(X, half), f(jnp.asarray(X), half), strict=True
    ):
        assert jnp.asarray(actual).dtype == jnp.asarray(expected).dtype
        np.testing.assert_allclose(actual, expected)
    with pytest.raises(TypeError):
        hash(core.Literal(1.0, closed.in_avals[0]))


@LIBRARIES
def test_tracers(lib):
    seen = []

    def look(x):
        seen.append((isinstance(x, lib.core.Tracer), str(x.aval), isinstance(x, lib.Array)))
        return x * 2.0

    look(lib.numpy.ones(2))
    lib.jit(look)(1.0)
    lib.vmap(look)(np.ones(2, np.float32))
    lib.grad(look)(1.0)
    lib.make_jaxpr(look)(lib.ShapeDtypeStruct((2, 3), np.float32))
    lib.eval_shape(look, np.int32(1))
    assert seen == [
        (False, "float32[2]", True),
        (True, "~float32[]", True),
        (True, "float32[]", True),
        (True, "~float32[]", True),
        (True, "float32[2,3]", True),
        (True, "int32[]", True),
    ]

    @lib.jit
    def f(x):
        with lib.ensure_compile_time_eval():
            n = int(lib.numpy.arange(4).sum())
        return x + n

    assert float(f(1.0)) == 7.0


@LIBRARIES
def test_types_of_values(lib):
    shaped = lib.core.ShapedArray
    a, weak = shaped((2, 3), np.float32), lib.typeof(1.0)
    assert (str(a), repr(a), a.str_short()) == (
        "float32[2,3]",
        "ShapedArray(float32[2,3])",
        "float32[2,3]",
    )
    assert (str(weak), repr(weak)) == ("~float32[]", "ShapedArray(float32[], weak_type=True)")
    assert isinstance(weak, shaped)
    assert isinstance(weak, lib.core.AbstractValue)
    assert a == shaped((2, 3), "float32") == lib.typeof(np.ones((2, 3), np.float32))
    assert hash(a) == hash(shaped((2, 3), "float32"))
    assert (a.update(shape=(5,)), weak.strip_weak_type()) == (
        shaped((5,), np.float32),
        shaped((), np.float32),
    )
    core = lib.extend.core
    assert core.mapped_aval(3, 1, a) == shaped((2,), np.float32)
    assert core.unmapped_aval(5, 0, a) == shaped((5, 2, 3), np.float32)
    assert core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == lib.dtypes.float0


@LIBRARIES
def test_rules_receive_all_parameters(lib):
    p = lib.extend.core.Primitive("scaled")

    def scaled(x, *, __by):
        return x * __by

    p.def_impl(scaled)
    p.def_abstract_eval(lambda x, *, __by: x)
    lib.interpreters.mlir.register_lowering(
        p, lib.interpreters.mlir.lower_fun(scaled, multiple_results=False)
    )
    lib.interpreters.ad.deflinear(p, lambda ct, *, __by: [p.bind(ct, __by=__by)])
    lib.interpreters.batching.primitive_batchers[p] = lambda xs, dims, *, __by: (
        p.bind(*xs, __by=__by),
        dims[0],
    )

    def f(x):
        return p.bind(x, __by=3.0)

    assert lib.grad(f)(1.0) == 3
    np.testing.assert_array_equal(lib.vmap(lib.grad(f))(X), [3] * 4)
    closed = lib.make_jaxpr(f)(X)
    assert closed.eqns[0].params == {"__by": 3.0}
    np.testing.assert_array_equal(lib.core.eval_jaxpr(closed.jaxpr, closed.consts, X)[0], 3 * X)


@LIBRARIES
def test_zero_tangents_pass_through_transformations(lib):
    ad = lib.interpreters.ad
    zero = ad.Zero(lib.core.ShapedArray((2,), np.float32))
    undefined = ad.UndefinedPrimal(lib.core.ShapedArray((), np.float32))
    for transform in (lib.jit, lambda f: lib.vmap(f, (0, None, None))):
        x, z, u = transform(lambda x, z, u: (2 * x, z, u))(X, zero, undefined)
        np.testing.assert_array_equal(x, 2 * X)
        assert (type(z), type(u)) == (ad.Zero, ad.UndefinedPrimal)
        assert (z.aval.shape, u.aval.dtype) == ((2,), np.float32)


@LIBRARIES
def test_scalar_arrays_are_constants(lib):
    """Each such array is a constant, whatever its value; arrays that the function creates are
    literals.
    """
    jnp = lib.numpy
    zeros = [jnp.array(0), jnp.array(0), jnp.zeros((), int), jnp.int32(0) * 1]

    def f(x):
        return x * 2.0 + sum(zeros[:3]) + zeros[0] + zeros[3] + jnp.array(3.0)

    def outer(y):
        zero = jnp.zeros(())
        closed = lib.make_jaxpr(lambda x: lib.jit(lambda x: x * zero)(x) + y)(X)
        seen.append(len(closed.consts))
        return lib.core.eval_jaxpr(closed.jaxpr, closed.consts, X)[0]

    seen = []
    closed = lib.make_jaxpr(f)(X)
    assert [(c.shape, c.dtype) for c in closed.consts] == [((), np.int32)] * 4
    np.testing.assert_allclose(
        lib.core.eval_jaxpr(closed.jaxpr, closed.consts, X)[0], 2 * X + 3, rtol=1e-6
    )
    ones = [jnp.int32(1)] * 4
    result = lib.core.eval_jaxpr(closed.jaxpr, ones, X)[0]
    np.testing.assert_allclose(result, 2 * X + 8, rtol=1e-6)
    np.testing.assert_allclose(lib.jit(outer)(1.0), np.ones(4))
    assert seen == [2]


@LIBRARIES
def test_collectives_of_a_given_axis(lib):
    closed = lib.make_jaxpr(lambda x: lib.lax.psum(x, "i") / 2, axis_env=[("i", 4)])(X)
    assert str(closed) == (
        "{ lambda ; a:f32[4]. let\n"
        "    b:f32[4] = psum[axes=('i',) axis_index_groups=None] a\n"
        "    c:f32[4] = div b 2.0:f32[]\n"
        "  in (c,) }"
    )


def test_axes_of_shapes_are_refused():
    with pytest.raises(NotImplementedError, match="abstracted_axes"):
        accnp.make_jaxpr(lambda x: x, abstracted_axes=("n",))


@LIBRARIES
def test_keyword_and_static_arguments(lib):
    def f(x, n, *, scale, **rest):
        return {"a": x * n * scale, "b": rest["y"][0]}

    closed, shape = lib.make_jaxpr(f, static_argnums=1, return_shape=True)(
        X, 3, scale=2.0, y=(Y, None)
    )
    assert [str(a) for a in closed.in_avals] == ["float32[4]", "~float32[]", "float32[4]"]
    assert sorted(shape) == ["a", "b"]
    assert shape["a"] == lib.ShapeDtypeStruct((4,), np.float32)
    assert lib.make_jaxpr(f, static_argnums=-1)(X, 3, scale=2.0, y=(Y,)).in_avals == closed.in_avals


def test_architecture_page_lists_the_primitives():
    """docs/architecture.md lists every op of the table, and no other."""
    text = (Path(__file__).parents[2] / "docs/architecture.md").read_text()
    section = text.split("## Primitives", 1)[1].split("\n## ", 1)[0]
    listed = re.findall(r"`(\w+)`[ .]", section.split("\n- ", 1)[1])
    assert sorted(listed) == sorted(OPS.whole())
