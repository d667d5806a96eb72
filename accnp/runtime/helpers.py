"""A few tasks at once, on threads of their own: for LLVM, which leaves the interpreter alone; and
the gate that such work passes, so that no thread is inside LLVM when the process takes it down.
"""

from __future__ import annotations

import atexit
import os
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from accnp.config import config

__all__ = ["at_work", "in_parallel"]


class _Gate:
    """Which threads are at work; once it is closed, only the thread that closed it may enter.

    It does not wait for itself: an interrupt may have come between its entry and its exit.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nobody is at work: in a child of the process, which has one thread."""
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._closed_by: int | None = None

    def __enter__(self) -> None:
        with self._changed:
            me = threading.get_ident()
            while self._closed_by not in (None, me):
                self._changed.wait()  # until the process is gone
            self._inside[me] += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._inside[threading.get_ident()] -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Wait for those inside, and let nobody else in."""
        with self._changed:
            self._closed_by = me = threading.get_ident()
            while any(count > 0 for thread, count in self._inside.items() if thread != me):
                self._changed.wait()


at_work = _Gate()
atexit.register(at_work.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=at_work.reset)


def in_parallel(tasks: Sequence[Callable[[], Any]]) -> None:
    """Run tasks on this thread and on others, as many as `config.threads` in all.

    The first error of any task is raised after all have ended.
    """
    waiting = deque(tasks)
    errors: list[BaseException] = []
    switches = dict(vars(config))  # as `with cache_dir(...)` may have set them, in this thread only

    def work() -> None:
        vars(config).update(switches)
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:
                # Frames of an error can be part of a cycle, and what a cycle holds is destroyed in
                # any order: a context of LLVM's before its modules.
                traceback.clear_frames(error.__traceback__)
                errors.append(error)

    others = []
    for i in range(min(config.threads, len(tasks)) - 1):
        thread = threading.Thread(target=work, name=f"accnp-compile-{i}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends
            break
        others.append(thread)
    work()
    for thread in others:
        thread.join()
    try:
        if errors:
            raise errors[0]
    finally:
        errors.clear()  # the error's traceback refers to this frame
