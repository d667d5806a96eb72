"""Initializers of network weights: functions of a key, a shape and a dtype.

Sources: X. Glorot, Y. Bengio, AISTATS 2010 (glorot); K. He et al., ICCV 2015 (he); Y. LeCun et al.,
"Efficient BackProp" (lecun); A. M. Saxe et al., arXiv:1312.6120 (orthogonal); L. Xiao et al.,
arXiv:1806.05393 (delta-orthogonal).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import numpy as np

from accnp import dtypes
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_shape
from accnp.array_type import Array, ArrayLike, ShardingLike
from accnp.docstrings import fill
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.numpy import creation, ufuncs
from accnp.numpy.manipulation import moveaxis
from accnp.random import basic_samplers as random
from accnp.random import distributions, keys
from accnp.random.vector_samples import orthogonal as random_orthogonal
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip

Axes = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """Type of functions that create weights from a key, a shape and a dtype.

    A protocol for annotations and `isinstance`: functions `(key, shape, dtype=None)`. Those that
    draw random numbers raise a ValueError for integer dtypes.

    Parameters
    ----------
    *args, **kwargs : object
        Rejected, since a protocol has no instances of its own.

    Raises
    ------
    TypeError
        If the protocol itself is called.

    Examples
    --------
    >>> import accnp as jnp
    >>> init = jnp.nn.initializers.ones
    >>> init(jnp.random.key(0), (2,), "float32")
    Array([1., 1.], dtype=float32)
    """

    @api_boundary
    def __call__(
        self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None
    ) -> Array: ...


def _resolve_dtype(dtype: Any, function: str) -> np.dtype:
    if dtype is None:
        return dtypes.canonicalize_dtype(np.dtype(np.float64))
    kind = dtypes.requested_dtype(dtype, function)
    if kind.kind not in "fcV":
        raise ValueError(
            f"{function}: weights must be floating or complex; got dtype {kind.name}; "
            "pass such a dtype"
        )
    return kind


@api_boundary
@with_out_sharding
def zeros(
    key: object,
    shape: Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Initializer that returns zeros.

    Parameters
    ----------
    key : object
        Not used; present because other initializers need a PRNG key.
    {init_shape}
    {init_dtype}
    {init_sharding}

    Returns
    -------
    Array
        Zeros.

    Raises
    ------
    {raises_init_shape}

    See Also
    --------
    nn.initializers.ones : Initializer that returns ones.
    nn.initializers.constant : Make an initializer for another value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.initializers.zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return creation.zeros(shape, dtype)


@api_boundary
@with_out_sharding
def ones(
    key: object,
    shape: Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Initializer that returns ones.

    Parameters
    ----------
    key : object
        Not used; present because other initializers need a PRNG key.
    {init_shape}
    {init_dtype}
    {init_sharding}

    Returns
    -------
    Array
        Ones.

    Raises
    ------
    {raises_init_shape}

    See Also
    --------
    nn.initializers.zeros : Initializer that returns zeros.
    nn.initializers.constant : Make an initializer for another value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.initializers.ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    return creation.ones(shape, dtype)


@api_boundary
def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that fills the weights with a value.

    Parameters
    ----------
    value : array_like
        Number, or array that broadcasts to the shape of the weights.
    {dtype_weights}

    Returns
    -------
    {returns_init}

    Raises
    ------
    ValueError
        From the initializer, if the value does not broadcast to the shape.

    See Also
    --------
    nn.initializers.zeros : Initializer that returns zeros.
    nn.initializers.ones : Initializer that returns ones.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.initializers.constant(2.0)(None, (2,))
    Array([2., 2.], dtype=float32)
    """
    default_dtype = dtype

    @api_boundary
    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        dtype = default_dtype if dtype is None else dtype
        return creation.full(shape, value, _resolve_dtype(None, "") if dtype is None else dtype)

    return init


