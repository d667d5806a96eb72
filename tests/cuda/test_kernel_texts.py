"""The loop IR of GPU kernels, which `accnp.inspect` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cuda.fake import gpus

import accnp as jax
import accnp.numpy as jnp
from accnp.compiler.__main__ import main
from accnp.compiler.ir_tools.parser import parse_kernels
from accnp.compiler.loops.printer import print_kernel
from accnp.devtools.inspect.inspected_kernel import KernelOnGpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with gpus():
        yield


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("f", [jnp.exp, lambda x: x.sum(0), jnp.linalg.cholesky])
def test_ir_of_kernels(
    f: Callable[..., object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fused kernels, and kernels that are written as source."""
    x = jax.device_put(np.ones((4, 4), "f4"), jax.devices("gpu")[0])
    kernel = jax.inspect(f)(x).kernels[0]
    assert isinstance(kernel, KernelOnGpu)
    parsed = parse_kernels(kernel.ir)
    assert "\n".join(map(print_kernel, parsed)) == kernel.ir
    assert parsed[-1].threads == kernel.threads
    (tmp_path / "k.ir").write_text(kernel.ir)
    assert main(["check", str(tmp_path / "k.ir")]) == 0
    assert capsys.readouterr().out == kernel.ir
    for command in ("passes", "llvm"):
        assert main([command, str(tmp_path / "k.ir")]) == 2
        expected = "the passes are for kernels of the CPU; kernel is one for GPUs\n"
        assert capsys.readouterr().err.endswith(expected)
