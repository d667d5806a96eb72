"""The examples in README.md run as printed, its links exist, and its figures agree with
the data.
"""

import re
from pathlib import Path

import pytest

from benchmarks import headline

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number, capsys):
    exec(compile(EXAMPLES[number], f"README.md, example {number}", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_figures_show_the_data():
    write = "python -m benchmarks.headline"
    assert README.read_text(encoding="utf-8") == headline.readme(), write
    assert headline.CHART.read_text(encoding="utf-8") == headline.chart(), write
    assert headline.COLD in headline.table()


def test_links_exist():
    targets = re.findall(r"\]\(([^()\s:]+)\)", README.read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert not [target for target in targets if not (README.parent / target).exists()]
