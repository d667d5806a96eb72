"""`explain`: reports what was fused and what prevented it, which lines used values, why functions
were traced or compiled, what each kernel costs compared with the limit, and advice.

It calls a function with arguments, or observes a `with` block, and returns an `Explanation`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from accnp import engine
from accnp.api.environment.synchronization import block_until_ready
from accnp.api.jit.jit import JitFunction
from accnp.compiler.cache_state import counters as kernels
from accnp.compiler.fusion.program import Program
from accnp.compiler.kernel_cache import wait_for_background
from accnp.devtools.explain.advice import advice
from accnp.devtools.explain.comparison_note import limit_text
from accnp.devtools.explain.html_page import page
from accnp.devtools.explain.plan_facts import PlanFacts
from accnp.devtools.explain.session import Event, Session
from accnp.devtools.inspect.inspection import plural
from accnp.engine.steps import Plan
from accnp.errors import api_boundary
from accnp.forks import run_uninterrupted
from accnp.runtime.machine_load import Load, machine_load
from accnp.trace_fn import function_place

__all__ = ["Explanation", "explain"]

KINDS = frozenset(["trace", "miss", "call", "plan", "compile", "use", "copy", "step", "run"])
REPEATS = 5  # calls after the first one, for times


class _PlanRecorder(Session):
    """A session that records the facts about each plan while its details are available."""

    def __init__(self) -> None:
        super().__init__(KINDS)
        self.plans: dict[int, PlanFacts] = {}

    def planned(self, program: Program, plan: Plan, of: str) -> None:
        self.plans[id(plan)] = PlanFacts(program, plan, of)

    def of(self, plan: Plan) -> PlanFacts:
        """Return the facts about a plan; plans from before the session have fewer details."""
        facts = self.plans.get(id(plan))
        if facts is None:
            title = "planned before" if plan.program is None else "jit, planned before"
            facts = self.plans[id(plan)] = PlanFacts(plan.program, plan, title)
        return facts


class Explanation:
    """Report of what happened: `print` it, `save_html` it, or use its attributes.

    `plans` are the programs that ran (`steps` with bytes, seconds and share of a streaming copy,
    `boundaries` with reasons, `svg`). `value_uses` are the lines that used values, `traces` and
    `compiles` what was traced and compiled, `advice` recommends changes, and `load` describes other
    load of the machine: on a busy machine the times are marked.
    """

    def __init__(self, title: str = "a block of code") -> None:
        self.title = title
        self.seconds: list[float] = []  # of the calls, for a function
        self.result: Any = None
        self.load: Load | None = None  # the higher load of before and after
        self._session = _PlanRecorder()
        self._known: dict[Any, Plan] = {}
        # The increases of the counters during the block, set at its end.
        self._counts: dict[str, int] = dict.fromkeys(_read_counters(), 0)
        self._before: dict[str, int] = {}
        self._ended = False

    def __enter__(self) -> Explanation:
        # Plans are made again while observed, since plans of eager code drop their sources.
        self._known = dict(engine._plans)
        engine._plans.clear()
        self._before = _read_counters()
        self.load = machine_load()
        self._session.start()
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            run_uninterrupted(self._end_session)
        finally:  # also after an interrupt
            self._session.stop()

    def __del__(self) -> None:
        session = self.__dict__.get("_session")
        if session is not None:  # if an error of a signal handler prevented the exit
            session.stop()

    def _end_session(self) -> None:
        self._session.stop()
        self._ended = True
        self.load = machine_load().worse_of(self.load)
        self._counts = {name: n - self._before[name] for name, n in _read_counters().items()}
        for e in self.events:
            if e.kind == "step" and not e.more["depth"]:
                number = e.more["plan"].steps.index(e.more["step"])
                facts = self._session.of(e.more["plan"]).steps[number]
                facts.device = e.more["plan"].device
                facts.reliable = not self.load.busy
                facts.ran(e.seconds)
            elif e.kind == "run":
                self._session.of(e.more["plan"]).runs += 1
        new = engine._plans
        self._counts["plans_again"] = sum(key in self._known for key in new)
        engine._plans.update({k: v for k, v in self._known.items() if k not in new})
        self._known = {}

    @property
    def events(self) -> list[Event]:
        """Return all events, in order."""
        return self._session.events

    @property
    def plans(self) -> list[PlanFacts]:
        """The programs that ran."""
        return [p for p in self._session.plans.values() if p.runs]

    @property
    def value_uses(self) -> list[tuple[str, str, int, float]]:
        """Uses that needed values: line, cause, count, and total time in seconds."""
        uses: dict[tuple[str, str], list[float]] = {}
        for e in self._events_of_kind("use"):
            uses.setdefault((e.line, e.name), []).append(e.seconds)
        return [(*key, len(took), sum(took)) for key, took in uses.items()]

    @property
    def traces(self) -> list[str]:
        """Return what was traced, and why: the nearest key and the argument that differed."""
        took = [e.seconds for e in self._events_of_kind("trace") if e.more["transform"] == "jit"]
        out = []
        for i, e in enumerate(self._events_of_kind("miss")):
            time = f" ({1e3 * took[i]:.3g} ms)" if i < len(took) else ""
            at = f", called at {e.more['at']}" if e.more["at"] else ""
            out.append(f"{e.name} ({e.line}) was traced{time}, {e.more['why']}{at}")
        return out

    @property
    def compiles(self) -> list[str]:
        """The kernels that were compiled or read from disk, with their times."""
        names = {
            s.text.source: p.steps[i].text
            for p in self._session.plans.values()
            for i, s in enumerate(p.plan.steps)
            if hasattr(s, "text")
        }
        out = []
        for e in self._events_of_kind("compile"):
            how = "read from disk" if e.more["origin"] == "disk" else "compiled"
            name = names.get(e.more["source"], "a kernel that others call")
            out.append(f"{how} in {1e3 * e.seconds:.3g} ms: {name}")
        return out

    @property
    def caches(self) -> str:
        """Describe how often cached objects were reused."""
        c = self._counts
        calls = len(self._events_of_kind("call"))
        missed = len(self._events_of_kind("miss"))
        parts = [f"{calls - missed} of {plural(calls, 'jitted call')} found a known signature"]
        graph_count = c["plans"] + c["plan_hits"]
        hits = c["plan_hits"] + c.get("plans_again", 0)
        parts.append(f"{hits} of {plural(graph_count, 'eager graph')} had a known structure")
        hits, misses = c["memory_hits"], c["compiles"] + c["disk_hits"]
        parts.append(f"{hits} of {plural(hits + misses, 'kernel')} asked for were in memory")
        return "; ".join(parts)

    @property
    def advice(self) -> list[str]:
        """Return sentences about what is slow, and what helps."""
        return advice(self.events, self._session.plans.values())

    def _events_of_kind(self, kind: str) -> list[Event]:
        return [e for e in self.events if e.kind == kind]

    @property
    def sections(self) -> dict[str, list[str]]:
        """The text by its titles."""
        out: dict[str, list[str]] = {"advice": self.advice or ["nothing stands out"]}
        for p in self.plans:
            lines = [f"run {plural(p.runs, 'time')}; steps together {1e3 * p.seconds:.3g} ms"]
            for s in p.steps:
                lines += [f"step {s.number}: {s.text}", f"    {s.figures}"]
            out[_make_unique(p.title, out)] = lines
        stopped = list(
            {(b.value, b.line): str(b) for p in self.plans for b in p.boundaries}.values()
        )
        out["what stopped fusion"] = stopped or ["nothing: no value goes through memory twice"]
        out["lines that used values"] = [
            f"{line}: {by}, {plural(n, 'time')}, {1e3 * seconds:.3g} ms"
            for line, by, n, seconds in self.value_uses
        ] or ["none"]
        out["traces"] = self.traces or ["none"]
        out["compiles"] = self.compiles or ["none"]
        out["caches"] = [self.caches]
        out["limit"] = [limit_text()]
        out["machine"] = [str(self.load)]
        return out

    @property
    def status(self) -> str:
        """The times of the calls, in words."""
        if not self._ended:
            return "not known before the end of a block: with explain() as e: ...; print(e)"
        if not self.seconds:
            return f"{1e3 * (self._session.ended - self._session.began) / 1e9:.3g} ms"
        first, *rest = self.seconds
        text = f"first call {1e3 * first:.3g} ms"
        text += f", then {1e3 * min(rest):.3g} ms" if rest else ""
        return text + (" (unreliable: busy machine)" if self.load and self.load.busy else "")

    def __str__(self) -> str:
        if not self._ended:
            return f"{self.title}\n{self.status}"
        parts = [f"{self.title}\n{self.status}"]
        for title, lines in self.sections.items():
            parts.append(f"-- {title} --\n" + "\n".join(lines))
        return "\n\n".join(parts)

    __repr__ = __str__

    def html(self) -> str:
        """Return a page with everything: pictures of the graphs, bars and tables."""
        return page(self)

    def save_html(self, path: str | Path) -> Path:
        """Write the page to a file, and return its path."""
        target = Path(path)
        target.write_text(self.html(), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        return self.html()


@api_boundary
def explain(f: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Explanation:
    """Call a function and explain what happened: traces, plans, kernels, times and advice.

    Without a function, it returns a context manager that explains a `with` block.

    Parameters
    ----------
    f : callable, optional
        Function to call. Jit it first if that is how it is used.
    *args : object
        Positional arguments of the function.
    **kwargs : object
        Keyword arguments of the function.

    Returns
    -------
    Explanation
        Object to `print`, or to write as a page by `save_html(path)`.

    Raises
    ------
    TypeError
        If the first argument is not callable.

    See Also
    --------
    inspect : Show the kernels without running them.
    timeit : Measure the time of a call.
    profiler.profile : Timeline of a program.

    Notes
    -----
    The function is called once, and then a few times more to measure times, unless it donates
    arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> e = jnp.explain(jnp.jit(lambda x: jnp.exp(x) * 2), jnp.ones(1000))
    >>> [s.kernel for s in e.plans[-1].steps]
    [True]
    >>> with jnp.explain() as e:
    ...     total = float(jnp.sum(jnp.arange(10.0)))
    >>> [by for _, by, _, _ in e.value_uses]
    ['float(x)']
    """
    if f is None:
        return Explanation()
    if not callable(f):
        raise TypeError(
            f"explain: the first argument must be a function; got {f!r}; "
            "pass a function and its arguments, or use `with explain() as e:`"
        )
    name, file, line = function_place(f)
    how = "jitted " if isinstance(f, JitFunction) else ""
    explanation = Explanation(f"{how}{name}" + (f" ({file}:{line})" if file else ""))
    again = 0 if isinstance(f, JitFunction) and f._options.donates else REPEATS
    block_until_ready((args, kwargs))
    with explanation:
        for _ in range(1 + again):
            start = perf_counter()
            explanation.result = block_until_ready(f(*args, **kwargs))
            explanation.seconds.append(perf_counter() - start)
            wait_for_background()
    return explanation


def _read_counters() -> dict[str, int]:
    return {**engine.counters, **kernels.as_dict()}


def _make_unique(title: str, titles: dict[str, Any]) -> str:
    n, text = 1, title
    while text in titles:
        n += 1
        text = f"{title} ({n})"
    return text
