"""`checkpoint` (`remat`) and its policies.

The backward pass of a checkpointed function recomputes values instead of storing them; a policy
selects the values to save. The function is recorded as one `remat2` op, whose derivative
`primitives/checkpoint.py` splits into saved and recomputed parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from accnp.api.arguments.convert import as_node, is_host_value, wrap
from accnp.api.arguments.host_values import restore_host_values
from accnp.api.arguments.values import check_callable
from accnp.api.jit.jit import Entry, JitFunction
from accnp.api.jit.static_arguments import Call, Options
from accnp.api.tracing.argument_names import argument_names
from accnp.errors import alias, api_boundary
from accnp.ir.node import Node, items, record, site_text
from accnp.ir.op import OPS, Op, o
from accnp.ir.printer import short_aval
from accnp.ir.trace import state
from accnp.lazy_imports import imported
from accnp.primitives.checkpoint import NAME, Answer, Offloadable, Recompute, Saveable
from accnp.pytree import PyTree, broadcast_prefix, map_arrays
from accnp.trace_fn import wraps
from accnp.transforms.tools import TOOLS
from accnp.transforms.traversal import inexact

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims", "checkpoint_name", "dots_saveable",
    "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
    "offload_dot_with_no_batch_dims", "print_saved_residuals", "remat",
    "save_and_offload_only_these_names", "save_any_names_but_these",
    "save_anything_except_these_names", "save_from_both_policies", "save_only_these_names",
    "saved_residuals",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

Policy = Callable[..., Any]  # returns a true value for what is saved


# --- policies ------------------------------------------------------------------------------------


def everything_saveable(*_: object, **__: Any) -> bool:
    """Policy that saves every value the backward pass needs, as without `checkpoint`.

    Parameters
    ----------
    *_ : object
        Operation and types of its operands; not used.

    Returns
    -------
    bool
        True.

    See Also
    --------
    checkpoint : Function that takes policies.
    checkpoint_policies.nothing_saveable : Recompute everything.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.sin(jnp.sin(x))
    >>> float(jnp.grad(jnp.checkpoint(f, policy=jnp.checkpoint_policies.everything_saveable))(0.0))
    1.0
    """
    return True


def nothing_saveable(*_: object, **__: Any) -> bool:
    """Policy that saves only the arguments and recomputes every other value; the default.

    Parameters
    ----------
    *_ : object
        Operation and types of its operands; not used.

    Returns
    -------
    bool
        False.

    See Also
    --------
    checkpoint : Function that takes policies.
    checkpoint_policies.everything_saveable : Save everything.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.sin(jnp.sin(x))
    >>> float(jnp.grad(jnp.checkpoint(f, policy=jnp.checkpoint_policies.nothing_saveable))(0.0))
    1.0
    """
    return False


def _op_of(prim: Any) -> Op | None:
    """Return the op of a primitive, or None for one that users define."""
    return getattr(prim, "op", None)


@dataclass(frozen=True)
class DotsSaveable:
    """Policy that saves the results of matrix products, and recomputes other values.

    Convolutions count as matrix products unless `only_if_no_batch_dims` is set.

    Parameters
    ----------
    prim : Primitive
        Operation whose result may be saved.
    **params : object
        Parameters of the operation.

    Returns
    -------
    bool
        True for `dot_general` and `conv_general_dilated`; with `only_if_no_batch_dims`, only for a
        `dot_general` that has no batch dimensions.

    See Also
    --------
    checkpoint : Function that takes policies.

    Examples
    --------
    >>> import accnp as jnp
    >>> keep = jnp.checkpoint_policies.checkpoint_dots
    >>> f = jnp.checkpoint(lambda w: jnp.sin(w @ w).sum(), policy=keep)
    >>> float(jnp.grad(f)(jnp.zeros((2, 2))).sum())
    0.0
    """

    only_if_no_batch_dims: bool

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        op = _op_of(prim)
        if op is None or not op.dots_saveable:
            return False
        if not self.only_if_no_batch_dims:
            return True
        return op.contraction and not any(params["dimension_numbers"][1])


checkpoint_dots = dots_saveable = DotsSaveable(False)
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable = DotsSaveable(True)


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Policy that saves values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        return _op_of(prim) is NAME and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Policy that saves named values except those with these names."""

    names: frozenset[str]

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        return _op_of(prim) is NAME and params["name"] not in self.names


