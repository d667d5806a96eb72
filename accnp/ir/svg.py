"""SVG pictures of graphs: boxes, edges between them, and groups drawn as frames.

`picture` lays out each group (a kernel) separately. It then assigns groups and single boxes to
layers from top to bottom, adds route points where an edge crosses a layer, orders each layer by the
mean position of the neighbors, and draws the result. `devtools/inspect` calls it to show programs
and plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Box", "Group", "picture"]


def escape(text: str) -> str:
    """Escape a text for SVG and HTML."""
    import html  # takes 6 ms, so it is imported only for pictures

    return html.escape(text)


CHAR = 6.7  # width in pixels of a character of the 11 px monospaced font
LINE = 14.0
PAD = 8.0
GAP = 18.0  # between boxes of a row
ROW = 26.0  # between rows
TITLE = 20.0
FILLS = ("#dbeafe", "#dcfce7", "#fef3c7", "#fce7f3", "#ede9fe", "#cffafe", "#ffedd5", "#ecfccb")
STROKES = ("#2563eb", "#16a34a", "#d97706", "#db2777", "#7c3aed", "#0891b2", "#ea580c", "#65a30d")


@dataclass(eq=False)
class Box:
    """One node of the picture; `kind` is "op", "view", "leaf" or "result"."""

    lines: Sequence[str]
    kind: str = "op"
    tip: str = ""
    group: Group | None = None
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * CHAR + 2 * PAD

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + PAD


@dataclass(eq=False)
class Group:
    """A colored frame around boxes; `host` frames are gray and dashed."""

    title: str
    host: bool = False
    boxes: list[Box] = field(default_factory=list["Box"])
    # Boxes and waypoints; their positions are relative to the frame.
    items: list[_Item] = field(default_factory=list["_Item"])
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0


class _Item:
    """An element of a layer: a group, a box, or (None) a route point of an edge."""

    def __init__(self, what: Group | Box | None, layer: int = 0) -> None:
        self.what = what
        self.width = what.width if what is not None else 6.0
        self.height = what.height if what is not None else 0.0
        self.layer = layer
        self.x = 0.0  # left
        self.y = 0.0
        self.ups: list[_Item] = []
        self.downs: list[_Item] = []

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


Link = tuple[_Item, _Item]
Route = list[_Item]


def picture(boxes: Sequence[Box], edges: Iterable[tuple[Box, Box]], title: str = "") -> str:
    """Return an SVG of boxes and the edges between them (from, to)."""
    edges = list(dict.fromkeys(edges))
    groups = list(dict.fromkeys(b.group for b in boxes if b.group is not None))
    # Keys are (from, to); the path from a box to its group's frame has the key (box, group), and
    # the path from the frame to a box the key (group, box).
    routes: dict[tuple[int, int], Route] = {}
    for g in groups:
        g.boxes = [b for b in boxes if b.group is g]
        _layout_group(g, edges, routes)
    items: dict[int, _Item] = {}
    for b in boxes:
        whole = b.group if b.group is not None else b
        if id(whole) not in items:
            items[id(whole)] = _Item(whole)
    outer: dict[tuple[int, int], None] = {}
    for a, b in edges:
        pair = id(a.group or a), id(b.group or b)
        if pair[0] != pair[1]:
            outer[pair] = None
    every = list(items.values())
    links = [(items[a], items[b]) for a, b in outer]
    _assign_layers(every, links)
    routes.update(zip(outer, _add_waypoints(every, links), strict=True))
    width, height = _position_rows(_sort_layers(every), TITLE + PAD, ROW * 1.4)
    for item in every:
        _copy_position(item, 2 * PAD)
    return _draw(boxes, groups, edges, routes, width + 4 * PAD, height + PAD, title)


# --- layout ---


def _rank_vertices(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the longest distance from a source for each of n vertices; cycles are cut."""
    rank = [0] * n
    for _ in range(n):
        changed = False
        for a, b in edges:
            if rank[b] < rank[a] + 1 <= n:
                rank[b] = rank[a] + 1
                changed = True
        if not changed:
            break
    return rank


