"""`jit`: trace once for each signature, plan once, then run the plan.

There are two paths for calls. The general path (`JitFunction._call`) looks up the program of the
signature, or traces the function. After the second call of a signature, a dispatch entry
(`dispatch_registration.py`) lets the C extension match the arguments and run the program.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from accnp import engine, errors
from accnp._native import COMPILED, Caller, Record, next_use
from accnp.api.arguments.convert import as_node, is_host_value
from accnp.api.jit import trace_log
from accnp.api.jit.static_arguments import (
    Call,
    Options,
    Watched,
    resolve_static,
    result_node,
    unknown_compiler_options,
    unknown_option_error,
)
from accnp.api.tracing.bodies import Body, Reference, close, ref_contents, set_refs, with_refs
from accnp.api.tracing.bound_method import BoundMethod
from accnp.array_type import Array, is_traced, with_float0, wrap
from accnp.caches import register_cache
from accnp.config import config, new_epoch
from accnp.engine.steps import is_due_for_entry
from accnp.errors import api_boundary
from accnp.forks import renewed
from accnp.ir.graph import Graph, evaluate
from accnp.ir.node import Node, user_site
from accnp.ir.trace import frame_belongs, outside_traces, state, types_only
from accnp.lazy_imports import imported
from accnp.primitives.control import call as record_call
from accnp.primitives.control import take_wholes
from accnp.pytree import PyTree, flatten_arrays
from accnp.runtime import device as devices
from accnp.trace_fn import conversion_error, function_place, trace, wraps
from accnp.transforms.axes import bound

if TYPE_CHECKING:
    from accnp.api.jit.stages import Lowered, TracedStage

__all__ = ["JitFunction", "forget", "jit"]

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")

# The number of calls of a signature before a dispatch entry is made. Making one takes 11 us, and a
# call by the general path 14 us. Without the extension, an entry is compiled to a Python function
# in 0.5 ms (development machine, 2026-11).
ENTRY_AFTER = 2 if COMPILED else 16


class TraceCache(dict[Any, "Entry"]):
    """The traced signatures of a function."""


# One cache for each function, shared by all its jitted wrappers with the same options.
_caches: weakref.WeakKeyDictionary[Any, dict[Any, TraceCache]] = weakref.WeakKeyDictionary()
# All caches, including those of unhashable functions. The option `trace_cache_size` limits the
# total number of their entries.
_tables: weakref.WeakValueDictionary[int, TraceCache] = weakref.WeakValueDictionary()
# Upper bound on the number of entries in all caches; it still counts the entries of functions that
# were garbage collected.
_entries = 0
_evicted = 0  # the number of entries that `_evict` removed
# Held while caches are cleared and while an entry is added, so that a thread does not add a program
# that it began to trace before a clear.
_entering = renewed(threading.RLock())
_cleared = 0  # the number of clears
_registered: weakref.WeakSet[JitFunction] = weakref.WeakSet()  # functions with dispatch entries


class Entry:
    """A traced signature: its program, closed-over arrays, result structure and plans."""

    __slots__ = (
        "closed", "constants", "consts", "donated", "graph", "hits", "out_avals", "out_spec",
        "placed", "plan", "plans", "policy", "single", "used", "watched",
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        consts: list[Node],
        out_spec: Any,
        closed: Sequence[Any] = (),
        constants: dict[int, Any] | None = None,
    ) -> None:
        self.constants = constants or {}  # results that are host values
        self.closed = closed  # closed-over references: the last inputs and outputs
        self.graph = graph
        self.consts = consts
        self.donated: list[int] | None = None  # the inputs whose buffers calls reuse
        self.out_spec = out_spec
        self.out_avals = graph.out_avals
        self.single = out_spec.is_leaf()
        self.plan: engine.Plan | None = None  # for the CPU
        self.plans: dict[Any, engine.Plan] = {}  # for GPUs
        self.placed = engine.one_node_per_device(graph.nodes)  # nodes that determine the device
        self.watched: Watched | None = None
        # If the function read the policy of the checkpointed function around it: the last one of
        # `state.policies`, as a tuple.
        self.policy: tuple[Any, ...] | None = None
        self.hits = 0  # calls by the general path
        self.used = next_use()  # when the latest of these was made

    def load(
        self, fastmath: bool, donated: Sequence[int] = (), leaves: Sequence[Node] = ()
    ) -> engine.Plan:
        """Return the plan for the device of the arguments; closed-over arrays and literals are part
        of the plan."""
        device = engine.computing_device(self.placed, leaves) if devices.gpu_possible else None
        plan = self.plan if device is None else self.plans.get(device)
        if plan is None:
            with trace_log.log_compilation(self.graph, len(self.consts)) as logged:
                plan, free = engine.plan_of_graph(self.graph, fastmath, donated, device)
                engine.close(plan, free)
                if logged:
                    engine.compile_plan(plan)
            if device is None:
                self.plan = plan
            else:
                self.plans[device] = plan
        return plan

    def assemble_results(self, results: Sequence[Node], refs: Sequence[Any] = ()) -> Any:
        """Return the results in the pytree structure that the function returned.

        The last results of a program that uses references are their new contents, which are stored
        in the references: first in those among the arguments (`refs`), then in those that the
        function closes over.
        """
        refs = [*refs, *self.closed]
        if refs:
            n = len(results) - len(refs)
            set_refs(refs, results[n:], "jit")
            results = results[:n]
        outs = [wrap(x) for x in results]
        return outs[0] if self.single else self.out_spec.unflatten(outs)


def run_donating(
    plan: engine.Plan,
    entry: Entry,
    call: Call,
    leaves: list[Node],
    donated: Sequence[int],
    name: str,
) -> list[Node]:
    """Run the plan of a program and delete the arrays at the donated positions."""
    n = len(entry.consts)
    deleted = [i for i in donated if type(call.leaves[i - n]) is Array]
    if deleted:
        what, site = f"its buffer was donated to {name} by the call", user_site()
        for i in deleted:  # first, so that the reference counts show other holders
            call.leaves[i - n]._forget(what, site)
    try:
        return engine.run_plan(plan, leaves, entry.out_avals, deleted)
    except BaseException:
        for i in deleted:
            call.leaves[i - n]._node = leaves[i]
        raise


def rerun(
    entry: Entry,
    fastmath: bool,
    function: JitFunction | None,
    argument_leaves: Sequence[Node | float],
) -> Any:
    """Run a call that the C extension has matched with a dispatch entry, and return its result.

    `argument_leaves` has the leaves of the arguments: nodes and Python numbers. `fastmath` is the
    option of `jit`. `function` is needed only if the entry is watched.
    """
    try:
        if function is not None and entry.watched is not None:
            entry.watched.check(function._name, function._parameter)
        leaves = [*entry.consts, *[x if type(x) is Node else as_node(x) for x in argument_leaves]]
        plan = entry.load(fastmath or config.fastmath, (), leaves)
        return entry.assemble_results(engine.run_plan(plan, leaves, entry.out_avals))
    except BaseException as error:
        errors.hide_frames(error)
        raise


def is_outside_traces() -> bool:
    """Return whether this thread is not tracing and has no bound names of mapped axes."""
    return state.abstract is None and not (bound() or state.named or state.varying is not None)


def _user_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes that the user set on a function; names with one leading underscore
    belong to other wrappers."""
    return {k: v for k, v in attributes.items() if k[:1] != "_" or k[:2] == "__"}