@dataclass(frozen=True)
class SaveAndOffloadOnlyTheseNames:
    """Policy that saves values with some names, and moves those with others to another memory."""

    names_which_can_be_saved: frozenset[str]
    names_which_can_be_offloaded: frozenset[str]
    offload_src: str
    offload_dst: str

    def __call__(self, prim: Any, *_: Any, **params: Any) -> Answer:
        if _op_of(prim) is not NAME:
            return Recompute
        if params["name"] in self.names_which_can_be_saved:
            return Saveable
        moved = params["name"] in self.names_which_can_be_offloaded
        return Offloadable(self.offload_src, self.offload_dst) if moved else Recompute


def _names(function: str, names: tuple[object, ...]) -> frozenset[str]:
    """Return names that were passed as separate arguments as a set."""
    valid_names = [name for name in names if isinstance(name, str)]
    if len(valid_names) != len(names):
        raise TypeError(
            f"{function}: names must be strings; got {', '.join(map(repr, names))}; pass the names "
            "as separate arguments"
        )
    return frozenset(valid_names)


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Make a policy that saves only values with the given names.

    Parameters
    ----------
    *names_which_can_be_saved : str
        Names that `checkpoint_name` gave to values.

    Returns
    -------
    callable
        Policy for `checkpoint`.

    See Also
    --------
    ad_checkpoint.checkpoint_name : Name a value.
    checkpoint : Function that takes policies.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.ad_checkpoint import checkpoint_name
    >>> f = lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "inner"))
    >>> keep = jnp.checkpoint_policies.save_only_these_names("inner")
    >>> float(jnp.grad(jnp.checkpoint(f, policy=keep))(0.0))
    1.0
    """
    return SaveOnlyTheseNames(_names("save_only_these_names", names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Make a policy that saves all named values except those with the given names.

    Parameters
    ----------
    *names_not_to_save : str
        Names that `checkpoint_name` gave to values.

    Returns
    -------
    callable
        Policy for `checkpoint`.

    See Also
    --------
    checkpoint_policies.save_only_these_names : The opposite policy.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.ad_checkpoint import checkpoint_name
    >>> f = lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "inner"))
    >>> keep = jnp.checkpoint_policies.save_any_names_but_these("outer")
    >>> float(jnp.grad(jnp.checkpoint(f, policy=keep))(0.0))
    1.0
    """
    return SaveAnyNamesButThese(_names("save_any_names_but_these", names_not_to_save))


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Make a policy that saves every value, named or not, except those with the given names.

    Parameters
    ----------
    *names_not_to_save : str
        Names that `checkpoint_name` gave to values.

    Returns
    -------
    callable
        Policy for `checkpoint`.

    See Also
    --------
    checkpoint_policies.save_any_names_but_these : Save only named values.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.ad_checkpoint import checkpoint_name
    >>> f = lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "inner"))
    >>> keep = jnp.checkpoint_policies.save_anything_except_these_names("inner")
    >>> float(jnp.grad(jnp.checkpoint(f, policy=keep))(0.0))
    1.0
    """
    names = _names("save_anything_except_these_names", names_not_to_save)
    return lambda prim, *_, **params: _op_of(prim) is not NAME or params["name"] not in names


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Make a policy that saves what at least one of two policies saves.

    Parameters
    ----------
    policy_1 : callable
        First of the policies.
    policy_2 : callable
        Second of the policies.

    Returns
    -------
    callable
        Policy for `checkpoint`. It raises a ValueError if one of them returns no bool.

    See Also
    --------
    checkpoint : Function that takes policies.

    Examples
    --------
    >>> import accnp as jnp
    >>> policies = jnp.checkpoint_policies
    >>> keep = policies.save_from_both_policies(
    ...     policies.checkpoint_dots, policies.save_only_these_names("inner")
    ... )
    >>> f = jnp.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=keep)
    >>> float(jnp.grad(f)(0.0))
    1.0
    """
    _check_policy("save_from_both_policies", "policy_1", policy_1)
    _check_policy("save_from_both_policies", "policy_2", policy_2)

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        answers = policy_1(prim, *args, **params), policy_2(prim, *args, **params)
        if not all(isinstance(answer, bool) for answer in answers):
            raise ValueError(
                "save_from_both_policies: the return value of the policies should be a boolean; "
                f"got {answers[0]} and {answers[1]} for {prim}; write a policy of your own"
            )
        return any(answers)

    return policy


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Make a policy that saves matrix products without batch dimensions, in another memory.

    accnp has one memory for each device, so the values are saved there.

    Parameters
    ----------
    offload_src : str
        Memory to move values from, such as "device".
    offload_dst : str
        Memory to move values to, such as "pinned_host".

    Returns
    -------
    callable
        Policy for `checkpoint`.

    See Also
    --------
    checkpoint_policies.checkpoint_dots_with_no_batch_dims : Save the same values.

    Examples
    --------
    >>> import accnp as jnp
    >>> keep = jnp.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> f = jnp.checkpoint(lambda w: jnp.sin(w @ w).sum(), policy=keep)
    >>> float(jnp.grad(f)(jnp.zeros((2, 2))).sum())
    0.0
    """
    offloaded = Offloadable(offload_src, offload_dst)

    def policy(prim: Any, *args: Any, **params: Any) -> Answer:
        return offloaded if checkpoint_dots_with_no_batch_dims(prim, **params) else Recompute

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Make a policy that saves values with the given names, some of them in another memory.

    accnp has one memory for each device, so all of these values are saved there.

    Parameters
    ----------
    names_which_can_be_saved : iterable of str
        Names of values to keep on the device.
    names_which_can_be_offloaded : iterable of str
        Names of values to move to another memory.
    offload_src : str
        Memory to move values from, such as "device".
    offload_dst : str
        Memory to move values to, such as "pinned_host".

    Returns
    -------
    callable
        Policy for `checkpoint`.

    Raises
    ------
    ValueError
        If a name is in both lists.

    See Also
    --------
    checkpoint_policies.save_only_these_names : The same without offloading.

    Examples
    --------
    >>> import accnp as jnp
    >>> keep = jnp.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["inner"],
    ...     names_which_can_be_offloaded=["outer"],
    ...     offload_src="device",
    ...     offload_dst="pinned_host",
    ... )
    >>> float(jnp.grad(jnp.checkpoint(jnp.sin, policy=keep))(0.0))
    1.0
    """
    saved, moved = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & moved:
        raise ValueError(
            "save_and_offload_only_these_names: the names should be exclusive and should not "
            f"intersect; got {sorted(saved & moved)} in both lists; remove them from one"
        )
    return SaveAndOffloadOnlyTheseNames(saved, moved, offload_src, offload_dst)


