"""LLVM text to machine code, by llvmlite alone: IR comes in, object bytes and addresses go out.

Fresh and cached kernels are loaded by the same `load`. Loaded by name on first use.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from accnp.runtime.library import called_in

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

_lock = threading.RLock()
_serial = itertools.count()
_TRIPLE = llvm.get_process_triple()
CPU = llvm.get_host_cpu_name()
_HOST = llvm.get_host_cpu_features()
WIDE = bool(_HOST.get("avx512f"))
VECTOR_BYTES = 64 if WIDE else 32
# Some CPU models carry a tuning flag that keeps vectors at 256 bits.
FEATURES = _HOST.flatten() + (",-prefer-256-bit" if WIDE else "")
STAMP = f"{_TRIPLE} {CPU} {FEATURES} llvmlite {llvmlite.__version__} {llvm.llvm_version_info}"
ENTRY_ATTRIBUTES = 'nounwind "prefer-vector-width"="512"' if WIDE else "nounwind"

_target = llvm.Target.from_triple(_TRIPLE)
_machine: Any = None
_jit: Any = None


def _target_machine() -> Any:
    global _machine
    if _machine is None:
        _machine = _target.create_target_machine(
            cpu=CPU, features=FEATURES, opt=3, reloc="pic", codemodel="small", jit=False
        )
    return _machine


def _optimised(text: str, linked: list[str]) -> Any:
    module = llvm.parse_assembly(text)
    module.triple = _TRIPLE
    module.data_layout = str(_target_machine().target_data)
    for other in linked:
        module.link_in(llvm.parse_assembly(other))
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = True
    tuning.loop_interleaving = True
    tuning.loop_unrolling = True
    builder = llvm.create_pass_builder(_target_machine(), tuning)
    builder.getModulePassManager().run(module, builder)
    return module


def build(text: str, linked: list[str]) -> bytes:
    """Object file of the optimised module."""
    with _lock:
        return _target_machine().emit_object(_optimised(text, linked))


def show_llvm(text: str, linked: list[str]) -> str:
    """The optimised module as text."""
    with _lock:
        return str(_optimised(text, linked))


def show_assembly(text: str, linked: list[str]) -> str:
    """The machine code as assembly text."""
    with _lock:
        return _target_machine().emit_assembly(_optimised(text, linked))


def load(data: bytes, *symbols: str) -> tuple[list[int], Any]:
    """Load an object file; returns the addresses of symbols and what keeps the code mapped."""
    global _jit
    called = called_in(data, VECTOR_BYTES)
    with _lock:
        if _jit is None:
            _jit = llvm.create_lljit_compiler()
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(data).add_current_process()
        for symbol, kernel in called.items():
            builder.import_symbol(symbol, kernel.address)
        for symbol in symbols:
            builder.export_symbol(symbol)
        tracker = builder.link(_jit, f"accnp{next(_serial)}")
        return [tracker[symbol] for symbol in symbols], (tracker, called)
