"""HTML page of an `Explanation`, without external resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accnp.devtools.explain.comparison_note import limit_text
from accnp.ir.svg import escape

if TYPE_CHECKING:
    from accnp.devtools.explain.explain import Explanation
    from accnp.devtools.explain.plan_facts import PlanFacts, StepFacts

__all__ = ["page"]

_NUMBERS = ("step", "MB", "ms", "GB/s", "times")

_STYLE = """
.accnp{font:15px/1.5 system-ui,sans-serif;color:#0f172a;background:#fff;max-width:72rem;
  margin:0 auto;padding:1.5rem}
.accnp h1{font-size:1.4rem;margin:0}
.accnp h2{font-size:1.05rem;margin:1.8rem 0 .5rem;border-bottom:1px solid #e2e8f0}
.accnp p{margin:.2rem 0}
.accnp .quiet{color:#64748b}
.accnp ul{margin:.3rem 0;padding-left:1.3rem}
.accnp li{margin:.25rem 0}
.accnp code,.accnp td.code{font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere}
.accnp .advice li{background:#fef3c7;border-left:4px solid #d97706;padding:.35rem .7rem;
  list-style:none;margin-left:-1.3rem}
.accnp .busy{background:#fee2e2;border-left:4px solid #dc2626;padding:.35rem .7rem}
.accnp .good{background:#dcfce7;border-left:4px solid #16a34a;padding:.35rem .7rem}
.accnp table{border-collapse:collapse;width:100%}
.accnp th,.accnp td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #e2e8f0;
  vertical-align:top}
.accnp td.share{white-space:nowrap}
.accnp th{color:#64748b;font-weight:600;font-size:.85rem}
.accnp td.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.accnp .bar{background:#e2e8f0;width:7rem;height:.7rem;border-radius:3px;overflow:hidden;
  display:inline-block;margin-right:.4rem}
.accnp .bar i{display:block;height:100%;background:#2563eb}
.accnp .picture{overflow:auto;border:1px solid #e2e8f0;border-radius:6px;margin:.6rem 0;
  padding:.4rem}
"""


def page(e: Explanation) -> str:
    """Return the page of an explanation."""
    body = [
        f"<h1>{escape(e.title)}</h1>",
        f'<p class="quiet">{escape(e.status)}; {escape(limit_text())}; '
        "this is the limit that kernels are compared with</p>",
        _warning(e),
        "<h2>Advice</h2>",
        _list(e.advice, "advice") or '<p class="good">Nothing stands out.</p>',
    ]
    for p in e.plans:
        body += _plan(p)
    body.append("<h2>Who forced values</h2>")
    rows = [
        [_code(line), escape(by), _number_cell(f"{n}"), _number_cell(f"{1e3 * seconds:.3g}")]
        for line, by, n, seconds in e.value_uses
    ]
    body.append(_table(["line", "by", "times", "ms"], rows) or "<p>None.</p>")
    body += ["<h2>Traces</h2>", _list(e.traces) or "<p>None.</p>"]
    body += ["<h2>Compiles</h2>", _list(e.compiles) or "<p>None.</p>"]
    body += ["<h2>Caches</h2>", f"<p>{escape(e.caches)}.</p>"]
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(e.title)}</title>'
        f"<style>{_STYLE}</style></head>\n"
        '<body style="margin:0"><div class="accnp">\n'
        + "\n".join(body)
        + "\n</div></body></html>\n"
    )


def _warning(e: Explanation) -> str:
    """Return a box that says that times are unreliable, on a busy machine."""
    if e.load is None or not e.load.busy:
        return ""
    return f'<p class="busy">Unreliable times, {escape(str(e.load))}.</p>'


def _plan(p: PlanFacts) -> list[str]:
    out = [
        f"<h2>{escape(p.title)}</h2>",
        f'<p class="quiet">run {p.runs} times; steps together {1e3 * p.seconds:.3g} ms</p>',
        _table(["step", "", "MB", "ms", "GB/s", "of a streaming copy"], map(_step, p.steps)),
    ]
    if p.boundaries:
        out.append("<p><b>What stopped fusion</b></p>")
        out.append(_list([str(b) for b in p.boundaries]))
    if p.svg:
        out.append(f'<div class="picture">{p.svg}</div>')
    return out


def _step(s: StepFacts) -> list[str]:
    cells = [_number_cell(str(s.number)), _code(s.text), _number_cell(f"{s.nbytes / 1e6:.3g}")]
    if not s.seconds or s.share is None:
        return [*cells, _number_cell("-"), _number_cell("-"), "<td>not run</td>"]
    rate = s.nbytes / s.seconds / 1e9
    width = min(100, round(100 * s.share))
    bar = f'<span class="bar"><i style="width:{width}%"></i></span>{s.share:.0%}{escape(s.caveat)}'
    return [
        *cells,
        _number_cell(f"{1e3 * s.seconds:.3g}"),
        _number_cell(f"{rate:.1f}"),
        f'<td class="share">{bar}</td>',
    ]


def _code(text: str) -> str:
    return f'<td class="code">{escape(text)}</td>'


def _number_cell(text: str) -> str:
    return f'<td class="number">{escape(text)}</td>'


def _table(head: list[str], rows: object) -> str:
    lines = [
        "<tr>" + "".join(c if c.startswith("<td") else f"<td>{c}</td>" for c in row) + "</tr>"
        for row in rows  # type: ignore[attr-defined]
    ]
    if not lines:
        return ""
    titles = "".join(
        f"<th{' style=text-align:right' if text in _NUMBERS else ''}>{escape(text)}</th>"
        for text in head
    )
    return f"<table><tr>{titles}</tr>\n" + "\n".join(lines) + "</table>"


def _list(texts: list[str], kind: str = "") -> str:
    if not texts:
        return ""
    name = f' class="{kind}"' if kind else ""
    return f"<ul{name}>" + "".join(f"<li>{escape(t)}</li>" for t in texts) + "</ul>"
