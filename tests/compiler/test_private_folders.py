"""The disk cache loads only what the current user wrote, where no other user can write."""

import os
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from accnp.compiler import disk_cache, private_folders, processor
from accnp.compiler.disk_cache import DiskCache
from accnp.compiler.private_folders import private_folder

KEY = "0" * 64
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def instead(tmp_path, monkeypatch):
    """Where private folders are made in place of others."""
    folder = tmp_path / "temporary"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(private_folders, "_instead", {})
    return folder


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o720])
def test_a_folder_that_others_can_write_to_is_not_read(tmp_path, instead, mode):
    folder = tmp_path / "cache"
    planted = DiskCache(folder)
    assert planted.put(KEY, b"planted")
    folder.chmod(mode)
    cache = DiskCache(folder)
    with pytest.warns(RuntimeWarning, match="other users can write to it"):
        assert cache.get(KEY) is None
    assert cache.put(KEY, b"own")
    assert cache.get(KEY) == b"own"
    assert Path(cache.place).parent == instead
    assert Path(cache.place).stat().st_mode & 0o777 == 0o700
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is reported once
        assert DiskCache(folder).get(KEY) == b"own"
    assert [p.name for p in folder.iterdir()] == [f"{KEY}.obj"]


def test_a_folder_of_another_user_is_not_read(tmp_path, instead, monkeypatch):
    folder = tmp_path / "cache"
    assert DiskCache(folder).put(KEY, b"planted")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {me}"):
        assert DiskCache(folder).get(KEY) is None


def test_parents_that_others_can_write_to(tmp_path, instead):
    above = tmp_path / "above"
    folder = above / "deep" / "cache"
    assert DiskCache(folder).put(KEY, b"code")
    above.chmod(0o1777)  # as /tmp: only owners can replace what is there
    assert DiskCache(folder).get(KEY) == b"code"
    above.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="other users can replace it in"):
        assert DiskCache(folder).get(KEY) is None


def test_the_parents_of_the_target_of_a_link_count(tmp_path, instead):
    target = tmp_path / "shared" / "cache"
    assert DiskCache(target).put(KEY, b"code")
    (tmp_path / "link").symlink_to(target)
    assert DiskCache(tmp_path / "link").get(KEY) == b"code"
    target.parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="can replace it"):
        assert DiskCache(tmp_path / "link").get(KEY) is None


def test_a_new_folder_is_checked_before_it_is_read(tmp_path, instead):
    tmp_path.chmod(0o777)
    cache = DiskCache(tmp_path / "new")
    assert cache.get(KEY) is None
    with pytest.warns(RuntimeWarning, match="can replace it"):
        assert cache.put(KEY, b"code")
    assert not list((tmp_path / "new").iterdir())
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("taken", ["by a file", "by a folder that others can write to"])
def test_the_name_of_the_private_folder_may_be_taken(tmp_path, instead, taken):
    name = instead / f"accnp-cache-{os.geteuid()}"
    if taken == "by a file":
        name.write_text("")
    else:
        name.mkdir()
        name.chmod(0o777)
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="kernels are kept in"):
        private = private_folder(str(folder))
    assert private is not None
    assert private != str(name)
    assert os.stat(private).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["fifo", "link", "endless link", "writable", "socket", "large"])
def test_entries_that_are_no_private_files_are_dropped(tmp_path, monkeypatch, kind):
    cache = DiskCache(tmp_path)
    assert cache.put(KEY, b"code")
    entry = Path(cache.path(KEY))
    if kind == "writable":
        entry.chmod(0o666)
    elif kind == "large":
        monkeypatch.setattr(disk_cache, "_LARGEST", 10)
    elif kind == "socket":
        entry.unlink()
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(entry.name)
    else:
        whole = tmp_path / "elsewhere"
        entry.rename(whole)
        if kind == "fifo":
            os.mkfifo(entry)
        else:
            entry.symlink_to(whole if kind == "link" else "/dev/zero")
    assert cache.get(KEY) is None
    assert not os.path.lexists(entry)
    monkeypatch.undo()
    assert cache.put(KEY, b"again")
    assert cache.get(KEY) == b"again"


def test_an_entry_of_another_user_is_dropped(tmp_path, monkeypatch):
    cache = DiskCache(tmp_path)
    assert cache.put(KEY, b"code")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert cache.get(KEY) is None


def test_files_of_killed_writers_are_removed(tmp_path):
    cache = DiskCache(tmp_path)
    assert cache.put(KEY, b"code")
    old, new, other = (tmp_path / name for name in (".new-old", ".new-new", "theirs"))
    for path in (old, new, other):
        path.write_bytes(b"")
    past = time.time() - 10_000
    for path in (old, other):
        os.utime(path, (past, past))
    assert DiskCache(tmp_path).prune() == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [f"{KEY}.obj", ".new-new", "theirs"]
    )


def test_relative_values_of_xdg_cache_home_are_ignored(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "ACCNP_CACHE_DIR"}
    code = "from accnp.config import config; print(config.cache_dir)"
    for cache_home in ("cache", "./x", "..", ""):
        process = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, "HOME": str(tmp_path), "XDG_CACHE_HOME": cache_home},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert process.stdout.strip() == str(tmp_path / ".cache" / "accnp")


def test_cache_key_contains_cpuid_features():
    """What LLVM reads for its choice of instructions, and the width of vectors, agree with it."""
    llvm = pytest.importorskip("llvmlite.binding")
    features = llvm.get_host_cpu_features()
    assert bool(features.get("avx512f")) == processor.WIDE
    if processor.MACHINE != "x86_64":
        return  # another architecture
    leaves = dict(text.split(":") for text in processor._describe_processor().features[1:])
    ecx = int(leaves["1.0"].split("-")[1], 16)
    ebx = int(leaves["7.0"].split("-")[0], 16)
    for name, word, bit in (
        ("sse3", ecx, 0), ("ssse3", ecx, 9), ("sse4.1", ecx, 19), ("sse4.2", ecx, 20),
        ("popcnt", ecx, 23), ("bmi", ebx, 3), ("bmi2", ebx, 8), ("adx", ebx, 19),
    ):  # fmt: skip
        assert bool(word >> bit & 1) == bool(features.get(name)), name
    assert all(text in processor.STAMP for text in processor._describe_processor().features)
