"""The core namespace as a table of expressions, which the matrix test evaluates under all
transformations.

`CASES` contains sources of expressions over the names of `jnp`, `lax`, `random`, `nn` and the
inputs of `inputs()`.
"""

from __future__ import annotations

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    """Return the arrays that the expressions use. They have one small shape, so that kernels are
    shared.
    """
    real, whole = np.float32, np.int32
    base = np.array([[0.31, 1.7, 2.4, 0.86], [1.15, 0.53, 3.2, 2.05], [0.72, 2.9, 0.12, 1.33]])
    return {
        "X": base.astype(real),  # above 0
        "Y": (base[::-1] * 1.3 - 1.7).astype(real),  # both signs
        "U": (base / 3.7 - 0.3).astype(real),  # within (-1, 1)
        "V": np.array([0.4, -1.2, 2.2, 0.9], real),
        "S": base[:, :3].astype(real),
        "Z": (base + 1j * base[::-1]).astype(np.complex64),
        "I": np.array([[3, -1, 4, 1], [-5, 9, 2, 6], [5, 3, -5, 8]], whole),
        "J": np.array([[2, 3, 1, 5], [1, 2, 4, 3], [6, 1, 2, 2]], whole),
        "B": base > 1.2,
        "D": base[::-1] < 2.0,
    }


def _fill_template(names: str, form: str) -> list[str]:
    return [form.replace("?", name) for name in names.split()]


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


MASK = "np.array([True, False, True])"
COLUMNS = "np.array([True, False, True, True])"

ELEMENTWISE = [
    *_fill_template(
        "abs absolute cbrt ceil cos cosh deg2rad degrees exp exp2 expm1 fabs floor isfinite isinf"
        " isnan log log10 log1p log2 negative positive rad2deg radians reciprocal rint round sign"
        " signbit sin sinc sinh sqrt square tan tanh trunc i0 nan_to_num isneginf isposinf"
        " arcsinh asinh arctan atan logical_not",
        "jnp.?(X)",
    ),
    *_fill_template("arccos acos arcsin asin arctanh atanh", "jnp.?(U)"),
    *_fill_template("arccosh acosh", "jnp.?(X + 1)"),
    *_fill_template(
        "angle conj conjugate real imag abs exp sqrt square negative sin log", "jnp.?(Z)"
    ),
    *_fill_template(
        "bitwise_not invert bitwise_invert bitwise_count abs sign square negative", "jnp.?(I)"
    ),
    *_fill_template(
        "add subtract multiply divide true_divide maximum minimum fmax fmin arctan2 atan2 hypot"
        " copysign equal not_equal less less_equal greater greater_equal mod remainder fmod"
        " floor_divide nextafter heaviside isclose divmod",
        "jnp.?(X, Y)",
    ),
    *_fill_template("power pow float_power logaddexp logaddexp2", "jnp.?(X, U)"),
    *_fill_template("add multiply divide subtract equal power", "jnp.?(Z, X)"),
    *_fill_template(
        "add subtract multiply divide floor_divide remainder fmod bitwise_and bitwise_or"
        " bitwise_xor gcd lcm maximum minimum power divmod",
        "jnp.?(I, J)",
    ),
    *_fill_template("left_shift right_shift bitwise_left_shift bitwise_right_shift", "jnp.?(I, J)"),
    *_fill_template("logical_and logical_or logical_xor bitwise_and", "jnp.?(B, D)"),
    *_fill_template("add multiply maximum", "jnp.?(X, V)"),
    *_split_lines("""
    jnp.ldexp(X, J)
    jnp.frexp(X)
    jnp.modf(Y)
    jnp.add(I, 1.5)
    jnp.add(X, 1)
    jnp.multiply(B, 2)
    jnp.add(B, D)
    jnp.where(B, X, Y)
    jnp.where(X > 1, X, 0.0)
    jnp.where(B, I, 2.5)
    jnp.clip(Y, -1, 1)
    jnp.clip(Y, min=0.2)
    jnp.clip(I, 0, V[:1].astype(I.dtype))
    jnp.round(Y, 1)
    """),
]

