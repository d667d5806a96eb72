"""Initial weights of networks: a shape comes in, a lazy Array of random numbers goes out.

Sources: X. Glorot, Y. Bengio, AISTATS 2010 (glorot); K. He et al., ICCV 2015 (he); Y. LeCun et al.,
"Efficient BackProp" (lecun); A. M. Saxe et al., arXiv:1312.6120 (orthogonal); L. Xiao et al.,
arXiv:1806.05393 (delta-orthogonal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from accnp import dtypes
from accnp.api.arguments.inside import promotes_inside
from accnp.api.arguments.shapes import as_shape
from accnp.api.arrays import creation
from accnp.api.arrays.manipulation import moveaxis
from accnp.api.elements import ufuncs
from accnp.api.sampling import distributions, keys, random
from accnp.api.sampling.vector_samples import orthogonal as random_orthogonal
from accnp.array import Array
from accnp.errors import api_boundary

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip

Axes = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """What makes weights: called with a key, a shape and a dtype, it returns an array.

    A name for annotations. Those that draw raise a ValueError for integer dtypes.

    >>> import accnp as jnp
    >>> init = jnp.nn.initializers.ones
    >>> init(jnp.random.key(0), (2,), "float32")
    Array([1., 1.], dtype=float32)
    """

    @api_boundary
    def __call__(
        self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None
    ) -> Array: ...


def _kind(dtype: Any, function: str) -> np.dtype:
    if dtype is None:
        return dtypes.canonicalize_dtype(np.dtype(np.float64))
    kind = dtypes.requested_dtype(dtype, function)
    if kind.kind not in "fcV":
        raise ValueError(
            f"{function}: weights are floating or complex numbers; got dtype {kind.name}; "
            "pass a dtype of these"
        )
    return kind


@api_boundary
def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
    """Return zeros; the key is not used.

    Of a static shape; float32 by default.

    Raises:
        TypeError: a size is no integer, or negative.

    >>> import accnp as jnp
    >>> jnp.nn.initializers.zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return creation.zeros(shape, dtype)


@api_boundary
def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
    """Return ones; the key is not used.

    Of a static shape; float32 by default.

    Raises:
        TypeError: a size is no integer, or negative.

    >>> import accnp as jnp
    >>> jnp.nn.initializers.ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    return creation.ones(shape, dtype)


@api_boundary
def constant(value: Any, dtype: Any = None) -> Initializer:
    """Make an initializer that fills with a value, or an array that broadcasts.

    The initializer takes (key, shape, dtype=None); the weights are float32 unless a dtype is named
    there or here.

    Raises:
        ValueError: (of the initializer) the value does not broadcast to the shape.

    >>> import accnp as jnp
    >>> jnp.nn.initializers.constant(2.0)(None, (2,))
    Array([2., 2.], dtype=float32)
    """
    given = dtype

    @api_boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        dtype = given if dtype is None else dtype
        return creation.full(shape, value, _kind(None, "") if dtype is None else dtype)

    return init


@api_boundary
def uniform(scale: Any = 0.01, dtype: Any = None) -> Initializer:
    """Make an initializer of numbers uniform in [0, scale).

    The initializer takes (key, shape, dtype=None); the weights are float32 unless a dtype is named
    there or here.

    Raises:
        TypeError: (of the initializer) what was given is no key.
        ValueError: (of the initializer) the dtype is not floating.

    >>> import accnp as jnp
    >>> jnp.nn.initializers.uniform(10.0)(jnp.random.key(0), (2,))
    Array([9.47667 , 9.785799], dtype=float32)
    """
    given = dtype

    @api_boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _kind(given if dtype is None else dtype, "uniform initializer")
        return random.uniform(key, shape, kind) * creation.array(scale, kind)

    return init


@api_boundary
def normal(stddev: Any = 0.01, dtype: Any = None) -> Initializer:
    """Make an initializer of normal numbers with a standard deviation.

    The initializer takes (key, shape, dtype=None); the weights are float32 unless a dtype is named
    there or here.

    Raises:
        TypeError: (of the initializer) what was given is no key.
        ValueError: (of the initializer) the dtype is neither floating nor complex.

    >>> import accnp as jnp
    >>> jnp.nn.initializers.normal(1.0)(jnp.random.key(0), (2,)).shape
    (2,)
    """
    given = dtype

    @api_boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _kind(given if dtype is None else dtype, "normal initializer")
        return random.normal(key, shape, kind) * creation.array(stddev, kind)

    return init


@api_boundary
def truncated_normal(
    stddev: Any = 0.01, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Make an initializer of normal numbers, cut at bounds (in deviations before scaling).

    The initializer takes (key, shape, dtype=None); the weights are float32 unless a dtype is named
    there or here.

    Raises:
        TypeError: (of the initializer) what was given is no key.
        ValueError: (of the initializer) the dtype is not floating.

    >>> import accnp as jnp
    >>> w = jnp.nn.initializers.truncated_normal(1.0)(jnp.random.key(0), (100,))
    >>> bool((abs(w) < 2).all())
    True
    """
    given = dtype

    @api_boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _kind(given if dtype is None else dtype, "truncated_normal initializer")
        return distributions.truncated_normal(key, lower, upper, shape, kind) * creation.array(
            stddev, kind
        )

    return init


