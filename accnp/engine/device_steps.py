"""The steps of plans for a GPU: launches of PTX kernels and calls of the array library.

The planner creates them, and `device_run` runs the records that they return. Steps of other kinds
(`KernelStep`, `HostStep`) in such a plan run on the CPU, on copies of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from accnp.caches import BoundedCache
from accnp.compiler.fusion.program import Value
from accnp.compiler.kernel_cache import Callees
from accnp.compiler.library.lowerings import gpu_call_of
from accnp.compiler.ptx import ptx_of
from accnp.compiler.ptx_code import Ptx
from accnp.engine.steps import ControlStep, HostStep, KernelStep, Step
from accnp.ir.generated import GeneratedKernel
from accnp.ir.node import Node
from accnp.runtime.device import Device
from accnp.runtime.device_buffer import driver_of
from accnp.runtime.driver import Driver

if TYPE_CHECKING:
    from accnp.engine.device_captures import Capture
    from accnp.engine.device_table import Walk
    from accnp.engine.device_words import Calls, Place
    from accnp.ir.op import Op
    from accnp.runtime.driver import DeviceArray, Function

    PlaceOf = Callable[[int, int], Place]  # the place of a slot, from a byte on

__all__ = ["AddressStep", "DeviceStep", "LibraryStep", "find_name_and_site"]

MOST = 64  # waves of blocks of a launch, whose threads then do more than one piece of the work


class DeviceStep(KernelStep):
    """One launch on a GPU. Where the text is one for the processor (`GeneratedKernel.tasks`), the
    threads share its indices."""

    __slots__ = (
        "blocks", "device", "fastmath", "function", "guard", "node", "op", "place", "threads",
        "words",
    )  # fmt: skip

    def __init__(self, text: GeneratedKernel, fastmath: bool, device: Device) -> None:
        super().__init__(text, fastmath)
        self.fastmath = fastmath
        self.device = device
        self.function: Function | None = None  # once it is loaded
        self.words: list[int] = []  # what comes after the pointers, likewise
        # The dtype of the index of the branch, if the kernel itself tests whether it was chosen.
        self.guard = ""
        self.threads = text.threads
        blocks = -(-self.extent // text.threads) if text.tasks else text.blocks
        most = MOST * driver_of(device).wave
        self.blocks = blocks if text.once else min(most, max(1, blocks))
        # The operation that an error message names; see `HostStep`.
        self.node: Node | None = None
        self.op: Op | None = None
        self.place = -1

    @classmethod
    def of(cls, step: KernelStep, fastmath: bool, device: Device) -> DeviceStep:
        """The launch of a step for the processor."""
        step.text.extent, step.text.tasks = step.extent, True
        device_step = cls(step.text, fastmath, device)
        device_step.resize(step.extent, max(1, step.work // max(1, step.extent)))
        for name in KernelStep.__slots__:
            if name not in ("extent", "grain", "kernel", "work"):
                setattr(device_step, name, getattr(step, name))
        return device_step

    def ptx(self, source: str = "", callees: Callees | None = None) -> Ptx:
        """Its text for the GPU, or that of another source in its place; CompileError where there
        is none."""
        return ptx_of(
            source or self.text.source,
            self.text.signature,
            fastmath=self.fastmath,
            cc=driver_of(self.device).cc,
            tasks=self.text.tasks,
            threads=self.threads,
            callees=self.callees if callees is None else callees,
            guard=self.guard,
            program=None if source or self.text.tasks else self.text.kernel,
        )

    def forget(self) -> None:
        self.function = None

    def load(self, fastmath: bool, two_tiers: bool = False) -> Any:
        """Return the function; compile and load it at the first call."""
        if self.function is None:
            ptx = self.ptx()
            self.words = [*([self.extent] if self.text.tasks else []), *self.text.ints]
            self.function = _load_kernel(self.device, ptx)
        return self.function

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability of its device."""
        return driver_of(self.device).cc

    def facts(self) -> dict[str, int]:
        """Registers of a thread, bytes of local and shared memory; loads the kernel."""
        return driver_of(self.device).facts(self.load(self.fastmath))


_functions: BoundedCache[tuple[Driver, str], Function] = BoundedCache("kernel_cache_size")


def _load_kernel(device: Device, ptx: Ptx) -> Function:
    driver = driver_of(device)
    key = (driver, ptx.name)
    function = _functions.get(key) or _functions.recall(key)
    if function is None:
        function = driver.load(ptx.text, ptx.name)
        _functions.store(key, function)
    return function


def find_name_and_site(step: Step) -> tuple[str, tuple[CodeType, int]] | None:
    """Return the name of what a step computes, and the user's line of it, for errors."""
    node: Node | None = getattr(step, "node", None)
    return None if node is None or node.site is None else (node.op.name, node.site)


class LibraryStep(HostStep):
    """A call of a function of the array library (CuPy) on (strided views of) buffers."""

    __slots__ = ("captured", "function")
    updated_slots = ()

    def __init__(self, v: Value) -> None:
        super().__init__(v)
        self.function = gpu_call_of(v.op)
        # In a loop: the call as a CUDA graph, or why it cannot be one; None if not known yet.
        self.captured: Capture | str | None = None

    @property
    def what(self) -> str:
        """The kind of the step."""
        by = "call of the GPU's library"
        return by if isinstance(self.captured, str | None) else f"{by}, captured as a CUDA graph"

    @property
    def allocs(self) -> list[tuple[int, int]]:
        """Slots that it makes, and their bytes, as those of a kernel."""
        avals = [self.avals[max(index, 0)] for _, index in self.results]
        return [(slot, a.nbytes) for (slot, _), a in zip(self.results, avals, strict=True)]

    @property
    def label(self) -> str:
        """The operation or kernel that the step computes."""
        return self.op.name

    def call(self, driver: Driver, arrays: Sequence[DeviceArray]) -> list[DeviceArray] | None:
        """Return new C-contiguous arrays of the results; None if the function does not support
        these operands. Users' functions launch kernels, so they get the driver itself."""
        xp = driver.xp
        assert self.function is not None
        out = self.function(xp if self.op.cuda is None else driver, *arrays, **self.params)
        if out is None:
            return None
        outputs: list[DeviceArray] = []
        for _, index in self.results:
            value, aval = out if index < 0 else out[index], self.avals[max(index, 0)]
            mine = xp.asarray(value, dtype=aval.dtype).reshape(aval.shape)
            fresh = mine.flags.c_contiguous and mine.flags.owndata
            outputs.append(mine if fresh else mine.copy(order="C"))
        return outputs


class AddressStep(LibraryStep):
    """A call of a function of cuBLAS or cuSOLVER by its address, on the device's stream.

    `own_allocs` are the slots that it allocates, and their bytes; None if these are its results.
    """

    __slots__ = ("own_allocs", "walk")

    def __init__(self, v: Value) -> None:
        super().__init__(v)
        self.own_allocs: list[tuple[int, int]] | None = None
        self.walk: Walk | None = None  # executes only this step; created on first use

    @property
    def allocs(self) -> list[tuple[int, int]]:
        """The slots that it allocates, and their bytes."""
        return super().allocs if self.own_allocs is None else self.own_allocs

    def words(self, place: PlaceOf, calls: Calls) -> tuple[str, int, int, list[Place]]:
        """The function's name among `driver.CALLS`, its address, the bit of its errors, and its
        arguments as places; `calls` keeps what they point to."""
        raise NotImplementedError


# The steps of which a table for a GPU may consist, see `device_slots.why_not_table`.
TableStep = ControlStep | DeviceStep | LibraryStep
