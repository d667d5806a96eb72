"""`accnp.extend.source_info_util`: which lines of a program errors show."""

from accnp.api.environment.process import register_exclusion
from accnp.missing import nearest as _nearest

__all__ = ["register_exclusion"]

__getattr__ = _nearest(__name__, __all__)
