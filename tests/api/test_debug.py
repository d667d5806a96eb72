"""Debugging options: `ACCNP_DEBUG`, `debug_nans`, `debug_infs`, `explain_cache_misses`, counters,
and the commands of `python -m accnp`.
"""

import gc
import logging
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import accnp as jnp
from accnp.__main__ import info, main
from accnp.config import config, debug, scope
from accnp.engine import watch
from accnp.ir import node as nodes


def line_of(marker):
    """Return the number of the line in this file that ends with a comment."""
    with open(__file__) as file:
        (number,) = [i for i, text in enumerate(file, 1) if text.rstrip().endswith(f"# {marker}")]
    return number


# --- debug levels ---

EXPECTED_MESSAGES = [
    ("test_debug.py:45): traced, since ", 1),
    ("new program of 2 operations: 1 kernels, 0 other steps", 1),
    ("%2: float32[5] = sin %0", 2),
    ("step 0: map kernel over [5]: sin %2, mul %3", 3),
    ("step 0: kernel(", 3),
    ("def kernel(lo, hi", 4),
    ("launch kernel sin, mul, for 0..5: ", 5),
]


@pytest.mark.parametrize("level", range(6))
def test_each_level_shows_more(level, capsys):
    f = jnp.jit(lambda x: jnp.sin(x) * 2.0)
    x = jnp.ones(5)
    x.block_until_ready()
    capsys.readouterr()
    with debug(level):
        f(x).block_until_ready()
    text = capsys.readouterr().err
    for part, least in EXPECTED_MESSAGES:
        assert (part in text) == (level >= least), part
    assert (text == "") == (level == 0)


def test_eager_programs_are_logged(capsys):
    x = jnp.ones(5)
    x.block_until_ready()
    y = jnp.cosh(x) - 0.125  # eager program
    with debug(3):
        y.block_until_ready()
    text = capsys.readouterr().err
    assert "eager: new program of 2 operations" in text
    assert f"# {__file__}:{line_of('eager program')} (" in text
    with debug(1):
        (jnp.cosh(x) - 0.125).block_until_ready()
    assert "new program" not in capsys.readouterr().err


def test_kernel_times_are_logged(capsys, tmp_path):
    x = jnp.ones(5)
    x.block_until_ready()
    with debug(1), scope("cache_dir", str(tmp_path)):
        jnp.jit(lambda x: x * 0.3125 - jnp.tanh(x) * x - x * x * x)(x).block_until_ready()
    text = capsys.readouterr().err
    assert "kernel: compiled in " in text
    assert " ms, for (f4*, " in text


def test_library_calls_are_logged(capsys):
    x = jnp.ones((4, 4000))
    x.block_until_ready()
    with debug(5):
        jnp.jit(lambda x: jnp.fft.rfft(x))(x).block_until_ready()
    assert "launch fft (library call or loop): " in capsys.readouterr().err


def test_observation_ends_with_the_scope():
    assert not watch.on
    limit = nodes.PENDING_LIMIT
    with debug(4):
        assert not watch.on
    with debug(5):
        assert watch.on
        assert limit == nodes.PENDING_LIMIT
    with jnp.debug_nans(True):
        assert watch.on
        assert nodes.PENDING_LIMIT == 0
    assert not watch.on
    assert limit == nodes.PENDING_LIMIT


def test_other_threads_are_not_searched():
    outcomes = []

    def work():
        outcomes.append(np.isnan(np.asarray(jnp.log(jnp.array([-1.0])))).all())

    with jnp.debug_nans(True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert outcomes == [True]


# --- nan and inf ---


def test_nan_in_eager_code_is_raised_at_its_line():
    x = jnp.array([4.0, -1.0, 9.0])
    with jnp.debug_nans(True):
        y = jnp.sqrt(jnp.abs(x))
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\)") as caught:
            jnp.sqrt(x)  # eager sqrt
        np.testing.assert_array_equal(y, [2.0, 1.0, 3.0])
    text = str(caught.value)
    assert f"encountered in sqrt, recorded at {__file__}:{line_of('eager sqrt')} " in text
    assert "1 of 3 results, first at index (1,), from -1" in text
    assert "turn off debug_nans" in text
    assert np.isnan(np.asarray(jnp.sqrt(x))[1])


