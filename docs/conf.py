"""Settings of the documentation site: Sphinx with MyST and the PyData theme.

`make docs` builds the site into `docs/_build/html`. The build uses installed packages only and
fetches nothing.
"""

from accnp import __version__

project = "accnp"
author = "the accnp developers"
copyright = author
release = version = __version__

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

html_theme = "pydata_sphinx_theme"
html_title = "accnp"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sphinx = False
html_copy_source = False
pygments_style = "default"
