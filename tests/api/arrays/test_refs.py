"""Mutable array references (`new_ref`), compared with JAX: reads, writes, transformations and
errors.
"""

import jax
import numpy as np
import pytest

import accnp


def several_updates(m):
    ref = m.new_ref(m.numpy.arange(6.0).reshape(2, 3))
    ref[0, 1] = 9.0
    ref[1] += 1
    ref[...] *= 2
    m.ref.addupdate(ref, (0, np.array([0, 0])), m.numpy.ones(2))
    old = m.ref.swap(ref, (slice(None), 2), m.numpy.full(2, 7.0))
    return old, ref[:, 1:], m.ref.get(ref, 0), m.freeze(ref)


def dynamic_slices(m):
    ref = m.new_ref(m.numpy.zeros(5))
    ref[m.ds(1, 3)] = m.numpy.arange(3.0)
    return ref[m.ds(0, 3, 2)], ref[...]


def traced_indices(m):
    def f(x, i):
        ref = m.new_ref(m.numpy.zeros(4))
        ref[m.ds(i, 2)] = m.numpy.array([x, x])
        ref[i] += x * x
        return m.freeze(ref)

    return m.jit(f)(3.0, 1), m.vmap(f, (0, None))(m.numpy.arange(2.0), 2)


def differentiate_refs(m):
    def f(x):
        ref = m.new_ref(m.numpy.ones(2) * x)
        ref[0] = x * x
        return ref[0] * ref[1]

    return m.grad(f)(2.0), m.jit(m.grad(f))(2.0)


@pytest.mark.parametrize(
    "program", [several_updates, dynamic_slices, traced_indices, differentiate_refs]
)
def test_references_match_jax(program):
    for f, w in zip(
        accnp.tree.leaves(program(accnp)), jax.tree.leaves(program(jax)), strict=True
    ):  # fmt: skip
        if hasattr(w, "shape"):
            np.testing.assert_allclose(np.asarray(f), np.asarray(w))
        else:
            assert f == w


def test_assignment_to_parts_broadcasts():
    ref = accnp.new_ref(accnp.numpy.arange(4.0))
    ref.at[1:][0] = 9.0
    ref.at[2:].at[1][...] = 5.0
    ref[accnp.ds(0, 1)] = 7.0
    assert ref[...].tolist() == [7, 9, 2, 5]
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((4,), np.float32, 1, 4, 4)


def test_reprs():
    for m in (jax, accnp):
        ref = m.new_ref(m.numpy.arange(2.0))
        assert str(ref) == "Ref([0., 1.], dtype=float32)"
        assert str(ref.aval) == "Ref{float32[2]}"
        assert isinstance(ref, m.ref.Ref)


@pytest.mark.parametrize("way", [lambda f: f, lambda f: accnp.jit(f)], ids=["eager", "traced"])
def test_reference_properties(way):
    """Flax calls `typeof` on references, which used to return the type of the content."""
    seen = []

    def look(x):
        ref = accnp.new_ref(x)
        aval = accnp.typeof(ref)
        assert isinstance(aval, accnp.ref.AbstractRef)
        assert not isinstance(accnp.typeof(ref[...]), accnp.ref.AbstractRef)
        assert isinstance(aval, accnp.core.AbstractValue)
        assert aval == accnp.typeof(accnp.new_ref(x + 1))
        assert (aval.shape, aval.ndim, aval.weak_type) == ((2,), 1, False)
        assert isinstance(ref, accnp.core.Tracer) == isinstance(x, accnp.core.Tracer)
        seen.append((str(aval), repr(ref)))
        return x

    way(look)(accnp.numpy.zeros(2))
    aval, text = seen[0]
    assert aval == "Ref{float32[2]}"
    assert text in ("Ref([0., 0.], dtype=float32)", "JitTracer(Ref{float32[2]})")


