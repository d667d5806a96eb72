"""Run the kernels of a function's plan on the CPU and, as interpreted PTX, on the same data.

`kernel_specs` and `grid_kernels` return the kernels of a function; `Case` allocates their operands.
"""

from __future__ import annotations

import numpy as np
from compiler.fusion.support import plan_of
from cuda.interpreter import Memory, Module

from accnp.compiler.fusion.lower import lower
from accnp.compiler.grid_kernels import build_grid_kernel
from accnp.compiler.kernel_cache import get_kernel
from accnp.compiler.ptx import ptx_of
from accnp.ir.kernel import Access


def kernel_specs(f, *arrays):
    """Return the kernel specs of a function's plan, one list for each step."""
    return [[s for group in lower(step.cluster) for s in group]
            for step in plan_of(f, *arrays).steps if getattr(step, "cluster", None)]  # fmt: skip


def grid_sizes(spec):
    return (*spec.outer, *spec.reduced, *spec.inner)


def access_range(a, sizes):
    """Return the first and last element that an access may touch, relative to its pointer."""
    reach = [(n - 1) * s for n, s in zip(sizes, a.strides, strict=True)]
    reach += [top * stride for stride, top in a.terms]
    return sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)


class Case:
    """Memory for a kernel: one array for each value, with the offset of each operand."""

    @classmethod
    def for_specs(cls, specs):
        """Allocate memory for several kernels."""
        return cls([(a, s) for s in specs for a in s.accesses])

    def __init__(self, spec, seed=0, values=None):
        pairs = spec if isinstance(spec, list) else [(a, spec) for a in spec.accesses]
        rng = np.random.default_rng(seed)
        size = {}
        for a, s in pairs:
            _, high = access_range(a, grid_sizes(s))
            size[id(a.value)] = max(size.get(id(a.value), 0), a.offset + high + 1)
        self.arrays, self.position = [], {}
        for a, _ in pairs:
            if id(a.value) not in self.position:
                self.position[id(a.value)] = len(self.arrays)
                n = size[id(a.value)]
                if values is not None and not a.store:
                    x = values(a, n, rng)
                elif a.dtype.kind == "b":
                    x = rng.random(n) < 0.5
                elif a.dtype.kind in "iu":
                    x = rng.integers(0, 100, n)
                else:
                    x = rng.standard_normal(n)
                    x = x + 1j * rng.standard_normal(n) if a.dtype.kind == "c" else x
                self.arrays.append(np.zeros(n, a.dtype) if a.store else x.astype(a.dtype))

    def run_on_cpu(self, text):
        arrays = [a.copy() for a in self.arrays]
        scratch = {}
        for t in (text, *text.then):
            self._cpu_step(t, arrays, scratch)
        return arrays

    def _cpu_step(self, text, arrays, scratch):
        pointers = []
        for p in text.pointers:
            if isinstance(p, Access):
                x = arrays[self.position[id(p.value)]]
                pointers.append(x.ctypes.data + p.offset * p.dtype.itemsize)
            else:
                pointers.append(self._scratch(p, text, scratch).ctypes.data)
        callees = tuple((name, its) for name, its, *_ in text.callees)
        kernel = get_kernel(text.source, "kernel", text.signature, callees=callees)
        kernel.call(text.extent, text.extent, *pointers, *text.ints)
        self.scratch = scratch

    def _scratch(self, p, text, scratch):
        name, count, dtype = (
            (p[0], text.extent, p[2]) if isinstance(p, tuple) else (p.name, p.count, p.dtype)
        )
        if name not in scratch:
            scratch[name] = np.zeros(count, dtype)
        return scratch[name]

    def interpret(self, text, blocks=None, cc=(9, 0), fastmath=False, shift=0):
        """Interpret the kernel on copies of the operands and return them; set `machines` and
        `scratch`."""
        memory = Memory()
        places = [memory.put(a, shift) for a in self.arrays]
        scratch, self.machines = {}, []
        for t in (text, *text.then):
            pointers = []
            for p in t.pointers:
                if isinstance(p, Access):
                    base = places[self.position[id(p.value)]]
                    pointers.append(base + p.offset * p.dtype.itemsize)
                else:
                    name, x = p[0] if isinstance(p, tuple) else p.name, self._scratch(p, t, {})
                    if name not in scratch:
                        scratch[name] = memory.put(x), x
                    pointers.append(scratch[name][0])
            callees = tuple((name, its) for name, its, *_ in t.callees)
            kernel = ptx_of(
                t.source,
                t.signature,
                tasks=t.tasks,
                callees=callees,
                cc=cc,
                fastmath=fastmath,
                threads=t.threads,
                program=t.kernel,
            )
            words = [*pointers, *([t.extent] if t.tasks else []), *t.ints]
            n = t.blocks if t.once else blocks or min(t.blocks, 40)
            self.ptx = kernel
            self.machines.append(
                Module(kernel.text).launch(kernel.name, n, t.threads, words, memory)
            )
        self.scratch = {k: memory.get(*v) for k, v in scratch.items()}
        return [memory.get(p, a) for p, a in zip(places, self.arrays, strict=True)]


def grid_kernels(f, *arrays):
    """Return pairs of a kernel spec and its GPU kernel."""
    return [(s, build_grid_kernel(s)) for specs in kernel_specs(f, *arrays) for s in specs]
