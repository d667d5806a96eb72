# isort: skip_file
"""`accnp.example_libraries.stax`: layers as pairs of functions."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
    from accnp.nn.initializers.initializers import glorot_normal, normal, ones, zeros
    from accnp.nn.initializers.initializers import glorot_normal as glorot
    from accnp.nn.initializers.initializers import normal as randn
    from accnp.example_libraries.layers import (
        AvgPool, BatchNorm, Conv, Conv1DTranspose, ConvTranspose, Dense, Dropout, Elu, Exp,
        FanInConcat, FanInSum, FanOut, Flatten, Gelu, GeneralConv, GeneralConvTranspose, Identity,
        LeakyRelu, LogSoftmax, MaxPool, Relu, Selu, Sigmoid, Softmax, Softplus, SumPool, Tanh,
        elementwise, parallel, serial, shape_dependent,
    )  # fmt: skip
    from accnp.nn.normalization import log_softmax, softmax, standardize
    from accnp.nn.normalization import log_softmax as logsoftmax

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu", "glorot",
    "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones", "parallel",
    "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus",
    "standardize", "zeros",
]  # fmt: skip

_install_getattr(__name__, __all__)
