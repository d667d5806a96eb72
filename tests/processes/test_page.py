"""The programs in docs/multiple-processes.md run as printed."""

from __future__ import annotations

import re
from pathlib import Path

from processes.launch import run

PAGE = Path(__file__).parents[2] / "docs" / "multiple-processes.md"


def test_the_blocks_of_the_page_are_one_program(tmp_path: Path) -> None:
    """The first block is `train.py`; the others continue it."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert "distributed.initialize()" in blocks[0]
    program = tmp_path / "train.py"
    program.write_text("\n".join([f"import os; os.chdir({str(tmp_path)!r})", *blocks]))
    out = run(2, program)
    losses = [float(line.split()[1]) for line in out.splitlines() if re.match(r"\d+ \d", line)]
    assert len(losses) == 20
    assert losses == sorted(losses, reverse=True)
    assert (tmp_path / "model.safetensors").exists()
