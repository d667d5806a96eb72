# isort: skip_file
"""`accnp.nn`: activation functions and normalizations.

>>> import accnp as jax
>>> jax.nn.relu(jax.numpy.array([-1.0, 2.0]))
Array([0., 2.], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.nn.activations import (
        celu, elu, gelu, hard_sigmoid, hard_silu, hard_swish, hard_tanh, identity, leaky_relu,
        log1mexp, log_sigmoid, mish, relu, relu6, selu, sigmoid, silu, soft_sign, softplus,
        sparse_plus, sparse_sigmoid, squareplus, swish, tanh,
    )  # fmt: skip
    from accnp.nn.attention import (
        dot_product_attention, get_scaled_dot_general_config, scaled_dot_general, scaled_matmul,
    )  # fmt: skip
    from accnp.nn.normalization import (
        glu, log_softmax, logmeanexp, one_hot, softmax, standardize,
    )  # fmt: skip
    from accnp.numpy.log_sum_exp import logsumexp
    from accnp.nn import initializers

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers",
    "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu", "sigmoid", "silu",
    "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
    "standardize", "swish", "tanh",
]  # fmt: skip

_install_getattr(__name__, __all__)
