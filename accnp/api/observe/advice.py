"""What to do about patterns that cost time. In: events and pictures of plans. Out: sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from accnp.api.observe.pictures import Picture
from accnp.api.observe.session import Event

__all__ = ["advice"]

LOOKS = 4  # of one line at values, from which it is taken for a loop
TRACES = 3  # of one function, from which something about its calls is taken for wrong
LARGE = 1 << 12  # bytes of a copy that is worth a word


def advice(events: Sequence[Event], pictures: Iterable[Picture]) -> list[str]:
    """One sentence for each pattern found, with the line, and what helps."""
    pictures = list(pictures)
    return [
        *_looks(events),
        *_retraces(events),
        *_copies(events, pictures),
        *_wide(pictures),
        *_host_loops(pictures),
    ]


def _looks(events: Sequence[Event]) -> list[str]:
    counted: Counter[object] = Counter()
    first: dict[object, Event] = {}
    for e in events:
        # `explain` itself waits for what the function returns, once for each time it calls it.
        if e.kind == "look" and e.more["place"] is not None and e.name != "explain()":
            counted[e.more["place"]] += 1
            first.setdefault(e.more["place"], e)
    return [
        f"{first[place].line} looks at a value again and again ({n} times, "
        f"by {first[place].name}): each look ends the graph, computes it, and waits; "
        "look once after the loop, or write the loop with lax.scan, fori_loop or while_loop"
        for place, n in counted.items()
        if n >= LOOKS
    ]


def _retraces(events: Sequence[Event]) -> list[str]:
    missed: dict[object, list[Event]] = {}
    called = Counter(e.more["code"] for e in events if e.kind == "call")
    for e in events:
        if e.kind == "miss":
            missed.setdefault(e.more["code"], []).append(e)
    out = []
    for code, found in missed.items():
        calls = max(called[code], len(found))
        if len(found) >= TRACES and 2 * len(found) >= calls:
            e = found[-1]
            out.append(
                f"{e.name} ({e.line}) was traced in {len(found)} of {calls} calls, "
                f"{e.more['why']}: pass what changes as an array, not as a static argument or a "
                "new shape, and jit the function once, outside the loop"
            )
    return out


def _copies(events: Sequence[Event], pictures: Sequence[Picture]) -> list[str]:
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
    for p in pictures:
        if p.of.startswith("jit") and p.runs:
            for name, why, nbytes in dict.fromkeys(p.copies):
                if nbytes >= LARGE:
                    help_ = "; donate the argument (donate_argnums)" if "argument" in why else ""
                    out.append(f"{p.of}: {name} copies {nbytes / 1e6:.3g} MB, since {why}{help_}")
    return out


def _wide(pictures: Sequence[Picture]) -> list[str]:
    lines = dict.fromkeys(text for p in pictures for text in p.widened)
    return [
        f"{text}: twice the bytes from there on; if that is not meant, give the 64-bit operand "
        "another dtype (NumPy's arrays and scalars have 64 bits unless told otherwise)"
        for text in lines
    ]


def _host_loops(pictures: Sequence[Picture]) -> list[str]:
    found = dict.fromkeys((p.of, *loop) for p in pictures for loop in p.host_loops)
    return [f"{of}: {name} is a loop of Python's, because {why}" for of, name, why in found]
