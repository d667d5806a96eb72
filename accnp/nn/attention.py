"""Attention, and products of block-scaled operands.

Attention is a composition: the products are `einsum`s, and the softmax between them is one kernel
over rows. Scores are computed at least in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.array_type import Array, ArrayLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import UnsupportedDtypeError, api_boundary, not_one_of
from accnp.lax.elementwise import stop_gradient
from accnp.lax.products import scales_repeated
from accnp.nn.normalization import softmax
from accnp.numpy import ufuncs
from accnp.numpy.creation import arange
from accnp.numpy.einstein_summation import einsum
from accnp.numpy.log_sum_exp import logsumexp
from accnp.numpy.products import dot_general
from accnp.numpy.reductions import max as amax
from accnp.numpy.selection import where

__all__ = [
    "BlockScaleConfig", "dot_product_attention", "get_scaled_dot_general_config",
    "scaled_dot_general", "scaled_matmul",
]  # fmt: skip


def _array(x: Any, name: str) -> Array:
    return wrap(as_node(x, f"nn.{name}"))


# --- attention -----------------------------------------------------------------------------------


def _window(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    left, right = size if isinstance(size, tuple | list) else (size, size)
    if left < 0 or right < 0:
        raise ValueError(
            f"nn.dot_product_attention: Local window size must be >= 0; got {left}, {right}; "
            "pass 0 or more, or None"
        )
    return int(left), int(right)


def _broadcastable(name: str, x: Array, expected: Sequence[int]) -> None:
    if x.ndim != len(expected) or any(
        n not in (1, m) for n, m in zip(x.shape, expected, strict=True)
    ):
        raise TypeError(
            f"nn.dot_product_attention: {name} must be broadcastable to (batch, heads, queries, "
            f"keys) = {tuple(expected)}; got shape {x.shape}; use None to add axes"
        )


def _lengths(name: str, x: Any, batch: int) -> Array | None:
    if x is None:
        return None
    lengths = _array(x, "dot_product_attention")
    if lengths.shape != (batch,) or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"nn.dot_product_attention: {name} must be integers of shape ({batch},); got "
            f"{lengths.dtype.name}{list(lengths.shape)}; convert and reshape them"
        )
    return lengths


@api_boundary
@broadcasts_inside
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Scaled dot-product attention: softmax(query @ key * scale + bias) @ value for each head.

    Several heads of the query may share a head of key and value (grouped-query attention).

    Parameters
    ----------
    query : array_like
        Array of shape [batch, queries, heads, features]. Missing leading axes have length 1, here
        and in `key` and `value`.
    key : array_like
        Array of shape [batch, keys, heads, features]. The number of its heads divides that of the
        query.
    value : array_like
        Array of the shape of `key`.
    bias : array_like, optional
        Term added to the scores; it broadcasts to [batch, heads, queries, keys].
    mask : array_like of bool, optional
        Which keys each query attends to; it broadcasts to [batch, heads, queries, keys].
    scale : float, optional
        Factor of the scores. The default is 1 / sqrt(features).
    is_causal : bool, optional
        If True, query i attends only to the keys up to i. The default is False.
    query_seq_lengths : array_like of int, optional
        Number of valid queries of each example, of shape [batch]. Results for further queries are
        zero.
    key_value_seq_lengths : array_like of int, optional
        Number of valid keys of each example, of shape [batch].
    local_window_size : int or (int, int), optional
        Distance that keys may have from the query, on both sides or as a pair (left, right).
    implementation : str, optional
        None or "xla". There is one implementation.
    return_residual : bool, optional
        If True, return the logarithms of the softmax denominators, too. The default is False.

    Returns
    -------
    Array or tuple
        Result of the shape and dtype of `query`; with `return_residual` a pair of it and an array
        of shape [batch, queries, heads].

    Raises
    ------
    TypeError
        If `bias` or `mask` does not broadcast to the scores.
    ValueError
        If other shapes or dtypes do not match, or the implementation is unknown.

    See Also
    --------
    nn.softmax : Softmax along an axis.
    numpy.einsum : Products of arrays.

    Notes
    -----
    See Vaswani et al., "Attention Is All You Need" (2017).

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(4.0).reshape(2, 1, 2)
    >>> jnp.nn.dot_product_attention(x, x, x, is_causal=True).shape
    (2, 1, 2)
    """
    name = "dot_product_attention"
    if implementation not in (None, "xla"):
        raise ValueError(
            f"nn.{name}: Unsupported implementation option: {implementation}; leave it out"
        )
    q, k, v = (_array(x, name) for x in (query, key, value))
    if any(not 0 < x.ndim <= 4 for x in (q, k, v)):
        raise ValueError(
            f"nn.{name}: query, key and value must have 1 to 4 axes; got shapes {q.shape}, "
            f"{k.shape}, {v.shape}; pass [batch, length, heads, features]"
        )
    q_shape = q.shape
    q, k, v = (x.reshape((1,) * (4 - x.ndim) + x.shape) for x in (q, k, v))
    batch, queries, heads, features = q.shape
    keys, shared = k.shape[1:3]
    fits = k.shape == (batch, keys, shared, features) and v.shape[:3] == k.shape[:3]
    if not fits or shared == 0 or heads % shared:
        raise ValueError(
            f"nn.{name}: key and value must be [batch, keys, heads, features] with heads that "
            f"divide those of the query; got {q.shape}, {k.shape}, {v.shape}; reshape them"
        )
    if len({x.dtype for x in (q, k, v)}) > 1:
        raise ValueError(
            f"nn.{name}: query, key and value must have one dtype; got {q.dtype.name}, "
            f"{k.dtype.name}, {v.dtype.name}; convert them"
        )
    full = (batch, heads, queries, keys)
    kind = dtypes.promote(((q.dtype, False), (np.dtype(np.float32), False)))[0]
    groups = heads // shared
    grouped = q.reshape(batch, queries, shared, groups, features)
    scores = einsum("btkgh,bskh->bkgts", grouped, k, preferred_element_type=kind).reshape(full)
    scores = scores * (1 / math.sqrt(features) if scale is None else scale)
    if bias is not None:
        extra = _reshape_to_rank_4(bias, "bias", full)
        scores = (scores + extra).astype(kind)
    q_length = _lengths("query_seq_lengths", query_seq_lengths, batch)
    kv_length = _lengths("key_value_seq_lengths", key_value_seq_lengths, batch)
    seen = _attention_mask(full, mask, is_causal, _window(local_window_size), q_length, kv_length)
    if seen is not None:
        lowest = -0.7 * float(np.finfo(kind).max)
        scores = where(seen, scores, np.asarray(lowest, kind))
    weights = softmax(scores, axis=-1).astype(k.dtype)
    weights = weights.reshape(batch, shared, groups, queries, keys)
    out = einsum("bkgts,bskh->btkgh", weights, v).reshape(batch, queries, heads, v.shape[3])
    if q_length is not None:
        there = arange(queries)[None] < q_length[:, None]
        out = where(there[:, :, None, None], out, np.zeros((), out.dtype))
    out = out.reshape(q_shape)
    if not return_residual:
        return out
    sums = logsumexp(scores, axis=-1).transpose(0, 2, 1).astype(k.dtype)
    return out, sums.reshape(q_shape[:-1])


