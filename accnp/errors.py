"""Error classes, messages about traced values, and traceback filtering.

The classes have the names of those in `jax.errors` and are subclasses of built-in exceptions. All
public functions are wrapped in `api_boundary`, which removes accnp's frames from tracebacks and
completes messages (`error_texts.py`).

>>> import accnp as jax
>>> try:
...     jax.jit(lambda x: 1 if x > 0 else 0)(1.0)
... except jax.errors.TracerBoolConversionError as error:
...     print(type(error).__mro__[1].__name__)
ConcretizationTypeError
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp.address_space import make_shortage_error
from accnp.config import config
from accnp.docstrings import fill
from accnp.lazy_imports import imported
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = [
    "AxisError", "ConcretizationTypeError", "IncompatibleShapesError",
    "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError", "JaxRuntimeError",
    "JaxprTypeError", "KeyArrayError", "KeyReuseError", "NoElementsError",
    "NonConcreteBooleanIndexError", "PendingResultWarning", "StaticArgumentError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "TypePromotionError", "UnexpectedTracerError", "UnsupportedDtypeError",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep
hidden: tuple[str, ...] = (PACKAGE_DIR,)  # folders whose frames tracebacks do not show


class JAXTypeError(TypeError):
    """A value is of a kind that an operation cannot use.

    This is the base class of the errors about traced values, for programs that handle all of them
    in one place. accnp does not raise it itself.

    Notes
    -----
    Catch the subclass that you expect, for example `TracerBoolConversionError`. Its page says what
    causes it. `TypeError` catches them as well.

    Examples
    --------
    >>> import accnp as jnp
    >>> try:
    ...     jnp.jit(lambda x: bool(x))(1.0)
    ... except jnp.errors.JAXTypeError as error:
    ...     print(type(error).__name__)
    TracerBoolConversionError
    """


class JAXIndexError(IndexError):
    """An index cannot be used in a traced function.

    This is the base class of `NonConcreteBooleanIndexError`. accnp does not raise it itself.

    Notes
    -----
    Catch the subclass, or `IndexError`, which also covers indices that NumPy would refuse.

    Examples
    --------
    >>> import accnp as jnp
    >>> try:
    ...     jnp.jit(lambda x: x[x > 0])(jnp.ones(2))
    ... except jnp.errors.JAXIndexError as error:
    ...     print(type(error).__name__)
    NonConcreteBooleanIndexError
    """


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a value is needed while tracing.

    While a function is traced for `jit`, `vmap`, `grad` under `jit`, or a loop of `lax`, its
    arguments have a shape and a dtype, but no values. `float`, `int`, and `item` need a value, and
    so do shapes, axes, and other arguments that decide what the program looks like. Values that
    `jnp` computes in a traced function are traced as well, even if they depend on shapes only.

    Notes
    -----
    The error names the function that was traced, and the argument or the operation that the value
    depends on. Choose one of the following:

    - mark the argument with `static_argnums` or `static_argnames`, if it has few different values;
    - compute with `np` or plain Python what depends on shapes only, as in `np.prod(x.shape)`;
    - use `x.astype(float)` instead of `float(x)`, and return the array;
    - move the code that needs a value out of the traced function.

    Examples
    --------
    The length of a result must be known while tracing:

    >>> import accnp as jnp
    >>> jnp.jit(lambda n: jnp.zeros(n))(3)
    Traceback (most recent call last):
        ...
    accnp.errors.ConcretizationTypeError: ...

    With a static argument it is:

    >>> jnp.jit(lambda n: jnp.zeros(n), static_argnums=0)(3)
    Array([0., 0., 0.], dtype=float32)
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a truth value.

    `if`, `while`, `and`, `or`, `not`, `assert`, and `bool` need to know whether a value is true. A
    traced value has none yet. Comparisons of traced values, such as `x > 0`, are traced, too.

    Notes
    -----
    Choose one of the following:

    - `jnp.where(condition, a, b)` selects between values that are cheap to compute;
    - `lax.cond(condition, f, g, x)` runs one of two functions;
    - `lax.while_loop` repeats until a condition holds;
    - `&`, `|`, and `~` replace `and`, `or`, and `not`;
    - mark the argument as static if the program is to differ by its value.

    Examples
    --------
    The condition depends on the argument:

    >>> import accnp as jnp
    >>> jnp.jit(lambda x: x if x > 0 else -x)(-1.0)
    Traceback (most recent call last):
        ...
    accnp.errors.TracerBoolConversionError: ...

    Select with `where` instead:

    >>> jnp.jit(lambda x: jnp.where(x > 0, x, -x))(-1.0).item()
    1.0
    """


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python integer.

    Indexing a list or tuple, `range`, and `operator.index` need an integer while the function is
    traced. A traced value has none yet.

    Notes
    -----
    Choose one of the following:

    - index an array instead of a list: `jnp.array(values)[i]`;
    - use `lax.switch` to choose one of several functions;
    - use `lax.fori_loop` instead of `for i in range(n)`;
    - mark the argument as static.

    Examples
    --------
    A list cannot be indexed by a traced value:

    >>> import accnp as jnp
    >>> values = [1.0, 2.0]
    >>> jnp.jit(lambda i: values[i])(1)
    Traceback (most recent call last):
        ...
    accnp.errors.TracerIntegerConversionError: ...

    An array can:

    >>> jnp.jit(lambda i: jnp.array(values)[i])(1).item()
    2.0
    """


class StaticArgumentError(TracerBoolConversionError, TracerIntegerConversionError, ValueError):
    """A traced value was passed for a static argument of a function of the library.

    Axes, offsets, numbers of decimals, and flags such as `keepdims` decide what the program looks
    like, so they must be known while it is traced. JAX raises a `ValueError` for functions that it
    jits, and one of the errors about traced values for others. This class is all of them.

    Notes
    -----
    Choose one of the following:

    - mark the argument of your function with `static_argnums` or `static_argnames`;
    - compute with `np` or plain Python what depends on shapes only, as in `x.ndim - 1`;
    - use a function of traced values, such as `jnp.where(mask, x, 0)` with a mask that depends on
      the value.

    Arrays that are not traced are accepted.

    Examples
    --------
    The diagonal must be known while tracing:

    >>> import accnp as jnp
    >>> x = jnp.ones((2, 2))
    >>> jnp.jit(lambda x, k: jnp.tril(x, k))(x, 0)
    Traceback (most recent call last):
        ...
    accnp.errors.StaticArgumentError: ...

    With a static argument it is:

    >>> jnp.jit(lambda x, k: jnp.tril(x, k), static_argnames="k")(x, 0).tolist()
    [[1.0, 0.0], [1.0, 1.0]]

    A mask needs no static argument:

    >>> below = lambda x, k: jnp.where(jnp.arange(2)[:, None] + k >= jnp.arange(2), x, 0)
    >>> jnp.jit(below)(x, 0).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """


class TracerArrayConversionError(JAXTypeError):
    """A traced value was passed to a function that needs a NumPy array.

    NumPy, SciPy, and other libraries compute at once and need values. While a function is traced,
    its arguments have none. The error is raised by `np.asarray`, and so by functions such as
    `np.sin`.

    Notes
    -----
    Choose one of the following:

    - use the function of accnp: `jnp.sin` instead of `np.sin`, `accnp.scipy` instead of `scipy`;
    - call other libraries with `jnp.pure_callback`, which runs them on values;
    - call them outside of the traced function;
    - mark the argument as static if it is data that does not change.

    Examples
    --------
    `np.sin` needs values:

    >>> import accnp as jnp, numpy as np
    >>> jnp.jit(lambda x: np.sin(x))(0.0)
    Traceback (most recent call last):
        ...
    accnp.errors.TracerArrayConversionError: ...

    `jnp.sin` is recorded:

    >>> jnp.jit(lambda x: jnp.sin(x))(0.0).item()
    0.0
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index.

    The shape of `x[mask]` depends on how many elements of the mask are true. In a traced function
    the mask has no values, so the shape of the result is unknown.

    Notes
    -----
    Choose one of the following:

    - keep the shape and replace the other elements: `jnp.where(mask, x, fill)`;
    - reduce with a mask: `jnp.sum(x, where=mask)`;
    - ask for a fixed number of indices: `jnp.where(mask, size=n)` or `jnp.nonzero(mask, size=n)`;
    - assign with a mask, which has a known shape: `x.at[mask].set(0.0)`;
    - select outside of the traced function.

    Examples
    --------
    The number of positive elements is unknown:

    >>> import accnp as jnp
    >>> x = jnp.array([1.0, -1.0])
    >>> jnp.jit(lambda x: x[x > 0].sum())(x)
    Traceback (most recent call last):
        ...
    accnp.errors.NonConcreteBooleanIndexError: ...

    The sum does not need it:

    >>> jnp.jit(lambda x: x.sum(where=x > 0))(x).item()
    1.0
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used outside of the function that it belongs to.

    A traced value stands for a value of one recorded program. If a traced function stores it in a
    global variable, a list, or an attribute, it remains after the trace has ended, and using it
    then is an error. The same happens if it is used in another trace. This is called a leaked
    tracer.

    Notes
    -----
    The error names the function in which the value was made. Return the value from that function,
    or pass it as an argument, instead of storing it. In loops and methods, make the state an
    argument and a result. Within `with jnp.checking_leaks():`, the function that leaks raises an
    error when it ends.

    Examples
    --------
    The list keeps a traced value:

    >>> import accnp as jnp
    >>> kept = []
    >>> y = jnp.jit(lambda x: kept.append(x * 2.0) or x)(1.0)
    >>> kept[0] + 1.0
    Traceback (most recent call last):
        ...
    accnp.errors.UnexpectedTracerError: ...

    Return it instead:

    >>> y, doubled = jnp.jit(lambda x: (x, x * 2.0))(1.0)
    >>> (doubled + 1.0).item()
    3.0
    """

    origin: str | None = None  # for a trace that has ended: " while tracing ...", or empty


class KeyReuseError(JAXTypeError):
    """A random key was used more than once.

    JAX raises this error if `jax_debug_key_reuse` is set. accnp has the class so that programs can
    catch it, but it does not check keys: the option has no effect.

    Notes
    -----
    Use each key once: pass it to one random function, or split it and use the parts.

    Examples
    --------
    >>> import accnp as jnp
    >>> key = jnp.random.key(0)
    >>> first, second = jnp.random.split(key)
    >>> bool(jnp.random.uniform(first) == jnp.random.uniform(second))
    False
    """


class JaxprTypeError(TypeError):
    """A recorded program is not well formed.

    `core.check_jaxpr` raises this error for a jaxpr that a program built or changed: it uses a
    variable that is not defined, or its types do not fit. Programs that accnp records are well
    formed.

    Notes
    -----
    The text names the equation. Compare it with the output of `make_jaxpr` for a function that does
    the same.

    Examples
    --------
    A program without its first equation uses a variable that is not defined:

    >>> import accnp as jnp
    >>> from accnp import core
    >>> program = jnp.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0).jaxpr
    >>> core.check_jaxpr(program.replace(eqns=program.eqns[1:]))
    Traceback (most recent call last):
        ...
    accnp.errors.JaxprTypeError: ...
    """


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions has no single answer.

    `export.symbolic_shape` makes dimensions without a number. A comparison such as `n > m` is true
    for some sizes and false for others, so Python cannot decide it.

    Notes
    -----
    State what you know as constraints when you make the dimensions, or write the function so that
    it does not compare sizes.

    Examples
    --------
    Nothing is known about the dimension:

    >>> import accnp as jnp
    >>> (n,) = jnp.export.symbolic_shape("n")
    >>> n > 3
    Traceback (most recent call last):
        ...
    accnp.errors.InconclusiveDimensionOperation: ...

    A constraint decides the comparison:

    >>> (n,) = jnp.export.symbolic_shape("n", constraints=["n >= 4"])
    >>> n > 3
    True
    """


