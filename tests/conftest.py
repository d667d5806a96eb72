"""What all tests share: the compiler checks its own work."""

import pytest

from accnp.config import config


@pytest.fixture(autouse=True, scope="session")
def _checks():
    """Programs, kernels and plans are verified as they are made."""
    config.update("enable_checks", True)
    yield
    config.update("enable_checks", False)
