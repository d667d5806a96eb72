"""Result shapes of functions whose arguments have symbolic sizes, compared with JAX."""

import operator

import jax
import numpy as np
import pytest
from jax import export as their_export

import accnp
import accnp.numpy
from accnp import export
from accnp.errors import InconclusiveDimensionOperation

PROGRAMS = {
    "identity": lambda m, a, w: a,
    "joined": lambda m, a, w: m.numpy.concatenate([a, a]),
    "product": lambda m, a, w: a @ w,
    "square": lambda m, a, w: a @ a.T,
    "flat": lambda m, a, w: a.reshape(-1),
    "sums": lambda m, a, w: {"rows": a.sum(1), "all": (a.mean(), a.max(0))},
    "network": lambda m, a, w: m.nn.softmax(m.nn.relu(a @ w), -1),
    "padded": lambda m, a, w: m.numpy.pad(a, ((1, 2), (0, 0))),
    "strided": lambda m, a, w: a[1:, ::2],
    "random": lambda m, a, w: m.random.normal(m.random.key(0), a.shape),
    "dtype": lambda m, a, w: (a > 0).astype("int8"),
    "mapped": lambda m, a, w: m.vmap(lambda r: r @ w)(a),
    "loop": lambda m, a, w: m.lax.fori_loop(0, 3, lambda i, c: c * 2, a),
    "gradient": lambda m, a, w: m.grad(lambda a: (a @ w).sum())(a),
}


def types(m, e, name, through):
    (d,) = e.symbolic_shape("d", constraints=["d >= 3"])
    a = m.ShapeDtypeStruct((d, 4), np.float32)
    w = m.ShapeDtypeStruct((4, 5), np.float32)

    def f(a, w):
        return PROGRAMS[name](m, a, w)

    structs = m.jit(f).eval_shape(a, w) if through == "jit" else m.eval_shape(f, a, w)
    return [(tuple(map(str, x.shape)), x.dtype) for x in m.tree_util.tree_leaves(structs)]


@pytest.mark.parametrize("through", ["eval_shape", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_symbolic_shapes_match_jax(name, through):
    assert types(accnp, export, name, through) == types(jax, their_export, name, through)


def sized(m, e):
    (d,) = e.symbolic_shape("d", constraints=["d >= 3"])
    return m.ShapeDtypeStruct((d, 4), np.float32)


@pytest.mark.parametrize("name", ["identity", "joined", "product", "flat", "dtype", "loop"])
def test_jaxprs_match_jax(name):
    def text(m, e):
        args = sized(m, e), m.ShapeDtypeStruct((4, 5), np.float32)
        return str(m.make_jaxpr(lambda a, w: PROGRAMS[name](m, a, w))(*args))

    assert text(accnp, export) == text(jax, their_export)


@pytest.mark.parametrize("name", ["sums", "network", "loop"])
def test_stages_match_jax(name):
    """Compare the types at every stage, and whether the tree structure is reported."""

    def described(m, e):
        args = sized(m, e), m.ShapeDtypeStruct((4, 5), np.float32)
        stage = m.jit(lambda a, w: PROGRAMS[name](m, a, w)).trace(*args)
        lowered = stage.lower()
        known = [stage.jaxpr.in_avals, stage.jaxpr.out_avals]
        for x in (stage, lowered):
            known += [x.in_avals, x.out_info, x.in_tree, x.out_tree, x.args_info, x.donate_argnums]
        return [str(x) for x in known]

    assert described(accnp, export) == described(jax, their_export)


def test_return_shape_and_static_arguments():
    def described(m, e):
        f = m.make_jaxpr(
            lambda n, x: {"a": x.reshape(-1), "b": [x * n]}, static_argnums=0, return_shape=True
        )
        return str(f(3, sized(m, e)))

    assert described(accnp, export) == described(jax, their_export)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda a: a.mean(), "dim_as_value[dim=4*d]"),
        (lambda a: a.shape[0] * a, "dim_as_value[dim=d]"),
        (lambda a: a.shape[0] // 2 * a, "dim_as_value[dim=floordiv(d, 2)]"),
        (lambda a: accnp.lax.fori_loop(0, a.shape[0], lambda i, c: c + a[i], a[0]), "length=d"),
        (lambda a: (a, a.shape[0] + 1), "dim_as_value[dim=d + 1]"),
    ],
)
def test_numbers_that_follow_from_sizes(f, expected):
    assert expected in str(accnp.make_jaxpr(f)(sized(accnp, export)))


