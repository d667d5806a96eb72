"""`explain`: the reported kernels, fusion boundaries, reads of values, traces, compilations and
advice, as text and as an HTML page.
"""

import html.parser
import os

import numpy as np
import pytest

import accnp as jnp
from accnp import engine

HERE = os.path.basename(__file__)


def wave(x):
    h = jnp.exp(x) * 2.0
    return h / h.sum()


@pytest.fixture
def x():
    return jnp.linspace(0.0, 1.0, 200_000).block_until_ready()


def test_a_jitted_function(x):
    f = jnp.jit(lambda x: wave(x))
    e = jnp.explain(f, x)
    np.testing.assert_allclose(e.result, wave(x), rtol=1e-6)
    (plan,) = e.plans
    assert plan.of == "jit <lambda>"
    assert plan.runs == len(e.seconds) == 6
    assert all(s.kernel and s.runs == 6 and s.seconds > 0 for s in plan.steps)
    assert sum(s.nbytes for s in plan.steps) >= 2 * x.nbytes
    assert plan.steps[0].share > 0
    (trace,) = e.traces
    assert "since this is its first call" in trace
    assert HERE in trace
    assert "5 of 6 jitted calls found a known signature" in e.caches
    assert e.advice == []


def test_boundaries_come_with_reasons_and_lines(x):
    e = jnp.explain(jnp.jit(lambda x: wave(x)), x)
    reasons = [(b.value.split()[1], b.reasons, b.line) for p in e.plans for b in p.boundaries]
    assert any(
        op == "reduce_sum" and "a long reduction is computed in chunks" in why[0] and HERE in line
        for op, why, line in reasons
    )
    alone = jnp.explain(jnp.jit(lambda x: jnp.sin(x) + 1), x)
    assert [b for p in alone.plans for b in p.boundaries] == []
    assert "no value goes through memory twice" in str(alone)


def test_a_new_signature_is_compared_with_the_nearest(x):
    f = jnp.jit(lambda x, n: x[:n] * 2, static_argnums=1)
    f(x, 10)
    e = jnp.explain(f, x, 20)
    assert "static n: 20, before 10" in e.traces[0]
    assert jnp.explain(f, x, 20).traces == []


def test_reads_in_a_block_are_attributed(x):
    with jnp.explain() as e:
        y = wave(x)
        if y[0] > 100:
            pytest.fail("it is a share")
        np.asarray(y[3:5])
        jnp.fft.fft(y)
    lines = {by: (os.path.basename(line), n) for line, by, n, _ in e.value_uses}
    assert set(lines) == {
        "bool(x)", "np.asarray(x)", "fft: a library call, done as soon as it is recorded"
    }  # fmt: skip
    assert all(line.startswith(HERE) and n == 1 for line, n in lines.values())
    assert any("reduce_sum" in s.text for p in e.plans for s in p.steps)


def test_earlier_plans_are_recognized(x):
    float(wave(x)[0])
    before = set(engine._plans)
    with jnp.explain() as e:
        float(wave(x)[0])
    assert before <= set(engine._plans)
    assert "1 of 1 eager graph had a known structure" in e.caches
    assert e.plans[0].operations


def test_advice_on_reads_in_a_loop(x):
    with jnp.explain() as e:
        for i in range(20):  # so often that Python has other instructions for the call
            x = x * 1.5
            print(i, float(x[0]))
    (text,) = e.advice
    assert "uses a value 20 times (by float(x))" in text
    assert HERE in text
    with jnp.explain() as quiet:
        for _ in range(5):
            x = x * 1.5
        float(x[0])
    assert quiet.advice == []


def test_advice_on_a_retrace_per_call(x):
    def turn(x, t):
        return jnp.jit(lambda x: x * t)(x)

    with jnp.explain() as e:
        for t in range(4):
            turn(x, t).block_until_ready()
    (text,) = e.advice
    assert "was traced in 4 of 4 calls" in text
    assert "new function object" in text
    assert all("traced" in t for t in e.traces)


def test_advice_on_an_accidental_float64(x):
    with jnp.enable_x64(True):
        e = jnp.explain(jnp.jit(lambda x: x * np.linspace(0, 1, 200_000)), x)
        (text,) = e.advice
        assert "float32 became float64" in text
        assert HERE in text
        explicit = jnp.explain(jnp.jit(lambda x: x * jnp.ones((), x.dtype)), x)
    assert explicit.advice == []


