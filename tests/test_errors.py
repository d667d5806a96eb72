"""`accnp.errors`: classes, messages and hidden frames."""

import importlib
import inspect
import os
import re
import subprocess
import sys
import traceback

import jax
import numpy
import pytest

import accnp
import accnp.numpy as jnp
from accnp import dtypes, errors, pytree
from accnp.ir.trace import Trace, state, tracing

# `accnp.config` is the object with the options, so the module is imported by name.
switches = importlib.import_module("accnp.config")


def test_classes_are_those_of_jax():
    for name in dir(jax.errors):
        theirs = getattr(jax.errors, name)
        if name.startswith("_") or not isinstance(theirs, type):
            continue
        mine = getattr(errors, name)
        names = {c.__name__ for c in theirs.__mro__ if c.__module__ != "jax._src.errors"}
        assert names <= {c.__name__ for c in mine.__mro__}, name


@pytest.mark.parametrize(
    ("kind", "cls", "builtin", "words"),
    [
        (
            "bool",
            "TracerBoolConversionError",
            TypeError,
            ["boolean conversion", "jnp.where", "lax.cond"],
        ),
        ("int", "ConcretizationTypeError", TypeError, ["int()", "astype(int)", "static_argnums"]),
        ("float", "ConcretizationTypeError", TypeError, ["float()", "astype(float)"]),
        ("complex", "ConcretizationTypeError", TypeError, ["complex()"]),
        ("index", "TracerIntegerConversionError", TypeError, ["__index__", "static_argnums"]),
        ("array", "TracerArrayConversionError", TypeError, ["numpy.ndarray conversion", "jnp."]),
        ("item", "ConcretizationTypeError", TypeError, ["return it"]),
        ("iter", "ConcretizationTypeError", TypeError, ["iteration", "lax.scan"]),
        ("shape", "ConcretizationTypeError", TypeError, ["Shapes must be 1D sequences", "np."]),
        ("size", "StaticArgumentError", ValueError, ["Shapes must be 1D sequences", "np."]),
        ("count", "ConcretizationTypeError", TypeError, ["pass size=", "jnp.where(mask, x, fill)"]),
        ("axis", "StaticArgumentError", ValueError, ["Non-hashable", "used as an axis"]),
        ("static", "StaticArgumentError", TypeError, ["Non-hashable", "Abstract tracer value"]),
        ("flag", "StaticArgumentError", ValueError, ["Non-hashable", "boolean conversion"]),
        ("number", "StaticArgumentError", TypeError, ["Non-hashable", "Abstract tracer value"]),
        ("mask", "NonConcreteBooleanIndexError", IndexError, ["mask", "jnp.where"]),
    ],
)
def test_conversion_errors(kind, cls, builtin, words):
    origin = errors.Provenance("f", "train.py", 12, "jit", ["x['w'][0]", "n"])
    error = errors.conversion_error(kind, "traced array float32[3]", origin, "reshape")
    assert type(error).__name__ == cls
    assert isinstance(error, builtin)
    text = str(error)
    assert text.startswith("reshape: ")
    for word in [
        *words,
        "float32[3]",
        "tracing the function f at train.py:12 for jit",
        "x['w'][0] and n",
        "What to do:",
    ]:
        assert word in text


def test_every_error_class_is_tested():
    mark = next(m for m in test_conversion_errors.pytestmark if m.name == "parametrize")
    assert sorted(case[0] for case in mark.args[1]) == sorted(errors.CONVERSION_KINDS)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda n: accnp.vander(accnp.ones(4), n), ValueError),
        (lambda n: accnp.lax.top_k(accnp.ones(4), n), errors.TracerBoolConversionError),
        (lambda n: accnp.fft.rfft(accnp.ones(4), n), errors.TracerIntegerConversionError),
        (lambda n: accnp.fft.fft2(accnp.ones((4, 4)), (n, n)), errors.TracerIntegerConversionError),
        (lambda n: accnp.compress(accnp.ones(4) > 0, accnp.ones(4), size=n), TypeError),
        (
            lambda n: accnp.repeat(accnp.ones(4), 2, total_repeat_length=n),
            errors.TracerBoolConversionError,
        ),
        (
            lambda n: accnp.lax.dynamic_slice_in_dim(accnp.ones(4), 0, n),
            errors.TracerIntegerConversionError,
        ),
    ],
)
def test_a_traced_size_raises_the_class_that_jax_does(call, kind):
    with pytest.raises(errors.ConcretizationTypeError) as caught:
        accnp.jit(call)(3)
    assert isinstance(caught.value, kind)


@accnp.custom_jvp
def branching(x):
    return accnp.sin(x)