class JitFunction(Caller, Generic[P, R]):
    """Function that is traced and compiled once for each signature of its arguments.

    Made by `jit`, for arrays of any shape and dtype. Calling it runs the compiled program; `trace`
    and `lower` return the stages before that.

    Parameters
    ----------
    fun : callable
        Function to trace.
    options : Options
        Arguments of `jit`, checked.

    Raises
    ------
    RuntimeError
        If it is called while `no_execution` is set.
    NotImplementedError
        From `trace` and `lower`, if the function uses references from outside.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = jnp.jit(lambda x: x + 1)
    >>> isinstance(f, jnp.stages.Wrapped)
    True
    >>> f(1)
    Array(2, dtype=int32, weak_type=True)
    """

    transform = "jit"  # for messages
    __slots__ = ("__dict__", "__weakref__")
    _records: tuple[Record, ...]  # dispatch entries, see `dispatch_registration.py`

    def __init__(self, fun: Callable[P, R], options: Options) -> None:
        wraps(fun, updated=())(self)
        if attributes := getattr(fun, "__dict__", None):
            self.__dict__.update(_user_attributes(attributes))
        self.__wrapped__ = fun
        self._fun: Callable[..., R] = fun  # untyped, since tracing rebuilds the arguments
        self._options = options
        self._static_numbers, self._static_names = resolve_static(fun, options)
        self._cache = _cache_of(fun, options)
        self._hits = 0  # calls by the general path

    @property
    def static_parameters(self) -> tuple[tuple[int, ...], frozenset[str]]:
        """Positions (from the end if negative) and names of the static parameters."""
        return self._static_numbers, self._static_names

    @overload
    def __get__(self, instance: None, owner: Any = None) -> JitFunction[P, R]: ...
    @overload
    def __get__(
        self: JitFunction[Concatenate[Any, Q], R], instance: object, owner: Any = None
    ) -> BoundMethod[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else BoundMethod(self, instance)

    def __getstate__(self) -> dict[str, Any]:
        # Traces are not pickled, since machine code is specific to the process.
        return {k: v for k, v in self.__dict__.items() if k != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cache = _cache_of(self._fun, self._options)

    def _call_uncached(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a call that no dispatch entry matches; called by `Caller.__call__`."""
        try:
            return self._call(args, kwargs)
        except BaseException as error:
            errors.hide_frames(error)
            raise

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    # --- the general path ---

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run or record a call by the general path. After enough calls of the signature, a dispatch
        entry is made for it."""
        if state.abstract is not None and not frame_belongs(sys._getframe()):
            with outside_traces():  # called by a signal handler during a trace
                return self._call(args, kwargs)
        # In shard_map, calls are inlined, since derivatives depend on which values vary by shard.
        if config.disable_jit or state.varying is not None:
            return self._fun(*args, **kwargs)
        switches = config.key
        call, entry, leaves = self.entry_of(args, kwargs)
        if state.abstract is None and any(is_outer(x) for x in entry.consts):
            # The program is evaluated op by op: it is used once, and the ops may be cached.
            return entry.assemble_results(evaluate(entry.graph, leaves), call.refs)
        if state.abstract is not None or any(is_outer(x) for x in leaves):
            params = {"name": self._name, "jaxpr": entry.graph}
            return entry.assemble_results(record_call("jit", leaves, params), call.refs)
        donated: Sequence[int] = ()
        if self._options.donates:
            donated = imported("accnp.api.jit.donation").check_donated_inputs(entry, call)
        if config.no_execution:
            raise RuntimeError(
                f"jit: the option no_execution is set; got a call of {self._name}; use lower() or "
                "eval_shape, or leave the option's context first"
            )
        plan = entry.load(self._options.fastmath or config.fastmath, donated, leaves)
        results = run_donating(plan, entry, call, leaves, donated, self._name)
        result = entry.assemble_results(results, call.refs)
        entry.hits += 1
        self._hits += 1
        # Only the general path handles donation, references and deleted arrays.
        plain = not (donated or call.refs or entry.closed or call.deleted)
        known = entry.hits >= ENTRY_AFTER and (
            is_due_for_entry(entry.hits, ENTRY_AFTER) or is_due_for_entry(self._hits, ENTRY_AFTER)
        )
        if known and plain and is_outside_traces():
            _register_call(self, entry, args, kwargs, switches)
        return result

    def entry_of(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Call, Entry, list[Node]]:
        """Return the call, its cache entry, and the inputs of the program.

        The function is traced if the signature is not in the cache.
        """
        call = self._split(args, kwargs)
        nodes = call.nodes(self._name)
        if bound():
            nodes = take_wholes(nodes)
        key: Any = (call.spec, tuple([x.aval for x in nodes]), call.static_keys(), config.key)
        if bound():
            key = (*key, bound())
        if types_only():
            key = (*key, "types only")
        if state.named:
            key = (*key, "named")
        if call.refs:
            key = (*key, tuple([isinstance(x, Reference) for x in call.leaves]))
        began = _cleared
        entry = self._cache.get(key)
        if entry is not None and entry.policy is not None:
            state.policy_reads += 1
            if entry.policy != state.policies[-1:]:
                key = (*key, state.policies[-1:])
                entry = self._cache.get(key)
        if entry is not None:
            entry.used = next_use()
        if entry is None:
            trace_log.report_miss(self._fun, call, key[1], self._cache)
            start, reads = perf_counter(), state.policy_reads
            entry = self._trace(call, [x.aval for x in nodes])
            if state.policy_reads != reads:
                entry.policy = state.policies[-1:]
            trace_log.log_trace(self._name, self.transform, start)
            entry.watched = (Watched(self._fun, call.static) or None) if call.static else None
            if not any(is_outer(x) for x in entry.consts) and not any(r.home for r in entry.closed):
                _add_entry(self._cache, key, entry, began)
        elif entry.watched is not None:
            entry.watched.check(self._name, self._parameter)
        if call.deleted:
            nodes = imported("accnp.api.jit.donation").without_deleted(entry, call, nodes)
        call.check_refs(entry.closed, self._name)
        return call, entry, [*entry.consts, *nodes, *ref_contents(entry.closed, "jit")]

    def _split(self, args: tuple, kwargs: dict[str, Any]) -> Call:
        """Separate the static arguments of a call from those to trace."""
        numbers, names = self._static_numbers, self._static_names
        if not numbers and not names:
            return Call(self, args, kwargs, (), args, kwargs)
        n = len(args)
        where = {i if i >= 0 else i + n for i in numbers}
        dynamic = tuple([a for i, a in enumerate(args) if i not in where])
        static: list[tuple[Any, Any]] = [(i, args[i]) for i in sorted(where) if 0 <= i < n]
        dynamic_kw = {k: v for k, v in kwargs.items() if k not in names}
        static += [(k, kwargs[k]) for k in sorted(kwargs) if k in names]
        keyed = []
        for place, value in static:
            try:
                hash(value)
            except TypeError:
                name = place if isinstance(place, str) else self._parameter(place)
                error = errors.unhashable_static_error(
                    f"{self.transform}({self._name})", f"'{name}'", value
                )
                if type(value) is Array and is_traced(value._node):
                    error.args = (f"{error}\n{conversion_error('static', value._node)}",)
                raise error from None
            keyed.append((place, type(value), value))
        return Call(self, args, kwargs, tuple(keyed), dynamic, dynamic_kw)

    def _parameter(self, number: int) -> str:
        """Return the name of the parameter at a position, for error messages."""
        try:
            return list(inspect.signature(self._fun).parameters)[number]
        except (TypeError, ValueError, IndexError):
            return f"args[{number}]"

    @property
    def _name(self) -> str:
        return function_place(self._fun)[0]

    def _trace(self, call: Call, avals: Sequence[Any]) -> Entry:
        """Trace the function for leaves of these types; the entry is not added to the cache."""
        out_spec: Any = None
        captures: dict[int, Any] = {}
        constants: dict[int, Any] = {}

        def on_nodes(leaves: list[Node]) -> list[Node]:
            nonlocal out_spec, constants
            assert state.abstract is not None
            state.abstract.captures = captures
            values, refs = call.inner(leaves)
            args, kwargs = call.rebuild(values)
            result = self._fun(*args, **kwargs)
            flat, out_spec = flatten_arrays(result)
            out_spec = with_float0(flat, out_spec)
            constants = {i: x for i, x in enumerate(flat) if is_host_value(x)}
            outs = [
                result_node(x, result, i, f"{self.transform}({self._name})")
                for i, x in enumerate(flat)
            ]
            return [*outs, *ref_contents(refs, "jit")]

        graph = trace(on_nodes, avals, of=self._fun, transform=self.transform, names=call.names())
        refs = [c.ref for c in captures.values()]
        graph = with_refs(Body(graph, out_spec, list(captures.values())), refs)
        return Entry(graph, close([graph]), out_spec, refs, constants)

    @api_boundary
    def call_into(self, out: PyTree, /, *args: Any, **kwargs: Any) -> PyTree:
        """Call the function and write its results to given NumPy arrays.

        Kernels write to the arrays directly if these are C-contiguous and do not overlap an
        argument. Otherwise, the results are copied. Memory maps of the same file overlap if they
        map the same bytes.

        Parameters
        ----------
        out : pytree of numpy.ndarray
            Arrays to write to, in the structure of the results, for example a `numpy.memmap`.
            Their shapes and dtypes are those of the results.
        *args : pytree of array_like
            Positional arguments of the function.
        **kwargs : pytree of array_like
            Keyword arguments of the function, of any names.

        Returns
        -------
        pytree of numpy.ndarray
            The given arrays. The results are computed when the call returns.

        Raises
        ------
        TypeError
            If the structure of `out` or a dtype in it differs from that of the results, if an array
            in it is read-only, or if the call is traced.
        ValueError
            If the shape of an array in `out` differs from that of the result.

        Examples
        --------
        >>> import numpy as np
        >>> import accnp as jnp
        >>> buffer = np.empty(3, np.float32)
        >>> jnp.jit(lambda x: x * 2).call_into(buffer, jnp.arange(3.0))
        array([0., 2., 4.], dtype=float32)
        """
        return imported("accnp.api.jit.output_buffers").call_into(self, out, args, kwargs)

    # --- the stages of JAX ---

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> TracedStage:
        """Trace the function for given arguments, and return the stage with its jaxpr.

        Parameters
        ----------
        *args : pytree of array_like
            Positional arguments. `ShapeDtypeStruct` leaves work, too, and their lengths may be
            symbolic (`export.symbolic_shape`).
        **kwargs : pytree of array_like
            Keyword arguments.

        Returns
        -------
        stages.Traced
            Traced function.
        """
        jaxpr = imported("accnp.api.jit.abstract_evaluation")
        if jaxpr.has_symbols((args, kwargs)):
            return jaxpr.symbolic_tracing().symbolic_stage(self, args, kwargs)
        call = self._split(args, kwargs)
        with jaxpr.types_as_values():
            entry = self._trace(call, [jaxpr.aval_of(x, self._name) for x in call.leaves])
        if entry.closed:
            raise NotImplementedError(
                f"jit({self._name}).trace: a function that closes over references has no stages; "
                f"got one of type {entry.closed[0].aval}; call the function instead"
            )
        stage = imported("accnp.api.jit.stages").TracedStage
        return stage(self, entry, call, jaxpr.closed_jaxpr(entry.graph, entry.consts))

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace the function for given arguments and plan its kernels.

        Parameters
        ----------
        *args : pytree of array_like
            Positional arguments, or their types.
        **kwargs : pytree of array_like
            Keyword arguments, or their types.

        Returns
        -------
        stages.Lowered
            Planned program, whose method `compile` makes machine code.
        """
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the types of the results without computing them.

        Parameters
        ----------
        *args : pytree of array_like
            Positional arguments, or their types; lengths may be symbolic.
        **kwargs : pytree of array_like
            Keyword arguments, or their types.

        Returns
        -------
        pytree of ShapeDtypeStruct
            Types of the results.
        """
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Clear the traces of this function."""
        forget([self._cache])

    def _cache_size(self) -> int:
        return len({id(e) for e in self._cache.values()})

    def __repr__(self) -> str:
        return f"<jitted {self._name}>"


def _cache_of(fun: Callable[..., Any], options: Options) -> TraceCache:
    """Return the cache that all wrappers of a function with these options share. Functions that are
    unhashable or have no weak references get a new cache."""
    cache = TraceCache()
    with contextlib.suppress(TypeError):  # not hashable, or no weak references
        cache = _caches.setdefault(fun, {}).setdefault(options.key, cache)
    _tables[id(cache)] = cache
    return cache


def _add_entry(cache: TraceCache, key: Any, entry: Entry, began: int) -> None:
    """Add a program to a cache.

    `began` is the value of `_cleared` before the program was traced. If caches were cleared since
    then, the program may depend on outdated values and is not added.
    """
    global _entries
    with _entering:
        if began == _cleared:
            cache[key] = entry
            _entries += 1
            if _entries > config.trace_cache_size:
                _evict()


def _evict() -> None:
    """If there are more programs than `trace_cache_size`, remove the excess and a quarter of that
    size: the least recently called ones, with their dispatch entries."""
    global _entries, _evicted
    for function in list(_registered):
        for record in function._records:
            entry = record.keeps[1]
            entry.used = max(entry.used, record.used)
    entries = [(e.used, k, table) for table in _tables.values() for k, e in list(table.items())]
    _entries = len(entries)
    excess = _entries - config.trace_cache_size
    if excess <= 0:
        return
    entries.sort(key=itemgetter(0))
    evicted: dict[int, Any] = {}
    for _, key, table in entries[: excess + config.trace_cache_size // 4]:
        entry = table.pop(key, None)
        evicted[id(entry)] = entry
        _evicted += 1
        _entries -= 1
    for function in list(_registered):
        records = tuple([r for r in function._records if id(r.keeps[1]) not in evicted])
        if len(records) < len(function._records):
            function._records = records


def forget(caches: Iterable[TraceCache]) -> None:
    """Clear caches. Programs that other threads are tracing now are not added to them later."""
    global _cleared
    with _entering:
        _cleared += 1
        for cache in caches:
            cache.clear()
        new_epoch()
        for function in _registered:  # their entries are outdated, and hold programs and arrays
            function._records = ()
        _registered.clear()


register_cache(
    "traces",
    "programs of jitted functions, one for each signature",
    "trace_cache_size",
    lambda: sum([len(table) for table in _tables.values()]),
    lambda: _evicted,
    lambda: forget(list(_tables.values())),
)


def _register_call(
    function: JitFunction, entry: Entry, args: tuple, kwargs: dict[str, Any], key: Any
) -> None:
    """Add a dispatch entry, so that the C extension handles calls like this one from now on."""
    with _entering:
        _registered.add(function)
    # Imported here, so that programs that call each function once do not load it.
    imported("accnp.api.jit.dispatch_registration").register_call(
        function, entry, args, kwargs, key
    )


def is_outer(node: Node) -> bool:
    """Return whether a node belongs to a trace that is still recording (jit, vmap or grad)."""
    return node.trace is not None and (node.trace.active or is_traced(node))


def _with_option_error(fun: Callable[..., Any], option: str) -> Callable[..., Any]:
    """Return a function that raises the error for an unknown compiler option at each call."""

    @wraps(fun)
    def refused(*_: Any, **__: Any) -> Any:
        raise unknown_option_error(option)

    return refused


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    fastmath: bool = False,
    compiler_options: dict[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    abstracted_axes: Any = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    fun: None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    fastmath: bool = False,
    compiler_options: dict[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    abstracted_axes: Any = None,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
@errors.api_boundary
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    fastmath: bool = False,
    compiler_options: dict[str, Any] | None = None,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    abstracted_axes: Any = None,
) -> Any:
    """Compile a function: trace it once for each signature and run it as fused kernels.

    A signature consists of the pytree structure, shapes and dtypes of the arguments and the values
    of static arguments. The results have the same bits as without `jit`, unless `fastmath` is set.

    Parameters
    ----------
    fun : callable, optional
        Function of pytrees of arrays. Without it, a decorator is returned.
    {static_argnums}
    donate_argnums : int or sequence of int, optional
        Positions of arguments whose buffers may be reused for the results. A donated array is
        deleted after the call if it is used and a result has its size.
    donate_argnames : str or iterable of str, optional
        Names of arguments to donate.
    keep_unused : bool, optional
        If True, arguments that the function does not use can be donated, too, and must not be
        deleted arrays. Has no other effect: kernels only get the arguments that they use. The
        default is False.
    device : Device, optional
        Device on which the function runs. The default is that of the arguments.
    backend : str, optional
        Platform on whose first device the function runs, such as "cpu" or "gpu".
    inline : bool, optional
        Has no effect; present for compatibility with JAX.
    fastmath : bool, optional
        Whether the compiler may reorder and contract floating-point arithmetic, which changes the
        last bits of results. The default is False. Not in JAX.
    compiler_options : dict, optional
        Options of XLA. They have no effect, and each gives one warning.
    in_shardings : sharding, PartitionSpec or pytree, optional
        How the arguments are laid out over devices: a sharding, a `PartitionSpec` over the current
        mesh, or a pytree prefix of these. The default, None, accepts any layout.
    out_shardings : sharding, PartitionSpec or pytree, optional
        How the results are laid out over devices, in the same form.
    abstracted_axes : object, optional
        Has no effect; present for compatibility with JAX.

    Returns
    -------
    stages.Wrapped
        Function with the same results as `fun`, or a decorator that makes one.

    Raises
    ------
    TypeError
        If `fun` is not callable, or is a staticmethod object or a generator function.
    ConcretizationTypeError
        If Python control flow needs the value of a traced argument.
    ValueError
        If a static argument is not hashable.
    JaxRuntimeError
        At the first call, if `compiler_options` has a name that XLA does not know.

    See Also
    --------
    make_jaxpr : Show the traced program.
    disable_jit : Run jitted functions operation by operation.
    vmap : Map a function over an axis.
    grad : Differentiate a function.

    Notes
    -----
    Tracing runs the Python code of `fun` with arrays that have no values yet, so side effects such
    as `print` happen only then. Use `lax.cond`, `lax.scan` and `lax.while_loop` for control flow
    that depends on values.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.jit
    ... def f(x):
    ...     return jnp.sum(x * x)
    >>> float(f(jnp.arange(4.0)))
    14.0
    """
    unknown = unknown_compiler_options(compiler_options)
    options = Options(
        static_argnums, static_argnames, donate_argnums, donate_argnames, fastmath, keep_unused
    )

    def decorate(f: Callable[..., Any]) -> JitFunction:
        if not callable(f):
            raise TypeError(f"jit: Expected a callable value, got {f!r}; pass a function")
        if isinstance(f, staticmethod):
            raise TypeError(
                f"jit: staticmethod arguments are not supported, got {f!r}; "
                "put @staticmethod above @jit"
            )
        if inspect.isgeneratorfunction(f):
            raise TypeError(
                f"jit: Expected a function, got a generator function: {f!r}; return the values, "
                "in a list or stacked"
            )
        if unknown:
            f = _with_option_error(f, unknown[0])
        place = devices.devices(backend)[0] if device is None and backend else device
        ends = [place if x is None else x for x in (in_shardings, out_shardings)]
        if ends != [None, None]:
            placing = imported("accnp.sharding.constraints")
            f = placing.placed(f, *ends, resolve_static(f, options)[0])
        return JitFunction(f, options)

    if fun is None:
        setattr(decorate, "__pandas_udf__", PandasEngine)  # noqa: B010 - functions have no such attribute
        return decorate
    return decorate(fun)


class PandasEngine:
    """The methods that pandas calls for `engine=accnp.jit`; see `pandas_engine.py`."""

    @staticmethod
    def map(*args: Any, **kwargs: Any) -> Any:
        """Call a function for each element."""
        return imported("accnp.api.jit.pandas_engine").map_elements(*args, **kwargs)

    @staticmethod
    def apply(*args: Any, **kwargs: Any) -> Any:
        """Call a function for each column or row."""
        return imported("accnp.api.jit.pandas_engine").apply(*args, **kwargs)


setattr(jit, "__pandas_udf__", PandasEngine)  # noqa: B010