OWN_WIDE = {
    "var": lambda x: jnp.var(x),
    "std": lambda x: jnp.std(x, 0),
    "grad of std": jnp.grad(lambda x: jnp.std(x)),
    "normalized": lambda x: (x - x.mean()) / jnp.sqrt(x.var() + 1e-5),
    "norm": lambda x: jnp.linalg.norm(x),
    "cov": lambda x: jnp.cov(x[:50]),
    "quantile": lambda x: jnp.quantile(x[:50], 0.3),
}


@pytest.mark.parametrize("x64", [False, True])
def test_no_advice_on_conversions_within_functions(x, x64):
    x = jnp.asarray(x, jnp.float32)
    with jnp.enable_x64(x64):
        for name, f in OWN_WIDE.items():
            for g in (f, jnp.jit(f)):
                assert not [t for t in jnp.explain(g, x).advice if "became" in t], name
        if x64:
            explanation = jnp.explain(lambda x: jnp.sum(x.astype(float) ** 2).astype(x.dtype), x)
            assert not [t for t in explanation.advice if "became" in t]
            wide = jnp.linspace(0, 1, x.size, dtype=jnp.float64)
            e = jnp.explain(jnp.jit(lambda x, y: (jnp.std(x) * y).astype(jnp.float32)), x, wide)
            (text,) = e.advice
            assert "float32 became float64" in text


def test_advice_on_updates_that_copy(x):
    with jnp.explain() as e:
        y = x + 1
        y.block_until_ready()
        z = y.at[0].set(5.0)
        z.block_until_ready()
    (text,) = e.advice
    assert "dynamic_update_slice copied 0.8 MB, since its old value is still referred to" in text
    assert y[0] != z[0]
    with jnp.explain() as fine:
        y = x + 1
        y.block_until_ready()
        for i in range(3):
            y = y.at[i].set(5.0)
        y.block_until_ready()
    assert fine.advice == []
    jitted = jnp.explain(jnp.jit(lambda x: x.at[0].set(2.0)), x)
    assert "donate the argument" in jitted.advice[0]


def test_numpy_memory_is_named(x):
    a = np.ones(100_000, np.float32)
    a.flags.writeable = False
    with jnp.explain() as e:
        y = jnp.asarray(a, copy=False).at[0].set(2.0)
        y.block_until_ready()
    assert "its memory is not accnp's" in e.advice[0]


def test_a_function_that_donates_is_called_once(x):
    f = jnp.jit(lambda x: x.at[0].set(2.0), donate_argnums=0)
    e = jnp.explain(f, x + 1)
    assert len(e.seconds) == 1
    assert e.advice == []


def test_errors_end_the_explanation(x):
    with pytest.raises(ZeroDivisionError), jnp.explain() as e:
        1 / 0  # noqa: B018
    assert not engine.watch.on
    assert e.plans == []
    with pytest.raises(TypeError, match="explain: the first argument must be a function; got 3"):
        jnp.explain(3)


class Tags(html.parser.HTMLParser):
    """Checks that tags are balanced, and collects the resources that a page would fetch."""

    void = frozenset({"meta", "br", "rect", "path", "line"})

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.fetched = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.fetched += [v for k, v in attrs if k in ("src", "href")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_one_file_with_a_picture(x, tmp_path):
    def page_of_less_than(x):
        return jnp.where(x < 2, jnp.fft.fft(x).real, 0.0) + x.sum()

    e = jnp.explain(jnp.jit(page_of_less_than), x)
    text = e.save_html(tmp_path / "e.html").read_text(encoding="utf-8")
    assert text == e.html() == e._repr_html_()
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert tags.fetched == []
    assert tags.seen.count("svg") == 1
    for phrase in ("page_of_less_than", "fft is a library call", "streaming copy", "Caches"):
        assert phrase in text


def test_text_has_every_section(x):
    text = str(jnp.explain(wave, x))
    for title in ("advice", "what stopped fusion", "lines that used values", "traces", "compiles"):
        assert f"-- {title} --" in text
    assert "of a copy" in text or "faster than a copy" in text
    assert "eager, for" in text


def test_explain_does_not_count_its_own_reads():
    """`explain` calls the function several times and waits each time."""
    x = jnp.ones((30, 40))
    assert "uses a value" not in str(jnp.explain(lambda v: jnp.exp(v).sum(), x))


def test_unfinished_block_is_reported(x):
    """This used to raise KeyError: 'plans'."""
    assert "before the end" in str(jnp.explain())
    with jnp.explain() as e:
        wave(x).block_until_ready()
        assert "before the end" in str(e)
        assert e.caches.startswith("0 of 0 jitted calls")
    assert "-- advice --" in str(e)