def test_invalid_reference_uses_raise():
    ref = accnp.new_ref(accnp.numpy.zeros(2))
    with pytest.raises(ValueError, match="must have the dtype of the reference, float32; got int"):
        ref[0] = accnp.numpy.int32(3)
    with pytest.raises(ValueError, match="must be a reference"):
        accnp.ref.get(3)
    accnp.free_ref(ref)
    with pytest.raises(ValueError, match="was freed"):
        ref[0]


def updates_in_loops(m):
    def f(x):
        ref = m.new_ref(x)

        def body(i, c):
            ref[i] = ref[i] * 2.0 + c

            def yes():
                ref[0] += 1.0

            m.lax.cond(i > 1, yes, lambda: None)
            return c + ref[0]

        c = m.lax.fori_loop(0, 4, body, 1.0)

        def step(count):
            ref[m.ds(count, 2)] += 1.0
            return count + 1

        d = m.lax.while_loop(lambda count: count < 2, step, 0)

        def shift(c, x):
            old = ref[1]
            ref[1] = x
            return c + old, ref[0]

        e = m.lax.scan(shift, 0.0, m.numpy.arange(3.0))
        m.lax.switch(d, [lambda: None, lambda: m.ref.addupdate(ref, 2, 1.0)])
        return c, d, e, ref[...]

    x = m.numpy.arange(4.0)
    rows = m.numpy.stack([x, x + 1])
    # jax has no vmap of branches that write to references
    each = m.vmap(f)(rows) if m is accnp else m.tree.map(lambda *r: np.stack(r), f(x), f(x + 1))
    return f(x), m.jit(f)(x), each, m.jvp(lambda x: f(x)[3], (x,), (x + 1,))


def update_blocks(m):
    def f(x, i):
        ref = m.new_ref(x)
        ref[m.ds(i, 2), 1:] = ref[m.ds(i, 2), :2] * 2
        ref[i] += 1
        m.ref.addupdate(ref, (i, m.ds(i, 2)), m.numpy.ones(2))
        ref.at[m.ds(i, 2)][...] = ref[m.ds(0, 2)]
        return ref[...], ref[..., m.ds(i, 2)], ref[i, -1], ref.at[i].at[m.ds(1, 2)][...]

    x = m.numpy.arange(12.0).reshape(4, 3)
    return [m.jit(f)(x, i) for i in (0, 1, 3)]


@pytest.mark.parametrize("program", [updates_in_loops, update_blocks])
def test_traced_indices(program):
    test_references_match_jax(program)


def test_eager_loop_reads_current_reference_contents():
    ref = accnp.new_ref(accnp.numpy.zeros(2))

    def step(i, c):
        ref[0] += c
        return c + 1

    for _ in range(2):
        accnp.lax.fori_loop(0, 3, step, 1.0)
    assert ref[...].tolist() == [12, 0]
    ref[...] = ref[...] + 1
    accnp.lax.cond(ref[1] > 0, lambda: step(0, 5.0), lambda: 0.0)
    assert ref[...].tolist() == [18, 1]


def test_loop_conditions_cannot_use_references():
    ref = accnp.new_ref(accnp.numpy.zeros(2))

    def step(i):
        ref[0] += 1.0
        return i + 1

    assert accnp.lax.while_loop(lambda i: ref[0] < 5, step, 0) == ref[0] == 5

    def more(i):
        ref[0] = 1.0
        return i < 3

    with pytest.raises(NotImplementedError, match="while_loop: cond_fun must not write to ref"):
        accnp.lax.while_loop(more, lambda i: i + 1, 0)


