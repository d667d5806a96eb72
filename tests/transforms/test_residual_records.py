"""Log records of the residuals that a checkpointed function saves, compared with JAX."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import accnp

X = np.arange(3, dtype=np.float32)


def twice(m: Any) -> Callable[[Any], Any]:
    return lambda y: m.numpy.cos(m.numpy.sin(y))


def named(m: Any) -> Callable[[Any], Any]:
    name = m.ad_checkpoint.checkpoint_name
    return lambda x: m.numpy.sin(name(m.numpy.exp(x), "e") * x[0]).sum()


def gradient(m: Any, policy: Any = None) -> Any:
    return m.grad(lambda x: m.checkpoint(twice(m), policy=policy)(x).sum())


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda m: gradient(m)(X),
    "jit": lambda m: m.jit(gradient(m))(X),
    "everything": lambda m: gradient(m, m.checkpoint_policies.everything_saveable)(X),
    "named": lambda m: m.grad(
        m.checkpoint(named(m), policy=m.checkpoint_policies.save_only_these_names("e"))
    )(X),
}


def records(m: Any, name: str, caplog: pytest.LogCaptureFixture) -> list[tuple[str, list[str]]]:
    """Return the levels and lines of the records, without source locations."""
    caplog.clear()
    PROGRAMS[name](m)
    matching = [r for r in caplog.records if r.getMessage().startswith("remat-decorated")]
    return [
        (r.levelname, [s.split(" from /")[0] for s in r.getMessage().split("\n")]) for r in matching
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_debug_records(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "jax._src.ad_checkpoint")
    caplog.set_level(logging.DEBUG, "accnp.checkpoint")
    expected, actual = records(jax, name, caplog), records(accnp, name, caplog)
    assert actual == expected
    assert len(actual) == 1
    assert actual[0][0] == "DEBUG"


def test_warnings_by_the_option(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert not records(accnp, "nothing", caplog)
    for m in (jax, accnp):
        m.config.update("jax_log_checkpoint_residuals", True)
        try:
            ((level, lines),) = records(m, "nothing", caplog)
        finally:
            m.config.update("jax_log_checkpoint_residuals", False)
        assert level == "WARNING"
        assert lines[:2] == ["remat-decorated function saving inputs with shapes:", "  float32[3]"]
