# isort: skip_file
"""`accnp.scipy.stats`: distributions and statistics.

>>> import accnp as jax
>>> jax.scipy.stats.norm.cdf(0.0).item()
0.5
"""

from importlib import import_module
from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.stats.continuous import (
        beta, cauchy, chi2, expon, gamma, gennorm, gumbel_l, gumbel_r, laplace, logistic, norm,
        pareto, t, truncnorm, uniform, vonmises, wrapcauchy,
    )  # fmt: skip
    from accnp.scipy.stats.discrete import (
        bernoulli, betabinom, binom, dirichlet, geom, multinomial, multivariate_normal, nbinom,
        poisson,
    )  # fmt: skip
    from accnp.scipy.stats.samples import gaussian_kde, mode, rankdata, sem

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "gaussian_kde", "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode",
    "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "rankdata", "sem",
    "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

_install_getattr(__name__, __all__)

# Distributions are modules, which `import accnp.scipy.stats.norm` finds once they are declared.
import_module("accnp.scipy.stats.continuous")
import_module("accnp.scipy.stats.discrete")