REDUCTIONS = [
    *_fill_template("sum prod max min mean var std argmax argmin cumsum cumprod ptp", "jnp.?(Y)"),
    *_fill_template(
        "sum prod max min mean var std argmax argmin cumsum cumprod", "jnp.?(Y, axis=1)"
    ),
    *_fill_template("sum prod max min mean var std argmax argmin", "jnp.?(Y, 0, keepdims=True)"),
    *_fill_template("sum prod mean var std", "jnp.?(Y, axis=(0, 1), where=B)"),
    *_fill_template("max min", "jnp.?(Y, axis=-1, where=B, initial=0.5)"),
    *_fill_template("sum prod mean", "jnp.?(I, axis=0, dtype=X.dtype)"),
    *_fill_template("sum prod max min mean var std argmax cumsum", "jnp.?(I, axis=0)"),
    *_fill_template("sum prod mean var std cumsum", "jnp.?(Z, axis=1)"),
    *_fill_template("any all sum argmax mean cumsum", "jnp.?(B, axis=1)"),
    *_split_lines("""
    jnp.any(X > 3, axis=0, where=D)
    jnp.var(X, axis=0, ddof=1)
    jnp.std(X, axis=1, correction=1, keepdims=True)
    jnp.average(X, axis=0, weights=Y + 3)
    jnp.count_nonzero(I > 2, axis=1)
    jnp.cumsum(I, axis=1, dtype=X.dtype)
    nn.logsumexp(Y)
    nn.logsumexp(Y, axis=1, keepdims=True)
    nn.logsumexp(Y, axis=0, b=X)
    jnp.linalg.norm(Y)
    jnp.linalg.norm(Y, axis=1)
    jnp.linalg.norm(Y, ord=1, axis=0, keepdims=True)
    jnp.linalg.norm(V, ord=np.inf)
    jnp.linalg.norm(Y, ord='fro')
    """),
]

CREATION = _split_lines("""
    jnp.array(X)
    jnp.array([1, 2.5, True])
    jnp.array([[V[0], 1.0], [2, V[1]]])
    jnp.asarray(X, dtype=jnp.int32)
    jnp.asarray(3)
    jnp.zeros((2, 3))
    jnp.ones(4, dtype=jnp.int32)
    jnp.full((2, 2), 7)
    jnp.full((3,), V[0])
    jnp.empty((2, 2))
    jnp.arange(5)
    jnp.arange(2, 11, 3)
    jnp.arange(0.0, 1.0, 0.25)
    jnp.linspace(0, 1, 5)
    jnp.linspace(V[0], 3.0, 4, endpoint=False)
    jnp.eye(3)
    jnp.eye(3, 4, k=1, dtype=jnp.int32)
    jnp.identity(2)
    lax.iota(jnp.int32, 5)
    lax.broadcasted_iota(jnp.float32, (2, 3), 1)
    jnp.zeros_like(X)
    jnp.ones_like(I)
    jnp.full_like(X, 2)
    jnp.empty_like(Z)
    jnp.logspace(0, 2, 4)
    jnp.diag(V)
    jnp.tri(3)
    jnp.tril(X)
    jnp.meshgrid(V, V[:2])
""")

SHAPES = _split_lines("""
    jnp.reshape(X, (4, 3))
    jnp.reshape(X, (2, -1), order='F')
    jnp.transpose(X)
    jnp.transpose(X[None], (2, 0, 1))
    jnp.swapaxes(X, 0, 1)
    jnp.moveaxis(X[None], 0, -1)
    jnp.expand_dims(X, (0, 2))
    jnp.squeeze(X[None, :, None], axis=(0, 2))
    jnp.broadcast_to(V, (3, 4))
    jnp.concatenate([X, Y])
    jnp.concatenate([X, I], axis=1)
    jnp.stack([X, Y], axis=1)
    jnp.split(X, 2, axis=1)
    jnp.split(X, [1], axis=0)
    jnp.array_split(X, 2)
    jnp.flip(X)
    jnp.flip(X, 1)
    jnp.roll(X, 2)
    jnp.roll(X, (1, -1), axis=(0, 1))
    jnp.pad(X, 1)
    jnp.pad(X, ((1, 0), (0, 2)), constant_values=2)
    jnp.pad(X, 2, mode='edge')
    jnp.pad(X, 1, mode='reflect')
    jnp.tile(X, (2, 1))
    jnp.repeat(X, 2, axis=0)
    jnp.repeat(X, np.array([1, 0, 2]), axis=0, total_repeat_length=3)
    jnp.ravel(X)
    jnp.vstack([X, Y])
    jnp.hstack([X, Y])
    jnp.atleast_2d(V)
    jnp.rot90(X)
""")

