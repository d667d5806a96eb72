"""Options of `jit`, the split of a call's arguments into static values and leaves, and checks that
static objects do not change."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from accnp import errors
from accnp.api.arguments.convert import as_node
from accnp.api.tracing.argument_names import argument_names
from accnp.api.tracing.bodies import Reference, ref_contents, result_node
from accnp.array_type import Array, wrap
from accnp.config import warn_once
from accnp.errors import JaxRuntimeError
from accnp.ir.node import Node
from accnp.ir.op import static_key
from accnp.ir.trace import DEAD, Deleted
from accnp.pytree import flatten_arrays
from accnp.trace_fn import function_place

__all__ = [
    "Call", "Options", "Watched", "resolve_static", "result_node", "unknown_compiler_options",
    "unknown_option_error",
]  # fmt: skip


class Options:
    """The options that were passed to `jit`."""

    __slots__ = (
        "apart", "donate_apart", "donate_names", "donate_numbers", "fastmath", "keep_unused",
        "static_names", "static_numbers",
    )  # fmt: skip

    def __init__(
        self,
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
        fastmath: bool,
        keep_unused: bool = False,
    ) -> None:
        self.static_numbers = _tuple(static_argnums, int, "static_argnums")
        self.static_names = _tuple(static_argnames, str, "static_argnames")
        self.donate_numbers = _tuple(donate_argnums, int, "donate_argnums")
        self.donate_names = _tuple(donate_argnames, str, "donate_argnames")
        # If both are given, argnums refer to positions only and argnames to keywords only.
        self.apart = static_argnums is not None and static_argnames is not None
        self.donate_apart = donate_argnums is not None and donate_argnames is not None
        self.fastmath = bool(fastmath)
        # Unused arguments that are kept are donated as well, and must not be deleted arrays.
        self.keep_unused = bool(keep_unused)

    @property
    def donates(self) -> bool:
        return bool(self.donate_numbers or self.donate_names)

    @property
    def key(self) -> Hashable:
        return (
            self.static_numbers,
            self.static_names,
            self.donate_numbers,
            self.donate_names,
            self.apart,
            self.donate_apart,
            self.fastmath,
            self.keep_unused,
        )


def _tuple(value: Any, kind: type, name: str) -> tuple:
    if value is None:
        return ()
    if isinstance(value, kind):
        return (value,)
    if not isinstance(value, Iterable) or isinstance(value, str):
        raise TypeError(
            f"jit: {name} must be {kind.__name__} or a sequence of them; got {value!r}; "
            "pass one, or a tuple of them"
        )
    out = tuple(int(v) if kind is int and hasattr(v, "__index__") else v for v in value)
    for v in out:
        if not isinstance(v, kind):
            raise TypeError(
                f"jit: {name} must be {kind.__name__} or a sequence of them; got {value!r}; "
                "pass one, or a tuple of them"
            )
    return out


def resolve_static(
    fun: Callable[..., Any], options: Options
) -> tuple[tuple[int, ...], frozenset[str]]:
    """Complete static and donated positions from names and names from positions."""
    numbers, names = set(options.static_numbers), set(options.static_names)
    if not numbers and not names and not options.donates:
        return (), frozenset()
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        if options.donate_names:
            raise ValueError(
                f"jit: Getting the signature of function {fun} failed. Pass donate_argnums instead "
                f"of donate_argnames; got {sorted(options.donate_names)}"
            ) from None
        return tuple(sorted(numbers)), frozenset(names)
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    by_key = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = [p.name for p in parameters]
    nameless = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    name = function_place(fun)[0]
    for option, option_names in (("static", names), ("donate", options.donate_names)):
        for n in option_names:
            if n not in known and not by_key:
                raise ValueError(
                    f"jit: Jitted function has invalid argnames {n!r} in {option}_argnames, which "
                    f"{name} does not take; its parameters are {', '.join(known)}"
                )
            if n in nameless and not by_key:
                raise ValueError(
                    f"jit: {option}_argnames names {n!r}, which {name} accepts by position only; "
                    f"got {n!r}; pass its number in {option}_argnums"
                )
    for option, places in (("static", numbers), ("donate", options.donate_numbers)):
        for i in places:
            if not variadic and not -len(positional) <= i < len(positional):
                raise ValueError(
                    f"jit: Jitted function has {option}_argnums={tuple(places)}, but only accepts "
                    f"{len(positional)} positional arguments; got {i} for {name}; pass one of them"
                )
    if not options.static_names and not options.apart:
        names |= {positional[i] for i in numbers if -len(positional) <= i < len(positional)}
    if not options.static_numbers and not options.apart:
        numbers |= {positional.index(n) for n in options.static_names if n in positional}
    donated = {*options.donate_names}
    donated |= {
        positional[i] for i in options.donate_numbers if -len(positional) <= i < len(positional)
    }
    if both := donated & names:
        raise ValueError(
            "jit: static_argnames and donate_argnames cannot intersect, nor can the argnums; got "
            f"{', '.join(sorted(both))} in both; remove it from one"
        )
    return tuple(sorted(numbers)), frozenset(names)


# Options of XLA's compiler that lack its prefix.
_COMPILER_OPTIONS = frozenset(
    ("exec_time_optimization_effort", "fdo_profile", "memory_fitting_effort",
     "memory_fitting_level", "optimization_level")
)  # fmt: skip


def unknown_compiler_options(options: Mapping[str, Any] | None) -> list[str]:
    """Return the names of options that XLA does not have; warn that the others have no effect."""
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(
            f"jit: compiler_options must be a dictionary of names and values; got {options!r}; "
            "pass one, or None"
        )
    unknown = []
    for name in options or ():
        if str(name).startswith("xla_") or name in _COMPILER_OPTIONS:
            text = f"jit: the compiler option {name!r} has no effect in accnp"
            warn_once(text, f"compiler {name}")
        else:
            unknown.append(name)
    return unknown


def unknown_option_error(name: str) -> JaxRuntimeError:
    """Return the exception for a compiler option that XLA does not have."""
    return JaxRuntimeError(
        f"INVALID_ARGUMENT: No such compile option: {name!r}; got it in compiler_options; leave it "
        "out, since accnp ignores the options of XLA"
    )


class Watched:
    """The attributes of static objects that a traced function reads, with their traced values.

    Only objects that compare by identity are watched, since the keys of others change with them.
    """

    __slots__ = ("_objects",)

    def __init__(self, fun: Callable[..., Any], static: tuple) -> None:
        self._objects: list[tuple[Any, Any, dict[str, Any]]] = []
        for place, kind, value in static:
            instance_dict = getattr(value, "__dict__", None)
            if (
                not instance_dict
                or kind.__hash__ is not object.__hash__
                or isinstance(value, _CODE)
            ):
                continue
            names = _names_read(fun, kind)
            attributes = {k: _copy_content(v) for k, v in instance_dict.items() if k in names}
            if attributes:
                self._objects.append((place, value, attributes))

    def __bool__(self) -> bool:
        return bool(self._objects)

    def check(self, function: str, parameter: Callable[[int], str]) -> None:
        """Raise if a watched object has changed.

        Raises:
            ValueError: the program of an earlier call contains an old value.
        """
        for place, value, attributes in self._objects:
            instance_dict = value.__dict__
            for attribute, before in attributes.items():
                now = _copy_content(instance_dict.get(attribute))
                if not _has_same_content(before, now):
                    name = place if isinstance(place, str) else parameter(place)
                    raise ValueError(
                        f"jit({function}): static argument {name!r} has changed since it was "
                        f"traced: {name}.{attribute} was {before!r} "
                        f"({type(before).__name__}), got {now!r} ({type(now).__name__}); pass the "
                        "value as an argument, give the class __eq__ and __hash__ that depend on "
                        "it, or make another object"
                    )


_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType)
_DEPTH = 3


def _names_read(fun: Any, kind: type) -> set[str]:
    """Return the attributes of an object that a function, or methods that it calls, only read."""
    while not isinstance(fun, FunctionType):
        inner = getattr(fun, "func", None) or getattr(fun, "__wrapped__", None)
        if inner is None:
            return set()
        fun = inner
    read: set[str] = set()
    written: set[str] = set()
    codes, seen = [(fun.__code__, 0)], set()
    while codes:
        code, depth = codes.pop()
        if code in seen:
            continue
        seen.add(code)
        for step in _steps(code):
            if step.opname == "STORE_ATTR":
                written.add(step.argval)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                read.add(step.argval)
                method = inspect.unwrap(getattr(kind, step.argval, None) or _missing_attribute)
                if isinstance(method, FunctionType) and depth < _DEPTH:
                    codes.append((method.__code__, depth + 1))
    return read - written


def _missing_attribute() -> None:
    """Placeholder for an attribute that the class does not have."""


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _steps(inner)


def _copy_content(value: Any) -> Any:
    """Return a shallow copy of a mutable value."""
    if type(value) is list:
        return list(value)
    return dict(value) if type(value) is dict else value


def _has_same_content(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is list:
        return len(a) == len(b) and all(_has_same_content(x, y) for x, y in zip(a, b))
    if type(a) is dict:
        return a.keys() == b.keys() and all(_has_same_content(a[k], b[k]) for k in a)
    return isinstance(a, int | float | complex | str | bytes) and a == b


class Call:
    """The arguments of one call, split into static values and leaves."""

    __slots__ = (
        "args", "deleted", "dynamic", "dynamic_kw", "function", "kwargs", "leaves", "refs", "spec",
        "static",
    )  # fmt: skip

    def __init__(
        self,
        function: Any,
        args: tuple,
        kwargs: dict,
        static: tuple,
        dynamic: tuple,
        dynamic_kw: dict,
    ) -> None:
        self.function = function
        self.args, self.kwargs = args, kwargs
        self.dynamic, self.dynamic_kw = dynamic, dynamic_kw
        self.static = static
        self.leaves, self.spec = flatten_arrays((dynamic, dynamic_kw))
        self.refs: Sequence[Any] = ()  # leaves that are references; set by `nodes`
        # The nodes of deleted arrays, with their positions.
        self.deleted: Sequence[tuple[int, Node]] = ()

    def static_keys(self) -> tuple[Any, ...]:
        """Return the positions and keys of static values, as a part of a signature's key."""
        return tuple([(place, *static_key(value)) for place, _, value in self.static])

    def nodes(self, name: str) -> list[Node]:
        """Return the leaves as nodes.

        Raises:
            TypeError: a leaf is not an array or number; the message has its path.
            OverflowError: a Python int does not fit the default dtype; the message has its path.
        """
        out = []
        self.refs = self.deleted = ()
        name = f"{self.function.transform}({name})"
        for i, x in enumerate(self.leaves):
            if type(x) is Array:
                node = x._node
                if isinstance(node.trace, Deleted):
                    self.deleted = [*self.deleted, (len(out), node)]
                elif isinstance(node.trace, DEAD):
                    raise node.trace.error()
                out.append(node)
                continue
            if isinstance(x, Reference):
                self.refs = [*self.refs, x]
                out += ref_contents([x], name)
                continue
            try:
                out.append(as_node(x, name))
            except TypeError:
                raise errors.not_an_array_error(name, self.names()[i], x) from None
            except OverflowError as error:
                raise OverflowError(
                    f"{name}: argument {self.names()[i]}: {error}; use a float, or enable_x64"
                ) from None
        return out

    def inner(self, leaves: Sequence[Node]) -> tuple[list[Any], list[Any]]:
        """Return the values that the traced function sees as leaves, and the references in them."""
        values: list[Any] = [wrap(x) for x in leaves]
        if not self.refs:
            return values, []
        pairs = zip(self.leaves, values, strict=True)
        values = [x.here(v) if isinstance(x, Reference) else v for x, v in pairs]
        return values, [x for x in values if isinstance(x, Reference)]

    def check_refs(self, closed: Sequence[Any], name: str) -> None:
        """Raise if a reference is passed twice or also closed over: writes through one alias would
        not be visible through the other."""
        seen = {id(r) for r in closed}
        for ref in self.refs:
            if id(ref) in seen:
                raise ValueError(
                    f"{self.function.transform}({name}): a reference can be passed only once, and "
                    f"cannot be closed over as well; got {ref.aval!r} twice; pass it once"
                )
            seen.add(id(ref))

    def rebuild(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the function with other leaves."""
        dynamic, dynamic_kw = self.spec.unflatten(list(leaves))
        where = {place: value for place, _, value in self.static}
        rest = iter(dynamic)
        args = [where[i] if i in where else next(rest) for i in range(len(self.args))]
        kwargs = {k: where[k] if k in where else dynamic_kw[k] for k in self.kwargs}
        return args, kwargs

    def names(self) -> list[str]:
        """Return the user's name of each leaf, such as `x['w'][0]`."""
        numbered = {place for place, _, _ in self.static}
        args = tuple(None if i in numbered else a for i, a in enumerate(self.args))
        return argument_names(self.function._fun, args, self.dynamic_kw)

    def donated(self, options: Options) -> list[int]:
        """Return the positions of the leaves whose buffers the caller donates."""
        if not options.donates:
            return []
        out, at = [], 0
        n = len(self.args)
        numbers = {i if i >= 0 else i + n for i in options.donate_numbers}
        static = {place for place, _, _ in self.static}
        # An argument with a donated position may be passed by keyword.
        numbered = set()
        if self.dynamic_kw and numbers:
            numbered = {self.function._parameter(i) for i in options.donate_numbers}
        for i, a in enumerate(self.args):
            if i in static:
                continue
            count = len(flatten_arrays(a)[0])
            if i in numbers or self._is_named(i, options.donate_names):
                out += [at + k for k in range(count)]
            at += count
        for k in sorted(self.dynamic_kw):
            count = len(flatten_arrays(self.dynamic_kw[k])[0])
            if k in options.donate_names or k in numbered:
                out += [at + j for j in range(count)]
            at += count
        return out

    def _is_named(self, number: int, names: tuple[str, ...]) -> bool:
        if self.function._options.donate_apart:
            return False
        return bool(names) and self.function._parameter(number) in names
