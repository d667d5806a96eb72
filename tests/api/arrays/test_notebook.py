"""Arrays in notebooks: `Array._repr_html_`."""

import html.parser

import numpy as np
import pytest

import accnp as jnp
from accnp.devtools.inspect import notebook


class Reader(html.parser.HTMLParser):
    """Collects the texts of an HTML fragment and checks that every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.styles = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.styles += [value for name, value in attrs if name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(x):
    reader = Reader()
    reader.feed(x._repr_html_())
    assert reader.open == []
    return reader


def test_a_pending_array_stays_pending():
    x = jnp.arange(4.0) * 2
    before = jnp.counters()["launches"]
    texts = read(x).texts
    assert notebook.PENDING in texts
    assert {"(4,)", "float32", "cpu:0", "16 B"} <= set(texts)
    assert any(text.startswith("mul, recorded at") and __file__ in text for text in texts)
    assert not x.is_ready()
    assert jnp.counters()["launches"] == before


def test_a_ready_array_has_a_preview():
    x = (jnp.arange(4.0) * 2).block_until_ready()
    texts = read(x).texts
    assert "ready" in texts
    assert texts[-1] == "[0., 2., 4., 6.]"
    assert texts[-1] in read(jnp.asarray(np.arange(4.0) * 2)).texts


def test_the_preview_of_a_large_array_is_short():
    x = jnp.zeros((300, 300)).block_until_ready()
    assert len(x._repr_html_()) < 2500
    assert "..." in read(x).texts[-1]


def test_texts_are_escaped():
    scope = {"jnp": jnp}
    exec("x = jnp.arange(2.0) + 1", scope)  # recorded in "<module>" of "<string>"
    assert "&lt;module&gt;" in scope["x"]._repr_html_()
    assert "key&lt;fry&gt;" in jnp.random.key(0)._repr_html_()


def test_html_sets_no_colours():
    """The notebook's theme, light or dark, determines the colors."""
    for style in read(jnp.ones(3).block_until_ready()).styles:
        assert not any(word in style for word in ("#", "rgb", "white", "black"))


@pytest.mark.parametrize("kind", ["jit", "vmap", "grad"])
def test_traced_arrays(kind):
    seen = []

    def f(x):
        seen.append(read(x * 2).texts)
        return (x * 2).sum()

    {"jit": jnp.jit, "vmap": jnp.vmap, "grad": jnp.grad}[kind](f)(jnp.ones(3))
    (texts,) = seen
    assert ("traced" in texts) == (kind != "grad")
    assert not any(text.startswith("[") for text in texts)


def test_leaked_and_deleted_arrays_do_not_raise():
    leaked = []
    jnp.jit(lambda x: leaked.append(x + 1) or x)(1.0)
    assert "leaked from a traced function" in read(leaked[0]).texts
    x = jnp.arange(3).block_until_ready()
    x.delete()
    assert "deleted or donated" in read(x).texts


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: jnp.asarray(2.0), "2."),
        (lambda: jnp.zeros((0, 3)), "no elements"),
        (lambda: jnp.array([1, 2], "bfloat16"), "[1, 2]"),
        (lambda: jnp.array([True, False]), "[ True, False]"),
        (lambda: jnp.array([1 + 2j]), "[1.+2.j]"),
        (lambda: jnp.array([jnp.nan, -jnp.inf]), "[ nan, -inf]"),
    ],
    ids=["scalar", "empty", "bfloat16", "bool", "complex", "nan"],
)
def test_previews_of_all_dtypes(make, shown):
    assert read(make().block_until_ready()).texts[-1] == shown


def test_random_keys():
    assert "key<fry>" in read(jnp.random.key(3)).texts


def test_completion_and_help_are_unaffected():
    assert "_repr_html_" in dir(jnp.Array)
    assert not [name for name in dir(jnp.Array) if "html" in name and not name.startswith("_")]
