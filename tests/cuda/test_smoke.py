"""The checks of `smoke.py` run, report what is wrong, and continue."""

import json

import pytest
from cuda import smoke

# What the fake GPU has not got: other libraries on it, NVRTC.
HARDWARE = {"a_users_text", "exchange_with_torch"}


@pytest.mark.parametrize("name", [name for name in smoke.CHECKS if name not in HARDWARE])
def test_checks_pass(fake, name, monkeypatch):
    monkeypatch.setattr(smoke, "LARGE", 1 << 12)  # the fake one is slow
    outcome = smoke.one(name)
    assert outcome["ok"], outcome["says"]
    json.dumps(outcome, default=str)
    if name == "captured_calls":
        messages = outcome["says"]
        for call in ("fft", "sort", "argsort", "top_k", "cumsum", "cummax", "searchsorted"):
            assert "machine code" in messages[call], messages[call]
        # Small ones are kernels of a block of threads, a large one calls cuSOLVER by its address.
        for call in ("cholesky", "solve", "svd", "large lu"):
            assert "machine code" in messages[call], messages[call]
        assert "cannot be captured" in messages["large svd"]


def test_wrong_values_are_reported(fake, monkeypatch):
    monkeypatch.setattr(fake, "launch", lambda *_: None)
    outcome = smoke.one("one_kernel")
    assert not outcome["ok"]
    assert "Mismatched elements" in outcome["says"]


def test_checks_report_a_missing_gpu(tmp_path, capsys):
    with open(tmp_path / "out", "w") as out:
        assert smoke.main(["versions", "device", "one_kernel"], out) == 2
    first, second, third = map(json.loads, (tmp_path / "out").read_text().splitlines())
    assert first["ok"]
    assert "numpy" in first["says"]
    for line in (second, third):
        assert not line["ok"]
        assert "'gpu' is not available" in line["says"]
    assert capsys.readouterr().out.endswith("1 of 3 checks passed\n")


def test_a_check_that_hangs_does_not_end_the_run(capsys):
    assert smoke.main(["versions"], limit=0.01) == 1
    assert "did not end in 0.01 s" in capsys.readouterr().out
