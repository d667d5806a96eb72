"""`debug.breakpoint`: stops a program during execution, at a prompt with the user's variables.

Traced arrays among the local variables of the caller's frames become operands of a callback, which
opens the prompt with their values.
"""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
from typing import Any

from accnp.api.effects.debug import callback
from accnp.array_type import Array

__all__ = ["breakpoint"]

_PACKAGE = __name__.split(".")[0]


class _Frame:
    """A frame of the user: its location and its variables."""

    def __init__(self, frame: Any) -> None:
        self.file = frame.f_code.co_filename
        self.line = frame.f_lineno
        self.name = frame.f_code.co_name
        self.variables = dict(frame.f_locals) if frame.f_code.co_name != "<module>" else {}
        self.globals = frame.f_globals

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line} in {self.name}\n    {text}"


class _Prompt(cmd.Cmd):
    """The prompt; frames are listed from the innermost one."""

    prompt = "(accnp) "

    def __init__(self, frames: list[_Frame], stdin: Any = None, stdout: Any = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._frames = frames
        self._at = 0

    def _print(self, text: Any) -> None:
        print(text, file=self.stdout)

    def _value(self, text: str) -> Any:
        frame = self._frames[self._at]
        return eval(text, frame.globals, frame.variables)

    def _print_or_report(self, text: str, show: Any) -> None:
        try:
            self._print(show(self._value(text)))
        except Exception as error:  # any input may be wrong; the prompt continues
            self._print(f"{type(error).__name__}: {error}")

    def do_p(self, text: str) -> None:
        """p EXPRESSION: print the value."""
        self._print_or_report(text, repr)

    def do_pp(self, text: str) -> None:
        """pp EXPRESSION: pretty-print the value."""
        self._print_or_report(text, pprint.pformat)

    def default(self, line: str) -> None:
        self._print(f"unknown: {line!r}; p, pp, l, bt, u, d, c, q are known")

    def do_l(self, text: str) -> None:
        """l: list the source lines around the current one."""
        frame = self._frames[self._at]
        for n in range(max(frame.line - 4, 1), frame.line + 5):
            line = linecache.getline(frame.file, n)
            if line:
                self._print(f"{'->' if n == frame.line else '  '} {n:4d} {line.rstrip()}")

    do_list = do_l

    def do_bt(self, text: str) -> None:
        """bt: list all frames."""
        for i, frame in enumerate(self._frames):
            self._print(f"{'->' if i == self._at else '  '} {frame}")

    do_where = do_bt

    def do_u(self, text: str) -> None:
        """u: go to the caller."""
        self._at = min(self._at + 1, len(self._frames) - 1)
        self._print(self._frames[self._at])

    do_up = do_u

    def do_d(self, text: str) -> None:
        """d: go to the callee."""
        self._at = max(self._at - 1, 0)
        self._print(self._frames[self._at])

    do_down = do_d

    def do_c(self, text: str) -> bool:
        """c: continue."""
        return True

    do_continue = do_EOF = do_c

    def do_q(self, text: str) -> bool:
        """q: stop the program."""
        raise KeyboardInterrupt("debug.breakpoint: stopped at the prompt")

    do_quit = do_q


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: object = None,
    **kwargs: Any,
) -> None:
    """Stop the program at this point, at a prompt that shows the variables of the caller's frames.

    In a traced function, traced variables have their values at the prompt. `p` and `pp` print
    expressions, `l` the lines around, and `bt` the frames; `u` and `d` change the frame, `c`
    continues, and `q` raises KeyboardInterrupt.

    Parameters
    ----------
    backend : str, optional
        Ignored; present for compatibility with JAX.
    filter_frames : bool, optional
        Whether to hide frames of accnp. The default is True.
    num_frames : int, optional
        Number of frames to keep. The default is all.
    ordered : bool, optional
        Whether to keep the order among ordered effects. The default is False.
    token : object, optional
        Ignored; present for compatibility with JAX.
    **kwargs : file
        `stdin` and `stdout`, used in place of the terminal.

    See Also
    --------
    debug.print : Print values without stopping.
    debug.callback : Call any function.

    Examples
    --------
    >>> import accnp as jnp, io
    >>> def f(x):
    ...     y = x * 2
    ...     jnp.debug.breakpoint(stdin=io.StringIO("p float(y)"))
    ...     return y + 1
    >>> float(jnp.jit(f)(3.0))
    (accnp) 6.0
    (accnp) 7.0
    """
    frames: list[_Frame] = []
    frame = sys._getframe(1)
    while frame is not None and (num_frames is None or len(frames) < num_frames):
        own = frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE
        if not (own and filter_frames):
            frames.append(_Frame(frame))
        frame = frame.f_back
    places = [
        (i, name)
        for i, f in enumerate(frames)
        for name, value in f.variables.items()
        if type(value) is Array
    ]

    def stop(*values: Any) -> None:
        for (i, name), value in zip(places, values, strict=True):
            frames[i].variables[name] = value
        _Prompt(frames, kwargs.get("stdin"), kwargs.get("stdout")).cmdloop()

    callback(stop, *[frames[i].variables[name] for i, name in places], ordered=ordered)
