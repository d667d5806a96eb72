"""The examples in docs/timing.md run as printed, including the suite with the pytest plugin."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "timing.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_examples_run(capsys):
    scope = {}
    for text in EXAMPLES:
        if "# test_speed.py" not in text:
            exec(compile(text, "docs/timing.md", "exec"), scope)
    assert "time of <lambda> / time of numpy" in capsys.readouterr().out
    assert scope["seconds"] > 0


def test_the_example_suite(pytester, monkeypatch):
    (suite,) = [text for text in EXAMPLES if "# test_speed.py" in text]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    pytester.makepyfile(test_speed=suite)
    words = ["-p", "no:cacheprovider", "--benchmark-max-time=0.001", "--benchmark-min-rounds=2"]
    done = pytester.runpytest_subprocess("-p", "pytest_accnp", *words)
    done.assert_outcomes(passed=5)
    assert "accnp: comparisons" in done.stdout.str()
