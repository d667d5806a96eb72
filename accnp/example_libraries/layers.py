"""Layers of networks as pairs of functions, as in `jax.example_libraries.stax`.

A layer is `(init_fun, apply_fun)` with `init_fun(rng, input_shape) -> (output_shape, params)` and
`apply_fun(params, inputs, **kwargs)`; `kwargs` may contain a key `rng` for random layers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct, eval_shape
from accnp.docstrings import filled
from accnp.lax.convolutions.convolution import conv_general_dilated, conv_transpose
from accnp.lax.elementwise import add
from accnp.lax.elementwise import max as maximum
from accnp.lax.user_reductions import reduce_window
from accnp.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
from accnp.nn.initializers import initializers
from accnp.nn.normalization import log_softmax, softmax, standardize
from accnp.numpy.creation import ones
from accnp.numpy.joining import concatenate
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import exp, tanh
from accnp.random.basic_samplers import bernoulli, split

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "parallel", "serial",
    "shape_dependent",
]  # fmt: skip

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]

_WEIGHTS = initializers.glorot_normal()
_BIAS, _SMALL = initializers.normal(), initializers.normal(1e-6)


def _layer_without_parameters(shape_of: Callable[[Any], Any], fun: Callable[[Any], Any]) -> Layer:
    """Make a layer without parameters."""
    return lambda rng, input_shape: (shape_of(input_shape), ()), lambda _, x, **__: fun(x)


@filled
def Dense(
    out_dim: int,
    W_init: Callable[..., Any] = _WEIGHTS,
    b_init: Callable[..., Any] = _BIAS,
) -> Layer:
    """Make a fully connected layer, x @ W + b.

    Parameters
    ----------
    out_dim : int
        Length of the last axis of the output.
    W_init : callable, optional
        Initializer of W, of shape (n, out_dim) for inputs of shape (..., n).
    b_init : callable, optional
        Initializer of b, of shape (out_dim,).

    Returns
    -------
    {returns_layer}

    Raises
    ------
    TypeError
        From `apply_fun`, if the shapes of inputs and W do not match.

    See Also
    --------
    example_libraries.stax.serial : Apply layers one after the other.
    nn.initializers.glorot_normal : Initializer of weights.

    Notes
    -----
    Parameters are float32 unless the initializers return another dtype.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2))
    >>> shape, params = init(jax.random.PRNGKey(0), (-1, 3))
    >>> shape, apply(params, jax.numpy.ones((5, 3))).shape
    ((-1, 2), (5, 2))
    """

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        of_w, of_b = split(rng)
        weights = W_init(of_w, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(of_b, (out_dim,)))

    return init_fun, lambda params, x, **_: x @ params[0] + params[1]


def _general(
    convolve: Callable[..., Any], spec: Any, out_chan: int, filter_shape: Shape,
    W_init: Any, b_init: Any,
) -> Layer:  # fmt: skip
    lhs, rhs, out = spec
    make = W_init or initializers.glorot_normal(rhs.index("O"), rhs.index("I"))

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        shape = tuple(
            out_chan if c == "O" else input_shape[lhs.index("C")] if c == "I" else next(sizes)
            for c in rhs
        )
        of_w, of_b = split(rng)
        params = (
            make(of_w, shape),
            b_init(of_b, tuple(out_chan if c == "C" else 1 for c in out)),
        )
        # An unknown batch size, -1, is kept.
        batch = lhs.index("N")
        known = [1 if i == batch else n for i, n in enumerate(input_shape)]
        out_shape = list(eval_shape(convolve, ShapeDtypeStruct(known, "float32"), params[0]).shape)
        out_shape[out.index("N")] = input_shape[batch]
        return tuple(out_shape), params

    return init_fun, lambda params, x, **_: convolve(x, params[0]) + params[1]


def _convolution(operation: Callable[..., Any]) -> Callable[..., Layer]:
    @filled
    def layer(
        dimension_numbers: Any,
        out_chan: int,
        filter_shape: Shape,
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        W_init: Any = None,
        b_init: Callable[..., Any] = _SMALL,
    ) -> Layer:
        """Make a convolution layer, or a transposed one, with a bias.

        Parameters
        ----------
        dimension_numbers : tuple of str
            Meaning of the axes of inputs, weights and outputs, as for `lax.conv_general_dilated`.
        out_chan : int
            How many channels the output has.
        filter_shape : tuple of int
            Length of the window along each spatial axis.
        strides : sequence of int, optional
            Distance between windows along each spatial axis. The default is 1.
        padding : str or sequence of (int, int), optional
            "VALID", the default, "SAME", or the padding before and after each spatial axis.
        W_init : callable, optional
            Initializer of the weights. The default is Glorot's.
        b_init : callable, optional
            Initializer of the bias.

        Returns
        -------
        {returns_layer}

        Raises
        ------
        TypeError
            From `apply_fun`, if shapes do not match.

        See Also
        --------
        lax.conv_general_dilated : Convolution.
        lax.conv_transpose : Transposed convolution.

        Examples
        --------
        >>> import accnp as jnp
        >>> from accnp.example_libraries import stax
        >>> init, apply = stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 4, (3, 3))
        >>> shape, params = init(jnp.random.key(0), (1, 8, 8, 1))
        >>> shape
        (1, 6, 6, 4)
        """
        steps = strides or (1,) * len(filter_shape)

        def convolve(x: Any, weights: Any) -> Any:
            return operation(x, weights, steps, padding, dimension_numbers=dimension_numbers)

        return _general(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)

    return layer


GeneralConv = _convolution(conv_general_dilated)
GeneralConvTranspose = _convolution(conv_transpose)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


@filled
def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable[..., Any] = initializers.zeros,
    gamma_init: Callable[..., Any] = initializers.ones,
) -> Layer:
    """Make a layer that normalizes over axes, then multiplies by gamma and adds beta.

    Parameters
    ----------
    axis : int or sequence of int, optional
        Axes over which mean and variance are computed. The default is (0, 1, 2).
    epsilon : float, optional
        Term that avoids division by zero. The default is 1e-5.
    center : bool, optional
        Whether to add beta. The default is True.
    scale : bool, optional
        Whether to multiply by gamma. The default is True.
    beta_init : callable, optional
        Initializer of beta. The default is zeros.
    gamma_init : callable, optional
        Initializer of gamma. The default is ones.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    ValueError
        From `apply_fun`, if an axis is out of range.

    See Also
    --------
    nn.standardize : Normalization without parameters.

    Notes
    -----
    There are no running averages: each call uses the mean and variance of its own batch.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.example_libraries import stax
    >>> init, apply = stax.BatchNorm(axis=(0,))
    >>> _, params = init(jax.random.PRNGKey(0), (4, 2))
    >>> float(abs(apply(params, jax.numpy.arange(8.0).reshape(4, 2)).mean())) < 1e-6
    True
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        of_beta, of_gamma = split(rng)
        beta = beta_init(of_beta, shape) if center else ()
        return input_shape, (beta, gamma_init(of_gamma, shape) if scale else ())

    def apply_fun(params: Any, x: Any, **_: Any) -> Any:
        beta, gamma = params
        inserted = tuple(None if i in axes else slice(None) for i in range(x.ndim))
        out = standardize(x, axes, epsilon=epsilon)
        out = out * gamma[inserted] if scale else out
        return out + beta[inserted] if center else out

    return init_fun, apply_fun


