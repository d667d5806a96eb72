"""The first compilation leaves few objects alive, since each garbage collection visits them all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import gc
import numba
before = len(gc.get_objects())
import accnp.numpy as jnp
from accnp.compiler.kernel_cache import wait_for_background
float(jnp.tanh(jnp.arange(10.0)).sum())
wait_for_background()
print(len(gc.get_objects()) - before)
"""

BY_LLVM = True  # Numba makes 96,000 objects


def test_a_first_compile_leaves_few_objects(tmp_path: Path) -> None:
    """33,000 on Python 3.11; 177,000 when checks of Numba's templates filled the caches of abstract
    base classes."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "ACCNP_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(result.stdout) < 60_000
