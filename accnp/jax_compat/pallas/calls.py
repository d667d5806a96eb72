"""`pallas_call`: runs a kernel for each step of a grid, as a loop.

The kernel is traced once. Each step cuts blocks out of operands and results, makes references to
them, and stores their final contents. The grid is one loop, whose steps run in order, with the last
axis of the grid the fastest. An operand whose reference is never written is a constant of the loop.
The semantics are those of JAX's `interpret=True`, which fills unwritten memory, and the parts of
the last blocks that are outside of the array, with NaN (or the smallest integer).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast
from accnp.api.arguments.shapes import AxesLike
from accnp.api.arrays.references import Ref, new_ref
from accnp.api.jit.jit import jit
from accnp.array_type import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.node import LITERAL, Node, literal
from accnp.ir.op import o
from accnp.jax_compat.pallas.kernel_functions import allocate, grid_of, uninitialized
from accnp.jax_compat.pallas.specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    CostEstimate,
    Element,
    GridSpec,
    Indirect,
    Squeezed,
    no_block_spec,
)
from accnp.lax.control_flow.loops import fori_loop
from accnp.numpy.padding import pad
from accnp.primitives.elementwise import like
from accnp.pytree import PyTree, flatten_arrays, leaf_names, map_arrays, mismatch
from accnp.trace_fn import function_place

__all__ = ["Block", "estimate_cost", "pallas_call", "step_of"]

_INT32 = np.dtype(np.int32)


# --- blocks ---


def _size(dim: Any, name: str) -> Any:
    """Convert one axis of a block to one of the classes of specs.py."""
    if dim is None:
        return Squeezed()
    if isinstance(dim, BoundedSlice | Indirect):
        raise NotImplementedError(
            f"pallas_call: {name} has an axis {dim!r}, whose place or size is computed otherwise "
            "than by a start; use a size or pl.Element, and index the reference in the kernel"
        )
    if isinstance(dim, Blocked | Element | Squeezed):
        return dim
    try:
        return Blocked(operator.index(dim))
    except TypeError:
        raise ValueError(
            f"pallas_call: {name} has a block of axis {dim!r} ({type(dim).__name__}); sizes are "
            "integers, None, pl.Element or pl.Squeezed"
        ) from None


class Block:
    """How an array is divided into blocks.

    Attributes:
        name: the user's name for it: `args[0]`, `outputs`.
        shape: the shape of the array.
        sizes: the size of a block along each axis of the array.
        dropped: the axes that the reference does not have.
        padding: before and after the array along each axis, so that blocks fit.
    """

    def __init__(self, name: str, shape: tuple[int, ...], spec: Any) -> None:
        if spec is no_block_spec:
            spec = BlockSpec()
        if not isinstance(spec, BlockSpec):
            raise ValueError(
                f"pallas_call: the spec for {name} must be a BlockSpec; got {spec!r}; "
                "make one with pl.BlockSpec"
            )
        self.name, self.shape, self.index_map = name, shape, spec.index_map
        dims = shape if spec.block_shape is None else tuple(spec.block_shape)
        self.dims = [_size(d, name) for d in dims]
        if len(self.dims) != len(shape):
            raise ValueError(
                f"pallas_call: the block shape for {name}, {tuple(dims)}, must have the same "
                f"number of dimensions as the array shape {shape}"
            )
        self.sizes = tuple([1 if isinstance(d, Squeezed) else d.block_size for d in self.dims])
        if any(n < 1 for n in self.sizes) and 0 not in shape:
            raise ValueError(
                f"pallas_call: the block shape for {name} must be positive; got {tuple(dims)}; "
                "pass 1 or more, or None"
            )
        self.dropped = tuple([i for i, d in enumerate(self.dims) if isinstance(d, Squeezed)])
        self.padding = []
        for d, n, size in zip(self.dims, shape, self.sizes, strict=True):
            low, high = d.padding if isinstance(d, Element) else (0, 0)
            over = -(low + n + high) % size if size else 0
            self.padding.append((low, high + over))

    def padded(self, x: Array) -> Array:
        """Return the array with padding."""
        if not any(map(any, self.padding)):
            return x
        return pad(x, self.padding, constant_values=uninitialized((), x.dtype))

    def cropped(self, x: Array) -> Array:
        """Return the array without padding."""
        if x.shape == self.shape:
            return x
        pairs = zip(self.padding, self.shape, strict=True)
        return x[tuple([slice(low, low + n) for (low, _), n in pairs])]

    def starts(self, ids: Sequence[Any], scalars: Sequence[Any]) -> list[Node]:
        """Return where the block of a step begins in the padded array.

        Raises:
            ValueError: the index map does not return an integer for each axis.
        """
        if self.index_map is None:
            return [literal(0, _INT32, False)] * len(self.shape)
        fn, path, line = function_place(self.index_map)
        who = f"pallas_call: index map {fn} ({path}:{line}) for {self.name}"
        indices = _call_user_function(
            self.index_map, (*ids, *scalars), who, "the grid and the scalars give it"
        )
        indices = tuple(indices) if isinstance(indices, list | tuple) else (indices,)
        if len(indices) != len(self.dims):
            raise ValueError(
                f"{who} must return {len(self.dims)} values, one for each axis of the block; it "
                f"returns {len(indices)}"
            )
        nodes = []
        for i, (d, x) in enumerate(zip(self.dims, indices, strict=True)):
            node = None if isinstance(x, Ref) else as_node(x, "pallas_call")
            if node is None or node.aval.shape != () or node.aval.dtype.kind not in "iu":
                kind = "a reference" if node is None else str(node.aval)
                raise ValueError(
                    f"{who} must return integer scalars; value {i} is {kind}; read references by "
                    "ref[i], and convert numbers with astype(int)"
                )
            node = cast(node, _INT32)
            size = d.block_size if isinstance(d, Blocked) else 1
            if node.op is LITERAL:
                node = literal(node.params["value"] * size, _INT32, False)
            elif size != 1:
                node = o.mul(node, like(node, size))
            nodes.append(node)
        return nodes

    def is_all(self, x: Array, starts: list[Node]) -> bool:
        """Return whether the block is the whole array at every step."""
        return x.shape == self.sizes and all(
            s.op is LITERAL and s.params["value"] == 0 for s in starts
        )

    def cut(self, x: Array, starts: list[Node]) -> Array:
        """Return the block of a padded array."""
        node = as_node(x)
        if not self.is_all(x, starts):
            node = o.dynamic_slice(node, *starts, slice_sizes=self.sizes)
        return wrap(o.squeeze(node, dimensions=self.dropped) if self.dropped else node)

    def put(self, x: Array, starts: list[Node], new: Array) -> Array:
        """Return the padded array with another block."""
        node = as_node(new)
        if self.dropped:
            node = o.reshape(node, new_sizes=self.sizes, dimensions=None)
        if self.is_all(x, starts):
            return wrap(node)
        return wrap(o.dynamic_update_slice(as_node(x), node, *starts))


def _call_user_function(fn: Any, args: Sequence[Any], who: str, what: str) -> Any:
    """Call a user function; the error for a wrong number of arguments names it.

    Raises:
        TypeError: the arguments do not match the signature.
    """
    if (code := getattr(fn, "__code__", None)) is not None and not code.co_flags & 0x04:
        least = code.co_argcount - len(fn.__defaults__ or ()) - hasattr(fn, "__self__")
        if not least <= len(args) <= code.co_argcount - hasattr(fn, "__self__"):
            raise TypeError(
                f"{who} takes {least} arguments where {what} {len(args)}; change its parameters"
            )
    return fn(*args)


# --- the grid ---


def step_of(i: Any, sizes: Sequence[Any]) -> list[Any]:
    """Return the position of step i along each axis of a grid; the last axis is the fastest."""
    ids: list[Any] = []
    rest = cast(as_node(i), _INT32)
    for k in reversed(range(len(sizes))):
        n = sizes[k]
        if isinstance(n, int) and n == 1:
            ids.append(wrap(literal(0, _INT32, False)))
            continue
        size = cast(as_node(n), _INT32)
        last = all(isinstance(m, int) and m == 1 for m in sizes[:k])
        ids.append(wrap(rest if last else o.rem(rest, size)))
        if not last:
            rest = o.div(rest, size)
    return ids[::-1]


def _static(n: Any) -> Any:
    return int(n) if isinstance(n, int | np.integer) else wrap(cast(as_node(n), _INT32))


# --- the call ---


@api_boundary
def pallas_call(
    kernel: Callable[..., None],
    out_shape: PyTree,
    *,
    grid_spec: GridSpec | None = None,
    grid: AxesLike = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: bool = False,
    name: str | None = None,
    compiler_params: object = None,
    cost_estimate: Any = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """Make a function of arrays from a kernel that runs for each step of a grid.

    The kernel gets a reference to a block of each operand, then of each result, then to scratch
    memory, and returns nothing.

    Parameters
    ----------
    kernel : callable
        Function of references that writes the results.
    out_shape : pytree of ShapeDtypeStruct
        Types of the results.
    grid_spec : GridSpec, optional
        Replaces the next four parameters.
    grid : int or tuple of int, optional
        Number of steps along each axis.
    in_specs : pytree of BlockSpec, optional
        Block of each operand. The default is the whole array.
    out_specs : pytree of BlockSpec, optional
        Block of each result. The default is the whole array.
    scratch_shapes : tuple or dict, optional
        Types of memory that belongs to the kernel.
    input_output_aliases : dict, optional
        Number of an operand, and the number of the result that starts with its value.
    debug : bool, optional
        Ignored; present for compatibility with JAX.
    interpret : bool, optional
        Ignored: kernels always run on this device. JAX needs it on a CPU.
    name : str, optional
        Label of the kernel.
    compiler_params : object, optional
        Ignored hints to the compilers of JAX.
    cost_estimate : CostEstimate, optional
        Ignored hint.
    metadata : dict, optional
        Ignored texts.

    Returns
    -------
    callable
        Function of the operands that returns the results.

    Raises
    ------
    ValueError
        If a block has another rank than its array, an index map returns another number of results,
        the pytrees of specs and arrays differ, or an operand and its aliased result have different
        types.
    TypeError
        If the kernel or an index map takes another number of arguments.
    NotImplementedError
        If blocks are not at computed starts.

    See Also
    --------
    experimental.pallas.BlockSpec : Block of an array.
    lax.fori_loop : Loop without blocks.

    Notes
    -----
    Steps run one after the other, the last axis of the grid fastest, so several steps may add to
    the same block of a result, and scratch memory keeps what the last step wrote. The grid is an
    ordinary loop: it works under `jit`, `vmap`, and derivatives of both modes.

    Elements that no step writes are nan, or the least integer, as are those beyond the end of an
    array that a block overhangs; nothing is written there.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> rows = pl.BlockSpec((1, 3), lambda i: (i, 0))
    >>> shape = jnp.ShapeDtypeStruct((2, 3), jnp.int32)
    >>> f = pl.pallas_call(double, shape, grid=(2,), in_specs=[rows], out_specs=rows)
    >>> f(jnp.arange(6).reshape(2, 3))
    Array([[ 0,  2,  4],
           [ 6,  8, 10]], dtype=int32)
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for what, value, unset in (
            ("grid", grid, ()),
            ("in_specs", in_specs, no_block_spec),
            ("out_specs", out_specs, no_block_spec),
            ("scratch_shapes", scratch_shapes, ()),
        ):
            if value is not unset and value != unset:
                raise ValueError(
                    f"pallas_call: {what} is a part of grid_spec, and both were given; got "
                    f"{what}={value!r}; leave one out"
                )
    if isinstance(out_shape, list):
        out_shape = tuple(out_shape)
    call = _Call(kernel, out_shape, grid_spec, dict(input_output_aliases))
    return jit(call.__call__)


