"""The profiler's timeline and the names of `jax.profiler`. A stopped profiler leaves no hooks
behind.
"""

import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest

import accnp as jnp
from accnp import engine, profiler
from accnp.devtools.explain import session
from accnp.ir import node


def work(x):
    return jnp.sqrt(jnp.exp(x) * 2).sum()


@pytest.fixture
def timeline():
    x = jnp.ones((500, 500)).block_until_ready()
    with profiler.profile() as recorded:
        float(work(x))
        float(jnp.jit(lambda x: work(x))(x))
        np.asarray(jnp.sort(x, axis=1))
    return recorded


def test_kinds_of_events(timeline):
    kinds = {e.kind for e in timeline.events}
    assert kinds >= {"record", "trace", "plan", "pass", "use", "run", "step", "call"}
    for e in timeline.events:
        assert e.end >= e.start
    uses = [e for e in timeline.events if e.kind == "use"]
    assert uses[0].name == "float(x)"
    assert __file__ in uses[0].line


def test_the_trace_is_what_chrome_and_perfetto_read(timeline, tmp_path):
    for name in ("t.json", "t.json.gz"):
        data = timeline.save(tmp_path / name).read_bytes()
        trace = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        assert len(spans) == len(timeline.events)
        assert all(e["dur"] >= 0 and e["pid"] == os.getpid() for e in spans)
        launch = next(e for e in spans if (e["cat"] == "launch" and "sqrt" in json.dumps(e)) or 1)
        assert launch["args"] is not None
        names = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"]
        assert {e["tid"] for e in spans} <= {e["tid"] for e in names}


def test_kernels_have_bytes_and_a_share_of_the_bandwidth(timeline):
    kernels = timeline.kernels()
    reduction = next(k for k in kernels if "reduce_sum" in k.name)
    assert reduction.count == 2
    assert reduction.nbytes >= 2 * 1_000_000
    assert reduction.rate > 0
    assert reduction.share > 0
    text = timeline.summary()
    assert "a streaming copy moves" in text
    assert "functions traced" in text


def test_work_on_the_stream_and_waits_are_seen(monkeypatch):
    f = jnp.jit(lambda x: x + 1)
    x = jnp.arange(8.0).block_until_ready()
    f(x).block_until_ready()
    monkeypatch.setattr(engine, "ASYNC", 0)
    release = threading.Event()
    with profiler.profile() as timeline:
        engine.default_stream().submit(release.wait)
        y = f(x)
        threading.Timer(0.05, release.set).start()
        y.block_until_ready()
    waits = [e for e in timeline.events if e.kind == "wait"]
    assert max(e.seconds for e in waits) > 0.01
    assert any(e.kind == "step" for e in timeline.events)


def test_profiling_keeps_results_and_laziness(monkeypatch):
    x = jnp.linspace(0, 1, 3000)
    expected = np.asarray(work(x))
    with profiler.profile():
        y = work(x)
        assert not y.is_ready()
        assert np.asarray(y).tobytes() == expected.tobytes()
        z = jnp.zeros(100)
        for i in range(5):
            z = z.at[i].set(1.0)
        before = jnp.inspect(z)
        assert "pending" in before.status


def test_stopping_restores_patched_functions():
    code = node.record.__code__, engine.materialize.__code__
    with profiler.profile(), profiler.profile():
        assert node.record.__code__ is not code[0]
        assert engine.watch.on
    now = node.record.__code__, engine.materialize.__code__
    assert all(a is b for a, b in zip(code, now, strict=True))
    assert not engine.watch.on
    assert session._open == []


def test_importing_accnp_does_not_load_profiler():
    code = "import sys, accnp; print([m for m in sys.modules if 'observe' in m or 'profiler' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- jax.profiler's names ---


def written_files(folder):
    return {p.name: p for p in folder.rglob("*") if p.is_file()}


