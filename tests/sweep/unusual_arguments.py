"""Unusual spellings of arguments: the usual values of a parameter, and other spellings of a value.

The functions take a parameter, or the source of a value, and return sources.
"""

from __future__ import annotations

import ast

_SHAPES = "3 / (3,) / [2, 3] / () / np.array([2, 3]) / (np.int64(2), 3) / (0, 2) / np.int8(3)"
_PLACES = "1 / -1 / 0 / 2 / np.int32(1) / 9 / -9"
_COUNTS = "0 / 1 / 5 / np.int32(3)"
_WEIGHTS = "B / jnp.arange(3.0) / [1, 2, 3] / 2.0 / K / A"
UNUSUAL_VALUES = {
    name: texts.split(" / ")
    for names, texts in {
        "axis": "-1 / -2 / (0,) / (-1,) / (-1, 0) / [0, 1] / np.int64(0) / None / () / np.int8(-1)",
        "axes": "-1 / (0,) / (-1,) / (-1, 0) / [0, 1] / np.array([0, 1]) / None / (np.int64(0),)",
        "keepdims": "1 / 0 / np.bool_(True)",
        "where": "True / False / K / np.array(True) / jnp.array([0, 1, 1]) / B / np.bool_(False)",
        "initial": "2 / 2.5 / 1j / True / jnp.array(2) / np.float32(3) / np.int8(1) / 300 / -1"
        " / float('nan') / np.array(2.0)",
        "dtype": "int / float / bool / complex / 'uint8' / jnp.bfloat16 / np.int16 / 'i4'"
        " / np.float64 / 'complex64' / jnp.float16 / jnp.int32 / None / 'int8'",
        "size": "0 / 1 / np.int32(3) / 7 / None",
        "fill_value": "-1 / 2.5 / True / jnp.array(3) / np.array([1]) / None / 300 / float('nan')",
        "shape": _SHAPES,
        "mode": "'clip' / 'wrap' / None / 'same' / 'fill' / 'drop'",
        "precision": "None / 'high' / 'HIGHEST' / lax.Precision.DEFAULT / ('high', 'highest')",
        "preferred_element_type": "float / 'int32' / jnp.bfloat16 / np.float64 / None / complex",
        "ddof correction": "0 / 2 / -1 / 1.5 / jnp.array(1) / np.int32(1) / 9",
        "k offset": _PLACES,
        "order": "'C' / 'F' / 'A' / 'K' / None",
        "num n N": _COUNTS,
        "s": "(4,) / (3, 2) / [3, 2] / None",
        "norm": "None / 'ortho' / 'forward' / 'backward'",
        "weights": _WEIGHTS,
        "num_segments": "0 / 3 / np.int32(3) / None",
    }.items()
    for name in names.split()
}


def respell_literal(text: str) -> list[str]:
    """Return a literal with other types and signs, or reversed, as users may pass it."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return []
    if isinstance(value, bool):
        return ["1", "0", "np.bool_(True)", repr(not value)]
    if isinstance(value, int):
        return [
            f"np.int32({value})", f"jnp.array({value})", f"np.array({value})", f"{value + 1}",
            f"{-value}", f"np.uint8({value % 200})", f"{float(value)}",
        ]  # fmt: skip
    if isinstance(value, float):
        return [
            f"np.float32({value})", f"jnp.array({value})", f"{int(value)}", f"np.float64({value})",
            f"{-value}", f"jnp.float16({value})", f"jnp.array([{value}])",
        ]  # fmt: skip
    if isinstance(value, tuple | list) and value:
        return [
            repr(list(value)), repr(tuple(value)), f"np.array({value!r})", repr(value[::-1]),
            f"tuple(map(np.int64, {value!r}))", repr(value[:1]),
        ]  # fmt: skip
    return []
