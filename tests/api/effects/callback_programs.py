"""Programs with callbacks that run with JAX and accnp. `PROGRAMS` lists each with its arguments."""

import numpy as np

F32 = np.float32


def shape(m, *dims):
    return m.ShapeDtypeStruct(dims, "float32")


def get_io_callback(m):
    return m.experimental.io_callback


def square(m):
    def f(x):
        m.debug.print("x = {}", x)
        return x * x

    return f


def chain(m, ordered=False):
    """Print before, in and after a loop."""

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


def unused_results(m):
    def f(x):
        m.lax.scan(lambda c, y: (m.debug.print("{}", y), (c + y, c))[1], x, np.arange(2.0))
        get_io_callback(m)(lambda v: print("io", v), None, x)
        return 1

    return f


def io_chain(m):
    def host(i, v):
        print("host", int(i), float(v))
        return F32(v + i)

    def f(x):
        first = get_io_callback(m)(host, shape(m), 10, x, ordered=True)

        def step(c, i):
            return get_io_callback(m)(host, shape(m), i, c, ordered=True), c

        last, rows = m.lax.scan(step, first, np.arange(3))
        m.lax.while_loop(
            lambda c: c < 40, lambda c: get_io_callback(m)(host, shape(m), 7, c, ordered=True), last
        )
        return last, rows

    return f


def draw_factors(m):
    """A callback returns a factor in each step."""

    def host(i):
        print("draw")
        return F32(i + 3)

    def f(x):
        return m.lax.scan(
            lambda c, i: (c * get_io_callback(m)(host, shape(m), i) * x, None), x, np.arange(2)
        )[0]

    return f


def call_twice(m):
    """Call the same callback twice; both calls must run."""

    def host():
        print("called")
        return F32(2)

    def f():
        a = m.pure_callback(host, shape(m)) + m.pure_callback(host, shape(m))
        return a + get_io_callback(m)(host, shape(m)) * get_io_callback(m)(host, shape(m))

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
    "results not used": (unused_results, TWO),
    "results not used, jit": (lambda m: m.jit(unused_results(m)), TWO),
    "the same twice": (lambda m: m.jit(lambda: (m.debug.print("x"), m.debug.print("x"))),),
    "callbacks twice": (lambda m: m.jit(call_twice(m)),),
    "io": (io_chain, TWO),
    "io, jit": (lambda m: m.jit(io_chain(m)), TWO),
    "io, vmap": (lambda m: m.vmap(lambda x: get_io_callback(m)(
        lambda v: (print("io", v), v)[1], shape(m), x)), VECTOR),
    "io, vmap of jit": (lambda m: m.vmap(m.jit(lambda x: get_io_callback(m)(
        lambda v: (print("io", v), v)[1], shape(m), x))), VECTOR),
    "io, not mapped": (lambda m: m.vmap(lambda x: (get_io_callback(m)(
        lambda: print("io"), None), x)[1]), VECTOR),
    "io, ordered, vmap": (lambda m: m.vmap(lambda x: get_io_callback(m)(
        lambda v: v, shape(m), x, ordered=True)), VECTOR),
    "io, stopped": (lambda m: m.grad(lambda x: get_io_callback(m)(
        lambda v: (print("io", v), v)[1], shape(m), m.lax.stop_gradient(x)) * x), TWO),
    "io, differentiated": (lambda m: m.grad(lambda x: (get_io_callback(m)(
        lambda v: print("io", v), None, x), x)[1]), TWO),
    "io, differentiated, jit": (lambda m: m.grad(m.jit(lambda x: (get_io_callback(m)(
        lambda v: print("io", v), None, x), x)[1])), TWO),
    "io, vmap of cond": (lambda m: m.vmap(lambda x: m.lax.cond(x > 0, lambda: get_io_callback(m)(
        lambda v: v, shape(m), x), lambda: x)), VECTOR),
    "io, grad through": (lambda m: m.grad(draw_factors(m)), TWO),
    "io, jit of grad through": (lambda m: m.jit(m.grad(draw_factors(m))), TWO),
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
