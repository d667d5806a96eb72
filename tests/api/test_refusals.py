"""What docstrings say is refused: the error and the first words of its message, by function.

In: a row is a name, a call with `jnp` and `f`, the function of that name, and what is raised.
"""

from __future__ import annotations

import builtins
import re

import pytest
from api.test_names import find

import accnp as jnp

ROWS = """
lax.linalg.cholesky | f(jnp.ones((2, 3))) | ValueError | lax.linalg.cholesky: needs square
lax.linalg.cholesky | f(jnp.eye(2, dtype=int)) | TypeError | lax.linalg.cholesky does not accept
lax.linalg.eig | f(jnp.eye(2), implementation="qr") | TypeError | lax.linalg.eig: needs a value of
lax.linalg.eigh | f(jnp.ones((2, 3))) | ValueError | lax.linalg.eigh: needs square matrices
lax.linalg.eigh | f(jnp.eye(2), subset_by_index=3) | TypeError | lax.linalg.eigh: subset_by_index
lax.linalg.eigh | f(jnp.eye(2), implementation="qr") | TypeError | lax.linalg.eigh: needs a value
lax.linalg.qdwh | f(jnp.eye(2, dtype=int)) | TypeError | lax.linalg.qdwh: a floating or complex
lax.linalg.svd | f(jnp.eye(2), algorithm="qr") | TypeError | lax.linalg.svd: needs a value of
lax.linalg.symmetric_product | f(*[jnp.eye(2)] * 2, alpha="a") | TypeError | lax.linalg.symmetric_
scipy.linalg.polar | f(jnp.eye(2, dtype=int)) | TypeError | linalg.polar: a floating or complex
"""
TABLE = [[part.strip() for part in row.split(" | ")] for row in ROWS.strip().splitlines()]


@pytest.mark.parametrize(("name", "call", "kind", "words"), TABLE)
def test_refusal(name: str, call: str, kind: str, words: str) -> None:
    with pytest.raises(getattr(builtins, kind), match=f"^{re.escape(words)}"):
        eval(call, {"jnp": jnp, "f": find(name)})