def test_jaxprs_without_sizes_in_parameters_are_evaluated():
    closed = accnp.make_jaxpr(lambda a: accnp.numpy.sin(a).sum(0))(sized(accnp, export))
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    (actual,) = accnp.core.eval_jaxpr(closed.jaxpr, closed.consts, x)
    np.testing.assert_allclose(actual, np.sin(x).sum(0), rtol=1e-5)
    closed = accnp.make_jaxpr(lambda a: a.mean())(sized(accnp, export))
    with pytest.raises(InconclusiveDimensionOperation):
        accnp.core.eval_jaxpr(closed.jaxpr, closed.consts, x)


def test_refuses_what_jax_refuses():
    x = sized(accnp, export)
    lowered = accnp.jit(lambda a: a * 2).lower(x)
    assert "mul a 2.0" in lowered.as_text()
    for refused in (lowered.compile, lowered.cost_analysis):
        with pytest.raises(ValueError, match="Error refining shapes"):
            refused()
    their = jax.jit(lambda a: a * 2).lower(sized(jax, their_export))
    with pytest.raises(ValueError, match="Error refining shapes"):
        their.compile()
    with pytest.raises(InconclusiveDimensionOperation):
        accnp.make_jaxpr(lambda a: np.arange(a.shape[0]) + a[:, 0])(x)
    with pytest.raises(InconclusiveDimensionOperation):
        accnp.make_jaxpr(lambda a: a * 2 if a.shape[0] % 2 else a)(x)


def test_types_without_a_program():
    """A scan over pairs has different operations at different sizes, but results of one type."""
    x = sized(accnp, export)
    stage = accnp.jit(lambda a: accnp.lax.associative_scan(accnp.numpy.add, a)).trace(x)
    assert str(stage.out_info) == "ShapeDtypeStruct(shape=(d, 4), dtype=float32)"
    with pytest.raises(InconclusiveDimensionOperation, match="same operations at all sizes"):
        str(stage.jaxpr)


def test_symbols_in_types():
    (d,) = export.symbolic_shape("d")
    x = accnp.ShapeDtypeStruct((d, 3), np.float32)
    assert str(accnp.typeof(x)) == "float32[d,3]"
    assert x.size == 3 * d
    assert accnp.typeof(x) == accnp.core.ShapedArray((d, 3), np.float32)
    (other,) = export.symbolic_shape("d")
    assert accnp.typeof(x) != accnp.core.ShapedArray((other, 3), np.float32)


# Types in the place of values: {call} is traced, and what is found is a text.
TYPED = {
    "jaxpr": lambda m, f: m.make_jaxpr(f),
    "shapes": lambda m, f: lambda *xs: m.eval_shape(f, *xs),
    "trace": lambda m, f: lambda *xs: m.jit(f).trace(*xs).jaxpr,
    "jit shapes": lambda m, f: m.jit(f).eval_shape,
}


@pytest.mark.parametrize("how", TYPED)
def test_functions_that_close_over_types(how):
    def described(m):
        s = m.ShapeDtypeStruct((3,), np.float32)
        g = m.grad(lambda x: m.numpy.sum(m.lax.mul(x, s)))
        put = lambda x: (x, m.device_put({"a": s}))  # noqa: E731
        functions = [lambda x: (x, s), lambda x: m.lax.add(x, s), g, put]
        if "shapes" not in how:  # the texts of the others differ in operations that do nothing
            functions = functions[: 3 if how == "jaxpr" else 2]
        return [str(TYPED[how](m, f)(np.ones(3, np.float32))) for f in functions]

    assert described(accnp) == described(jax)


def test_jitted_functions_that_close_over_types():
    s = accnp.ShapeDtypeStruct((3,), np.float32)
    inner = accnp.jit(lambda x: accnp.lax.add(x, s))
    closed = accnp.make_jaxpr(lambda x: inner(x) * inner(x))(np.ones(3, np.float32))
    assert closed.consts == [s]
    assert closed.out_avals == [accnp.typeof(s)]


