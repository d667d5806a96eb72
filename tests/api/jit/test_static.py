"""Static and donated arguments of `jit`: which ones it refuses, and the error messages."""

from __future__ import annotations

import collections
import functools
import gc
import traceback
import warnings
import weakref
from typing import Any

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp


class Scale:
    """An object that is compared by identity."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.unread = 0
        self.traces = 0
        self.steps = [1, 2]

    @functools.partial(accnp.jit, static_argnums=0)
    def apply(self, x: accnp.Array) -> accnp.Array:
        self.traces += 1
        return x * self.by()

    def by(self) -> float:
        return self.factor * len(self.steps)


def test_modified_static_object_is_refused_and_the_attribute_named() -> None:
    s = Scale(2.0)
    assert float(s.apply(1.0)) == 4
    s.factor = 3.0
    with pytest.raises(
        ValueError, match=r"static argument 'self' .* self\.factor was 2\.0 \(float\), got 3\.0"
    ):
        s.apply(1.0)
    s.factor = 2.0
    s.steps.append(3)
    with pytest.raises(ValueError, match=r"self\.steps"):
        s.apply(1.0)


def test_attributes_that_the_function_does_not_read_may_change() -> None:
    s = Scale(2.0)
    s.apply(1.0)
    s.unread = 5
    s.apply(jnp.ones(2))
    assert float(s.apply(1.0)) == 4
    assert s.traces == 2


def test_objects_with_their_own_equality_are_traced_again() -> None:
    class Config:
        def __init__(self, n: int) -> None:
            self.n = n

        def __hash__(self) -> int:
            return hash(self.n)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Config) and self.n == other.n

    f = accnp.jit(lambda x, c: x * c.n, static_argnums=1)
    c = Config(2)
    assert float(f(1.0, c)) == 2
    c.n = 5
    assert float(f(1.0, c)) == 5
    assert float(f(1.0, Config(2))) == 2


def test_a_traced_static_argument_names_both_functions_arguments() -> None:
    inner = accnp.jit(lambda n: n, static_argnums=0)

    @accnp.jit
    def outer(size: accnp.Array) -> accnp.Array:
        return inner(size)

    with pytest.raises(
        ValueError, match=r"Non-hashable static arguments are not supported"
    ) as info:
        outer(3)
    assert "argument size" in str(info.value)
    assert "outer at" in str(info.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"static_argnums": 3}, r"static_argnums=\(3,\), but only accepts 1"),
        ({"static_argnames": "q"}, "Jitted function has invalid argnames 'q' in static_argnames"),
        ({"donate_argnums": 5}, r"donate_argnums=\(5,\), but only accepts 1"),
        ({"donate_argnames": "q"}, "Jitted function has invalid argnames 'q' in donate_argnames"),
        (
            {"static_argnums": 0, "donate_argnames": "x"},
            "static_argnames and donate_argnames cannot intersect",
        ),
    ],
)
def test_options_that_do_not_fit_the_function(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words) as info:
        accnp.jit(lambda x: x, **options)
    files = [frame.filename for frame in traceback.extract_tb(info.value.__traceback__)]
    assert files == [__file__]


def test_iterating_traced_scalar_names_the_argument() -> None:
    with pytest.raises(accnp.errors.ConcretizationTypeError, match=r"argument n\b"):
        accnp.jit(lambda n: list(n))(3)
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        list(jnp.asarray(3))


def test_library_frames_are_hidden_on_value_access() -> None:
    leaked = []
    accnp.jit(lambda x: (leaked.append(x * 2), x)[1])(jnp.ones(3))
    for look in (np.asarray, bool, lambda x: x.tolist(), lambda x: x[0].item()):
        with pytest.raises(accnp.errors.UnexpectedTracerError) as info:
            look(leaked[0][:1])
        files = {frame.filename for frame in traceback.extract_tb(info.value.__traceback__)}
        assert files == {__file__}


def test_types_of_lines_in_reprs() -> None:
    one = repr(jnp.ones(20, "int8"))
    assert "\n" not in one
    assert len(one) == 79


def test_stages_report_types_and_structures() -> None:
    x = jnp.ones((2, 3))
    traced = accnp.jit(lambda p, y: {"s": p["w"] * y}).trace({"w": x}, y=2.0)
    for stage in (traced, traced.lower(), traced.lower().compile()):
        args, kwargs = stage.in_avals
        assert args[0]["w"].shape == (2, 3)
        assert kwargs["y"].weak_type
        assert stage.in_tree == accnp.tree.structure((({"w": x},), {"y": 2.0}))
        assert stage.out_tree == accnp.tree.structure({"s": x})
        assert stage.out_info == {"s": accnp.ShapeDtypeStruct((2, 3), "float32")}
    assert [a.shape for a in traced.out_avals] == [(2, 3)]


def test_compiled_functions_accept_compatible_arguments() -> None:
    """Arguments may be weakly typed or not, and committed to the device of the compiled function or
    uncommitted.
    """
    x, cpu = jnp.ones(3), accnp.devices("cpu")[0]
    double = accnp.jit(lambda a: a * 2)
    for lowered_for, other, weak in (
        (1.0, np.float32(2), True), (np.float32(1), 2.0, False),
        (x, accnp.device_put(x, cpu), False), (accnp.device_put(x, cpu), x, False),
    ):  # fmt: skip
        result = double.lower(lowered_for).compile()(other)
        np.testing.assert_array_equal(result, np.asarray(other) * 2)
        assert (result.dtype, result.aval.weak_type) == (np.float32, weak)
    struct = accnp.ShapeDtypeStruct(
        (3,), "float32", sharding=accnp.sharding.SingleDeviceSharding(cpu)
    )
    assert double.lower(struct).compile()(x).committed  # it lies where the type says
    with pytest.raises(TypeError, match=r"compiled for float32\[3\]; called with float32\[4\]"):
        double.lower(x).compile()(jnp.ones(4))


def donating_functions(m: Any, n: Any) -> dict[str, tuple[Any, Any]]:
    """Return functions of x, which is donated, and y, which may be, with `jit` options and
    arguments.
    """

    def one(dtype: str = "float32") -> Any:
        return n.arange(1, 4).astype(dtype)

    pair = one(), one()
    return {
        "one result": (lambda x, y: x + y, (one(), one())),
        "no result": (lambda x, y: x.sum() + y.sum(), (one(), one())),
        "unused": (lambda x, y: y + 1, (one(), one())),
        "returned unchanged": (lambda x, y: (y, x), (one(), one())),
        "another dtype": (lambda x, y: (x + y).astype(int), (one(), one())),
        "another shape": (lambda x, y: (x + y)[:, None], (one(), one())),
        "integers": (lambda x, y: x + y, (one("int32"), one())),
        "list of two": (lambda x, y: x[0] + x[1] + y, ([one(), one()], one())),
        "NumPy's": (lambda x, y: x + y, (np.ones(3, np.float32), one())),
        "twice": (lambda x, y: x + y, (pair[0], pair[0])),
        "twice, once unused": (lambda x, y: x + 1, (pair[1], pair[1])),
    }


@pytest.mark.parametrize("options", [{}, {"keep_unused": True}], ids=["", "keep_unused"])
@pytest.mark.parametrize("places", [0, (0, 1)], ids=["x", "x and y"])
@pytest.mark.parametrize("name", donating_functions(accnp, jnp))
def test_donation_deletes_same_arguments_as_jax(name: str, places: Any, options: dict) -> None:
    seen = []
    for m in (jax, accnp):
        f, args = donating_functions(m, m.numpy)[name]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                m.jit(f, donate_argnums=places, **options)(*args)
                refused = False
            except (RuntimeError, ValueError):  # jax: the one at first, the other later
                refused = True
        gone = [x.is_deleted() for x in m.tree.leaves(args) if isinstance(x, m.Array)]
        seen.append((refused or gone, [str(w.message).splitlines()[0] for w in caught]))
    theirs, ours = seen
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1] or theirs[0] is True


def test_donation_warning_names_the_calling_line() -> None:
    f = accnp.jit(lambda x: x.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match="Some donated buffers were not usable") as caught:
        f(jnp.ones(3))
    assert caught[0].filename == __file__


def test_many_donated_leaves() -> None:
    xs = [jnp.ones(3) + i for i in range(300)]
    f = accnp.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)
    for _ in range(2):
        xs = f(xs)
    assert float(xs[299][0]) == 302
    with pytest.raises(accnp.errors.JaxRuntimeError, match="leaves 7 and 299"):
        f([*xs[:299], xs[7]])
    assert float(xs[0][0]) == 3


def test_a_copy_outlives_a_donated_array() -> None:
    for copied in (jnp.array, jnp.copy, lambda x: jnp.asarray(x, copy=True)):
        x = jnp.arange(3.0) + 0
        y = copied(x)
        accnp.jit(lambda x: x + 1, donate_argnums=0)(x)
        assert x.is_deleted()
        np.testing.assert_array_equal(y, [0, 1, 2])


@pytest.mark.parametrize("kind", ["object", "partial"])
def test_callable_objects_are_traced_once(kind) -> None:
    traced = []

    class Body:
        scale = 2.0

        def __call__(self, c, x):
            traced.append(1)
            return c + self.times(x), None

        def times(self, x):
            return x * self.scale

    of = Body()
    body: Any = of if kind == "object" else functools.partial(Body.__call__, of)

    def run(body: Any) -> float:
        return float(accnp.lax.scan(body, 0.0, jnp.arange(3.0))[0])

    assert [run(body), run(body)] == [6.0, 6.0]
    assert len(traced) == 1
    of.scale = 3.0
    assert run(body) == 9.0
    if kind == "object":
        Body.times = lambda self, x: x  # type: ignore[method-assign]
        assert run(body) == 3.0
    gone = weakref.ref(body)
    del body, of
    gc.collect()
    assert gone() is None


def _signs(make: Any) -> list[bool]:
    """Return the sign bits of the results for 0.0, -0.0 and 0.0 again."""
    return [bool(np.signbit(np.asarray(make(zero))).all()) for zero in (0.0, -0.0, 0.0)]


_PAIR = collections.namedtuple("_PAIR", "value")
_BY_POSITION = accnp.jit(lambda x, z: jnp.copysign(x, z), static_argnums=1)
_BY_NAME = accnp.jit(lambda x, *, z: jnp.copysign(x, z), static_argnames="z")
_COPYSIGN_OF_TUPLE = accnp.jit(lambda x, z: jnp.copysign(x, z[0]), static_argnums=1)
_COPYSIGN_OF_IMAG = accnp.jit(lambda x, z: jnp.copysign(x, z.imag), static_argnums=1)
_REMATERIALISED = accnp.checkpoint(lambda x, z: x * z, static_argnums=(1,))
_FAR = np.array([7])


@pytest.mark.parametrize(
    "make",
    [
        lambda z: _BY_POSITION(1.0, z),
        lambda z: _BY_POSITION(1.0, np.float32(z)),
        lambda z: _BY_NAME(1.0, z=z),
        lambda z: _COPYSIGN_OF_TUPLE(1.0, (z,)),
        lambda z: _COPYSIGN_OF_TUPLE(1.0, _PAIR(z)),
        lambda z: _COPYSIGN_OF_IMAG(1.0, complex(1, z)),
        lambda z: accnp.jit(lambda x: _BY_POSITION(x, z))(1.0),
        lambda z: _REMATERIALISED(jnp.ones(2), z),
        lambda z: accnp.grad(lambda x: _REMATERIALISED(x, z))(1.0),
        lambda z: jnp.ones(3).at[_FAR].get(mode="fill", fill_value=z),
        lambda z: accnp.jit(lambda x: x.at[_FAR].get(mode="fill", fill_value=z))(jnp.ones(3)),
        lambda z: jnp.imag(
            jnp.ones(3, complex).at[_FAR].get(mode="fill", fill_value=complex(1, z))
        ),
        lambda z: jnp.take(jnp.ones(3), _FAR, mode="fill", fill_value=z),
        lambda z: accnp.export.export(accnp.jit(lambda x: x * z))(jnp.ones(2)).call(jnp.ones(2)),
    ],
)
def test_positive_and_negative_zero_are_traced_separately(make: Any) -> None:
    assert _signs(make) == [False, True, False]


def test_a_static_nan_is_traced_once() -> None:
    traces = []

    @functools.partial(accnp.jit, static_argnums=1)
    def scaled(x: Any, by: float) -> Any:
        traces.append(by)
        return x * by

    for _ in range(3):
        assert np.isnan(scaled(1.0, float("nan")))
    assert len(traces) == 1


def test_static_tuple_key_includes_element_types() -> None:
    added = accnp.jit(lambda x, y: x + y[0], static_argnums=1)
    x = np.int32(2)
    assert [added(x, (y,)).dtype.kind for y in (1, 1.0, True)] == ["i", "f", "i"]


def test_unknown_names_list_the_parameters_in_their_order():
    with pytest.raises(ValueError, match=r"its parameters are x, n, a$"):
        accnp.jit(lambda x, n, a: x, static_argnames="m")(1, 2, 3)
