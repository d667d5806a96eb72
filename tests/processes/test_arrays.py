"""Arrays and collectives over processes; the programs check their own results."""

from __future__ import annotations

import pytest
from processes.launch import run


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(
    "program",
    ["arrays.py", "collectives.py", "order.py", "partitioned.py", "connections.py", "allreduce.py"],
)
def test_checks_of_processes(program: str, count: int) -> None:
    out = run(count, program)
    assert [out.count(f"process {rank} is done") for rank in range(count)] == [1] * count