@api_boundary
def checkpoint_name(x: PyTree, name: str) -> Any:
    """Return a pytree of arrays unchanged, under a name that checkpoint policies recognize.

    Parameters
    ----------
    x : pytree of array_like
        Values to name. Their shapes and dtypes do not change.
    name : str
        Name, as given to `checkpoint_policies.save_only_these_names`.

    Returns
    -------
    pytree of Array
        The values of `x`.

    Raises
    ------
    TypeError
        If a leaf is not an array.

    See Also
    --------
    checkpoint : Recompute values in the backward pass.
    checkpoint_policies.save_only_these_names : Policy that saves named values.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.ad_checkpoint import checkpoint_name
    >>> f = lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "inner"))
    >>> keep = jnp.checkpoint_policies.save_only_these_names("inner")
    >>> float(jnp.grad(jnp.checkpoint(f, policy=keep))(0.0))
    1.0
    """
    return map_arrays(lambda leaf: wrap(o.name(as_node(leaf, "checkpoint_name"), name=name)), x)


# --- checkpoint ----------------------------------------------------------------------------------


def _check_policy(function: str, argument: str, policy: object) -> None:
    """Raise TypeError if a policy cannot be called."""
    if not callable(policy):
        raise TypeError(
            f"{function}: {argument} must be a function such as checkpoint_policies.dots_saveable; "
            f"got {policy!r}; pass one of checkpoint_policies, or a function "
            "(primitive, *types, **params) -> bool"
        )


class _CheckpointOptions(Options):
    """Options of a checkpointed function."""

    __slots__ = ("policy",)

    def __init__(self, where: Any, names: Any, policy: Policy | None) -> None:
        super().__init__(where, names, None, None, False)
        self.policy = policy