def _sizes(shape: tuple[int, ...], axes: Axes) -> int:
    return math.prod(shape[d] for d in ((axes,) if isinstance(axes, int) else axes))


def _fans(shape: tuple[int, ...], ins: Axes, outs: Axes, batch: Axes) -> tuple[float, float]:
    """How many numbers each output sums, and each input reaches."""
    if len(shape) <= 1 and isinstance(ins, int) and ins == -2:
        raise ValueError(
            "variance_scaling: inputs and outputs are two axes or more; got weights of shape "
            f"{shape}; name the axes by in_axis and out_axis, or use a plain normal initializer"
        )
    n_in, n_out, n_batch = (_sizes(shape, axes) for axes in (ins, outs, batch))
    field = math.prod(shape) / n_in / n_out / n_batch
    return n_in * field, n_out * field


def _polar(key: Any, shape: Any, radius: Any, kind: np.dtype) -> Array:
    """Complex numbers of a given law of radius (a function of uniform numbers), any angle."""
    real = np.finfo(kind).dtype
    for_radius, for_angle = keys.split(key)
    r = radius(random.uniform(for_radius, shape, real))
    angle = creation.array(2 * np.pi, real) * random.uniform(for_angle, shape, real)
    return (r * ufuncs.exp(1j * angle)).astype(kind)


@api_boundary
def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """Make an initializer whose variance is scale / n.

    Args:
        scale: positive number.
        mode: what n is: "fan_in" (inputs of one output), "fan_out", "fan_avg" (their mean) or
            "fan_geo_avg" (their geometric mean).
        distribution: "truncated_normal" (at two deviations), "normal" or "uniform".
        in_axis: axis or axes of inputs.
        out_axis: axis or axes of outputs.
        batch_axis: axes that count for neither; all others are a receptive field.
        dtype: of the weights if the call names none.

    The initializer takes (key, shape, dtype=None); the weights are float32 unless a dtype is named
    there or here.

    Raises:
        TypeError: (of the initializer) what was given is no key.
        ValueError: (of the initializer) there is no such mode or distribution, the shape has fewer
            than two axes and in_axis is not given, or the dtype is neither floating nor complex.

    >>> import accnp as jnp
    >>> init = jnp.nn.initializers.variance_scaling(1.0, "fan_in", "uniform")
    >>> init(jnp.random.key(0), (3, 2)).shape
    (3, 2)
    """
    given = dtype

    @api_boundary
    @promotes_inside
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _kind(given if dtype is None else dtype, "variance_scaling initializer")
        sizes = as_shape(shape, "variance_scaling initializer")
        fan_in, fan_out = _fans(sizes, in_axis, out_axis, batch_axis)
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        if mode not in fans:
            raise ValueError(f"variance_scaling: no such mode; got {mode!r}; use one of {[*fans]}")
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
            # The deviation of what is left of a standard normal law within two deviations.
            if whole:
                left = deviation / creation.array(0.95311164380491208, kind)
                cut = lambda u: ufuncs.sqrt(-ufuncs.log(1 - (1 - math.exp(-4)) * u))  # noqa: E731
                return _polar(key, sizes, cut, kind) * left
            left = deviation / creation.array(0.87962566103423978, kind)
            return distributions.truncated_normal(key, -2, 2, sizes, kind) * left
        raise ValueError(
            f"variance_scaling: no such distribution; got {distribution!r}; "
            "use 'normal', 'uniform' or 'truncated_normal'"
        )

    return init


