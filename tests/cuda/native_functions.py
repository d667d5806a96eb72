"""GPU formulas of float32 functions compiled for the CPU, to check millions of arguments per second
with any error of the GPU's approximate instructions.

`natives(names)` returns one function for each name. The error of an instruction is added in units
in the last place of its result (for logarithms, in 2^-22), separately for negative and other
arguments. Results that float32 represents exactly have no error, and subnormal numbers are treated
as by the instruction.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from accnp.compiler.llvm import mathlib
from accnp.compiler.llvm.scalars import exp, gpu, log, units
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    I32,
    I64,
    V,
    copysign,
    fabs,
    floor,
    fma,
    sqrt,
    where,
)

__all__ = ["ERRORS", "natives"]

ERRORS = ("ex2", "lg2", "rcp", "rsqrt")
TINY = 2.0**-126
_FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_longlong, ctypes.c_void_p)


def natives(names: Sequence[str], approximate: bool = True) -> dict[str, Callable[..., np.ndarray]]:
    """Return functions of float32 arguments and of errors `{instruction: (below 0, else)}`; or,
    unless `approximate`, the functions of CPU kernels."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = ir.Module("natives")
    triple = llvm.get_process_triple()
    module.triple = "nvptx64-nvidia-cuda" if approximate else triple  # selects the formulas
    for name in names:
        _loop(module, name, approximate)
    module.triple = triple
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    llvm.create_pass_builder(machine, options).getModulePassManager().run(
        parsed, llvm.create_pass_builder(machine, options)
    )
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return {name: _callable(engine, name) for name in names}


def _callable(engine: Any, name: str) -> Callable[..., np.ndarray]:
    call = _FUNCTION(engine.get_function_address(name))

    def f(x: np.ndarray, **off: tuple[float, float]) -> np.ndarray:
        assert engine
        x, y = np.ascontiguousarray(x), np.empty_like(x)
        errors = np.array([off.get(name, (0.0, 0.0)) for name in ERRORS], "f8")
        call(x.ctypes.data, y.ctypes.data, x.size, errors.ctypes.data)
        return y

    return f


def _loop(module: Any, name: str, approximate: bool) -> None:
    pointer = F32.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, I64, F64.as_pointer()])
    f = ir.Function(module, kind, name)
    for a in (f.args[0], f.args[1], f.args[3]):
        a.attributes.add("noalias")
    start, body, end = (f.append_basic_block() for _ in range(3))
    b = ir.IRBuilder(start)
    off = [b.load(b.gep(f.args[3], [ir.Constant(I32, k)])) for k in range(2 * len(ERRORS))]
    errors = {unit: off[2 * k : 2 * k + 2] for k, unit in enumerate(ERRORS)}
    b.branch(body)
    b.position_at_end(body)
    i = b.phi(I64)
    i.add_incoming(ir.Constant(I64, 0), start)
    x = V(b, b.load(b.gep(f.args[0], [i])))
    with _simulated_instructions(errors):
        form = gpu.GPU.get(name) if approximate else None
        y = (form or mathlib.UNARY[name])(x)
    b.store(y.v, b.gep(f.args[1], [i]))
    after = b.add(i, ir.Constant(I64, 1))
    i.add_incoming(after, b.block)
    b.cbranch(b.icmp_signed("<", after, f.args[2]), body, end)
    b.position_at_end(end)
    b.ret_void()


@contextmanager
def _simulated_instructions(errors: dict[str, list[Any]]) -> Iterator[None]:
    """Replace the approximate instructions by arithmetic of the CPU."""
    simulated = {
        "ex2": _instruction(exp.exp2, *errors["ex2"]),
        "lg2": _instruction(log.log2, *errors["lg2"], steps=2.0**-22),
        "rcp": _instruction(lambda d: 1.0 / d, *errors["rcp"]),
    }
    originals = {(m, n): getattr(m, n) for m in (units, gpu) for n in simulated}
    root, roundings = gpu.GPU["rsqrt"], (units.fma_saturated, units.fma_down)
    for m, n in originals:
        setattr(m, n, simulated[n])
    gpu.GPU["rsqrt"] = _instruction(lambda d: 1.0 / sqrt(d), *errors["rsqrt"], flushed=False)
    units.fma_saturated, units.fma_down = _saturated, _down
    try:
        yield
    finally:
        for (m, n), f in originals.items():
            setattr(m, n, f)
        gpu.GPU["rsqrt"], (units.fma_saturated, units.fma_down) = root, roundings


def _instruction(
    f: Callable[[V], V], below: Any, above: Any, flushed: bool = True, steps: float = 0.0
) -> Callable[[V], V]:
    def flush(x: V) -> V:
        return where(fabs(x) < TINY, copysign(x.const(0.0), x), x) if flushed else x

    def build(x: V) -> V:
        b, x = x.b, flush(x)
        y = f(V(b, b.fpext(x.v, F64)))
        off = V(b, b.select((x < 0.0).v, below, above))
        # the power of two with the exponent of y
        whole = b.and_(b.bitcast(y.v, I64), ir.Constant(I64, 0x7FF << 52))
        step = y.const(steps) if steps else V(b, b.bitcast(whole, F64)) * 2.0**-23
        moved = fma(off, step, y)
        exact = V(b, b.fpext(b.fptrunc(y.v, F32), F64)).eq(y)
        lost = (fabs(y) < 3.4e38).v  # infinities and NaNs stay
        y = where(V(b, b.and_(b.not_(exact.v), lost)), moved, y)
        return flush(V(b, b.fptrunc(y.v, F32)))

    return build


def _saturated(x: V, y: float, z: float) -> V:
    t = fma(x, x.const(y), x.const(z))
    t = where(V(x.b, x.b.fcmp_ordered(">", t.v, t.const(0.0).v)), t, 0.0)
    return where(t < 1.0, t, 1.0)


def _down(x: V, y: float, z: float) -> V:
    """Round down: the sum is exact in float64, and an integer where it is rounded."""
    wide = V(x.b, x.b.fpext(x.v, F64))
    whole = floor(fma(wide, wide.const(y), wide.const(z)))
    return V(x.b, x.b.fptrunc(whole.v, F32))
