"""Names of public modules that are loaded on first use."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import traceback
from importlib.machinery import PathFinder
from unittest import mock

import pytest

import accnp.numpy as jnp
from accnp.removed_names import REMOVED_NAMES


def test_advice_is_loaded_on_demand() -> None:
    text = (
        "import sys, accnp\n"
        "from accnp.numpy import einsum_report\n"
        "import accnp.lax as lax\n"
        "from accnp.lax import user_reductions\n"
        "assert isinstance(einsum_report, type(sys))\n"
        "assert 'accnp.removed_names' not in sys.modules\n"
        "assert not hasattr(lax, 'add_n')\n"
        "assert 'accnp.removed_names' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_similar_names_are_looked_up_when_an_error_is_printed() -> None:
    """`hasattr` took 3 ms for each name of JAX or NumPy that does not exist here."""
    text = "module 'accnp.numpy' has no attribute 'arrange'"
    whole = f"{text}; did you mean 'arange' or 'average'?"
    with mock.patch("difflib.get_close_matches", side_effect=AssertionError):
        assert not hasattr(jnp, "arrange")
    with pytest.raises(AttributeError, match=re.escape(whole)) as caught:
        getattr(jnp, "arr" + "ange")
    error = caught.value
    assert type(error) is AttributeError
    assert repr(error) == f"AttributeError({whole!r})"
    assert str(pickle.loads(pickle.dumps(error))) == whole
    assert whole in traceback.format_exception_only(error)[0]


def test_no_removed_name_is_that_of_a_module() -> None:
    """The name must import the module, and not return the replacement of a removed name."""
    for name in REMOVED_NAMES:
        package, _, last = name.rpartition(".")
        loaded = sys.modules.get(package)
        if loaded is not None and hasattr(loaded, "__path__"):
            assert PathFinder.find_spec(name, loaded.__path__) is None, last
