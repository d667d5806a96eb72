"""Functions that are compiled for the types they are called with."""

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.types import Type
from numba.core.typing import Signature

class _FunctionCompiler:
    def fold_argument_types(
        self, args: tuple[Type, ...], kws: Mapping[str, Type]
    ) -> tuple[object, tuple[Type, ...]]: ...

class Dispatcher:
    targetoptions: dict[str, Any]
    overloads: Mapping[tuple[Type, ...], CompileResult]
    nopython_signatures: list[Signature]
    _compiler: _FunctionCompiler
    @property
    def py_func(self) -> FunctionType: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def compile(self, sig: tuple[Type, ...]) -> object: ...
    def inspect_llvm(self, signature: tuple[Type, ...]) -> str: ...
