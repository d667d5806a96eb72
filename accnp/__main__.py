"""`python -m accnp info`: what accnp found on this machine. In: the command line. Out: text.

The exit status is 2 for an unknown command.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import accnp
from accnp.config import OPTIONS, config
from accnp.engine.describe import bytes_text
from accnp.runtime import compile as kernels
from accnp.runtime.diskcache import DiskCache

__all__ = ["info", "main"]

USAGE = """usage: python -m accnp COMMAND

commands:
    info          the machine, threads, vectors, BLAS, the kernel cache, versions
    clear-cache   remove the compiled kernels from the disk
"""
_LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "ml_dtypes")


def info() -> str:
    """Return what `python -m accnp info` prints."""
    sections: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("machine", _machine),
        ("linear algebra", _blas),
        ("kernel cache", _cache),
        ("options that differ from their defaults", _options),
        ("versions", _versions),
    ]
    lines = []
    for title, find in sections:
        lines.append(title)
        lines += [f"    {name:<18} {value}" for name, value in find().items()]
    return "\n".join(lines)


def _machine() -> dict[str, Any]:
    objects = kernels._objects()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": f"{_model()} (LLVM: {objects.CPU})",
        "cores": f"{cores} usable of {os.cpu_count()}",
        "threads": f"{config.threads} for one kernel (ACCNP_THREADS)",
        "vectors": f"{_vector_bits(objects)} bits",
        "memory": _memory(),
        "devices": ", ".join(map(str, accnp.devices())),
    }


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


def _blas() -> dict[str, Any]:
    found: Any = np.show_config(mode="dicts")
    parts = found.get("Build Dependencies", {}) if isinstance(found, dict) else {}
    out = {}
    for kind in ("blas", "lapack"):
        part = parts.get(kind, {})
        out[kind] = (
            f"{part.get('name', 'unknown')} {part.get('version', '')}, through NumPy".strip()
        )
    return out


def _cache() -> dict[str, Any]:
    folder = config.cache_dir
    if not folder or not config.enable_compilation_cache:
        return {"folder": "switched off"}
    files = list(Path(folder).glob("*.obj")) if Path(folder).is_dir() else []
    size = sum(f.stat().st_size for f in files)
    return {
        "folder": folder,
        "kernels": len(files),
        "size": f"{bytes_text(size)} of at most {bytes_text(config.cache_max_bytes)}",
    }


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
    """Remove the kernels that lie on disk; returns what was done."""
    folder = config.cache_dir
    if not folder or not Path(folder).is_dir():
        return "there is no kernel cache to clear"
    n = DiskCache(folder, 0).prune()
    return f"removed {n} files from {folder}"


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit status."""
    if list(arguments) == ["info"]:
        print(info())
        return 0
    if list(arguments) == ["clear-cache"]:
        print(clear_cache())
        return 0
    helping = not arguments or arguments[0] in ("-h", "--help", "help")
    print(USAGE, end="", file=sys.stdout if helping else sys.stderr)
    return 0 if helping else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