@filled
def elementwise(fun: Callable[..., Any], **fun_kwargs: object) -> Layer:
    """Make a layer without parameters from a function that keeps shapes.

    Parameters
    ----------
    fun : callable
        Function of an array. Dtypes and errors are its own.
    **fun_kwargs : object
        Keyword arguments of each call.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    TypeError
        From `apply_fun`, if the function rejects the input.

    See Also
    --------
    example_libraries.stax.serial : Apply layers one after the other.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.example_libraries import stax
    >>> _, apply = stax.elementwise(jax.numpy.clip, max=1.0)
    >>> apply((), jax.numpy.array([0.5, 2.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return _layer_without_parameters(lambda shape: shape, functools.partial(fun, **fun_kwargs))


Tanh = elementwise(tanh)
Relu = elementwise(relu)
Exp = elementwise(exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)
Flatten = _layer_without_parameters(
    lambda shape: (shape[0], math.prod(shape[1:])), lambda x: x.reshape((x.shape[0], -1))
)


def _pool(combine: Callable[..., Any], start: float, average: bool = False) -> Callable[..., Layer]:
    @filled
    def pool(
        window_shape: Shape,
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """Make a layer that reduces windows over the spatial axes of its input.

        Parameters
        ----------
        window_shape : sequence of int
            Length of the window along each spatial axis.
        strides : sequence of int, optional
            Distance between windows along each spatial axis. The default is 1.
        padding : str or sequence of (int, int), optional
            "VALID", the default, "SAME", or the padding before and after each spatial axis.
        spec : str, optional
            One letter for each axis of the input: N for the batch, C for the channels, and any
            others for spatial axes. The default has N first and C last.

        Returns
        -------
        {returns_layer}

        Raises
        ------
        ValueError
            If there is not one stride for each axis of the window.

        See Also
        --------
        lax.reduce_window : Reduce windows of an array.
        example_libraries.stax.serial : Apply layers one after the other.

        Notes
        -----
        Floating dtypes are kept.

        Examples
        --------
        >>> import accnp as jax
        >>> from accnp.example_libraries import stax
        >>> _, apply = stax.MaxPool((2,))
        >>> apply((), jax.numpy.arange(4.0).reshape(1, 4, 1)).ravel()
        Array([1., 2., 3.], dtype=float32)
        """
        spatial = [i for i in range(len(window_shape) + 2)]
        n, c = (spec.index("N"), spec.index("C")) if spec else (0, len(window_shape) + 1)
        spatial = [i for i in spatial if i not in (n, c)]
        window, steps = [1] * len(spatial) + [1, 1], [1] * len(spatial) + [1, 1]
        for i, size, step in zip(
            spatial, window_shape, strides or (1,) * len(window_shape), strict=True
        ):
            window[i], steps[i] = size, step

        def reduce(x: Any) -> Any:
            out = reduce_window(x, start, combine, window, steps, padding)
            if not average:
                return out
            whole = [1 if i in (n, c) else size for i, size in enumerate(x.shape)]
            return out / reduce_window(ones(whole), 0.0, add, window, steps, padding)

        def shape_of(input_shape: Shape) -> Shape:
            known = [1 if i == n else size for i, size in enumerate(input_shape)]
            out_shape = list(eval_shape(reduce, ShapeDtypeStruct(known, "float32")).shape)
            out_shape[n] = input_shape[n]
            return tuple(out_shape)

        return _layer_without_parameters(shape_of, reduce)

    return pool


MaxPool = _pool(maximum, -math.inf)
SumPool = _pool(add, 0.0)
AvgPool = _pool(add, 0.0, average=True)


@filled
def Dropout(rate: float, mode: str = "train") -> Layer:
    """Make a layer that sets random elements to zero during training.

    Parameters
    ----------
    rate : float
        Probability with which an element is kept. Kept elements are divided by it.
    mode : str, optional
        "train", the default; with any other value the layer does nothing.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    ValueError
        From `apply_fun`, if it is called without `rng`.

    See Also
    --------
    random.bernoulli : Random bools.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.example_libraries import stax
    >>> _, apply = stax.Dropout(0.5)
    >>> apply((), jax.numpy.ones(4), rng=jax.random.PRNGKey(1)).max()
    Array(2., dtype=float32)
    """

    def apply_fun(_: Any, x: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout: apply_fun needs a key; got no rng; pass apply_fun(params, x, rng=key)"
            )
        return where(bernoulli(rng, rate, x.shape), x / rate, 0) if mode == "train" else x

    return lambda rng, input_shape: (input_shape, ()), apply_fun


# --- combinators ---------------------------------------------------------------------------------


@filled
def FanOut(num: int) -> Layer:
    """Make a layer that passes its input on several times, for `parallel`.

    Parameters
    ----------
    num : int
        How many copies of the input to return.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    TypeError
        From the layer, if `num` is not an integer.

    See Also
    --------
    example_libraries.stax.parallel : Apply a layer to each copy.

    Notes
    -----
    The input may have any shape and dtype.

    Examples
    --------
    >>> from accnp.example_libraries import stax
    >>> init, apply = stax.FanOut(2)
    >>> init(None, (3,)), apply((), 1.5)
    (([(3,), (3,)], ()), [1.5, 1.5])
    """
    return _layer_without_parameters(lambda shape: [shape] * num, lambda x: [x] * num)


FanInSum = _layer_without_parameters(lambda shapes: shapes[0], sum)


@filled
def FanInConcat(axis: int = -1) -> Layer:
    """Make a layer that joins a list of inputs along an axis.

    Parameters
    ----------
    axis : int, optional
        Axis along which to join. The default is the last.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    ValueError
        From `apply_fun`, if the inputs differ in the length of another axis.

    See Also
    --------
    example_libraries.stax.FanOut : Copy an input.
    example_libraries.stax.parallel : Apply a layer to each of several inputs.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.example_libraries import stax
    >>> init, apply = stax.FanInConcat()
    >>> init(None, [(3, 1), (3, 2)])[0]
    (3, 3)
    """

    def shape_of(shapes: Sequence[Shape]) -> Shape:
        place = axis % len(shapes[0])
        total = sum(shape[place] for shape in shapes)
        return (*shapes[0][:place], total, *shapes[0][place + 1 :])

    return _layer_without_parameters(shape_of, lambda xs: concatenate(xs, axis))


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else split(rng, count)


@filled
def serial(*layers: Layer) -> Layer:
    """Make a layer that applies several layers one after the other.

    Parameters
    ----------
    *layers : (init_fun, apply_fun)
        Layers to combine, the first one first.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    ValueError
        From `apply_fun`, if there are more or fewer parameters than layers.

    See Also
    --------
    example_libraries.stax.parallel : Apply each layer to its own input.

    Notes
    -----
    The parameters are a list of those of the layers. Shapes and dtypes of the output are those of
    the last layer.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.example_libraries import stax
    >>> init, apply = stax.serial(stax.Tanh, stax.Relu)
    >>> shape, params = init(jax.random.PRNGKey(0), (2,))
    >>> shape, apply(params, jax.numpy.zeros(2))
    ((2,), Array([0., 0.], dtype=float32))
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init, _ in layers:
            rng, of_layer = split(rng)
            input_shape, layer_params = init(of_layer, input_shape)
            params.append(layer_params)
        return input_shape, params

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), p, key in zip(layers, params, keys, strict=True):
            x = apply(p, x, rng=key, **kwargs)
        return x

    return init_fun, apply_fun


