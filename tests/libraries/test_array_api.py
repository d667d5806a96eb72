"""SciPy and scikit-learn compute with accnp arrays, by the array API standard, if the option
`item_assignment` is on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(("library", "least"), [("scipy", 50), ("sklearn", 40)])
def test_programs_have_the_results_of_numpy(library: str, least: int) -> None:
    command = [sys.executable, str(HERE / "array_api_programs.py"), library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: fault for name, fault in found.items() if fault} == {}
    assert len(found) >= least
