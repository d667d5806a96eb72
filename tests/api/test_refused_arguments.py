"""Arguments that raise a specific error, often the result of mistakes in the user's program."""

from __future__ import annotations

import subprocess
import sys

import pytest

import accnp.numpy as jnp


@pytest.mark.parametrize("twice", [False, True])
def test_list_that_contains_itself(twice: bool) -> None:
    cyclic: list[object] = []
    cyclic += [cyclic, cyclic] if twice else [cyclic]
    for convert in (jnp.array, jnp.asarray):
        with pytest.raises(ValueError, match="contains itself"):
            convert(cyclic)


def test_pad_width_none() -> None:
    with pytest.raises(TypeError, match="pad_width"):
        jnp.pad(jnp.ones(3), None)


@pytest.mark.parametrize("name", ["ACCNP_POOL_BYTES", "ACCNP_THREADS", "ACCNP_FUSION_LIMIT"])
def test_variable_without_a_number(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.environ[{name!r}] = 'abc'; import accnp"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    for text in (name, "'abc'", "ValueError"):
        assert text in last
