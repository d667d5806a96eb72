"""Find folders and files that no other user can change, for the machine code of the disk cache.

`disk_cache.py` passes the folder that a user has chosen, and gets its resolved path if only the
current user (and root) can change it, and otherwise a private folder in the temporary folder. It
also checks each file that it reads. On systems without user ids (Windows), any folder is accepted:
there, access lists protect a user's profile.
"""

from __future__ import annotations

import os
import stat

from accnp.errors import warn

__all__ = ["READ_PRIVATE", "is_private_file", "private_folder"]

# Links are not followed, a FIFO does not block, and child processes do not inherit the file.
READ_PRIVATE = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_instead: dict[str, str] = {}  # replacements of folders that other users can change


def private_folder(folder: str) -> str | None:
    """Return the path of a folder that only this user can change: `folder`, or a replacement with a
    RuntimeWarning that says why. None if the folder does not exist.
    """
    if not hasattr(os, "geteuid"):
        return folder if os.path.isdir(folder) else None
    known = _instead.get(folder)
    if known is not None:
        return known
    path = os.path.realpath(folder)
    try:
        fault = _why_not_private(path)
    except OSError:
        return None
    if not fault:
        return path
    replacement = _instead[folder] = _temporary()
    warn(
        f"disk cache: {folder} is not used, because {fault}, and another user could run code in "
        f"this process through it; kernels are kept in {replacement}; set ACCNP_CACHE_DIR to a "
        "folder that belongs to you and has mode 0700",
        RuntimeWarning,
    )
    return replacement


def is_private_file(status: os.stat_result) -> bool:
    """Return whether a file is a regular file that only this user can have written."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return not hasattr(os, "geteuid") or _only_mine(status)


def _only_mine(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE


def _why_not_private(path: str) -> str:
    """Return why other users can change the folder at a resolved path; "" if they cannot.

    Raises:
        OSError: the folder does not exist.
    """
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(path)
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & _WRITABLE:
        return f"other users can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    above = os.path.dirname(path)
    while above != path:
        path, above = above, os.path.dirname(above)
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            return f"{path} has changed"
        if status.st_uid not in (0, os.geteuid()):
            return f"its parent {path} belongs to user {status.st_uid}"
        if not status.st_mode & _WRITABLE or status.st_mode & stat.S_ISVTX:
            continue  # in a sticky folder, only owners can replace entries
        if status.st_mode & stat.S_IWOTH or not _is_own_group(status.st_gid):
            return f"other users can replace it in {path}"
    return ""


def _is_own_group(group: int) -> bool:
    """Return whether a group is the private group of this user, which many systems create."""
    import grp  # needed only if a group can write to the folder
    import pwd

    try:
        me, its = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return me.pw_gid == group and its.gr_name == me.pw_name and set(its.gr_mem) <= {me.pw_name}


def _temporary() -> str:
    """Return a private folder in the temporary folder. Its name depends on the user, so that the
    next process finds the kernels; if another user has taken the name, the folder is a new one."""
    import atexit  # imported here, since these take some ms
    import shutil
    import tempfile

    path = os.path.join(os.path.realpath(tempfile.gettempdir()), f"accnp-cache-{os.geteuid()}")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if not _why_not_private(path):
            return path
    except OSError:
        pass
    path = tempfile.mkdtemp(prefix="accnp-cache-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
