"""Run a program for which `import jax` gives accnp.

    python -m accnp.as_jax script.py [ARGUMENTS]
    python -m accnp.as_jax -m module [ARGUMENTS]

The program gets its own `sys.argv`, and the folder of the script is the first of `sys.path`, as if
Python had been called with it.
"""

from __future__ import annotations

import os
import runpy
import sys

from accnp.as_jax import as_jax

_USAGE = "usage: python -m accnp.as_jax {script.py | -m module} [arguments]"


def main(arguments: list[str]) -> None:
    """Run the program that the arguments of the command line name."""
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        as_jax()
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments and not arguments[0].startswith("-"):
        script = arguments[0]
        if not os.path.exists(script):
            raise SystemExit(f"accnp.as_jax: there is no file {script!r}; {_USAGE}")
        as_jax()
        sys.argv = arguments
        script = os.path.abspath(script)  # as Python does, for programs that change the folder
        sys.path[0] = os.path.dirname(script)
        runpy.run_path(script, run_name="__main__")
    elif arguments in (["-h"], ["--help"]):
        print(_USAGE)
    else:
        raise SystemExit(_USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
