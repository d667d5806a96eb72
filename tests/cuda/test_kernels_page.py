"""The examples of docs/kernels.md run unchanged; those for a GPU run on a fake one."""

import linecache
import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
GPU = [b for b in BLOCKS if b.startswith("# on a GPU\n")]


def run(source, name, scope):
    # `inspect` finds the functions of a block here.
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), scope)


def test_examples(capsys):
    scope = {"__name__": "kernels_page"}
    for number, block in enumerate(BLOCKS):
        if block not in GPU:
            run(block, f"<kernels.md, example {number}>", scope)
    output = capsys.readouterr().out
    assert "['kernel_swish', 'mul', 'reduce_sum']" in output
    assert "(1000, 1000)" in output
    assert "of the time" in output
    assert "<cuda kernel count (CUDA C)>" in output


@pytest.mark.parametrize("number", range(len(GPU)))
def test_examples_for_a_gpu(number, gpu):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba.cuda as a part of Numba is deprecated
        run(GPU[number], f"<kernels.md, GPU example {number}>", {"__name__": "kernels_page"})
