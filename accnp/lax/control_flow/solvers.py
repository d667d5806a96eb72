"""Solvers with implicit derivatives, `custom_root` and `custom_linear_solve`; and
`platform_dependent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.host_values import restore_host_values
from accnp.api.tracing.bodies import (
    Body,
    as_leaves,
    check_result,
    close,
    record_body,
    values,
    with_inputs,
)
from accnp.errors import api_boundary
from accnp.ir.graph import evaluate
from accnp.ir.node import Node
from accnp.primitives.solve import Closed, LinearSolve, Root
from accnp.pytree import PyTree, PyTreeDef, flatten_arrays, treedef_tuple
from accnp.runtime.device import default_backend
from accnp.transforms.tools import TOOLS

__all__ = ["custom_linear_solve", "custom_root", "platform_dependent"]

Solve = Callable[[Callable[[Any], Any], Any], Any]


class _System:
    """The structure and types of the vectors of a system of equations."""

    def __init__(self, name: str, tree: Any, root: str) -> None:
        self.name = f"lax.{name}"
        self.nodes, self.spec = as_leaves(tree, self.name, root)
        self.user_leaves = flatten_arrays(tree)[0]
        self.avals = [x.aval for x in self.nodes]
        self.aux: PyTreeDef | None = None
        self.solver: Body
        self.solver_consts = 0

    def closed(
        self, label: str, fn: Callable[..., Any], of: Any, count: int = 1, has_aux: bool = False
    ) -> tuple[Closed, list[Node]]:
        """Trace a function of `count` vectors that returns one, with an auxiliary result if
        `has_aux`; return the program and what it closes over. `of` is the user's function."""

        def run(*vectors: Any) -> Any:
            out = fn(*vectors)
            if has_aux and (not isinstance(out, tuple | list) or len(out) != 2):
                raise TypeError(
                    f"{self.name}: with has_aux=True {label} must return a pair (solution, aux); "
                    f"got {out!r}; return both, or leave has_aux out"
                )
            return tuple(out) if has_aux else out

        spec = treedef_tuple([self.spec] * count)
        body = record_body(run, self.name, self.avals * count, spec, of=of)
        main = body
        if has_aux:
            first, self.aux = body.spec.children()
            outputs = body.graph.outputs[: first.num_leaves]
            main = Body(with_inputs(body.graph, body.graph.inputs, outputs), first)
        strict = self.name != "lax.custom_linear_solve" or label == "matvec"
        check_result(self.name, of, self.spec, self.avals, main, label, dtypes=strict)
        consts = close([body.graph])
        if label == "solve":
            self.solver, self.solver_consts = body, len(consts)
        return Closed(body.graph, len(consts)), consts

    def vector(self, nodes: Sequence[Node]) -> Any:
        """Build a vector as users see it."""
        return values(self.spec, nodes)

    def leaves(self, tree: Any) -> list[Node]:
        """Return the nodes of a user's vector."""
        return [as_node(x, self.name) for x in flatten_arrays(tree)[0]]

    def result(self, nodes: Sequence[Node]) -> Any:
        """Build the solution, and the auxiliary result of the solver if there is one."""
        n = len(self.avals)
        inputs = dict(enumerate(self.user_leaves, self.solver_consts))
        outputs = restore_host_values(self.solver.graph, inputs, self.solver.constants, nodes)
        x = self.spec.unflatten(outputs[:n])
        return x if self.aux is None else (x, self.aux.unflatten(outputs[n:]))


def _callables(name: str, **fns: Any) -> None:
    for label, fn in fns.items():
        if not callable(fn):
            raise TypeError(f"lax.{name}: {label} must be callable; got {fn!r}; pass a function")


