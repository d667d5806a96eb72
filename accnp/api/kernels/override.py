"""`override`: run an edited kernel in place of a generated one, and compare the two.

It takes a kernel from `inspect` and its edited source, and returns an `Override`, a context in
which plans use the edited kernel, and a `Report` of the values and times of both kernels.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accnp import engine
from accnp.api.jit.jit import JitFunction, jit
from accnp.compiler.kernel_cache import Callees, CompileError, wait_for_background
from accnp.compiler.unsupported import Unsupported
from accnp.config import config, scope
from accnp.devtools.inspect.inspected_kernel import InspectedKernel
from accnp.devtools.inspect.kernel_files import defined, explain, kernel_text
from accnp.engine import execute
from accnp.engine.edited_kernels import EditedKernel
from accnp.engine.steps import KernelStep, Plan
from accnp.errors import api_boundary, warn
from accnp.ir.trace import innermost

__all__ = ["Override", "Report", "override"]


@dataclass(frozen=True)
class Report:
    """An edited kernel against the original, on given operands.

    Attributes:
        same: whether all results are the same to the last bit (nan is nan).
        largest: the largest difference of two results.
        ulp: the same in units of the last place of the original (of floating results).
        original, edited: seconds of a launch, the medians of alternating runs.
    """

    same: bool
    largest: float
    ulp: float
    original: float
    edited: float

    @property
    def ratio(self) -> float:
        """The time of the edited kernel over that of the original."""
        return self.edited / self.original

    def __str__(self) -> str:
        values = "the same values"
        if not self.same:
            values = f"values differ by up to {self.largest:.3g} ({self.ulp:.3g} ulp)"
        return (
            f"{values}; original {self.original * 1e6:.1f} us, edited {self.edited * 1e6:.1f} us: "
            f"{self.ratio:.2f} of the time"
        )


class Override(contextlib.ContextDecorator):
    """An edited kernel that stands for a generated one: in a `with` block, or in one function.

    What is computed inside uses it, wherever the very same kernel would be used; what is only
    recorded inside and looked at later does not. If no kernel has been replaced by the end of a
    block or a call, a `UserWarning` says which kernels there were instead.
    """

    def __init__(self, original: InspectedKernel, source: str, callees: Callees) -> None:
        self.original = original
        self.source = source
        self._edited = EditedKernel.of(original.code, original.signature, source, callees)
        self._scopes: list[Any] = []

    def __repr__(self) -> str:
        return f"<edited kernel in place of that of step {self.original.step}>"

    def __enter__(self) -> Override:
        own_scope = self._scope()
        self._scopes.append(own_scope)
        own_scope.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._scopes.pop().__exit__(*error)
        if error[0] is None:
            self._warn_if_unused()

    def _warn_if_unused(self) -> None:
        if self._edited.used:
            return
        original = self.original
        others = ", ".join(map(repr, self._edited.others)) or "nothing that was computed"
        warn(
            "override: the edited kernel has not replaced any kernel; got "
            f"{others} in place of {original.label!r} for ({', '.join(original.signature)}); "
            "compute in its scope what was inspected, with operands of the same types"
        )

    def _scope(self) -> contextlib.AbstractContextManager[None]:
        trace = innermost()
        if trace is not None and trace.abstract:
            raise ValueError(
                "override: an edited kernel replaces kernels of programs that run in its scope; "
                "got a call within jit, vmap or control flow, whose program runs later; call the "
                "function with the edited kernel outside of them"
            )
        return scope("kernel_overrides", (*(config.kernel_overrides or ()), self._edited))

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function, jitted, with the edited kernel in it."""
        function = func if isinstance(func, JitFunction) else jit(func)

        @functools.wraps(func)
        @api_boundary
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._scope():
                result = function(*args, **kwargs)
            self._warn_if_unused()
            return result

        return call

    @api_boundary
    def report(self, f: Callable[..., Any], *args: Any, runs: int = 20, **kwargs: Any) -> Report:
        """Run a function on operands with the original kernel and with the edited one in turns;
        compare results, and the times of the kernel.

        Raises:
            ValueError: the function has no such kernel for these operands.
        """
        function = f if isinstance(f, JitFunction) else jit(f)
        fastmath = self.original.fastmath
        _, entry, leaves = function.entry_of(args, kwargs)
        plans, buffers = [], []
        for one in (contextlib.nullcontext(), self._scope()):
            with one:
                plan, closed = engine.plan_of_graph(
                    entry.graph, fastmath, device=self.original.device
                )
            plans.append(plan)
            nodes = [*leaves, *closed]
            buffers.append(execute.move_leaves(plan, nodes, [engine.ready(x) for x in nodes]))
        texts = (self.original.code, self.source)
        timed = [_steps(plan, text) for plan, text in zip(plans, texts, strict=True)]
        if not all(timed):
            raise ValueError(
                f"override: {getattr(f, '__name__', f)} has no kernel like that of step "
                f"{self.original.step} for these operands; inspect it with operands of these types"
            )
        outs: list[list[np.ndarray]] = [[], []]
        times: list[list[float]] = [[], []]
        for i in range(max(2, runs)):
            for k, plan in enumerate(plans):
                results, seconds = _run(plan, buffers[k], timed[k])
                outs[k] = [
                    b.view(a.shape, a.dtype) for b, a in zip(results, entry.out_avals, strict=True)
                ]
                times[k].append(seconds)
            if not i:
                wait_for_background()
        original, edited = (float(np.median(t[1:])) for t in times)
        return Report(*_compare_results(*outs), original, edited)


