"""The stages of a jitted function: traced, lowered and compiled, as in `jax.stages`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from accnp import engine
from accnp.api.arguments.convert import cast
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct
from accnp.api.jit.donation import check_donated_inputs, donated_inputs, without_deleted
from accnp.api.jit.jit import run_donating
from accnp.api.jit.static_arguments import unknown_compiler_options, unknown_option_error
from accnp.array_type import Array, wrap
from accnp.config import scope
from accnp.engine.describe import plan_text
from accnp.errors import api_boundary
from accnp.ir.aval import Aval
from accnp.ir.equations import ClosedJaxpr
from accnp.ir.node import Node
from accnp.lazy_imports import imported
from accnp.runtime import device as devices_module
from accnp.runtime.device import default_device, devices
from accnp.sharding.device_placement import put_node

__all__ = [
    "ArgInfo", "Compiled", "CompiledMemoryStats", "CompilerOptions", "Lowered", "TracedStage",
]  # fmt: skip

CompilerOptions = dict[str, str | bool]


class ArgInfo:
    """Type of one argument of a stage, and whether its buffer is donated.

    Its attributes are `shape`, `dtype` and `donated`.

    Parameters
    ----------
    donated : bool
        Whether the argument is donated by `donate_argnums` or `donate_argnames`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.jit(jnp.sin).lower(1.0).args_info[0][0].donated
    False
    """

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: Any, donated: bool) -> None:
        self._aval, self.donated = _aval, donated

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._aval.dtype

    def of_keys(self, dtype: Any) -> ArgInfo:
        """Return the info of the keys that consist of these words."""
        return ArgInfo(self._aval.of_keys(dtype), self.donated)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgInfo) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


class CompiledMemoryStats:
    """Memory of one call, in bytes: of arguments, results, and temporary buffers.

    Parameters
    ----------
    arguments : int
        Bytes that the operands of a call occupy.
    outputs : int
        Size of the results.
    between : int
        Largest size of temporary buffers at a time.

    Examples
    --------
    >>> import accnp as jnp
    >>> compiled = jnp.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
    >>> stats = compiled.memory_analysis()
    >>> stats.argument_size_in_bytes, stats.output_size_in_bytes
    (12, 12)
    """

    def __init__(self, arguments: int, outputs: int, between: int) -> None:
        self.argument_size_in_bytes = arguments
        self.output_size_in_bytes = outputs
        self.temp_size_in_bytes = between
        self.alias_size_in_bytes = self.generated_code_size_in_bytes = 0

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v}" for k, v in sorted(vars(self).items()))
        return f"CompiledMemoryStats({fields})"


def _peak(plan: engine.Plan) -> int:
    """Return the largest total size of a plan's buffers at any time, in bytes."""
    live: dict[int, int] = {}
    most = 0
    for step in plan.steps:
        live |= dict(getattr(step, "allocs", ()))
        live |= {slot: a.nbytes for slot, a in getattr(step, "results", ())}
        most = max(most, sum(live.values()))
        for slot in step.frees:
            live.pop(slot, None)
    return most


def _sharding(aval: Any) -> Any:
    shards = imported("accnp.sharding.shards")  # rarely used
    return shards.sharding_at(aval.devices or (devices()[0],))


class _Stage:
    """Base class of the three stages."""

    _traced: TracedStage

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The positions of the leaves whose buffers are donated."""
        traced = self._traced
        return tuple(traced._call.donated(traced._function._options))

    @property
    def args_info(self) -> Any:
        """`ArgInfo` of each argument, in the arguments' structure."""
        traced, donated_positions = self._traced, {*self.donate_argnums}
        infos = [ArgInfo(a, i in donated_positions) for i, a in enumerate(traced._in_types)]
        return traced._call.spec.unflatten(infos)