@filled
def parallel(*layers: Layer) -> Layer:
    """Make a layer that applies each of several layers to its own input.

    Parameters
    ----------
    *layers : (init_fun, apply_fun)
        Layers to combine, one for each element of the input.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    ValueError
        From `apply_fun`, if there are more or fewer inputs than layers.

    See Also
    --------
    example_libraries.stax.FanOut : Copy an input.
    example_libraries.stax.serial : Apply layers one after the other.

    Notes
    -----
    Shapes and dtypes of the outputs are those of each layer.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.example_libraries import stax
    >>> _, apply = stax.parallel(stax.Identity, stax.Relu)
    >>> [float(x) for x in apply(((), ()), [jax.numpy.array(-1.0), jax.numpy.array(-1.0)])]
    [-1.0, 0.0]
    """

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> Any:
        results = [
            init(key, shape)
            for (init, _), key, shape in zip(
                layers, split(rng, len(layers)), input_shape, strict=True
            )
        ]
        return tuple(shape for shape, _ in results), tuple(params for _, params in results)

    def apply_fun(params: Any, xs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [
            apply(p, x, rng=key, **kwargs)
            for (_, apply), p, x, key in zip(layers, params, xs, keys, strict=True)
        ]

    return init_fun, apply_fun


@filled
def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Make a layer from a function of the shape of its input.

    Parameters
    ----------
    make_layer : callable
        Function from the shape of the input to a layer.

    Returns
    -------
    {returns_layer}

    Raises
    ------
    TypeError
        From the layer, if `make_layer` does not return one.

    See Also
    --------
    example_libraries.stax.serial : Apply layers one after the other.

    Examples
    --------
    >>> from accnp.example_libraries import stax
    >>> init, _ = stax.shape_dependent(lambda shape: stax.FanOut(len(shape)))
    >>> init(None, (4, 2))[0]
    [(4, 2), (4, 2)]
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        return make_layer(x.shape)[1](params, x, **kwargs)

    return init_fun, apply_fun
