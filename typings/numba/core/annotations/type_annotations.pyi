"""Types of the variables and calls of a function."""

from collections.abc import Mapping
from typing import Any

from numba.core.types import Type
from numba.core.typing import Signature

class TypeAnnotation:
    calltypes: Mapping[Any, Signature | None]
    typemap: Mapping[str, Type]
