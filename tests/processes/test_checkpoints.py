"""Checkpoints written by several processes can be read by a different number of processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors
import zarr
from processes.launch import run


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_processes_reads_a_checkpoint(count: int, tmp_path: Path) -> None:
    out = run(count, "checkpoints.py", "save", str(tmp_path))
    assert out.count("is done") == count
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "npy", "zarr"]
    files = sorted(p.name for p in (tmp_path / "npy/arrays/arrays/rows").iterdir())
    assert files == [f"{i * 8 // count}.0.npy" for i in range(count)]
    group = zarr.open_group(str(tmp_path / "zarr/arrays"), mode="r")
    assert group["arrays/rows"].chunks == (8 // count, 12)
    np.testing.assert_array_equal(group["arrays/rows"][:], np.arange(96).reshape(8, 12))
    with safetensors.safe_open(tmp_path / "m", framework="np") as file:
        assert file.metadata() == {"n": str(count)}
        np.testing.assert_array_equal(file.get_tensor("rows"), group["arrays/rows"][:])
    for readers in {1, 2, 4} - {count}:
        out = run(readers, "checkpoints.py", "load", str(tmp_path))
        assert out.count("is done") == readers


@pytest.mark.parametrize("count", [1, 2])
def test_all_processes_raise_if_one_fails(count: int, tmp_path: Path) -> None:
    out = run(count, "checkpoints.py", "fail", str(tmp_path))
    assert out.count("is done") == count
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "new"]
    assert not list((tmp_path / "new").iterdir())
