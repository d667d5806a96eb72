"""What the compiler returns."""

from numba.core.annotations.type_annotations import TypeAnnotation
from numba.core.typing import Signature

class FunctionDescriptor:
    llvm_func_name: str

class CodeLibrary:
    llvm_strs: list[str]

class CompileResult:
    fndesc: FunctionDescriptor
    library: CodeLibrary
    signature: Signature
    type_annotation: TypeAnnotation
