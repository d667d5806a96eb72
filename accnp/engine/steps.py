"""The steps of a plan: launches of kernels, calls of library functions, loops on the host.

In: what the planner decided. Out: records that `execute` runs; nothing here computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.compiler.fusion.fuse import Cluster
from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.kernel_cache import FirstTier, Kernel, get_kernel, settle
from accnp.config import config
from accnp.engine.traffic import value_bytes
from accnp.ir.generated import Generated
from accnp.ir.kernel import KernelSpec
from accnp.ir.node import Node
from accnp.runtime.device import Device
from accnp.runtime.nontemporal import Pieces

if TYPE_CHECKING:
    from accnp.engine.bailout import Bailout

__all__ = [
    "ControlStep", "HostStep", "KernelStep", "Plan", "forget_nodes", "same_places", "used_slots",
]  # fmt: skip

# Limits of work, in simple element operations: what threads share, and in what pieces. Costs are
# estimates from above: a thread does 3 in a nanosecond, in vectors from its caches ten times that.
BRIEF = 1 << 13  # below this much the interpreter lock is kept
AWAKE = 1 << 15  # from this much on helpers that are awake anyway take part in a launch
PARALLEL = 1 << 18  # from this much on threads share a kernel: sharing 2^16 gained nothing
# Below this much in all, and this many bytes, helpers that sleep are not woken: that takes 50 us.
ROUSE, NEAR = 1 << 21, 1 << 19
GRAIN = 1 << 16  # in one chunk of a kernel: some 20 us
PIECES = 32  # chunks for each thread are enough
# In a native loop helpers are awake from step to step, so less is worth sharing, in vectors:
SHARED = 1 << 18  # work of a kernel from which threads share it there: some 6 us on one thread. On
# two cores of a Zen 5, 80 sweeps of a stencil took 210 us on one thread and 135 on two (150x150),
# 270 and 170 (25x25x25). With 2^16 they were slower. After a stall kernels run on one thread for a
# while (`_native/team.c`).
BESIDE = 1 << 15  # that of others in such a body that they share as well: then each finds most of
# what it reads in its own cache
LARGE = 1 << 24  # from this much on (0.5 ms) a loop is one on the host, which costs 15 us a kernel;
# in return its results may bypass the caches
# Kernels below these limits start in the first of two tiers (compiler/background_compile.py), whose
# code takes up to 4 times as long, until the second is ready, some 10 ms later. The first limit is
# that of vector code (up to 0.2 ms in the second tier), the second that of other code (0.1 ms).
SHORT_VECTORS = 1 << 23
SHORT = 1 << 19
# A loop around other kernels starts there from this many characters of text on, where its work is
# below this (some 30 ms): it would take a second or more to compile at once.
LONG_TEXT = 1 << 16
SHORT_LOOP = 1 << 26
APART = 1 << 25  # from this much work of a library call on threads share it: some 0.2 ms


END_OF_FOLD = "end of a fold: its partial results"


class KernelStep:
    """One launch. `pointers` are (slot, byte offset); after them come the addresses of `constants`
    and the integers of the text (`ints` holds both)."""

    __slots__ = (
        "alike", "allocs", "bodies", "chained", "cluster", "constants", "copied", "extent", "frees",
        "grain", "ints", "kernel", "label", "moved", "past", "pointers", "stores", "takes", "text",
        "work",
    )  # fmt: skip

    def __init__(self, text: Generated, fastmath: bool) -> None:
        self.text = text
        self.kernel: Kernel | None = None
        self.pointers: list[tuple[int, int]] = []
        self.constants: list[Any] = []
        self.ints = text.ints
        self.resize(text.extent, text.weight)
        self.allocs: list[tuple[int, int]] = []
        self.frees: list[int] = []
        self.alike: list[int] = []  # slots of `same_places`
        self.stores: set[int] = set()  # slots that it writes to, of those that others have made
        # Slots that start with the values of another one: (slot, the other, bytes, whether it takes
        # over the buffer).
        self.takes: list[tuple[int, int, int, bool]] = []
        self.copied: dict[int, str] = {}  # of slots that take over none: why
        self.bodies: list[Plan] = []  # of a native loop, for looking at it
        self.cluster: Cluster | None = None
        self.chained: Cluster | None = None  # what it does in bands, before it reads them
        self.label = ""  # what it computes, in short; its operations, under ACCNP_DEBUG
        # Results that bypass the caches and operands that are read like these: which pointer, and
        # how many bytes for one index.
        self.past: tuple[Pieces, Pieces] = ((), ())
        self.moved = 0  # bytes that it reads and writes (see traffic.py), copies for `takes` apart

    def resize(self, extent: int, weight: int) -> None:
        """Set how far the parallel index runs, and the work of one step of it."""
        self.extent = extent
        self.work = extent * weight
        fine = max(1, GRAIN // max(1, weight))
        # Costs are estimates from above: chunks of a microsecond would be all about the counter.
        grain = max(fine, min(extent // (PIECES * config.threads), 16 * fine))
        if PARALLEL <= self.work < ROUSE:  # one part for each thread, or a few
            threads = max(2, config.threads)
            grain = -(-extent // min(max(threads, 2 * self.work // GRAIN), 8 * threads))
        self.grain = -(-grain // 64) * 64 if grain >= 64 else grain

    @property
    def callees(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names and signatures of the kernels that this one calls."""
        return tuple([c[:2] for c in self.text.callees])

    @property
    def programs(self) -> dict[str, Any]:
        """Those of these kernels that are loop IR, by name."""
        return {c.name: c.kernel for c in self.text.callees if c.kernel is not None}

    @property
    def nbytes(self) -> int:
        """Bytes that must move for it, those of the copies before updates among them."""
        return self.moved + 2 * sum([n for _, _, n, over in self.takes if not over])

    @property
    def brief(self) -> bool:
        """Whether it has ended before a helper that sleeps would have come."""
        # The work of products is no estimate from above: theirs take 60 us from there on.
        most = PARALLEL if self.text.products else ROUSE
        return self.work < most and self.nbytes < NEAR and not self.text.shares

    @property
    def holds(self) -> bool:
        """Whether it has ended before another thread would miss the interpreter lock: not where its
        text has a loop as long as no range says."""
        return self.work < BRIEF and not self.text.whiles

    @property
    def writes(self) -> set[int]:
        """The slots that it writes to."""
        taken = [slot for take in self.takes for slot in take[:2]]
        return {*self.stores, *[slot for slot, _ in self.allocs], *taken}

    def forget(self) -> None:
        """Let go of the machine code: the text is another one."""
        self.kernel = None

    @property
    def first_tier(self) -> FirstTier:
        """Whether it starts in the first tier: if a run of it takes less than optimizing its code.

        Its ranges say how long it takes. Two tiers do not pay for a loop, unless its text is so
        long that optimizing it takes seconds.
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
        """Return the machine code; compile it, or take it from a cache, at the first call."""
        if self.kernel is None:
            self.kernel = get_kernel(
                self.text.source,
                "kernel",
                self.text.signature,
                fastmath=fastmath,
                callees=self.callees,
                program=self.text.kernel,
                programs=self.programs,
                # What fast flags allow is up to the code generator: the tiers would differ.
                first_tier=self.first_tier if two_tiers and not fastmath else FirstTier.NEVER,
            )
            if self.first_tier is FirstTier.NEVER:  # it may have begun there, in a shorter step
                settle(self.kernel)
        return self.kernel


def same_places(spec: KernelSpec) -> list[Value]:
    """The operands that a kernel reads nowhere but where it writes its one result, element by
    element, so that this may be written over one of them.

    Kernels of rows write in their last pass, which folds nothing: a fold of it may be from memory.
    """
    stores = [a for a in spec.accesses if a.store]
    if len(stores) != 1 or stores[0].offset:
        return []
    (out,) = stores
    if spec.form == "row":
        last = spec.phases[-1]
        if last.folds or not any(a is out for a, _ in last.stores):
            return []
    elif spec.form != "map":
        return []
    found = {}
    for a in spec.accesses:
        same = a.strides == out.strides and not (a.offset or a.terms) and a.dtype == out.dtype
        same = same and a.value.aval.size == out.value.aval.size
        found[id(a.value)] = a.value if same and found.get(id(a.value), a.value) else None
    return [v for v in found.values() if v is not None and v is not out.value]


class HostStep:
    """One call of an op's reference function on (strided views of) buffers."""

    what = "library call"

    __slots__ = (
        "aval", "frees", "in_rounds", "nbytes", "node", "op", "operands", "params", "place",
        "results", "work",
    )  # fmt: skip

    def __init__(self, v: Value) -> None:
        self.op = v.op
        self.params = v.params
        self.node = v.node
        self.place = -1  # of its node in the pending graph that an eager plan was made for
        self.nbytes = value_bytes(v)
        self.aval = v.aval  # not the node's: a value may stand for a step towards its node
        # slot, shape, dtype, strides in bytes (None: contiguous), offset in bytes, all elements of
        # the base
        self.operands: list[tuple[int, tuple[int, ...], np.dtype, Any, int, int]] = []
        self.results: list[tuple[int, Any]] = []
        self.frees: list[int] = []
        self.work = v.op.cost * max(
            [a.size for a in (v.aval if isinstance(v.aval, tuple) else (v.aval,))] or [1]
        )
        self.in_rounds = v.op.rounds is not None and self.work >= APART


