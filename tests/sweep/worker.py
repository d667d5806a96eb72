"""Run one library in a separate process, so that a crash or a hang is reported as a difference.

Jobs are sent over a pipe, and their results come back; `Ended` is returned if the process did not
answer.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections.abc import Callable
from typing import Any


class Ended(Exception):
    """The result of a job whose process crashed or exceeded the time limit."""


def _serve(library: str, pipe: Any) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # XLA writes pages of advice
    m = importlib.import_module(library)
    while True:
        f, arguments = pipe.recv()
        pipe.send(f(m, *arguments))


class Worker:
    def __init__(self, library: str, seconds: float) -> None:
        self.library, self.seconds = library, seconds
        self.process: Any = None

    def ask(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Run `f(library, *arguments)` in the process and return the result."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=_serve, args=(self.library, other), daemon=True)
            self.process.start()
            other.close()
        try:
            self.pipe.send((f, arguments))
            if not self.pipe.poll(self.seconds):
                raise Ended(f"no answer within {self.seconds:.0f} s")
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            raise Ended(f"the process ended with {self.process.exitcode}") from None
        except Ended:
            self.close()
            raise
        finally:
            if self.process is not None and not self.process.is_alive():
                self.process = None

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
