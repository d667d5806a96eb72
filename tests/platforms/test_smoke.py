"""Results are bit-identical on all CPUs: the digests of the smoke test are stored.

The x86-64 levels that this CPU supports are tested here. `ci/matrix` runs the same program under
emulators for other CPUs and for AArch64.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accnp.compiler import processor

SMOKE = Path(__file__).with_name("smoke.py")
LEVELS = [level.name for level in processor._levels]
# Cases in which levels have other code: vectors of functions, sums, products, and half precision.
QUICK = (
    "exp1000", "sincos1000", "tanhlog1000", "pow1000", "sum1000", "half1000", "normal1000",
    "doubles1000", "matmul", "scan", "special",
)  # fmt: skip


def smoke(folder: Path, level: str, *names: str) -> None:
    environment = {**os.environ, "ACCNP_CACHE_DIR": str(folder), "ACCNP_CPU_LEVEL": level}
    done = subprocess.run(
        [sys.executable, str(SMOKE), *names], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_this_machine_has_the_recorded_bits(tmp_path: Path) -> None:
    smoke(tmp_path, "")


@pytest.mark.parametrize("level", LEVELS)
def test_levels_have_the_recorded_bits(level: str, tmp_path: Path) -> None:
    smoke(tmp_path, level, *QUICK)


@pytest.mark.full
@pytest.mark.parametrize("level", LEVELS)
def test_levels_have_the_recorded_bits_in_all_cases(level: str, tmp_path: Path) -> None:
    smoke(tmp_path, level)


def test_other_levels_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import accnp; float(accnp.ones(3).sum())"],
        env={**os.environ, "ACCNP_CPU_LEVEL": "x86-64-v9"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "ACCNP_CPU_LEVEL must be a level of x86-64 that this processor has" in done.stderr


@pytest.mark.skipif("x86-64-v2" not in LEVELS, reason="levels are those of x86-64")
@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3"])
def test_functions_are_vectorized_on_older_cpus(level: str, tmp_path: Path) -> None:
    """Loops over tanh, sin and pow use whole vector registers. Without FMA instructions, pow calls
    a function for the float64 FMA."""
    program = """
import accnp as jnp
for f in (jnp.tanh, jnp.sin, lambda x: x**1.7):
    text = jnp.inspect(f)(jnp.ones(1000)).kernels[0].assembly()
    lines = [line.split() for line in text.splitlines() if line.startswith("\\t")]
    names = [line[0].removeprefix("v") for line in lines]
    products = sum(n in ("mulps", "mulpd") or n.startswith("fmadd") for n in names)
    calls = sum(line[0] == "callq" and line[1].startswith("fma") for line in lines)
    print(products, calls)
"""
    environment = {**os.environ, "ACCNP_CACHE_DIR": str(tmp_path), "ACCNP_CPU_LEVEL": level}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    tanh, sin, power = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert min(tanh[0], sin[0], power[0]) > 40
    rare = 16 if level == "x86-64-v2" else 0  # the code for huge arguments is not vector code
    assert tanh[1] == 0
    assert sin[1] <= rare
    assert power[1] == 0 or level == "x86-64-v2"
