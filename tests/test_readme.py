"""The examples in README.md run as they stand."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number, capsys):
    exec(compile(EXAMPLES[number], f"README.md, example {number}", "exec"), {})
    assert capsys.readouterr().out.strip()