class IncompatibleShapesError(TypeError, ValueError):
    """The shapes of operands do not fit together.

    Two shapes broadcast if, counted from the last axis, sizes are equal or one of them is 1. Matrix
    products, `reshape`, concatenation, and the carry of a loop have rules of their own, which the
    text states. The class is a `TypeError`, as in JAX, and a `ValueError`, as in NumPy.

    Notes
    -----
    Print the shapes of the operands. Typical fixes are

    - a new axis, `x[:, None]`;
    - `keepdims=True` in a reduction;
    - a transpose, `x.T`;
    - `jnp.vmap`, for a function that was written for one example.

    Examples
    --------
    A sum over rows has one element per row, and does not broadcast against columns:

    >>> import accnp as jnp
    >>> x = jnp.ones((2, 3))
    >>> x / x.sum(axis=1)
    Traceback (most recent call last):
        ...
    accnp.errors.IncompatibleShapesError: ...

    Keep the axis:

    >>> (x / x.sum(axis=1, keepdims=True)).shape
    (2, 3)
    """


class NoElementsError(IncompatibleShapesError, IndexError):
    """An operation needs at least one element, and got an empty array.

    A quantile of no elements, or an element of an array that has none, is not defined. The class
    is an `IncompatibleShapesError`, and so a `TypeError` and a `ValueError`, and it is an
    `IndexError`: JAX raises one or the other.

    Notes
    -----
    Test `x.size` before the call. Sizes are known while tracing, so a Python `if` works under
    `jit`, too.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.zeros(0)
    >>> jnp.median(x)
    Traceback (most recent call last):
        ...
    accnp.errors.NoElementsError: ...
    >>> jnp.median(x) if x.size else 0.0
    0.0
    """


