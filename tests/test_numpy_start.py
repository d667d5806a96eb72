"""NumPy's OpenBLAS starts without idle threads, and later uses the usual number."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is changed")
PROGRAM = """
import json, os
{first}
threads = lambda: len(os.listdir("/proc/self/task"))
started = threads()
import numpy, threadpoolctl
blas = lambda: [x.num_threads for x in threadpoolctl.ThreadpoolController().lib_controllers
                if x.user_api == "blas"]
usual = blas()
a = numpy.arange(250000.0).reshape(500, 500) % 7
right = bool((a @ a == numpy.einsum("ij,jk", a, a)).all())
if not os.fork():
    os._exit(0 if (a @ a).shape == (500, 500) and blas() == usual else 1)
same = os.waitpid(-1, 0)[1] == 0
print(json.dumps([started, usual, right, same, os.environ.get("OPENBLAS_NUM_THREADS")]))
"""


def found_with(first, **environment):
    """Return the threads after the first import, BLAS's number of threads, whether products are
    right, and the variable."""
    names = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"}
    known = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(first=first)]
    done = subprocess.run(
        command, env=known | environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_importing_accnp_leaves_no_idle_threads_of_blas():
    _, usual, *_ = found_with("import numpy")
    assert found_with("import accnp") == [1, usual, True, True, None]


@pytest.mark.parametrize("first", ["import accnp", "import numpy, accnp"])
def test_the_user_chooses_the_number_of_threads(first):
    state = found_with(first, OPENBLAS_NUM_THREADS="1")
    assert state == [1, [1], True, True, "1"]
    _, usual, *_ = found_with("import numpy", OMP_NUM_THREADS="2")
    assert found_with(first, OMP_NUM_THREADS="2")[1:] == [usual, True, True, None]


def test_numpy_that_is_loaded_already_stays_as_it_is():
    assert found_with("import numpy, accnp") == found_with("import numpy")
