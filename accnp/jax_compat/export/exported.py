"""`export`: turns a jitted function into a program without Python that can be serialized.

The types of arguments may have symbolic sizes. The result, an `Exported`, can be called,
differentiated, serialized and deserialized.
"""

from __future__ import annotations

import functools
import json
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.differentiation.custom_vjp import custom_vjp
from accnp.api.differentiation.derivatives import vjp as pull_back
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct
from accnp.api.jit.jit import JitFunction, jit
from accnp.array_type import wrap
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, make_aval, symbolic_aval
from accnp.ir.graph import evaluate
from accnp.jax_compat.export.checks import MOST_BYTES, dtype_of, fixed_bools, read_json, require
from accnp.jax_compat.export.options import (
    DisabledSafetyCheck,
    default_export_platform,
    maximum_supported_calling_convention_version,
)
from accnp.jax_compat.export.serialization import (
    Encoder,
    check_structure,
    decode_program,
    only_value_errors,
)
from accnp.jax_compat.export.size_interpolation import Fit, number_at
from accnp.jax_compat.export.symbolic_jaxprs import at_sizes, symbols_of
from accnp.jax_compat.export.symbolic_sizes import Dim, SymbolicScope, symbolic_shape
from accnp.jax_compat.export.tree_serialization import read_tree, write_tree
from accnp.primitives.kinds import dtype_kind
from accnp.pytree import PyTreeDef, flatten_arrays, tree_structure, tree_unflatten
from accnp.runtime.device import default_backend

__all__ = ["Exported", "deserialize", "export"]

_MAGIC = b"accnp program 1\n"
_MOST_ORDERS = 16  # orders of derivatives, which are nested in the serialized bytes


def _aval(shape: Sequence[Any], dtype: Any, weak: bool) -> Aval:
    make = symbolic_aval if any(isinstance(n, Dim) for n in shape) else make_aval
    return make(tuple(shape), np.dtype(dtype), weak)