INDEXING = [
    *_split_lines(f"""
    X[1]
    X[-1, 2]
    X[1:, ::2]
    X[::-1, 3:0:-2]
    X[None, ..., 1]
    X[..., None, 0]
    X[jnp.array([0, 2, -1])]
    X[jnp.array([0, 2]), jnp.array([3, 1])]
    X[:, jnp.array([[0, 1], [2, 3]])]
    X[jnp.array([0, 1])[:, None], 1:3]
    X[{MASK}]
    X[{MASK}, 1]
    X[:, {COLUMNS}]
    X[J[0, 0]]
    X[J[0, :2] - 1, 1]
    X[10]
    X[jnp.array([7, -9])]
    I[J[:, 0] - 1]
    jnp.take(X, jnp.array([0, 2]), axis=1)
    jnp.take_along_axis(X, jnp.argsort(Y, axis=1), axis=1)
    lax.dynamic_slice(X, (1, 1), (2, 2))
    lax.dynamic_update_slice(X, Y[:2, :2], (1, 1))
    X.at[1].get()
    X.at[jnp.array([0, 9])].get(mode='fill', fill_value=-1)
    X.at[jnp.array([0, 9])].get(mode='clip')
    """),
    *[
        f"{array}.at[{where}].{method}({value})"
        for where, value in (
            ("1", "2"),
            ("0, 1:3", "V[:2]"),
            ("jnp.array([0, 2, 0])", "Y"),
            ("::2, jnp.array([1, 3])", "0.5"),
            (MASK, "V"),
            ("jnp.array([1, 9])", "3"),
        )
        for method in ("set", "add", "mul", "multiply", "min", "max")
        for array in ("X",)
        if (method, where) != ("set", "jnp.array([0, 2, 0])")
    ],
    *_fill_template("set add mul min max", "I.at[1, 2].?(3)"),
    "X.at[0].divide(Y[1])",
    "X.at[0].power(2.0)",
    "X.at[1].apply(jnp.sin)",
    "X.at[jnp.array([0, 5])].add(1.0, mode='drop')",
]

PRODUCTS = _split_lines("""
    jnp.matmul(X, Y.T)
    jnp.matmul(X, V)
    jnp.matmul(X[None], Y.T)
    jnp.matmul(I, J.T)
    jnp.matmul(Z, Z.T)
    X @ V
    jnp.dot(X, Y.T)
    jnp.dot(V, V)
    jnp.dot(X, 2.0)
    jnp.einsum('ij,kj->ik', X, Y)
    jnp.einsum('ij,ij->', X, Y)
    jnp.einsum('ii->i', S)
    jnp.einsum('ij,j,kj->k', X, V, Y)
    jnp.einsum('...j->...', X)
    jnp.tensordot(X, Y, axes=((0, 1), (0, 1)))
    jnp.tensordot(X, Y.T, axes=1)
    jnp.outer(V, V[:2])
    jnp.vdot(X, Y)
    jnp.vdot(Z, Z)
    jnp.inner(X, V)
    jnp.trace(S)
    lax.dot(X, V)
    lax.dot_general(X, Y, (((1,), (1,)), ((), ())))
    jnp.kron(V, V[:2])
""")

SORTING = _split_lines("""
    jnp.sort(Y)
    jnp.sort(Y, axis=0, descending=True)
    jnp.sort(I, axis=None)
    jnp.argsort(Y)
    jnp.argsort(I, axis=0, stable=True, descending=True)
    lax.sort(Y, dimension=0)
    lax.sort((I, Y), dimension=1, num_keys=1)
    lax.top_k(Y, 2)
    jnp.searchsorted(jnp.sort(V), X).astype(jnp.int32)
""")

RANDOM = _split_lines("""
    random.PRNGKey(3)
    random.key_data(random.key(7))
    random.split(random.PRNGKey(0), 3)
    random.fold_in(random.PRNGKey(1), 5)
    random.fold_in(random.PRNGKey(1), J[0, 0])
    random.bits(random.PRNGKey(0), (5,))
    random.uniform(random.PRNGKey(J[0, 0]), (3, 2))
    random.uniform(random.key(2), (4,), minval=-1, maxval=V[2])
    random.uniform(random.key(2), (4,), X.dtype)
    random.normal(random.PRNGKey(2), (3, 3))
    random.bernoulli(random.PRNGKey(2), U[0] + 0.3, (4,))
    random.randint(random.PRNGKey(2), (6,), -3, 100)
    random.permutation(random.PRNGKey(4), 7)
    random.permutation(random.PRNGKey(4), X, axis=0)
    X * random.normal(random.split(random.key(0))[1], X.shape, X.dtype)
""")

