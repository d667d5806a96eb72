"""Processes that take turns in a benchmark (`gpu.py`), one for each library.

`Peer` starts a command that calls `serve`. The process prepares its work and then does one part
of it per request. Requests are lines of text, and each answer is a JSON list on one line. If a
process hangs, ends or fails, it is killed, and `Peer.why` contains the reason.
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
    """A process that answers requests. `why` is the reason if it ended early, or empty."""

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

    def read_answer(self, limit: float) -> list | None:
        """Return the next answer, or None if there will be none."""
        end = perf_counter() + limit
        while not self.why:
            try:
                line = self._lines.get(timeout=max(0.01, end - perf_counter()))
            except queue.Empty:
                self._kill(f"it did not answer in {limit:.3g} s")
                break
            if line is None:
                code = self._process.wait()
                self._errors.seek(0)
                lines = self._errors.read().strip().splitlines()
                self._kill((lines or [f"it ended with {code}"])[-1])
            elif line.startswith("[") and line.endswith("]\n"):  # other lines come from libraries
                return json.loads(line)
        return None

    def ask(self, word: str, limit: float) -> list | None:
        """Send a request and return the answer, or None."""
        if self.why:
            return None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the process has ended: `read_answer` finds the reason
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        return self.read_answer(limit)

    def _kill(self, why: str) -> None:
        self.why = why
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            assert file is not None
            with contextlib.suppress(OSError):  # data that was not sent
                file.close()


def serve(
    ready: Callable[[str], None],
    work: Callable[[str], float],
    names: Sequence[str],
    limit: float = 1e9,
) -> None:
    """Run the loop of a peer process.

    First prepare the work of each name that can be started within the limit, and answer how long it
    took; then answer "all". Afterwards, do the work of each name that is requested. If there is an
    error, the answer is its message.
    """

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
            raise TimeoutError(f"it could not be started within {limit:.3g} s")
        ready(name)
        return perf_counter() - start

    end = perf_counter() + limit
    for name in names:
        tell(name, tried(timed, name))
    tell("all", None)
    for line in sys.stdin:
        tell(line.strip(), tried(work, line.strip()))
