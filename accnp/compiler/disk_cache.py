"""Keep object files and PTX on disk, so that later processes need not compile the same kernels.

`kernel_cache.py`, `ptx.py` and `numba/user_cuda.py` store bytes under a key, and read them back in
any process. An entry is written to a temporary file, which is then renamed. It contains a checksum
of key and bytes, and damaged or renamed entries are removed. If the folder is not writable, kernels
are compiled in each process, and debug mode reports it once. Entries are machine code, so they are
read only from folders and regular files that no other user can change (`private_folders.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Sequence
from importlib.machinery import PathFinder

import numpy as np

from accnp.compiler.private_folders import READ_PRIVATE, is_private_file, private_folder
from accnp.debug_log import note
from accnp.forks import renewed

# `hashlib`, `pathlib` and `importlib.util` take 10 ms to load, longer than all work done here.
try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_MAGIC = b"ACCNP-OBJECT-3\n"
_HEAD = len(_MAGIC) + 32
_PRUNE_EVERY = 64
_LARGEST = 256 << 20  # bytes of an entry; a kernel has some 20 kB
_ABANDONED = 3600  # seconds after which the writer of a temporary file must have been killed
DEFAULT_LIMIT = 256 << 20
_LIBRARIES = ("numba", "llvmlite")
_NEW = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
_stamps: dict[str, str] = {}
_stamping = renewed(threading.Lock())


class DiskCache:
    """A folder of entries with checksums, bounded in size; the least recently used go first."""

    def __init__(self, folder: str | os.PathLike[str], limit: int = DEFAULT_LIMIT) -> None:
        self.folder = os.fspath(folder)
        self.limit = limit
        self.damaged = 0
        self._writes = 0
        self._complained = False
        self._private: str | None = None

    @property
    def place(self) -> str:
        """The folder in use: the given one, or a private one if other users can change that one.

        A folder that does not exist yet is checked when it has been made.
        """
        if self._private is not None:
            return self._private
        folder = private_folder(self.folder)
        if folder is None:
            return self.folder
        self._private = folder
        return folder

    def key(self, identity: tuple[str, ...], machine: str) -> str:
        """Return the key of a kernel: a digest of its identity, the machine and the versions."""
        versions = _stamps.get("versions")
        if versions is None:
            with _stamping:  # several threads would read the same files
                versions = _stamps.get("versions") or self._versions()
                _stamps["versions"] = versions
        return digest("\0".join([machine, versions, *identity]).encode()).hex()

    def _versions(self) -> str:
        """Return the stamp of the files on which machine code depends. The stamp is an entry of the
        cache as well, so the files are read again only if the size, a time or the path of one has
        changed."""
        files = _compiler_files()
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
        """Return the path of the entry of a key."""
        return os.path.join(self.place, f"{key}.obj")

    def get(self, key: str) -> bytes | None:
        """Return the bytes stored under a key, or None. A damaged entry is removed."""
        path = self.path(key)
        if self._private is None:
            return None
        try:
            raw = _read_private(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):  # a link, a socket
                self._report_error("read", error)
                return None
            raw = None
        if raw is None:
            self.drop(key)
            return None
        data = raw[_HEAD:]
        if raw[: len(_MAGIC)] != _MAGIC or digest(key.encode() + data) != raw[15:_HEAD]:
            self.drop(key)
            return None
        with contextlib.suppress(OSError):  # mark as used; this fails in a read-only cache
            os.utime(path)
        return data

    def drop(self, key: str) -> None:
        """Remove an entry that cannot be used."""
        self.damaged += 1
        note(f"disk cache: dropped the damaged entry {key[:12]}")
        with contextlib.suppress(OSError):
            os.unlink(self.path(key))

    def put(self, key: str, data: bytes) -> bool:
        """Store bytes under a key. Returns False if the folder is not writable."""
        temporary = None
        try:
            os.makedirs(self._private or self.folder, mode=0o700, exist_ok=True)
            self._private = None  # it may be a new folder: check it again
            place = self.place
            # `tempfile` would take 3 ms to load. O_EXCL makes sure that this process made the file.
            name = os.path.join(place, f".new-{os.urandom(8).hex()}")
            handle = os.open(name, _NEW, 0o600)
            temporary = name
            try:
                _write(handle, _MAGIC + digest(key.encode() + data) + data)
            finally:
                os.close(handle)
            os.replace(temporary, self.path(key))
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            self._report_error("write", error)
            return False
        self._writes += 1
        if self._writes % _PRUNE_EVERY == 1:
            self.prune()
        return True

    def prune(self) -> int:
        """Remove the least recently used entries until the folder is well below its limit, and the
        temporary files of killed writers. Returns the number of removed files."""
        files: list[tuple[float, int, str]] = []
        removed = 0
        place = self.place
        if self._private is None:
            return 0
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    # Files of other programs may be in the folder.
                    writing = entry.name.startswith(".new-")
                    if not entry.name.endswith(".obj") and not writing:
                        continue
                    with contextlib.suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if writing and status.st_mtime < time.time() - _ABANDONED:
                            os.unlink(entry.path)
                            removed += 1
                        else:
                            files.append((status.st_mtime, status.st_size, entry.path))
        except OSError:
            return 0
        total = sum(size for _, size, _ in files)
        if total > self.limit:
            for _, size, path in sorted(files):
                if total <= self.limit * 3 // 4:
                    break
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    removed += 1
                total -= size
        return removed

    def sizes(self) -> list[int]:
        """Return the sizes of the entries in bytes."""
        file_sizes: list[int] = []
        with contextlib.suppress(OSError), os.scandir(self.place) as entries:
            for entry in entries:
                if entry.name.endswith(".obj"):
                    with contextlib.suppress(OSError):
                        file_sizes.append(entry.stat(follow_symlinks=False).st_size)
        return file_sizes

    def _report_error(self, what: str, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            note(f"disk cache: cannot {what} {self.folder}: {error}; kernels compile each time")


def _write(handle: int, data: bytes) -> None:
    """Write all bytes. A file object would have a finalizer, which makes the exit slower."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _read_private(path: str) -> bytes | None:
    """Return the bytes of a file; None if another user could have written it, or if it is too large
    or not a regular file. Opening a FIFO does not block, and links are not followed (OSError).
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
    """Return a digest of 32 bytes."""
    return blake2b(data, digest_size=32).digest()


def compiler_stamp(cache: DiskCache | None = None) -> str:
    """Return the stamp of the compiler's own source, without the versions of its libraries.

    A cache stores it in its entry of the versions.
    """
    stamp = _stamps.get("compiler")
    if stamp is None:
        if cache is not None:
            cache.key((), "")
            stamp = _stamps["versions"].split()[1]
        else:
            stamp = _digest_of(_compiler_files())
        _stamps["compiler"] = stamp
    return stamp


def _compiler_files() -> list[str]:
    """Return the files of the compiler that shape machine code, given the text of a kernel.

    The folders of `library` write texts, so they are left out: each process asks for the size and
    the time of every file here.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    library = os.path.join(here, "library")
    paths: list[str] = []
    for folder, folders, names in os.walk(here):
        if folder == here:
            folders.remove("fusion")
        elif folder == library:
            folders.clear()
        paths += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(paths)


def _libraries() -> list[str]:
    """Return the files with the versions of the libraries: importing Numba would take 0.4 s."""
    specs = [PathFinder.find_spec(library) for library in _LIBRARIES]
    places = [os.path.dirname(spec.origin) for spec in specs if spec and spec.origin]
    return sorted(filter(os.path.exists, [os.path.join(p, "_version.py") for p in places]))


def _version_stamp(files: Sequence[str]) -> str:
    """Return the stamp of all versions, and that of the compiler alone."""
    own = _digest_of(files)
    whole = digest(f"{np.__version__} {os.name} {own} {_digest_of(_libraries())}".encode())
    return f"{whole.hex()} {own}"


def _digest_of(files: Sequence[str]) -> str:
    texts: list[bytes] = []
    for part in files:
        with contextlib.suppress(OSError), open(part, "rb", buffering=0) as file:
            texts += [os.path.basename(part).encode(), file.read()]
    return digest(b"\0".join(texts)).hex()
