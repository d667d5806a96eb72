"""Types of values."""

from collections.abc import Iterator, Sequence
from typing import Any

from numba.core import dispatcher as _dispatcher
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing import Signature

class Type:
    name: str
    mutable: bool
    def __init__(self, name: str) -> None: ...
    def __call__(self, *args: Type) -> Signature: ...
    def can_convert_to(self, typingctx: object, other: Type) -> Conversion | None: ...
    def can_convert_from(self, typingctx: object, other: Type) -> Conversion | None: ...

class Number(Type):
    bitwidth: int  # of all its subclasses

class Boolean(Type):
    bitwidth: int

class Integer(Number): ...
class Float(Number): ...

class Complex(Number):
    underlying_float: Float

class Dispatcher(Type):
    dispatcher: _dispatcher.Dispatcher

class NoneType(Type): ...
class Optional(Type): ...

class CPointer(Type):
    dtype: Any
    def __init__(self, dtype: Type, addrspace: int | None = None) -> None: ...

class Array(Type):
    dtype: Any
    ndim: int
    def __init__(self, dtype: Type, ndim: int, layout: str, readonly: bool = False) -> None: ...

class BaseTuple(Type):
    def __iter__(self) -> Iterator[Type]: ...

class StarArgTuple(BaseTuple):
    def __init__(self, types: Sequence[Type]) -> None: ...

def unliteral(lit_type: Any) -> Any: ...

boolean: Boolean
int64: Integer
float32: Float
float64: Float
complex64: Complex
complex128: Complex
void: NoneType