@branching.defjvp
def _branching(primals, tangents):
    return branching(primals[0]), tangents[0] if primals[0] > 0 else 0.0


def _steps(c, _):
    return branching(c), c


@pytest.mark.parametrize(
    "f",
    [
        accnp.jit(branching),
        accnp.checkpoint(branching),
        lambda x: accnp.lax.scan(_steps, x, length=3)[0],
        lambda x: accnp.lax.fori_loop(0, 3, lambda i, c: branching(c), x),
    ],
)
def test_concrete_values_requested_by_rules_raise(f):
    with pytest.raises(errors.TracerBoolConversionError, match="for a transformation"):
        accnp.grad(f)(1.0)


@pytest.mark.parametrize("when", ["__enter__", "__exit__"])
@pytest.mark.parametrize(
    "f",
    [
        lambda: accnp.jit(lambda x: x * 2)(3.0),
        lambda: accnp.jit(accnp.grad(lambda x: x * x))(3.0),
        lambda: accnp.grad(lambda x: accnp.jit(accnp.sin)(x))(3.0),
        lambda: accnp.vmap(lambda x: x + 1)(accnp.ones(3)),
        lambda: accnp.lax.fori_loop(0, 3, lambda i, c: c + i, 0),
        lambda: accnp.make_jaxpr(lambda x: x + 1)(3.0),
    ],
)
def test_an_interrupt_ends_all_traces(f, when, monkeypatch):
    """Also if it occurs as a trace begins or ends; everything after it was traced, too."""
    plain = getattr(Trace, when)

    def interrupted(self, *error):
        if when == "__enter__":
            plain(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trace, when, interrupted)
        with pytest.raises(KeyboardInterrupt):
            f()
    assert not state.stack
    assert state.abstract is None
    assert not tracing
    assert float(accnp.sin(accnp.ones(3)).sum() * 0 + 1) == 1.0
    f()


def test_operations_are_named_when_there_is_no_argument():
    operations = [(f"b:i32[] = reduce_prod[axes=(0,)] a{i}", f"m.py:{i} (g)") for i in range(7)]
    origin = errors.Provenance("g", "m.py", 3, operations=operations)
    text = errors.conversion_text("shape", "traced array int32[]", origin)
    assert "reduce_prod" in text
    assert "m.py:0 (g)" in text
    assert "and 2 more" in text
    assert "argument x" not in text


def test_text_without_origin():
    text = errors.conversion_text("bool", "traced array bool[]", errors.Provenance())
    assert "traced array bool[]" in text
    assert "\n\n" not in text


def test_static_and_leaf_errors():
    error = errors.unhashable_static_error("jit", "n", [1])
    assert isinstance(error, ValueError)
    assert re.search(
        r"Non-hashable static arguments.*got \[1\] of type list.*argument n", str(error)
    )
    error = errors.not_an_array_error("jit", "x['a']", "text")
    assert isinstance(error, TypeError)
    assert re.search(r"x\['a'\]: Argument 'text' of type <class 'str'>", str(error))


# ---- frames: `library` plays a file of the package, by its file name


def library(body):
    code = f"def outer(f):\n    return inner(f)\ndef inner(f):\n    {body}\n"
    scope = {"errors": errors}
    exec(compile(code, errors.PACKAGE_DIR + "made_up.py", "exec"), scope)
    return scope["outer"]


def fail():
    raise KeyError("user's own")


def frames(error):
    return [f.name for f in traceback.extract_tb(error.__traceback__)]


def test_boundary_hides_the_packages_frames():
    with pytest.raises(KeyError) as error:
        errors.api_boundary(library("return f()"))(fail)
    assert frames(error.value) == ["test_boundary_hides_the_packages_frames", "fail"]
    with pytest.raises(ValueError, match="wrong") as error:
        errors.api_boundary(library("raise ValueError('wrong')"))(fail)
    assert frames(error.value) == ["test_boundary_hides_the_packages_frames"]


@pytest.mark.parametrize(
    ("module", "name"), [("numpy", "sum"), ("numpy", "max"), ("lax", "sin"), ("lax", "cumsum"),
                         ("scipy.special", "erf")],
)  # fmt: skip
def test_refused_keywords_name_the_public_function(module, name):
    function = getattr(importlib.import_module(f"accnp.{module}"), name)
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'axes'"):
        function(numpy.ones(3), axes=0)


def test_functions_without_a_module_keep_their_errors():
    function = eval("lambda x: x.nope", {})  # its `__module__` is None
    with pytest.raises(AttributeError, match="nope"):
        accnp.vmap(function)(accnp.ones(3))