# Runs of a plan after which the next is the extension's, which takes as long to prepare as three
# runs; while something keeps it from that, it is tried again after as many more.
OFTEN = 2


def often(hits: int, first: int = OFTEN) -> bool:
    """Whether a record is made after this run."""
    return hits >= first and not hits & (hits - 1)


class Plan:
    """Steps in order. Slots 0..len(leaves) are the leaves' buffers."""

    __slots__ = (
        "constants",
        "device",
        "fastmath",
        "hits",
        "known",
        "loaded",
        "n_leaves",
        "n_slots",
        "out_avals",
        "output_slots",
        "overwritten",
        "parts",
        "program",
        "quick",
        "spare",
        "steps",
        "waits",
        "walk",
        "walks",
        "work",
    )  # fmt: skip

    def __init__(self, n_leaves: int) -> None:
        self.n_leaves = n_leaves
        self.n_slots = n_leaves
        self.steps: list[Any] = []
        self.output_slots: list[int] = []
        self.out_avals: list[Any] = []
        self.work = 0
        self.fastmath = False
        self.device: Device | None = None  # a GPU; None is the CPU
        self.waits = False  # whether the host waits for steps of a GPU, or does some itself
        self.hits = 0  # how often it was found for pending nodes
        self.known = False  # whether it depends on numbers of leaves, which say where updates write
        self.loaded = False  # whether its kernels were asked for
        # Runs it once its kernels are loaded, if it can be a table: leaves' buffers to outputs'.
        self.quick: Callable[[Sequence[Any]], list[Any]] | None = None
        self.walks: Any = None  # the table behind it, see `table.py`
        # The steps of one that is no table, kernels in a row together (`table.Part`).
        self.parts: list[Any] = []
        self.walk: Callable[[Sequence[Any]], list[Any]] | None = None  # the same on a GPU
        # Where it lives as long as the plan: in plans of traced functions.
        self.program: Program | None = None
        # Buffers of leaves that belong to the plan, after those given at each run.
        self.constants: list[Any] = []
        # Leaves that steps write to, of those that the caller said it owns.
        self.overwritten: frozenset[int] = frozenset()
        # Leaves that a map could write its result over, if the caller said that it owns them.
        self.spare: tuple[int, ...] = ()