class AxisError(ValueError, IndexError):
    """An axis is out of bounds for an array.

    An array with n axes has the axes 0 to n - 1, or -n to -1 counted from the end. The class is a
    `ValueError` and an `IndexError`, as NumPy's is.

    Notes
    -----
    Print `x.shape`. A frequent cause is a function for batches that gets a single example, or that
    is called under `vmap`, where the mapped axis does not exist.

    Examples
    --------
    A matrix has the axes 0 and 1:

    >>> import accnp as jnp
    >>> jnp.ones((2, 3)).sum(axis=2)
    Traceback (most recent call last):
        ...
    accnp.errors.AxisError: ...

    Negative axes count from the end, whatever the rank:

    >>> jnp.ones((2, 3)).sum(axis=-1).shape
    (2,)
    """


class UnsupportedDtypeError(TypeError, ValueError):
    """A function does not accept the dtype of an operand.

    Some operations exist for certain dtypes only: bitwise operations for integers and bools, and
    `floor` for real numbers, for example. The class is a `TypeError` and a `ValueError`, because
    JAX raises one or the other.

    Notes
    -----
    The text names the dtypes that are accepted. Convert the operand with `astype`, or use another
    function.

    Examples
    --------
    Bitwise operations need integers:

    >>> import accnp as jnp
    >>> jnp.bitwise_and(jnp.float32(6.0), 3)
    Traceback (most recent call last):
        ...
    accnp.errors.UnsupportedDtypeError: ...

    Convert the operand:

    >>> jnp.bitwise_and(jnp.float32(6.0).astype(int), 3).item()
    2
    """


