"""Advice about slow patterns, from events and facts about plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from accnp.devtools.explain.plan_facts import PlanFacts
from accnp.devtools.explain.session import Event

__all__ = ["advice"]

LOOKS = 4  # uses of values by one line above which it is assumed to be in a loop
TRACES = 3  # traces of one function above which they are reported
LARGE = 1 << 12  # bytes of the smallest copies that are reported


def advice(events: Sequence[Event], plans: Iterable[PlanFacts]) -> list[str]:
    """Return one sentence for each pattern found, with its line and a remedy."""
    plans = list(plans)
    return [
        *_advise_on_reads(events),
        *_advise_on_retraces(events),
        *_copies(events, plans),
        *_advise_on_widening(plans),
        *_host_loops(plans),
    ]


def _advise_on_reads(events: Sequence[Event]) -> list[str]:
    counted: Counter[object] = Counter()
    first: dict[object, Event] = {}
    for e in events:
        # `explain` itself waits for the result of each of its calls of the function.
        if e.kind == "use" and e.more["place"] is not None and e.name != "explain()":
            counted[e.more["place"]] += 1
            first.setdefault(e.more["place"], e)
    return [
        f"{first[place].line} uses a value {n} times (by {first[place].name}): each use computes "
        "the recorded graph and waits for the result; use values once after the loop, or write the "
        "loop with lax.scan, fori_loop, or while_loop"
        for place, n in counted.items()
        if n >= LOOKS
    ]


def _advise_on_retraces(events: Sequence[Event]) -> list[str]:
    missed: dict[object, list[Event]] = {}
    called = Counter(e.more["code"] for e in events if e.kind == "call")
    for e in events:
        if e.kind == "miss":
            missed.setdefault(e.more["code"], []).append(e)
    out = []
    for code, misses in missed.items():
        calls = max(called[code], len(misses))
        if len(misses) >= TRACES and 2 * len(misses) >= calls:
            e = misses[-1]
            out.append(
                f"{e.name} ({e.line}) was traced in {len(misses)} of {calls} calls, "
                f"{e.more['why']}: pass values that change as arrays, not as static arguments, "
                "keep their shapes, and jit the function once, outside the loop"
            )
    return out


def _copies(events: Sequence[Event], plans: Sequence[PlanFacts]) -> list[str]:
    eager: Counter[tuple[str, str, str]] = Counter()
    sizes: dict[tuple[str, str, str], int] = {}
    for e in events:
        if e.kind == "copy" and e.more["nbytes"] >= LARGE:
            key = (e.line, e.name, e.more["why"])
            eager[key] += 1
            sizes[key] = e.more["nbytes"]
    out = [
        f"{line}: {name} copied {sizes[line, name, why] / 1e6:.3g} MB"
        f"{f' {n} times' if n > 1 else ''}, since {why}; write x = x.at[...]"
        for (line, name, why), n in eager.items()
    ]
    for p in plans:
        if p.of.startswith("jit") and p.runs:
            for name, why, nbytes in dict.fromkeys(p.copies):
                if nbytes >= LARGE:
                    help_ = "; donate the argument (donate_argnums)" if "argument" in why else ""
                    out.append(f"{p.of}: {name} copies {nbytes / 1e6:.3g} MB, since {why}{help_}")
    return out


def _advise_on_widening(plans: Sequence[PlanFacts]) -> list[str]:
    lines = dict.fromkeys(text for p in plans for text in p.widened)
    return [
        f"{text}: later results have twice the bytes; to avoid this, convert the 64-bit operand to "
        "another dtype (arrays and scalars of NumPy have 64 bits by default)"
        for text in lines
    ]


def _host_loops(plans: Sequence[PlanFacts]) -> list[str]:
    loops = dict.fromkeys((p.of, *loop) for p in plans for loop in p.host_loops)
    return [f"{of}: {name} runs as a loop in Python, because {why}" for of, name, why in loops]