def pass_references(m):
    """Pass references as arguments, by keyword, in a tree, to nested jitted functions and to loops,
    and close over them.
    """
    np_, lax = m.numpy, m.lax

    @m.jit
    def add(r, x):
        r["a"][0] += x
        return r["a"][1] + r["b"][0]

    def within(x):
        r, s = m.new_ref(x), m.new_ref(x * 2)
        sums = add({"a": r, "b": s}, 1.0), add({"a": s, "b": r}, 2.0)

        @m.jit
        def closed(x):
            r[1] += x
            return r[0]

        def body(i, c):
            add({"a": r, "b": s}, 1.0)
            return c + closed(2.0)

        return sums, lax.fori_loop(0, 3, body, 0.0), r[...], s[...]

    r, s = m.new_ref(np_.arange(3.0)), m.new_ref(np_.arange(2.0))
    first = add({"a": r, "b": s}, 5.0)
    s[0] = 7.0

    @m.jit
    def named(*, r):
        r[1] = s[0] + r[0]

    named(r=r)
    s[0] = 8.0
    named(r=r)

    def yes(r, x):
        r[2] = x

    lax.cond(s[0] > 1, yes, lambda r, x: None, r, 4.0)
    m.jit(lambda i, r: lax.switch(i, [lambda r: None, lambda r: yes(r, r[0])], r))(1, r)
    rows = m.new_ref(np_.arange(4.0))

    def step(c, row):
        row[...] = row[...] * 2 + c
        return c + 1, row[...]

    scanned = lax.scan(step, 0.0, rows)
    x = np_.arange(2.0)
    eager = within(np_.arange(3.0))
    return first, r[...], s[...], scanned, rows[...], eager, m.jit(within)(np_.arange(3.0)), x


def map_refs(m):
    r, s = m.new_ref(m.numpy.arange(6.0).reshape(2, 3)), m.new_ref(m.numpy.arange(2.0))

    def f(r, x):
        r[0] = r[1] * x + s[1]
        return r[...]

    return m.vmap(f, (1, 0))(r, m.numpy.arange(3.0)), r[...], s[...]


def derivatives(m):
    @m.jit
    def scale(r, x):
        r[0] = r[0] * x

    def f(x, log):
        r = m.new_ref(m.numpy.ones(2))
        scale(r, x)
        scale(r, x)
        log[0] = m.lax.stop_gradient(x) * 3
        return r[0]

    log = m.new_ref(m.numpy.zeros(2))
    return m.grad(f)(3.0, log), log[...]


@pytest.mark.parametrize("program", [pass_references, map_refs, derivatives])
def test_references_as_arguments_and_under_transformations(program):
    test_references_match_jax(program)


def invalid_calls(m):
    """Yield invalid calls with the error that each raises in JAX."""
    refs = []
    ref = m.new_ref(m.numpy.arange(3.0))
    ended = m.errors.UnexpectedTracerError

    def keep(r):
        refs.append(r if isinstance(r, m.ref.Ref) else m.new_ref(r))
        return 0.0

    m.jit(keep)(m.numpy.ones(2))
    m.lax.scan(lambda c, x: (c, keep(c)), 1.0, m.numpy.arange(2))
    m.jit(lambda r: refs.append(r))(ref)
    yield from ((lambda r=r: r[...], ended) for r in refs)
    yield lambda: m.jit(lambda y: refs[0][0] + y)(1.0), ended
    yield lambda: m.jit(lambda r: r)(ref), ValueError
    yield lambda: m.jit(m.new_ref)(1.0), ValueError
    yield lambda: m.jit(lambda a, b: a[0])(ref, ref), ValueError
    yield lambda: m.jit(lambda a: a[0] + ref[0])(ref), ValueError
    yield lambda: m.lax.scan(lambda c, x: (c, x), ref, m.numpy.arange(3)), ValueError
    yield lambda: m.lax.scan(lambda c, x: (c, ref), 0, m.numpy.arange(3)), ValueError
    yield lambda: m.lax.fori_loop(0, 3, lambda i, r: r, ref), ValueError
    yield lambda: m.lax.cond(True, lambda: ref, lambda: ref), ValueError
    yield lambda: m.vmap(lambda x: m.ref.set(ref, 0, x))(m.numpy.arange(2.0)), Exception


