"""Optimizers of pytrees of parameters, as in `jax.example_libraries.optimizers`.

An optimizer consists of three functions: parameters -> state; (step, gradient, state) -> state;
state -> parameters. Each is written for one array, and `optimizer` extends it to pytrees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from accnp.array_type import Array, ArrayLike
from accnp.docstrings import filled
from accnp.errors import api_boundary
from accnp.example_libraries.schedules import (
    Schedule,
    constant,
    exponential_decay,
    inverse_time_decay,
    make_schedule,
    piecewise_constant,
    polynomial_decay,
)
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import asarray, zeros, zeros_like
from accnp.numpy.joining import stack
from accnp.numpy.linalg.norms import norm
from accnp.numpy.manipulation import atleast_1d, ravel
from accnp.numpy.selection import where
from accnp.pytree import (
    PyTree,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum",
    "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay",
    "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip


class Optimizer(NamedTuple):
    """Three functions of an optimizer, for pytrees of floating arrays of any shape.

    Parameters
    ----------
    init_fn : callable
        Function from parameters to the first state.
    update_fn : callable
        Function from the number of the step, the gradient and the state to the next state.
    params_fn : callable
        Function from a state to the parameters.

    Raises
    ------
    TypeError
        From `update_fn`, if the gradient has another pytree structure than the parameters.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import Optimizer, sgd
    >>> isinstance(sgd(0.5), Optimizer), Optimizer._fields
    (True, ('init_fn', 'update_fn', 'params_fn'))
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """State of an optimizer: the flat states of the leaves, and the pytree structures.

    Parameters
    ----------
    packed_state : list
        Flat state of each parameter.
    tree_def : PyTreeDef
        Structure of the parameters.
    subtree_defs : list of PyTreeDef
        Structure of the state of each parameter.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries import optimizers
    >>> init, update, params_of = optimizers.sgd(0.1)
    >>> state = init([1.0])
    >>> isinstance(state, optimizers.OptimizerState), params_of(state)
    (True, [1.0])
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, tuple(s.subtree_defs))),
    lambda static, children: OptimizerState(children[0], *static),
)


def _pack_states(states: list[Any], tree: Any) -> OptimizerState:
    flat, structures = zip(*map(tree_flatten, states), strict=True) if states else ((), ())
    return OptimizerState([*flat], tree, structures)


def _states(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree_unflatten(tree, leaves) for tree, leaves in pairs]


@api_boundary
def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorator that turns an optimizer of one array into one of pytrees.

    Parameters
    ----------
    opt_maker : callable
        Function that returns `(init, update, get_params)` for one array.

    Returns
    -------
    callable
        Function of the same arguments that returns an `Optimizer`.

    Raises
    ------
    TypeError
        From `update_fn`, if the gradient or a new state has another pytree structure than before.

    See Also
    --------
    example_libraries.optimizers.Optimizer : Class of the result.
    example_libraries.optimizers.sgd : Optimizer made by this decorator.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import sgd
    >>> init, update, params = sgd(0.5)
    >>> params(update(0, {"w": jnp.ones(2)}, init({"w": jnp.zeros(2)})))
    {'w': Array([-0.5, -0.5], dtype=float32)}
    """

    @functools.wraps(opt_maker)
    @api_boundary
    def tree_optimizer(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        @api_boundary
        def init_tree(x0: Any) -> OptimizerState:
            leaves, tree = tree_flatten(x0)
            return _pack_states([init(x) for x in leaves], tree)

        @api_boundary
        def update_tree(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "optimizers.update: the gradient must have the structure of the parameters; "
                    f"got {tree} for {state.tree_def}; take the gradient by the parameters"
                )
            states = zip(leaves, _states(state), strict=True)
            new = _pack_states([update(i, g, s) for g, s in states], tree)
            if tuple(new.subtree_defs) != tuple(state.subtree_defs):
                raise TypeError(
                    "optimizers.update: the state must keep its structure; got "
                    f"{new.subtree_defs} for {state.subtree_defs}; return a state like that of init"
                )
            return new

        @api_boundary
        def params_of_tree(state: OptimizerState) -> Any:
            return tree_unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(init_tree, update_tree, params_of_tree)

    return tree_optimizer


def _first_entry(state: Any) -> Array:
    return state[0]


@filled
@optimizer
def sgd(step_size: float | Schedule) -> Any:
    """Stochastic gradient descent: each step goes against the gradient.

    Parameters
    ----------
    {step_size}

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.momentum : Version with momentum.
    example_libraries.optimizers.adam : Adaptive step sizes.

    Notes
    -----
    Parameters and gradients may have any shape. Floating dtypes are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import sgd
    >>> init, update, params = sgd(0.5)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-0.5, -0.5], dtype=float32)
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


def _with_zeros(count: int) -> Callable[[Array], Any]:
    """Return an init function: the state is the parameters and `count` arrays of zeros."""
    return lambda x: (x, *[zeros_like(x) for _ in range(count)])


@filled
@optimizer
def momentum(step_size: float | Schedule, mass: float) -> Any:
    """Stochastic gradient descent with momentum.

    Parameters
    ----------
    {step_size}
    {mass}

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.nesterov : Version with lookahead.
    example_libraries.optimizers.sgd : Version without momentum.

    Notes
    -----
    The velocity is `mass` times the last velocity plus the gradient. Floating dtypes of any shape
    are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import momentum
    >>> init, update, params = momentum(0.5, 0.9)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-0.5, -0.5], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Array, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - size(i) * v, v

    return _with_zeros(1), update, _first_entry


