"""Types of functions."""

from typing import Any

class Signature:
    @property
    def return_type(self) -> Any: ...
    @property
    def args(self) -> tuple[Any, ...]: ...
