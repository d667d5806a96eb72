"""Kernels of the loop IR are lowered for 64-bit Arm, too: to assembly, which no test here runs.

A process of its own does it, because the code of functions depends on what the processor has
(`compiler/llvm/scalars/cold.py`), which is decided once.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from compiler.test_families import EXPRESSIONS

import accnp as jnp
from accnp.compiler.loops.printer import print_kernel
from accnp.engine import plan as plans

TRIPLE = "aarch64-unknown-linux-gnu"
BYTES = 32  # of the vectors that kernels have there: `cold.vector_bytes` without AVX-512

CODE = f"""
import sys

import llvmlite.binding as llvm

from accnp.compiler.llvm import processor

processor.set_features({{"neon"}})

from accnp.compiler.llvm.lower import lower
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.pipeline import Target, run_passes
from accnp.compiler.llvm.objects import Passes

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
target = llvm.Target.from_triple("{TRIPLE}")
machine = target.create_target_machine(features="+neon", opt=3, reloc="pic")
for text in sys.stdin.read().split("\\0"):
    kernel = run_passes(parse_kernel(text), Target({BYTES}), check=True)
    written = lower(kernel, {BYTES}, "nounwind")
    module = llvm.parse_assembly(written)
    module.triple, module.data_layout = "{TRIPLE}", str(machine.target_data)
    module = Passes("!accnp.vectors" in written, False, False, 3).run(module, machine)
    print(machine.emit_assembly(module), end="\\0")
"""


def kernels() -> dict[str, list[str]]:
    """The kernels of expressions, as text."""
    x = jnp.asarray(np.linspace(0, 1, 2000, dtype=np.float32))
    texts: dict[str, list[str]] = {}
    step = plans.KernelStep.__init__

    def record(self, text, *args):
        if text.kernel is not None:
            texts[name].append(print_kernel(text.kernel))
        step(self, text, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans.KernelStep, "__init__", record)
        for name, f in EXPRESSIONS.items():
            texts[name] = []
            jnp.jit(lambda x, y, f=f: f(x, y))(x, x).block_until_ready()
    return texts


def test_kernels_become_assembly_of_aarch64():
    texts = [(name, text) for name, each in kernels().items() for text in each]
    process = subprocess.run(
        [sys.executable, "-c", CODE], input="\0".join([text for _, text in texts]),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assemblies = process.stdout.split("\0")[:-1]
    assert len(assemblies) == len(texts) > len(EXPRESSIONS)
    for (name, _), assembly in zip(texts, assemblies, strict=True):
        assert "accnp_entry:" in assembly, name
        assert "x86" not in assembly, name
    # Sums, products and comparisons of float32 are vectors of four.
    simple = [a for (name, _), a in zip(texts, assemblies, strict=True) if name == "add"]
    assert all("fadd\tv" in a and ".4s" in a for a in simple)
    # So are functions, whose tables are looked up by an instruction.
    tables = [a for (name, _), a in zip(texts, assemblies, strict=True) if name in ("tanh", "sin")]
    assert tables
    assert all("tbl\tv" in a and "fmla\tv" in a for a in tables)
