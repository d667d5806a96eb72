"""The commands `accnp` and `python -m accnp`: system information, benchmarks, cache, documentation.

Input: the arguments of the command line. Output: text, and an exit status, which is 2 for an
unknown command or name.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import platform
import pydoc
import re
import shutil
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

import accnp
from accnp._native import COMPILED
from accnp.caches import caches
from accnp.compiler import kernel_cache, processor
from accnp.compiler.disk_cache import DiskCache
from accnp.compiler.library import prebuilt
from accnp.config import OPTIONS, config
from accnp.engine.describe import bytes_text
from accnp.lazy_imports import imported

__all__ = ["clear_cache", "documentation", "info", "main"]

USAGE = """usage: accnp COMMAND    (or python -m accnp COMMAND)

commands:
    info          show the machine, threads, vectors, caches, BLAS, kernel cache, GPU, versions
    bench         compare accnp with other installed libraries on a dozen expressions (--help)
    clear-cache   remove the compiled kernels from the disk
    docs [NAME]   open the documentation, or print that of a name (docs lax.scan), or of an
                  error (docs errors.UnexpectedTracerError)
    --version     print the version
    --help        print this message
"""
_LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "ml_dtypes", "threadpoolctl")


def info() -> str:
    """Return what `python -m accnp info` prints."""
    sections: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("machine", _machine),
        ("caches", _caches),
        ("linear algebra", _blas),
        ("GPU", _gpu),
        ("kernel cache", _cache),
        ("caches in memory", _memory_caches),
        ("options that differ from their defaults", _options),
        ("versions", _versions),
    ]
    lines = []
    for title, find in sections:
        lines.append(title)
        lines += [f"    {name:<18} {value}" for name, value in find().items()]
    return "\n".join(lines)


def _machine() -> dict[str, Any]:
    objects = kernel_cache._objects()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": f"{_model()} (LLVM: {objects.CPU})",
        "cores": f"{cores} usable of {os.cpu_count()}",
        "threads": f"{config.threads}, of kernels and BLAS (ACCNP_THREADS)",
        "vectors": f"{_vector_bits(objects)} bits",
        "library kernels": _library_kernels(),
        "memory": _memory(),
        "hot path": "C extension" if COMPILED else "Python (no extension, or ACCNP_NATIVE=0)",
        "devices": _devices(None),
    }


def _library_kernels() -> str:
    count = prebuilt.count()
    if not count:
        return "compiled on first use"
    return f"{count}, compiled in advance for {processor.LEVEL}"


def _model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _vector_bits(objects: Any) -> int:
    features = f",{objects.FEATURES},"
    if ",+avx512f," in features:
        return 512
    return 256 if ",+avx," in features else 128


def _memory() -> str:
    try:
        return bytes_text(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return "unknown"


def _caches() -> dict[str, Any]:
    """Return the caches of one CPU, as Linux describes them."""
    out = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size, shared = (
                (folder / name).read_text().strip()
                for name in ("level", "type", "size", "shared_cpu_list")
            )
        except OSError:
            continue
        out[f"L{level} {kind.lower()}"] = f"{size}, shared by CPUs {shared}"
    return out or {"unknown": ""}


def _devices(backend: str | None) -> str:
    """Return the devices of a backend, or the reason why it has none."""
    try:
        return ", ".join(map(str, accnp.devices(backend)))
    except RuntimeError as error:
        return str(error).partition("not available: ")[2] or str(error)


def _gpu() -> dict[str, Any]:
    return {"devices": _devices("gpu")} | _query_nvidia_smi()


def _query_nvidia_smi() -> dict[str, Any]:
    """Return the GPUs that nvidia-smi lists."""
    executable = shutil.which("nvidia-smi")
    if executable is None:
        return {"nvidia-smi": "not installed"}
    query = [executable, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return {"nvidia-smi": "does not respond"}
    lines = done.stdout.strip().splitlines() if done.returncode == 0 else []
    return {str(i): line for i, line in enumerate(lines)} or {"nvidia-smi": "finds no GPU"}


def _blas() -> dict[str, Any]:
    build_config: Any = np.show_config(mode="dicts")
    parts = build_config.get("Build Dependencies", {}) if isinstance(build_config, dict) else {}
    out = {}
    for kind in ("blas", "lapack"):
        part = parts.get(kind, {})
        out[kind] = (
            f"{part.get('name', 'unknown')} {part.get('version', '')}, through NumPy".strip()
        )
    for i, library in enumerate(threadpoolctl.threadpool_info()):
        if library["user_api"] == "blas":
            kind = f"{library.get('architecture', '')} kernels".strip()
            out[f"library {i}"] = (
                f"{library['internal_api']} {library['version']}, {kind}, "
                f"{library['num_threads']} threads"
            )
    return out


def _cache() -> dict[str, Any]:
    folder = config.cache_dir
    if not folder or not config.enable_compilation_cache:
        return {"folder": "disabled"}
    files = list(Path(folder).glob("*.obj")) if Path(folder).is_dir() else []
    size = sum(f.stat().st_size for f in files)
    return {
        "folder": folder,
        "kernels": len(files),
        "size": f"{bytes_text(size)} of at most {bytes_text(config.cache_max_bytes)}",
    }


def _memory_caches() -> dict[str, Any]:
    """Return the bounds of the caches of a process, and the options that change them."""
    out: dict[str, Any] = {}
    for name, cache in sorted(caches.items()):
        bound = accnp.memory_stats()[name]["bound"]
        if bound is None:
            out[name] = cache.what
            continue
        most = bytes_text(bound) if cache.in_bytes else f"{bound} entries"
        out[name] = f"at most {most} ({cache.option}): {cache.what}"
    return out


def _options() -> dict[str, Any]:
    computed = ("threads", "cache_dir")
    changed = {
        name: value
        for name, value in config.values().items()
        if value != OPTIONS[name].default and name not in computed
    }
    return changed or {"none": ""}


def _versions() -> dict[str, Any]:
    out = {"accnp": accnp.__version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            out[name] = "not installed"
    return out


def clear_cache() -> str:
    """Remove the compiled kernels from the disk; returns a message."""
    folder = config.cache_dir
    if not folder or not Path(folder).is_dir():
        return "there is no kernel cache to clear"
    cache = DiskCache(folder, 0)
    return f"removed {cache.prune()} files from {cache.place}"


def documentation() -> str:
    """Return the address or the path of the documentation; "" if neither is known.

    The address is the project URL "Documentation" of the installed package. A source checkout has
    the folder `docs`, with the site in it if that was built.
    """
    try:
        links = importlib.metadata.metadata("accnp").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        links = []
    for link in links:
        label, _, address = link.partition(",")
        if label.strip().lower() == "documentation":
            return address.strip()
    folder = Path(accnp.__file__).parent.parent / "docs"
    site = folder / "_build" / "html" / "index.html"
    paths = [str(place) for place in (site, folder) if place.exists()]
    return paths[0] if paths else ""


def _docs(names: Sequence[str]) -> int:
    """Open the documentation, or print the documentation of the named functions and classes."""
    if not names:
        place = documentation()
        print(place or "the address of the documentation is unknown; try: accnp docs NAME")
        if place and sys.stdout.isatty():
            webbrowser.open(place if "://" in place else Path(place).as_uri())
        return 0 if place else 1
    for name in names:
        target: Any = accnp
        path = re.sub(r"^(accnp|jnp|jax)\.", "", name)  # prefixes in programs and error messages
        try:
            for part in path.split("."):
                target = getattr(target, part)
        except AttributeError as error:
            print(f"accnp docs: {error}", file=sys.stderr)
            return 2
        if isinstance(target, type) and issubclass(target, BaseException):
            print(_error_page(path, target))
        else:
            print(pydoc.plain(pydoc.render_doc(target, f"accnp.{path}: %s")))
    return 0


def _error_page(path: str, error: type[BaseException]) -> str:
    """Return the documentation of an error class (cause, fix, example) without its methods."""
    title = f"accnp.{path}"
    bases = ", ".join(base.__name__ for base in error.__mro__[1:-3])
    return f"{title}\n{'=' * len(title)}\n\nBases: {bases}\n\n{inspect.getdoc(error)}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default that of the command line, and return the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        status = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # for example `accnp docs lax.scan | head`
        # The interpreter flushes the stream once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _run(words: list[str]) -> int:
    """Run a command and return the exit status."""
    match words:
        case ["info"]:
            print(info())
        case ["clear-cache"]:
            print(clear_cache())
        case ["--version" | "-V" | "version"]:
            print(f"accnp {accnp.__version__}")
        case ["docs", *names]:
            return _docs(names)
        case ["bench", *options]:
            # Imported by name, because only this command needs argparse and the benchmarks.
            return imported("accnp.bench.command").main(options)
        case [] | ["-h" | "--help" | "help"]:
            print(USAGE, end="")
        case _:
            print(f"accnp: unknown command: {' '.join(words)}\n\n{USAGE}", end="", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
