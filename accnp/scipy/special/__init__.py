# isort: skip_file
"""`accnp.scipy.special`: special functions.

>>> import accnp as jax
>>> jax.scipy.special.expit(jax.numpy.array([0.0]))
Array([0.5], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.special.legendre import lpmn, lpmn_values, sph_harm_y
    from accnp.scipy.special.functions import (
        bernoulli, bessel_jn, beta, betainc, betaln, boxcox, boxcox1p, comb, dawsn, digamma, entr,
        erf, erfc, erfcx, erfinv, exp1, expi, expit, expn, factorial, fresnel, gamma, gammainc,
        gammaincc, gammaln, gammasgn, hyp1f1, hyp2f1, i0, i0e, i1, i1e, kl_div, log_ndtr, loggamma,
        logit, logsumexp, multigammaln, ndtr, ndtri, owens_t, poch, polygamma, rel_entr, sici,
        spence, wofz, xlog1py, xlogy, zeta,
    )  # fmt: skip
    from accnp.scipy.special.softmax_functions import log_softmax, softmax

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb",
    "dawsn", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit",
    "expn", "factorial", "fresnel", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn",
    "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax",
    "loggamma", "logit", "logsumexp", "lpmn", "lpmn_values", "multigammaln", "ndtr", "ndtri",
    "owens_t", "poch", "polygamma", "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip

_install_getattr(__name__, __all__)
