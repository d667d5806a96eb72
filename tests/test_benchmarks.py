"""The harness: turns, ratios, the table, and that every figure of the comparison has its bar."""

import json
from itertools import count

import pytest

import accnp
from benchmarks.harness import Row, Timing, fresh_process, interleave, text_table, write_json


def test_calls_take_turns_and_alternate_their_order():
    seen = []
    calls = {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}
    timings = interleave(calls, rounds=4, number=2, warm=1)
    assert "".join(seen) == "ab" + "aabb" + "bbaa" + "aabb" + "bbaa"
    assert [len(t.seconds) for t in timings.values()] == [4, 4]


def test_ratio_is_the_median_of_the_rounds_ratios():
    ours, peer = Timing([1.0, 2.0, 30.0]), Timing([2.0, 2.0, 10.0])
    assert ours.ratio(peer) == 1.0
    assert ours.median == 2.0


def test_fresh_process_reads_the_last_line():
    assert fresh_process("print('noise'); print(0.25)") == 0.25
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fresh_process("1 / 0")


def test_table_and_json_say_what_missed_its_bar(tmp_path):
    medians = {"accnp": 0.001, "jax": 0.004}
    rows = [
        Row("fast", "JAX jit", 0.5, 0.25, medians),
        Row("slow", "JAX jit", 0.2, 0.25, medians),
        Row("wrong", "JAX jit", 0.5, 0.25, medians, extra_ok=False),
    ]
    lines = text_table(rows).splitlines()
    assert [("pass" in line, "FAIL" in line) for line in lines[2:]] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    write_json(tmp_path / "out" / "x.json", rows, {"cpus": 2})
    data = json.loads((tmp_path / "out" / "x.json").read_text())
    assert [row["met"] for row in data["rows"]] == [True, False, False]


def test_dispatch_rows_measure_something(monkeypatch):
    pytest.importorskip("jax")
    pytest.importorskip("numexpr")
    from benchmarks import rows

    clock = count()
    monkeypatch.setattr("benchmarks.harness.perf_counter", lambda: float(next(clock)))
    found = rows.dispatch(1)
    assert [row.bar for row in found] == [0.25, 1.0]
    assert all(row.medians["accnp"] > 0 for row in found)


def test_programs_are_the_same_for_both_libraries():
    jax = pytest.importorskip("jax")
    pytest.importorskip("numexpr")
    from benchmarks import rows

    assert set(rows.PROCESS_ROWS) >= {f"{name}-cold" for name in rows.PROGRAMS}
    for name, program in rows.PROGRAMS.items():
        assert name in rows.ROWS
        shapes = []
        for library in (accnp, jax):
            f, arguments = program.make(library)
            outs = library.tree_util.tree_leaves(library.eval_shape(f, *arguments))
            shapes.append([(x.shape, str(x.dtype)) for x in outs])
        assert shapes[0] == shapes[1], name
