"""Templates of the statements of random programs, grouped by families.

A line has the kinds of dtypes that its operands may have (f, i, u, b, c; `*` for all), optional
flags after a slash, and the text. A line that begins with spaces continues the preceding one.
`programs.PlaceholderValues` fills the placeholders: `{a}` is a value, `{b}` one that broadcasts
with it, `{t}` one of its shape and dtype, `{d}` an axis of length `{n}`, and `{1|2}` one of these
words. Flags, for GPUs: `d` marks discontinuous results, which change if an operand is rounded
differently, and `l` results that a library computes in another order.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Template(NamedTuple):
    kinds: str
    flags: str
    text: str


def _parse_templates(text: str) -> list[Template]:
    templates = []
    for line in re.sub(r"\n  +", " ", text.strip()).split("\n"):
        head, rest = line.split(None, 1)
        kinds, _, flags = head.partition("/")
        templates.append(Template("fiubc" if kinds == "*" else kinds, flags, rest.strip()))
    return templates


def _expand(kinds: str, texts: str, names: str) -> str:
    return "\n".join([f"{kinds} {texts.replace('NAME', name)}" for name in names.split()])


FAMILIES = {name: _parse_templates(text) for name, text in {
"unary": _expand("f", "jnp.NAME({a})", """tanh exp exp2 log log1p log2 log10 expm1 sqrt cbrt sin cos
tan arcsin arccos arctan sinh cosh arcsinh arccosh arctanh sinc nan_to_num i0 reciprocal square
abs""") + "\n" + _expand("f", "NAME({a})", """lax.rsqrt lax.erf lax.erfc lax.erf_inv lax.lgamma
lax.digamma lax.bessel_i0e lax.bessel_i1e lax.logistic nn.silu nn.gelu nn.softplus nn.elu nn.relu6
nn.log_sigmoid
nn.relu nn.selu nn.leaky_relu""") + "\n" + _expand("f/d", "jnp.NAME({a})", """floor ceil trunc round
isfinite isnan signbit sign unwrap spacing""") + "\n" + _expand("c", "jnp.NAME({a})", """exp sqrt
sin log tanh real imag conj reciprocal square abs""") + r"""
iu        {-|jnp.square|jnp.abs|~}({a})
f/d       jnp.round({a}, 2)
fi        jnp.clip({a}, -1, 2)
fiuc      ({a}) ** {2|3}
f         ({a}) ** {0.5|-1.5}
f         2.5 ** ({a})
fc        ({a}) * 0.5 + 1
fiuc      {1 -|7 /|3 *}({a})
fiuc      ({a}) / 3
fiu/d     ({a}) {//|%} {2|3}
f/d       ({a}) % -1.7
*         ({a}) + 1
iu        ({a}) {<<|>>|&|^} {1|2|5}
iu        lax.{population_count|clz}({a})
c/d       jnp.angle({a})
fiu/d     ({a}) {>|<=} 0
*/d       ({a}) == {a}
f/d       jnp.{frexp|modf}({a})[{0|1}]
f         jnp.nextafter({a}, 1)
fi        jnp.where({a} > 0, {a}, -{a})
f/d       jnp.where({a} > 0.5, 1, {a})
f/d       lax.reduce_precision({a}, 5, 4)
f/d       jnp.heaviside({a}, 0.5)
fiub/d    jnp.logical_not({a})
iub       ~({a})
""",
"binary": r"""
fiuc      ({a}) {+|-|*|/} ({b})
fiuc      ({a}) {+|-|*|/} ({b})
fiub      jnp.{maximum|minimum}({a}, {b})
fiu/d     ({a}) {//|%} ({b})
fiu/d     jnp.{fmod|remainder}({a}, {b})
f/d       jnp.{arctan2|copysign|nextafter}({a}, {b})
f         jnp.{hypot|logaddexp|fmax}({a}, {b})
f         jnp.power(jnp.abs({a}), {b})
fi        jnp.where({a} > {b}, {a}, {b} * 2)
fiu/d     jnp.where({a} < {b}, 1, 0)
fiu/d     ({a}) {==|<=|!=} ({b})
iub       ({a}) {&|^} ({b})
iub       jnp.bitwise_or(~({a}), {b})
iu        ({a}) {<<|>>} ({b})
iu        jnp.{gcd|lcm}({a}, {b})
f         lax.complex({a}, {t})
fiu/d     jnp.divmod({a}, {b})[{0|1}]
f         nn.sigmoid({a}) * {b}
fiub/d    jnp.logical_xor({a}, {b})
f         jax.scipy.special.xlogy({a}, {b})
f         jnp.where(jnp.isnan({a}), {b}, {a})
""",
"fold": r"""
*         jnp.{sum|prod|mean}({a}, axis={axes}{keep})
fiuc      jnp.sum({a}, axis={axes}{keep})
fiub      jnp.{max|min}({a}, axis={axes}{keep})
fiuc      jnp.{var|std}({a}, axis={axes}{keep})
fiub/d    jnp.{argmax|argmin}({a}, axis={one}{keep})
*/d       jnp.{any|all|count_nonzero}({a}, axis={axes}{keep})
f         jnp.{nansum|nanmax|nanmean|ptp}({a}, axis={axes}{keep})
f         nn.logsumexp({a}, axis={axes}{keep})
fiu/l     jnp.median({a}, axis={axes}{keep})
f/l       jnp.quantile({a}, 0.3, axis={one}{keep})
fiuc/l    jnp.linalg.norm({a}, axis={one}{keep})
fiubc/l   jnp.{cumsum|cumprod}({a}, axis={one})
fiu       lax.{cummax|cummin}({a}, {d}, {False|True})
f/l       lax.cumlogsumexp({a}, {d}, {False|True})
fiub      jnp.sort({a}, axis={d})
fiub/d    jnp.argsort({a}, axis={d})
fiuc      jnp.average({a}, axis={axes})
""",
"rows": r"""
f         nn.{softmax|log_softmax}({a}, axis={axes})
f         ({a} - {a}.mean({axes}, keepdims=True)) / jnp.sqrt({a}.var({axes}, keepdims=True) + 1e-5)
fi        {a} - {a}.max({axes}, keepdims=True)
fi        {a} / (1 + jnp.abs({a}).sum({axes}, keepdims=True))
f         nn.standardize({a}, axis={d})
fi        {a} * {a}.sum({axes}, keepdims=True) - {a}.min()
fi        jnp.where({a} == {a}.max({axes}, keepdims=True), {a}, 0)
f         nn.softmax({a}, axis={axes}).sum({d}, keepdims=True) + {a}
f         ({a} - {a}.mean()) * jnp.exp(-{a}.std())
f         nn.glu(jnp.concatenate([{a}, {a}], {d}), {d})
f         jnp.exp({a} - nn.logsumexp({a}, axis={axes}, keepdims=True))
""",
"view": r"""
*         {a}[{cuts}]
*         {a}[{cuts}]
*         {a}[{cuts}]
*         jnp.transpose({a}, {order})
*         {a}{.T|.reshape(-1)|.T.reshape(-1)}
*         {a}{|.T}.reshape({factored})
*         jnp.{flip|expand_dims}({a}, {d})
*         jnp.{swapaxes|moveaxis}({a}, {d}, {d2})
*         jnp.squeeze({a})
*         jnp.broadcast_to({a}, ({2|3|5}, *{a}.shape))
*         jnp.broadcast_to({a}[..., None], (*{a}.shape, {2|3|33}))
""",
"cast": r"""
fiub      {a}.astype({to})
fiub      {a}.astype({to})
c         {a}.astype('c8')
fi        {a}.view({a}.dtype) * 2
""",
"move": r"""
*         jnp.roll({a}, {-7|-1|0|2|5}{|, 0})
*         jnp.roll({a}, {-7|-1|0|2|5}, {d})
*         jnp.concatenate([{a}, {j}{again}], {d})
*         jnp.stack([{a}, {t}], {d})
*         jnp.pad({a}, {wide})
*         jnp.pad({a}, {wide}, mode='{edge|reflect|wrap|symmetric}')
*         lax.pad({a}, jnp.zeros((), {a}.dtype), {inner})
*         jnp.tile({a}, {2|3})
*         jnp.repeat({a}, {2|3}, {d})
*         jnp.{tril|triu}({a}, {-1|0|1})
fiuc      jnp.diff({a}, axis={d})
*         jnp.{rot90|diagonal|flipud}({a})
*         jnp.split({a}, [{n} // 3], {d})[1]
*         jnp.append({a}, {j}, {d})
*         jnp.insert({a}, {n} // 2, 1, {d})
*         jnp.meshgrid({a}.reshape(-1)[:50], {a}.reshape(-1)[:7])[0]
f         jnp.gradient({a}.reshape(-1))
*         jnp.where(jnp.arange({a}.shape[-1]) % 2 == 0, {a}, 0)
*         lax.broadcasted_iota('int32', {a}.shape, {d}) + {a}
*         jnp.arange({n}) + 1
""",
"gather": r"""
*         {a}[{pre}{idx}]
*         jnp.take({a}, {far}, axis={d}, mode='{clip|fill|wrap}')
*         {a}.at[{pre}{once}].set({u})
*         {a}.at[{pre}{idx}].{add|max|min|multiply}({u})
*         {a}.at[{pre}{far}].add({u})
fiu       ops.segment_{sum|max|min}({a}, {seg}, {2|31|33|1000})
fiub      jnp.take_along_axis({a}, jnp.argsort({a}, {d}), {d})
*         {a}.at[{pre}{n} // 2].set(1)
*         {a}.at[{pre}{n} // 3:{n} // 2 + 1].add(2)
fiu/d     jnp.bincount(jnp.abs({a}.reshape(-1)).astype('i4') % 50, length=50)
fiu/d     nn.one_hot(jnp.abs({a}.reshape(-1)[:500]).astype('i4'), 9)
fi/d      jnp.histogram({a}, 13, (-3, 3))[0]
fiu/d     jnp.searchsorted(jnp.sort({a}.reshape(-1)[:3000]), {a})
fiu/d     lax.top_k({a}, min({a}.shape[-1], 9))[{0|1}]
fiu/d     jnp.unique({a}.reshape(-1)[:3000], size=40)
*         lax.dynamic_slice_in_dim({a}, {n} // {1|2|3}, max(1, {n} // 2), {d})
*         lax.dynamic_update_slice_in_dim({a}, {t}, {-2|0|1|9}, {d})
fiub/d    jnp.nonzero({a}.reshape(-1)[:5000], size=30)[0]
*         {a}[{pre}np.arange({n}) % 3 == 0]
*         {a}.at[{pre}{far}].get(mode='fill', fill_value=7)
fi/d      jnp.digitize({a}, jnp.array([-1., 0., 1.]))
fiu/d     jnp.lexsort(({a}.reshape(-1)[:2000], {a}.reshape(-1)[:2000] // 1))
""",
"product": r"""
fiuc/l    jnp.{outer|kron}({a}.reshape(-1)[:300], {a}.reshape(-1)[:70])
fiuc/l    jnp.{convolve|correlate}({a}.reshape(-1)[:3000], {a}.reshape(-1)[:9], 'same')
f/l       jnp.interp({a}, jnp.arange(9.), jnp.cos(jnp.arange(9.)))
fiu/l     jnp.polyval({a}.reshape(-1)[:5], {a})
fiuc/l    {s} @ {s}.T
fiuc/l    {s}.T @ {s}
fiuc/l    {s} @ {s}[0]
fiuc/l    {s}[:, 0] @ {s}
fiuc/l    jnp.einsum('{ij,kj->ik|ij,ij->i|ij,ij->|ij,kj->ki}', {s}, {s})
fc/l      lax.dot_general({s}, {s}, (((1,), (1,)), ((0,), (0,))))
fiu/l     jnp.matmul({s}[None], jnp.stack([{s}.T, {s}.T * 2]))
f/l       ({s} @ {s}.T) * 0.5 + 1
fiuc/l    jnp.{trace|sum}({s})
f/l       lax.conv_general_dilated({f}[None, None], jnp.ones(({1|4|17}, 1, {1|3}, 3), 'f4'), (1,
          {1|2}), 'SAME')
f/l       lax.reduce_window({s}, {low}, lax.max, (3, {1|5}), (1, {1|2}), 'SAME')
f/l       lax.reduce_window({s}, {zero}, lax.add, (2, {1|3}), (1, 1), 'VALID')
f/l       jnp.linalg.solve(jnp.cov({f}[:9]) + 9 * jnp.eye({f}[:9].shape[0]), {f}[:9, 0])
f/l       jnp.linalg.cholesky({f}[:40] @ {f}[:40].T + 1000 * jnp.eye({f}[:40].shape[0]))
f/l       jnp.linalg.svdvals({f}[:40, :60])
f/l       jnp.fft.{rfft|fft2}({f}){.real|.imag}
f/l       jnp.fft.ifft(jnp.fft.fft({f}, axis=0), axis=0).real
""",
"draw": r"""
*         jax.random.{normal|gumbel|uniform|rademacher|cauchy}({key}, {a}.shape)
*         jax.random.randint({key}, {a}.shape, -5, 90)
*         jax.random.bernoulli({key}, 0.3, {a}.shape)
*         jax.random.permutation({key}, {a})
*         jax.random.normal({key}, {a}.shape, jnp.bfloat16)
*         jax.random.choice({key}, max(1, {a}.size), (50,))
*         jax.vmap(lambda k: jax.random.normal(k, (33,)))(jax.random.split({key}, 20))
*         jax.random.gamma({key}, 1.5, {a}.shape[-1:])
""",
# c is what a loop carries, w a value of its shape and dtype
"body": r"""
f         jnp.{tanh|sin|sort|cumsum}({c})
f         {c} * 0.5 + 1
f         {c} - {c}.mean()
f         {c} / (1 + jnp.abs({c}).max())
f         nn.softmax({c}, -1)
f         jnp.roll({c}, 1, -1)
f         jnp.flip({c}, -1)
f         {c} + {w} * 0.1
f         jnp.where({c} > 0, {c}, 0.1 * {c})
f         jnp.sort({c}, {0|-1})
f         jnp.cumsum({c}, {0|-1}) / 50
f         {c}.at[..., 0].set(0.5)
f         {c} + {c}.sum(0) * 0.01
f         jnp.maximum({c}, {w})
f         jnp.concatenate([{c}[..., 1:], {c}[..., :1]], -1)
f         {c} - {c}.max(-1, keepdims=True)
f         jnp.exp(-jnp.abs({c}))
""",
"loop": r"""
f         lax.fori_loop(0, {count}, lambda i, c: {fix}({e} + i * 0.01), {a})
f         lax.fori_loop(0, {count}, lambda i, s: (s[1], (lambda c: {fix}({e}))(s[0])), ({a},
          {w}))[0]
f         lax.scan(lambda c, _: ({fix}({e}), c.sum()), {a}, None, length={count})[{0|1}]
f         lax.scan(lambda c, x: ({fix}({e} + x.sum() * 0.01), c.max() * x), {a}, {w}[:20])[1]
f         lax.scan(lambda c, x: ({fix}(c * 0.5 + x.mean()), c.max() + x), {a}, {w}[:20],
          reverse=True)[1]
f/d       lax.while_loop(lambda s: s[1] < {count}, lambda s: ((lambda c: {fix}({e}))(s[0]),
          s[1] + 1), ({a}, 0))[0]
f/d       lax.while_loop(lambda c: jnp.abs(c).max() > 0.5,
          lambda c: {fix}(jnp.tanh(c) * 0.5 + 0.01), jnp.nan_to_num({a}))
f/d       lax.cond({w}.reshape(-1)[0] > {-1|0|1}, lambda c: {fix}({e}), lambda c: {fix}({e2}), {a})
f/d       lax.switch((jnp.nan_to_num({w}.reshape(-1)[-1]) * 3).astype('i4'),
          [lambda c: {fix}({e}), lambda c: c, lambda c: {fix}({e2})], {a})
f         lax.map(lambda c: jnp.tanh(c) + c.sum(), {a}[:15])
f/d       lax.fori_loop(0, {count}, lambda i, c: lax.cond(c.sum() > i, lambda c: {fix}({e}),
          lambda c: lax.fori_loop(0, 2, lambda j, c: {fix}({e2}), c), c), {a})
f         lax.associative_scan(jnp.maximum, {a}, axis={d})
f/d       jax.vmap(lambda c: lax.cond(c.sum() > 0, jnp.sin, lambda c: c * 2, c))({a}[:40])
""",
"derived": r"""
f         jax.grad(lambda c: ({e}).sum().astype('f4'))({a}.astype('f4'))
f         jax.grad(lambda c: lax.scan(lambda c, _: ({fix}({e}), c.sum()), c, None,
          length={count})[0].sum().astype('f4'))({a})
f         jax.jvp(lambda c: {e}, ({a},), ({w},))[1]
f         jax.vmap(lambda c: jnp.tanh(c) * c.mean())({a})
f         jax.grad(lambda c: (c[{pre}{idx}] ** 2).sum())({a}.astype('f4'))
f         jax.vmap(jnp.{sort|cumsum}, in_axes=-1)({a})
f         jax.grad(lambda c: jnp.sort(c).sum() + c.max())({a}.astype('f4').reshape(-1)[:900])
f         jax.grad(lambda c: nn.logsumexp(c * 2))({a}.astype('f4'))
f         jax.vmap(jax.grad(lambda c: (jnp.sin(c) * c).sum()))({a}.astype('f4'))
f         jax.value_and_grad(lambda c: (c * jnp.exp(-c * c)).sum())({a}.astype('f4'))[1]
f         jax.vmap(lambda c, d: c * d.sum() - d, in_axes=(0, -1), out_axes=-1)({a}, {w}.T)
f/l       jax.grad(lambda c: jnp.cumsum(c, {d}).var())({a}.astype('f4'))
f         (lambda y, pull: pull(y * 2)[0])(*jax.vjp(lambda c: c.reshape(-1)[::2] * 2, {a}))
""",
}.items()}  # fmt: skip

# How often each family is drawn, by what a program is about.
FAMILY_WEIGHTS = {
    "everything": {"unary": 5, "binary": 6, "fold": 4, "rows": 2, "view": 5, "cast": 2, "move": 3,
                   "gather": 3, "product": 1, "draw": 1, "loop": 2, "derived": 1},
    "maps": {"unary": 6, "binary": 8, "view": 8, "cast": 3, "move": 3},
    "folds": {"unary": 3, "binary": 3, "view": 3, "fold": 8, "rows": 5, "cast": 1},
    "tables": {"gather": 8, "unary": 1, "binary": 1, "view": 1, "fold": 1, "move": 2, "cast": 1},
    "loops": {"loop": 6, "derived": 4, "unary": 1, "binary": 1, "rows": 1, "view": 1, "move": 1},
    "libraries": {"product": 5, "unary": 1, "binary": 1, "view": 1, "fold": 1, "draw": 2},
}  # fmt: skip
