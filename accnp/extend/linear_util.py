"""`accnp.extend.linear_util`: functions wrapped for transformations."""

from accnp.api.jaxprs.wrapped import WrappedFun, wrap_init
from accnp.missing import nearest as _nearest

__all__ = ["WrappedFun", "wrap_init"]

__getattr__ = _nearest(__name__, __all__)
