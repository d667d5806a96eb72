"""`accnp.dtypes`: names of dtypes, 32-bit defaults, promotion with weak types, tests of dtypes.

The modules of this package convert every description of a dtype to a `numpy.dtype`, or to an
`ExtendedDType` for PRNG keys. All layers of accnp use these objects.

>>> import accnp as jax
>>> jax.dtypes.canonicalize_dtype("int64")
dtype('int32')
"""

from accnp.dtypes.names import (
    DTYPES as DTYPES,
)
from accnp.dtypes.names import (
    DType as DType,
)
from accnp.dtypes.names import (
    ExtendedDType as ExtendedDType,
)
from accnp.dtypes.names import (
    as_dtype as as_dtype,
)
from accnp.dtypes.names import (
    bfloat16 as bfloat16,
)
from accnp.dtypes.names import (
    bool_ as bool_,
)
from accnp.dtypes.names import (
    canonicalize_dtype as canonicalize_dtype,
)
from accnp.dtypes.names import (
    check_supported as check_supported,
)
from accnp.dtypes.names import (
    complex64 as complex64,
)
from accnp.dtypes.names import (
    complex128 as complex128,
)
from accnp.dtypes.names import (
    default_complex as default_complex,
)
from accnp.dtypes.names import (
    default_float as default_float,
)
from accnp.dtypes.names import (
    default_int as default_int,
)
from accnp.dtypes.names import (
    extended as extended,
)
from accnp.dtypes.names import (
    float0 as float0,
)
from accnp.dtypes.names import (
    float16 as float16,
)
from accnp.dtypes.names import (
    float32 as float32,
)
from accnp.dtypes.names import (
    float64 as float64,
)
from accnp.dtypes.names import (
    int32 as int32,
)
from accnp.dtypes.names import (
    int64 as int64,
)
from accnp.dtypes.names import (
    is_supported as is_supported,
)
from accnp.dtypes.names import (
    key_dtype as key_dtype,
)
from accnp.dtypes.names import (
    prng_key as prng_key,
)
from accnp.dtypes.names import (
    real_part as real_part,
)
from accnp.dtypes.names import (
    requested_dtype as requested_dtype,
)
from accnp.dtypes.names import (
    short_name as short_name,
)
from accnp.dtypes.names import (
    uint32 as uint32,
)
from accnp.dtypes.promotion import (
    WeakType as WeakType,
)
from accnp.dtypes.promotion import (
    promote as promote,
)
from accnp.dtypes.promotion import (
    promote_types as promote_types,
)
from accnp.dtypes.promotion import (
    result_type as result_type,
)
from accnp.dtypes.promotion import (
    scalar_type_of as scalar_type_of,
)
from accnp.dtypes.promotion import (
    value_type as value_type,
)
from accnp.dtypes.questions import (
    can_cast as can_cast,
)
from accnp.dtypes.questions import (
    finfo as finfo,
)
from accnp.dtypes.questions import (
    iinfo as iinfo,
)
from accnp.dtypes.questions import (
    isdtype as isdtype,
)
from accnp.dtypes.questions import (
    issubdtype as issubdtype,
)
from accnp.dtypes.questions import (
    itemsize_bits as itemsize_bits,
)
from accnp.dtypes.questions import (
    to_inexact as to_inexact,
)
from accnp.errors import TypePromotionError as TypePromotionError
from accnp.module_getattr import install_getattr as _install_getattr

_install_getattr(__name__, [name for name in dir() if name[0] != "_"])