def _layout_group(
    g: Group, edges: Sequence[tuple[Box, Box]], routes: dict[tuple[int, int], Route]
) -> None:
    """Lay out the boxes of a group, with gates at the top and bottom for edges across its frame."""
    items = [_Item(b) for b in g.boxes]
    index = {id(b): i for i, b in enumerate(g.boxes)}
    pairs = [(index[id(a)], index[id(b)]) for a, b in edges if a.group is g and b.group is g]
    for item, rank in zip(items, _rank_vertices(len(items), pairs), strict=True):
        item.layer = rank
    last = max(i.layer for i in items)
    links = [(items[a], items[b]) for a, b in pairs]
    keys = [(id(g.boxes[a]), id(g.boxes[b])) for a, b in pairs]
    gates: list[_Item | None] = [None] * len(links)
    for a, b in edges:
        if a.group is g and b.group is not g and (id(a), id(g)) not in keys:
            low = items[index[id(a)]]
            if low.layer < last:
                gate = _Item(None, last)
                links.append((low, gate))
                keys.append((id(a), id(g)))
                gates.append(gate)
        if b.group is g and a.group is not g and (id(g), id(b)) not in keys:
            high = items[index[id(b)]]
            if high.layer > 0:
                gate = _Item(None, 0)
                links.append((gate, high))
                keys.append((id(g), id(b)))
                gates.append(gate)
    items += [x for x in gates if x is not None]
    for key, gate, route, link in zip(
        keys, gates, _add_waypoints(items, links), links, strict=True
    ):
        front = [gate] if gate is not None and gate is link[0] else []
        back = [gate] if gate is not None and gate is link[1] else []
        routes[key] = [*front, *route, *back]
    g.items = items
    top = TITLE + PAD / 2
    width, height = _position_rows(_sort_layers(items), top, ROW * 0.7)
    g.width = max(width, len(g.title) * CHAR * 1.05) + 2 * PAD
    for item in items:
        item.x += (g.width - width) / 2
    g.height = height + PAD


def _assign_layers(items: Sequence[_Item], links: Sequence[Link]) -> None:
    index = {id(x): i for i, x in enumerate(items)}
    ranks = _rank_vertices(len(items), [(index[id(a)], index[id(b)]) for a, b in links])
    for item, rank in zip(items, ranks, strict=True):
        item.layer = rank
    firsts: dict[int, int] = {}
    for a, b in links:
        firsts[id(a)] = min(firsts.get(id(a), b.layer), b.layer)
    fed = {id(b) for _, b in links}
    for item in items:  # inputs go directly above their first reader
        if id(item) not in fed and id(item) in firsts:
            item.layer = max(0, firsts[id(item)] - 1)


def _add_waypoints(items: list[_Item], links: Sequence[Link]) -> list[Route]:
    """Add an item to each layer that a link crosses; return these route points for each link."""
    paths: list[list[_Item]] = []
    for a, b in links:
        route: list[_Item] = []
        last = a
        for layer in range(a.layer + 1, b.layer):
            point = _Item(None)
            point.layer = layer
            items.append(point)
            route.append(point)
            last.downs.append(point)
            point.ups.append(last)
            last = point
        last.downs.append(b)
        b.ups.append(last)
        paths.append(route)
    return paths


def _sort_layers(items: Sequence[_Item]) -> list[list[_Item]]:
    """Sort each layer by the mean position of its neighbors, alternating down and up."""
    rows: list[list[_Item]] = [[] for _ in range(max((i.layer for i in items), default=0) + 1)]
    for item in items:
        rows[item.layer].append(item)
    for turn in range(6):
        place = {id(i): k / max(1, len(row) - 1) for row in rows for k, i in enumerate(row)}
        for row in rows if turn % 2 == 0 else reversed(rows):
            target: dict[int, float] = {}
            for i in row:
                near = i.ups if turn % 2 == 0 else i.downs
                target[id(i)] = _mean([place[id(n)] for n in near], place[id(i)])
            row.sort(key=lambda i: target[id(i)])
            place.update({id(i): k / max(1, len(row) - 1) for k, i in enumerate(row)})
    return rows


def _position_rows(rows: Sequence[Sequence[_Item]], top: float, gap: float) -> tuple[float, float]:
    """Position rows below one another, each item near its neighbors; return width and bottom."""
    y = top
    for row in rows:
        tall = max((i.height for i in row), default=0.0)
        x = 0.0
        for i in row:
            if i.what is None:
                i.height = tall
            i.x, i.y = x, y + (tall - i.height) / 2
            x += i.width + GAP
        y += tall + gap
    for turn in range(10):
        for row in rows if turn % 2 == 0 else reversed(rows):
            targets: list[float] = []
            for i in row:
                near = i.ups if turn % 2 == 0 else i.downs
                targets.append(_mean([n.middle for n in near], i.middle) - i.width / 2)
            _spread_row(row, targets)
    left = min((i.x for row in rows for i in row), default=0.0)
    for row in rows:
        for i in row:
            i.x -= left
    return max((i.x + i.width for row in rows for i in row), default=100.0), y - gap


