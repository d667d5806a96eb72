"""Jaxprs as text, to the letter as jax 0.10 prints them (`expected/jaxprs.json`, made with jax)."""

import json

import pytest
from ir.jaxpr_programs import EXPECTED, PROGRAMS, text

import accnp

WANTED = json.loads(EXPECTED.read_text())


def test_every_program_has_expected_text():
    assert list(WANTED) == list(PROGRAMS)
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_matches_jax(name):
    assert text(accnp, name) == WANTED[name]
