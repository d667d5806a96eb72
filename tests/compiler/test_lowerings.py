"""The table of lowerings: what it names exists, and it belongs to ops, not to names."""

import inspect

import pytest

from accnp.compiler.library.lowerings import LOWERINGS, Lowering, gpu_call_of, lowering_of, writer
from accnp.ir.op import OPS
from accnp.primitives.updates import UPDATE

WRITERS = sorted({name for x in LOWERINGS.values() for name in (x.kernel, x.block) if name})
CALLS = sorted(name for name, x in LOWERINGS.items() if x.gpu)


@pytest.mark.parametrize("name", [*WRITERS, lowering_of(UPDATE).kernel])
def test_writers_take_operands_results_and_parameters(name):
    found = writer(name)
    assert found is not None
    assert [*inspect.signature(found).parameters] == ["operands", "results", "p"]


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_the_gpu_library_take_the_library_first(name):
    found = gpu_call_of(OPS[name])
    assert found is not None
    assert next(iter(inspect.signature(found).parameters)) == "xp"


def test_every_lowering_is_that_of_an_op():
    for name, lowering in LOWERINGS.items():
        assert lowering_of(OPS[name]) is lowering
        assert OPS[name].kind in ("opaque", "assemble"), name


def test_another_op_of_the_same_name_has_no_lowering():
    """Such as the op of a user's kernel."""
    for op in (OPS["sort"], UPDATE):
        other = op.changed()
        assert lowering_of(op).kernel
        assert lowering_of(other) == Lowering()
        assert gpu_call_of(other) is None


def test_a_users_function_for_gpus_is_that_of_its_op():
    def call(driver, x):
        return [x]

    op = OPS["sort"].changed(cuda=call)
    assert gpu_call_of(op) is call