@api_boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: PyTree,
    solve: Solve,
    transpose_solve: Solve | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve a linear system with a given solver, and define its derivatives implicitly.

    Derivatives solve further systems with the same matrix and are not taken through the solver.

    Parameters
    ----------
    matvec : callable
        Linear function x -> A x. It may close over arrays, with respect to which the solution is
        differentiable.
    b : pytree
        Right-hand side, an array or a tree of arrays of floating or complex dtype, of the structure
        that `matvec` takes and returns.
    solve : callable
        Function (matvec, b) -> x that solves A x = b.
    transpose_solve : callable, optional
        Function (vecmat, b) -> x that solves the transposed system; reverse mode needs it.
    symmetric : bool, optional
        If True, `matvec` and `solve` are used for the transposed system, too. The default is False.
    has_aux : bool, optional
        Whether the solvers return pairs of the solution and auxiliary data, as this function then
        does, too. The default is False.

    Returns
    -------
    pytree
        Solution x, or the pair (x, auxiliary data) with `has_aux`.

    Raises
    ------
    TypeError
        If a function returns another structure or other types than `b`, or reverse mode cannot
        solve the transposed system.

    See Also
    --------
    custom_root : Solve nonlinear equations.
    scipy.sparse.linalg.cg : Solver by conjugate gradients.

    Examples
    --------
    >>> import accnp as jnp
    >>> def f(a, b):
    ...     return jnp.lax.custom_linear_solve(lambda x: a * x, b, lambda mv, b: b / mv(1.0))
    >>> float(f(4.0, 2.0)), float(jnp.jvp(f, (4.0, 2.0), (1.0, 0.0))[1])
    (0.5, -0.125)
    """
    _callables("custom_linear_solve", matvec=matvec, solve=solve)
    system = _System("custom_linear_solve", b, "b")
    own, consts = system.closed("matvec", matvec, matvec)
    programs: dict[str, Closed | None] = {"matvec": own, "vecmat": None, "transpose": None}
    programs["solve"], solve_consts = system.closed(
        "solve", lambda b: solve(matvec, b), solve, has_aux=has_aux
    )
    back: list[Node] = []
    turned: list[Node] = []
    if symmetric:
        programs["vecmat"], programs["transpose"] = own, programs["solve"]
        back, turned = consts, solve_consts
    elif transpose_solve is not None:
        _callables("custom_linear_solve", transpose_solve=transpose_solve)
        graph = TOOLS.transpose_graph(own.graph, own.count)
        programs["vecmat"], back = Closed(graph, own.count), consts

        def vecmat(v: Any) -> Any:
            return system.vector(evaluate(graph, [*consts, *system.leaves(v)]))

        programs["transpose"], turned = system.closed(
            "transpose_solve", lambda b: transpose_solve(vecmat, b), transpose_solve, 1, has_aux
        )
    operands = [*consts, *back, *solve_consts, *turned, *system.nodes]
    return system.result(LinearSolve(programs).record("custom_linear_solve", operands))


@api_boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: PyTree,
    solve: Solve,
    tangent_solve: Solve,
    has_aux: bool = False,
) -> Any:
    """Find a root with a given solver, and define its derivatives implicitly.

    Parameters
    ----------
    f : callable
        Function x -> residual, of the structure and types of x. It may close over arrays, with
        respect to which the root is differentiable.
    initial_guess : pytree
        Start of the search, an array or a tree of arrays of any shapes and a floating dtype.
    solve : callable
        Function (f, initial_guess) -> root.
    tangent_solve : callable
        Function (g, y) -> x that solves g(x) = y for a linear function g. For reverse mode it must
        be linear in y and consist of operations that can be transposed, such as
        `custom_linear_solve`.
    has_aux : bool, optional
        Whether `solve` returns a pair of the root and auxiliary data, as this function then does,
        too. The default is False.

    Returns
    -------
    pytree
        Root x with f(x) = 0, or the pair (x, auxiliary data) with `has_aux`.

    Raises
    ------
    TypeError
        If a function returns another structure or other types than `initial_guess`.

    See Also
    --------
    custom_linear_solve : Solve linear equations.
    scipy.optimize.minimize : Minimize a function.

    Notes
    -----
    By the implicit function theorem, f'(x) dx = -df, where df is the change of `f` with the arrays
    that it closes over. The root has no derivative with respect to the initial guess.

    Examples
    --------
    >>> import accnp as jnp
    >>> def newton(f, x):
    ...     step = lambda _, x: x - f(x) / jnp.grad(f)(x)
    ...     return jnp.lax.fori_loop(0, 20, step, x)
    >>> def root(y):
    ...     return jnp.lax.custom_root(lambda x: x * x - y, y, newton, lambda g, y: y / g(1.0))
    >>> float(root(4.0)), float(jnp.grad(root)(4.0))
    (2.0, 0.25)
    """
    _callables("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    system = _System("custom_root", initial_guess, "initial_guess")
    n = len(system.avals)
    own, consts = system.closed("f", f, f)
    nonzero = (*[False] * own.count, *[True] * n)
    tangent_program, _ = TOOLS.jvp_graph(own.graph, nonzero, (True,) * n)

    def tangent(x: Any, y: Any) -> Any:
        at = system.leaves(x)

        def g(v: Any) -> Any:
            return system.vector(evaluate(tangent_program, [*consts, *at, *system.leaves(v)])[n:])

        return tangent_solve(g, y)

    moving, tangent_consts = system.closed("tangent_solve", tangent, tangent_solve, 2)
    finding, solve_consts = system.closed("solve", lambda x: solve(f, x), solve, has_aux=has_aux)
    rule = Root({"f": own, "tangent": moving, "solve": finding})
    operands = [*consts, *tangent_consts, *solve_consts, *system.nodes]
    return system.result(rule.record("custom_root", operands))


@api_boundary
def platform_dependent(
    *args: PyTree, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Apply the function that is given for the platform in use.

    Parameters
    ----------
    *args : pytree
        Arguments of the functions, trees of arrays of any shapes and dtypes.
    default : callable, optional
        Function for platforms that are not named.
    **per_platform : callable
        Functions by the name of their platform, such as `cpu`.

    Returns
    -------
    pytree
        Result of the function that is applied.

    Raises
    ------
    TypeError
        If one of them is not callable.
    NotImplementedError
        If neither a function for the current platform nor a default is given.

    See Also
    --------
    switch : Choose a function by an index.
    default_backend : Name of the platform in use.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.platform_dependent(2.0, cpu=lambda x: x + 1, default=lambda x: x)
    3.0
    """
    for name, fn in (*per_platform.items(), ("default", default)):
        if not callable(fn) and (name, fn) != ("default", None):
            raise TypeError(
                f"lax.platform_dependent: the function for {name!r} must be callable; got {fn!r}; "
                "pass a function"
            )
    chosen = per_platform.get(default_backend(), default)
    if chosen is None:
        raise NotImplementedError(
            f"lax.platform_dependent: no function was given for {default_backend()!r} and no "
            f"default; got functions for {sorted(per_platform)}; pass default="
        )
    return chosen(*args)