class KeyArrayError(UnsupportedDtypeError, NotImplementedError):
    """Random keys were used where numbers are needed.

    Keys made by `random.key` have a dtype of their own. They can be indexed, stacked, split, and
    passed to random functions, but arithmetic on them has no meaning.

    Notes
    -----
    Pass the key to a function of `accnp.random`. `random.key_data(keys)` returns the integers of
    the keys, and `random.wrap_key_data` turns these into keys again, for example to store them in
    a file.

    Examples
    --------
    A key is not a number:

    >>> import accnp as jnp
    >>> key = jnp.random.key(0)
    >>> key + 1
    Traceback (most recent call last):
        ...
    accnp.errors.KeyArrayError: ...

    Derive another key by a number:

    >>> jnp.random.fold_in(key, 1).dtype == key.dtype
    True
    """


class TypePromotionError(ValueError):
    """Two dtypes have no implicit common dtype.

    With `numpy_dtype_promotion="strict"`, arrays of different dtypes are not combined. In the
    standard mode, a few types have no promotion, for example float8 types with each other.

    Notes
    -----
    Convert one operand with `astype`, or return to the standard mode. Python numbers always adapt
    to the dtype of the array.

    Examples
    --------
    In strict mode, integers do not become floats:

    >>> import accnp as jnp
    >>> with jnp.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2) + jnp.arange(2)
    Traceback (most recent call last):
        ...
    accnp.errors.TypePromotionError: ...

    Convert them:

    >>> with jnp.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2) + jnp.arange(2).astype("float32")
    Array([1., 2.], dtype=float32)
    """


