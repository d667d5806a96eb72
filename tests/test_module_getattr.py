"""Names of public modules that are loaded on first use."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder

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


def test_no_removed_name_is_that_of_a_module() -> None:
    """A module is imported, and not replaced by what a removed name stands for."""
    for name in REMOVED_NAMES:
        package, _, last = name.rpartition(".")
        loaded = sys.modules.get(package)
        if loaded is not None and hasattr(loaded, "__path__"):
            assert PathFinder.find_spec(name, loaded.__path__) is None, last