class _Checkpointed(JitFunction):
    transform = "checkpoint"
    _options: _CheckpointOptions

    def entry_of(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Call, Entry, list[Node]]:
        before = state.policies, state.policy_reads
        state.policies = (*state.policies, self._options.policy)
        try:
            return super().entry_of(args, kwargs)
        finally:
            state.policies, state.policy_reads = before


@api_boundary
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Policy | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool | None = None,
) -> Callable[P, R]:
    """Make the backward pass of a function recompute values instead of storing them.

    The memory that the forward pass keeps is reduced to the arguments and what the policy saves, at
    the cost of running (parts of) `fun` once more. `remat` is another name of this function.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays of any shape. It is traced, so it cannot branch on the values
        of its arguments.
    prevent_cse : bool or pytree of bool, optional
        Whether recomputed values are kept apart from those of the forward pass, and computed only
        when the cotangents are there. A pytree of flags must be a prefix of the arguments. False is
        enough for the body of a `scan`. The default is True.
    policy : callable, optional
        Function `(primitive, *types, **params) -> bool` that says whether the results of an
        operation may be saved: one of `checkpoint_policies` or your own, which can compare the
        primitive with those of `lax`, such as `lax.dot_general_p`. It may also return `Saveable`,
        `Recompute` or `Offloadable` of `ad_checkpoint`. The default, None, saves nothing.
    static_argnums : int or tuple of int, optional
        Positions of arguments that are passed to `fun` as Python values. `fun` is traced anew for
        each of their values.
    static_argnames : str or iterable of str, optional
        Names of keyword arguments that are passed as Python values.
    concrete : None, optional
        Not supported, as in JAX; use `static_argnums`.

    Returns
    -------
    callable
        Function with the same results as `fun`.

    Raises
    ------
    TypeError
        If `fun` or `policy` is not callable, or `prevent_cse`, `static_argnums` or an answer of the
        policy has a wrong type.
    ValueError
        If `static_argnums` is out of range.
    NotImplementedError
        If `concrete` is given.

    See Also
    --------
    ad_checkpoint.checkpoint_name : Name a value for policies.
    ad_checkpoint.print_saved_residuals : Show what is saved.
    grad : Differentiate the function.

    Notes
    -----
    A loop inside `fun` is saved or recomputed as a whole. To save parts of each step, apply
    `checkpoint` to the body of the loop.

    Examples
    --------
    >>> import accnp as jnp
    >>> g = jnp.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> float(jnp.grad(g)(0.0))
    1.0
    """
    check_callable("checkpoint", fun)
    if policy is not None:
        _check_policy("checkpoint", "policy", policy)
    if concrete is not None:
        raise NotImplementedError(
            "checkpoint: the option `concrete` was removed; "
            f"got concrete={concrete!r}; pass static_argnums"
        )
    if not isinstance(prevent_cse, bool | Sequence):
        raise TypeError(
            "prevent_cse must be a bool or tuple of bools, got "
            f"type(prevent_cse)={type(prevent_cse)}"
        )
    numbers = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    if not isinstance(numbers, tuple) or not all(type(n) is int for n in numbers):
        raise TypeError(
            "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` must be an int, tuple "
            f"of ints or, bool, but got value {static_argnums}"
        )
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    if policy is not None:
        # This module installs the primitives that are passed to policies.
        imported("accnp.jax_compat.jaxprs.primitives")

    cache: dict[tuple[int, ...], _Checkpointed] = {}

    @wraps(fun)
    @api_boundary
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        where = _static_places(numbers, len(args))
        static = [*[args[i] for i in where], *[kwargs[k] for k in names if k in kwargs]]
        if all(map(_hashable, static)):
            jitted = cache.get(where)
            if jitted is None:
                options = _CheckpointOptions(where, names, policy)
                jitted = cache[where] = _Checkpointed(fun, options)
        else:  # unhashable static arguments: bind them for this call
            fun_of_rest, args, kwargs = _bound(fun, where, names, args, kwargs)
            jitted = _Checkpointed(fun_of_rest, _CheckpointOptions(None, None, policy))
        call, entry, leaves = jitted.entry_of(args, kwargs)
        flags = prevent_cse
        if not isinstance(flags, bool):
            whole = (call.dynamic, call.dynamic_kw) if call.dynamic_kw else call.dynamic
            leaf_flags = broadcast_prefix(tuple(flags), whole, None, "prevent_cse")
            flags = (*(False,) * len(entry.consts), *map(bool, leaf_flags))
        params = {
            "jaxpr": entry.graph,
            "prevent_cse": flags,
            "differentiated": False,
            "policy": policy,
        }
        results = items(record(OPS["remat2"], tuple(leaves), params))
        on_host = entry.constants or any(map(is_host_value, call.leaves))
        if not on_host or call.refs or entry.closed:
            return entry.assemble_results(results, call.refs)
        host_values = dict(enumerate(call.leaves, len(entry.consts)))
        outs = restore_host_values(entry.graph, host_values, entry.constants, results)
        return entry.out_spec.unflatten(outs)

    return checkpointed