class ShardingTypeError(Exception):
    """An operation does not say how its result is sharded.

    Arrays over a mesh with Explicit axes have a sharding as part of their type. An operation whose
    operands are sharded in ways that do not fit, or whose result could be sharded in several ways,
    is an error, because accnp does not choose which messages are sent between devices.

    Notes
    -----
    Change the sharding of an operand first, with `reshard`. Meshes with axes of type Auto leave the
    choice to accnp.

    Examples
    --------
    >>> import accnp as jnp
    >>> mesh = jnp.make_mesh((1,), ("x",))
    >>> x = jnp.device_put(jnp.ones(4), jnp.NamedSharding(mesh, jnp.P("x")))
    >>> x @ x
    Traceback (most recent call last):
        ...
    accnp.errors.ShardingTypeError: ...
    """


class JaxRuntimeError(RuntimeError):
    """A computation failed while it ran.

    A Python function that was called by `pure_callback` or `io_callback` raised an error, or a
    device failed. Computations run after they have been recorded, so the error is raised where a
    result is used or waited for, which may be later than the call.

    Notes
    -----
    The text contains the error of the callback and its line. Call the function directly with NumPy
    arrays of the same values to debug it. To find where the failing operation was recorded, call
    `block_until_ready` after each step.

    Examples
    --------
    >>> import accnp as jnp
    >>> def load(i):
    ...     raise OSError("no such file")
    >>> shape = jnp.ShapeDtypeStruct((), "float32")
    >>> jnp.pure_callback(load, shape, 1).block_until_ready()
    Traceback (most recent call last):
        ...
    accnp.errors.JaxRuntimeError: ...
    """


class PendingResultWarning(UserWarning):
    """A timed function returned a result that was not computed.

    Operations are recorded and computed on demand. A benchmark that does not wait for the result
    measures the recording only. The pytest plugin gives this warning if its waiting is turned
    off, or if a timed function records operations and returns no array.

    Notes
    -----
    Return the result from the timed function, and leave waiting on, which is the default. If you
    measure the recording on purpose, filter the warning.

    Examples
    --------
    This test gives the warning if it runs with `--accnp-no-wait`:

        def test_tanh(benchmark):
            benchmark(lambda: jnp.tanh(x))

    The warning is a class that filters can name:

    >>> import warnings
    >>> import accnp as jnp
    >>> warnings.simplefilter("ignore", jnp.errors.PendingResultWarning)
    """