@api_boundary
def uniform(scale: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws from the uniform distribution on [0, scale).

    Parameters
    ----------
    scale : array_like, optional
        Upper end of the interval. The default is 0.01.
    {dtype_weights}

    Returns
    -------
    {returns_init}

    Raises
    ------
    {raises_init_floating}

    See Also
    --------
    nn.initializers.normal : Normal distribution.
    random.uniform : Uniform random numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.initializers.uniform(10.0)(jnp.random.key(0), (2,))
    Array([9.47667 , 9.785799], dtype=float32)
    """
    default_dtype = dtype

    @api_boundary
    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _resolve_dtype(default_dtype if dtype is None else dtype, "uniform initializer")
        return random.uniform(key, shape, kind) * creation.array(scale, kind)

    return init


@api_boundary
def normal(stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws from the normal distribution with mean 0.

    Parameters
    ----------
    stddev : array_like, optional
        Standard deviation of the weights. The default is 0.01.
    {dtype_weights}

    Returns
    -------
    {returns_init}

    Raises
    ------
    {raises_init}

    See Also
    --------
    nn.initializers.truncated_normal : Normal distribution between bounds.
    random.normal : Normal random numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.initializers.normal(1.0)(jnp.random.key(0), (2,)).shape
    (2,)
    """
    default_dtype = dtype

    @api_boundary
    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _resolve_dtype(default_dtype if dtype is None else dtype, "normal initializer")
        return random.normal(key, shape, kind) * creation.array(stddev, kind)

    return init


@api_boundary
def truncated_normal(
    stddev: ArrayLike = 0.01,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Make an initializer that draws from the normal distribution between two bounds.

    Parameters
    ----------
    stddev : array_like, optional
        Standard deviation before truncation. The default is 0.01.
    {dtype_weights}
    lower : array_like, optional
        Lower bound, in units of `stddev`. The default is -2.
    upper : array_like, optional
        Upper bound, in units of `stddev`. The default is 2.

    Returns
    -------
    {returns_init}

    Raises
    ------
    {raises_init_floating}

    See Also
    --------
    nn.initializers.normal : Normal distribution without bounds.
    random.truncated_normal : Truncated normal random numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> w = jnp.nn.initializers.truncated_normal(1.0)(jnp.random.key(0), (100,))
    >>> bool((abs(w) < 2).all())
    True
    """
    default_dtype = dtype

    @api_boundary
    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _resolve_dtype(
            default_dtype if dtype is None else dtype, "truncated_normal initializer"
        )
        return distributions.truncated_normal(key, lower, upper, shape, kind) * creation.array(
            stddev, kind
        )

    return init


def _sizes(shape: tuple[int, ...], axes: Axes) -> int:
    return math.prod(shape[d] for d in ((axes,) if isinstance(axes, int) else axes))


def _fan_in_and_out(
    shape: tuple[int, ...], ins: Axes, outs: Axes, batch: Axes
) -> tuple[float, float]:
    """Return fan-in and fan-out: the number of inputs of an output, and of outputs of an input."""
    if len(shape) <= 1 and isinstance(ins, int) and ins == -2:
        raise ValueError(
            "variance_scaling: weights must have at least two axes; got shape "
            f"{shape}; pass in_axis and out_axis, or use a plain normal initializer"
        )
    n_in, n_out, n_batch = (_sizes(shape, axes) for axes in (ins, outs, batch))
    field = math.prod(shape) / n_in / n_out / n_batch
    return n_in * field, n_out * field


def _polar(key: Any, shape: Any, radius: Any, kind: np.dtype) -> Array:
    """Sample complex numbers with any angle; `radius` maps uniform numbers to the modulus."""
    real = np.finfo(kind).dtype
    for_radius, for_angle = keys.split(key)
    r = radius(random.uniform(for_radius, shape, real))
    angle = creation.array(2 * np.pi, real) * random.uniform(for_angle, shape, real)
    return (r * ufuncs.exp(1j * angle)).astype(kind)


@api_boundary
def variance_scaling(
    scale: float | Array,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Make an initializer whose variance depends on the shape of the weights: scale / n.

    Parameters
    ----------
    scale : array_like
        Positive factor of the variance.
    mode : str
        What n is: "fan_in" (number of inputs of an output), "fan_out", "fan_avg" (their mean) or
        "fan_geo_avg" (their geometric mean).
    distribution : str
        "truncated_normal" (at two standard deviations), "normal" or "uniform".
    {fan_axes}
    {dtype_weights}

    Returns
    -------
    {returns_init}

    Raises
    ------
    TypeError
        From the initializer, if the first argument is not a PRNG key.
    ValueError
        From the initializer, if the mode or distribution is unknown, the shape has fewer than two
        axes and `in_axis` is not given, or the dtype is neither floating nor complex.

    See Also
    --------
    nn.initializers.glorot_uniform : "fan_avg" with scale 1, uniform.
    nn.initializers.lecun_normal : "fan_in" with scale 1, truncated normal.
    nn.initializers.he_normal : "fan_in" with scale 2, truncated normal.

    Examples
    --------
    >>> import accnp as jnp
    >>> init = jnp.nn.initializers.variance_scaling(1.0, "fan_in", "uniform")
    >>> init(jnp.random.key(0), (3, 2)).shape
    (3, 2)
    """
    default_dtype = dtype

    @api_boundary
    @promotes_inside
    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _resolve_dtype(
            default_dtype if dtype is None else dtype, "variance_scaling initializer"
        )
        sizes = as_shape(shape, "variance_scaling initializer")
        fan_in, fan_out = _fan_in_and_out(sizes, in_axis, out_axis, batch_axis)
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        if mode not in fans:
            raise ValueError(f"variance_scaling: unknown mode; got {mode!r}; use one of {[*fans]}")
        variance = creation.array(scale / fans[mode], kind)
        deviation = ufuncs.sqrt(variance)
        whole = kind.kind == "c"
        if distribution == "normal":
            return random.normal(key, sizes, kind) * deviation
        if distribution == "uniform":
            if whole:
                return _polar(key, sizes, ufuncs.sqrt, kind) * ufuncs.sqrt(2 * variance)
            return random.uniform(key, sizes, kind, -1) * ufuncs.sqrt(3 * variance)
        if distribution == "truncated_normal":
            # The standard deviation of the normal distribution truncated at two deviations.
            if whole:
                left = deviation / creation.array(0.95311164380491208, kind)
                cut = lambda u: ufuncs.sqrt(-ufuncs.log(1 - (1 - math.exp(-4)) * u))  # noqa: E731
                return _polar(key, sizes, cut, kind) * left
            left = deviation / creation.array(0.87962566103423978, kind)
            return distributions.truncated_normal(key, -2, 2, sizes, kind) * left
        raise ValueError(
            f"variance_scaling: unknown distribution; got {distribution!r}; "
            "use 'normal', 'uniform' or 'truncated_normal'"
        )

    return init


def _declare_variance_scaling(
    name: str, scale: float, mode: str, distribution: str, what: str, source: str
) -> Callable[..., Initializer]:
    """Declare an initializer that is a special case of `variance_scaling`."""

    @api_boundary
    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = fill(f"""Make an initializer that draws {what}.

    It is `variance_scaling({scale}, "{mode}", "{distribution}")`.

    Parameters
    ----------
    {{fan_axes}}
    {{dtype_weights}}

    Returns
    -------
    {{returns_init}}

    Raises
    ------
    TypeError
        From the initializer, if the first argument is not a PRNG key.
    ValueError
        From the initializer, if the shape has fewer than two axes, or the dtype is neither floating
        nor complex.

    See Also
    --------
    nn.initializers.variance_scaling : Any scale, mode and distribution.

    Notes
    -----
    See {source}.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.initializers.{name}()(jnp.random.key(0), (3, 2)).shape
    (3, 2)
    """)
    return make


_AVERAGE = "variance 2 / (inputs + outputs)"
_GLOROT = """Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks" (2010)"""
_LECUN = 'LeCun et al., "Efficient BackProp" (1998)'
_HE = """He et al., "Delving Deep into Rectifiers: Surpassing Human-Level Performance on ImageNet
    Classification" (2015)"""
glorot_normal = xavier_normal = _declare_variance_scaling(
    "glorot_normal", 1.0, "fan_avg", "truncated_normal", f"normal numbers with {_AVERAGE}", _GLOROT
)
glorot_uniform = xavier_uniform = _declare_variance_scaling(
    "glorot_uniform", 1.0, "fan_avg", "uniform", f"uniform numbers with {_AVERAGE}", _GLOROT
)
lecun_normal = _declare_variance_scaling(
    "lecun_normal",
    1.0,
    "fan_in",
    "truncated_normal",
    "normal numbers with variance 1 / inputs",
    _LECUN,
)
lecun_uniform = _declare_variance_scaling(
    "lecun_uniform", 1.0, "fan_in", "uniform", "uniform numbers with variance 1 / inputs", _LECUN
)
he_normal = kaiming_normal = _declare_variance_scaling(
    "he_normal", 2.0, "fan_in", "truncated_normal", "normal numbers with variance 2 / inputs", _HE
)
he_uniform = kaiming_uniform = _declare_variance_scaling(
    "he_uniform", 2.0, "fan_in", "uniform", "uniform numbers with variance 2 / inputs", _HE
)


@api_boundary
def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer of matrices with orthonormal rows or columns, whichever are fewer.

    Parameters
    ----------
    scale : array_like, optional
        Factor of the matrix. The default is 1.
    column_axis : int, optional
        Axis of the weights that is the columns of the matrix. The other axes together are the rows.
        The default is -1.
    {dtype_weights}

    Returns
    -------
    {returns_init}

    Raises
    ------
    TypeError
        From the initializer, if the first argument is not a PRNG key.
    ValueError
        From the initializer, if the shape has fewer than two axes.

    See Also
    --------
    nn.initializers.delta_orthogonal : Version for convolutions.
    random.orthogonal : Random orthogonal matrices.

    Notes
    -----
    See Saxe et al., "Exact Solutions to the Nonlinear Dynamics of Learning in Deep Linear Neural
    Networks" (2013).

    Examples
    --------
    >>> import accnp as jnp
    >>> w = jnp.nn.initializers.orthogonal()(jnp.random.key(0), (3, 3))
    >>> bool(jnp.allclose(w @ w.T, jnp.eye(3), atol=1e-5))
    True
    """
    default_dtype = dtype

    @api_boundary
    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _resolve_dtype(default_dtype if dtype is None else dtype, "orthogonal initializer")
        sizes = as_shape(shape, "orthogonal initializer")
        if len(sizes) < 2:
            raise ValueError(
                f"orthogonal: weights must have at least two axes; got shape {sizes}; "
                "use another initializer for vectors"
            )
        if 0 in sizes:
            return creation.zeros(sizes, kind)
        columns = sizes[column_axis]
        q = random_orthogonal(key, math.prod(sizes) // columns, (), kind, columns)
        rest = [n for d, n in enumerate(sizes) if d != column_axis % len(sizes)]
        return creation.array(scale, kind) * moveaxis(q.reshape(*rest, columns), -1, column_axis)

    return init


@api_boundary
def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer for convolutions: an orthogonal matrix at the center, else zeros.

    Parameters
    ----------
    scale : array_like, optional
        Factor of the matrix. The default is 1.
    column_axis : int, optional
        Axis of the matrix that holds its columns. The default is -1.
    {dtype_weights}

    Returns
    -------
    {returns_init}

    Raises
    ------
    TypeError
        From the initializer, if the first argument is not a PRNG key.
    ValueError
        From the initializer, if the shape is not (*window, inputs, outputs) with one to three axes
        of the window and at least as many outputs as inputs.

    See Also
    --------
    nn.initializers.orthogonal : Version for matrices.

    Notes
    -----
    See Xiao et al., "Dynamical Isometry and a Mean Field Theory of CNNs" (2018).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.initializers.delta_orthogonal()(jnp.random.key(0), (3, 2, 2))[0]
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    default_dtype = dtype

    @api_boundary
    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _resolve_dtype(
            default_dtype if dtype is None else dtype, "delta_orthogonal initializer"
        )
        sizes = as_shape(shape, "delta_orthogonal initializer")
        if len(sizes) not in (3, 4, 5):
            raise ValueError(
                f"delta_orthogonal: weights must have 3 to 5 axes; got shape {sizes}; "
                "use orthogonal for others"
            )
        if sizes[-1] < sizes[-2]:
            raise ValueError(
                "delta_orthogonal: there must be at least as many outputs as inputs; got shape "
                f"{sizes}; make the last size the largest"
            )
        matrix = orthogonal(scale, column_axis, kind)(key, sizes[-2:])
        centre = tuple([(n - 1) // 2 for n in sizes[:-2]])
        return creation.zeros(sizes, kind).at[centre].set(matrix)

    return init
