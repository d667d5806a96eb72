"""`inspect`: how a function or a pending array would be computed, without computing it."""

from accnp.api.inspect.inspecting import inspect
from accnp.api.inspect.inspection import Inspection
from accnp.api.inspect.kernels import InspectedKernel

__all__ = ["InspectedKernel", "Inspection", "inspect"]
