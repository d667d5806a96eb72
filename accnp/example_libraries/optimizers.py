# isort: skip_file
"""`accnp.example_libraries.optimizers`: optimizers and schedules."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.example_libraries.optimizer_functions import (
        JoinPoint, Optimizer, OptimizerState, adagrad, adam, adamax, clip_grads, constant,
        exponential_decay, inverse_time_decay, l2_norm, make_schedule, momentum, nesterov,
        optimizer, pack_optimizer_state, piecewise_constant, polynomial_decay, rmsprop,
        rmsprop_momentum, sgd, sm3, unpack_optimizer_state,
    )  # fmt: skip

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum",
    "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay",
    "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

_install_getattr(__name__, __all__)
