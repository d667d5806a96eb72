"""The IPython magic `%accnp_timeit`, which `%load_ext accnp` registers.

Input: a line or cell of IPython or of a notebook, and its namespace. Output: a `Measurement`, which
`accnp.timeit` makes.
"""

from __future__ import annotations

import argparse
from typing import Any

from accnp.bench.measure import Measurement, timeit
from accnp.bench.statements import function_of
from accnp.errors import api_boundary

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

NAME = "accnp_timeit"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(f"%{NAME}: {message}\n{self.format_usage()}")


def _parser() -> _Parser:
    parser = _Parser(prog=f"%{NAME}", add_help=False, allow_abbrev=False)
    parser.add_argument("-n", dest="number", type=int, help="calls per round")
    parser.add_argument("-r", dest="rounds", type=int, help="number of rounds")
    parser.add_argument("-o", dest="give", action="store_true", help="return the Measurement")
    parser.add_argument("-q", dest="quiet", action="store_true", help="print nothing")
    return parser


def _split_options(line: str) -> tuple[list[str], str]:
    """Return the options at the start of a line, and the code after them unchanged."""
    words: list[str] = []
    rest = line.strip()
    while rest.startswith("-") and len(rest) > 1 and rest[1] in "nroq":
        word, _, rest = rest.partition(" ")
        words.append(word)
        if word in ("-n", "-r"):
            number, _, rest = rest.lstrip().partition(" ")
            words.append(number)
        rest = rest.lstrip()
    return words, rest


class _Magic:
    """The magic of one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def __call__(self, line: str, cell: str | None = None) -> Measurement | None:
        """Time code until its results are computed.

        `%accnp_timeit [-n CALLS] [-r ROUNDS] [-o] [-q] CODE` times a line. In a cell that starts
        with `%%accnp_timeit`, code on the first line is setup code, and the rest of the cell is
        timed until the value of its last expression and the variables that it assigns are computed.
        `-o` returns the `Measurement`, and `-q` prints nothing.
        """
        words, code = _split_options(line)
        options = _parser().parse_args(words)
        setup = ""
        if cell is not None:
            setup, code = code, cell
        timed = function_of(code, self.shell.user_ns, setup)
        timed.__name__ = code.strip().splitlines()[0] if cell is None else "cell"
        measurement = timeit(timed, rounds=options.rounds, number=options.number)
        if not options.quiet:
            print(measurement)
        return measurement if options.give else None


@api_boundary
def load_ipython_extension(ipython: Any) -> None:
    """Register the magic `accnp_timeit` for lines and cells; called by `%load_ext accnp`.

    Parameters
    ----------
    ipython : IPython shell
        Object with the method `register_magic_function` and the user's names in `user_ns`.

    Examples
    --------
    >>> import accnp as jnp
    >>> class Shell:  # IPython's, or that of a notebook
    ...     user_ns = {"jnp": jnp}
    ...     def register_magic_function(self, function, magic_kind, magic_name):
    ...         self.magic = function
    >>> shell = Shell()
    >>> jnp.load_ipython_extension(shell)
    >>> shell.magic("-q -o -r 3 -n 10 jnp.ones(10) * 2").loops
    10
    """
    ipython.register_magic_function(_Magic(ipython), "line_cell", NAME)


@api_boundary
def unload_ipython_extension(ipython: Any) -> None:
    """Remove the magic `accnp_timeit`; called by `%unload_ext accnp`.

    Parameters
    ----------
    ipython : IPython shell
        Object that was passed to `load_ipython_extension`.

    Examples
    --------
    >>> import accnp as jnp
    >>> class Shell:
    ...     class magics_manager:
    ...         magics = {"line": {"accnp_timeit": print}, "cell": {"accnp_timeit": print}}
    >>> jnp.unload_ipython_extension(Shell())
    >>> Shell.magics_manager.magics
    {'line': {}, 'cell': {}}
    """
    for kind in ("line", "cell"):
        ipython.magics_manager.magics[kind].pop(NAME, None)
