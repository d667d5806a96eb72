# isort: skip_file
"""`accnp.random`: keys and distributions, re-exported name by name."""

from accnp.api.distributions import (
    cauchy, double_sided_maxwell, exponential, geometric, laplace, logistic, lognormal, maxwell,
    multivariate_normal, orthogonal, pareto, rayleigh, triangular, weibull_min,
)  # fmt: skip
from accnp.api.random import (
    PRNGKey, bernoulli, bits, categorical, choice, clone, fold_in, gumbel, key, key_data,
    key_impl, normal, permutation, rademacher, randint, split, truncated_normal, uniform,
    wrap_key_data,
)  # fmt: skip
from accnp.missing import nearest

__all__ = [
    "PRNGKey", "bernoulli", "bits", "categorical", "cauchy", "choice", "clone",
    "double_sided_maxwell", "exponential", "fold_in", "geometric", "gumbel", "key", "key_data",
    "key_impl", "laplace", "logistic", "lognormal", "maxwell", "multivariate_normal", "normal",
    "orthogonal", "pareto", "permutation", "rademacher", "randint", "rayleigh", "split",
    "triangular", "truncated_normal", "uniform", "weibull_min", "wrap_key_data",
]  # fmt: skip

__getattr__ = nearest(__name__, __all__)
