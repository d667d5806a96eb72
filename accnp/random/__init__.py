# isort: skip_file
"""`accnp.random`: PRNG keys, and samples of probability distributions.

>>> import accnp as jax
>>> key = jax.random.key(0)
>>> jax.random.normal(key, (2, 3)).shape
(2, 3)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.primitives.rare_primitives import random_gamma_p
    from accnp.random.count_samples import binomial, multinomial, poisson
    from accnp.random.distributions import (
        categorical, cauchy, double_sided_maxwell, exponential, geometric, gumbel, laplace,
        logistic, lognormal, maxwell, pareto, rademacher, rayleigh, triangular, truncated_normal,
        weibull_min,
    )  # fmt: skip
    from accnp.random.gamma_samples import (
        ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t, wald,
    )  # fmt: skip
    from accnp.random.keys import key_dtype
    from accnp.random.basic_samplers import (
        PRNGKey, bernoulli, bits, choice, clone, fold_in, key, key_data, key_impl, normal,
        permutation, randint, split, uniform, wrap_key_data,
    )  # fmt: skip
    from accnp.random.vector_samples import multivariate_normal, orthogonal

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f",
    "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_dtype",
    "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multinomial",
    "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "random_gamma_p", "rayleigh", "split", "t", "triangular", "truncated_normal",
    "uniform", "wald", "weibull_min", "wrap_key_data",
]  # fmt: skip

_install_getattr(__name__, __all__)
