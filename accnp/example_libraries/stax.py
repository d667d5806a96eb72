# isort: skip_file
"""`accnp.example_libraries.stax`: layers as pairs of functions, re-exported one by one."""

from accnp.api.networks.activations import (
    elu, gelu, leaky_relu, relu, selu, sigmoid, softplus,
)  # fmt: skip
from accnp.api.networks.initializers import (
    glorot_normal, glorot_normal as glorot, normal, normal as randn, ones, zeros,
)  # fmt: skip
from accnp.api.networks.layers import (
    AvgPool, BatchNorm, Conv, Conv1DTranspose, ConvTranspose, Dense, Dropout, Elu, Exp, FanInConcat,
    FanInSum, FanOut, Flatten, Gelu, GeneralConv, GeneralConvTranspose, Identity, LeakyRelu,
    LogSoftmax, MaxPool, Relu, Selu, Sigmoid, Softmax, Softplus, SumPool, Tanh, elementwise,
    parallel, serial, shape_dependent,
)  # fmt: skip
from accnp.api.networks.nn import log_softmax, log_softmax as logsoftmax, softmax, standardize
from accnp.module_getattr import install_getattr as _install_getattr

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
