"""What users say to `lax` in enumerations and records: accuracy, algorithms, dimension numbers.

In: their choices. Out: the same, checked.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

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

    `lax.round` takes it, for floating dtypes; a TypeError for others.

    >>> import accnp as jnp
    >>> jnp.lax.round(jnp.array([2.5, -2.5]), jnp.lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([ 2., -2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Precision(enum.Enum):
    """How exactly products are computed; on a CPU always in the operands' own precision.

    Products take it for all dtypes. A ValueError for texts that name none.

    >>> import accnp as jnp
    >>> jnp.lax.dot(jnp.ones(2), jnp.ones(2), precision=jnp.lax.Precision.HIGHEST)
    Array(2., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class AccuracyMode(enum.Enum):
    """How exactly elementary functions are computed; there is one way on a CPU, the exact one.

    `lax.exp` and its like take it, for floating and complex dtypes; another value is refused.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.exp(0.0, accuracy=jnp.lax.AccuracyMode.HIGHEST)
        Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The error that a caller of an elementary function can bear; the exact way bears any.

    Args:
        atol, rtol: absolute and relative error.
        ulps: units in the last place.

    Raises:
        ValueError: a bound is negative, or all are zero.

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
    """Refuse what is no accuracy."""
    if accuracy is not None and not isinstance(accuracy, AccuracyMode | Tolerance):
        raise NotImplementedError(
            f"{function}: Accuracy {accuracy} not supported; pass an AccuracyMode or a Tolerance"
        )


class DotAlgorithm(NamedTuple):
    """How a product is computed: in which types operands are read, and in which sums are kept.

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
        """Refuse: products are computed in the precision of their operands."""
        raise _elsewhere(self)


def _elsewhere(algorithm: Any) -> ValueError:
    return ValueError(
        f"The precision '{algorithm}' is not supported by dot_general on CPU; products are "
        "computed in the precision of their operands; convert these with astype"
    )


_BF16, _F32, _F64 = ml_dtypes.bfloat16, np.float32, np.float64


class DotAlgorithmPreset(enum.Enum):
    """Algorithms for products by name: operands' types and the sums' type.

    On a CPU there are the ones in the operands' own precision: `DEFAULT`, `F32_F32_F32` for
    operands up to 32 bits, `F64_F64_F64`. `BF16_BF16_F32` and its variants `_X3`, `_X6`, `_X9`
    are accepted too, and computed without rounding the operands to bfloat16 first.

    `precision=` of products takes it; a ValueError unless it is what the operands' dtypes mean.

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
        """Refuse algorithms that round operands, or keep sums in fewer bits than these have."""
        if self.name in ("DEFAULT", "F32_F32_F32", "F64_F64_F64"):
            return
        if not self.name.startswith("BF16_BF16_F32"):  # these are computed more accurately
            raise _elsewhere(self)

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The types that a left operand may have; None: any."""
        if self is DotAlgorithmPreset.DEFAULT:
            return None
        name = self.name
        found: dict[str, tuple[Any, ...]] = {
            "F16": (np.float16,),
            "BF16": (_F32,) if "_X" in name else (_BF16, _F32),
            "TF32": (_F32,),
            "F32": (_F32,),
            "F64": (_F64,),
        }
        return found.get(name.split("_")[0])

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The types that a right operand may have; None: any."""
        return self.supported_lhs_types

    @property
    def accumulation_type(self) -> Any:
        """The type of the sums; None: that of the result."""
        name = self.name.replace("_FAST_ACCUM", "").split("_X")[0]
        return {"F16": np.float16, "BF16": _BF16, "F32": _F32, "F64": _F64}.get(name.split("_")[-1])


DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


class RaggedDotDimensionNumbers:
    """Which axes of the operands of `ragged_dot_general` belong together.

    Args:
        dot_dimension_numbers: as of `dot_general`.
        lhs_ragged_dimensions: the one axis of the left operand that the groups cut.
        rhs_group_dimensions: the axis of the right operand that has a matrix for each group.

    `lax.ragged_dot_general` looks at it, and raises a TypeError where it does not fit.

    >>> import accnp as jnp
    >>> numbers = jnp.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> numbers.lhs_ragged_dimensions
    (0,)
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(
        self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Any, rhs_group_dimensions: Any
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
    """The generators of `rng_bit_generator`; the default is Philox.

    >>> import accnp as jnp
    >>> jnp.lax.RandomAlgorithm.RNG_DEFAULT.name
    'RNG_DEFAULT'
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


# What functions take as the precision of a product.
PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
    | DotAlgorithm | DotAlgorithmPreset
)  # fmt: skip
