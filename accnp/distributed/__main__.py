"""`mpiexec -n 4 python -m accnp.distributed program.py`: run a program so that an error in one
process ends all of them.

It takes a script, `-m module` or `-c text`, with arguments, as `python` does. An uncaught exception
is shown, and MPI ends the other processes, which may be waiting for this one.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
import traceback
from typing import NoReturn

from accnp.distributed import LAUNCHERS

_USAGE = "usage: mpiexec -n N python -m accnp.distributed [-m module | -c text | script] [args]"


# Seconds in which the launcher forwards what was printed. It drops what arrives after an abort.
_FORWARDING = 0.2


def _run(args: list[str]) -> None:
    first = args[0]
    if first in ("-m", "-c"):
        if len(args) < 2:
            raise SystemExit(_USAGE)
        sys.argv[:] = [first, *args[2:]]
        if first == "-m":
            runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        else:
            exec(compile(args[1], "<string>", "exec"), {"__name__": "__main__"})
        return
    sys.argv[:] = args
    sys.path[0] = os.path.dirname(os.path.abspath(first))  # as for `python`
    runpy.run_path(first, run_name="__main__")


def _end_all(code: int) -> NoReturn:
    """End all processes of the program, the others by MPI."""
    sys.stdout.flush()
    sys.stderr.flush()
    if any(name in os.environ for name in LAUNCHERS):
        from mpi4py import MPI

        if MPI.COMM_WORLD.size > 1:
            time.sleep(_FORWARDING)
            MPI.COMM_WORLD.Abort(code)
    raise SystemExit(code)


def _is_ours(file: str) -> bool:
    """Return whether frames of a file are not shown: they only call the program."""
    return file in (__file__, runpy.__file__, "<frozen runpy>")


def main(args: list[str]) -> None:
    """Run a program; end all processes when it fails."""
    if not args:
        raise SystemExit(_USAGE)
    try:
        _run(args)
    except SystemExit as error:
        if error.code is None or error.code == 0:
            raise
        if not isinstance(error.code, int):
            sys.stderr.write(f"{error.code}\n")
        _end_all(error.code if isinstance(error.code, int) else 1)
    except BaseException:
        kind, error, frames = sys.exc_info()
        while frames is not None and _is_ours(frames.tb_frame.f_code.co_filename):
            frames = frames.tb_next
        # In one piece, because another process may end this one at any time.
        sys.stderr.write("".join(traceback.format_exception(kind, error, frames)))
        _end_all(1)


if __name__ == "__main__":
    main(sys.argv[1:])
