"""Settings of the documentation site: Sphinx with MyST and the PyData theme.

`make docs` builds the site into `docs/_build/html`. The build uses installed packages only and
fetches nothing.
"""

import sys
from pathlib import Path

from accnp import __version__

sys.path.insert(0, str(Path(__file__).parent))  # api_reference.py

project = "accnp"
author = "the accnp developers"
copyright = author
release = version = __version__

extensions = ["myst_parser", "api_reference"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Examples that show tracebacks or shell lines are not always valid Python.
suppress_warnings = ["misc.highlighting_failure"]

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
# The pages of single names do not repeat the tree of all pages, which would dominate the build.
html_sidebars = {"api/*/*": []}
html_show_sphinx = False
html_copy_source = False
pygments_style = "default"
