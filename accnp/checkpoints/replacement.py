"""Write files and folders under a temporary name and rename them when they are complete.

It takes a path that may exist, and returns a unique path next to it to write to, which is renamed
at the end. Process 0 chooses the path and renames it. Nothing else in the parent folder changes.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from accnp.checkpoints.pieces import collective_step, gather_objects
from accnp.runtime.device import process_index

__all__ = ["ABOUT", "explain_interruption", "replacement"]

ABOUT = "checkpoint.json"  # the file that makes a folder a checkpoint


@contextmanager
def replacement(path: Path, function: str, overwrite: bool, is_folder: bool) -> Iterator[Path]:
    """Yield a path to write to, and rename it to `path` if no process fails.

    Raises:
        ValueError: `path` has no name.
        FileExistsError: in all processes, if `path` exists and must not be replaced.
    """
    if path.name in ("", ".."):  # folders in use, which cannot be replaced
        raise ValueError(f"{function}: the path must end in a name; got {str(path)!r}; append one")
    path = Path(os.path.abspath(path))
    refusal = token = ""
    with collective_step(function):
        if process_index() == 0:
            refusal, token = _why_not_writable(path, overwrite, is_folder), secrets.token_hex(6)
            if not refusal:
                path.parent.mkdir(parents=True, exist_ok=True)
    refusal, token = gather_objects((refusal, token))[0]
    if refusal:
        raise FileExistsError(f"{function}: {refusal}")
    partial = path.with_name(f"{_stem(path)}.{token}.partial")
    try:
        yield partial
        with collective_step(function):
            if process_index() == 0:
                _rename(partial, path)
    except Exception:
        if process_index() == 0:
            with suppress(OSError):  # the error that led here matters more
                _remove(partial)
        raise


def _why_not_writable(path: Path, overwrite: bool, is_folder: bool) -> str:
    if not os.path.lexists(path):
        return ""
    if not overwrite:
        return (
            f"the path must be new; got {str(path)!r}; pass overwrite=True to replace what is there"
        )
    if not is_folder:
        known = not path.is_dir()
    else:
        known = path.is_dir() and ((path / ABOUT).is_file() or not any(path.iterdir()))
    return (
        ""
        if known
        else (
            f"overwrite=True replaces only {'checkpoints' if is_folder else 'files'}; got "
            f"{str(path)!r}, which is something else; pass another path"
        )
    )


def _stem(path: Path) -> str:
    # File systems allow names of 255 bytes.
    return os.fsencode(path.name)[:200].decode("utf-8", "ignore")


def _rename(partial: Path, path: Path) -> None:
    if not partial.is_dir() or not os.path.lexists(path):
        os.replace(partial, path)
        return
    old = partial.with_suffix(".old")  # a folder cannot replace another in one step
    os.replace(path, old)
    try:
        os.replace(partial, path)
    except BaseException:
        os.replace(old, path)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def explain_interruption(path: Path) -> str:
    """Return advice if a process was killed after it renamed an old checkpoint, and before it
    renamed the new one; or an empty string."""
    path = Path(os.path.abspath(path))
    pattern = re.compile(re.escape(_stem(path)) + r"\.[0-9a-f]{12}\.old")
    parent = path.parent
    for old in sorted(parent.iterdir()) if parent.is_dir() else ():
        new = old.with_suffix(".partial")
        if pattern.fullmatch(old.name) and (new / ABOUT).is_file():
            return (
                f"a call of save was interrupted while it replaced the checkpoint: rename "
                f"{str(new)!r}, which is complete, or the earlier {str(old)!r} to this path"
            )
    return ""
