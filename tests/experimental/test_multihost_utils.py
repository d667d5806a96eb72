"""Functions for several processes, called in a program with one process."""

from __future__ import annotations

import numpy as np
import pytest

from accnp.experimental.multihost_utils import process_allgather


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_one_process_gathers_its_own_values(shape: tuple[int, ...]) -> None:
    values = np.ones(shape, np.float32)
    assert process_allgather(values).shape == (1, *shape)
    assert process_allgather(values, tiled=True).shape == shape  # as in jax, also of a number