def test_boundary_nests():
    inner = errors.api_boundary(library("return f()"))

    def users():
        return inner(fail)

    with pytest.raises(KeyError) as error:
        errors.api_boundary(library("return f()"))(users)
    assert frames(error.value) == ["test_boundary_nests", "users", "fail"]


def test_frames_are_kept_on_request():
    with switches.scope("traceback_filtering", "off"), pytest.raises(KeyError) as error:
        errors.api_boundary(library("return f()"))(fail)
    assert frames(error.value)[-3:] == ["outer", "inner", "fail"]


def test_boundary_keeps_signature_result_and_cause():
    @errors.api_boundary
    def public(a, *, b=2):
        """Doc."""
        if b == 3:
            raise ValueError("three") from KeyError("cause")
        return a + b

    assert public(1, b=4) == 5
    assert public.__name__ == "public"
    assert str(inspect.signature(public)) == "(a, *, b=2)"
    with pytest.raises(ValueError, match="three") as error:
        public(1, b=3)
    assert isinstance(error.value.__cause__, KeyError)


def test_user_line_skips_the_package():
    line = library("return errors.user_line()")(None)
    number = inspect.currentframe().f_lineno - 1
    assert line == f"{__file__}:{number} (test_user_line_skips_the_package)"


def test_modules_of_the_lowest_layer_are_internal():
    for module in (errors, dtypes, pytree, switches):
        assert errors.is_internal(module.__file__)
    assert not errors.is_internal(numpy.__file__)
    assert not errors.is_internal(__file__)


def test_texts_are_completed_where_the_package_is_installed(tmp_path):
    """accnp's files are then in `site-packages`, as are those of other libraries."""
    place = tmp_path / "site-packages"
    place.mkdir()
    (place / "accnp").symlink_to(os.path.dirname(accnp.__file__))
    program = "import accnp as jnp\ntry: jnp.ones(3) & jnp.ones(3)\nexcept TypeError as e: print(e)"
    completed = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(place)},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert completed.stdout.startswith("bitwise_and does not accept dtype float32;")


MESSAGES = {
    "Pred must be a scalar.*; reduce it with": lambda x: accnp.lax.cond(x > 0, abs, abs, x),
    "fori_loop must have equal types.*; convert": lambda x: accnp.lax.fori_loop(
        0, 2.5, lambda i, y: y, x
    ),
    "slice_sizes must be less than or equal to operand shape.*; pass sizes": lambda x: (
        accnp.lax.dynamic_slice(x, (0,), (9,))
    ),
    "the updates do not fit into shape.*; pass smaller": lambda x: accnp.lax.scatter(
        x,
        numpy.array([[0]]),
        numpy.ones((1, 9), numpy.float32),
        accnp.lax.ScatterDimensionNumbers((1,), (), (0,)),
    ),
}


@pytest.mark.parametrize("words", MESSAGES)
def test_texts_advise_instead_of_echoing_the_call(words):
    with pytest.raises(TypeError, match=words) as caught:
        MESSAGES[words](accnp.numpy.arange(3.0))
    assert "it takes (" not in str(caught.value)


def test_floor_divide_refuses_complex_numbers_by_the_documented_class():
    with pytest.raises(errors.UnsupportedDtypeError, match=r"use jnp\.divide"):
        accnp.numpy.floor_divide(1j, 2)


@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere"])
def test_functions_with_a_size_advise_to_pass_it(name):
    with pytest.raises(errors.ConcretizationTypeError, match="do: pass size=, or use") as caught:
        accnp.jit(getattr(accnp.numpy, name))(accnp.ones(3))
    assert "static_argnums" not in str(caught.value)


@pytest.mark.parametrize(
    "call", [lambda x: iter(x), lambda x: len(x), lambda x: bool(accnp.ones(2))]
)
def test_only_indexing_refers_to_the_documentation_of_indexing(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(accnp.numpy.float32(1))
    assert "documentation of indexing" not in str(caught.value)


@pytest.mark.parametrize("convert", [bool, float, iter, lambda x: x["a"]])
def test_errors_of_special_methods_need_no_search_of_public_names(convert, monkeypatch):
    """`bool(x)` took 2 ms to fail. Programs use the error to distinguish arrays from numbers."""
    texts = importlib.import_module("accnp.error_texts")
    x = jnp.ones((2, 3))[0, 0] if convert is iter else jnp.ones(3)
    with pytest.raises((TypeError, ValueError, IndexError)):
        convert(x)
    monkeypatch.setattr(texts, "_public_functions", None)
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        convert(x)
    assert re.match(r"(bool|float|iter)\(x\): |x\[\.\.\.\]: ", str(caught.value))