@filled
@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Any:
    """Stochastic gradient descent with Nesterov momentum.

    Parameters
    ----------
    {step_size}
    {mass}

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.momentum : Version without lookahead.

    Notes
    -----
    Each step uses the velocity that it would have one step ahead. Floating dtypes of any shape are
    kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import nesterov
    >>> init, update, params = nesterov(0.5, 0.9)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-0.95, -0.95], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Array, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - size(i) * (mass * v + g), v

    return _with_zeros(1), update, _first_entry


def _inverse_root(x: Array) -> Array:
    return where(x > 0, 1 / uf.sqrt(where(x > 0, x, 1)), 0.0)


@filled
@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """AdaGrad: divide gradients by the root of the sum of all their squares.

    Parameters
    ----------
    {step_size}
    momentum : float, optional
        Part of the last velocity that is kept. The default is 0.9.

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.rmsprop : Moving average in place of the sum.
    example_libraries.optimizers.sm3 : Version with less memory.

    Notes
    -----
    See Duchi et al., "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization"
    (2011). Floating dtypes of any shape are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import adagrad
    >>> init, update, params = adagrad(0.5)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-0.05, -0.05], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Array, state: Any) -> Any:
        x, squares, m = state
        squares = squares + uf.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - size(i) * m, squares, m

    return _with_zeros(2), update, _first_entry


@filled
@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp: divide gradients by the root of a moving average of their squares.

    Parameters
    ----------
    {step_size}
    gamma : float, optional
        Part of the moving average that is kept in each step. The default is 0.9.
    eps : float, optional
        Term that avoids division by zero. The default is 1e-8.

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.rmsprop_momentum : Version with momentum.
    example_libraries.optimizers.adam : Version with a moving average of gradients.

    Notes
    -----
    Parameters and gradients may have any shape. Floating dtypes are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import rmsprop
    >>> init, update, params = rmsprop(0.5)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-1.5811387, -1.5811387], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Array, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + uf.square(g) * (1 - gamma)
        return x - size(i) * g / uf.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first_entry


