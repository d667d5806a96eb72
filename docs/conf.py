"""Settings of the documentation site: Sphinx with MyST and the PyData theme.

`make docs` builds the site into `docs/_build/html`. The build uses installed packages only and
fetches nothing.
"""

import sys
from pathlib import Path

from accnp import __version__

sys.path.insert(0, str(Path(__file__).parent))  # api_reference.py, notebook_gallery.py

project = "accnp"
author = "the accnp developers"
copyright = author
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "api_reference",
    "error_pages",
    "notebook_gallery",
]
exclude_patterns = ["_build"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}

# The build executes the notebooks of the gallery (pages with cells). Results are kept in
# `docs/_build/.jupyter_cache` until the code of a notebook changes, or `make clean`.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # seconds for each cell
nb_merge_streams = True  # what a cell prints is one block

# Examples that show tracebacks or shell lines are not always valid Python.
suppress_warnings = ["misc.highlighting_failure"]

# The long names of classes and functions do not fit into the list "On this page".
toc_object_entries = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

copybutton_exclude = ".linenos, .gp, .go, .gt, .gr"  # prompts, output, and tracebacks

html_theme = "pydata_sphinx_theme"
html_title = "accnp"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}
# The pages of single names do not repeat the tree of all pages, which would dominate the build.
# They begin with links to their namespace. Notebooks use the room for their code.
html_sidebars = {"index": [], "api/*/*": [], "gallery/*": []}
html_show_sphinx = False
html_copy_source = False
pygments_style = "default"
