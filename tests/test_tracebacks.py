"""Tracebacks show the user's lines and no internal frames, whichever function the user called."""

import importlib
import traceback
import types

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import errors, lax, tree
from accnp.experimental import checkify

# `accnp.config` is the object with the options, so the module is imported by name.
switches = importlib.import_module("accnp.config")


def bad(*_):
    raise KeyError("user's own")


def ruled(kind, *rules):
    f = kind(lambda x: x)
    (f.defjvp if kind is accnp.custom_jvp else f.defvjp)(*rules)
    return f


ROW = np.arange(3.0, dtype=np.float32)
# Each calls the user's function `bad`, through something of ours.
CALLS = {
    "jit": lambda: accnp.jit(bad)(ROW),
    "grad": lambda: accnp.grad(bad)(1.0),
    "value_and_grad": lambda: accnp.value_and_grad(bad)(1.0),
    "jvp": lambda: accnp.jvp(bad, (1.0,), (1.0,)),
    "vjp": lambda: accnp.vjp(bad, 1.0),
    "linearize": lambda: accnp.linearize(bad, 1.0),
    "linear_transpose": lambda: accnp.linear_transpose(bad, 1.0)(1.0),
    "hessian": lambda: accnp.hessian(bad)(1.0),
    "jacfwd": lambda: accnp.jacfwd(bad)(1.0),
    "jacrev": lambda: accnp.jacrev(bad)(1.0),
    "checkpoint": lambda: accnp.grad(accnp.checkpoint(bad))(1.0),
    "custom_jvp": lambda: accnp.grad(ruled(accnp.custom_jvp, bad))(1.0),
    "custom_vjp": lambda: accnp.grad(ruled(accnp.custom_vjp, bad, bad))(1.0),
    "custom_vjp backwards": lambda: accnp.grad(
        ruled(accnp.custom_vjp, lambda x: (x, None), bad)
    )(1.0),
    "closure_convert": lambda: accnp.closure_convert(bad, 1.0),
    "vmap": lambda: accnp.vmap(bad)(ROW),
    "pmap": lambda: accnp.pmap(bad)(ROW[:1]),
    "vectorize": lambda: jnp.vectorize(bad)(ROW),
    "apply_along_axis": lambda: jnp.apply_along_axis(bad, 0, ROW),
    "apply_over_axes": lambda: jnp.apply_over_axes(bad, ROW, 0),
    "piecewise": lambda: jnp.piecewise(ROW, [ROW > 0], [bad]),
    "fromfunction": lambda: jnp.fromfunction(bad, (2,)),
    "frompyfunc": lambda: jnp.frompyfunc(bad, 1, 1)(ROW),
    "scan": lambda: lax.scan(bad, 0.0, ROW),
    "scan in jit in vmap": lambda: accnp.vmap(accnp.jit(lambda v: lax.scan(bad, v, ROW)))(ROW),
    "map": lambda: lax.map(bad, ROW),
    "cond": lambda: lax.cond(True, bad, bad, 1.0),
    "switch": lambda: lax.switch(0, [bad, bad], 1.0),
    "while_loop, condition": lambda: lax.while_loop(bad, lambda x: x, 1.0),
    "while_loop, body": lambda: lax.while_loop(lambda x: x < 3, bad, 1.0),
    "fori_loop": lambda: lax.fori_loop(0, 3, bad, 1.0),
    "associative_scan": lambda: lax.associative_scan(bad, ROW),
    "custom_root": lambda: lax.custom_root(bad, 1.0, bad, bad),
    "make_jaxpr": lambda: accnp.make_jaxpr(bad)(1.0),
    "eval_shape": lambda: accnp.eval_shape(bad, 1.0),
    "lower": lambda: accnp.jit(bad).lower(1.0),
    "trace": lambda: accnp.jit(bad).trace(1.0),
    "inspect": lambda: accnp.inspect(bad)(1.0),
    "export": lambda: accnp.export.export(accnp.jit(bad))(1.0),
    "checkify": lambda: checkify.checkify(bad)(1.0),
    "tree.map": lambda: tree.map(bad, [1.0]),
    "tree.flatten": lambda: tree.flatten([1.0], is_leaf=bad),
    "tree.reduce": lambda: tree.reduce(bad, [1.0, 2.0]),
    "minimize": lambda: accnp.scipy.optimize.minimize(bad, ROW, method="BFGS"),
    "cg": lambda: accnp.scipy.sparse.linalg.cg(bad, ROW),
    "ode": lambda: importlib.import_module("accnp.experimental.ode").odeint(bad, ROW, ROW),
}  # fmt: skip

