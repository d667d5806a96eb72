"""Callbacks: pure_callback, io_callback, debug.print, debug.callback, against jax.

Each program runs in both libraries; what it prints and returns must agree. Lines of effects that
jax does not order are compared without their order; here they always come in that of the program.
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
from api.oracle import same, stored

import accnp as jnp
import accnp.experimental
from accnp.errors import JaxRuntimeError
from accnp.runtime.stream import default_stream

F32 = np.float32


def run(module, program, *args):
    """What a program of a library prints, in lines, and what it returns (or its error)."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            found = program(module)(*args)
            found = [np.asarray(x) for x in module.tree_util.tree_leaves(found)]
        except (ValueError, NotImplementedError, TypeError, IndexError, KeyError) as error:
            found = error
        module.effects_barrier()
    return text.getvalue().splitlines(), found


def shape(m, *dims):
    return m.ShapeDtypeStruct(dims, "float32")


def io_of(m):
    return m.experimental.io_callback


def square(m):
    def f(x):
        m.debug.print("x = {}", x)
        return x * x

    return f


def chain(m, ordered=False):
    """Prints around and inside of a loop."""

    def f(x):
        m.debug.print("a {}", x, ordered=ordered)

        def step(c, _):
            m.debug.print("in {}", c, ordered=ordered)
            return c * x, None

        y = m.lax.scan(step, x, None, length=2)[0]
        m.debug.print("b {}", y, ordered=ordered)
        return y * x

    return f


def total(m, n=3, reverse=False):
    def f(a):
        def step(c, x):
            m.debug.print("s {} {}", c, x)
            return c * x * a, c

        return m.lax.scan(step, F32(1), np.arange(1, n + 1, dtype=F32), reverse=reverse)[0]

    return f


def counting(m, test=True):
    def f(n):
        def more(c):
            if test:
                m.debug.print("test {} {}", c, n)
            return c < n

        def body(c):
            m.debug.print("body {}", c)
            return c + 1

        return m.lax.while_loop(more, body, 0)

    return f


def branching(m):
    def f(x, p):
        def yes(y):
            m.debug.print("yes {}", y)
            return y * y

        def no(y):
            m.debug.print("no {}", y)
            return y

        return m.lax.cond(p > 0, yes, no, x)

    return f


def nothing_used(m):
    def f(x):
        m.lax.scan(lambda c, y: (m.debug.print("{}", y), (c + y, c))[1], x, np.arange(2.0))
        io_of(m)(lambda v: print("io", v), None, x)
        return 1

    return f


def io_chain(m):
    def host(i, v):
        print("host", int(i), float(v))
        return F32(v + i)

    def f(x):
        first = io_of(m)(host, shape(m), 10, x, ordered=True)

        def step(c, i):
            return io_of(m)(host, shape(m), i, c, ordered=True), c

        last, rows = m.lax.scan(step, first, np.arange(3))
        m.lax.while_loop(
            lambda c: c < 40, lambda c: io_of(m)(host, shape(m), 7, c, ordered=True), last
        )
        return last, rows

    return f


def drawing(m):
    """A factor of each step comes from outside."""

    def host(i):
        print("draw")
        return F32(i + 3)

    def f(x):
        return m.lax.scan(
            lambda c, i: (c * io_of(m)(host, shape(m), i) * x, None), x, np.arange(2)
        )[0]

    return f


def both_sides(m):
    """The same callback twice: each call is done."""

    def host():
        print("called")
        return F32(2)

    def f():
        a = m.pure_callback(host, shape(m)) + m.pure_callback(host, shape(m))
        return a + io_of(m)(host, shape(m)) * io_of(m)(host, shape(m))

    return f


def custom(m, kind):
    if kind == "jvp":

        @m.custom_jvp
        def f(x):
            m.debug.print("primal {}", x)
            return x * 2

        @f.defjvp
        def _(primals, tangents):
            m.debug.print("rule {}", primals[0])
            return primals[0] * 2, tangents[0] * 3

    else:

        @m.custom_vjp
        def f(x):
            m.debug.print("primal {}", x)
            return x * 2

        def fwd(x):
            m.debug.print("fwd {}", x)
            return x * 2, x

        def bwd(x, ct):
            m.debug.print("bwd {} {}", x, ct)
            return (ct * 3,)

        f.defvjp(fwd, bwd)
    return f


