"""`assembler.py`, which checks the PTX of all tests in this folder (`conftest._assembled`)."""

import platform
import sys

import pytest
from cuda.assembler import assembler_errors, ptxas

from accnp.compiler.ptx import ptx_of

SOURCE = "def kernel(lo, hi, x, y):\n    for i in range(lo, hi): y[i] = exp(x[i])\n"


def test_assembler_is_found_if_the_extra_is_installed():
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):
        assert ptxas(), "pip install -e '.[test]' brings nvidia-cuda-nvcc-cu12"


@pytest.mark.skipif(not ptxas(), reason="NVIDIA has no assembler for this machine")
@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
def test_assembler_accepts_our_ptx_and_refuses_other_text(cc):
    text = ptx_of(SOURCE, ("f4*", "f4*"), tasks=True, cc=cc).text
    assert assembler_errors([text]) == []
    (message,) = assembler_errors([text, text.replace("ret;", "return;")])
    assert "error" in message
    assert "return;" in message
