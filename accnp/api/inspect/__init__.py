"""`inspect`: how a function or a pending array would be computed, without computing it."""

from accnp.api.inspect.inspection import Inspection
from accnp.api.inspect.kernels import InspectedKernel
from accnp.api.inspect.look import inspect

__all__ = ["InspectedKernel", "Inspection", "inspect"]
