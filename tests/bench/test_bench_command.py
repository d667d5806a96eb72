"""The commands `accnp bench` and `info`: tables, charts, cold starts, busy machines, and runs
without other libraries to compare with.
"""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from accnp.__main__ import info
from accnp.bench import command, processes, tables
from accnp.bench.command import ROWS, chart, main
from accnp.bench.expressions import NUMPY
from accnp.bench.suite import SUITE
from accnp.bench.tables import Row, markdown_table, marked, text_table
from accnp.bench.timing import busy
from accnp.config import scope
from accnp.runtime import driver
from accnp.runtime.machine_load import Load

BUSY = Load(0.5, 0.1, 2)
QUIET = Load(0.01, 0.1, 2)


def run(*words, code="import sys; from accnp.__main__ import main; sys.exit(main(sys.argv[1:]))"):
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)


def test_the_command_prints_a_table_and_draws(tmp_path):
    pytest.importorskip("matplotlib")
    words = ["--only", "small", "--rounds", "1", "--threads", "1"]
    out = ["--chart", str(tmp_path / "c.png"), "--json", str(tmp_path / "c.json")]
    done = run("bench", *words, *out)
    assert done.returncode == 0, done.stderr
    assert "5 operations on 100 elements" in done.stdout
    assert "threads 1" in done.stdout
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    (row,) = json.loads((tmp_path / "c.json").read_text())["rows"]
    assert row["medians"]["numpy"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--threads", "0"], "--threads: must be 1 or more; got 0"),
        (["--threads", "-1"], "--threads: must be 1 or more; got -1"),
        (["--rounds", "0"], "--rounds: must be 1 or more; got 0"),
        (["--chart", "a.xyz"], "--chart: must end with .png or .svg or .pdf; got a.xyz"),
        (["--chart", "/dev/null/a.png"], "--chart: cannot create the folder of /dev/null/a.png"),
        (["--only", "smal"], "--only: there is no smal"),
    ],
)
def test_unsupported_options_are_reported_before_measuring(words, message, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


WITHOUT = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "torch", "numexpr", "matplotlib"):
            raise ModuleNotFoundError(name)
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: (
    None if name in ("jax", "torch", "numexpr", "matplotlib") else real(name, *a)
)
sys.meta_path.insert(0, Missing())
from accnp.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_runs_with_numpy_only(tmp_path):
    words = ["bench", "--only", "small", "--rounds", "1", "--chart", str(tmp_path / "c.png")]
    done = run(*words, code=WITHOUT)
    assert done.returncode == 0, done.stderr
    assert "not installed: jax, numexpr, torch" in done.stdout
    assert "no chart: matplotlib is not installed" in done.stdout
    assert not (tmp_path / "c.png").exists()


def test_unknown_names_are_refused():
    assert run("bench", "--only", "nothing").returncode == 2


def test_chart_of_rows(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        Row("a", "jax", None, 0.5, {"accnp": 1e-3, "jax": 2e-3, "numpy": 5e-2}),
        Row("b", "numpy", None, 2.0, {"accnp": 1e-3, "numpy": 5e-4}),
    ]
    assert chart(rows, tmp_path / "x" / "c.png").endswith("c.png")
    assert (tmp_path / "x" / "c.png").stat().st_size > 5000


@pytest.mark.parametrize("name", SUITE)
def test_the_suite_agrees_with_numpy(name):
    expression = SUITE[name]
    f, arguments = expression.make(NUMPY)
    expected = f(*arguments)
    np.testing.assert_allclose(expression.ours()(), expected, rtol=1e-3, atol=1e-2)


def test_info_names_caches_libraries_and_gpu():
    text = info()
    for phrase in ("caches", "GPU", "openblas", "of kernels and BLAS", "bits"):
        assert phrase in text or (phrase == "openblas" and "library 0" in text)


def test_info_says_why_there_is_no_gpu():
    """The reason is also shown if the GPU is configured as the default device."""

    def missing():
        raise driver.GPUUnavailable("no driver here")

    driver.install(missing)
    try:
        with scope("platforms", "gpu"):
            assert info().count("no driver here, or use the cpu") == 2
    finally:
        driver.install(None)