class Provenance:
    """The origin of a traced value: the traced function, and its arguments or operations."""

    def __init__(
        self,
        function: str = "",
        file: str = "",
        line: int = 0,
        transform: str = "jit",
        arguments: Sequence[str] = (),
        operations: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.function = function
        self.file = file
        self.line = line
        self.transform = transform
        self.arguments = arguments
        self.operations = operations

    def text(self) -> str:
        """Return two or three sentences for the end of an error message."""
        parts = []
        if self.function:
            where = f" at {self.file}:{self.line}" if self.file else ""
            parts.append(
                f"The error occurred while tracing the function {self.function}{where} "
                f"for {self.transform}."
            )
        if self.arguments:
            names = _join_with_and([str(name) for name in self.arguments])
            many = "s" if len(self.arguments) > 1 else ""
            parts.append(
                "This concrete value was not available in Python because it depends on the "
                f"value{many} of the argument{many} {names}."
            )
        elif self.operations:
            parts.append("The value depends on no argument; these operations made it traced:")
            shown = list(self.operations)[:MAX_OPERATIONS]
            parts += [f"  {op}\n    from {line}" for op, line in shown]
            if len(self.operations) > len(shown):
                parts.append(f"  ... and {len(self.operations) - len(shown)} more")
        return "\n".join(parts)


MAX_OPERATIONS = 5

_STATIC = "mark the argument with static_argnums or static_argnames"
_NP = "compute it with np. in place of jnp. so that it stays static"
_HASHED = "Non-hashable static arguments are not supported. "
_ABSTRACT = "Abstract tracer value encountered where concrete value is expected: {what}"
# kind -> (class, what happened, what to do)
_CONVERSIONS: dict[str, tuple[type[Exception], str, str]] = {
    "bool": (
        TracerBoolConversionError,
        "Attempted boolean conversion of {what} (by if, while, and, or, not or bool)",
        f"use jnp.where or lax.cond (lax.while_loop for loops), or {_STATIC}",
    ),
    "int": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by int()",
        f"use x.astype(int), or {_STATIC}",
    ),
    "float": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by float()",
        f"use x.astype(float), or {_STATIC}",
    ),
    "complex": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by complex()",
        f"use x.astype(complex), or {_STATIC}",
    ),
    "index": (
        TracerIntegerConversionError,
        "The __index__() method was called on {what}",
        "index an accnp array in place of a list, use lax.fori_loop in place of range, "
        f"or {_STATIC}",
    ),
    "array": (
        TracerArrayConversionError,
        "The numpy.ndarray conversion method __array__() was called on {what}",
        "use the jnp. function in place of the np. one, or return the value and convert it outside",
    ),
    "item": (
        ConcretizationTypeError,
        _ABSTRACT,
        "return it from the traced function and look at it outside, or use debug.print",
    ),
    "iter": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by iteration over a 0-d array",
        "use vmap, lax.scan or lax.map, or iterate over an array with at least one axis",
    ),
    "shape": (
        ConcretizationTypeError,
        "Shapes must be 1D sequences of concrete values of integer type. " + _ABSTRACT,
        f"{_STATIC}, or {_NP}",
    ),
    "count": (
        ConcretizationTypeError,
        "Shapes must be 1D sequences of concrete values of integer type. " + _ABSTRACT,
        "pass size=, or use jnp.where(mask, x, fill)",
    ),
    "size": (
        StaticArgumentError,
        "Shapes must be 1D sequences of concrete values of integer type. " + _ABSTRACT,
        f"{_STATIC}, or {_NP}",
    ),
    "axis": (
        StaticArgumentError,
        f"{_HASHED}{_ABSTRACT}, used as an axis",
        f"{_STATIC}, or {_NP}",
    ),
    "static": (
        StaticArgumentError,
        f"{_HASHED}{_ABSTRACT}",
        f"{_STATIC}, or {_NP}",
    ),
    "flag": (
        StaticArgumentError,
        f"{_HASHED}Attempted boolean conversion of {{what}}, used as a flag",
        f"{_STATIC}, or {_NP}",
    ),
    "number": (
        StaticArgumentError,
        f"{_HASHED}{_ABSTRACT}, used as a number",
        f"{_STATIC}, or {_NP}",
    ),
    "mask": (
        NonConcreteBooleanIndexError,
        "Array boolean indices must be concrete; got {what} as a mask, "
        "so the shape of the result is unknown",
        "use jnp.where(mask, x, fill) in place of x[mask], or jnp.where(mask, size=n) for indices, "
        "or do it outside the traced function",
    ),
}
CONVERSION_KINDS = tuple(_CONVERSIONS)


def conversion_text(kind: str, what: str, provenance: Provenance, function: str = "") -> str:
    """Return the message for a conversion that `function` does not allow."""
    _, happened, advice = _CONVERSIONS[kind]
    lead = f"{function}: " if function else ""
    body = provenance.text()
    return (
        f"{lead}{happened.format(what=what)}.\n"
        + (f"{body}\n" if body else "")
        + f"What to do: {advice}."
    )