# Each is refused by the package itself.
REFUSED = {
    "@": lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)),
    "@, reflected": lambda: np.ones((2, 3)) @ jnp.ones((2, 3)),
    "+": lambda: jnp.ones(3) + jnp.ones(4),
    "**": lambda: jnp.ones(3) ** jnp.ones(4),
    "<": lambda: jnp.ones(3) < jnp.ones(4),
    "reshape": lambda: jnp.ones(3).reshape(2),
    "astype": lambda: jnp.ones(3).astype("float33"),
    "transpose": lambda: jnp.ones(3).transpose(3),
    "view": lambda: jnp.ones(3).view("float33"),
    "clip": lambda: jnp.ones(3).clip("a"),  # pyright: ignore[reportArgumentType]
    "index": lambda: jnp.ones(3)[0, 0],
    "at": lambda: jnp.ones(3).at[0, 0].set(1),
    "len": lambda: len(jnp.float32(1)),
    "shape": lambda: jnp.shape("text"),  # pyright: ignore[reportArgumentType]
    "grad": lambda: accnp.grad(jnp.sin)(jnp.ones(3)),
    "pull": lambda: accnp.vjp(jnp.sin, 1.0)[1](jnp.ones(3)),
    "vmap": lambda: accnp.vmap(jnp.add)(jnp.ones(3), jnp.ones(4)),
    "scan": lambda: lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3), length=7),
    "device_put": lambda: accnp.device_put("text"),
    "initializer": lambda: accnp.nn.initializers.glorot_normal()(accnp.random.key(0), (3,)),
    "tree.map": lambda: tree.map(lambda x, y: x, [1], [1, 2]),
    "tree.unflatten": lambda: tree.unflatten(tree.structure([1]), [1, 2]),
    "callback": lambda: accnp.pure_callback(bad, ROW, ROW).block_until_ready(),
}


def shown(error):
    """Return the files of all frames that Python prints for an error and its causes."""
    files = []
    while error is not None:
        files += [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return files


@pytest.mark.parametrize("name", CALLS)
def test_user_error_shows_only_user_lines(name):
    with pytest.raises(KeyError, match="user's own") as error:
        CALLS[name]()
    files = shown(error.value)
    assert files[-1] == __file__
    assert [file for file in files if errors.is_internal(file)] == []


@pytest.mark.parametrize("name", REFUSED)
def test_accnp_error_shows_only_user_lines(name):
    with pytest.raises(Exception, match=r"\w") as error:
        REFUSED[name]()
    assert [file for file in shown(error.value) if errors.is_internal(file)] == []


@pytest.mark.parametrize("name", ["grad", "scan", "tree.map"])
def test_all_frames_are_shown_on_request(name):
    with switches.scope("traceback_filtering", "off"), pytest.raises(KeyError) as error:
        CALLS[name]()
    assert any(errors.is_internal(file) for file in shown(error.value))


# A name each line, so that a new one is one line more.
MODULES = (
    "",
    "ad_checkpoint",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "dlpack",
    "example_libraries.optimizers",
    "experimental.checkify",
    "experimental.ode",
    "export",
    "flatten_util",
    "image",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "ops",
    "random",
    "ref",
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    "test_util",
    "tree",
    "tree_util",
)
# They raise nothing, or are contexts, whose `with` statement is the user's.
PLAIN = {
    "breakpoint",
    "clear_caches",
    "counters",
    "custom_vjp_primal_tree_values",
    "default_backend",
    "default_export_platform",
    "device_memory_stats",
    "ensure_compile_time_eval",
    "errstate",
    "host_count",
    "host_id",
    "host_ids",
    "is_supported_dtype",
    "is_symbolic_dim",
    "is_tree_node",
    "isfortran",
    "isscalar",
    "memory_stats",
    "named_scope",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "set_namespace",
    "treedef_is_leaf",
    "zero_from_primal",
}


def test_every_public_function_is_a_boundary():
    """A new function needs `@api_boundary`, or its own `hide_frames` where 0.1 us matter."""
    wrapped = errors.api_boundary(bad).__code__
    without = []
    for module in [importlib.import_module(f"accnp.{m}".rstrip(".")) for m in MODULES]:
        for name in dir(module):
            value = getattr(module, name)
            ours = isinstance(value, types.FunctionType) and value.__module__.startswith("accnp.")
            if ours and value.__module__ != "accnp.config" and not name.startswith("_"):
                code = value.__code__
                if code is not wrapped and "hide_frames" not in code.co_names:
                    without.append(name)
    assert set(without) - PLAIN == set()


def test_callable_objects_may_have_an_attribute_func():
    """The means of tinygp have such an attribute, but they are not `partial` objects."""

    class Mean:
        func = None

        def __call__(self, x):
            return x * 2

    assert float(accnp.vmap(Mean())(accnp.numpy.ones(3)).sum()) == 6


@pytest.mark.parametrize("transform", [accnp.vmap, accnp.jit, accnp.grad, accnp.jacfwd])
def test_callable_objects_may_have_any_name(transform):
    class Named:
        __name__ = 7

        def __call__(self, x):
            return (x * 2).sum()

    assert transform(Named())(accnp.numpy.ones(3)).sum() == 6