def forget_nodes(plan: Plan, program: Program) -> None:
    """Let go of the nodes a plan was made from: plans outlive the arrays of their first run."""
    for v in (*program.leaves, *program.values):
        # Values and clusters refer to each other: without this the nodes would wait for the garbage
        # collector.
        v.node, v.cluster, v.demands, v.why = None, None, [], ()
    for step in plan.steps:
        if isinstance(step, KernelStep):
            step.cluster = step.chained = None
            step.text.pointers, step.text.partials = [], []
    for step in plan.steps:
        node = getattr(step, "node", None)  # a GPU's kernels have one, too
        if node is not None:
            step.node = Node(node.op, (), node.params, node.aval, None, None, 0, node.site)


class ControlStep:
    """One structured control-flow operation.

    `bodies` are the plans of its graphs, in the order of its parameters.
    """

    __slots__ = (
        "avals",
        "bailout",
        "bodies",
        "by_python",
        "frees",
        "guard",
        "inputs",
        "nbytes",
        "node",
        "op",
        "operands",
        "params",
        "place",
        "reason",
        "results",
        "walk",
        "work",
    )

    def __init__(self, value: Any, operands: list[int], bodies: list[Any]) -> None:
        self.op = value.op
        self.params = value.params
        self.node = value.node
        self.place = -1  # as that of a `HostStep`
        self.avals: tuple[Any, ...] = value.aval
        self.inputs = [x.aval for x in value.inputs]
        self.operands = operands  # slots, all contiguous
        self.bodies = bodies
        self.results: list[tuple[int, int]] = []  # slot, number of the result
        self.frees: list[int] = []
        self.nbytes = value_bytes(value)
        self.reason = ""  # why it is no native loop
        self.bailout: Bailout | None = None  # its native form until a branch calls Python
        self.by_python = True  # whether Python goes through it at each turn, if it is none
        self.walk: Any = None  # on a GPU: what runs it without Python, once that is made
        self.guard = ""  # likewise: the type of the index that kernels of branches look at
        self.work = max([b.work for b in bodies], default=1) * int(value.params.get("length", 16))


def used_slots(step: Any) -> Sequence[int]:
    """Return the slots a step reads or writes."""
    if isinstance(step, KernelStep):
        return [*[s for s, _ in step.pointers], *[s for take in step.takes for s in take[:2]]]
    if isinstance(step, ControlStep):
        return [*step.operands, *[s for s, _ in step.results]]
    return [o[0] for o in step.operands] + [s for s, _ in step.results]
