"""`jax.profiler.ProfileData`: reads written traces as planes (processes), lines (threads) and
events."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["ProfileData", "ProfileEvent", "ProfilePlane"]


class ProfileEvent:
    """Span of a trace, with the attributes `name`, `start_ns`, `duration_ns`, `end_ns`, `stats`.

    `stats` iterates over pairs of a fact and its value.

    Parameters
    ----------
    event : dict
        Event of the trace file.

    Examples
    --------
    >>> import accnp as jnp
    >>> event = jnp.profiler.ProfileEvent(
    ...     {"name": "sin", "ts": 1.0, "dur": 2.5, "args": {"bytes": 12}}
    ... )
    >>> event.name, event.end_ns, dict(event.stats)
    ('sin', 3500.0, {'bytes': 12})
    """

    def __init__(self, event: dict[str, Any]) -> None:
        self.name: str = event["name"]
        self.start_ns: float = 1e3 * event["ts"]
        self.duration_ns: float = 1e3 * event["dur"]
        self._facts: dict[str, Any] = event.get("args", {})

    @property
    def end_ns(self) -> float:
        """The end of the event."""
        return self.start_ns + self.duration_ns

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """Return names and values of metadata."""
        return iter(self._facts.items())

    def __repr__(self) -> str:
        return f"ProfileEvent({self.name!r}, {self.duration_ns:.0f} ns)"


class ProfileLine:
    """The events of one thread."""

    def __init__(self, name: str, events: list[dict[str, Any]]) -> None:
        self.name = name
        self._events = events

    @property
    def events(self) -> Iterator[ProfileEvent]:
        """The spans in order."""
        return map(ProfileEvent, self._events)


class ProfilePlane:
    """Spans of one process in a trace; `lines` iterates over its threads.

    Parameters
    ----------
    name : str
        Process, as the trace file names it.
    threads : dict
        Events of each thread.
    named : dict
        Name of each thread.

    Examples
    --------
    >>> import accnp as jnp
    >>> event = {"name": "sin", "ts": 1.0, "dur": 2.5}
    >>> plane = jnp.profiler.ProfilePlane("process", {1: [event]}, {1: "main thread"})
    >>> [(line.name, [e.name for e in line.events]) for line in plane.lines]
    [('main thread', ['sin'])]
    """

    def __init__(self, name: str, threads: dict[Any, list[dict[str, Any]]], named: dict) -> None:
        self.name = name
        self._threads = threads
        self._named = named

    @property
    def lines(self) -> Iterator[ProfileLine]:
        """Its threads."""
        return (
            ProfileLine(self._named.get(t, str(t)), events) for t, events in self._threads.items()
        )

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """Return metadata of the process: none."""
        return iter(())


class ProfileData:
    """Trace that `stop_trace` or `Timeline.save` wrote: `ProfileData.from_file(path)`.

    `planes` iterates over the processes.

    Parameters
    ----------
    planes : list of ProfilePlane
        Processes of the trace.

    Examples
    --------
    >>> import accnp as jnp
    >>> import pathlib, tempfile
    >>> with jnp.profiler.profile() as timeline:
    ...     _ = jnp.sin(jnp.ones(3)).block_until_ready()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = timeline.save(pathlib.Path(folder) / "trace.json")
    ...     data = jnp.profiler.ProfileData.from_file(path)
    >>> planes = list(data.planes)
    >>> len(planes) > 0
    True
    """

    def __init__(self, planes: list[ProfilePlane]) -> None:
        self._planes = planes

    @classmethod
    def from_file(cls, path: str | Path) -> ProfileData:
        """Read a file, compressed or not."""
        return cls.from_serialized_xspace(Path(path).read_bytes())

    @classmethod
    def from_serialized_xspace(cls, serialized: bytes) -> ProfileData:
        """Read what is in such a file."""
        data = gzip.decompress(serialized) if serialized[:2] == b"\x1f\x8b" else serialized
        return cls.from_text_proto(data.decode())

    @classmethod
    def from_text_proto(cls, text: str) -> ProfileData:
        """Read its text."""
        names: dict[tuple[str, Any], str] = {}
        processes: dict[Any, dict[Any, list[dict[str, Any]]]] = {}
        for e in json.loads(text)["traceEvents"]:
            if e["ph"] == "M":
                key = (e["name"], (e["pid"], e.get("tid")))
                names[key] = e["args"]["name"]
            elif e["ph"] == "X":
                processes.setdefault(e["pid"], {}).setdefault(e["tid"], []).append(e)
        planes = []
        for pid, threads in processes.items():
            named = {t: names.get(("thread_name", (pid, t)), str(t)) for t in threads}
            name = f"/host:{names.get(('process_name', (pid, None)), '')} {pid}"
            planes.append(ProfilePlane(name, threads, named))
        return cls(planes)

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """The processes."""
        return iter(self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The process of this name, or None."""
        return next((p for p in self._planes if p.name == name), None)
