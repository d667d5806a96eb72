"""The programs on the page about arrays larger than memory run, with Dask and with cubed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "larger-than-memory.md"
PRINTED = [
    "2.0", "1.0", "(500,) 1.0 2.0", "Array 1.000", "5.0", "(4000, 500)",
    r"Projected blockwise memory \(.*\) exceeds allowed_mem \(2.0 MB\).*",
]  # fmt: skip


def test_programs_of_the_page(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", "\n".join(blocks)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch("\n".join([*map(re.escape, PRINTED[:-1]), PRINTED[-1]]) + "\n", done.stdout)
