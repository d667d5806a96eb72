"""Processes that take turns: each makes its work ready, then does a part when it is asked to.

In: a command that calls `serve`. Out: what it says, a list in JSON on a line for each answer. A
process that hangs, ends or fails says nothing more, and its `why` tells.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

__all__ = ["Peer", "serve"]


class Peer:
    """A process that is asked; `why` is what ended it too early."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self.why = ""
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def said(self, limit: float) -> list | None:
        """The next answer; None if there will be none."""
        end = perf_counter() + limit
        while not self.why:
            try:
                line = self._lines.get(timeout=max(0.01, end - perf_counter()))
            except queue.Empty:
                self._end(f"it did not answer in {limit:.3g} s")
                break
            if line is None:
                code = self._process.wait()
                self._errors.seek(0)
                said = self._errors.read().strip().splitlines()
                self._end((said or [f"it ended with {code}"])[-1])
            elif line.startswith("[") and line.endswith("]\n"):  # libraries print, too
                return json.loads(line)
        return None

    def ask(self, word: str, limit: float) -> list | None:
        """Say a word and wait for what comes back."""
        if self.why:
            return None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it is gone: `said` finds out why
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        return self.said(limit)

    def _end(self, why: str) -> None:
        self.why = why
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            assert file is not None
            with contextlib.suppress(OSError):  # what was not sent any more
                file.close()


def serve(
    ready: Callable[[str], None],
    work: Callable[[str], float],
    names: Sequence[str],
    limit: float = 1e9,
) -> None:
    """Be such a process: make names ready, as many as can be begun within the limit, and say how
    long each took, then "all"; then do the work of each name that comes. An error is said in its
    place."""

    def tell(*what: Any) -> None:
        print("\n" + json.dumps(what), flush=True)

    def tried(f: Callable[[str], Any], name: str) -> Any:
        try:
            return f(name)
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:300]}"

    def timed(name: str) -> float:
        start = perf_counter()
        if start > end:
            raise TimeoutError(f"it was not begun within {limit:.3g} s")
        ready(name)
        return perf_counter() - start

    end = perf_counter() + limit
    for name in names:
        tell(name, tried(timed, name))
    tell("all", None)
    for line in sys.stdin:
        tell(line.strip(), tried(work, line.strip()))
