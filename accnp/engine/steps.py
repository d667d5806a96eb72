"""The data structures of a plan: `Plan` and its steps.

A step is the launch of a kernel (`KernelStep`), the call of a library function (`HostStep`), or
control flow on the host (`ControlStep`). The planner makes them, and `execute.py` runs them. A
kernel step also decides how its launch is divided among threads and which tier its code is first
compiled in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.compiler.fusion.fuse import Cluster
from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.kernel_cache import FirstTier, Kernel, get_kernel, wait_for_background
from accnp.config import config
from accnp.engine.traffic import value_bytes
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import STRETCH, KernelSpec
from accnp.ir.node import Node
from accnp.runtime.device import Device
from accnp.runtime.nontemporal import Pieces

if TYPE_CHECKING:
    from accnp.engine.bailout import Bailout
    from accnp.engine.table import LaunchTable
    from accnp.ir.aval import Aval

__all__ = [
    "ControlStep", "HostOperand", "HostStep", "KernelStep", "Plan", "Step", "elementwise_operands",
    "forget_nodes", "used_slots",
]  # fmt: skip

# Limits on work decide what threads share, and in which parts. The unit is one simple operation on
# one element. Costs are upper estimates: a thread does 3 per nanosecond, and ten times as many in
# vector code with operands in its caches.
BRIEF = 1 << 13  # below this, a launch keeps the GIL
AWAKE_THREADS_WORK = 1 << 15  # from this on, worker threads that are awake take part in a launch
PARALLEL = 1 << 18  # from this on, threads share a kernel; sharing 2^16 gained nothing
# Below both this work and this many bytes, sleeping worker threads are not woken: waking one takes
# 50 us.
WAKE_WORK, WAKE_BYTES = 1 << 21, 1 << 19
GRAIN = 1 << 16  # work of one chunk of a kernel: some 20 us
PIECES = 32  # the maximum number of chunks per thread, for large kernels
# Work of a kernel in a native loop from which threads share it: some 6 us on one thread. In a loop,
# worker threads stay awake between kernels, so sharing costs less. On two cores of a Zen 5, 80
# sweeps of a stencil took 210 us on one thread and 135 us on two (150x150), and 270 us and 170 us
# (25x25x25). With a limit of 2^16 they were slower. After a stall, kernels run on one thread for a
# while (`_native/thread_pool.c`).
SHARED = 1 << 18
# Work from which the other kernels of such a loop are shared too, so that each thread finds most of
# its operands in its own cache.
OTHERS_SHARED = 1 << 15
# Work of a kernel (0.5 ms) from which its loop runs on the host. That costs 15 us per kernel, but
# results may then use non-temporal stores.
LARGE = 1 << 24
# Kernels with less work start in the first of two tiers (`compiler/background_compile.py`). Its
# code takes up to 4 times as long as that of the second tier, which is ready some 10 ms later. The
# first limit is for vector code (up to 0.2 ms in the second tier), the second for other code
# (0.1 ms).
SHORT_VECTORS = 1 << 23
SHORT = 1 << 19
# A loop over other kernels starts in the first tier if its text has more characters than LONG_TEXT
# and its work is below SHORT_LOOP (some 30 ms): optimizing it first would take a second or more.
LONG_TEXT = 1 << 16
SHORT_LOOP = 1 << 26
LIBRARY_PARALLEL = 1 << 25  # work of a library call from which threads share it: some 0.2 ms


SECOND_STAGE = "second stage of a reduction, on its partial results"


class KernelStep:
    """The launch of a kernel.

    The arguments of the kernel are `pointers`, which are pairs (slot, byte offset), followed by
    `ints`, which has the addresses of `constants` and then the integers of the text.
    """

    __slots__ = (
        "alike", "allocs", "bodies", "chained", "cluster", "constants", "copied", "extent", "frees",
        "grain", "ints", "kernel", "label", "moved", "nontemporal", "pointers", "stores", "stretch",
        "text", "updated_slots", "whole_loop", "work",
    )  # fmt: skip

    def __init__(self, text: GeneratedKernel, fastmath: bool) -> None:
        self.text = text
        self.kernel: Kernel | None = None
        self.pointers: list[tuple[int, int]] = []
        self.constants: list[Any] = []
        self.ints = text.ints
        self.resize(text.extent, text.weight)
        self.allocs: list[tuple[int, int]] = []
        self.frees: list[int] = []
        self.alike: list[int] = []  # slots of the values that `elementwise_operands` returns
        self.stores: set[int] = set()  # slots that it writes to and that other steps have made
        # Slots that start with the values of another slot: (slot, other slot, bytes, whether the
        # buffer of the other slot is reused in place instead of being copied).
        self.updated_slots: list[tuple[int, int, int, bool]] = []
        self.copied: dict[int, str] = {}  # why a slot is a copy
        self.bodies: list[Plan] = []  # the bodies of a native loop, for inspection
        self.cluster: Cluster | None = None
        self.whole_loop = False  # whether the kernel contains a loop of the program with its body
        self.chained: Cluster | None = None  # the cluster whose output it computes in bands first
        self.label = ""  # a short description; a list of its operations under ACCNP_DEBUG
        # Results that are written with non-temporal stores, and operands that are read in pieces of
        # the same size: the number of the pointer, and the bytes per index.
        self.nontemporal: tuple[Pieces, Pieces] = ((), ())
        self.moved = 0  # bytes that it reads and writes (see `traffic.py`), without its copies

    def resize(self, extent: int, weight: int) -> None:
        """Set the extent of the parallel index, and the work per index.

        They determine the sizes of chunks: `grain` if threads share the launch, `stretch` if one
        thread runs it. A chunk costs some 20 ns.
        """
        self.extent = extent
        self.work = extent * weight
        fine = max(1, GRAIN // max(1, weight))
        # Costs are upper estimates. For a chunk that takes a microsecond, most of the time would be
        # spent on the shared counter.
        coarse = max(1, 16 * GRAIN // max(1, weight))
        grain = max(fine, min(extent // (PIECES * config.threads), coarse))
        if PARALLEL <= self.work < WAKE_WORK:  # one or a few chunks per thread
            threads = max(2, config.threads)
            grain = -(-extent // min(max(threads, 2 * self.work // GRAIN), 8 * threads))
        self.grain = _round_to_cache_lines(grain)
        self.stretch = max(self.grain, _round_to_cache_lines(STRETCH // max(1, weight)))

    @property
    def callees(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the names and signatures of the kernels that this one calls."""
        return tuple([c[:2] for c in self.text.callees])

    @property
    def programs(self) -> dict[str, Any]:
        """Return the called kernels that exist as loop IR, by name."""
        return {c.name: c.kernel for c in self.text.callees if c.kernel is not None}

    @property
    def nbytes(self) -> int:
        """Return the bytes that it moves, including copies before updates."""
        return self.moved + 2 * sum([n for _, _, n, over in self.updated_slots if not over])

    @property
    def is_brief(self) -> bool:
        """Whether it ends before a sleeping worker thread could take part."""
        # The work of matrix products is not an upper estimate: at this limit they take 60 us.
        limit = PARALLEL if self.text.products else WAKE_WORK
        return self.work < limit and self.nbytes < WAKE_BYTES and not self.text.shares

    @property
    def keeps_gil(self) -> bool:
        """Whether it is so short that it keeps the GIL; false for text with a while loop, whose
        length is not known."""
        return self.work < BRIEF and not self.text.whiles

    @property
    def writes(self) -> set[int]:
        """Return the slots that it writes to."""
        update_slots = [slot for update in self.updated_slots for slot in update[:2]]
        return {*self.stores, *[slot for slot, _ in self.allocs], *update_slots}

    def forget(self) -> None:
        """Drop the machine code, because the text has changed."""
        self.kernel = None

    @property
    def first_tier(self) -> FirstTier:
        """Return when the kernel starts with unoptimized code, because one run of it takes less
        time than optimizing it.

        The ranges of the launch determine how long a run takes. Two tiers do not pay off for a
        native loop, unless its text is so long that optimizing it takes seconds.
        """
        if self.text.whiles:
            return FirstTier.NEVER
        if self.bodies or self.text.callees:
            long = len(self.text.source) > LONG_TEXT
            return FirstTier.ALWAYS if long and self.work < SHORT_LOOP else FirstTier.NEVER
        if self.work < SHORT:
            return FirstTier.ALWAYS
        return FirstTier.VECTORS if self.work < SHORT_VECTORS else FirstTier.NEVER

    def load(self, fastmath: bool, two_tiers: bool = False) -> Kernel:
        """Return the machine code. The first call compiles it or loads it from a cache."""
        if self.kernel is None:
            self.kernel = get_kernel(
                self.text.source,
                "kernel",
                self.text.signature,
                fastmath=fastmath,
                callees=self.callees,
                program=self.text.kernel,
                programs=self.programs,
                # Under fast-math flags, the results of the two tiers could differ.
                first_tier=self.first_tier if two_tiers and not fastmath else FirstTier.NEVER,
            )
            # A shorter step may have started it in the first tier. A step of up to 2^23 units of
            # work does not wait for the optimized code: it is ready within some 10 ms.
            if self.first_tier is FirstTier.NEVER:
                wait_for_background(self.kernel)
        return self.kernel


