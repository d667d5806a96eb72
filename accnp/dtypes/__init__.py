# isort: skip_file
"""`accnp.dtypes`: names of dtypes, 32-bit defaults, promotion with weak types, tests of dtypes.

The modules of this package convert every description of a dtype to a `numpy.dtype`, or to an
`ExtendedDType` for PRNG keys. All layers of accnp use these objects.

>>> import accnp as jax
>>> jax.dtypes.canonicalize_dtype("int64")
dtype('int32')
"""

from accnp.dtypes.names import (
    DTYPES, DType, ExtendedDType, as_dtype, bfloat16, bool_, canonicalize_dtype, check_supported,
    complex128, complex64, default_complex, default_float, default_int, extended, float0, float16,
    float32, float64, int32, int64, is_supported, key_dtype, prng_key, real_part, requested_dtype,
    short_name, uint32,
)  # fmt: skip
from accnp.dtypes.promotion import (
    WeakType, promote, promote_types, result_type, scalar_type_of, value_type,
)  # fmt: skip
from accnp.dtypes.questions import (
    can_cast, finfo, iinfo, isdtype, issubdtype, itemsize_bits, to_inexact,
)  # fmt: skip
from accnp.errors import TypePromotionError
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = [
    "DTYPES", "DType", "ExtendedDType", "TypePromotionError", "WeakType", "as_dtype", "bfloat16",
    "bool_", "can_cast", "canonicalize_dtype", "check_supported", "complex64", "complex128",
    "default_complex", "default_float", "default_int", "extended", "finfo", "float0", "float16",
    "float32", "float64", "iinfo", "int32", "int64", "is_supported", "isdtype", "issubdtype",
    "itemsize_bits", "key_dtype", "prng_key", "promote", "promote_types", "real_part",
    "requested_dtype", "result_type", "scalar_type_of", "short_name", "to_inexact", "uint32",
    "value_type",
]  # fmt: skip

_install_getattr(__name__, __all__)
