"""The printed form of jaxprs matches JAX 0.10 exactly (`expected/jaxprs.json`, generated with
JAX).
"""

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
