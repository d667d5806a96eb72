"""Fixtures for the tests of jitted calls."""

import pytest

from accnp.api.jit import dispatch_registration
from accnp.api.jit import jit as jit_module


@pytest.fixture
def python_calls(monkeypatch):
    """Record the names of the Python functions that take part in calls: `_call`, `rerun`."""
    seen = []

    def noted(place, name):
        original = getattr(place, name)

        def function(*args):
            seen.append(name)
            return original(*args)

        monkeypatch.setattr(place, name, function)

    noted(jit_module.JitFunction, "_call")
    noted(dispatch_registration, "rerun")
    return seen