def test_closed_over_types_with_symbols():
    def described(m, e):
        x = sized(m, e)
        jaxpr = m.make_jaxpr(lambda y: m.lax.add(y, x))(x)
        return str(jaxpr), str(jaxpr.consts), str(m.eval_shape(lambda y: m.lax.add(y, x), x))

    assert described(accnp, export) == described(jax, their_export)


def test_types_have_no_values():
    s = accnp.ShapeDtypeStruct((3,), np.float32)
    x = np.ones(3, np.float32)
    phrase = "A ShapeDtypeStruct does not have a value"
    f = accnp.jit(lambda y: accnp.lax.add(y, s))
    for call in (lambda: f(x), lambda: f.lower(x), lambda: export.export(f)(x)):
        with pytest.raises(TypeError, match=phrase):
            call()
    for call in (lambda: accnp.device_put(s), lambda: accnp.numpy.sin(s)):
        with pytest.raises(TypeError, match="is not a valid JAX type"):
            call()


def test_stages_name_the_arrays_that_functions_close_over():
    def described(m):
        c = m.numpy.arange(3.0)
        closed = m.jit(lambda y: y + c).trace(np.float32(1)).jaxpr
        return str(closed), [np.asarray(x).tolist() for x in closed.consts]

    assert described(accnp) == described(jax)


def test_several_symbols():
    a, b = export.symbolic_shape("a, b")
    x = accnp.ShapeDtypeStruct((a, b), np.float32)
    structs = accnp.eval_shape(lambda x: (x.T, x.reshape(-1)), x)
    assert [x.shape for x in structs] == [(b, a), (a * b,)]
    (c,) = export.symbolic_shape("c")
    with pytest.raises(ValueError, match="one scope"):
        accnp.eval_shape(lambda x, y: x, x, accnp.ShapeDtypeStruct((c,), np.float32))


def test_invalid_symbolic_sizes_are_refused():
    (d,) = export.symbolic_shape("d")
    x = accnp.ShapeDtypeStruct((d, 3), np.float32)
    with pytest.raises(TypeError) as error:
        accnp.eval_shape(lambda x: x.reshape(4, -1), x)
    assert (
        "Symbolic sizes were replaced by numbers for this trace: d = " in error.value.__notes__[0]
    )


REMAINDERS = {
    "every other": lambda a: a[::2],
    "the others": lambda a: a[1::2],
    "half": lambda a: a[: a.shape[0] // 2],
    "scaled by half": lambda a: a * (a.shape[0] // 2),
}


@pytest.mark.parametrize("name", REMAINDERS)
def test_halves_of_sizes_are_right_for_odd_and_even_ones(name):
    """Samples with odd sizes only made halves look like polynomials that are wrong at
    even sizes."""
    f = REMAINDERS[name]
    (d,) = export.symbolic_shape("d")
    original = export.export(accnp.jit(f))(accnp.ShapeDtypeStruct((d,), np.float32))
    again = export.deserialize(original.serialize())
    for n in range(4, 12):
        x = np.arange(n, dtype=np.float32)
        for exported in (original, again):
            np.testing.assert_array_equal(np.asarray(exported.call(x)), f(x))


@pytest.mark.parametrize("f", [lambda a: a + a.shape[0] % 2, lambda a: a + a.shape[0] % 3])
def test_shapes_without_a_rule_are_refused(f):
    (d,) = export.symbolic_shape("d")
    with pytest.raises(InconclusiveDimensionOperation):
        export.export(accnp.jit(f))(accnp.ShapeDtypeStruct((d,), np.float32))


def test_symbols_of_several_scopes() -> None:
    """Arithmetic and comparisons between symbols of different scopes raise; equality is False."""
    for m in (accnp, jax):
        (a,), (b,) = m.export.symbolic_shape("a"), m.export.symbolic_shape("b")
        (again,) = m.export.symbolic_shape("a")
        for x, y in ((a, b), (a, again)):
            for f in (
                operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
                operator.lt, operator.ge,
            ):  # fmt: skip
                with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
                    f(x, y)
            assert x != y
        with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
            m.export.export(m.jit(lambda x, y: (x, y)))(
                m.ShapeDtypeStruct((a,), "float32"), m.ShapeDtypeStruct((b,), "float32")
            )
