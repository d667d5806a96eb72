"""`Timeline`: a session in the trace format of Chrome and Perfetto, and a table of kernels."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from accnp.devtools.explain.session import Event, Session
from accnp.ir.node import site_text
from accnp.runtime.bandwidth import bandwidth

__all__ = ["KernelTotal", "Timeline", "kernel_totals"]

KINDS = frozenset(
    ["trace", "call", "plan", "pass", "compile", "use", "copy", "run", "step", "wait", "note"]
)
# Display names of kinds.
_SHOWN = {"use": "materialize", "step": "launch"}


class KernelTotal:
    """The launches of one kernel: count, seconds, and bytes that had to be transferred."""

    __slots__ = ("count", "device", "name", "nbytes", "seconds")

    def __init__(self, name: str, device: Any = None) -> None:
        self.name = name
        self.device = device  # a GPU, or None
        self.count = 0
        self.seconds = 0.0
        self.nbytes = 0

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return self.nbytes / self.seconds if self.seconds else 0.0

    @property
    def share(self) -> float:
        """The bandwidth relative to a streaming copy; above 1 if operands are in caches."""
        return self.rate / bandwidth(self.device)

    def __repr__(self) -> str:
        return f"KernelTotal({self.name!r}, {self.count} launches, {1e3 * self.seconds:.3f} ms)"


def kernel_totals(events: Iterable[Event]) -> list[KernelTotal]:
    """Sum up the steps among the events by kernel, in descending order of time."""
    totals: dict[Any, KernelTotal] = {}
    for e in events:
        if e.kind == "step" and not e.more["depth"]:
            step = e.more["step"]
            text = getattr(step, "text", None)
            device = e.more["plan"].device
            key = (e.name, text.source if text is not None else "", device)
            total = totals.setdefault(key, KernelTotal(e.name, device))
            total.count += 1
            total.seconds += e.seconds
            total.nbytes += step.nbytes
    return sorted(totals.values(), key=lambda t: -t.seconds)


class Timeline:
    """Timeline of what happens inside a `with` block.

    Parameters
    ----------
    records : bool, optional
        Whether to include each operation that is recorded. The default is True.

    Notes
    -----
    Results stay lazy, so computations that are pending at the end are not included: wait for them
    inside the block.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.profiler.profile() as timeline:
    ...     float(jnp.sum(jnp.exp(jnp.ones(1000))))
    2718.28...
    >>> [k.count for k in timeline.kernels()]
    [1]
    """

    def __init__(self, records: bool = True) -> None:
        self._session = Session(KINDS | {"record"} if records else KINDS)
        self._foreign: list[dict[str, Any]] = []  # events of other processes

    def start(self) -> Timeline:
        """Start recording."""
        self._session.start()
        return self

    def stop(self) -> Timeline:
        """Stop recording."""
        self._session.stop()
        return self

    def __enter__(self) -> Timeline:
        return self.start()

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._session.stop()
        finally:  # also after an interrupt
            self._session.stop()

    def __del__(self) -> None:
        session = self.__dict__.get("_session")
        if session is not None:  # if an error of a signal handler prevented the exit
            session.stop()

    @property
    def events(self) -> list[Event]:
        """Return the events, in the order in which they ended."""
        return self._session.events

    def kernels(self) -> list[KernelTotal]:
        """Return the kernels, library calls and loops with their counts, times and bytes."""
        return kernel_totals(self.events)

    def add(self, events: Iterable[dict[str, Any]]) -> None:
        """Add the events of another process, in the trace format."""
        self._foreign += events

    def as_dict(self) -> dict[str, Any]:
        """Return the objects of the trace format, with times in microseconds since the start."""
        pid = os.getpid()
        names = {t.ident: t.name for t in threading.enumerate()}
        threads = dict.fromkeys(e.thread for e in self.events)
        out: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "accnp"}}
        ]
        for k, ident in enumerate(threads):
            name = names.get(ident, f"thread {k}" if ident >= 0 else f"cuda:{-1 - ident}")
            out.append(
                {"ph": "M", "name": "thread_name", "pid": pid, "tid": ident, "args": {"name": name}}
            )
        out += [
            self._convert_event(e, pid)
            for e in sorted(self.events, key=lambda e: (e.start, -e.end))
        ]
        return {"traceEvents": out + self._foreign, "displayTimeUnit": "ms"}

    def _convert_event(self, e: Event, pid: int) -> dict[str, Any]:
        details: dict[str, Any] = {}
        line = e.line or (_line(e.more["site"]) if e.more.get("site") else "")
        if line:
            details["line"] = line
        details |= {k: e.more[k] for k in ("transform", "origin", "why") if k in e.more}
        details |= e.more.get("metadata", {})
        if e.kind == "step":
            details["bytes"] = e.more["step"].nbytes
            if e.seconds > 0:
                details["GB/s"] = round(details["bytes"] / e.seconds / 1e9, 2)
        kind = _SHOWN.get(e.kind, e.kind)
        return {
            "ph": "X",
            "name": e.name if e.kind in ("step", "note") else f"{kind} {e.name}",
            "cat": kind,
            "ts": (e.start - self._session.began) / 1e3,
            "dur": (e.end - e.start) / 1e3,
            "pid": pid,
            "tid": e.thread,
            "args": details,
        }

    def save(self, path: str | Path) -> Path:
        """Write the trace to a file for ui.perfetto.dev or chrome://tracing, and return its path.

        Parameters
        ----------
        path : str or Path
            File to write, which is compressed if its name ends with `.gz`.

        Returns
        -------
        Path
            Path of the file.
        """
        target = Path(path)
        data = json.dumps(self.as_dict()).encode()
        target.write_bytes(gzip.compress(data) if target.suffix == ".gz" else data)
        return target

    def summary(self) -> str:
        """Return a table of the kernels as text: launches, times, bytes and bandwidth.

        The bandwidth is relative to that of a streaming copy. A line for each other kind of work
        follows.
        """
        lines = [f"{'launches':>8} {'ms':>10} {'MB':>10} {'GB/s':>7} {'of copy':>8}  kernel"]
        kernels = self.kernels()
        for k in kernels:
            lines.append(
                f"{k.count:>8} {1e3 * k.seconds:>10.3f} {k.nbytes / 1e6:>10.3f} "
                f"{k.rate / 1e9:>7.1f} {k.share:>8.0%}  {k.name}"
            )
        lines.append(f"a streaming copy moves {bandwidth() / 1e9:.1f} GB/s")
        for gpu in dict.fromkeys([k.device for k in kernels if k.device is not None]):
            lines.append(f"a copy inside {gpu} moves {bandwidth(gpu) / 1e9:.1f} GB/s")
        for kind in ("trace", "plan", "compile", "wait", "record"):
            mine = [e for e in self.events if e.kind == kind]
            if mine:
                total = sum(e.seconds for e in mine)
                lines.append(f"{len(mine):>8} {1e3 * total:>10.3f} ms in all: {_PLURALS[kind]}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


_PLURALS = {
    "trace": "functions traced",
    "plan": "plans made",
    "compile": "kernels compiled or read from disk",
    "wait": "waits for work in flight",
    "record": "operations recorded",
}


class _Sited:
    """The attributes of a node that `site_text` needs."""

    def __init__(self, site: Any) -> None:
        self.site = site


def _line(site: Any) -> str:
    return site_text(_Sited(site))  # type: ignore[arg-type]