class TracedStage(_Stage):
    """Function traced for one signature; `jaxpr` is the program.

    Made by `jit(f).trace(*args)`. `out_info` holds the shapes and dtypes of the results, and
    `lower()` returns the next stage.

    Parameters
    ----------
    function : stages.Wrapped
        Jitted function that was traced.
    entry : object
        Trace of the function for this signature.
    call : object
        Flattened arguments of the call.
    jaxpr : ClosedJaxpr
        Program of the function.

    Raises
    ------
    TypeError
        From `jit(f).trace`, if an argument is not an array; errors of `f` itself are passed on.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.jit(jnp.sin).trace(1.0).jaxpr
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """

    def __init__(self, function: Any, entry: Any, call: Any, jaxpr: ClosedJaxpr) -> None:
        self._function, self._entry, self._call = function, entry, call
        self._traced = self
        self._in_types: Sequence[Aval] = entry.graph.in_avals[len(entry.consts) :]
        self._out_types: Sequence[Aval] = entry.out_avals
        self._jaxpr = jaxpr
        self.fun_name = function._name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        return self._jaxpr

    @property
    def out_info(self) -> Any:
        """ShapeDtypeStructs of the results, in the results' structure."""
        structs = [
            ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in self._out_types
        ]
        return self._entry.out_spec.unflatten(structs)

    @property
    def in_avals(self) -> tuple[Any, dict[str, Any]]:
        """The types of the arguments, in their structure."""
        return self._call.spec.unflatten(list(self._in_types))

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self._call.spec.shown()

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """The types of the results."""
        return tuple(self._out_types)

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._entry.out_spec.shown()

    def refuse_types(self, function: str) -> None:
        """Raise if the program uses types as values.

        Raises:
            TypeError: a closed-over constant is a ShapeDtypeStruct.
        """
        if any("type" in x.params for x in self._entry.consts):
            raise TypeError(
                f"{function}: A ShapeDtypeStruct does not have a value and cannot be used as a "
                f"constant in a JAX function; got one in {self.fun_name}; pass it as an argument"
            )

    def lower(self, **_: Any) -> Lowered:
        """Plan the kernels, and return the next stage."""
        return Lowered(self)


class Lowered(_Stage):
    """Program lowered to kernels as source text, which are not compiled yet.

    Made by `jit(f).lower(*args)`. `as_text()` returns the source, and `compile()` the next stage.

    Parameters
    ----------
    traced : stages.Traced
        Stage before this one.

    Raises
    ------
    JaxRuntimeError
        From `compile`, if a compiler option is unknown.

    Examples
    --------
    >>> import accnp as jnp
    >>> "def kernel" in jnp.jit(jnp.sin).lower(1.0).as_text()
    True
    """

    def __init__(self, traced: TracedStage) -> None:
        self._traced = traced
        function = traced._function
        traced.refuse_types("lower")
        arrays = [x._node for x in traced._call.leaves if isinstance(x, Array)]
        entry = traced._entry
        donated = donated_inputs(entry, traced._call) if function._options.donates else ()
        self._plan = entry.load(function._options.fastmath, donated, arrays)

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

    @api_boundary
    def as_text(self, *_: Any, **__: Any) -> str:
        """Return the source of every kernel, in the order of launches."""
        return plan_text(self._plan)

    @api_boundary
    def compiler_ir(self, dialect: str | None = None) -> ClosedJaxpr:
        """Return the program before it is planned, as a jaxpr.

        Parameters
        ----------
        dialect : str, optional
            Ignored; present for compatibility with JAX.
        """
        return self._traced.jaxpr

    def cost_analysis(self) -> dict[str, float]:
        """Return estimates for one call: simple operations, launches, and bytes to transfer."""
        plan = self._plan
        moved = float(sum(step.nbytes for step in plan.steps))
        return {
            "flops": float(plan.work),
            "launches": float(len(plan.steps)),
            "bytes accessed": moved,
        }

    @api_boundary
    def compile(self, compiler_options: dict[str, Any] | None = None, **_: Any) -> Compiled:
        """Compile every kernel, or load it from the cache on disk, and return the last stage.

        Parameters
        ----------
        compiler_options : dict, optional
            Options of XLA, as for `jit`.

        Returns
        -------
        stages.Compiled
            Program to call.
        """
        if unknown := unknown_compiler_options(compiler_options):
            raise unknown_option_error(unknown[0])
        engine.compile_plan(self._plan)
        return Compiled(self)


