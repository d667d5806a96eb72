"""Fixtures of several files."""

import pytest

from accnp.api.compiled import jit as jit_module


@pytest.fixture
def python_calls(monkeypatch):
    """How many calls Python had a part in."""
    seen = []
    original = jit_module.JitFunction._quick

    def quick(self, *args):
        seen.append(args)
        return original(self, *args)

    monkeypatch.setattr(jit_module.JitFunction, "_quick", quick)
    return seen