def test_busy_counts_processors():
    assert 0 <= busy(lambda: time.sleep(0.01), 0.05) < 0.5


def test_the_cold_row_takes_fresh_processes_with_empty_caches(monkeypatch):
    folders = []

    def seconds(code, ACCNP_CACHE_DIR):
        folders.append(ACCNP_CACHE_DIR)
        return 1.0 if "import accnp" in code else 0.5

    monkeypatch.setattr(processes, "process_seconds", seconds)
    (row,) = ROWS["cold"].measure(15)
    assert row.ratio == 2.0
    assert row.medians["accnp"] == 1.0
    assert row.medians["numpy"] == 0.5
    assert "fresh process, empty cache" in row.note
    assert len(folders) == len(set(folders)) == processes.COLD_ROUNDS * len(ROWS["cold"].programs())


def test_cold_programs_compute_the_same():
    results = {
        name: processes.fresh_process(code) for name, code in ROWS["cold"].programs().items()
    }
    assert {"accnp", "numpy"} <= set(results)
    assert list(results.values()) == pytest.approx([results["numpy"]] * len(results), rel=1e-5)


def test_rows_of_a_busy_machine_are_marked(monkeypatch):
    row = Row("a", "jax", None, 0.5, {"accnp": 1e-3, "jax": 2e-3})
    loads = iter([QUIET, QUIET, QUIET, BUSY])
    monkeypatch.setattr(tables, "machine_load", lambda: next(loads))
    assert not marked(lambda rounds: [row], 1)[0].unreliable
    assert "?" not in text_table([row])
    assert marked(lambda rounds: [row], 1)[0].unreliable
    for table in (text_table([row]), markdown_table([row])):
        assert "0.500 ?" in table
        assert table.splitlines()[-1] == tables.UNRELIABLE


def test_a_busy_machine_can_be_refused(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "_same_threads", lambda count: None)
    monkeypatch.setattr(command, "machine_load", lambda: BUSY)
    words = [
        "--only",
        "small",
        "--rounds",
        "1",
        "--refuse-busy",
        "--chart",
        str(tmp_path / "c.png"),
    ]
    assert main(words) == 3
    assert "nothing was measured, busy machine" in capsys.readouterr().err
    monkeypatch.setattr(command, "machine_load", lambda: QUIET)
    monkeypatch.setattr(tables, "machine_load", lambda: BUSY)
    assert main(words) == 3
    output = capsys.readouterr().out
    assert "omitted, because the machine was busy: small" in output
    assert "5 operations" not in output
    assert "no chart: nothing was measured" in output


def test_the_chart_names_the_machine_and_units(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        Row("a thing", "numpy", None, 0.5, {"accnp": 2e-4, "numpy": 4e-4}),
        Row("another", "numpy", None, 0.5, {"accnp": 2.5, "numpy": 4e-1}, unreliable=True),
    ]
    facts = {"cpu": "A Processor", "numpy": "2.4", "jax": "not installed", "threads": 2}
    chart(rows, tmp_path / "c.svg", facts)
    text = (tmp_path / "c.svg").read_text()
    pieces = {line.strip() for line in text.split("<!--")}
    comments = " ".join(line.split("-->")[0].strip() for line in pieces)
    for words in ("A Processor, 2 threads", "numpy 2.4", "relative to accnp", "accnp: 200 µs",
                  "accnp: 2.5 s", "time of the peer / time of accnp", "pale bars"):  # fmt: skip
        assert words in comments
    assert "jax" not in comments


def test_the_libraries_of_a_gpu_keep_their_platforms(monkeypatch, capsys):
    """JAX_PLATFORMS=cpu is set only for comparisons on the CPU."""
    seen = []
    monkeypatch.setattr(command, "_same_threads", lambda count: seen.append(count))
    monkeypatch.setattr("accnp.bench.gpu.main", lambda *words: "a table")
    assert main(["--device", "gpu"]) == 0
    assert seen == []
    out = capsys.readouterr().out
    assert out.startswith("a table\n")
    assert "machine: a fixed loop takes" in out
