"""Modified Bessel functions of orders 0 and 1, and their products with exp(-|x|).

The functions bessel_i0, bessel_i1, bessel_i0e and bessel_i1e emit LLVM IR. They take a float or
double ``V`` and return a ``V`` of the same type; floats are computed as doubles. The registry makes
them available to kernels. Up to 8, they use the series in x^2/4, and from there on polynomials in
1/x over sqrt(x) (NIST Digital Library of Mathematical Functions, 10.25.2 and 10.40.1), interpolated
at Chebyshev nodes with mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accnp.compiler.llvm.scalars.exp import exp
from accnp.compiler.llvm.scalars.ir import F32, F64, V, copysign, fabs, fma, poly, sqrt, where
from accnp.compiler.llvm.scalars.registry import UNARY, define

# (I0(2 sqrt(a)) - 1) / a, 0 <= a <= 16
I0_NEAR_64 = (
    1.0, 0.24999999999999978, 0.02777777777777875, 0.0017361111111093212, 6.944444444616768e-05,
    1.9290123446808463e-06, 3.936759926835679e-08, 6.151186352073215e-10, 7.594076203674035e-12,
    7.593826261486644e-14, 6.2782596125899935e-16, 4.3438583592285594e-18,
    2.6459481729049967e-20, 1.1142728859197163e-22, 9.319037302519698e-25,
)  # fmt: skip
# the same for floats: to 3e-11
I0_NEAR_32 = (
    1.0000000000613718, 0.24999999907208958, 0.02777778009328084, 0.0017361088612821108,
    6.944556332698477e-05, 1.928688563527144e-06, 3.942580171674763e-08, 6.084363416285332e-10,
    8.082326727247898e-12, 5.4194257075113705e-14, 1.1496577904247326e-15,
)  # fmt: skip
# (I1(2 sqrt(a)) / sqrt(a) - 1) / a, 0 <= a <= 16; for floats to 2e-10
I1_NEAR_64 = (
    0.5, 0.08333333333333331, 0.0069444444444445004, 0.0003472222222221193,
    1.1574074074173187e-05, 2.7557319218244207e-07, 4.9209498831124465e-09,
    6.834652024432265e-11, 7.594068659611249e-13, 6.903555797446423e-15, 5.231322675888681e-17,
    3.3442300506385306e-19, 1.880771354951542e-21, 7.606752944827284e-24, 5.669579277854459e-26,
)  # fmt: skip
I1_NEAR_32 = (
    0.49999999981718235, 0.0833333356174629, 0.006944439744806836, 0.0003472259647842155,
    1.1572564614616026e-05, 2.7592159125091784e-07, 4.872265322272345e-09, 7.25177658344036e-11,
    5.474013297595184e-13, 1.2594024612199042e-14,
)  # fmt: skip
# I0(x) exp(-x) sqrt(x) in 1/x - 1/16, x >= 8; for floats to 2e-10
I0_FAR_64 = (
    0.4021765094450081, 0.053768831738685664, 0.03487131504443583, 0.04564186641021642,
    0.0972454328638334, 0.3118043949935277, 1.4885171356560098, 10.556499345371257,
    92.53583339685075, 519.0736993596148, -7399.4099127844565, -235809.9189073008,
    -1539273.339762341, 33959849.56012221, 546212511.9743052, -4018840806.936886,
    -114153342384.6759, 442096389238.02985, 18328218596818.52, -42026809998250.38,
    -2150603480419067.2, 2838023316611292.0, 1.6037318144527456e+17, -9.515680496232826e+16,
    -5.600590092177202e+18,
)  # fmt: skip
I0_FAR_32 = (
    0.4021765094053054, 0.053768832502241015, 0.03487165640564403, 0.04563575680852321,
    0.09669677125599896, 0.3185920870888115, 1.8304333466274534, 9.029041910927784,
)  # fmt: skip
# I1(x) exp(-x) sqrt(x), likewise
I1_FAR_64 = (
    0.38939845902587233, -0.15599323509177165, -0.0561243555415815, -0.06159788933601801,
    -0.12025266919614995, -0.3653087379073204, -1.6779436399217917, -11.577447727367897,
    -100.3759466724738, -579.0731115016168, 7384.094833090888, 246812.97977883957,
    1700355.8091966936, -34365851.72894401, -579647951.6452092, 3927584052.8745346,
    119664389845.4911, -418274698304.32404, -19115126120337.855, 38885845696707.03,
    2238171019068116.5, -2596320657834420.0, -1.667593744368608e+17, 8.66681711510311e+16,
    5.821679393273399e+18,
)  # fmt: skip
I1_FAR_32 = (
    0.3893984590744713, -0.1559932358610469, -0.0561247706512126, -0.06159174510102916,
    -0.1196036547354632, -0.37205525570869374, -2.0666878765014927, -10.161899277741165,
)  # fmt: skip


def _evaluate_branches(x: V, single: bool, order: int) -> tuple[V, V, V]:
    """Return, for x >= 0, whether x is small, the function for small x, and the function times
    exp(-x) for other x."""
    near, far = ((I0_NEAR_32, I0_FAR_32), (I1_NEAR_32, I1_FAR_32))[order] if single else (
        (I0_NEAR_64, I0_FAR_64), (I1_NEAR_64, I1_FAR_64)
    )[order]  # fmt: skip
    low = x < 8.0
    u = where(low, x * 0.5, 1.0)
    a = u * u
    y = fma(a, poly(a, near), x.const(1.0))
    v = where(low, 8.0, x)
    return low, u * y if order else y, poly(1.0 / v - 0.0625, far) / sqrt(v)


def _scaled_bessel(x: V, single: bool, order: int) -> V:
    low, near, far = _evaluate_branches(x, single, order)
    return where(low, near * exp(where(low, -x, 0.0)), far)


def _unscaled_bessel(x: V, single: bool, order: int) -> V:
    """Return the function without the factor exp(-x). For large x, exp(x) has two factors, since it
    overflows before the product does. The result is NaN for infinity, as in SciPy and JAX."""
    low, near, far = _evaluate_branches(x, single, order)
    high = x > 700.0
    return where(
        low, near, far * where(high, x.const(math.exp(5.0)), 1.0) * exp(where(high, x - 5.0, x))
    )


def _make_bessel(form: Callable[[V, bool, int], V], order: int) -> Callable[[V], V]:
    """Return the function of numbers of either sign; the function of order 1 is odd."""

    def function(x: V) -> V:
        y = form(fabs(x.to(F64) if x.single else x), x.single, order)
        y = y.to(F32) if x.single else y
        return copysign(y, x) if order else y

    return function


bessel_i0e = define(UNARY, "bessel_i0e")(_make_bessel(_scaled_bessel, 0))
bessel_i1e = define(UNARY, "bessel_i1e")(_make_bessel(_scaled_bessel, 1))
bessel_i0 = define(UNARY, "bessel_i0")(_make_bessel(_unscaled_bessel, 0))
bessel_i1 = define(UNARY, "bessel_i1")(_make_bessel(_unscaled_bessel, 1))
