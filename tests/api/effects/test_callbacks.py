"""Callbacks (`pure_callback`, `io_callback`, `debug.print` and `debug.callback`), compared with
JAX.

Each program runs in both libraries, and its output and results must agree. JAX does not order the
lines of some effects, so these are compared as sets; accnp always prints them in program order.
"""

import contextlib
import gc
import io
import logging
import weakref

import jax
import jax.experimental
import numpy as np
import pytest
from api.effects.callback_programs import F32, PROGRAMS, TWO, VECTOR, chain, shape
from api.oracle import assert_same_result, stored_result

import accnp as jnp
import accnp.experimental
from accnp.errors import JaxRuntimeError
from accnp.runtime.stream import default_stream


def run(module, program, *args):
    """Return the lines that a program prints, and its results or its error."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            outcome = program(module)(*args)
            outcome = [np.asarray(x) for x in module.tree_util.tree_leaves(outcome)]
        except (ValueError, NotImplementedError, TypeError, IndexError, KeyError) as error:
            outcome = error
        module.effects_barrier()
    return text.getvalue().splitlines(), outcome


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    program, *args = PROGRAMS[name]
    lines, actual = run(jnp, program, *args)
    expected, expected_outcome = stored_result("callbacks", name, lambda: run(jax, program, *args))
    assert sorted(lines) == sorted(expected)
    assert_same_result(actual, expected_outcome)


@pytest.mark.parametrize("name", ["jit", "grad", "jit of grad of jit", "grad of jit"])
def test_order_is_that_of_the_program(name):
    lines, _ = run(jnp, *PROGRAMS[name])
    assert lines == ["a 2.0", "in 2.0", "in 4.0", "b 8.0"]


METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


@pytest.mark.parametrize("method", [*METHODS, None])
@pytest.mark.parametrize("transform", ["vmap", "jit of vmap", "vmap twice"])
def test_vmap_methods(method, transform):
    if method == "legacy_vectorized" and transform == "vmap twice":
        return  # the host function could not tell the axes apart

    def program(m):
        def host(x, y):
            print(x.shape, y.shape)
            return np.asarray(x) + np.asarray(y)

        def f(x, y):
            return m.pure_callback(host, shape(m), x, y, vmap_method=method)

        f = m.vmap(f, (0, None))
        return {"vmap": f, "jit of vmap": m.jit(f), "vmap twice": m.vmap(f, (None, 0))}[transform]

    y = VECTOR if transform == "vmap twice" else TWO
    actual = run(jnp, program, VECTOR, y)
    assert_same_result(
        actual,
        stored_result("callbacks", f"{transform}, {method}", lambda: run(jax, program, VECTOR, y)),
    )
    if method is None:
        assert "vmap_method" in str(actual[1])


# --- formats ---

FORMATS = [
    (("x={x} y={} {z:.3f}", 1), {"x": np.ones(2, F32), "z": F32(2.123456)}),
    (("literal {{}}",), {}),
    (("{0} {0} {1!r}", 2, np.ones(1, F32)), {}),
    (("a={a}",), {"a": {"k": np.ones(2, F32), "s": "text"}}),
    (("{x[k]:5.1f}|",), {"x": {"k": F32(2)}}),
    (("{b} {c} {i:3d}|",), {"b": np.bool_(True), "c": 2 + 1j, "i": np.int32(5)}),
    (("{}", "text"), {}),
    (("{}",), {}),
    (("{}", 1, 2), {}),
    (("{x}",), {"y": 2}),
    (("plain",), {"y": 2}),
    (("plain", 1), {}),
    (("plain", 1), {"skip_format_check": True}),
    ((3,), {}),
    (("",), {}),
]


@pytest.mark.parametrize("number", range(len(FORMATS)))
def test_formats(number):
    args, kwargs = FORMATS[number]

    def program(m):
        return lambda: m.debug.print(*args, **kwargs)

    expected = stored_result("callbacks", f"format {number}", lambda: run(jax, program))
    assert_same_result(run(jnp, program), expected)


def test_print_options_are_those_of_the_call():
    with np.printoptions(precision=2):
        lines, _ = run(jnp, lambda m: m.jit(lambda x: m.debug.print("{}", x)), VECTOR / 7)
    assert lines == ["[0.   0.14 0.29]"]


def test_log(caplog):
    with caplog.at_level(logging.INFO, "accnp.debug"):
        jnp.jit(lambda x: jnp.debug.log("x = {x}", x=x))(3)
        jnp.effects_barrier()
    (record,) = [r for r in caplog.records if r.name == "accnp.debug"]
    assert (record.getMessage(), record.levelname) == ("x = 3", "INFO")
    assert record.pathname == __file__


# --- what callbacks get and give ---


def test_callbacks_may_keep_their_arguments():
    arguments = []
    f = jnp.jit(lambda x: (jnp.debug.callback(arguments.append, x * 2), x * 3)[1])
    for i in range(20):
        f(jnp.full(2000, i, "float32"))
    jnp.effects_barrier()
    assert [float(x[7]) for x in arguments] == [2.0 * i for i in range(20)]
    assert all(isinstance(x, jnp.Array) for x in arguments)


def test_callbacks_may_modify_results_later():
    whole = np.zeros(3000, F32)

    def host(i):
        whole[:] = i
        return whole

    struct = jnp.ShapeDtypeStruct((3000,), "float32")
    f = jnp.jit(lambda i: jnp.pure_callback(host, struct, i))
    results = [f(i) for i in range(5)]
    assert [float(x[5]) for x in results] == [0, 1, 2, 3, 4]


def test_callbacks_may_compute():
    """Operations inside a callback are computed immediately, whatever called it."""
    struct = jnp.ShapeDtypeStruct((), "float32")
    seen = []

    def host(x):
        y = jnp.jit(lambda v: jnp.sin(v) * 2)(x)
        seen.append(bool(y > 0))
        return jnp.sum(jnp.stack([y, y]))

    f = jnp.jit(lambda x: jnp.pure_callback(host, struct, x))

    def g(x):
        # The operand waits for a value while another function is being traced.
        y = f(jnp.array(0.5))
        return x * y

    expected = 4 * np.sin(F32(0.5))
    assert float(jnp.jit(g)(1.0)) == pytest.approx(expected)
    assert float(jnp.grad(g)(1.0)) == pytest.approx(expected)
    assert seen == [True, True]


def test_eager_callbacks_do_not_leak():
    class Probe:
        def __call__(self, x):
            return None

    probe = Probe()
    there = weakref.ref(probe)
    jnp.debug.callback(probe, jnp.ones(3))
    accnp.experimental.io_callback(probe, None, jnp.ones(3))
    del probe
    gc.collect()
    assert there() is None


def test_inspect_shows_callbacks():
    text = str(jnp.inspect(jnp.jit(chain(jnp)))(2.0))
    assert "no kernel: debug_print calls a Python function" in text
    assert "a loop on the host over these plans, because debug_print calls a Python" in text


# --- errors ---


def boom(*_):
    raise KeyError("boom")


@pytest.mark.parametrize("kind", ["pure", "io", "debug", "print"])
@pytest.mark.parametrize("transform", ["eager", "jit", "vmap", "scan", "while"])
def test_errors_name_the_callback_and_the_line(kind, transform):
    struct = jnp.ShapeDtypeStruct((), "float32")

    class Bad:
        def __format__(self, spec):
            raise KeyError("boom")

    def f(x):
        if kind == "pure":
            return jnp.pure_callback(boom, struct, x, vmap_method="sequential")
        if kind == "io":
            return accnp.experimental.io_callback(boom, struct, x)
        if kind == "debug":
            jnp.debug.callback(boom, x)
        else:
            jnp.debug.print("{} {}", x, Bad(), skip_format_check=True)
        return x

    call = {
        "eager": lambda: f(1.0),
        "jit": lambda: jnp.jit(f)(1.0),
        "vmap": lambda: jnp.vmap(f)(jnp.ones(2)),
        "scan": lambda: jnp.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2),
        "while": lambda: jnp.lax.while_loop(lambda c: c < 3.0, lambda c: f(c) + 1, 1.0),
    }[transform]
    own = kind in ("debug", "print") and transform in ("eager", "vmap")  # called at once
    error, text = (KeyError, "boom") if own else (JaxRuntimeError, "raised KeyError: 'boom'")
    with pytest.raises(error, match=text) as caught:
        jnp.block_until_ready([call(), jnp.effects_barrier()])
    assert own or isinstance(caught.value.__cause__, KeyError)
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert f"recorded at {__file__}:" in notes
    if kind != "print" and not own:
        assert f"boom ({__file__}:" in str(caught.value)
    assert float(jnp.jit(lambda x: x + 1)(1.0)) == 2.0
    jnp.effects_barrier()


@pytest.mark.parametrize(
    ("host", "declared", "message"),
    [
        (lambda x: np.ones(3, F32), (), r"float32\[3\] where float32\[\] was declared"),
        (lambda x: np.int64(1), (), r"int64\[\] where float32\[\] was declared"),
        (lambda x: (1.0, 2.0), (), "wrong number of values; got 2 for 1 declared"),
        (lambda x: [1.0, 2.0], (2,), "wrong number of values; got 2 for 1 declared"),
    ],
)
def test_results_are_checked(host, declared, message):
    for module in (jnp, jax):
        struct = module.ShapeDtypeStruct(declared, "float32")
        error = JaxRuntimeError if module is jnp else jax.errors.JaxRuntimeError
        with pytest.raises(error, match=message if module is jnp else None):
            module.jit(lambda x, m=module, s=struct: m.pure_callback(host, s, x))(
                1.0
            ).block_until_ready()
    with pytest.raises(TypeError, match=r"result_shape_dtypes\['a'\]"):
        jnp.pure_callback(host, {"a": 3}, 1.0)


def _raising(method):
    """Return a function whose callback raises, and the type of its result."""
    return lambda x: jnp.pure_callback(
        boom, jnp.ShapeDtypeStruct(jnp.shape(x), "float32"), x, vmap_method=method
    )


def _both_branches(f):
    return lambda x: jnp.lax.cond(x > 0, f, lambda y: y, x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize(
    ("transform", "wrap"),
    [
        ("vmap", lambda f: f),
        ("vmap of jit", jnp.jit),
        ("vmap of cond", _both_branches),
        ("vmap of scan", lambda f: lambda x: jnp.lax.scan(lambda c, _: (f(c), None), x, None, 2)),
        ("vmap of vmap", lambda f: lambda x: jnp.vmap(f, axis_size=2, in_axes=None)(x)),
        ("vmap, not mapped", lambda f: lambda x: f(2.0)),
    ],
)
def test_eager_maps_raise_at_the_call(method, used, transform, wrap):
    """Errors are raised whether or not the results are used, as in JAX."""
    f = wrap(_raising(method))
    with pytest.raises(JaxRuntimeError, match="boom"):
        jnp.vmap(f if used else lambda x: (f(x), x)[1])(jnp.ones(3))


@pytest.mark.parametrize("method", METHODS)
def test_eager_loops_raise_at_the_call(method):
    f = _raising(method)
    for call in (
        lambda: jnp.lax.map(f, jnp.ones(2)),
        lambda: jnp.lax.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones(2)),
        lambda: jnp.lax.cond(True, f, f, 1.0),
    ):
        with pytest.raises(JaxRuntimeError, match="boom"):
            call()


def test_callbacks_in_derivative_rules():
    seen = []

    @jnp.custom_jvp
    def f(x):
        return jnp.pure_callback(
            lambda v: (seen.append(1), np.sin(v))[1], shape(jnp), x, vmap_method="sequential"
        )

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * jnp.cos(primals[0])))
    gradients = jnp.vmap(jnp.grad(f))(jnp.ones(3))
    np.testing.assert_allclose(gradients, np.cos(np.ones(3)), rtol=1e-6)
    assert len(seen) == 3


def test_unused_callbacks_keep_their_order():
    seen = []

    def f(x):
        jnp.debug.callback(lambda: seen.append("a"))
        jnp.pure_callback(
            lambda v: (seen.append("b"), v)[1], shape(jnp), x, vmap_method="sequential"
        )
        jnp.debug.callback(lambda: seen.append("c"))
        return x

    jnp.vmap(f)(jnp.ones(1))
    assert seen == ["a", "b", "c"]


def test_branches_without_results_call_back():
    """Under a mapped predicate, both branches run for all rows, even if they return nothing."""
    for result in (lambda x: None, lambda x: x, lambda x: x + 1):
        seen = []

        def yes(x, result=result, seen=seen):
            jnp.debug.callback(lambda v: seen.append(float(v)), x)
            return result(x)

        jnp.vmap(lambda x, yes=yes, result=result: jnp.lax.cond(x > 1, yes, result, x))(
            jnp.arange(3.0)
        )
        assert seen == [0.0, 1.0, 2.0]


def test_asynchronous_errors_are_raised_by_wait():
    """Operations queued after large ones run on the stream; their errors are raised when
    waiting.
    """
    x = jnp.ones((4000, 4000))
    x.block_until_ready()
    big = jnp.jit(lambda x: jnp.sum(jnp.exp(jnp.sin(x)) * x))
    struct = jnp.ShapeDtypeStruct((), "float32")
    y = jnp.jit(lambda v: jnp.pure_callback(boom, struct, v))(big(x))
    with pytest.raises(JaxRuntimeError, match="boom"):
        y.block_until_ready()
    jnp.effects_barrier()
    jnp.debug.callback(boom, big(x + 1))
    with pytest.raises(JaxRuntimeError, match="boom"):
        jnp.effects_barrier()
    jnp.effects_barrier()
    assert default_stream().idle
    assert np.isfinite(float(big(x)))


def test_asynchronous_effects_keep_their_order():
    seen = []
    x = jnp.ones((3000, 3000))
    x.block_until_ready()
    big = jnp.jit(lambda x: jnp.sum(jnp.exp(x) * 2))
    for i in range(3):
        jnp.debug.callback(lambda v, i=i: seen.append(i), big(x + i))
        jnp.debug.callback(lambda v, i=i: seen.append(i + 10), i)
    jnp.effects_barrier()
    assert seen == [0, 10, 1, 11, 2, 12]


@pytest.mark.parametrize(
    ("fmt", "words"),
    [
        ("{} {}", "the format has 2 fields, but 1 argument was passed; got '{} {}'; pass an"),
        ("{2}", "the format has 3 fields, but 1 argument was passed; got '{2}'; pass an"),
        ("{:{}}", "the format has 2 fields, but 1 argument was passed; got '{:{}}'; pass an"),
    ],
)
def test_formats_with_too_few_arguments(fmt, words):
    for name in "print", "log":
        with pytest.raises(IndexError) as caught:
            getattr(jnp.debug, name)(fmt, 1.0)
        assert str(caught.value).startswith(f"debug.{name}: {words}")


def test_formats_without_a_keyword_argument():
    with pytest.raises(KeyError, match="has a field 'a', but no such keyword argument was passed"):
        jnp.debug.print("{a.shape}", 1.0)