class _Call:
    """A kernel with everything that is known before the operands."""

    def __init__(
        self, kernel: Any, out_shape: Any, spec: GridSpec, aliases: dict[int, int]
    ) -> None:
        self.kernel, self.spec, self.aliases = kernel, spec, aliases
        self.sizes = [_static(n) for n in spec.grid]
        self.out_types, self.out_tree = flatten_arrays(out_shape)
        for t in self.out_types:
            if not (hasattr(t, "shape") and hasattr(t, "dtype")):
                raise ValueError(
                    f"pallas_call: out_shape needs types with a shape and a dtype; got {t!r}; use "
                    "jax.ShapeDtypeStruct(shape, dtype)"
                )
        self.out_shape = out_shape
        self.outs = self._blocks(
            spec.out_specs, out_shape, leaf_names(out_shape, "outputs"), "out_specs", "out_shape"
        )

    def _blocks(
        self, specs: Any, tree: Any, names: Sequence[str], what: str, other: str
    ) -> list[Block]:
        leaves, spec = flatten_arrays(tree)
        if specs is no_block_spec:
            return [Block(n, tuple(x.shape), specs) for n, x in zip(names, leaves, strict=True)]
        spec_leaves, spec_tree = flatten_arrays(specs)
        if spec_tree != spec:
            marks = spec_tree.unflatten(range(len(spec_leaves))), spec.unflatten(range(len(leaves)))
            text = mismatch(what, *marks) or mismatch(what, *marks[::-1])
            raise ValueError(
                f"pallas_call: {what} must have the structure of {other}: {text}; got {spec_tree} "
                f"for {spec}; give it that structure"
            )
        every = zip(names, leaves, spec_leaves, strict=True)
        return [Block(n, tuple(x.shape), s) for n, x, s in every]

    def __call__(self, *args: Any) -> Any:
        count = self.spec.num_scalar_prefetch
        if count > len(args):
            raise TypeError(
                f"pallas_call: {count} prefetched scalars come first; got {len(args)} operands; "
                "pass them before the others"
            )
        strong = map_arrays(_make_strong, args)
        scalars, arrays = strong[:count], strong[count:]
        ins = self._blocks(
            self.spec.in_specs, arrays, leaf_names(arrays, "args"), "in_specs", "the operands"
        )
        inputs, in_tree = flatten_arrays(arrays)
        first = self._initial_contents([*flatten_arrays(scalars)[0], *inputs])
        blocks = [*ins, *self.outs]
        init = [b.padded(x) for b, x in zip(blocks, [*inputs, *first], strict=True)]
        scratch, scratch_tree = flatten_arrays(self.spec.scratch_shapes)
        memory = [allocate(t)[...] for t in scratch]

        def step(i: Any, carry: Any) -> Any:
            whole, contents = carry
            ids = step_of(i, self.sizes)
            with grid_of(ids, self.sizes):
                known = map_arrays(new_ref, scalars)
                starts = [b.starts(ids, known) for b in blocks]
                refs = [new_ref(b.cut(x, s)) for b, x, s in zip(blocks, whole, starts, strict=True)]
                own = [new_ref(x) for x in contents]
                before = [r.content._node for r in refs]
                results = self.out_tree.unflatten(refs[len(ins) :])
                self._run(
                    [*known, *in_tree.unflatten(refs[: len(ins)])],
                    results if isinstance(results, tuple) else (results,),
                    scratch_tree.unflatten(own),
                )
            every = zip(blocks, whole, starts, refs, before, strict=True)
            new = [x if r.content._node is y else b.put(x, s, r.content) for b, x, s, r, y in every]
            return new, [r.content for r in own]

        total = prod(self.sizes) if self.sizes else 1
        if isinstance(total, int) and total == 1:
            whole, _ = step(0, (init, memory))
        else:
            whole, _ = fori_loop(0, total, step, (init, memory))
        pairs = zip(self.outs, whole[len(ins) :], strict=True)
        return self.out_tree.unflatten([b.cropped(x) for b, x in pairs])

    def _initial_contents(self, operands: list[Array]) -> list[Array]:
        """Return the initial contents of results."""
        first = [uninitialized(t.shape, t.dtype) for t in self.out_types]
        for i, k in self.aliases.items():
            for what, n, many in (("input", i, operands), ("output", k, first)):
                if not 0 <= n < len(many):
                    raise ValueError(
                        f"pallas_call: input_output_aliases contains the mapping '{i}:{k}' with "
                        f"{what} index {n} outside the range [0, {len(many)})"
                    )
            x, t = operands[i], first[k]
            if x.shape != t.shape or x.dtype != t.dtype:
                raise ValueError(
                    f"pallas_call: input_output_aliases contains the mapping '{i}:{k}' of an input "
                    f"of type {x._node.aval} to an output of another, {t._node.aval}"
                )
            first[k] = x
        return first

    def _run(self, ins: list[Any], outs: tuple[Any, ...], own: Any) -> None:
        place = function_place(self.kernel)
        who = f"pallas_call: the kernel {place[0]} ({place[1]}:{place[2]})"
        if isinstance(own, dict):
            result = self.kernel(*ins, *outs, **own)
        else:
            what = "operands, results and scratch memory are"
            result = _call_user_function(self.kernel, (*ins, *outs, *own), who, what)
        if result is not None:
            raise ValueError(f"{who} must return None; it returns {result!r}; write to references")


def _make_strong(x: Any) -> Array:
    node = as_node(x, "pallas_call")
    return wrap(cast(node, node.aval.dtype))


@api_boundary
def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """Estimate the operations and bytes of a function from the plan that accnp makes of it.

    Parameters
    ----------
    fun : callable
        Function of arrays to plan.
    *args : pytree of array_like
        Positional operands.
    **kwargs : pytree of array_like
        Operands by name.

    Returns
    -------
    experimental.pallas.CostEstimate
        Estimate. Exponentials and similar functions count as operations.

    Raises
    ------
    TypeError
        If the function cannot be traced.

    See Also
    --------
    experimental.pallas.CostEstimate : Class of the result.
    inspect : Show the plan.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> pl.estimate_cost(lambda x: x + 1, jnp.ones(10)).bytes_accessed
    84
    """
    costs = jit(lambda *xs: fun(*xs, **kwargs)).lower(*args).cost_analysis()
    return CostEstimate(int(costs["flops"]), 0, int(costs["bytes accessed"]))
