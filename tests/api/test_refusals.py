"""Errors that docstrings document: the class and the first words of the message, for each
function.

`refusals.txt` has rows with a name, a call with GIVEN and `f` (the function of that name), and the
error.
"""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pytest
from api.test_names import find_object

import accnp as jnp

NAMES = {
    "jnp": jnp,
    "NUMBERS": jnp.lax.ScatterDimensionNumbers((), (0,), (0,)),
    "ONES": jnp.ones((2, 2)),
    "INTS": jnp.ones((2, 2), int),
    "each": lambda f, *xs: jnp.vmap(lambda *xs: f(*xs, axis_name="i"), axis_name="i")(*xs),
}
ROWS = (Path(__file__).parent / "refusals.txt").read_text().splitlines()
TABLE = [[part.strip() for part in row.split(" | ")] for row in ROWS[1:]]


@pytest.mark.parametrize(("name", "call", "kind", "words"), TABLE)
def test_refusal(name: str, call: str, kind: str, words: str) -> None:
    with pytest.raises(getattr(builtins, kind), match=f"^{re.escape(words)}"):
        eval(call, {**NAMES, "f": find_object(name)})