def conversion_error(kind: str, what: str, provenance: Provenance, function: str = "") -> Exception:
    """Return the exception for the conversion of a traced value to a concrete one.

    `kind` is one of `CONVERSION_KINDS`; `what` describes the value, such as `traced array with
    shape float32[3]`.
    """
    return _CONVERSIONS[kind][0](conversion_text(kind, what, provenance, function))


def unhashable_static_error(function: str, argument: str, value: object) -> ValueError:
    """Return the exception for a static argument that cannot be a cache key."""
    return ValueError(
        f"{function}: Non-hashable static arguments are not supported; got {value!r} of type "
        f"{type(value).__name__} for static argument {argument}; pass a tuple in place of a list, "
        "or a frozen dataclass"
    )


def not_an_array_error(function: str, path: str, value: object) -> TypeError:
    """Return the exception for a leaf that is neither an array nor a number."""
    dtype = getattr(value, "dtype", None)
    is_numpy = isinstance(value, np.ndarray | np.generic)
    if dtype is not None and (is_numpy or getattr(dtype, "kind", "O") in "OSUMm"):
        return TypeError(
            f"{function}: Error interpreting argument to {function} as an abstract array: {path}: "
            f"an array of dtype {dtype} is not a valid JAX type; only bool, integer, floating and "
            "complex dtypes are valid; convert it, or mark it as static"
        )
    description, fix = f"Argument {value!r} of type {type(value)}", "pass numbers and arrays"
    if hasattr(value, "__array__"):  # for example a Series or DataFrame of pandas
        description, fix = f"Argument of type {type(value)}", "convert it with jnp.asarray"
    return TypeError(
        f"{function}: Error interpreting argument to {function} as an abstract array: {path}: "
        f"{description} is not a valid JAX type; {fix}, or mark it as static"
    )


def not_one_of(
    function: str,
    argument: str,
    value: object,
    options: Iterable[object],
    kind: type[Exception] = ValueError,
) -> Exception:
    """Return the exception for an argument that is not one of the allowed values."""
    known = [repr(option) for option in options]
    near = imported("accnp.error_texts").suggestion(repr(value), known, quoted=False)
    return kind(
        f"{function}: {argument} must be {_join_with_or(known)}; "
        f"got {value!r}; {near or 'pass one of these'}"
    )


def _join_with_or(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def _join_with_and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


# ---- tracebacks


def is_internal(filename: str) -> bool:
    """Return whether a source file belongs to the package."""
    return filename.startswith(PACKAGE_DIR)


def user_frame(depth: int = 1) -> FrameType | None:
    """Return the innermost frame outside of the package."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith(hidden):
        frame = frame.f_back
    return frame


def user_line(depth: int = 1) -> str:
    """Return `file:line (function)` of the user's code that called the library, or ""."""
    frame = user_frame(depth + 1)
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the user's line, for any number of frames of the package in between."""
    frame = user_frame(2)
    if frame is None:  # a thread of the package
        warnings.warn(text, category, stacklevel=2)
        return
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    place = (frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "<unknown>"))
    warnings.warn_explicit(text, category, *place, registry=registry)


def own_frame() -> FrameType | None:
    """Return the frame of the function of the package that the user's code has called."""
    frame: FrameType | None = sys._getframe(1)
    outermost = None
    while frame is not None and frame.f_code.co_filename.startswith(hidden):
        if frame.f_code is not _WRAPPER:
            outermost = frame
        frame = frame.f_back
    return outermost


def called_by_us(frame: FrameType) -> bool:
    """Return whether the package itself called the function of a frame."""
    back = frame.f_back
    return back is not None and back.f_code.co_filename.startswith(PACKAGE_DIR)


