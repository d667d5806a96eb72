"""Start programs in several processes with `mpiexec`, as users do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "programs"


class FinishedProcess(NamedTuple):
    """How the processes of a program ended."""

    code: int
    out: str
    err: str
    seconds: float


def launch(
    count: int,
    program: str | Path,
    *args: str,
    hook: bool = True,
    **variables: str,
) -> FinishedProcess:
    """Run a program of the folder `programs`, or a text, and return how it ended.

    `variables` are set in its environment, or removed if they are empty.
    """
    if isinstance(program, str) and not program.endswith(".py"):
        call = ["-c", program]
    else:
        call = [str(PROGRAMS / program)]
    starter = ["-m", "accnp.distributed"] if hook else []
    command = [
        str(Path(sys.executable).parent / "mpiexec"), "-n", str(count), sys.executable, "-W",
        "ignore:distributed.initialize:UserWarning", *starter, *call, *args,
    ]  # fmt: skip
    tests = str(Path(__file__).parent.parent)
    path = os.pathsep.join([*filter(None, sys.path), tests])
    environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_CPU_DEVICES")}
    environment |= {"PYTHONPATH": path, "ACCNP_THREADS": "1", **variables}
    began = time.monotonic()
    done = subprocess.run(
        command,
        env={k: v for k, v in environment.items() if v},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return FinishedProcess(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def run(count: int, program: str | Path, *args: str, **more: str) -> str:
    """Run a program that must succeed, and return what it printed."""
    ended = launch(count, program, *args, **more)
    assert ended.code == 0, ended.err[-3000:]
    return ended.out
