"""`python -m accnp bench --device gpu` in a tiny form, on a fake GPU."""

import sys

import pytest

from accnp.bench import command, gpu


def test_every_row_runs(fake):
    found = gpu.figures("accnp", list(gpu.ROWS), 1e-4, 0.0, 1)
    assert set(found) == set(gpu.ROWS)
    assert all(isinstance(x, float) for x in found.values()), found
    lines = gpu.table(list(gpu.ROWS), {"accnp": found}, 1e-4)
    assert len(lines) == 1 + len(gpu.ROWS)
    assert "accnp GB/s" in lines[0]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("", ""),
        ("raise SystemExit('an illegal memory access')", "an illegal memory access"),
        ("import os; os._exit(3)", "it ended with 3"),
        ("import time; time.sleep(60)", "it did not end in 2 s"),
    ],
)
def test_rows_before_a_fault_are_kept(end, why):
    text = f"print('a warning'); print('[\"chain\", 0.5]', flush=True); {end}"
    assert gpu._asked([sys.executable, "-c", text], 2) == ({"chain": 0.5}, why)


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "LIBRARIES", {"accnp": gpu.LIBRARIES["accnp"]})
    assert command.main(["--device", "gpu", "--only", "launch", "--size", "0"]) == 0
    printed = capsys.readouterr().out
    assert "one small kernel, time to return" in printed
    with pytest.raises(SystemExit):
        command.main(["--device", "gpu", "--only", "lunch"])
    assert "there is no lunch" in capsys.readouterr().err