def _scaled(name: str, scale: float, mode: str, distribution: str, what: str) -> Any:
    """Declare one of the usual ways to scale."""

    @api_boundary
    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Make an initializer of {what}.

    Args:
        in_axis: axis or axes of inputs.
        out_axis: axis or axes of outputs.
        batch_axis: axes that count for neither.
        dtype: of the weights if the call names none; float32 by default.

    The initializer takes (key, shape, dtype=None), a shape of two axes or more.

    Raises:
        TypeError: (of the initializer) what was given is no key.
        ValueError: (of the initializer) the shape has fewer axes, or the dtype is neither floating
            nor complex.

    >>> import accnp as jnp
    >>> jnp.nn.initializers.{name}()(jnp.random.key(0), (3, 2)).shape
    (3, 2)
    """
    return make


_AVERAGE = "variance 2 / (inputs + outputs)"
glorot_normal = xavier_normal = _scaled(
    "glorot_normal", 1.0, "fan_avg", "truncated_normal", f"normal numbers of {_AVERAGE}"
)
glorot_uniform = xavier_uniform = _scaled(
    "glorot_uniform", 1.0, "fan_avg", "uniform", f"uniform numbers of {_AVERAGE}"
)
lecun_normal = _scaled(
    "lecun_normal", 1.0, "fan_in", "truncated_normal", "normal numbers of variance 1 / inputs"
)
lecun_uniform = _scaled(
    "lecun_uniform", 1.0, "fan_in", "uniform", "uniform numbers of variance 1 / inputs"
)
he_normal = kaiming_normal = _scaled(
    "he_normal", 2.0, "fan_in", "truncated_normal", "normal numbers of variance 2 / inputs"
)
he_uniform = kaiming_uniform = _scaled(
    "he_uniform", 2.0, "fan_in", "uniform", "uniform numbers of variance 2 / inputs"
)


@api_boundary
def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Make an initializer of matrices with orthogonal rows or columns, whichever are fewer.

    Args:
        scale: factor of all.
        column_axis: the axis that is one side of the matrix; the others are the other side.
        dtype: of the weights if the call names none.

    The initializer takes (key, shape, dtype=None); the weights are float32 unless a dtype is named
    there or here.

    Raises:
        TypeError: (of the initializer) what was given is no key.
        ValueError: (of the initializer) the shape has fewer than two axes.

    >>> import accnp as jnp
    >>> w = jnp.nn.initializers.orthogonal()(jnp.random.key(0), (3, 3))
    >>> bool(jnp.allclose(w @ w.T, jnp.eye(3), atol=1e-5))
    True
    """
    given = dtype

    @api_boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _kind(given if dtype is None else dtype, "orthogonal initializer")
        sizes = as_shape(shape, "orthogonal initializer")
        if len(sizes) < 2:
            raise ValueError(
                f"orthogonal: weights have two axes or more; got shape {sizes}; "
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
def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Make an initializer of convolution weights: an orthogonal matrix at the centre, else zeros.

    Shapes are (*window, inputs, outputs) with one to three axes of the window; there are at least
    as many outputs as inputs.

    The initializer takes (key, shape, dtype=None); the weights are float32 unless a dtype is named
    there or here.

    Raises:
        TypeError: (of the initializer) what was given is no key.
        ValueError: (of the initializer) the shape is another one.

    >>> import accnp as jnp
    >>> jnp.nn.initializers.delta_orthogonal()(jnp.random.key(0), (3, 2, 2))[0]
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    given = dtype

    @api_boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _kind(given if dtype is None else dtype, "delta_orthogonal initializer")
        sizes = as_shape(shape, "delta_orthogonal initializer")
        if len(sizes) not in (3, 4, 5):
            raise ValueError(
                f"delta_orthogonal: weights have 3 to 5 axes; got shape {sizes}; "
                "use orthogonal for others"
            )
        if sizes[-1] < sizes[-2]:
            raise ValueError(
                "delta_orthogonal: there must be as many outputs as inputs, or more; got shape "
                f"{sizes}; make the last size the greatest"
            )
        matrix = orthogonal(scale, column_axis, kind)(key, sizes[-2:])
        centre = tuple([(n - 1) // 2 for n in sizes[:-2]])
        return creation.zeros(sizes, kind).at[centre].set(matrix)

    return init
