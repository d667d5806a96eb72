"""Classes of instructions."""

from collections.abc import Sequence
from typing import Any

from llvmlite.ir import AttributeSet, Block, Constant, Function, Module, NamedValue, Type, Value

class Instruction(NamedValue):
    opname: str
    operands: Sequence[Any]
    flags: list[str]
    metadata: dict[str, Any]
    def __init__(
        self,
        parent: object,
        typ: Type,
        opname: str,
        operands: Sequence[object],
        name: str = "",
        flags: Sequence[str] = (),
    ) -> None: ...
    @property
    def function(self) -> Function: ...
    @property
    def module(self) -> Module: ...
    def replace_usage(self, old: Value, new: Value) -> None: ...
    def set_metadata(self, name: str, node: Value) -> None: ...

class FastMathFlags(AttributeSet): ...

class CallInstr(Instruction):
    callee: Any
    args: Sequence[Any]
    tail: str
    fastmath: FastMathFlags
    attributes: AttributeSet
    def replace_callee(self, newfunc: Function) -> None: ...

class Terminator(Instruction): ...

class PredictableInstr(Instruction):
    def set_weights(self, weights: Sequence[int]) -> None: ...

class Branch(Terminator): ...
class ConditionalBranch(PredictableInstr, Terminator): ...

class SwitchInstr(PredictableInstr, Terminator):
    default: Block
    cases: list[tuple[Constant, Block]]
    def add_case(self, val: Constant | int, block: Block) -> None: ...

class SelectInstr(Instruction): ...

class CompareInstr(Instruction):
    op: str

class CastInstr(Instruction): ...

class LoadInstr(Instruction):
    align: int | None

class AllocaInstr(Instruction):
    allocated_type: Any
    align: int | None

class PhiInstr(Instruction):
    incomings: list[tuple[Value, Block]]
    def add_incoming(self, value: Value, block: Block) -> None: ...