ONE, TWO, THREE = F32(1), F32(2), F32(3)
VECTOR = np.arange(3, dtype=F32)
PROGRAMS = {
    "eager": (lambda m: chain(m, True), TWO),
    "jit": (lambda m: m.jit(chain(m, True)), TWO),
    "grad": (lambda m: m.grad(chain(m)), TWO),
    "jit of grad": (lambda m: m.jit(m.grad(chain(m))), TWO),
    "grad of jit": (lambda m: m.grad(m.jit(chain(m))), TWO),
    "jit of grad of jit": (lambda m: m.jit(m.grad(m.jit(chain(m)))), TWO),
    "value_and_grad": (lambda m: m.value_and_grad(square(m)), TWO),
    "second derivative": (lambda m: m.jit(m.grad(m.grad(m.jit(square(m))))), TWO),
    "hessian": (lambda m: m.hessian(m.jit(square(m))), TWO),
    "jvp": (lambda m: lambda x: m.jvp(chain(m), (x,), (x,)), TWO),
    "jit of jvp": (lambda m: m.jit(lambda x: m.jvp(chain(m), (x,), (x,))), TWO),
    "linearize": (lambda m: lambda x: m.linearize(chain(m), x)[1](x), TWO),
    "linear_transpose": (lambda m: lambda x: m.linear_transpose(lambda y: (
        m.debug.print("{}", y), 3 * y)[1], x)(x), TWO),
    "eval_shape": (lambda m: lambda x: m.eval_shape(square(m), x).shape, TWO),
    "vmap": (lambda m: m.vmap(chain(m)), VECTOR),
    "vmap of jit": (lambda m: m.vmap(m.jit(chain(m))), VECTOR),
    "jit of vmap": (lambda m: m.jit(m.vmap(chain(m))), VECTOR),
    "vmap of grad": (lambda m: m.vmap(m.grad(chain(m))), VECTOR),
    "vmap of jit of grad": (lambda m: m.vmap(m.jit(m.grad(chain(m)))), VECTOR),
    "grad of vmap": (lambda m: m.grad(lambda x: m.vmap(chain(m))(x).sum()), VECTOR),
    "grad of vmap of jit": (lambda m: m.grad(lambda x: m.vmap(m.jit(chain(m)))(x).sum()), VECTOR),
    "vmap twice": (lambda m: m.vmap(m.vmap(lambda x, y: (
        m.debug.print("{} {}", x, y), x * y)[1], (0, None)), (None, 0)), VECTOR, VECTOR),
    "vmap, not mapped": (lambda m: m.vmap(lambda x: (m.debug.print("const"), x)[1]), VECTOR),
    "ordered in vmap": (lambda m: m.vmap(chain(m, True)), VECTOR),
    "scan": (total, TWO),
    "scan, reverse": (lambda m: m.jit(total(m, reverse=True)), TWO),
    "grad of scan": (lambda m: m.grad(total(m)), TWO),
    "jit of grad of scan": (lambda m: m.jit(m.grad(total(m))), TWO),
    "vmap of scan": (lambda m: m.vmap(total(m)), VECTOR),
    "scan of no steps": (lambda m: m.grad(total(m, 0)), TWO),
    "map": (lambda m: lambda x: m.lax.map(square(m), x), VECTOR),
    "while": (counting, 3),
    "jit of while": (lambda m: m.jit(counting(m)), 3),
    "vmap of while": (lambda m: m.vmap(counting(m)), np.arange(3)),
    "vmap of while, one test": (lambda m: m.vmap(lambda x: m.lax.while_loop(
        lambda c: c[0] < 2, lambda c: (m.debug.print("{} {}", *c), (c[0] + 1, c[1] + x))[1],
        (0, x))), VECTOR),
    "jvp of while": (lambda m: m.jit(lambda x: m.jvp(lambda y: m.lax.while_loop(
        lambda c: c < 3, lambda c: (m.debug.print("{}", c), c + y)[1], y * 0), (x,), (x,))), ONE),
    "fori": (lambda m: lambda n: m.lax.fori_loop(0, n, lambda i, c: (
        m.debug.print("{} {}", i, c), c + i)[1], 0), 3),
    "grad of fori": (lambda m: m.grad(lambda x: m.lax.fori_loop(0, 3, lambda i, c: (
        m.debug.print("{} {}", i, c), c * x)[1], x)), TWO),
    "cond": (branching, TWO, 1),
    "jit of cond": (lambda m: m.jit(branching(m)), TWO, 0),
    "grad of cond": (lambda m: m.grad(branching(m)), TWO, 1),
    "jit of grad of cond": (lambda m: m.jit(m.grad(branching(m))), TWO, 0),
    "vmap of cond": (lambda m: m.vmap(branching(m)), VECTOR, np.array([1, 0, 1])),
    "vmap of cond, one branch": (lambda m: m.vmap(branching(m), (0, None)), VECTOR, 1),
    "switch": (lambda m: m.jit(lambda i: m.lax.switch(i, [
        lambda: (m.debug.print("0"), 0)[1], lambda: (m.debug.print("1"), 1)[1]])), 1),
    "results not used": (nothing_used, TWO),
    "results not used, jit": (lambda m: m.jit(nothing_used(m)), TWO),
    "the same twice": (lambda m: m.jit(lambda: (m.debug.print("x"), m.debug.print("x"))),),
    "callbacks twice": (lambda m: m.jit(both_sides(m)),),
    "io": (io_chain, TWO),
    "io, jit": (lambda m: m.jit(io_chain(m)), TWO),
    "io, vmap": (lambda m: m.vmap(lambda x: io_of(m)(
        lambda v: (print("io", v), v)[1], shape(m), x)), VECTOR),
    "io, vmap of jit": (lambda m: m.vmap(m.jit(lambda x: io_of(m)(
        lambda v: (print("io", v), v)[1], shape(m), x))), VECTOR),
    "io, not mapped": (lambda m: m.vmap(lambda x: (io_of(m)(
        lambda: print("io"), None), x)[1]), VECTOR),
    "io, ordered, vmap": (lambda m: m.vmap(lambda x: io_of(m)(
        lambda v: v, shape(m), x, ordered=True)), VECTOR),
    "io, stopped": (lambda m: m.grad(lambda x: io_of(m)(
        lambda v: (print("io", v), v)[1], shape(m), m.lax.stop_gradient(x)) * x), TWO),
    "io, differentiated": (lambda m: m.grad(lambda x: (io_of(m)(
        lambda v: print("io", v), None, x), x)[1]), TWO),
    "io, differentiated, jit": (lambda m: m.grad(m.jit(lambda x: (io_of(m)(
        lambda v: print("io", v), None, x), x)[1])), TWO),
    "io, vmap of cond": (lambda m: m.vmap(lambda x: m.lax.cond(x > 0, lambda: io_of(m)(
        lambda v: v, shape(m), x), lambda: x)), VECTOR),
    "io, grad through": (lambda m: m.grad(drawing(m)), TWO),
    "io, jit of grad through": (lambda m: m.jit(m.grad(drawing(m))), TWO),
    "pure, differentiated": (lambda m: m.grad(lambda x: m.pure_callback(
        lambda v: v, shape(m), x)), TWO),
    "pure, not used": (lambda m: m.jit(lambda x: (m.pure_callback(
        lambda v: (print("pure"), v)[1], shape(m), x), x)[1]), TWO),
    "pure, not used, eager": (lambda m: lambda x: (m.pure_callback(
        lambda v: (print("pure"), v)[1], shape(m), x), x)[1], TWO),
    "pure, trees": (lambda m: m.jit(lambda x: m.pure_callback(
        lambda a, k: {"s": a["v"] + k, "t": (F32(1),)},
        {"s": shape(m, 3), "t": (shape(m),)}, {"v": x}, k=2)), VECTOR),
    "pure, int for float": (lambda m: m.jit(lambda x: m.pure_callback(
        lambda v: F32(v) * 2, shape(m), x)), 2),
    "pure, Python number": (lambda m: lambda x: m.pure_callback(lambda v: 2.5, shape(m), x), TWO),
    "pure, 64 bits declared": (lambda m: lambda x: m.pure_callback(
        lambda v: v, m.ShapeDtypeStruct((), "float64"), x), TWO),
    "pure, no such method": (lambda m: lambda x: m.pure_callback(
        lambda v: v, shape(m), x, vmap_method="all"), TWO),
    "callback with others": (lambda m: lambda x: m.debug.callback(
        lambda a, k: print(a, k), x, k="text"), TWO),
    "callback in two calls": (lambda m: lambda x: m.debug.callback(ordered=True)(print, x), TWO),
    "callback, no function": (lambda m: lambda x: m.debug.callback(3, x), TWO),
    "print in two calls": (lambda m: lambda x: m.debug.print(ordered=True)("{}", x), TWO),
    **{f"custom_{k}, {name}": (lambda m, k=k, t=t: t(m)(custom(m, k)), TWO)
       for k in ("jvp", "vjp")
       for name, t in {
           "plain": lambda m: lambda f: f,
           "grad": lambda m: m.grad,
           "jit of grad": lambda m: lambda f: m.jit(m.grad(f)),
           "grad of jit": lambda m: lambda f: m.grad(m.jit(f)),
           "stopped": lambda m: lambda f: m.grad(lambda x: f(m.lax.stop_gradient(x)) * x),
       }.items()},
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    program, *args = PROGRAMS[name]
    lines, found = run(jnp, program, *args)
    expected, want = stored("callbacks", name, lambda: run(jax, program, *args))
    assert sorted(lines) == sorted(expected)
    same(found, want)


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
    found = run(jnp, program, VECTOR, y)
    same(found, stored("callbacks", f"{transform}, {method}", lambda: run(jax, program, VECTOR, y)))
    if method is None:
        assert "vmap_method" in str(found[1])


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

    expected = stored("callbacks", f"format {number}", lambda: run(jax, program))
    same(run(jnp, program), expected)


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


def test_arguments_may_be_kept():
    kept = []
    f = jnp.jit(lambda x: (jnp.debug.callback(kept.append, x * 2), x * 3)[1])
    for i in range(20):
        f(jnp.full(2000, i, "float32"))
    jnp.effects_barrier()
    assert [float(x[7]) for x in kept] == [2.0 * i for i in range(20)]
    assert all(isinstance(x, jnp.Array) for x in kept)


def test_results_may_be_written_to_later():
    whole = np.zeros(3000, F32)

    def host(i):
        whole[:] = i
        return whole

    struct = jnp.ShapeDtypeStruct((3000,), "float32")
    f = jnp.jit(lambda i: jnp.pure_callback(host, struct, i))
    found = [f(i) for i in range(5)]
    assert [float(x[5]) for x in found] == [0, 1, 2, 3, 4]


def test_callbacks_may_compute():
    """Operations inside a callback are done at once, whatever called it."""
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


def test_eager_callbacks_keep_nothing_alive():
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


def test_inspect_says_what_they_are():
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
    with pytest.raises(JaxRuntimeError, match="raised KeyError: 'boom'") as caught:
        jnp.block_until_ready([call(), jnp.effects_barrier()])
    assert isinstance(caught.value.__cause__, KeyError)
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert f"recorded at {__file__}:" in notes
    if kind != "print":
        assert f"boom ({__file__}:" in str(caught.value)
    assert float(jnp.jit(lambda x: x + 1)(1.0)) == 2.0
    jnp.effects_barrier()


@pytest.mark.parametrize(
    ("host", "declared", "message"),
    [
        (lambda x: np.ones(3, F32), (), r"float32\[3\]; declared was float32\[\]"),
        (lambda x: np.int64(1), (), r"int64\[\]; declared was float32\[\]"),
        (lambda x: (1.0, 2.0), (), "returned 2 values; declared were 1"),
        (lambda x: [1.0, 2.0], (2,), "returned 2 values; declared were 1"),
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


def test_errors_in_flight_come_up_at_the_wait():
    """Work behind large work is done on the stream; its error waits there."""
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


def test_effects_in_flight_keep_their_order():
    seen = []
    x = jnp.ones((3000, 3000))
    x.block_until_ready()
    big = jnp.jit(lambda x: jnp.sum(jnp.exp(x) * 2))
    for i in range(3):
        jnp.debug.callback(lambda v, i=i: seen.append(i), big(x + i))
        jnp.debug.callback(lambda v, i=i: seen.append(i + 10), i)
    jnp.effects_barrier()
    assert seen == [0, 10, 1, 11, 2, 12]