@pytest.mark.parametrize(
    ("f", "place"),
    [
        (lambda x: jnp.log(x[None])[0], "(0, 0, 1)"),  # the program has no axis of length 1
        (lambda x: jnp.log(jnp.expand_dims(x, (1, 3))), "(0, 0, 1, 0)"),
        (lambda x: jnp.log(x.swapaxes(0, 1)[None]).sum(), "(0, 1, 0)"),
        (jnp.vmap(lambda x: jnp.log(x[None])), "(0, 0, 1)"),
        (lambda x: jnp.log(x.reshape(-1)), "(1,)"),
        (lambda x: jnp.power(x[:, None], 0.5)[:, 0], "(0, 0, 1)"),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, jnp.jit])
def test_the_index_of_nan_is_that_of_the_recorded_operation(f, place, transform):
    x = jnp.array([[1.0, -1.0, 2.0], [3.0, 4.0, 5.0]])
    with jnp.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        np.asarray(transform(f)(x))
    assert f"1 of 6 results, first at index {place}, from -1" in str(caught.value)


def test_nan_in_jitted_code_names_the_inner_line():
    @jnp.jit
    def f(x):
        y = x * 2.0
        z = jnp.log(y)  # jitted log
        return jnp.sum(z * 3.0)

    x = jnp.array([1.0, -3.0])
    with jnp.debug_nans(True):
        for _ in range(2):  # the second call finds its plan
            with pytest.raises(FloatingPointError, match="in log, recorded at") as caught:
                f(x)
        assert float(f(jnp.abs(x))) == pytest.approx(3 * np.log(12.0))
    assert f"{__file__}:{line_of('jitted log')} (f)" in str(caught.value)
    assert "from -6" in str(caught.value)
    assert np.isnan(f(x))


def test_nan_of_work_recorded_before_the_switch():
    y = jnp.log(jnp.array([-1.0, 2.0])) + 1.0  # before the switch
    with (
        jnp.debug_nans(True),
        pytest.raises(FloatingPointError, match="in log, recorded at") as caught,
    ):
        y.block_until_ready()
    assert f"{__file__}:{line_of('before the switch')} " in str(caught.value)
    assert np.isnan(np.asarray(y)[0])


def test_nan_in_derivatives():
    with (
        jnp.debug_nans(True),
        pytest.raises(FloatingPointError, match=r"in (mul|div|sqrt), recorded at"),
    ):
        jnp.grad(lambda x: jnp.sqrt(x) * 0.0)(0.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.lax.fori_loop(0, 5, lambda i, c: jnp.log(c), x),
        lambda x: jnp.lax.scan(lambda c, _: (jnp.log(c), c), x, None, length=5)[1],
        lambda x: jnp.lax.cond(x > 0, lambda c: jnp.log(-c), lambda c: c, x),
        lambda x: jnp.jit(lambda y: jnp.lax.cond(y > 0, lambda c: jnp.log(-c), lambda c: c, y))(x),
    ],
)
def test_nan_inside_control_flow_names_the_operation_inside(f):
    with jnp.debug_nans(True), pytest.raises(FloatingPointError, match="in log, recorded at"):
        f(jnp.array(3.0))


def total_log(x):
    y = x * 2
    return jnp.sum(jnp.log(y))  # total


def masked_root(x):
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(jnp.maximum(x, 0)), 0.0))  # masked


def scanned_log(x):
    def body(c, v):
        w = c * v
        return jnp.log(w), w  # scanned

    return jnp.lax.scan(body, x[0], x)[0]


def looped_log(x):
    def body(c):
        return jnp.log(c[0]), c[1] + 1  # looped

    return jnp.lax.while_loop(lambda c: c[1] < 4, body, (x[0], 0))[0]


def chosen_log(x):
    return jnp.lax.cond(x[0] > 0, lambda v: jnp.log(-v), lambda v: v, x[0])  # chosen


@jnp.custom_jvp
def own_rule(x):
    return jnp.exp(x[0])


@own_rule.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return jnp.exp(x[0]), t[0] * jnp.log(-x[0])  # rule


VALUES = np.array([3.0, -1.0], "f")
NAN_SOURCES = [
    ("total", "log", total_log, VALUES, "eager jit vmap jit-vmap vmap-jit jvp grad grad-jit"),
    ("masked", "mul", masked_root, np.array([1.0, 0.0], "f"), "grad jit-grad grad-jit vmap-grad"),
    ("scanned", "log", scanned_log, VALUES, "eager jit vmap grad grad-jit jvp vmap-grad"),
    ("looped", "log", looped_log, VALUES, "eager jit vmap jvp jit-jvp jit-vmap"),
    ("chosen", "log", chosen_log, VALUES, "eager jit vmap grad grad-jit"),
    ("rule", "log", own_rule, VALUES, "jvp grad jit-grad grad-jit vmap-grad"),
]


