"""The lowerings of ops: the functions that they name exist."""

import inspect

import pytest

from accnp.compiler.library.lowerings import gpu_call_of, writer
from accnp.ir.op import OPS, Lowering
from accnp.primitives.updates import UPDATE

LOWERED = [op for op in [*OPS.whole().values(), UPDATE] if op.lowering != Lowering()]
WRITERS = sorted({x for op in LOWERED for x in (op.lowering.kernel, op.lowering.block) if x})
CALLS = sorted(op.name for op in LOWERED if op.lowering.gpu)


@pytest.mark.parametrize("name", WRITERS)
def test_writers_take_operands_results_and_parameters(name):
    function = writer(name)
    assert function is not None
    assert [*inspect.signature(function).parameters] == ["operands", "results", "p"]


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_the_gpu_library_take_the_library_first(name):
    function = gpu_call_of(OPS[name])
    assert function is not None
    assert next(iter(inspect.signature(function).parameters)) == "xp"


def test_ops_that_are_fused_have_no_lowering():
    assert {op.kind for op in LOWERED} == {"opaque", "assemble"}


def test_gpu_function_of_user_op_is_used():
    def call(driver, x):
        return [x]

    op = OPS["sort"].changed(cuda=call)
    assert gpu_call_of(op) is call
