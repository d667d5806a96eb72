"""The instruction set of this machine, by the name that Linux uses for it.

`platform.machine` returns it, too, but importing that module takes a millisecond. Other systems
have other names for the same instruction sets, and Windows has no `os.uname`.
"""

from __future__ import annotations

import os

__all__ = ["MACHINE"]

_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


def _find_machine() -> str:
    machine = (
        os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE")
    )
    name = (machine or "").lower()
    return _NAMES.get(name, name)


MACHINE = _find_machine()