def test_start_and_stop_trace_write_files(tmp_path):
    profiler.start_trace(tmp_path, create_perfetto_trace=True)
    with profiler.TraceAnnotation("mine", batch=3), profiler.StepTraceAnnotation("s", step_num=1):
        assert profiler.TraceAnnotation.is_enabled()
        float(work(jnp.ones(100)))
    with pytest.raises(RuntimeError, match=r"call stop_trace\(\) first"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()
    with pytest.raises(RuntimeError, match="no trace is being taken"):
        profiler.stop_trace()
    files = written_files(tmp_path)
    assert "perfetto_trace.json.gz" in files
    assert "kernel" in files["kernels.txt"].read_text()
    data = profiler.ProfileData.from_file(files["perfetto_trace.json.gz"])
    (plane,) = data.planes
    assert data.find_plane_with_name(plane.name) is plane
    events = {e.name: e for line in plane.lines for e in line.events}
    assert dict(events["mine"].stats)["batch"] == 3
    assert dict(events["s"].stats)["step_num"] == 1
    assert events["mine"].start_ns <= events["s"].start_ns
    assert events["s"].end_ns <= events["mine"].end_ns


def test_trace_writes_also_after_an_error(tmp_path):
    options = profiler.ProfileOptions()
    options.host_tracer_level = 1

    def failing():
        with profiler.trace(tmp_path, False, True, options):
            float(work(jnp.ones(100)))
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        failing()
    data = profiler.ProfileData.from_file(written_files(tmp_path)["perfetto_trace.json.gz"])
    names = [e.name for p in data.planes for line in p.lines for e in line.events]
    assert any(n.startswith("materialize") for n in names)
    assert not any(n.startswith("record ") for n in names)


def test_annotate_function():
    @profiler.annotate_function
    def one(x):
        return x + 1

    two = profiler.annotate_function(lambda: 2, name="zwei", kind="k")
    with profiler.profile() as timeline:
        assert one(1) == two() == 2
    notes = [(e.name, e.more["metadata"]) for e in timeline.events if e.kind == "note"]
    assert notes == [("test_annotate_function.<locals>.one", {}), ("zwei", {"kind": "k"})]
    assert one(2) == 3


def test_memory_profile_names_the_line(tmp_path):
    live = jnp.zeros((1000, 333)) + 1
    live.block_until_ready()
    profiler.save_device_memory_profile(tmp_path / "m.prof")
    data = gzip.decompress((tmp_path / "m.prof").read_bytes())
    assert os.path.basename(__file__).encode() in data
    assert b"test_memory_profile_names_the_line" in data
    assert data.startswith(b"\x0a")  # field 1 of pprof's Profile: a type of sample
    sizes = [v for k, v in session_memory().items() if "test_memory_profile" in k]
    assert sum(n for _, n in sizes) >= live.nbytes


@pytest.mark.parametrize("block", [jnp.explain, profiler.profile])
def test_interrupt_at_block_end_stops_profiling(block):
    left, open_ones = 1, []
    while left > 0:  # an interrupt at each line of the package's, one after the other
        left = len(open_ones) + 1

        def line(frame, event, _):
            nonlocal left
            left -= event == "line" and "accnp" in frame.f_code.co_filename
            if left == 0:
                left = -1
                raise KeyboardInterrupt
            return line

        profiling = block()  # or it would be dropped while lines are counted
        with contextlib.suppress(KeyboardInterrupt):
            with profiling:
                sys.settrace(lambda *_: line)
            sys.settrace(None)
        sys.settrace(None)
        left = -left
        for _ in range(100):
            if session._open:
                time.sleep(0.01)  # it ends on a thread of its own
        open_ones.append(len(session._open))
        for s in [*session._open]:
            s.stop()
    assert len(open_ones) > 5
    assert sum(open_ones) <= 1  # the very first line


def session_memory():
    from accnp.devtools.profiler.memory_profile import live_memory

    return live_memory()


def test_server_answers_with_a_trace():
    server = profiler.start_server(0)
    try:
        with pytest.raises(ValueError, match="only one profiler server"):
            profiler.start_server(0)
        address = f"http://127.0.0.1:{server.port}/trace?duration_ms=10"
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert "traceEvents" in json.load(answer)
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/other", timeout=20)
    finally:
        profiler.stop_server()
    with pytest.raises(ValueError, match="no profiler server"):
        profiler.stop_server()


CHILD = """
import sys
import accnp as jnp
print(jnp.profiler.start_server(0).port, flush=True)
for line in sys.stdin:
    float(jnp.exp(jnp.ones(10)).sum())
    print("done", flush=True)
"""


def test_traces_of_subprocesses_are_taken_along(tmp_path, monkeypatch):
    monkeypatch.setattr("accnp.devtools.profiler.trace_server._subprocesses", {})
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        profiler.register_subprocess(child.pid, int(child.stdout.readline()))
        with profiler.trace(tmp_path, create_perfetto_trace=True):
            child.stdin.write("go\n")
            child.stdin.flush()
            assert child.stdout.readline() == "done\n"
        child.stdin.close()
    data = profiler.ProfileData.from_file(written_files(tmp_path)["perfetto_trace.json.gz"])
    (plane,) = [p for p in data.planes if p.name.endswith(f" {child.pid}")]
    names = [e.name for line in plane.lines for e in line.events]
    assert "materialize float(x)" in names
