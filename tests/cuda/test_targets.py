"""`make gpu-tests` runs every test file that uses a real GPU if there is one."""

import re
from pathlib import Path

HERE = Path(__file__).parent
MAKEFILE = (HERE.parent.parent / "Makefile").read_text()
# With a driver of their own, or about texts alone: the same on any machine.
OTHERS = {"bench", "cupy_driver", "kernel_texts", "library", "ptx", "smoke"}


def test_every_file_with_a_gpu_is_run():
    takes = re.compile(r"^def test_\w+\([^)]*\bgpu\b|usefixtures\(\"gpu\"\)", re.MULTILINE)
    files = {p.stem.removeprefix("test_") for p in HERE.glob("test_*.py")
             if takes.search(p.read_text())}  # fmt: skip
    listed = re.search(r"^GPU_TESTS = ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert listed is not None
    names = set(listed[1].replace("\\\n", " ").split())
    names = {"op_table" if "op_table" in name else name for name in names}
    assert files - OTHERS <= names
    assert all((HERE / f"test_{name}.py").exists() for name in names if name.isidentifier())
