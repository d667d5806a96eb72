"""HTML representation of arrays in notebooks.

A table shows shape, dtype, size, device, whether the value is pending or ready, and a preview of
ready values. Nothing is computed: for a pending array, the operation that was recorded last is
shown instead of values. The table sets no colors, so it suits light and dark themes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from accnp import engine
from accnp.array_type import Array, is_traced
from accnp.engine.describe import bytes_text
from accnp.errors import UnexpectedTracerError
from accnp.ir.node import LITERAL, Node, site_text
from accnp.ir.svg import escape
from accnp.key_array import PRNGKeyArray

__all__ = ["repr_html"]

PREVIEW_ELEMENTS = 64  # arrays of more elements are summarized, as NumPy does above 1000
PREVIEW_EDGE = 3  # elements shown at each end of an axis of a summarized array
DEVICE_COPY_BYTES = 1 << 20  # values of larger arrays on a GPU are not copied for a preview

READY, RUNNING = "ready", "being computed"
PENDING = "pending (not computed until its value is used)"
_HAS_DEVICE = (READY, RUNNING, PENDING)
_TABLE = "border-collapse:collapse;font:13px/1.5 ui-monospace,monospace;color:inherit"
_CELL = "text-align:left;padding:0 1em 0 0;border:0;background:none;color:inherit"
_LABEL = f"{_CELL};opacity:.65;font-weight:normal"
_PREVIEW = (
    "margin:.4em 0 0;padding:.4em 0 0;border-top:1px solid currentColor;background:none;"
    "color:inherit;font:13px/1.5 ui-monospace,monospace;max-height:24em;overflow:auto"
)


def repr_html(self: Array) -> str:
    """Return an HTML table about the array, for notebooks. Computes nothing and raises no error.

    >>> import accnp as jnp
    >>> x = jnp.arange(3.0) * 2
    >>> "pending" in x._repr_html_()
    True
    >>> x.is_ready()
    False
    >>> "[0., 2., 4.]" in x.block_until_ready()._repr_html_()
    True
    """
    base: Any = self._base if isinstance(self, PRNGKeyArray) else self
    node: Node | None = base._node if type(base) is Array else None  # keys may hold placeholders
    facts = {
        "shape": str(tuple(self.shape)),
        "dtype": f"{self.dtype.name}{' (weak type)' if self.weak_type else ''}",
        "size": bytes_text(self.nbytes),
    }
    state = "unknown" if node is None else _state(node)
    if node is not None and state in _HAS_DEVICE:
        facts["device"] = ", ".join(sorted(map(str, base.devices())))
    facts["state"] = state
    if node is not None and state == PENDING:
        facts["operation"] = _operation(node)
    rows = "".join(
        f'<tr style="background:none"><th style="{_LABEL}">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(text)}</td></tr>'
        for name, text in facts.items()
    )
    preview = ""
    if node is not None and state == READY and _is_near(node):
        preview = f'<pre style="{_PREVIEW}">{escape(_preview(node))}</pre>'
    title = f'<div style="{_CELL}"><b>accnp.Array</b></div>'
    return f'<div>{title}<table style="{_TABLE}"><tbody>{rows}</tbody></table>{preview}</div>'


def _state(node: Node) -> str:
    """Describe whether the value is pending or ready."""
    if node.value is engine.DELETED:
        return "deleted or donated"
    try:
        if is_traced(node):
            return "traced"
    except UnexpectedTracerError:
        return "leaked from a traced function"
    if engine.is_ready(node) or node.op is LITERAL:
        return READY
    return PENDING if node.value is None else RUNNING


def _operation(node: Node) -> str:
    """Describe the operation of a pending array, and the line that recorded it."""
    with suppress(Exception):  # code without line numbers
        if node.site is not None:
            return f"{node.op.name}, recorded at {site_text(node)}"
    return node.op.name


def _is_near(node: Node) -> bool:
    return engine.device_of(node).platform == "cpu" or node.aval.nbytes <= DEVICE_COPY_BYTES


def _preview(node: Node) -> str:
    """Return the values as NumPy prints them, abbreviated for large arrays."""
    value = engine.array_of(node)
    if value.size == 0:
        return "no elements"
    return np.array2string(
        value, separator=", ", threshold=PREVIEW_ELEMENTS, edgeitems=PREVIEW_EDGE, max_line_width=88
    )
