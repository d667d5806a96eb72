"""Names of `core`, `monitoring`, `dlpack` and `stages`, `linear_call`, and the devices
of arrays.
"""

from __future__ import annotations

import warnings

import jax as peer
import ml_dtypes
import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import core


def _seen(transform):
    """Return what `core` reports while a function is being traced."""
    states = []

    def look(x):
        states.append((core.is_concrete(x), core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                      core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                      core.unsafe_get_axis_names_DO_NOT_USE(),
                      core.nonempty_axis_env_DO_NOT_USE()))  # fmt: skip
        return x

    transform(look)
    return states[0]


def test_active_traces_can_be_queried():
    x = jnp.ones(2)
    assert _seen(lambda f: f(x)) == (True, False, False, [], False)
    assert _seen(lambda f: jax.jit(f)(x)) == (False, True, False, [], False)
    assert _seen(lambda f: jax.vmap(f)(x)) == (False, False, True, [], False)
    assert _seen(lambda f: jax.vmap(f, axis_name="i")(x)) == (False, False, True, ["i"], True)
    assert _seen(lambda f: jax.grad(f)(1.0)) == (True, False, False, [], False)


def test_a_state_of_traces_is_equal_to_itself():
    before = core.get_opaque_trace_state()
    assert before == core.get_opaque_trace_state()
    seen = []
    jax.jit(lambda x: (seen.append(core.get_opaque_trace_state()), x)[1])(1)
    assert seen[0] != before


def test_values_and_shapes():
    assert core.get_aval(jnp.ones(2)) is jax.typeof(jnp.ones(2))
    assert core.pytype_aval_mappings[float](1.0).weak_type
    assert core.concrete_or_error(int, jnp.int32(3)) == 3
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: core.concrete_or_error(int, x, "here"))(3)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="astype"):
        core.concretization_function_error(int, True)("x")
    assert (core.max_dim(3, 4), core.min_dim(3, 4)) == (4, 3)
    assert core.is_constant_shape((3, 4))
    kinds = [3, "a", None, np.ones(2), [1]]
    assert [core.valid_jaxtype(v) for v in kinds] == [True, False, False, True, False]


def test_programs_among_parameters():
    closed = jax.make_jaxpr(lambda x: jax.jit(lambda y: y + 1)(x))(1.0)
    counts = core.traverse_jaxpr_params(lambda j: len(j.eqns), closed.eqns[0].params)
    assert counts == {"jaxpr": 1}
    assert core.call(lambda x: x + 1, 2) == 3
    assert core.check_jaxpr(closed.jaxpr) is None


def test_removed_names_are_refused():
    with pytest.raises(AttributeError, match="TraceTag"):
        core.TraceTag  # noqa: B018


# --- linear_call ---------------------------------------------------------------------------------


def _call(r, x, m=jax):
    return m.custom_derivatives.linear_call(lambda r, x: x * r, lambda r, ct: 10 * ct * r, r, x)


def test_linear_call_uses_the_given_transpose():
    def f(x):
        return _call(2.0, x)

    for m in (jax, peer):
        g = lambda x, m=m: _call(2.0, x, m)  # noqa: E731
        assert (g(3.0), m.grad(g)(3.0), m.jvp(g, (3.0,), (1.0,))[1]) == (6, 20, 2)
    assert jax.vmap(f)(jnp.ones(2)).tolist() == [2, 2]
    assert jax.vmap(jax.grad(f))(jnp.ones(2)).tolist() == [20, 20]
    assert jax.linear_transpose(f, 1.0)(1.0)[0] == 20
    assert jax.jit(jax.grad(f))(1.0) == 20
    assert jax.vmap(lambda r: jax.grad(lambda x: _call(r, x))(1.0))(jnp.arange(3.0))[2] == 20
    assert str(jax.make_jaxpr(f)(1.0).eqns[0].primitive) == "linear_call"
    with pytest.raises(NotImplementedError, match="residual"):
        jax.grad(lambda r: _call(r, 3.0))(2.0)