class Exported:
    """Exported program with the types of its arguments and results.

    Made by `export` and `deserialize`. `in_avals` and `out_avals` hold shapes and dtypes, `call`
    runs the program, and `serialize()` returns it as bytes.

    Parameters
    ----------
    head : dict
        Description of the program.
    in_tree : PyTreeDef
        Structure of the arguments.
    out_tree : PyTreeDef
        Structure of the results.
    arrays : list of ndarray
        Constants of the program.
    vjp : Exported or None
        Program of the derivative.

    Raises
    ------
    ValueError
        From `call`, if the arguments have other shapes or dtypes.

    See Also
    --------
    export.export : Export a function.

    Examples
    --------
    >>> import accnp as jax
    >>> program = jax.export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((2,), "float32"))
    >>> program.call(jax.numpy.ones(2))
    Array([2., 2.], dtype=float32)
    """

    nr_devices = 1
    calling_convention_version = maximum_supported_calling_convention_version
    uses_global_constants = False
    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()

    # The function itself, if it has derivative rules of its own, which the program lacks.
    _source: JitFunction | None = None

    def __init__(
        self,
        head: dict[str, Any],
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        arrays: list[np.ndarray],
        vjp: Any,
    ) -> None:
        self._head, self._arrays, self._vjp = head, arrays, vjp
        self.in_tree, self.out_tree = in_tree, out_tree
        self.fun_name: str = head["name"]
        self.platforms: tuple[str, ...] = tuple(head["platforms"])
        checks = head["disabled_checks"]
        self.disabled_safety_checks = tuple(DisabledSafetyCheck(c) for c in checks)
        self._scope = SymbolicScope(head["constraints"])
        self.in_avals = tuple(self._type(t) for t in head["in_types"])
        self.out_avals = tuple(self._type(t) for t in head["out_types"])
        self.module_kept_var_idx = tuple(range(len(self.in_avals)))
        self._programs: dict[tuple[int, ...], JitFunction] = {}

    def _type(self, data: Any) -> Any:
        shape, dtype, weak = data
        sizes = [
            n if isinstance(n, int) else symbolic_shape(n, scope=self._scope)[0] for n in shape
        ]
        return _aval(sizes, dtype_of(dtype), weak)

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    # --- calls ---

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; it can be jitted, mapped, and differentiated if `has_vjp`.

        Parameters
        ----------
        *args : pytree of array_like
            Positional arguments.
        **kwargs : pytree of array_like
            Keyword arguments.

        Returns
        -------
        pytree of Array
            Results.

        Raises
        ------
        ValueError
            If the arguments have other types than those for which the program was exported.
        """
        leaves, tree = flatten_arrays((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(
                f"Exported.call: {self.fun_name} was exported for arguments of the structure "
                f"{self.in_tree}; got {tree}; pass arguments of that structure"
            )
        if default_backend() not in self.platforms and not any(
            c._impl == "platform" for c in self.disabled_safety_checks
        ):
            raise ValueError(
                f"Function '{self.fun_name}' was exported for platforms '{self.platforms}' but it "
                f"is used on '({default_backend()!r},)'.; export it for this platform"
            )
        nodes = [as_node(x, "Exported.call") for x in leaves]
        sizes = self._sizes([x.aval for x in nodes])
        run = self._program(sizes)
        out = self._differentiable(run, [wrap(x) for x in nodes])
        return tree_unflatten(self.out_tree, out)

    def _sizes(self, avals: Sequence[Any]) -> dict[str, int]:
        """Return the values of the symbols, from the shapes of the arguments."""
        pairs: list[tuple[str, Any, int]] = []
        for i, (expected, actual) in enumerate(zip(self.in_avals, avals, strict=True)):
            if expected.dtype != actual.dtype:
                raise ValueError(
                    f"Dtype mismatch for args[{i}]: expected {expected.dtype.name} and called with "
                    f"{actual.dtype.name}; convert it with astype"
                )
            if len(expected.shape) != len(actual.shape):
                raise ValueError(
                    f"Rank mismatch for args[{i}]: expected {expected.shape} and called with "
                    f"{actual.shape}; reshape it"
                )
            for d, (n, m) in enumerate(zip(expected.shape, actual.shape, strict=True)):
                pairs.append((f"args[{i}].shape[{d}]", n, m))
        sizes: dict[str, int] = {}
        waiting = [(n, m) for _, n, m in pairs if isinstance(n, Dim)]
        while waiting:
            later = [(n, m) for n, m in waiting if not _solve_size(n, m, sizes)]
            if len(later) == len(waiting):
                raise ValueError(
                    f"Exported.call: cannot tell the symbols from {', '.join(map(str, later))}; "
                    "give each one a separate axis"
                )
            waiting = later
        for argument, n, m in pairs:
            size = n.at(sizes) if isinstance(n, Dim) else n
            if size != m:
                raise ValueError(
                    f"Shape mismatch for {argument}: expected {n}"
                    + (f" = {size}" if isinstance(n, Dim) else "")
                    + f" and called with {m}; symbols are {sizes}"
                )
        broken = self._scope.broken(sizes)
        if broken is not None or any(v < 1 for v in sizes.values()):
            raise ValueError(
                f"Exported.call: the sizes do not keep the constraint {broken or 'of at least 1'}; "
                f"got {sizes}; pass arrays of other sizes, or export without it"
            )
        return sizes

    def _program(self, sizes: dict[str, int]) -> JitFunction:
        names = self._head["symbols"]
        key = tuple(sizes[n] for n in names)
        if key not in self._programs:
            evaluate_size = functools.partial(number_at, names, sizes)
            graph = decode_program(self._head["program"], self._arrays, evaluate_size)
            _check_types(graph.in_avals, self.in_avals, sizes)
            _check_types(graph.out_avals, self.out_avals, sizes)

            def run(*leaves: Any) -> list[Any]:
                return [wrap(y) for y in evaluate(graph, [as_node(x) for x in leaves])]

            run.__name__ = self.fun_name
            self._programs[key] = jit(run)
        return self._programs[key]

    def _differentiable(self, run: JitFunction, xs: list[Any]) -> list[Any]:
        if self._vjp is True and self._source is None:
            return run(*xs)
        floats = _floats(self.in_avals)

        def forward(*leaves: Any) -> tuple[list[Any], Any]:
            if self._vjp is None:
                raise ValueError(
                    f"No VJP is available for exported {self.fun_name}; serialize with vjp_order=1"
                )
            return run(*leaves), leaves

        def backward(leaves: Any, cts: Any) -> tuple[Any, ...]:
            cotangents = iter(self.vjp().call(*leaves, *[cts[i] for i in _floats(self.out_avals)]))
            return tuple(next(cotangents) if i in floats else None for i in range(len(leaves)))

        f = custom_vjp(lambda *leaves: run(*leaves))
        f.defvjp(forward, backward)
        return f(*xs)

    # --- derivatives ---

    def has_vjp(self) -> bool:
        """Return whether the program has a derivative.

        It always has one in the process that exported it, and elsewhere if it was stored.
        """
        return self._vjp is not None

    @api_boundary
    def vjp(self) -> Exported:
        """Return the program of the reverse-mode derivative.

        Returns
        -------
        export.Exported
            Program from flat arguments and the cotangents of floating results to the cotangents of
            floating arguments.

        Raises
        ------
        ValueError
            If there is none.
        """
        if self._vjp is None:
            raise ValueError(f"No VJP is available for exported {self.fun_name}")
        if self._vjp is not True:
            return self._vjp
        floats = _floats(self.in_avals)
        smooth = _floats(self.out_avals)
        n = len(self.in_avals)

        def pull(*leaves: Any) -> list[Any]:
            def of_floats(*some: Any) -> list[Any]:
                full = [*leaves[:n]]
                for i, x in zip(floats, some, strict=True):
                    full[i] = x
                out = flatten_arrays(self._call_flat(full))[0]
                return [out[i] for i in smooth]

            return list(pull_back(of_floats, *[leaves[i] for i in floats])[1](list(leaves[n:])))

        pull.__name__ = f"{self.fun_name}_vjp"
        every = (*self.in_avals, *[self.out_avals[i] for i in smooth])
        types = [ShapeDtypeStruct(a.shape, a.dtype) for a in every]
        checks = self.disabled_safety_checks
        return _export(jit(pull), self.platforms, checks, tuple(types), {}, self._scope)

    def _call_flat(self, leaves: Sequence[Any]) -> Any:
        args, kwargs = tree_unflatten(self.in_tree, list(leaves))
        return (self._source or self.call)(*args, **kwargs)

    # --- bytes ---

    @api_boundary
    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Return the program as bytes, for `deserialize` in any process that has accnp.

        Parameters
        ----------
        vjp_order : int, optional
            Number of derivatives to store. The default is 0.

        Returns
        -------
        bytearray
            Serialized program.
        """
        vjp = self.vjp().serialize(vjp_order - 1) if vjp_order else b""
        arrays = [[a.dtype.name, list(a.shape)] for a in self._arrays]
        trees = {"in_tree": write_tree(self.in_tree), "out_tree": write_tree(self.out_tree)}
        head = json.dumps({**self._head, **trees, "arrays": arrays, "vjp": len(vjp)}).encode()
        packed = zlib.compress(head)
        data = b"".join(np.ascontiguousarray(a).tobytes() for a in self._arrays)
        body = packed + data + bytes(vjp)
        check = zlib.crc32(body).to_bytes(4, "big")
        return bytearray(_MAGIC + check + len(packed).to_bytes(8, "big") + body)

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program without its constants, as bytes."""
        return json.dumps(self._head["program"]).encode()

    def mlir_module(self) -> str:
        """Return the program as text, in JSON with one value for each entry."""
        return json.dumps(self._head["program"], indent=1)


def _check_types(
    avals: Sequence[Any], declared_avals: Sequence[Any], sizes: dict[str, int]
) -> None:
    """Check that the types of a program are those that its header declares.

    Raises:
        ValueError: they are not.
    """

    def numbers(shape: Sequence[Any]) -> tuple[int, ...]:
        return tuple([n.at(sizes) if isinstance(n, Dim) else n for n in shape])

    have = [(a.shape, a.dtype) for a in avals]
    expected = [(numbers(a.shape), a.dtype) for a in declared_avals]
    require(have == expected, f"it has values of types {have}, and says {expected}"[:400])


def _floats(avals: Sequence[Any]) -> list[int]:
    """Return the positions of avals that have derivatives."""
    return [i for i, a in enumerate(avals) if dtype_kind(a.dtype) in "fc"]


def _solve_size(n: Dim, m: int, sizes: dict[str, int]) -> bool:
    """Solve a size for its only unknown symbol; return whether that is possible."""
    unknown = n.symbols() - sizes.keys()
    if not unknown:
        return True
    if len(unknown) > 1:
        return False
    (name,) = unknown
    at = [n.at({**sizes, name: v}) for v in (0, 1, 2)]
    if at[2] - at[1] != at[1] - at[0] or at[1] == at[0]:
        return False
    sizes[name] = (m - at[0]) // (at[1] - at[0])
    return True


@api_boundary
def deserialize(blob: bytearray | bytes) -> Exported:
    """Read a program that `Exported.serialize` wrote, also from bytes that are not trusted.

    Parameters
    ----------
    blob : bytes or bytearray
        Serialized program.

    Returns
    -------
    export.Exported
        Program to call.

    Raises
    ------
    ValueError
        If the bytes are not a serialized program, are damaged, or the program is not valid.

    See Also
    --------
    export.export : Export a function.

    Notes
    -----
    Nothing in the bytes is executed as Python. Before anything of the program runs, all of it, and
    all programs inside it, are checked: operations, types, parameters and sizes. Programs with
    symbolic sizes are checked again for each combination of sizes. No bytes make accnp read or
    write outside of the arrays of the program.

    A valid program may still take any amount of time and memory and compute any values. Registered
    pytree classes are built by the functions registered for them.

    Examples
    --------
    >>> import accnp as jax
    >>> export = jax.export
    >>> blob = export.export(jax.jit(lambda x: x + 1))(1.0).serialize()
    >>> export.deserialize(blob).call(2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return _deserialize_program(bytes(blob), 0)


def _deserialize_program(data: bytes, order: int) -> Exported:
    """Deserialize a program, or a derivative of some order of another program."""
    require(order <= _MOST_ORDERS, f"it holds derivatives of orders above {_MOST_ORDERS}")
    start = len(_MAGIC) + 12
    if data[: len(_MAGIC)] != _MAGIC or len(data) < start:
        raise ValueError(
            f"export.deserialize: these are not the bytes of a program; got {data[:16]!r}; pass "
            "what Exported.serialize returned"
        )
    check, body = data[len(_MAGIC) : len(_MAGIC) + 4], data[start:]
    if zlib.crc32(body).to_bytes(4, "big") != check:
        raise ValueError("export.deserialize: the bytes are damaged; their sum differs; write anew")
    at = int.from_bytes(data[len(_MAGIC) + 4 : start], "big")
    with only_value_errors():
        head = read_json(body[:at])
        arrays = []
        for name, shape in head.pop("arrays"):
            dtype = dtype_of(name)
            require(all(type(n) is int and 0 <= n < MOST_BYTES for n in shape), "a constant")
            size = math.prod(shape) * dtype.itemsize
            require(0 <= size <= len(body) - at and len(shape) <= 64, "a constant is cut off")
            arrays.append(fixed_bools(np.frombuffer(body[at : at + size], dtype)).reshape(shape))
            at += size
        n = head.pop("vjp")
        require(type(n) is int and 0 <= n <= len(body) - at, "its derivative is cut off")
        vjp = _deserialize_program(body[at : at + n], order + 1) if n else None
        _check_head(head)
        in_tree, out_tree = read_tree(head.pop("in_tree")), read_tree(head.pop("out_tree"))
        exported = Exported(head, in_tree, out_tree, arrays, vjp)
        _check_exported(exported, vjp)
    return exported


# The fields of a header; some are used only when the program is called or written.
_FIELDS = (
    "name", "platforms", "disabled_checks", "constraints", "symbols", "in_types", "out_types",
    "program", "in_tree", "out_tree",
)  # fmt: skip


def _check_head(head: dict[str, Any]) -> None:
    missing = [key for key in _FIELDS if key not in head]
    require(not missing, f"it has no {', '.join(missing)}")
    check_structure(head["program"])
    texts = [head["name"], *head["platforms"], *head["disabled_checks"], *head["constraints"]]
    texts += head["symbols"]
    require(all(type(t) is str and len(t) <= 2000 for t in texts), "its texts")
    for key in ("platforms", "disabled_checks", "constraints", "symbols", "in_types", "out_types"):
        require(type(head[key]) is list, f"its {key}")
    for shape, _, weak in (*head["in_types"], *head["out_types"]):
        require(type(weak) is bool and len(shape) <= 64, "its types")
        require(
            all(type(n) is str or (type(n) is int and 0 <= n < MOST_BYTES) for n in shape),
            f"a shape of {str(shape)[:60]}",
        )


def _check_exported(exported: Exported, vjp: Exported | None) -> None:
    """Check that types, trees, symbols and the derivative are consistent; without symbols, check
    the program as well."""
    require(exported.in_tree.num_leaves == len(exported.in_avals), "the tree of its arguments")
    require(exported.out_tree.num_leaves == len(exported.out_avals), "the tree of its results")
    dims = [n for a in exported.in_avals for n in a.shape if isinstance(n, Dim)]
    symbols = {s for n in dims for s in n.symbols()}
    names = exported._head["symbols"]
    require(symbols == set(names) and len(names) == len(symbols), f"its symbols are {names}")
    for a in exported.out_avals:
        require(all(n.symbols() <= symbols for n in a.shape if isinstance(n, Dim)), "result types")
    if not names:
        exported._program({})
    if vjp is not None:
        flat = tree_structure(((0,) * len(vjp.in_avals), {}))
        require(vjp.in_tree == flat, "the tree of the arguments of its derivative")
        listed = tree_structure([0] * len(vjp.out_avals))
        require(vjp.out_tree == listed, "the tree of the results of its derivative")
        floats = [exported.out_avals[i] for i in _floats(exported.out_avals)]
        expected_in = [_aval_texts(a) for a in (*exported.in_avals, *floats)]
        expected_out = [_aval_texts(exported.in_avals[i]) for i in _floats(exported.in_avals)]
        require(
            [_aval_texts(a) for a in vjp.in_avals] == expected_in, "the arguments of its derivative"
        )
        require(
            [_aval_texts(a) for a in vjp.out_avals] == expected_out, "the results of its derivative"
        )


def _aval_texts(aval: Any) -> tuple[str, str]:
    return str(tuple(aval.shape)), aval.dtype.name


# --- export --------------------------------------------------------------------------------------


@api_boundary
def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """Make a function that exports a jitted function for given types of arguments.

    Parameters
    ----------
    fun_jit : stages.Wrapped
        Function that `jit` returned.
    platforms : sequence of str, optional
        Platforms of the program. Only programs for "cpu" can be run.
    disabled_checks : sequence of DisabledSafetyCheck, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    callable
        Function of arguments, or of their types, that returns an `Exported` program.

    Raises
    ------
    ValueError
        If the function is not jitted.
    NotImplementedError
        If it calls Python functions or contains objects of other libraries.

    See Also
    --------
    export.deserialize : Read an exported program.
    export.symbolic_shape : Sizes that are chosen in each call.
    jit : Compile a function.

    Notes
    -----
    With symbolic sizes, the function is traced at several sizes, and what it records must be the
    same except for numbers that follow from the sizes. The program is not valid for sizes at which
    the function does something else, such as an axis of length 1 that is broadcast.

    Examples
    --------
    >>> import accnp as jax, accnp.numpy as jnp
    >>> b, = jax.export.symbolic_shape("b")
    >>> f, kind = jax.jit(lambda x: 2 * x), jax.ShapeDtypeStruct((b,), "float32")
    >>> double = jax.export.export(f)(kind)
    >>> blob = double.serialize()
    >>> jax.export.deserialize(blob).call(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    if not isinstance(fun_jit, JitFunction):
        raise ValueError(
            f"Function to be exported must be the result of `jit` but is: {fun_jit!r}; jit it"
        )
    where = (default_export_platform(),) if platforms is None else tuple(platforms)

    @api_boundary
    def exported(*args: Any, **kwargs: Any) -> Exported:
        return _export(fun_jit, where, disabled_checks, args, kwargs, None)

    return exported


def _export(
    fun: JitFunction, where: Any, checks: Any, args: Any, kwargs: Any, scope: SymbolicScope | None
) -> Exported:
    leaves = fun._split(args, kwargs).leaves
    names, of_dims = symbols_of(leaves)
    if scope is None:
        scope = of_dims
    elif names and scope is not of_dims:
        raise ValueError("export: all symbols must be of one scope; pass scope= to symbolic_shape")
    if names:
        fit = Fit(names, scope)
        seen = [_Recorded(fun, args, kwargs, point) for point in fit.points]
        first, data = seen[0], fit.merge([r.data for r in seen])
        for other in seen[1:]:
            _same_constants(first.arrays, other.arrays)
        out_types = [[[_text(fit.size(n)) for n in t[0]], *t[1:]] for t in data["out_types"]]
    else:
        first = _Recorded(fun, args, kwargs, {})
        data = first.data
        out_types = data["out_types"]
    stage = first.stage
    in_types = [
        [[_text(n) for n in getattr(x, "shape", a.shape)], a.dtype.name, a.weak_type]
        for x, a in zip(leaves, first.avals, strict=True)
    ]
    head = {
        "name": fun._name,
        "platforms": list(where),
        "disabled_checks": [str(c) for c in checks],
        "constraints": list(scope.constraints_str),
        "symbols": names,
        "in_types": in_types,
        "out_types": out_types,
        "program": data["program"],
    }
    exported = Exported(head, stage._call.spec, stage._entry.out_spec, first.arrays, True)
    exported._source = fun if first.has_custom_derivative else None
    return exported


def _text(n: Any) -> Any:
    return str(n) if isinstance(n, Dim) else int(n)


class _Recorded:
    """Records a function for values of the symbols, in the serialized form."""

    def __init__(self, fun: JitFunction, args: Any, kwargs: Any, sizes: dict[str, int]) -> None:
        args, kwargs = at_sizes((args, kwargs), sizes)
        self.stage = fun.trace(*args, **kwargs)
        self.stage.refuse_types("export")
        entry, encoder = self.stage._entry, Encoder()
        self.avals = entry.graph.in_avals[len(entry.consts) :]
        program = encoder.program(entry.graph, entry.consts)
        self.arrays, self.has_custom_derivative = encoder.arrays, encoder.has_custom_derivative
        out_types = [[list(a.shape), a.dtype.name, a.weak_type] for a in entry.out_avals]
        self.data = {"program": program, "out_types": out_types}


def _same_constants(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> None:
    if len(some) != len(others) or any(
        a.shape != b.shape or a.tobytes() != b.tobytes() for a, b in zip(some, others, strict=False)
    ):
        raise NotImplementedError(
            "export: a constant of the function depends on the sizes; make it with jnp functions, "
            "or export for each size"
        )
