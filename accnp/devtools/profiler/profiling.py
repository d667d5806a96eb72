"""The functions of `jax.profiler`, based on `Timeline`.

Traces are written to `<log_dir>/plugins/profile/<time>/`.
"""

from __future__ import annotations

import contextlib
import functools
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Any

from accnp import errors
from accnp.devtools.explain.session import Event, emit
from accnp.devtools.profiler import trace_server as server
from accnp.devtools.profiler.memory_profile import memory_profile
from accnp.devtools.profiler.timeline import Timeline
from accnp.docstrings import filled
from accnp.errors import api_boundary

__all__ = [
    "ProfileOptions", "StepTraceAnnotation", "TraceAnnotation", "annotate_function",
    "device_memory_profile", "save_device_memory_profile", "start_trace", "stop_trace", "trace",
]  # fmt: skip


class ProfileOptions:
    """Options of a trace: `host_tracer_level` below 2 leaves out the recorded operations.

    The other options are those of JAX. They have no effect, and any value is accepted.

    Examples
    --------
    >>> import accnp as jnp
    >>> options = jnp.profiler.ProfileOptions()
    >>> options.host_tracer_level = 1
    """

    def __init__(self) -> None:
        self.host_tracer_level = 2
        self.python_tracer_level = 1
        self.enable_hlo_proto = True
        self.include_dataset_ops = True
        self.raise_error_on_start_failure = False
        self.duration_ms = 0
        self.start_timestamp_ns = 0
        self.repository_path = ""
        self.session_id = ""
        self.advanced_configuration: dict[str, Any] = {}


class _Open:
    """The current trace, if any."""

    timeline: Timeline | None = None
    folder = Path()
    perfetto = False
    link = False