@filled
@optimizer
def rmsprop_momentum(
    step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """RMSProp with momentum.

    Parameters
    ----------
    {step_size}
    gamma : float, optional
        Part of the moving average that is kept in each step. The default is 0.9.
    eps : float, optional
        Term that avoids division by zero. The default is 1e-8.
    momentum : float, optional
        Part of the last velocity that is kept. The default is 0.9.

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.rmsprop : Version without momentum.

    Notes
    -----
    Parameters and gradients may have any shape. Floating dtypes are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import rmsprop_momentum
    >>> init, update, params = rmsprop_momentum(0.5)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-1.5811387, -1.5811387], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Array, state: Any) -> Any:
        x, squares, m = state
        squares = squares * gamma + uf.square(g) * (1 - gamma)
        m = momentum * m + size(i) * g / uf.sqrt(squares + eps)
        return x - m, squares, m

    return _with_zeros(2), update, _first_entry


def _bias_correction(rate: float, i: Any, dtype: Any) -> Array:
    """Return the bias correction of a moving average that started at 0, after step i."""
    return 1 - asarray(rate, dtype=dtype) ** (i + 1)


@filled
@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam: divide moving averages of gradients by the root of those of their squares.

    Parameters
    ----------
    {step_size}
    b1 : float, optional
        Part of the moving average of gradients that is kept in each step. The default is 0.9.
    b2 : float, optional
        Part of the moving average of squares that is kept in each step. The default is 0.999.
    eps : float, optional
        Term that avoids division by zero. The default is 1e-8.

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.rmsprop : Version without an average of gradients.
    example_libraries.optimizers.sgd : Fixed step sizes.

    Notes
    -----
    See Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015). Floating dtypes of any
    shape are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import adam
    >>> init, update, params = adam(0.5)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-0.49999666, -0.49999666], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Array, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * uf.square(g) + b2 * v
        mean, square = m / _bias_correction(b1, i, m.dtype), v / _bias_correction(b2, i, m.dtype)
        return x - size(i) * mean / (uf.sqrt(square) + eps), m, v

    return _with_zeros(2), update, _first_entry


@filled
@optimizer
def adamax(
    step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> Any:
    """Adamax: the version of Adam based on the infinity norm of gradients.

    Parameters
    ----------
    {step_size}
    b1 : float, optional
        Part of the moving average of gradients that is kept in each step. The default is 0.9.
    b2 : float, optional
        Factor by which the largest gradient decays in each step. The default is 0.999.
    eps : float, optional
        Term that avoids division by zero. The default is 1e-8.

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.adam : Version based on squares.

    Notes
    -----
    See Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015). Floating dtypes of any
    shape are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import adamax
    >>> init, update, params = adamax(0.5)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-0.4999999, -0.4999999], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Array, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = uf.maximum(b2 * u, uf.abs(g))
        return x - size(i) / _bias_correction(b1, i, m.dtype) * m / (u + eps), m, u

    return _with_zeros(2), update, _first_entry


@filled
@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """SM3: a version of AdaGrad that stores one number per row along each axis.

    Parameters
    ----------
    {step_size}
    momentum : float, optional
        Part of the last velocity that is kept. The default is 0.9.

    Returns
    -------
    {returns_optimizer}

    Raises
    ------
    {raises_optimizer}

    See Also
    --------
    example_libraries.optimizers.adagrad : Version with one number for each element.

    Notes
    -----
    See Anil et al., "Memory-Efficient Adaptive Optimization" (2019). Floating dtypes of any shape
    are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries.optimizers import sm3
    >>> init, update, params = sm3(0.5)
    >>> params(update(0, jnp.ones(2), init(jnp.zeros(2))))
    Array([-0.05, -0.05], dtype=float32)
    """
    size = make_schedule(step_size)

    def init(x: Any) -> Any:
        wide = atleast_1d(x)
        return asarray(x), zeros_like(wide), [zeros(n, wide.dtype) for n in wide.shape]

    def update(i: Any, g: Array, state: Any) -> Any:
        x, m, rows = state
        g = asarray(g).reshape(m.shape)
        wide = [
            row.reshape([-1 if axis == d else 1 for axis in range(m.ndim)])
            for d, row in enumerate(rows)
        ]
        least = functools.reduce(uf.minimum, wide)
        total = least + uf.square(g)
        m = (1 - momentum) * (g * _inverse_root(total)) + momentum * m
        rows = [total.max(axis=tuple(a for a in range(m.ndim) if a != d)) for d in range(m.ndim)]
        return x - size(i) * m.reshape(x.shape), m, rows

    return init, update, _first_entry