STRICT = [
    *_fill_template(
        "abs cbrt ceil cos cosh exp exp2 expm1 floor is_finite log log1p neg round rsqrt sign sin"
        " sinh sqrt square tan tanh asinh atan logistic reciprocal erf erfc lgamma digamma",
        "lax.?(X)",
    ),
    *_fill_template("acos asin atanh erf_inv", "lax.?(U)"),
    *_fill_template(
        "add sub mul div max min atan2 eq ne lt le gt ge pow rem nextafter complex", "lax.?(X, U)"
    ),
    *_fill_template("bitwise_and bitwise_or bitwise_xor add mul div rem shift_left", "lax.?(I, J)"),
    *_fill_template("shift_right_logical shift_right_arithmetic", "lax.?(I, J)"),
    *_fill_template("bitwise_not population_count clz", "lax.?(I)"),
    *_fill_template("real imag conj", "lax.?(Z)"),
    *_fill_template("reduce_sum reduce_prod reduce_max reduce_min", "lax.?(Y, (0,))"),
    *_fill_template("cumsum cumprod cummax cummin cumlogsumexp", "lax.?(Y, 1)"),
    *_fill_template("argmax argmin", "lax.?(Y, 1, np.dtype('int32'))"),
    *_split_lines("""
    lax.integer_pow(Y, 3)
    lax.clamp(-0.5, Y, 1.0)
    lax.select(B, X, Y)
    lax.convert_element_type(X, jnp.int32)
    lax.bitcast_convert_type(jnp.asarray(X, 'float32'), jnp.int32)
    lax.broadcast(V, (2,))
    lax.broadcast_in_dim(V, (4, 3), (0,))
    lax.concatenate([X, Y], 1)
    lax.pad(X, X[0, 0], ((1, 0, 0), (-1, 1, 1)))
    lax.reshape(X, (12,))
    lax.rev(X, (1,))
    lax.slice(X, (0, 1), (2, 4), (1, 2))
    lax.squeeze(X[None], (0,))
    lax.transpose(X, (1, 0))
    lax.expand_dims(X, (1,))
    lax.full((2, 2), 1.5)
    lax.reduce(X, np.zeros((), X.dtype), lax.add, (0,))
    lax.stop_gradient(X) * X
    """),
]

CONTROL = _split_lines("""
    lax.cond(X[0, 0] > 1, jnp.sin, jnp.cos, X)
    lax.cond(B[0, 1], lambda a, b: a * b, lambda a, b: a - b, X, Y)
    lax.switch(J[0, 0], [jnp.sin, jnp.cos, jnp.tanh], X)
    lax.fori_loop(0, 3, lambda i, x: x * 0.9 + i, X)
    lax.scan(lambda c, x: (c * 0.5 + x, c * x), V, X)
    lax.scan(lambda c, x: (c + x.sum(), None), X[0, 0] * 0, X, reverse=True)
    lax.scan(lambda c, _: (jnp.sin(c), c), X, None, length=3)
    lax.while_loop(lambda c: c < 50, lambda c: c * 2, J[0, 0])
    lax.fori_loop(0, J[0, 0], lambda i, c: c + i, J[1, 1])
    lax.map(lambda x: x.sum() * x, X)
    lax.associative_scan(jnp.add, X)
""")

METHODS = [
    *_fill_template(
        "sum prod max min mean var std argmax argmin cumsum cumprod ravel flatten", "Y.?()"
    ),
    *_fill_template("sum max mean argmin sort argsort cumsum", "Y.?(axis=0)"),
    *_fill_template("T mT real imag shape ndim size dtype weak_type nbytes itemsize", "X.?"),
    *_fill_template("+ - * / // % ** < <= > >= == !=", "X ? U"),
    *_fill_template("+ - * / // % < ==", "1.5 ? X"),
    *_fill_template("+ - * // % ** & | ^ << >> < ==", "I ? J"),
    *_fill_template("& | ^ == +", "B ? D"),
    *_fill_template("- + ~", "?I"),
    *_split_lines("""
    abs(Y)
    divmod(X, 2)
    2 ** X
    X ** 2
    I ** 2
    I + 1.5
    X + I
    Z * 2
    round(Y, 1)
    X.astype(jnp.int32)
    X.reshape(4, 3)
    X.reshape((2, 6))
    X.transpose(1, 0)
    X.swapaxes(0, 1)
    X[None].squeeze(0)
    X.clip(0.5, 2)
    X.repeat(2, axis=1)
    X.take(jnp.array([1, 2]), axis=1)
    X.dot(V)
    X.at[0].set(1).T
    X.all(axis=0)
    B.any()
    S.diagonal()
    S.trace()
    Z.conj()
    X.round(1)
    X.copy()
    X.view(jnp.uint32) if X.dtype == jnp.float32 else X
    """),
]

FAMILIES = {
    "elementwise": ELEMENTWISE, "reductions": REDUCTIONS, "creation": CREATION, "shapes": SHAPES,
    "indexing": INDEXING, "products": PRODUCTS, "sorting": SORTING, "random": RANDOM,
    "strict": STRICT, "control": CONTROL, "methods": METHODS,
}  # fmt: skip
CASES = list(dict.fromkeys([case for family in FAMILIES.values() for case in family]))
