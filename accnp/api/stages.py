"""jax's stages of a jitted function: traced, lowered, compiled.

In: a JitFunction and its entry. Out: things to look at and to call.
"""

from __future__ import annotations

from typing import Any

from accnp import engine
from accnp.array import wrap
from accnp.ir.equations import ClosedJaxpr

__all__ = ["Compiled", "Lowered", "TracedStage"]


class TracedStage:
    """A function traced for one signature; `jaxpr` holds the program."""

    def __init__(self, function: Any, entry: Any, call: Any, jaxpr: ClosedJaxpr) -> None:
        self._function, self._entry, self._call = function, entry, call
        self.jaxpr = jaxpr
        self.fun_name = function._name

    @property
    def out_info(self) -> Any:
        """The types of the results, in the results' structure."""
        return self._entry.out_spec.unflatten(list(self._entry.out_avals))

    @property
    def in_avals(self) -> tuple[Any, dict[str, Any]]:
        """The types of the arguments, in their structure."""
        entry = self._entry
        return self._call.spec.unflatten(list(entry.graph.in_avals[len(entry.consts) :]))

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self._call.spec

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """The types of the results."""
        return tuple(self._entry.out_avals)

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._entry.out_spec

    def lower(self, **_: Any) -> Lowered:
        """Plan the kernels."""
        return Lowered(self)


class Lowered:
    """A planned program: kernels as source text, nothing compiled yet."""

    def __init__(self, traced: TracedStage) -> None:
        self._traced = traced
        function = traced._function
        self._plan = traced._entry.load(function._options.fastmath)

    @property
    def out_info(self) -> Any:
        """The types of the results, in the results' structure."""
        return self._traced.out_info

    @property
    def in_avals(self) -> tuple[Any, dict[str, Any]]:
        """The types of the arguments, in their structure."""
        return self._traced.in_avals

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._traced.out_tree

    def as_text(self, *_: Any, **__: Any) -> str:
        """The source of every kernel, in the order of launches."""
        return engine.plan_text(self._plan)

    def compile(self, *_: Any, **__: Any) -> Compiled:
        """Make (or load) the machine code of every kernel."""
        engine.compile_plan(self._plan)
        return Compiled(self)


class Compiled:
    """Machine code for one signature; call it with arguments of exactly that signature."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._traced = lowered._traced

    @property
    def out_info(self) -> Any:
        """The types of the results, in the results' structure."""
        return self._traced.out_info

    @property
    def in_avals(self) -> tuple[Any, dict[str, Any]]:
        """The types of the arguments, in their structure."""
        return self._traced.in_avals

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._traced.out_tree

    def as_text(self) -> str:
        """The source of every kernel."""
        return self._lowered.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """Estimated simple operations and launches of one call."""
        plan = self._lowered._plan
        return {"flops": float(plan.work), "launches": float(len(plan.steps))}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = self._traced
        call = traced._function._split(args, kwargs)
        nodes = call.nodes(traced.fun_name)
        entry = traced._entry
        want = entry.graph.in_avals[len(entry.consts) :]
        got = tuple(x.aval for x in nodes)
        if call.spec != traced._call.spec or got != want:
            raise TypeError(
                f"{traced.fun_name}: compiled for {', '.join(map(str, want))}; "
                f"called with {', '.join(map(str, got))}; "
                "compile for these types, or call the jitted function"
            )
        results = engine.run_plan(entry.load(False), [*entry.consts, *nodes], entry.out_avals)
        return entry.out_spec.unflatten([wrap(x) for x in results])
