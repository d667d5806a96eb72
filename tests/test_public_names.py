"""Public names and ops are found on first use through generated tables, which must agree with the
sources.
"""

import importlib
import subprocess
import sys

import pytest

from accnp.public_names import HOMES
from tests import public_names


def test_the_table_is_that_of_the_sources():
    command = [sys.executable, "-m", "tests.public_names", "--print"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert public_names.TABLE.read_text() == done.stdout, "run `make names`"


@pytest.mark.parametrize("module", HOMES)
def test_every_name_of_the_table_exists(module):
    namespace = importlib.import_module(module)
    for home, entries in HOMES[module].items():
        for entry in entries.split():
            name, _, defined_as = entry.partition("=")
            value = getattr(namespace, name)
            if home != module:
                assert value is getattr(importlib.import_module(home), defined_as or name)


@pytest.mark.parametrize("name", ["scipy.stats.norm", "scipy.stats.binom", "numpy.linalg"])
def test_modules_that_are_not_files_can_be_imported(name):
    command = [sys.executable, "-c", f"import accnp.{name}"]
    subprocess.run(command, check=True, capture_output=True)


# What a module adds to objects of other modules has to be there although names are loaded on first
# use. Each program runs in a new process.
AT_ONCE = {
    "ufuncs": "import accnp.numpy as jnp; assert jnp.add.reduce(jnp.arange(3)) == 3",
    "ufuncs of accnp": "import accnp as jnp; assert jnp.bitwise_or.nin == 2",
    "sparse": "from accnp.experimental import sparse; import accnp.numpy as jnp, numpy as np\n"
    "x = sparse.BCOO.fromdense(jnp.eye(2)); assert (x @ np.ones(2) == np.ones(2) @ x).all()\n"
    "assert x.update_layout(n_dense=1, on_inefficient=None).n_dense == 1",
    "rules": "from accnp.interpreters import ad, batching; from accnp import lax\n"
    "assert lax.sin_p in ad.primitive_jvps and lax.mul_p in ad.primitive_transposes\n"
    "assert lax.mul_p in batching.primitive_batchers",
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_names_added_by_modules_exist_immediately(name):
    done = subprocess.run([sys.executable, "-c", AT_ONCE[name]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_module_has_the_name_of_a_function_beside_it():
    """Importing such a module would replace the function in the package."""
    for module, homes in HOMES.items():
        package = importlib.import_module(module)
        if not hasattr(package, "__path__"):
            continue
        files = {p.stem for folder in package.__path__ for p in public_names.Path(folder).iterdir()}
        for home, entries in homes.items():
            names = {entry.split("=")[0] for entry in entries.split()}
            assert home == module or not names & files, f"{module}: {names & files}"
