"""`python -m accnp bench --device gpu` with tiny sizes, on a fake GPU."""

import json
import sys

import pytest

from accnp.bench import command, gpu, peer_processes


def test_every_gpu_row_runs(fake):
    times: dict = {}
    timed = gpu.Timed("accnp", 1e-4, 0.0)
    for name in [name for name, work in gpu.ROWS.items() if "accnp" in work.only]:
        timed.ready(name)
        times[name] = timed.sample(name)
    lines = gpu.table(list(gpu.ROWS), {"accnp": times}, 1e-4)
    assert len(lines) == 1 + len(gpu.ROWS)
    assert "accnp GB/s" in lines[0]


def test_performance_targets_are_reported():
    """Each performance target is reported if its measurements exist."""
    times: dict = {"accnp": {"chain": 3e-3, "sum": 1e-3, "product": 1.0, "launch": 8.1e-6}}
    assert gpu.bars(list(gpu.ROWS), times, 1e-4) == []
    times["cupy"] = {"copy": 2.9e-3, "product": 0.99, "launch": 1e-6}
    times["torch"] = {"copy": 1.9e-3}  # the fastest
    times["jax"] = {"chain": 3.1e-3, "sum": "OutOfMemory: ", "launch": 1e-5}
    assert gpu.bars(list(gpu.ROWS), times, 1e-4) == [
        "", "bars of an H200:",
        "met    chain of 7 operations, 32M, of the copy's bandwidth: 0.950 (>= 0.9)",
        "met    sum, 32M, of the copy's bandwidth: 0.950 (>= 0.85)",
        "met    chain of 7 operations, 32M, over jax's time: 0.968 (<= 1.05)",
        "met    one small kernel, time to return, over jax's time: 0.810 (<= 1.05)",
        "met    geometric mean over jax's: 0.885 (<= 1)",
        "met    matrix product, over cuBLAS's time (by CuPy): 1.010 (<= 1.05)",
        "MISSED cached call of one small kernel, over jax's time on the host: 0.810 (<= 0.8)",
    ]  # fmt: skip


def test_cold_line_sums_rows_common_to_all_libraries():
    ready = {"accnp": {"chain": 0.5, "sum": 0.25, "launch": 9.0}, "jax": {"sum": 1.0, "chain": 1.0}}
    (line,) = gpu.cold_lines(ready)
    assert line.split() == ["cold:", "first", "calls", "of", "2", "rows", "750", "2000"]
    assert gpu.cold_lines({}) == gpu.cold_lines({"accnp": {"sum": 1.0}, "jax": {}}) == []


def test_peers_run_in_their_own_environment():
    code = "import json, os; print(json.dumps([os.environ['A'], 'PATH' in os.environ]))"
    peer = peer_processes.Peer([sys.executable, "-c", code], {"A": "b"})
    assert peer.read_answer(30) == ["b", True]
    peer.close()


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("raise SystemExit('an illegal memory access')", "an illegal memory access"),
        ("import os; os._exit(3)", "it ended with 3"),
        ("import time; time.sleep(60)", "it did not answer in 2 s"),
    ],
)
def test_output_before_a_crash_is_kept(end, why):
    text = f"print('a warning'); print('[\"chain\", 0.5]', flush=True); {end}"
    peer = peer_processes.Peer([sys.executable, "-c", text])
    assert peer.read_answer(9) == ["chain", 0.5]
    assert peer.read_answer(2) is None
    assert peer.ask("chain", 2) is None
    assert peer.why == why
    peer.close()


def test_libraries_alternate():
    """The peer prepares each name, then measures it on request. An error is reported, and the next
    request is served.
    """
    text = "from accnp.bench.peer_processes import serve\n"
    text += "work = lambda n: float('a' == n) / (n != 'b')\n"
    text += "serve(lambda n: None if n in 'ab' else {}[n], work, 'abc')"
    peer = peer_processes.Peer([sys.executable, "-c", text])
    ready = [peer.read_answer(30) or [] for _ in range(4)]
    assert [(n, type(t).__name__) for n, t in ready] == [
        ("a", "float"), ("b", "float"), ("c", "str"), ("all", "NoneType"),
    ]  # fmt: skip
    assert ready[2][1] == "KeyError: 'c'"
    assert peer.ask("a", 9) == ["a", 1.0]
    assert "ZeroDivisionError" in str(peer.ask("b", 9))
    assert peer.ask("a", 9) == ["a", 1.0]
    assert peer.why == ""
    peer.close()


def test_the_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(gpu, "LIBRARIES", {"accnp": gpu.LIBRARIES["accnp"]})
    file = tmp_path / "figures"
    arguments = ["--device", "gpu", "--only", "launch", "--size", "0", "--json", str(file)]
    assert command.main([*arguments, "--within", "0.05"]) == 0
    assert "did not answer in" in json.loads(file.read_text())["notes"][0]
    capsys.readouterr()
    assert command.main(arguments) == 0
    printed = capsys.readouterr().out
    assert json.loads(file.read_text())["notes"][0].startswith("accnp: not measured: ")
    assert "one small kernel, time to return" in printed
    with pytest.raises(SystemExit):
        command.main(["--device", "gpu", "--only", "lunch"])
    assert "there is no lunch" in capsys.readouterr().err
