"""Assemble the PTX that tests generate with NVIDIA's `ptxas`, which rejects invalid PTX.

LLVM emits PTX without checking whether NVIDIA's tools accept it. The assembler is part of a package
of the extra `test` (Linux on x86-64), or of a CUDA toolkit on the path.
"""

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PACKAGE = "nvidia-cuda-nvcc-cu12"


def ptxas() -> str | None:
    """Return the path of the assembler; None if it is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return shutil.which("ptxas")
    return next(str(Path(f.locate())) for f in files if f.name == "ptxas")


def assembler_errors(texts: Iterable[str]) -> list[str]:
    """Return the assembler's error messages for the texts that it rejects."""
    path = ptxas() or "ptxas"

    def complaint(text: str) -> str:
        target = re.search(r"^\.target (\w+)", text, re.MULTILINE)
        assert target, text[:200]
        done = subprocess.run(
            [path, f"-arch={target[1]}", "-", "-o", "/dev/null"],
            input=text, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return f"{done.stderr}\n{text}" if done.returncode else ""

    with ThreadPoolExecutor(2) as some:
        return [c for c in some.map(complaint, texts) if c]


def spilled_bytes(text: str) -> int:
    """Return the number of bytes that each thread spills because it has too few registers."""
    target = re.search(r"^\.target (\w+)", text, re.MULTILINE)
    assert target
    done = subprocess.run(
        [ptxas() or "ptxas", "-v", f"-arch={target[1]}", "-", "-o", "/dev/null"],
        input=text, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return sum(map(int, re.findall(r"(\d+) bytes spill stores", done.stderr)))
