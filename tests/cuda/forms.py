"""Kernels of programs, by plan: the processor's and those for GPUs, run on the same memory."""

from __future__ import annotations

import numpy as np
from compiler.fusion.support import plan_of
from cuda.interpreter import Memory, Module

from accnp.compiler.fusion.lower import lower
from accnp.compiler.grid_kernels import build_grid_kernel
from accnp.compiler.kernel_cache import get_kernel
from accnp.compiler.ptx import ptx_of
from accnp.ir.kernel import Access


def specs_of(f, *arrays):
    """The kernel descriptions of a function's plan, one list for each step."""
    return [[s for group in lower(step.cluster) for s in group]
            for step in plan_of(f, *arrays).steps if getattr(step, "cluster", None)]  # fmt: skip


def sizes_of(spec):
    return (*spec.outer, *spec.reduced, *spec.inner)


def extent_of(a, sizes):
    """First and last element that an access may touch, from its pointer."""
    reach = [(n - 1) * s for n, s in zip(sizes, a.strides, strict=True)]
    reach += [top * stride for stride, top in a.terms]
    return sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)


class Case:
    """Memory for a kernel: one array for each value, with each operand's offset."""

    @classmethod
    def of_all(cls, specs):
        """Memory for several kernels."""
        return cls([(a, s) for s in specs for a in s.accesses])

    def __init__(self, spec, seed=0, values=None):
        pairs = spec if isinstance(spec, list) else [(a, spec) for a in spec.accesses]
        rng = np.random.default_rng(seed)
        size = {}
        for a, s in pairs:
            _, high = extent_of(a, sizes_of(s))
            size[id(a.value)] = max(size.get(id(a.value), 0), a.offset + high + 1)
        self.arrays, self.of = [], {}
        for a, _ in pairs:
            if id(a.value) not in self.of:
                self.of[id(a.value)] = len(self.arrays)
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

    def on_cpu(self, text):
        arrays = [a.copy() for a in self.arrays]
        rooms = {}
        for t in (text, *text.then):
            self._cpu_step(t, arrays, rooms)
        return arrays

    def _cpu_step(self, text, arrays, rooms):
        pointers = []
        for p in text.pointers:
            if isinstance(p, Access):
                x = arrays[self.of[id(p.value)]]
                pointers.append(x.ctypes.data + p.offset * p.dtype.itemsize)
            else:
                pointers.append(self._room(p, text, rooms).ctypes.data)
        callees = tuple((name, its) for name, its, *_ in text.callees)
        kernel = get_kernel(text.source, "kernel", text.signature, callees=callees)
        kernel.call(text.extent, text.extent, *pointers, *text.ints)
        self.rooms = rooms

    def _room(self, p, text, rooms):
        name, count, dtype = (
            (p[0], text.extent, p[2]) if isinstance(p, tuple) else (p.name, p.count, p.dtype)
        )
        if name not in rooms:
            rooms[name] = np.zeros(count, dtype)
        return rooms[name]

    def on_gpu(self, text, blocks=None, cc=(9, 0), fastmath=False, shift=0):
        """What the kernel makes of copies, interpreted; `machines` and `rooms` are left here."""
        memory = Memory()
        places = [memory.put(a, shift) for a in self.arrays]
        rooms, self.machines = {}, []
        for t in (text, *text.then):
            pointers = []
            for p in t.pointers:
                if isinstance(p, Access):
                    base = places[self.of[id(p.value)]]
                    pointers.append(base + p.offset * p.dtype.itemsize)
                else:
                    name, x = p[0] if isinstance(p, tuple) else p.name, self._room(p, t, {})
                    if name not in rooms:
                        rooms[name] = memory.put(x), x
                    pointers.append(rooms[name][0])
            callees = tuple((name, its) for name, its, *_ in t.callees)
            made = ptx_of(
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
            self.ptx = made
            self.machines.append(Module(made.text).launch(made.name, n, t.threads, words, memory))
        self.rooms = {k: memory.get(*v) for k, v in rooms.items()}
        return [memory.get(p, a) for p, a in zip(places, self.arrays, strict=True)]


def grids_of(f, *arrays):
    """Pairs of a description and its kernel for GPUs."""
    return [(s, build_grid_kernel(s)) for specs in specs_of(f, *arrays) for s in specs]