remat = alias(checkpoint, "remat", "accnp")


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _bound(
    fun: Callable[..., Any],
    where: tuple[int, ...],
    names: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return `fun` with its static arguments bound, and the other arguments."""
    fixed = {k: x for k, x in kwargs.items() if k in names}

    @wraps(fun)
    @api_boundary
    def rest(*dynamic: Any, **more: Any) -> Any:
        others = iter(dynamic)
        whole = [x if i in where else next(others) for i, x in enumerate(args)]
        return fun(*whole, **fixed, **more)

    dynamic = tuple(x for i, x in enumerate(args) if i not in where)
    return rest, dynamic, {k: x for k, x in kwargs.items() if k not in names}


def _static_places(numbers: tuple[int, ...], n: int) -> tuple[int, ...]:
    if not all(-n <= k < n for k in numbers):
        raise ValueError(
            "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take integer "
            "values greater than or equal to `-len(args)` and less than `len(args)`, but got "
            f"{numbers}, while `len(args)` = {n}"
        )
    return tuple(k % n for k in numbers)


# --- inspection ----------------------------------------------------------------------------------


@api_boundary
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """Return the type and origin of each array that the backward pass of a function saves.

    Parameters
    ----------
    f : callable
        Function to differentiate.
    *args : pytree of array_like
        Positional arguments of `f`. Only their shapes and dtypes matter.
    **kwargs : pytree of array_like
        Keyword arguments of `f`.

    Returns
    -------
    list of (ShapedArray, str)
        Type of each array, and what it is.

    Raises
    ------
    TypeError
        If `f` is not callable, or a leaf of an argument is not an array.

    See Also
    --------
    ad_checkpoint.print_saved_residuals : Print them.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.ad_checkpoint import saved_residuals
    >>> saved_residuals(jnp.checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones(3))
    [(ShapedArray(float32[3]), 'from the argument x')]
    """
    call, entry, leaves = JitFunction(f, Options(None, None, None, None, False)).entry_of(
        args, kwargs
    )
    graph = entry.graph
    n = len(entry.consts)
    flags = (*(False,) * n, *[inexact(x.aval.dtype) for x in leaves[n:]])
    primal, _, n_res, _ = TOOLS.linearize_graph(graph, flags)
    names = argument_names(inspect.unwrap(f), call.dynamic, call.dynamic_kw)
    number = {id(x): i - n for i, x in enumerate(primal.inputs)}
    residuals = []
    for x in primal.outputs[len(primal.outputs) - n_res :]:
        i = number.get(id(x))
        if i is not None:
            text = "from a constant" if i < 0 else f"from the argument {names[i]}"
        elif x.op is NAME:
            text = f"named '{x.params['name']}' from {site_text(x)}"
        else:
            producer = x.inputs[0] if x.op.kind == "item" else x
            text = f"output of {producer.op.name} from {site_text(producer)}"
        residuals.append((x.aval, text))
    return residuals


@api_boundary
def print_saved_residuals(f: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> None:
    """Print the arrays that the backward pass of a function saves, one per line.

    Parameters
    ----------
    f : callable
        Function to differentiate.
    *args : pytree of array_like
        Positional arguments of `f`. Only their shapes and dtypes matter, and are printed as in
        jaxprs.
    **kwargs : pytree of array_like
        Keyword arguments of `f`.

    Raises
    ------
    TypeError
        If `f` is not callable, or a leaf of an argument is not an array.

    See Also
    --------
    checkpoint : Save less and recompute the rest.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(jnp.checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones(3))
    f32[3] from the argument x
    """
    check_callable("print_saved_residuals", f)
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{short_aval(aval)} {origin}")
