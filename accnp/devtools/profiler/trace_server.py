"""HTTP server for traces of a running process, and of processes that it has started.

`GET /trace?duration_ms=1000` returns a trace; `/start` and `/stop` record one of any length. The
server listens on localhost only.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from accnp.devtools.profiler.timeline import Timeline
from accnp.errors import api_boundary

__all__ = [
    "begin_in_subprocesses", "end_in_subprocesses", "register_subprocess", "start_server",
    "stop_server",
]  # fmt: skip

_servers: list[Any] = []
_subprocesses: dict[int, int] = {}  # pid: port


@api_boundary
def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server that records traces of this process on request.

    It listens on this machine only.

    Parameters
    ----------
    port : int
        Port to listen on; 0 for any free one.
    requires_backend : bool, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    server
        Object whose attribute `port` is the port.

    Raises
    ------
    ValueError
        If there is a server already.

    See Also
    --------
    profiler.stop_server : Stop the server.
    """
    if _servers:
        raise ValueError(
            f"start_server: only one profiler server can be active; got port {port} while port "
            f"{_servers[0].port} is served; call stop_server() first"
        )
    import http.server  # takes 20 ms, so imported on demand

    class Handler(http.server.BaseHTTPRequestHandler):
        timeline: Timeline | None = None

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            kind = type(self)
            if path == "/trace":
                _, _, duration = query.partition("duration_ms=")
                with Timeline() as timeline:
                    time.sleep(float(duration or 1000) / 1000)
                self.answer(timeline.as_dict())
            elif path == "/start" and kind.timeline is None:
                kind.timeline = Timeline().start()
                self.answer({})
            elif path == "/stop" and kind.timeline is not None:
                timeline, kind.timeline = kind.timeline.stop(), None
                self.answer(timeline.as_dict())
            else:
                self.send_error(404)

        def answer(self, what: dict[str, Any]) -> None:
            data = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass  # do not write to the program's standard error

    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, name="accnp-profiler", daemon=True).start()
    _servers.append(server)
    return server


@api_boundary
def stop_server() -> None:
    """Stop the server that `start_server` started.

    Raises
    ------
    ValueError
        If no server is running.

    See Also
    --------
    profiler.start_server : Start a server.
    """
    if not _servers:
        raise ValueError("stop_server: no profiler server is active; call start_server(port) first")
    server = _servers.pop()
    server.shutdown()
    server.server_close()


@api_boundary
def register_subprocess(pid: int, port: int) -> None:
    """Include the traces of another process in those of this server.

    Parameters
    ----------
    pid : int
        Process identifier of the operating system.
    port : int
        Port that the process gave to `start_server`.

    See Also
    --------
    profiler.start_server : Start a server.
    """
    _subprocesses[pid] = port


def begin_in_subprocesses() -> None:
    """Start a trace in each registered process that answers."""
    for port in _subprocesses.values():
        _request(port, "start")


def end_in_subprocesses() -> list[dict[str, Any]]:
    """Stop these traces and return their events."""
    events = []
    for port in _subprocesses.values():
        events += _request(port, "stop").get("traceEvents", [])
    return events


def _request(port: int, what: str) -> dict[str, Any]:
    import urllib.request  # takes 30 ms, so imported on demand

    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}", timeout=30) as answer:
            return json.load(answer)
    except OSError:  # it has ended
        return {}
