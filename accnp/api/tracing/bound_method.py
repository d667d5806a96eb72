"""`BoundMethod`: a jitted method of an instance, with the stages and `call_into` of the function.

Made by `JitFunction.__get__`. Calls cost as much as those of `functools.partial`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from accnp.pytree import PyTree

if TYPE_CHECKING:
    from accnp.api.jit.stages import Lowered, TracedStage

__all__ = ["BoundMethod"]

P = ParamSpec("P")
R = TypeVar("R")


class BoundMethod(functools.partial[R], Generic[P, R]):
    """Jitted function whose first argument is an instance."""

    if TYPE_CHECKING:
        func: Any

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def call_into(self, out: PyTree, /, *args: Any, **kwargs: Any) -> PyTree:
        """Call the method and write its results to given NumPy arrays."""
        return self.func.call_into(out, *self.args, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> TracedStage:
        """Trace the method for given arguments."""
        return self.func.trace(*self.args, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and plan the method for given arguments."""
        return self.func.lower(*self.args, *args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of the results."""
        return self.func.eval_shape(*self.args, *args, **kwargs)