def _reshape_to_rank_4(x: Any, name: str, full: Sequence[int]) -> Array:
    array = _array(x, "dot_product_attention")
    array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    _broadcastable(name, array, full)
    return array


def _attention_mask(
    full: Sequence[int],
    mask: Any,
    is_causal: bool,
    window: tuple[int, int] | None,
    q_length: Array | None,
    kv_length: Array | None,
) -> Array | None:
    """Return a mask of the keys that each query attends to, or None if it attends to all."""
    row, column = arange(full[2])[:, None], arange(full[3])[None]
    parts: list[Array] = []
    if mask is not None:
        mask_array = _reshape_to_rank_4(mask, "mask", full)
        if mask_array.dtype != np.dtype(bool):
            raise ValueError(
                "nn.dot_product_attention: Mask must be boolean dtype, but got "
                f"{mask_array.dtype.name}; compare first"
            )
        parts.append(mask_array)
    if is_causal:
        parts.append(row >= column)
    if window is not None:
        parts.append((column >= row - window[0]) & (column <= row + window[1]))
    for length, at in ((q_length, row), (kv_length, column)):
        if length is not None:
            parts.append(at < length[:, None, None, None])
    out = None
    for p in parts:
        out = p if out is None else ufuncs.logical_and(out, p)
    return out