# --- gradients, states ---------------------------------------------------------------------------


@api_boundary
def l2_norm(tree: PyTree) -> Array:
    """Compute the Euclidean norm of all elements of a pytree.

    Parameters
    ----------
    tree : pytree of array_like
        Arrays, such as gradients, of any shape.

    Returns
    -------
    Array
        Root of the sum of all squares, a scalar of the dtype that the leaves promote to.

    Raises
    ------
    {raises_leaf}

    See Also
    --------
    example_libraries.optimizers.clip_grads : Limit the norm.
    numpy.linalg.norm : Norm of one array.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import l2_norm
    >>> float(l2_norm([3.0, 4.0]))
    5.0
    """
    lengths = [norm(ravel(x)) for x in tree_leaves(tree)]
    return norm(stack(lengths)) if lengths else uf.sqrt(0)


@api_boundary
def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> Any:
    """Scale gradients down so that their Euclidean norm is at most a maximum.

    Parameters
    ----------
    grad_tree : pytree of array_like
        Gradients of any shape. Floating dtypes are kept.
    max_norm : array_like
        Largest norm allowed for all leaves together.

    Returns
    -------
    pytree of Array
        Scaled gradients, of the same structure and shapes.

    Raises
    ------
    {raises_leaf}

    See Also
    --------
    example_libraries.optimizers.l2_norm : Compute the norm.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import clip_grads
    >>> [float(g) for g in clip_grads([3.0, 4.0], 2.5)]
    [1.5, 2.0]
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Leaf that marks the state of one parameter in the pytree of all states.

    Parameters
    ----------
    subtree : pytree
        What the optimizer stores for one parameter.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries import optimizers
    >>> optimizers.JoinPoint(1.0).subtree
    1.0
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


@api_boundary
def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Convert an optimizer state to a pytree of the structure of the parameters.

    Parameters
    ----------
    opt_state : OptimizerState
        Result of `init_fn` or `update_fn`.

    Returns
    -------
    pytree of JoinPoint
        State of each parameter in its place.

    Raises
    ------
    AttributeError
        If the argument is not an `OptimizerState`.

    See Also
    --------
    example_libraries.optimizers.pack_optimizer_state : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries import optimizers
    >>> state = optimizers.sgd(0.1).init_fn({"w": jnp.ones(1)})
    >>> optimizers.unpack_optimizer_state(state)["w"].subtree
    Array([1.], dtype=float32)
    """
    return tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


@api_boundary
def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Convert a pytree of states of the parameters back to an optimizer state.

    Parameters
    ----------
    marked_pytree : pytree of JoinPoint
        Result of `unpack_optimizer_state`.

    Returns
    -------
    OptimizerState
        State for `update_fn` and `params_fn`.

    Raises
    ------
    AttributeError
        If a leaf is not a `JoinPoint`.

    See Also
    --------
    example_libraries.optimizers.unpack_optimizer_state : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.example_libraries import optimizers
    >>> init, _, params = optimizers.sgd(0.1)
    >>> unpacked = optimizers.unpack_optimizer_state(init({"w": jnp.ones(1)}))
    >>> params(optimizers.pack_optimizer_state(unpacked))
    {'w': Array([1.], dtype=float32)}
    """
    leaves, tree = tree_flatten(marked_pytree)
    if not all(isinstance(leaf, JoinPoint) for leaf in leaves):
        raise TypeError(
            "optimizers.pack_optimizer_state: leaves must be JoinPoints; got "
            f"{sorted({type(leaf).__name__ for leaf in leaves})}; "
            "pass the result of unpack_optimizer_state"
        )
    return _pack_states([leaf.subtree for leaf in leaves], tree)