@pytest.mark.parametrize(
    ("line", "op", "f", "x", "way"),
    [(*row[:4], way) for row in NAN_SOURCES for way in row[4].split()],
)
def test_nan_names_the_users_line_through_transformations(line, op, f, x, way):
    one = {
        "eager": lambda f: f,
        "jit": jnp.jit,
        "grad": jnp.grad,
        "jvp": lambda f: lambda x: jnp.jvp(f, (x,), (x,)),
        "vmap": lambda f: lambda x: jnp.vmap(f)(jnp.stack([x, x])),
    }
    for name in reversed(way.split("-")):
        f = one[name](f)
    x = jnp.asarray(x)
    with (
        jnp.debug_nans(True),
        pytest.raises(FloatingPointError, match=f"in {op}, recorded at") as caught,
    ):
        jnp.block_until_ready(f(x))
    assert f"{__file__}:{line_of(line)} " in str(caught.value)


@pytest.mark.parametrize("way", ["jit", "jit-grad"])
def test_hidden_nan_is_not_an_error(way):
    """As in JAX, only the results of a jitted function are checked."""

    def f(x):
        return jnp.sum(jnp.where(x > 0, x, jnp.where(jnp.isnan(jnp.log(x)), 0.0, x)))

    for name in reversed(way.split("-")):
        f = {"jit": jnp.jit, "grad": jnp.grad}[name](f)
    with jnp.debug_nans(True):
        assert np.isfinite(np.asarray(f(jnp.asarray(VALUES)))).all()


def test_large_work_is_searched_at_the_call():
    x = jnp.zeros(3_000_000)
    with jnp.debug_nans(True), pytest.raises(FloatingPointError, match="3000000 of 3000000"):
        x / x


def test_inf():
    x = jnp.array([1.0, 0.0])
    with jnp.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\).* in div") as e:
        1.0 / x
    assert "from 1, 0" in str(e.value)
    with jnp.debug_nans(True):
        assert np.isinf(np.asarray(1.0 / x)[1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_nan_in_other_types(dtype):
    with jnp.enable_x64(dtype == "float64"):
        x = jnp.zeros(3, dtype)
        with jnp.debug_nans(True), pytest.raises(FloatingPointError, match="in div"):
            x / x


def test_integers_and_bools_have_no_nan():
    with jnp.debug_nans(True), jnp.debug_infs(True):
        x = jnp.arange(4)
        assert int(jnp.sum(x * 2)) == 12
        assert bool(jnp.all(x >= 0))


def test_nan_of_inputs_is_no_error_until_used():
    x = jnp.array([np.nan, 1.0])
    with jnp.debug_nans(True):
        assert np.isnan(np.asarray(x)[0])
        with pytest.raises(FloatingPointError, match="in add"):
            x + 1.0


# --- cache misses ---


def cache_miss_messages(caplog):
    return [r.getMessage() for r in caplog.records if "TRACING CACHE MISS" in r.getMessage()]


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ((1.0, 2), (1.0, 3), "static n: 3, before 2"),
        ((np.ones(3, "f"), 2), (np.ones(4, "f"), 2), "x: float32[4], before float32[3]"),
        ((np.ones(3, "f"), 2), (np.ones(3, "i"), 2), "x: int32[3], before float32[3]"),
        (
            (np.float32(1), 2),
            (1.0, 2),
            "x: float32[] (weak: from a Python scalar), before float32[] (not weak)",
        ),
        (((1.0,), 2), ((1.0, 2.0), 2), "structure of the arguments"),
        (({"a": 1.0}, 2), ({"a": 1}, 2), "x['a']: int32[], before float32[]"),
        ((1.0, 2), (1.0, 2.0), "static n: 2.0, before 2"),
    ],
)
def test_cache_miss_names_the_difference(first, second, difference, caplog):
    def f(x, n):
        return x

    jitted = jnp.jit(f, static_argnums=1)
    with jnp.explain_cache_misses(True), caplog.at_level(logging.WARNING, "accnp"):
        jitted(*first)
        jitted(*second)
        jitted(*second)
    texts = cache_miss_messages(caplog)
    assert len(texts) == 2
    assert "jit f (" in texts[0]
    assert "traced, since " in texts[0]
    assert difference in texts[1]


def test_cache_miss_compares_with_nearest_signature(caplog):
    f = jnp.jit(lambda x, y: x)
    f(np.ones(2, "f"), np.ones(2, "f"))
    f(np.ones(3, "i"), np.ones(3, "i"))
    with jnp.explain_cache_misses(True):
        f(np.ones(3, "i"), np.ones(4, "i"))
    (text,) = cache_miss_messages(caplog)
    assert text.endswith("the nearest of 2 signatures known differs: y: int32[4], before int32[3]")