def _steps(plan: Plan, text: str) -> set[int]:
    return {
        i for i, s in enumerate(plan.steps) if isinstance(s, KernelStep) and s.text.source == text
    }


def _run(plan: Plan, buffers: Sequence[Any], timed: set[int]) -> tuple[list[Any], float]:
    """The results of a plan, and the time of some of its steps."""
    total, number = 0.0, 0
    begin = time.perf_counter()

    def tell(_: Any, span: tuple[float, float] | None = None) -> None:
        nonlocal begin, number, total
        now = time.perf_counter()
        took = now - begin if span is None else span[1] - span[0]
        total += took * (number in timed)
        number += 1
        begin = time.perf_counter()

    return execute.run(plan, buffers, tell), total


def _compare_results(
    originals: Sequence[np.ndarray], others: Sequence[np.ndarray]
) -> tuple[bool, float, float]:
    same, largest, ulp = True, 0.0, 0.0
    for a, b in zip(originals, others, strict=True):
        inexact = a.dtype.kind not in "biu"
        if np.array_equal(a, b, equal_nan=inexact):
            continue
        same = False
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            far = np.abs(a.astype(wide) - b.astype(wide))
            far = np.where((a == b) | ((a != a) & (b != b)), 0, far)
            far = np.where(np.isnan(far), np.inf, far)
            largest = max(largest, float(far.max()))
            if a.dtype.kind in "fcV":  # bfloat16, too
                part = np.abs(a)
                part = np.where(np.isfinite(part), part, part.dtype.type(0))
                ulp = max(ulp, float((far / np.spacing(part).astype(np.float64)).max()))
    return same, largest, ulp


@api_boundary
def override(kernel: InspectedKernel, edited: Any) -> Override:
    """Replace a generated kernel by an edited version of its source.

    Parameters
    ----------
    kernel : InspectedKernel
        One of `inspect(f)(*args).kernels`.
    edited : str or Path
        Edited version of its `source`: the text, or the path of a file.

    Returns
    -------
    Override
        Context manager (`with override(k, text): f(x)`), and decorator for one function (`g =
        override(k, text)(f)`). Its method `report(f, x)` compares the results with those of the
        original and times both.

    Raises
    ------
    ValueError
        If the text does not compile, takes other arguments, or is nothing but functions and
        numbers with names. The original stays in place.
    TypeError
        If `kernel` does not come from `inspect`.

    See Also
    --------
    inspect : Show the kernels of a function.
    kernel : Make an operation of your own function.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(6.0)
    >>> f = lambda x: jnp.sqrt(x) * 2
    >>> (kernel,) = jnp.inspect(f)(x).kernels
    >>> edited = kernel.source.replace("sqrt(", "abs(")
    >>> with jnp.override(kernel, edited):
    ...     print(jnp.jit(f)(x))
    [ 0.  2.  4.  6.  8. 10.]
    >>> jnp.override(kernel, edited).report(f, x).same
    False
    """
    if not isinstance(kernel, InspectedKernel):
        raise TypeError(
            f"override: needs a kernel of accnp.inspect; got {kernel!r}; "
            "pass inspect(f)(*args).kernels[0], say"
        )
    text = kernel_text(edited)
    callees = defined(text.source, kernel.callees)
    try:
        kernel.compiled(text.source, callees)
    except (CompileError, Unsupported, ValueError, RecursionError) as error:
        raise ValueError(
            f"override: the edited kernel of step {kernel.step} cannot take the place of the "
            f"generated one; got {explain(error, text)}; fix the source"
        ) from None
    return Override(kernel, text.source, callees)