# --- blocks with scales --------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockScaleConfig:
    """Storage format of an operand: a small floating dtype, and the block size of its scales."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


@api_boundary
def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """Return a block-scaled number format for `scaled_dot_general`.

    Parameters
    ----------
    mode : str
        Name of the format: "mxfp8" or "nvfp4".
    global_scale : array_like, optional
        Scale of the whole operand, for "nvfp4".

    Returns
    -------
    BlockScaleConfig
        Format with its block size and dtypes.

    Raises
    ------
    ValueError
        If the format is unknown.

    See Also
    --------
    nn.scaled_dot_general : Product of operands in these formats.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = wrap(as_node(np.ones(1, np.float32))) if global_scale is None else global_scale
        one, small = ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn
        return BlockScaleConfig(mode, 16, small, one, scale, False)
    if mode == "mxfp8":
        one, small = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
        return BlockScaleConfig(mode, 32, small, one, None, False)
    raise ValueError(
        f"nn.get_scaled_dot_general_config: Unsupported mode: {mode}; pass 'mxfp8' or 'nvfp4'"
    )


def _scales_divide(scales: Array, x: Array) -> bool:
    n = scales.shape[2]
    return n > 0 and x.shape[2] % n == 0


def _apply_scales(x: Array, scales: Array, kind: Any) -> Array:
    return x.astype(kind) * scales_repeated(scales.astype(kind), x.shape)


