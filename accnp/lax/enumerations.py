"""Enumerations and records that functions of `lax` accept: precision, accuracy, algorithms,
dimension numbers."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex

import ml_dtypes
import numpy as np

from accnp.errors import api_boundary

__all__ = [
    "AccuracyMode", "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers",
    "Precision", "PrecisionLike", "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod",
    "Tolerance", "check_accuracy",
]  # fmt: skip


class RoundingMethod(enum.IntEnum):
    """How `round` treats halves.

    `lax.round` accepts it for floating dtypes.

    Attributes
    ----------
    AWAY_FROM_ZERO : int
        Round halves away from 0; the default.
    TO_NEAREST_EVEN : int
        Round halves to even numbers, as NumPy does.

    Raises
    ------
    TypeError
        If `lax.round` is called with an array that is not floating.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.round(jnp.array([2.5, -2.5]), jnp.lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([ 2., -2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Precision(enum.Enum):
    """Precision of products, as many functions accept it.

    On a CPU, products always have the precision of their operands, of any dtype.

    Attributes
    ----------
    DEFAULT : Precision
        The fastest way.
    HIGH : Precision
        A more precise way.
    HIGHEST : Precision
        The most precise way.

    Raises
    ------
    ValueError
        If a string is given that names no precision.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dot(jnp.ones(2), jnp.ones(2), precision=jnp.lax.Precision.HIGHEST)
    Array(2., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class AccuracyMode(enum.Enum):
    """Accuracy of elementary functions such as `lax.exp`.

    There is one way to compute them, the exact one, so that the mode has no effect. It is accepted
    for floating and complex dtypes.

    Attributes
    ----------
    HIGHEST : AccuracyMode
        The most accurate way.
    DEFAULT : AccuracyMode
        The way that JAX chooses.

    Raises
    ------
    NotImplementedError
        If an elementary function gets another object.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.exp(0.0, accuracy=jnp.lax.AccuracyMode.HIGHEST)
    Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """Error that the caller of an elementary function tolerates.

    Functions are computed in one way, which is accurate enough for any tolerance.

    Parameters
    ----------
    atol : float, optional
        Absolute error. The default, 0, sets no bound.
    rtol : float, optional
        Relative error. The default, 0, sets no bound.
    ulps : int, optional
        Error in units in the last place. The default, 0, sets no bound.

    Raises
    ------
    ValueError
        If a bound is negative, or all are 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.exp(0.0, accuracy=jnp.lax.Tolerance(rtol=1e-3))
    Array(1., dtype=float32, weak_type=True)
    """

    @api_boundary
    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(
                "lax.Tolerance: Tolerances must be non-negative.; got "
                f"atol={atol}, rtol={rtol}, ulps={ulps}"
            )
        if atol == rtol == ulps == 0:
            raise ValueError("lax.Tolerance: At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


def check_accuracy(function: str, accuracy: Any) -> None:
    """Raise unless `accuracy` is None, an AccuracyMode or a Tolerance."""
    if accuracy is not None and not isinstance(accuracy, AccuracyMode | Tolerance):
        raise NotImplementedError(
            f"{function}: Accuracy {accuracy} not supported; pass an AccuracyMode or a Tolerance"
        )


class DotAlgorithm(NamedTuple):
    """Algorithm of a product: dtypes in which operands are read and sums are kept.

    Parameters
    ----------
    lhs_precision_type : dtype_like
        Dtype to which the left operand is rounded.
    rhs_precision_type : dtype_like
        Dtype to which the right operand is rounded.
    accumulation_type : dtype_like
        Dtype in which products are summed up.
    lhs_component_count : int, optional
        Number of terms into which the left operand is split.
    rhs_component_count : int, optional
        Number of terms into which the right operand is split.
    num_primitive_operations : int, optional
        Number of products of such terms.
    allow_imprecise_accumulation : bool, optional
        Whether sums may be less precise.

    Raises
    ------
    ValueError
        If a product gets it as its precision: products have the precision of their operands.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.DotAlgorithm(
    ...     jnp.float32, jnp.float32, jnp.float32, 1, 1, 1, False).accumulation_type.__name__
    'float32'
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    def check(self) -> None:
        """Raise ValueError: products are computed in the precision of their operands."""
        raise _unsupported_algorithm_error(self)


def _unsupported_algorithm_error(algorithm: Any) -> ValueError:
    return ValueError(
        f"The precision '{algorithm}' is not supported by dot_general on CPU; products are "
        "computed in the precision of their operands; convert these with astype"
    )


_BF16, _F32, _F64 = ml_dtypes.bfloat16, np.float32, np.float64


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms of products, by the dtypes of operands and sums.

    The `precision` argument of products accepts those that have the precision of the operands:
    `DEFAULT`, `F32_F32_F32` for operands of up to 32 bits, and `F64_F64_F64`. `BF16_BF16_F32` and
    its variants `_X3`, `_X6` and `_X9` are accepted, too, and computed without rounding the
    operands to bfloat16 first.

    Raises
    ------
    ValueError
        If a product gets an algorithm of another precision than that of its operands.

    Examples
    --------
    >>> import accnp as jnp
    >>> one = jnp.ones(2)
    >>> jnp.lax.dot(one, one, precision=jnp.lax.DotAlgorithmPreset.F32_F32_F32)
    Array(2., dtype=float32)
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name

    def check(self) -> None:
        """Raise for algorithms that round operands, or accumulate in fewer bits than these have."""
        if self.name in ("DEFAULT", "F32_F32_F32", "F64_F64_F64"):
            return
        if not self.name.startswith("BF16_BF16_F32"):  # others are computed more accurately
            raise _unsupported_algorithm_error(self)

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes that a left operand may have; None means any."""
        if self is DotAlgorithmPreset.DEFAULT:
            return None
        name = self.name
        lhs_types: dict[str, tuple[Any, ...]] = {
            "F16": (np.float16,),
            "BF16": (_F32,) if "_X" in name else (_BF16, _F32),
            "TF32": (_F32,),
            "F32": (_F32,),
            "F64": (_F64,),
        }
        return lhs_types.get(name.split("_")[0])

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes that a right operand may have; None means any."""
        return self.supported_lhs_types

    @property
    def accumulation_type(self) -> Any:
        """The dtype of the sums; None means that of the result."""
        name = self.name.replace("_FAST_ACCUM", "").split("_X")[0]
        return {"F16": np.float16, "BF16": _BF16, "F32": _F32, "F64": _F64}.get(name.split("_")[-1])


DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


class RaggedDotDimensionNumbers:
    """Roles of the axes of the operands of `ragged_dot_general`.

    Parameters
    ----------
    dot_dimension_numbers : ((axes, axes), (axes, axes))
        Contracted and batch axes of both operands, as in `dot_general`.
    lhs_ragged_dimensions : sequence of int
        The one axis of the left operand that is cut into groups.
    rhs_group_dimensions : sequence of int
        The axis of the right operand that has one matrix for each group, if any.

    Raises
    ------
    TypeError
        If `ragged_dot_general` gets numbers that do not fit its operands.

    Examples
    --------
    >>> import accnp as jnp
    >>> numbers = jnp.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> numbers.lhs_ragged_dimensions
    (0,)
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(
        self,
        dot_dimension_numbers: DotNumbers,
        lhs_ragged_dimensions: Sequence[SupportsIndex],
        rhs_group_dimensions: Sequence[SupportsIndex],
    ) -> None:
        self.dot_dimension_numbers = tuple(
            tuple(_ints(group) for group in pair) for pair in dot_dimension_numbers
        )
        self.lhs_ragged_dimensions = _ints(lhs_ragged_dimensions)
        self.rhs_group_dimensions = _ints(rhs_group_dimensions)

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedDotDimensionNumbers) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"RaggedDotDimensionNumbers({fields})"


class RandomAlgorithm(enum.IntEnum):
    """Generators of `rng_bit_generator`.

    Attributes
    ----------
    RNG_DEFAULT : int
        Philox.
    RNG_THREE_FRY : int
        Threefry.
    RNG_PHILOX : int
        Philox.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.RandomAlgorithm.RNG_DEFAULT.name
    'RNG_DEFAULT'
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


# Types of the `accuracy` of elementary functions, and of dimension numbers of products.
Accuracy = AccuracyMode | Tolerance | None
DotNumbers = Sequence[Sequence[Sequence[int]]]
# Types of the `precision` of products.
PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
    | DotAlgorithm | DotAlgorithmPreset
)  # fmt: skip
