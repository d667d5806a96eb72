"""Object files on disk: a key and bytes come in; the same bytes come out, in any process.

Entries are written to a temporary file and renamed, carry a checksum of key and bytes, and are
dropped when damaged or under another's name. A folder that cannot be written only costs speed: it
is reported once, in debug mode. Entries are machine code, so they are read only from a folder that
no other user can change (`private_folders.py`), and only from regular files of the same kind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Sequence
from importlib.machinery import PathFinder

import numpy as np

from accnp.runtime.notes import note
from accnp.runtime.private_folders import READ_PRIVATE, is_private_file, private_folder

# `hashlib`, `pathlib` and `importlib.util` take longer to load (10 ms) than all that is done here.
try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_MAGIC = b"ACCNP-OBJECT-3\n"
_HEAD = len(_MAGIC) + 32
_PRUNE_EVERY = 64
_LARGEST = (
    256 << 20
)  # bytes of an entry; a kernel has some 20 kB, and the limit of a folder is 512 MB
_ABANDONED = 3600  # seconds after which a file that is still being written has no writer any more
DEFAULT_LIMIT = 256 << 20
_LIBRARIES = ("numba", "llvmlite")
_NEW = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
_stamps: dict[str, str] = {}


class DiskCache:
    """A folder of checked entries, bounded in size; the oldest by last use go first."""

    def __init__(self, folder: str | os.PathLike[str], limit: int = DEFAULT_LIMIT) -> None:
        self.folder = os.fspath(folder)
        self.limit = limit
        self.damaged = 0
        self._writes = 0
        self._complained = False
        self._private: str | None = None

    @property
    def place(self) -> str:
        """The folder that is used: the given one, or a private one if others can change that one.

        A folder that does not exist yet is checked once it is made.
        """
        if self._private is not None:
            return self._private
        found = private_folder(self.folder)
        if found is None:
            return self.folder
        self._private = found
        return found

    def key(self, identity: tuple[str, ...], machine: str) -> str:
        """The key of a kernel: what it is, for which machine, made by which versions."""
        versions = _stamps.get("versions")
        if versions is None:
            versions = _stamps["versions"] = self._versions()
        return digest("\0".join([machine, versions, *identity]).encode()).hex()

    def _versions(self) -> str:
        """What stands for the files that shape machine code. It is an entry as well, so that they
        are read again only where size, times or place of one have changed."""
        files = _shaping()
        seen = [f"{np.__version__} {os.name}"]
        for file in (*files, *_libraries()):
            s = os.stat(file)
            seen.append(f"{file} {s.st_ino} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns}")
        place = f"versions-{digest(chr(0).join(seen).encode()).hex()}"
        known = self.get(place)
        if known is None:
            known = _version_stamp(files).encode()
            self.put(place, known)
        return known.decode()

    def path(self, key: str) -> str:
        """Where the entry of a key lies."""
        return os.path.join(self.place, f"{key}.obj")

    def get(self, key: str) -> bytes | None:
        """The bytes stored under a key, or None; a damaged entry is removed."""
        path = self.path(key)
        if self._private is None:
            return None
        try:
            raw = _read_private(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):  # a link, a socket
                self._complain("read", error)
                return None
            raw = None
        if raw is None:
            self.drop(key)
            return None
        data = raw[_HEAD:]
        if raw[: len(_MAGIC)] != _MAGIC or digest(key.encode() + data) != raw[15:_HEAD]:
            self.drop(key)
            return None
        with contextlib.suppress(OSError):  # mark as used; a read-only cache still serves
            os.utime(path)
        return data

    def drop(self, key: str) -> None:
        """Remove an entry that cannot be used."""
        self.damaged += 1
        note(f"disk cache: dropped the damaged entry {key[:12]}")
        with contextlib.suppress(OSError):
            os.unlink(self.path(key))

    def put(self, key: str, data: bytes) -> bool:
        """Store bytes under a key; False when the folder cannot take them."""
        temporary = None
        try:
            os.makedirs(self._private or self.folder, mode=0o700, exist_ok=True)
            self._private = None  # it may be a new folder: check it again
            place = self.place
            # Not by `tempfile`, which takes 3 ms to load. The name is new: the file is made here.
            name = os.path.join(place, f".new-{os.urandom(8).hex()}")
            handle = os.open(name, _NEW, 0o600)
            temporary = name
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + digest(key.encode() + data) + data)
            os.replace(temporary, self.path(key))
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            self._complain("write", error)
            return False
        self._writes += 1
        if self._writes % _PRUNE_EVERY == 1:
            self.prune()
        return True

    def prune(self) -> int:
        """Remove the entries longest unused until the folder is well below its limit, and what
        writers that were killed left; returns how many files were removed."""
        found: list[tuple[float, int, str]] = []
        removed = 0
        place = self.place
        if self._private is None:
            return 0
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    # The folder may be shared with other programs' files.
                    writing = entry.name.startswith(".new-")
                    if not entry.name.endswith(".obj") and not writing:
                        continue
                    with contextlib.suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if writing and status.st_mtime < time.time() - _ABANDONED:
                            os.unlink(entry.path)
                            removed += 1
                        else:
                            found.append((status.st_mtime, status.st_size, entry.path))
        except OSError:
            return 0
        total = sum(size for _, size, _ in found)
        if total > self.limit:
            for _, size, path in sorted(found):
                if total <= self.limit * 3 // 4:
                    break
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    removed += 1
                total -= size
        return removed

    def _complain(self, what: str, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            note(f"disk cache: cannot {what} {self.folder}: {error}; kernels compile each time")


def _read_private(path: str) -> bytes | None:
    """The bytes of a file, or None if another user could have written it, or if it is no regular
    file or too large. A FIFO does not block, and links are not followed (OSError).
    """
    handle = os.open(path, READ_PRIVATE)
    try:
        status = os.fstat(handle)
        if not is_private_file(status) or status.st_size > _LARGEST:
            return None
        return os.read(handle, status.st_size)
    finally:
        os.close(handle)


def digest(data: bytes) -> bytes:
    """32 bytes that stand for any."""
    return blake2b(data, digest_size=32).digest()


def compiler_stamp(cache: DiskCache | None = None) -> str:
    """What stands for the source of the compiler alone, whatever the versions of its libraries.

    A cache keeps it with what it keeps of the versions.
    """
    found = _stamps.get("compiler")
    if found is None:
        if cache is not None:
            cache.key((), "")
            found = _stamps["versions"].split()[1]
        else:
            found = _digest_of(_shaping())
        _stamps["compiler"] = found
    return found


def _shaping() -> list[str]:
    """The files of the compiler, which shape machine code beside a kernel's source."""
    here = os.path.dirname(os.path.abspath(__file__))
    modules = ("frontend", "direct", "lanes", "lean", "syntax", "objects")
    modules += ("independent", "inline", "sharing", "stepwise")
    modules += ("ptx", "ptx_text", "user_cuda", "user_device", "user_key")
    parts = [os.path.join(here, f"{name}.py") for name in modules]
    for package in ("kernels", "compiler"):
        for folder, _, names in os.walk(os.path.join(os.path.dirname(here), package)):
            parts += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(filter(os.path.exists, parts))


def _libraries() -> list[str]:
    """The files with the versions of its libraries: importing Numba for its own takes 0.4 s."""
    found = [PathFinder.find_spec(library) for library in _LIBRARIES]
    places = [os.path.dirname(spec.origin) for spec in found if spec and spec.origin]
    return sorted(filter(os.path.exists, [os.path.join(p, "_version.py") for p in places]))


def _version_stamp(files: Sequence[str]) -> str:
    """What stands for all versions, and for the compiler alone."""
    own = _digest_of(files)
    whole = digest(f"{np.__version__} {os.name} {own} {_digest_of(_libraries())}".encode())
    return f"{whole.hex()} {own}"


def _digest_of(files: Sequence[str]) -> str:
    texts: list[bytes] = []
    for part in files:
        with contextlib.suppress(OSError), open(part, "rb") as file:
            texts += [os.path.basename(part).encode(), file.read()]
    return digest(b"\0".join(texts)).hex()
