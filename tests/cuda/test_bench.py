"""`python -m accnp bench --device gpu` in a tiny form, on a fake GPU."""

import pytest

from accnp.bench import command, gpu


def test_every_row_runs(fake):
    found = gpu.figures("accnp", list(gpu.ROWS), 1e-4, 0.0, 1)
    assert set(found) == set(gpu.ROWS)
    assert all(isinstance(x, float) for x in found.values()), found
    lines = gpu.table(list(gpu.ROWS), {"accnp": found}, 1e-4)
    assert len(lines) == 1 + len(gpu.ROWS)
    assert "accnp GB/s" in lines[0]


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "LIBRARIES", {"accnp": gpu.LIBRARIES["accnp"]})
    assert command.main(["--device", "gpu", "--only", "launch", "--size", "0"]) == 0
    printed = capsys.readouterr().out
    assert "one small kernel, time to return" in printed
    with pytest.raises(SystemExit):
        command.main(["--device", "gpu", "--only", "lunch"])
    assert "there is no lunch" in capsys.readouterr().err
