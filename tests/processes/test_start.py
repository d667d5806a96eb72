"""Starting programs in several processes, and how they end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from processes.launch import launch, run

from accnp import distributed
from accnp.config import config, default_threads

FACTS = """
import accnp as jax
from processes.program_helpers import assert_raises
initialize = jax.distributed.initialize
message = "MPI says that num_processes is 2; got num_processes=3"
assert_raises(ValueError, message, lambda: initialize(num_processes=3))
assert_raises(ValueError, "process_id", lambda: initialize(process_id=5))
jax.config.update("num_cpu_devices", 2)
assert_raises(RuntimeError, "one device of the CPU", initialize)
jax.config.update("num_cpu_devices", 1)
initialize("localhost:1234", 2)
assert_raises(RuntimeError, "called once", initialize)
me = jax.process_index()
assert (jax.process_count(), jax.process_indices()) == (2, [0, 1])
assert [d.process_index for d in jax.devices()] == [0, 1]
assert jax.local_devices() == [jax.devices()[me]]
assert jax.local_devices(1 - me) == [jax.devices()[1 - me]]
assert (jax.device_count(), jax.local_device_count()) == (2, 1)
assert (jax.numpy.ones(2) + 1).device == jax.devices()[me]
assert_raises(RuntimeError, "num_cpu_devices", lambda: jax.config.update("num_cpu_devices", 4))
print(f"process {me} has {jax.config.threads} threads;")
"""


def test_processes_are_connected() -> None:
    out = run(2, FACTS)
    assert "process 0 has 1 threads;" in out
    assert "process 1 has 1 threads;" in out


def test_processes_share_the_cores() -> None:
    text = "import accnp; accnp.distributed.initialize(); print(f'threads={accnp.config.threads};')"
    code = "import accnp; print(accnp.config.threads)"
    alone = int(subprocess.check_output([sys.executable, "-c", code]))
    counts = re.findall(r"threads=(\d+);", run(2, text, ACCNP_THREADS=""))
    assert counts == [str(max(1, alone // 2))] * 2


@pytest.mark.parametrize(
    ("cpus", "threads"),
    [
        ([{0, 1}, {2, 3}], [2, 2]),
        ([{0}, {1, 2, 3}], [1, 3]),
        ([set(range(6))] * 3, [2, 2, 2]),
        ([{0, 1, 2, 3}, {2, 3}], [3, 1]),
        ([{0}, {0}, {0}], [1, 1, 1]),
    ],
)
def test_cores_that_several_processes_may_use_are_divided(
    cpus: list[set[int]], threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCNP_THREADS", raising=False)
    monkeypatch.setattr(distributed, "within_quota", lambda cores: cores)
    monkeypatch.setattr(distributed, "warn", warned := Mock())
    before = config.threads
    counts = []
    for index in range(len(cpus)):
        config.update("threads", default_threads())
        distributed._share_cores(cpus, index)
        counts.append(config.threads)
    config.update("threads", before)
    assert counts == threads
    assert warned.called == (sum(threads) > len(set.union(*cpus)))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="binds processes to cores")
def test_bound_processes_do_not_warn_about_shared_cores() -> None:
    core = "sorted(os.sched_getaffinity(0))[int(os.environ['PMI_RANK'])]"
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    text = (
        f"import os, warnings; os.sched_setaffinity(0, [{core}]); warnings.simplefilter('always')\n"
        "import accnp; accnp.distributed.initialize(); print(f'threads={accnp.config.threads};')"
    )
    ended = launch(2, text, hook=False, ACCNP_THREADS="")
    assert re.findall(r"threads=(\d+);", ended.out) == ["1", "1"], ended.err
    assert "share" not in ended.err


def test_devices_in_use_are_not_taken_away() -> None:
    ended = launch(2, "import accnp; accnp.devices(); accnp.distributed.initialize()")
    assert ended.code != 0
    assert "it must be called before devices are used" in ended.err


def test_single_process_runs_without_mpi() -> None:
    code = (
        "import sys, accnp; accnp.distributed.initialize(num_processes=1)\n"
        "assert accnp.process_count() == 1 and accnp.distributed.is_initialized()\n"
        "print('mpi4py' in sys.modules, 'accnp.runtime.mpi' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False False\n"
    code = "import accnp; accnp.distributed.initialize(num_processes=2)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "start the program with mpiexec -n 2" in done.stderr


WAITING = """
import sys, os, signal, time, accnp as jax
jax.distributed.initialize()
mesh = jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,))
f = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P())
assert jax.numpy.array_equal(f(jax.numpy.arange(2.0)), [1])
open(sys.argv[1], "a").write(f"{time.time()}\\n")
if jax.process_index() == 1:
    END
print(f(jax.numpy.arange(2.0)), flush=True)
"""


def end(statement: str, hook: bool = True) -> tuple[int, str, float]:
    """Return how a program ends after a statement in one process: its exit, its output and the
    seconds it takes."""
    with tempfile.NamedTemporaryFile("r") as file:
        ended = launch(2, WAITING.replace("END", statement), file.name, hook=hook)
        began = max(map(float, file.read().split()))
    return ended.code, ended.out + ended.err, time.time() - began


def test_an_exception_ends_all_processes() -> None:
    code, err, seconds = end("raise KeyError('lost')")
    assert code == 1
    assert err.count("KeyError: 'lost'") == 1
    assert "runpy" not in err
    assert seconds < 2


def test_an_exit_status_ends_all_processes() -> None:
    code, err, seconds = end("sys.exit(3)")
    assert code == 3
    assert "Traceback" not in err
    assert seconds < 2


@pytest.mark.parametrize("hook", [True, False])
def test_the_death_of_a_process_ends_the_others(hook: bool) -> None:
    code, err, seconds = end("os.kill(os.getpid(), signal.SIGKILL)", hook)
    assert code != 0
    assert "signal 9" in err
    assert seconds < 10


def test_pending_work_is_done_at_the_end() -> None:
    text = WAITING.replace("END", "pass").replace(
        "print(f(jax.numpy.arange(2.0)), flush=True)",
        "y = jax.jit(lambda a: f(f(a + 1)))(jax.numpy.ones(2 << 22))",
    )
    ended = launch(2, text, os.devnull)
    assert (ended.code, ended.err) == (0, "")


def test_script_imports_modules_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("print('found')\n")
    script = tmp_path / "script.py"
    script.write_text("import beside\n")
    done = subprocess.run(
        [sys.executable, "-m", "accnp.distributed", str(script)], capture_output=True, text=True
    )
    assert done.stdout == "found\n", done.stderr
