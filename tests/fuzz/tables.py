"""The dtypes, shapes and ops of random programs, with the dtypes that each op accepts."""

import numpy as np

F4, F8, I4, U1, B1, C8 = (np.dtype(t) for t in ("f4", "f8", "i4", "u1", "?", "c8"))
RARE_DTYPES = [np.dtype(t) for t in ("i1", "i2", "i8", "u2", "u4", "u8", "c16", "f2")]
DTYPES = [F4, F4, F4, F8, I4, I4, U1, B1, C8, None]  # None: one of the rare ones
SHAPES = [
    (), (1,), (5,), (12,), (3, 4), (1, 4), (3, 1), (1, 1), (2, 3, 4), (2, 1, 3), (4, 4), (6, 2),
    (0,), (0, 3), (2, 0), (1, 12, 1), (2, 2, 3), (40,), (3, 20),
]  # fmt: skip
LARGE = [
    (1000,),
    (33, 70),
    (2050,),
    (3, 1100),
    (1100, 3),
    (40_000,),
    (2, 33_000),
    (33_000, 2),
    (7, 8, 33),
]
MAX_SIZE = 300
EXACT_BITS = 22  # of the 24 that a float32 has
EXACT_HALF = 9  # of the 11 of a float16, which kernels do not know: library calls

ARITHMETIC = ["add", "sub", "mul", "max", "min"]
BY_KIND = {
    "f": [*ARITHMETIC, "neg", "abs", "square", "sign", "floor", "copy", "clamp", "integer_pow"],
    "i": [*ARITHMETIC, "neg", "abs", "and", "or", "xor", "not", "div", "rem", "sign", "clamp",
          "shift_left", "shift_right_arithmetic", "shift_right_logical", "population_count"],
    "u": [*ARITHMETIC, "and", "or", "xor", "not", "div", "rem", "shift_left",
          "shift_right_logical", "clz"],
    "b": ["and", "or", "xor", "not", "max", "min"],
    "c": ["add", "sub", "mul", "neg", "conj", "real", "imag"],
}  # fmt: skip
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]
UNARY = ["exp", "tanh", "log1p", "sin", "sqrt", "logistic", "rsqrt", "erf", "cos", "log", "expm1",
         "cbrt", "sinh", "asin", "acos", "atan", "asinh", "tan", "cosh", "erf_inv"]  # fmt: skip
WILD = [*UNARY, "div", "pow", "atan2", "rem"]
WILD_COMPLEX = ["exp", "div", "sin", "sqrt", "log", "tanh", "abs"]
REDUCE = {
    "f": ["sum", "sum", "max", "min", "prod"],
    "i": ["sum", "max", "min", "prod", "and", "or"],
    "u": ["sum", "max", "min", "or"],
    "b": ["max", "min", "and", "or"],
    "c": ["sum", "sum", "prod"],
}
ARITY = {
    **dict.fromkeys(UNARY, 1),
    **dict.fromkeys(["neg", "abs", "square", "sign", "floor", "copy", "integer_pow", "not"], 1),
    **dict.fromkeys(["population_count", "clz", "conj", "real", "imag"], 1),
    "clamp": 3,
}  # fmt: skip