# --- monitoring ----------------------------------------------------------------------------------


def test_listeners_receive_events():
    m, heard = jax.monitoring, []
    kinds = [
        (m.register_event_listener, m.unregister_event_listener, m.record_event, ()),
        (m.register_event_duration_secs_listener, m.unregister_event_duration_listener,
         m.record_event_duration_secs, (1.5,)),
        (m.register_event_time_span_listener, m.unregister_event_time_span_listener,
         m.record_event_time_span, (1.0, 2.0)),
        (m.register_scalar_listener, m.unregister_scalar_listener, m.record_scalar, (3,)),
    ]  # fmt: skip

    def listener(event, *values, **more):
        heard.append((event, values, more))

    for register, unregister, record, values in kinds:
        register(listener)
        record("/e", *values, n=1)
        assert heard.pop() == ("/e", values, {"n": 1})
        unregister(listener)
        record("/e", *values)
        assert not heard
        with pytest.raises(AssertionError, match="not registered"):
            unregister(listener)
        register(listener)
    m.clear_event_listeners()
    m.record_event("/e")
    assert not heard


# --- dlpack --------------------------------------------------------------------------------------


def test_dlpack_shares_memory_in_both_directions():
    x = np.arange(100.0, dtype=np.float32)
    a = jax.dlpack.from_dlpack(x, copy=False)
    assert a.unsafe_buffer_pointer() == x.ctypes.data == np.from_dlpack(a).ctypes.data
    b = jax.dlpack.from_dlpack(x)
    x[0] = 7
    assert b[0] == 0
    torch = pytest.importorskip("torch")
    t = torch.arange(100.0)
    assert jax.dlpack.from_dlpack(t, copy=False).unsafe_buffer_pointer() == t.data_ptr()
    assert torch.from_dlpack(b).data_ptr() == b.unsafe_buffer_pointer()


def test_supported_dtypes_are_those_of_jax():
    names = [np.dtype(k).name for k in "?bhilBHILefdFD"]
    small = [n for n in dir(ml_dtypes) if n.startswith(("float", "int", "uint", "bfloat"))]
    for name in [*names, *small]:
        assert jax.dlpack.is_supported_dtype(name) == peer.dlpack.is_supported_dtype(name), name


# --- arrays and stages ---------------------------------------------------------------------------


def test_arrays_report_their_device():
    x = jnp.ones((2, 3)) + 1
    assert x.format.layout.major_to_minor == (0, 1)
    assert x.format.sharding == x.sharding
    assert x.platform() == "cpu"
    assert "test_core_names.py" in x.traceback
    for name in ("device_buffer", "device_buffers", "__cuda_array_interface__"):
        assert not hasattr(x, name)
    with pytest.raises(NotImplementedError, match="flatten"):
        x.flat  # noqa: B018


def test_stages_report_properties():
    x = jnp.ones((2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peer.jit(lambda x, y: x + y.sum(), donate_argnums=0).lower(
            peer.numpy.ones((2, 3)), np.ones((2, 3))
        )
    lowered = jax.jit(lambda x, y: x + y.sum(), donate_argnums=0).lower(x, np.ones((2, 3)))
    compiled = lowered.compile()
    assert lowered.donate_argnums == theirs.donate_argnums == (0,)
    assert repr(lowered.args_info) == repr(theirs.args_info)
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (48, 24)
    assert compiled.cost_analysis()["bytes accessed"] >= 72
    assert compiled.output_shardings == x.sharding
    assert compiled.input_shardings == ((x.sharding, x.sharding), {})
    assert isinstance(jax.jit(lambda v: v), jax.stages.Wrapped)
    assert isinstance(lowered, jax.stages.Lowered)
    assert compiled.call(x, jnp.ones((2, 3)))[0, 0] == 7
