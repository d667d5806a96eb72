"""Kernel sources used by the runtime tests."""


def elementwise(constant: float = 2.0) -> str:
    """Return the source of `o = x * x + x * constant` over float32."""
    return f"""
def kernel(lo, hi, x, o):
    for i in range(lo, hi):
        a = x[i]
        o[i] = f4(f4(a * a) + f4(a * f4({constant})))
"""


SIGNATURE = ("f4*", "f4*")