class Compiled(_Stage):
    """Machine code for one signature, to be called with arguments of exactly that signature.

    Made by `jit(f).lower(*args).compile()`.

    Parameters
    ----------
    lowered : stages.Lowered
        Stage before this one.

    Raises
    ------
    TypeError
        If it is called with arguments of other shapes or dtypes than those it was compiled for.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.jit(lambda x: x + 1).lower(1.0).compile()(2.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._traced = lowered._traced
        self._home = default_device()

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

    @api_boundary
    def as_text(self) -> str:
        """Return the source of every kernel."""
        return self._lowered.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """Return estimates for one call: simple operations, launches, and bytes to transfer."""
        return self._lowered.cost_analysis()

    def memory_analysis(self) -> CompiledMemoryStats:
        """Return the sizes of arguments, results and temporary buffers, in bytes."""
        entry, plan = self._traced._entry, self._lowered._plan
        ins = sum(a.nbytes for a in entry.graph.in_avals)
        outs = sum(a.nbytes for a in entry.out_avals)
        return CompiledMemoryStats(ins, outs, max(0, _peak(plan) - outs))

    def runtime_executable(self) -> Any:
        """Return the plan of kernels that a call runs."""
        return self._lowered._plan

    @property
    def input_shardings(self) -> Any:
        """Layout of the arguments over devices, in their structure."""
        entry = self._traced._entry
        avals = entry.graph.in_avals[len(entry.consts) :]
        return self._traced._call.spec.unflatten([_sharding(a) for a in avals])

    @property
    def output_shardings(self) -> Any:
        """Layout of the results over devices, in their structure."""
        entry = self._traced._entry
        return entry.out_spec.unflatten([_sharding(a) for a in entry.out_avals])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for arguments of its signature."""
        return self(*args, **kwargs)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = self._traced
        call = traced._function._split(args, kwargs)
        nodes = call.nodes(traced.fun_name)
        entry = traced._entry
        expected = entry.graph.in_avals[len(entry.consts) :]
        actual = tuple(x.aval for x in nodes)
        if call.spec != traced._call.spec or actual != expected:
            fits = call.spec == traced._call.spec
            arguments = [_convert_argument(x, a, self._home) if fits else None
                     for x, a in zip(nodes, expected, strict=fits)]  # fmt: skip
            nodes = [x for x in arguments if x is not None]
            if not fits or len(nodes) != len(arguments):
                texts = [", ".join(map(_aval_text, avals)) for avals in (expected, actual)]
                raise TypeError(
                    f"{traced.fun_name}: Argument types differ from the types for which this "
                    f"computation was compiled; compiled for {texts[0]}; called with {texts[1]}; "
                    "compile for these types, or call the jitted function"
                )
        if call.deleted:
            nodes = without_deleted(entry, call, nodes)
        moved = devices_module.gpu_possible and default_device() is not self._home
        donated = check_donated_inputs(entry, call) if traced._function._options.donates else ()
        with scope("default_device", self._home) if moved else nullcontext():
            plan = entry.load(False, donated, nodes)
            leaves = [*entry.consts, *nodes]
            del nodes  # donated buffers are reused only without other references
            results = run_donating(plan, entry, call, leaves, donated, traced.fun_name)
        return entry.out_spec.unflatten([wrap(x) for x in results])


def _aval_text(a: Aval) -> str:
    return str(a) if a.devices is None else f"{a} on {', '.join(map(str, a.devices))}"


def _convert_argument(x: Node, expected: Aval, default: Any) -> Node | None:
    """Convert an argument to the type that the program was compiled for; None if it does not match.

    The weak flag may differ, and an uncommitted argument is moved to the device of the program.
    """
    a = x.aval
    if a is expected:
        return x
    if (a.shape, a.dtype) != (expected.shape, expected.dtype):
        return None
    home = expected.devices or (default,)
    if a.devices is not None and a.devices != expected.devices and tuple(a.devices) != tuple(home):
        return None
    return cast(put_node(x, expected.devices), expected.dtype, expected.weak_type)
