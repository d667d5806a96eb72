"""The packages built for users, and the program that tests them on several platforms
(`ci/matrix`).
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MATRIX = ROOT / "ci/matrix"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_dependencies_have_bounds() -> None:
    oldest = runpy.run_path(str(MATRIX))["oldest_version"]
    for text in PROJECT["project"]["dependencies"]:
        assert re.fullmatch(r"[\w.-]+>=[\d.]+,<[\d.]+", text), text
        assert re.fullmatch(r"[\w.-]+==[\d.]+\.\*", oldest(text))


def test_wheels_are_configured_for_the_supported_versions() -> None:
    names = PROJECT["project"]["classifiers"]
    versions = [
        v for x in names if (v := x.removeprefix("Programming Language :: Python :: 3.")) != x
    ]
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp3{minor}-*" for minor in versions]


def test_parts_are_skipped_with_a_reason(tmp_path: Path) -> None:
    empty = {**os.environ, "PATH": str(tmp_path), "QEMU_FOLDER": str(tmp_path), "PYTHONS": ""}
    done = subprocess.run(
        [sys.executable, str(MATRIX), "--folder", str(tmp_path / "m"), "nehalem", "aarch64"],
        env=empty,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    nehalem, aarch64, counts = done.stdout.splitlines()
    assert re.fullmatch(r"nehalem +skipped in 0 s: qemu-x86_64 is not installed", nehalem)
    assert re.fullmatch(r"aarch64 +skipped in 0 s: qemu-aarch64 is not installed", aarch64)
    assert counts == "0 passed, 0 failed, 2 skipped"


@pytest.mark.full
def test_bytecode_is_part_of_the_package(tmp_path: Path) -> None:
    """Installers other than pip do not write bytecode, and wheels do not keep file times."""
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)],
        cwd=ROOT,
        check=True,
    )
    sources = list((tmp_path / "accnp").rglob("*.py"))
    assert len(sources) > 500
    for source in sources:
        bytecode = Path(importlib.util.cache_from_source(str(source))).read_bytes()
        checked_hash = bytecode[4:8] == (3).to_bytes(4, "little")
        assert checked_hash
        assert bytecode[8:16] == importlib.util.source_hash(source.read_bytes())