def _round_to_cache_lines(grain: int) -> int:
    """Return a number of steps that begins each chunk at the start of a cache line."""
    return -(-grain // 64) * 64 if grain >= 64 else grain


def elementwise_operands(spec: KernelSpec) -> list[Value]:
    """Return the operands that a kernel reads only at the index at which it writes its one result.

    The result may overwrite any one of them. A row kernel must write in its last pass, and that
    pass must contain no reduction, since a reduction may read the operand from memory again.
    """
    stores = [a for a in spec.accesses if a.store]
    if len(stores) != 1 or stores[0].offset:
        return []
    (out,) = stores
    if spec.form == "row":
        last = spec.phases[-1]
        if last.reductions or not any(a is out for a, _ in last.stores):
            return []
    elif spec.form != "map":
        return []
    operands: dict[int, Value | None] = {}
    for a in spec.accesses:
        same = a.strides == out.strides and not (a.offset or a.terms) and a.dtype == out.dtype
        same = same and a.value.aval.size == out.value.aval.size
        operands[id(a.value)] = a.value if same and operands.get(id(a.value), a.value) else None
    return [v for v in operands.values() if v is not None and v is not out.value]


# Slot, shape, dtype, strides in bytes (None: contiguous), offset in bytes, and the number of
# elements of the base buffer.
HostOperand = tuple[int, tuple[int, ...], np.dtype, Sequence[int] | None, int, int]


class HostStep:
    """One call of an op's reference function on (strided views of) buffers."""

    what = "library call"

    __slots__ = (
        "avals", "frees", "in_rounds", "nbytes", "node", "op", "operands", "params", "place",
        "results", "work",
    )  # fmt: skip

    def __init__(self, v: Value) -> None:
        self.op = v.op
        self.params = v.params
        self.node = v.node
        self.place = -1  # position of its node in the pending graph that an eager plan is made for
        self.nbytes = value_bytes(v)
        self.avals = v.avals  # not those of the node: a value may be an intermediate result of it
        self.operands: list[HostOperand] = []
        self.results: list[tuple[int, int]] = []  # slots; indices of results, -1 for the only one
        self.frees: list[int] = []
        self.work = v.op.cost * max([a.size for a in v.avals] or [1])
        self.in_rounds = v.op.rounds is not None and self.work >= LIBRARY_PARALLEL


# The number of runs of a plan after which a dispatch cache entry is made for it, so that the C
# extension does the next run. Making the entry takes as long as three runs. If that is not possible
# yet, it is tried again each time the number of runs has doubled.
OFTEN = 2


def is_due_for_entry(hits: int, first: int = OFTEN) -> bool:
    """Return whether to make a dispatch cache entry after this run."""
    return hits >= first and not hits & (hits - 1)


class Plan:
    """The steps of a program in order. The first `n_leaves` slots are the buffers of the leaves."""

    __slots__ = (
        "constants", "depends_on_indices", "device", "fastmath", "hits", "launch_table", "loaded",
        "n_leaves", "n_slots", "out_avals", "output_slots", "overwritten", "parts", "program",
        "quick", "spare", "steps", "waits", "walk", "work",
    )  # fmt: skip

    def __init__(self, n_leaves: int) -> None:
        self.n_leaves = n_leaves
        self.n_slots = n_leaves
        self.steps: list[Any] = []  # of `Step`; on a GPU, of `TableStep`
        self.output_slots: list[int] = []
        self.out_avals: list[Aval] = []
        self.work = 0
        self.fastmath = False
        self.device: Device | None = None  # a GPU, or None for the CPU
        self.waits = False  # whether the host waits for steps of a GPU, or executes some itself
        self.hits = 0  # the number of cache hits for pending graphs
        self.depends_on_indices = False  # on the values of leaves that are indices of updates
        self.loaded = False  # whether loading of its kernels has started
        # Runs the plan as a table, if it can be one and its kernels are loaded: takes the buffers
        # of leaves and returns those of outputs.
        self.quick: Callable[[Sequence[Any]], list[Any]] | None = None
        self.launch_table: LaunchTable | None = None  # that `quick` runs
        # For a plan that is not one table: its steps, with consecutive kernels as a `table.Part`.
        self.parts: list[Any] = []
        self.walk: Callable[[Sequence[Any]], list[Any]] | None = None  # `quick` for a GPU
        # The program, which only plans of traced functions keep.
        self.program: Program | None = None
        # Buffers of leaves that belong to the plan. They follow the leaves given at each run.
        self.constants: list[Any] = []
        # Owned leaves that steps write to.
        self.overwritten: frozenset[int] = frozenset()
        # Leaves that an elementwise kernel could overwrite with its result if they were owned.
        self.spare: tuple[int, ...] = ()


def forget_nodes(plan: Plan, program: Program) -> None:
    """Drop references to the nodes that a plan was made from, since plans outlive the arrays of
    their first run."""
    for v in (*program.leaves, *program.values):
        # Values and clusters refer to each other. Without this, the nodes would stay alive until
        # the garbage collector runs.
        v.node, v.cluster, v.alias, v.demands, v.why = None, None, None, [], ()
    for step in plan.steps:
        if isinstance(step, KernelStep):
            step.cluster = step.chained = None
            step.text.pointers, step.text.partials = [], []
    for step in plan.steps:
        node = getattr(step, "node", None)  # launches on a GPU have a node too
        if node is not None:
            step.node = Node(node.op, (), node.params, node.aval, None, None, 0, node.site)


class ControlStep:
    """One structured control-flow operation.

    `bodies` are the plans of its graphs, in the order of its parameters.
    """

    __slots__ = (
        "avals", "bailout", "bodies", "by_python", "frees", "guard", "inputs", "nbytes", "node",
        "op", "operands", "params", "place", "reason", "results", "walk", "work",
    )  # fmt: skip

    def __init__(self, value: Value, operands: list[int], bodies: list[Plan]) -> None:
        self.op = value.op
        self.params = value.params
        self.node = value.node
        self.place = -1  # see `HostStep`
        self.avals = value.avals
        self.inputs = [x.aval for x in value.inputs]
        self.operands = operands  # slots, all contiguous
        self.bodies = bodies
        self.results: list[tuple[int, int]] = []  # slot, index of the result
        self.frees: list[int] = []
        self.nbytes = value_bytes(value)
        self.reason = ""  # why it is not a native loop
        self.bailout: Bailout | None = None  # its native form, run until a branch calls Python
        self.by_python = True  # whether Python runs each iteration, if it is not a native loop
        self.walk: Any = None  # on a GPU: runs it without Python, once made
        self.guard = ""  # on a GPU: the type of the index that kernels of branches test
        self.work = max([b.work for b in bodies], default=1) * int(value.params.get("length", 16))


Step = KernelStep | HostStep | ControlStep


def used_slots(step: Step) -> Sequence[int]:
    """Return the slots that a step reads or writes."""
    if isinstance(step, KernelStep):
        return [
            *[s for s, _ in step.pointers],
            *[s for update in step.updated_slots for s in update[:2]],
        ]
    if isinstance(step, ControlStep):
        return [*step.operands, *[s for s, _ in step.results]]
    return [o[0] for o in step.operands] + [s for s, _ in step.results]
