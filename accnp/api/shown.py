"""Functions that jaxprs show as calls under their own names, as jax's do: `jit[name=sort ...]`.

In: the functions where they are defined. Out: the same, wrapped by `named`; the public
modules take them from here.
"""

from __future__ import annotations

from accnp.api import cumulative, joining, manipulation, reductions, sorting, ufuncs
from accnp.api.named import named

__all__ = [
    "acosh",
    "append",
    "arccosh",
    "bitwise_count",
    "clip",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_sum",
    "flip",
    "fliplr",
    "flipud",
    "isinf",
    "nanmax",
    "nanmin",
    "ptp",
    "rint",
    "round",
    "sort",
    "sort_complex",
    "trunc",
]

acosh = named(ufuncs.acosh, "arccosh")
append = named(joining.append, arrays=2)
arccosh = named(ufuncs.arccosh)
bitwise_count = named(ufuncs.bitwise_count)
clip = named(ufuncs.clip, arrays=3)
count_nonzero = named(reductions.count_nonzero)
cumprod = named(cumulative.cumprod)
cumsum = named(cumulative.cumsum)
cumulative_sum = named(cumulative.cumulative_sum, "_cumsum_with_promotion")
flip = named(manipulation.flip, "_flip")
fliplr = named(manipulation.fliplr, "_flip")
flipud = named(manipulation.flipud, "_flip")
isinf = named(ufuncs.isinf)
nanmax = named(cumulative.nanmax)
nanmin = named(cumulative.nanmin)
ptp = named(reductions.ptp, "_ptp")
rint = named(ufuncs.rint)
round = named(ufuncs.round)
sort = named(sorting.sort)
sort_complex = named(sorting.sort_complex)
trunc = named(ufuncs.trunc)
