"""The layout of graph pictures: nothing overlaps, edges point down, and texts are escaped."""

import random
import xml.etree.ElementTree as ElementTree

import pytest

from accnp.ir.svg import Box, Group, picture

SVG = "{http://www.w3.org/2000/svg}"


def random_graph(seed):
    """Return boxes in topological order; groups are consecutive boxes."""
    r = random.Random(seed)
    boxes, edges = [], []
    group = None
    for i in range(r.randint(2, 30)):
        if r.random() < 0.3:
            group = r.choice([None, Group(f"kernel {i}", host=r.random() < 0.3)])
        boxes.append(Box([f"op{i}", "x" * r.randint(1, 12)], "op", "", group))
        edges += [(boxes[j], boxes[i]) for j in range(i) if r.random() < 0.15]
    return boxes, edges


def overlap(a, b):
    across = a.x < b.x + b.width - 0.2 and b.x < a.x + a.width - 0.2
    return across and a.y < b.y + b.height - 0.2 and b.y < a.y + a.height - 0.2


@pytest.mark.parametrize("seed", range(25))
def test_nothing_overlaps_and_edges_run_down(seed):
    boxes, edges = random_graph(seed)
    root = ElementTree.fromstring(picture(boxes, edges, "a graph"))
    width, height = float(root.get("width")), float(root.get("height"))
    groups = list({id(b.group): b.group for b in boxes if b.group is not None}.values())
    single = [b for b in boxes if b.group is None]
    for things in (boxes, [*groups, *single]):
        for i, a in enumerate(things):
            assert not any(overlap(a, b) for b in things[i + 1 :])
            assert a.x >= 0
            assert a.x + a.width <= width
            assert a.y + a.height <= height
    for b in boxes:
        if b.group is not None:
            assert b.group.x <= b.x
            assert b.x + b.width <= b.group.x + b.group.width + 0.2
            assert b.group.y <= b.y
            assert b.y + b.height <= b.group.y + b.group.height
    for a, b in edges:
        assert a.y + a.height <= b.y
    paths = [p for p in root.findall(f"{SVG}path")]
    assert len(paths) == len(edges)


def test_texts_are_escaped():
    text = picture([Box(["<lambda> & co"], tip="a < b")], [], "f<x>")
    root = ElementTree.fromstring(text)
    assert [t.text for t in root.iter(f"{SVG}text")] == ["f<x>", "<lambda> & co"]
    assert [t.text for t in root.iter(f"{SVG}title")] == ["a < b"]


def test_an_empty_picture():
    assert ElementTree.fromstring(picture([], [])).tag == f"{SVG}svg"


def test_an_edge_past_a_layer_does_not_cross_its_boxes():
    a, b, c = Box(["a"]), Box(["bbbbbbbbbbbb"]), Box(["c"])
    text = picture([a, b, c], [(a, b), (b, c), (a, c)])
    root = ElementTree.fromstring(text)
    way = root.findall(f"{SVG}path")[2].get("d")
    points = [
        tuple(map(float, p.split(","))) for p in way.replace("C", "").replace("M", "").split()
    ]
    beside = [
        x for x, y in points if b.y + 1 < y < b.y + b.height - 1 or y in (b.y, b.y + b.height)
    ]
    assert beside
    assert all(x < b.x or x > b.x + b.width for x in beside)


def test_edges_do_not_cross_the_titles_of_frames():
    group = Group("a kernel with a long title")
    boxes = [Box(["x"], "leaf"), Box(["exp"], "op", "", group)]
    root = ElementTree.fromstring(picture(boxes, [(boxes[0], boxes[1])]))
    drawn = list(root)
    (edge,) = root.findall(f"{SVG}path")
    (title,) = [t for t in root.findall(f"{SVG}text") if t.text == group.title]
    (frame,) = [r for r in root.findall(f"{SVG}rect") if r.get("rx") == "8"]
    assert drawn.index(title) > drawn.index(edge)
    assert title.get("paint-order") == "stroke"
    assert title.get("stroke") == frame.get("fill")