def hide_frames(error: BaseException) -> None:
    """Remove the frames of the package from the traceback of an error and of its causes, unless
    `traceback_filtering` is "off".

    In a function that user code has called, this also completes the message. For hot paths:
    `except Exception as e: hide_frames(e); raise` costs nothing on success, and a bare `raise` adds
    no frame.
    """
    tb = error.__traceback__
    if not isinstance(error, Exception):
        return imported("accnp.error_texts").interrupted(tb)
    if tb is not None and called_by_us(tb.tb_frame):
        passed = tb.tb_frame.f_locals.get("wrapper", tb.tb_frame.f_code)
        error.__dict__.setdefault("_through", []).append(passed)
    elif tb is not None:
        if type(error) is MemoryError and not error.args and _raised_by_library(tb):
            error.args = (_NO_OBJECTS,)
        with contextlib.suppress(MemoryError):  # without memory, the error remains as it is
            imported("accnp.error_texts").finish(error)
    if config.traceback_filtering == "off":
        return
    seen: set[int] = set()
    shown: BaseException | None = error
    while shown is not None and id(shown) not in seen:
        seen.add(id(shown))
        shown.__traceback__ = _users_frames(shown.__traceback__)
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


# CPython's own MemoryError has no text. It asks the system for an arena of this size whenever it
# needs one for objects.
_NO_OBJECTS = str(make_shortage_error("accnp: not enough memory for Python objects", 1 << 20))


def _raised_by_library(tb: TracebackType) -> bool:
    """Return whether an error was raised in the package, or in an import."""
    while tb.tb_next is not None:
        tb = tb.tb_next
    return tb.tb_frame.f_code.co_filename.startswith((PACKAGE_DIR, "<frozen importlib"))


def _users_frames(tb: TracebackType | None) -> TracebackType | None:
    tracebacks: list[TracebackType] = []
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(hidden):
            tracebacks.append(tb)
        tb = tb.tb_next
    chain: TracebackType | None = None
    for tb in reversed(tracebacks):
        chain = TracebackType(chain, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return chain


array_types: list[type] = []  # classes with operators that messages name; `array_type` adds its own

# Computes the result of a call that raised an error, from the error, the public function, the
# function that it wraps, and the arguments. Returns NotImplemented if the error should be raised.
Recovery = Callable[[Exception, Callable[..., Any], Callable[..., Any], tuple, dict[str, Any]], Any]


def recover_with(public: Callable[..., Any], recovery: Recovery) -> None:
    """Declare how a public function, made by `api_boundary`, computes results after an error."""
    public.__dict__["_recoveries"] = (*public.__dict__.get("_recoveries", ()), recovery)


def api_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function so that its errors show only the user's frames, and fill in the shared
    parts of its docstring."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            for recovery in wrapper.__dict__.get("_recoveries", ()):
                result = recovery(error, wrapper, function, args, kwargs)
                if result is not NotImplemented:
                    return result
            hide_frames(error)
            raise

    text = function.__doc__
    if text and "{" in text:
        wrapper.__doc__ = fill(text)
    return wrapper


def alias(function: Callable[P, R], name: str, module: str) -> Callable[P, R]:
    """Return a copy of a function with another `__name__` and module, because tools that derive
    names from functions need a separate function for each name."""
    bounded = function.__code__ is _WRAPPER  # type: ignore[attr-defined]
    inner: Any = function.__wrapped__ if bounded else function  # type: ignore[attr-defined]
    # The copy has its own code object, since error messages find functions by their code objects.
    code = inner.__code__.replace(co_name=name, co_qualname=name)
    duplicate = FunctionType(code, inner.__globals__, name, inner.__defaults__, inner.__closure__)
    duplicate.__kwdefaults__ = inner.__kwdefaults__
    duplicate.__annotations__ = inner.__annotations__
    duplicate.__module__, duplicate.__qualname__, duplicate.__doc__ = module, name, function.__doc__
    duplicate.__dict__.update(inner.__dict__)
    if not bounded:
        return duplicate
    public = api_boundary(duplicate)
    for recovery in function.__dict__.get("_recoveries", ()):
        recover_with(public, recovery)
    return public


_WRAPPER = api_boundary(hide_frames).__code__
_install_getattr(__name__, __all__)
