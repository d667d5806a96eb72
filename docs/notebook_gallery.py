"""The gallery of notebooks: cards with thumbnails, and a download link on each page.

A Sphinx extension. MyST-NB executes the notebooks in `docs/gallery` while the site is built. The
directive `gallery` takes a line `name picture: caption` for each notebook. It adds the notebooks to
the table of contents and shows a card for each: a picture of the notebook (1 is the first), its
title, and the caption. No picture is stored in the repository: executing the notebooks makes them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

FOLDER = "gallery"


class Card(nodes.General, nodes.Element):
    """A placeholder for a card, until the notebook that it shows has been read."""


class Gallery(SphinxDirective):
    """A row of cards, one for each line `name picture: caption` of the content."""

    has_content = True

    def run(self) -> list[Node]:
        cards = []
        for line in self.content:
            head, _, caption = line.partition(": ")
            name, number = head.split()
            cards.append(Card(name=name, number=int(number), caption=caption))
        names = "\n".join(card["name"] for card in cards)
        toctree = f"```{{toctree}}\n:hidden:\n\n{names}\n```"
        row = nodes.container(classes=["gallery-row"])
        row += cards
        return [*self.parse_text_to_nodes(toctree), row]


def fill_cards(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Replace the placeholders by cards."""
    for placeholder in list(doctree.findall(Card)):
        placeholder.replace_self(filled_card(app, page, placeholder))


def filled_card(app: Sphinx, page: str, placeholder: Card) -> nodes.container:
    """Return a card: a picture and a title, both linked to the notebook, and the caption.

    The title is that of the notebook up to its colon.
    """
    name = f"{FOLDER}/{placeholder['name']}"
    target = app.builder.get_relative_uri(page, name)
    title = app.env.titles[name].astext().partition(":")[0]
    card = nodes.container(classes=["gallery-card"])
    pictures = list(app.env.get_doctree(name).findall(nodes.image))
    if app.config.nb_execution_mode != "off":  # 'off' produces no pictures
        image = pictures[placeholder["number"] - 1].deepcopy()
        image["alt"] = title
        image["classes"].append("dark-light")  # the theme dims other pictures in dark mode
        link = nodes.reference("", "", image, refuri=target, internal=True)
        card += nodes.paragraph("", "", link, classes=["gallery-picture"])
    link = nodes.reference("", title, refuri=target, internal=True)
    card += nodes.paragraph("", "", link, classes=["gallery-title"])
    card += nodes.paragraph("", placeholder["caption"], classes=["gallery-caption"])
    return card


def add_download_link(app: Sphinx, doctree: nodes.document) -> None:
    """Link the executed notebook, which MyST-NB writes, below the title of its page."""
    folder, _, name = app.env.docname.rpartition("/")
    if folder != FOLDER or name == "index":
        return
    notebook = Path(app.outdir).parent / "jupyter_execute" / FOLDER / f"{name}.ipynb"
    link = addnodes.download_reference(
        "", reftarget="/" + os.path.relpath(notebook, app.srcdir), classes=["gallery-download"]
    )
    link += nodes.literal("", f"{name}.ipynb", classes=["xref", "download"])
    paragraph = nodes.paragraph("", "Download this page as a notebook: ", link)
    title = next(doctree.findall(nodes.title))
    title.parent.insert(title.parent.index(title) + 1, paragraph)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_node(Card)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-read", add_download_link, priority=400)  # before files are collected
    app.connect("doctree-resolved", fill_cards)
    app.config.html_static_path.append(str(Path(__file__).parent / "gallery" / "static"))
    app.add_css_file("gallery.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