def test_options_that_differ_are_named(caplog):
    f = jnp.jit(lambda x: x)
    f(np.ones(2, "f"))
    with jnp.explain_cache_misses(True), jnp.numpy_rank_promotion("raise"):
        f(np.ones(2, "f"))
    assert "option numpy_rank_promotion: 'raise', before 'allow'" in cache_miss_messages(caplog)[0]


def test_new_function_objects_are_named(caplog):
    with jnp.explain_cache_misses(True):
        for _ in range(2):
            jnp.jit(lambda x: x)(1.0)
    texts = cache_miss_messages(caplog)
    assert "first call" in texts[0]
    assert "it is a new function object of code that was traced before" in texts[1]


def test_cache_miss_names_call_site_and_new_functions(caplog):
    f = jnp.jit(lambda x: x)
    with jnp.explain_cache_misses(True):
        f(1.0)
        f(np.ones(2, "f"))
    first, second = cache_miss_messages(caplog)
    assert re.match(r"TRACING CACHE MISS at .*test_debug.py:\d+ .*\n  never seen function\n", first)
    assert "all previously seen cache keys differ" in second


COMPILED = ["Finished tracing addit for jit in ",
    "Compiling jit(addit) with global shapes and types ",
    "Finished jaxpr to MLIR module conversion jit(addit) in ",
    "Finished XLA compilation of jit(addit) in "]  # fmt: skip


@pytest.mark.parametrize("level", [logging.WARNING, logging.DEBUG])
def test_compilations_are_logged_as_in_jax(level, caplog):
    def addit(x):
        return x * 2

    with caplog.at_level(logging.DEBUG if level == logging.DEBUG else logging.WARNING, "accnp"):
        with jnp.log_compiles(level == logging.WARNING):
            jnp.jit(addit)(np.ones(3, "f"))
            jnp.jit(addit)(np.ones(3, "f"))  # nothing is compiled
        records = [(r.levelno, r.getMessage()) for r in caplog.records]
    assert [n for n, _ in records] == [level] * 4
    assert all(text.startswith(start) for (_, text), start in zip(records, COMPILED, strict=True))
    assert "(float32[3])" in records[1][1]


def test_nothing_is_logged_by_default(caplog):
    jnp.jit(lambda x: x)(1.0)
    assert caplog.records == []


# --- counters, plans, the command ---


def test_counters_count():
    x = jnp.ones(7)
    x.block_until_ready()
    f = jnp.jit(lambda x: x * 0.75 + 1.25)
    f(x).block_until_ready()
    before = jnp.counters()
    f(x).block_until_ready()
    after = jnp.counters()
    assert after["launches"] == before["launches"] + 1
    assert {k: after[k] - before[k] for k in ("traces", "compiles", "disk_hits")} == {
        "traces": 0,
        "compiles": 0,
        "disk_hits": 0,
    }


def test_plans_keep_no_arrays_alive():
    def run():
        x = jnp.ones((33, 5))
        y = x * 3.0 + 1.0
        z = jnp.sort(y, axis=0)
        z.block_until_ready()
        return [weakref.ref(a._node) for a in (x, y, z)]

    gc.disable()
    try:
        assert [r() for r in run()] == [None, None, None]
    finally:
        gc.enable()


def test_info():
    text = info()
    for part in ("processor", "threads", "vectors", "blas", "folder", "numba", "accnp"):
        assert f"    {part}" in text
    assert str(config.cache_dir) in text


def test_commands(capsys, tmp_path):
    assert main(["info"]) == 0
    assert capsys.readouterr().out.startswith("machine\n    system ")
    assert main(["nonsense"]) == 2
    assert "usage: accnp COMMAND" in capsys.readouterr().err
    assert main([]) == 0
    (tmp_path / "a.obj").write_bytes(b"x")
    (tmp_path / "mine.txt").write_bytes(b"x")
    with scope("cache_dir", str(tmp_path)):
        assert main(["clear-cache"]) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_the_environment_variable():
    code = "import accnp as jnp; print(float(jnp.jit(lambda x: x * 2)(1.5)))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"ACCNP_DEBUG": "2", "PATH": "", "HOME": "/tmp"},
        check=True,
    )
    assert run.stdout == "3.0\n"
    assert "jit <lambda> (<string>:1): traced, since this is its first call" in run.stderr
    assert "mul %0 %1" in run.stderr
