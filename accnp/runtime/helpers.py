"""A few tasks at once, on threads of their own: for LLVM, which leaves the interpreter alone."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from accnp.config import config

__all__ = ["in_parallel"]


def in_parallel(tasks: Sequence[Callable[[], Any]]) -> None:
    """Run tasks on this thread and on others, as many as `config.threads` in all.

    The first error of any task is raised after all have ended.
    """
    waiting = deque(tasks)
    errors: list[BaseException] = []

    def work() -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:
                errors.append(error)

    others = [
        threading.Thread(target=work, name=f"accnp-compile-{i}", daemon=True)
        for i in range(min(config.threads, len(tasks)) - 1)
    ]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]
