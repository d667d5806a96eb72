"""The disk cache: warm starts without Numba, damage, unwritable folders, bounds, two processes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accnp.compiler import disk_cache
from accnp.compiler.disk_cache import DiskCache

BY_LLVM = True

ROOT = Path(__file__).resolve().parents[2]
KEY = "0" * 64

PROGRAM = """
import json, sys
from accnp.compiler import kernel_cache as compiling
from accnp.runtime import buffer
import numpy as np

source = '''
def kernel(lo, hi, x, o):
    for i in range(lo, hi):
        o[i] = x[i] * x[i]
'''
kernel = compiling.get_kernel(source, "kernel", ("f4*", "f4*"))
x = np.arange(10, dtype=np.float32)
out = np.zeros_like(x)
kernel.run(compiling.pack([x.ctypes.data, out.ctypes.data]), 10, 10)
assert (out == x * x).all()
loaded = [name for name in sys.modules if name.split(".")[0] in ("llvmlite", "numba")]
counts = {"compiler": len(loaded), "origin": kernel.origin}
print(json.dumps({**counts, **compiling.counters.as_dict()}))
"""


def start(folder, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "ACCNP_CACHE_DIR": str(folder), "ACCNP_DEBUG": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return json.loads(out), error


def test_a_second_process_neither_compiles_nor_imports_a_compiler(tmp_path):
    first, _ = finish(start(tmp_path))
    assert (first["origin"], first["compiles"], first["disk_hits"]) == ("compiled", 1, 0)
    assert first["compiler"] > 0
    second, _ = finish(start(tmp_path))
    assert (second["origin"], second["compiles"], second["disk_hits"]) == ("disk", 0, 1)
    assert second["compiler"] == 0


def test_damaged_and_foreign_entries_are_rebuilt(tmp_path):
    finish(start(tmp_path))
    # The kernel's entry; the other one holds the launch functions, which need the interpreter.
    kernels = [p for p in tmp_path.glob("*.obj") if not p.name.startswith("versions")]
    entry = next(p for p in kernels if b"PyLong_AsLongLong" not in p.read_bytes())
    whole = entry.read_bytes()
    cache = DiskCache(tmp_path)
    # Cut, flipped, and a right checksum over something that is no object file.
    for damage in ("cut", "flip", "foreign"):
        if damage == "cut":
            entry.write_bytes(whole[: len(whole) // 2])
        elif damage == "flip":
            entry.write_bytes(whole[:200] + bytes([whole[200] ^ 255]) + whole[201:])
        else:
            cache.put(entry.stem, b"not an object file")
        result, _ = finish(start(tmp_path))
        assert result["compiles"] == 1, damage
        assert entry.read_bytes() == whole, damage


@pytest.mark.parametrize("kind", ["file in the way", "full device"])
def test_an_unusable_folder_is_reported_once_and_only_in_debug_mode(tmp_path, kind):
    if kind == "full device":
        folder = Path("/proc/accnp")  # no user can write here
    else:
        folder = tmp_path / "file" / "cache"
        (tmp_path / "file").write_text("")
    result, error = finish(start(folder))
    assert result["compiles"] == 1
    assert error == ""
    result, error = finish(start(folder, ACCNP_DEBUG="1"))
    assert error.count("disk cache: cannot") == 1


def test_files_that_shape_machine_code_are_read_when_they_change(tmp_path, monkeypatch):
    file, read = tmp_path / "lower.py", []
    monkeypatch.setattr(disk_cache, "_compiler_files", lambda: [str(file)])
    stamp = disk_cache._version_stamp
    monkeypatch.setattr(disk_cache, "_version_stamp", lambda files: read.append(1) or stamp(files))

    def key():  # as a new process has it
        monkeypatch.setattr(disk_cache, "_stamps", {})
        return DiskCache(tmp_path / "cache").key(("kernel",), "machine")

    file.write_text("old")
    first = key()
    assert key() == first
    assert len(read) == 1
    os.utime(file)  # another time, the same text
    assert key() == first
    assert len(read) == 2
    file.write_text("new")
    assert key() != first
    assert len(read) == 3


def test_two_processes_at_once(tmp_path):
    processes = [start(tmp_path) for _ in range(2)]
    for process in processes:
        finish(process)
    assert {path.suffix for path in tmp_path.iterdir()} == {".obj"}
    assert finish(start(tmp_path))[0]["origin"] == "disk"


def test_entries_round_trip_and_damage_is_counted(tmp_path):
    cache = DiskCache(tmp_path / "deep" / "er")
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"code" * 100)
    assert cache.get(KEY) == b"code" * 100
    Path(cache.path(KEY)).write_bytes(b"")
    assert cache.get(KEY) is None
    assert cache.damaged == 1
    assert not Path(cache.path(KEY)).exists()


def test_least_recently_used_entries_are_pruned_first(tmp_path):
    cache = DiskCache(tmp_path, limit=10_000)
    now = time.time()
    for number in range(20):
        name = f"{number:064d}"
        cache.put(name, bytes(1000))
        os.utime(cache.path(name), (now - 1000 + number, now - 1000 + number))
    cache.get(f"{0:064d}")
    assert cache.prune() > 0
    left = {path.stem for path in tmp_path.iterdir()}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10_000
    assert f"{0:064d}" in left, "a used entry went before unused ones"
    assert f"{19:064d}" in left
    assert f"{1:064d}" not in left


def test_writing_prunes_by_itself(tmp_path):
    cache = DiskCache(tmp_path, limit=5_000)
    for number in range(200):
        cache.put(f"{number:064d}", bytes(1000))
    assert len(list(tmp_path.iterdir())) < 100


def test_an_entry_under_the_name_of_another_is_dropped(tmp_path):
    cache = DiskCache(tmp_path)
    other = "1" * 64
    cache.put(KEY, b"code")
    cache.put(other, b"other code")
    Path(cache.path(KEY)).write_bytes(Path(cache.path(other)).read_bytes())
    assert cache.get(KEY) is None
    assert cache.get(other) == b"other code"


def test_the_stamp_covers_the_files_that_shape_machine_code():
    """Not those that write the texts of kernels, which are a part of the key."""
    folder = Path(disk_cache.__file__).parent
    files = {Path(x).relative_to(folder).as_posix() for x in disk_cache._compiler_files()}
    assert {"llvm/lower.py", "llvm/scalars/gemm.py", "library/library.py", "pipeline.py"} <= files
    written = ("fusion/", "library/sorts/", "library/linalg/", "library/writing/")
    assert not [x for x in files if x.startswith(written)]