def _spread_row(row: Sequence[_Item], targets: Sequence[float]) -> None:
    """Position items as close to the wanted positions as their widths allow, keeping the order."""
    blocks: list[list[float]] = []  # sum of (wanted - offset), count, width
    counts: list[int] = []
    for item, target in zip(row, targets, strict=True):
        blocks.append([target, 1.0, item.width + GAP])
        counts.append(1)
        while len(blocks) > 1:
            (s1, n1, w1), (s2, n2, w2) = blocks[-2], blocks[-1]
            if s1 / n1 + w1 <= s2 / n2:
                break
            blocks[-2:] = [[s1 + s2 - n2 * w1, n1 + n2, w1 + w2]]
            counts[-2:] = [counts[-2] + counts[-1]]
    at = 0
    for (total, n, _), count in zip(blocks, counts, strict=True):
        x = total / n
        for item in row[at : at + count]:
            item.x = x
            x += item.width + GAP
        at += count


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _copy_position(item: _Item, left: float) -> None:
    """Copy an item's final position, shifted by `left`, to its box or group."""
    item.x += left
    what = item.what
    if what is None:
        return
    what.x, what.y = item.x, item.y
    if isinstance(what, Group):
        for inner in what.items:
            inner.x += what.x
            inner.y += what.y
            if inner.what is not None:
                inner.what.x, inner.what.y = inner.x, inner.y


# --- drawing ---


def _draw(
    boxes: Sequence[Box],
    groups: Sequence[Group],
    edges: Sequence[tuple[Box, Box]],
    routes: dict[tuple[int, int], Route],
    width: float,
    height: float,
    title: str,
) -> str:
    width = max(width, len(title) * CHAR + 4 * PAD)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="monospace" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#64748b"/>',
        "</marker></defs>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{2 * PAD}" y="{PAD + 8}" font-weight="bold" fill="#0f172a">'
        f"{escape(title)}</text>",
    ]
    color = 0
    titles: list[str] = []
    for g in groups:
        fill, stroke, dash = "#f1f5f9", "#64748b", ' stroke-dasharray="5 3"'
        if not g.host:
            fill, stroke, dash = FILLS[color % len(FILLS)], STROKES[color % len(STROKES)], ""
            color += 1
        out.append(
            f'<rect x="{g.x:.1f}" y="{g.y:.1f}" width="{g.width:.1f}" height="{g.height:.1f}" '
            f'rx="8" fill="{fill}" stroke="{stroke}" stroke-width="1.5"{dash}/>'
        )
        # Titles are drawn after the edges, with an outline in the frame's color, so that no edge
        # covers them.
        titles.append(
            f'<text x="{g.x + PAD:.1f}" y="{g.y + 15:.1f}" font-weight="bold" fill="{stroke}" '
            f'stroke="{fill}" stroke-width="4" stroke-linejoin="round" paint-order="stroke">'
            f"{escape(g.title)}</text>"
        )
    for a, b in edges:
        out.append(_draw_edge(a, b, _find_path(a, b, routes)))
    out += titles
    out += [_draw_box(b) for b in boxes]
    out.append("</svg>")
    return "\n".join(out)


def _find_path(a: Box, b: Box, routes: dict[tuple[int, int], Route]) -> Route:
    """Return all route points between two boxes: inside a's group, between groups, in b's group."""
    if a.group is not None and a.group is b.group:
        return routes.get((id(a), id(b)), [])
    leave = routes.get((id(a), id(a.group)), [])
    enter = routes.get((id(b.group), id(b)), [])
    return [*leave, *routes.get((id(a.group or a), id(b.group or b)), []), *enter]


def _draw_edge(a: Box, b: Box, route: Sequence[_Item]) -> str:
    points = [(a.x + a.width / 2, a.y + a.height)]
    for p in route:
        points += [(p.middle, p.y), (p.middle, p.y + p.height)]
    points.append((b.x + b.width / 2, b.y))
    text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = (y1 - y0) / 2
        text += f" C{x0:.1f},{y0 + bend:.1f} {x1:.1f},{y1 - bend:.1f} {x1:.1f},{y1:.1f}"
    return (
        f'<path d="{text}" fill="none" stroke="#64748b" stroke-width="1.1" marker-end="url(#tip)"/>'
    )


_STYLES = {
    "op": ("white", "#334155", 3),
    "view": ("#f8fafc", "#cbd5e1", 3),
    "leaf": ("#e2e8f0", "#475569", 12),
    "result": ("#1e293b", "#1e293b", 12),
}


def _draw_box(b: Box) -> str:
    fill, stroke, round_ = _STYLES[b.kind]
    ink = "white" if b.kind == "result" else "#64748b" if b.kind == "view" else "#0f172a"
    text = (
        f'<g><title>{escape(b.tip)}</title><rect x="{b.x:.1f}" y="{b.y:.1f}" width="{b.width:.1f}" '
        f'height="{b.height:.1f}" rx="{round_}" fill="{fill}" stroke="{stroke}"/>'
    )
    for i, line in enumerate(b.lines):
        weight = ' font-weight="bold"' if i == 0 and b.kind == "op" else ""
        text += (
            f'<text x="{b.x + b.width / 2:.1f}" y="{b.y + PAD / 2 + 10 + i * LINE:.1f}" '
            f'text-anchor="middle" fill="{ink}"{weight}>{escape(line)}</text>'
        )
    return text + "</g>"