@api_boundary
def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Multiply matrices whose elements have one scale per block, rows by rows.

    Parameters
    ----------
    lhs : array_like
        Array of shape [batch, m, k].
    rhs : array_like
        Array of shape [batch, n, k].
    lhs_scales : array_like
        Scales of `lhs`, of shape [batch, m, blocks]. The number of blocks divides k.
    rhs_scales : array_like
        Scales of `rhs`, of shape [batch, n, blocks].
    preferred_element_type : dtype_like, optional
        Dtype of the result. The default is float32, in which sums are always computed.

    Returns
    -------
    Array
        Products, of shape [batch, m, n].

    Raises
    ------
    ValueError
        If shapes do not match.

    See Also
    --------
    nn.scaled_dot_general : Quantize operands and multiply them.
    numpy.matmul : Product without scales.

    Notes
    -----
    JAX has this function on GPUs only.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.ones((1, 1, 4))
    >>> jnp.nn.scaled_matmul(x, x, jnp.full((1, 1, 2), 2.0), jnp.ones((1, 1, 2)))
    Array([[[8.]]], dtype=float32)
    """
    operands = (lhs, rhs, lhs_scales, rhs_scales)
    x, y, a, b = (_array(v, "scaled_matmul") for v in operands)
    for v, s in ((x, a), (y, b)):
        if v.ndim != 3 or s.shape[:2] != v.shape[:2] or s.ndim != 3 or not _scales_divide(s, v):
            raise ValueError(
                "nn.scaled_matmul: operands must be [batch, rows, k], their scales [batch, rows, "
                f"blocks] with blocks that divide k; got {v.shape} and {s.shape}; reshape them"
            )
    if a.shape[2] != b.shape[2]:
        raise ValueError(
            "nn.scaled_matmul: operands must have equally many blocks; got scales of shapes "
            f"{a.shape} and {b.shape}; make their last axes equal"
        )
    left, right = _apply_scales(x, a, np.float32), _apply_scales(y, b, np.float32)
    out = dot_general(left, right, (((2,), (2,)), ((0,), (0,))))
    return out.astype(dtypes.requested_dtype(preferred_element_type, "nn.scaled_matmul"))


def _round_to_block_format(x: Array, axis: int, config: BlockScaleConfig) -> Array:
    """Round an operand to a block-scaled format and back to its dtype; the derivative is that of
    the identity."""
    if axis >= x.ndim:
        raise TypeError(
            f"nn.scaled_dot_general: the contracted axis is out of bounds; got {axis} for shape "
            f"{x.shape}; pass an axis of the operand in dimension_numbers"
        )
    n = x.shape[axis]
    if n % config.block_size:
        raise ValueError(
            f"nn.scaled_dot_general: the contracted axis must be a multiple of the block size "
            f"{config.block_size}; got {n}; pad it with zeros"
        )
    largest = float(ml_dtypes.finfo(config.data_type).max)
    wide = x.astype(np.float32)
    split = (*x.shape[:axis], n // config.block_size, config.block_size, *x.shape[axis + 1 :])
    blocks = wide.reshape(split)
    peak = amax(ufuncs.abs(blocks), axis=axis + 1, keepdims=True)
    whole = np.float32(1) if config.global_scale is None else config.global_scale
    scale = peak / largest / whole
    if config.mode == "mxfp8":  # rounded up to a power of two
        scale = ufuncs.exp2(ufuncs.ceil(ufuncs.log2(where(scale > 0, scale, np.float32(1)))))
    scale = wrap(cast(scale._node, np.dtype(config.scale_type))).astype(np.float32) * whole
    scale = where(scale > 0, scale, np.float32(1))
    small = ufuncs.clip(blocks / scale, -largest, largest)
    small = wrap(cast(small._node, np.dtype(config.data_type))).astype(np.float32)
    dequantized = (small * scale).reshape(x.shape)
    return (wide + stop_gradient(dequantized - wide)).astype(x.dtype)


@api_boundary
def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """Compute `dot_general` of operands that are quantized to block-scaled formats first.

    Parameters
    ----------
    lhs : array_like
        Left operand, of a real floating dtype. One axis is contracted.
    rhs : array_like
        Right operand, of a real floating dtype. One axis is contracted.
    dimension_numbers : tuple
        Pair of the contracted axes of both operands and the batch axes of both, as for
        `lax.dot_general`.
    preferred_element_type : dtype_like, optional
        Dtype of the result. The default is float32; None takes that of the operands.
    configs : sequence of BlockScaleConfig, optional
        Formats of both operands and of cotangents, made by `get_scaled_dot_general_config`. The
        default, None, does not quantize.
    implementation : str, optional
        None or "cudnn". There is one implementation.

    Returns
    -------
    Array
        Product with the shape that `lax.dot_general` gives.

    Raises
    ------
    TypeError
        If shapes do not match the dimension numbers, or `configs` is not a list of three.
    ValueError
        If the contracted axis is not a multiple of the block size, or the implementation is
        unknown.
    UnsupportedDtypeError
        If an operand to be quantized is complex.

    See Also
    --------
    nn.get_scaled_dot_general_config : Make a format.
    lax.dot_general : Product without quantization.

    Notes
    -----
    Derivatives are those of the exact product of the quantized operands. JAX also quantizes the
    cotangent, in the third format, and has this function on GPUs only.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.ones((1, 2, 32))
    >>> formats = [jnp.nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> jnp.nn.scaled_dot_general(x, x, (((2,), (2,)), ((0,), (0,))), configs=formats)[0, 0, 0]
    Array(32., dtype=float32)
    """
    name = "scaled_dot_general"
    x, y = _array(lhs, name), _array(rhs, name)
    if implementation not in (None, "cudnn"):
        raise not_one_of(f"nn.{name}", "implementation", implementation, (None, "cudnn"))
    (xc, yc), _ = dimension_numbers
    if configs is not None:
        for v in (x, y):
            if not dtypes.issubdtype(v.dtype, np.floating):
                raise UnsupportedDtypeError(
                    f"nn.{name}: operands must be real; got {v.dtype.name}; convert with astype"
                )
        if not isinstance(configs, list | tuple) or len(configs) < 2:
            raise TypeError(
                "nn.scaled_dot_general: configs must be a list of formats: of both operands and of "
                f"cotangents; got {configs!r}; pass a list of three"
            )
        if len(xc) != 1:
            raise ValueError(
                f"nn.{name}: exactly one axis must be contracted; got {tuple(xc)}; pass one axis"
            )
        x = _round_to_block_format(x, xc[0], configs[0])
        y = _round_to_block_format(y, yc[0], configs[1])
    preferred_dtype = preferred_element_type
    if preferred_dtype is not None:
        preferred_dtype = dtypes.requested_dtype(preferred_dtype, f"nn.{name}")
    return dot_general(x, y, dimension_numbers, preferred_element_type=preferred_dtype)