@pytest.mark.parametrize("m", [accnp, jax])
def test_invalid_uses_of_references_raise(m):
    for call, error in invalid_calls(m):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("m", [accnp, jax])
def test_out_of_bounds_indices(m):
    ref = m.new_ref(m.numpy.ones((3, 4)))
    for act in (
        lambda: ref[3],
        lambda: ref[..., np.int32(4)],
        lambda: ref.__setitem__((0, 4), 1.0),
        lambda: m.ref.addupdate(ref, 9, 1.0),
    ):
        with pytest.raises(ValueError, match=r"Out of bound indexer: idx=[349], dim=[34]"):
            act()
    assert ref[...].tolist() == np.ones((3, 4)).tolist()
    assert m.jit(lambda r: r[9, 9])(ref) == ref[-5, -5] == 1


def test_a_reference_is_a_finite_sequence():
    ref = accnp.new_ref(accnp.numpy.arange(3.0))
    assert [float(x) for x in ref] == [0, 1, 2] == np.asarray(ref).tolist()


def _adds_to_argument(m, n, how):
    """Return a function with a custom reverse rule that adds its argument to a reference
    argument.
    """

    @m.custom_vjp
    def f(x, ref):
        ref[...] = ref[...] + x
        return x * 2

    def fwd(x, ref):
        ref[...] = ref[...] + x
        return x * 2, ref[...]

    f.defvjp(fwd, lambda residual, ct: (ct * residual, None))
    ref = m.new_ref(n.float32(1))
    y = how(lambda x: f(x, ref))
    return y, ref[...]


def _adds_to_outer(m, n, how):
    ref = m.new_ref(n.float32(1))

    @m.custom_vjp
    def f(x):
        ref[...] += x
        return x * 2

    def fwd(x):
        ref[...] += x
        return x * 2, None

    f.defvjp(fwd, lambda _, ct: (ct * 5,))
    return how(f), ref[...]


def _notes_cotangents(m, n, how):
    """Return a function whose backward rule writes its cotangent to a reference argument."""
    ref = m.new_ref(n.float32(0))

    @m.custom_vjp
    def f(x, ref):
        return x

    def bwd(ref, ct):
        ref[...] = ct
        return ct, None

    f.defvjp(lambda x, ref: (x, ref), bwd)
    return how(lambda x: n.sin(f(x, ref)) * 2), ref[...]


@pytest.mark.parametrize("way", ["value", "grad", "value and grad"])
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("program", [_adds_to_argument, _adds_to_outer, _notes_cotangents])
def test_functions_with_reverse_rules_take_references(program, jitted, way):
    def run(m, n):
        wrap = {"value": lambda f: f, "grad": m.grad, "value and grad": m.value_and_grad}[way]
        whole = lambda x: program(m, n, lambda f: wrap(f)(x))  # noqa: E731
        return (m.jit(whole) if jitted else whole)(np.float32(3))

    expected, actual = run(jax, jax.numpy), run(accnp, accnp.numpy)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_a_forward_rule_gets_a_reference_and_one_of_zeros_as_its_tangent():
    ref, seen = accnp.new_ref(accnp.float32(4)), []
    f = accnp.custom_jvp(lambda x, ref: x * ref[...])

    def rule(primals, tangents):
        seen.append((float(primals[1][...]), float(tangents[1][...])))
        return f(*primals), tangents[0] * 7

    f.defjvp(rule)
    assert float(accnp.grad(lambda x: f(x, ref))(2.0)) == 7
    assert seen == [(4.0, 0.0)]


@pytest.mark.parametrize("function", [accnp.freeze, accnp.free_ref])
def test_a_part_of_a_reference_is_refused_and_the_reference_remains(function):
    ref = accnp.new_ref(accnp.arange(3))
    with pytest.raises(ValueError, match=r"expected a whole reference; got a part of shape \(2,\)"):
        function(ref.at[1:])
    assert ref[...].tolist() == [0, 1, 2]