@api_boundary
def start_trace(
    log_dir: str | Path,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Start a trace that `stop_trace` writes to a folder in the format of Chrome and Perfetto.

    Parameters
    ----------
    {log_dir}

    Raises
    ------
    RuntimeError
        If a trace is being recorded already.

    See Also
    --------
    profiler.stop_trace : Write the trace.
    profiler.trace : Record a trace of a `with` block.

    Examples
    --------
    >>> import accnp as jnp, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jnp.profiler.start_trace(folder)
    ...     y = jnp.exp(jnp.ones(3)).block_until_ready()
    ...     jnp.profiler.stop_trace()
    ...     any("trace.json" in p.name for p in pathlib.Path(folder).rglob("*"))
    True
    """
    if _Open.timeline is not None:
        raise RuntimeError(
            f"start_trace: a trace is being taken already; got log_dir {str(log_dir)!r} while one "
            f"for {str(_Open.folder)!r} is open; call stop_trace() first"
        )
    options = profiler_options or ProfileOptions()
    _Open.folder = Path(log_dir)
    _Open.perfetto = create_perfetto_trace or create_perfetto_link
    _Open.link = create_perfetto_link
    server.begin_in_subprocesses()
    _Open.timeline = Timeline(records=options.host_tracer_level >= 2).start()


@api_boundary
def stop_trace() -> None:
    """End the trace and write it, with a summary of the kernels as text.

    Raises
    ------
    RuntimeError
        If no trace is being recorded.

    See Also
    --------
    profiler.start_trace : Start a trace.

    Examples
    --------
    >>> import accnp as jnp, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jnp.profiler.start_trace(folder)
    ...     jnp.profiler.stop_trace()
    """
    timeline = _Open.timeline
    if timeline is None:
        raise RuntimeError("stop_trace: no trace is being taken; call start_trace(log_dir) first")
    _Open.timeline = None
    timeline.stop()
    timeline.add(server.end_in_subprocesses())
    folder = _Open.folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
    folder.mkdir(parents=True, exist_ok=True)
    timeline.save(folder / f"{platform.node() or 'host'}.trace.json.gz")
    (folder / "kernels.txt").write_text(timeline.summary() + "\n", encoding="utf-8")
    if _Open.perfetto:
        written = timeline.save(folder / "perfetto_trace.json.gz")
        if _Open.link:
            print(f"Open {written} in https://ui.perfetto.dev")


@filled
@contextlib.contextmanager
def trace(
    log_dir: str | Path,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Context manager that records a trace of a `with` block and writes it to a folder.

    Parameters
    ----------
    {log_dir}

    Returns
    -------
    context manager
        Writes the trace on exit.

    Raises
    ------
    RuntimeError
        If a trace is being recorded already.

    See Also
    --------
    profiler.start_trace : Start a trace without a `with` block.

    Examples
    --------
    >>> import accnp as jnp, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jnp.profiler.trace(folder):
    ...         y = jnp.exp(jnp.ones(3)).block_until_ready()
    ...     any("trace.json" in p.name for p in pathlib.Path(folder).rglob("*"))
    True
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """Context manager that adds a named span to the timeline.

    Parameters
    ----------
    name : str
        Label of the span.
    **kwargs : object
        Further facts that the timeline shows with the span.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.profiler.profile() as timeline, jnp.profiler.TraceAnnotation("load", batch=3):
    ...     pass
    >>> [e.name for e in timeline.events]
    ['load']
    """

    def __init__(self, name: str, **kwargs: object) -> None:
        self._name = name
        self._metadata = kwargs
        self._start = 0

    def set_metadata(self, **kwargs: Any) -> None:
        """Add metadata."""
        self._metadata |= kwargs

    @staticmethod
    def is_enabled() -> bool:
        """Return whether a trace is being recorded."""
        return _Open.timeline is not None

    def __enter__(self) -> TraceAnnotation:
        self._start = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        metadata = {
            k: v if isinstance(v, (int, float)) else str(v) for k, v in self._metadata.items()
        }
        event = Event("note", self._name, self._start, perf_counter_ns(), metadata=metadata)
        event.line = errors.user_line()
        emit(event)


class StepTraceAnnotation(TraceAnnotation):
    """Context manager that adds one step of a loop to the timeline as a named span.

    Parameters
    ----------
    name : str
        Label of the span.
    **kwargs : object
        Further facts; `step_num` is the number of the step.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.profiler.profile() as timeline:
    ...     for i in range(2):
    ...         with jnp.profiler.StepTraceAnnotation("train", step_num=i):
    ...             pass
    >>> [e.name for e in timeline.events]
    ['train', 'train']
    """

    def __init__(self, name: str, **kwargs: object) -> None:
        super().__init__(name, _r=1, **kwargs)


@api_boundary
def annotate_function(
    func: Callable[..., Any], name: str | None = None, **decorator_kwargs: object
) -> Callable[..., Any]:
    """Decorator that adds each call of a function to the timeline as a named span.

    Parameters
    ----------
    func : callable
        Function to decorate.
    name : str, optional
        Label of the spans. The default is the name of the function.
    **decorator_kwargs : object
        Further facts that the timeline shows with each span.

    Returns
    -------
    callable
        Function with the same results.

    See Also
    --------
    profiler.TraceAnnotation : Add a span for a part of a function.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.profiler.annotate_function
    ... def load():
    ...     return 3
    >>> with jnp.profiler.profile() as timeline:
    ...     n = load()
    >>> [e.name for e in timeline.events]
    ['load']
    """
    shown = name or getattr(func, "__qualname__", None) or func.__name__

    @functools.wraps(func)
    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return call


@api_boundary
def device_memory_profile(backend: str | None = None) -> bytes:
    """Return a profile of the live arrays by the lines that made them, for `pprof`.

    Parameters
    ----------
    backend : str, optional
        Platform whose arrays to count. The default is all of them.

    Returns
    -------
    bytes
        Profile in gzipped protocol buffer format.

    See Also
    --------
    profiler.save_device_memory_profile : Write the profile to a file.
    live_arrays : List the arrays.

    Examples
    --------
    >>> import accnp as jnp, gzip
    >>> len(gzip.decompress(jnp.profiler.device_memory_profile())) > 0
    True
    """
    return memory_profile()


@api_boundary
def save_device_memory_profile(filename: str | Path, backend: str | None = None) -> None:
    """Write a profile of the live arrays to a file for `pprof -top FILE`.

    Parameters
    ----------
    filename : str or Path
        File to write.
    backend : str, optional
        Platform whose arrays to count. The default is all of them.

    See Also
    --------
    profiler.device_memory_profile : Return the profile.

    Examples
    --------
    >>> import accnp as jnp, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jnp.profiler.save_device_memory_profile(folder + "/memory.prof")
    ...     os.listdir(folder)
    ['memory.prof']
    """
    Path(filename).write_bytes(memory_profile())
