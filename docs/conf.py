"""How `make site` builds the documents into a site: Sphinx, MyST and Furo."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import llms

project = "jobq"
author = "the jobq authors"
copyright = "the jobq authors"  # noqa: A001 - Sphinx's own name for it
extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
# The reference of the Python API: docstrings have the types in the signature only.
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_use_rtype = False
exclude_patterns = ["*.py", "*.toml", "*.sql"]
# Pygments cannot highlight psql's own commands and arrows.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = "jobq"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "tasklist"]
# Readers copy commands without the prompt.
copybutton_prompt_text = r"=> |\$ "
copybutton_prompt_is_regexp = True
# Pages for contributors: CONTRIBUTING.md links to them, the navigation does not.
CONTRIBUTORS = {
    f"contributing/{name}"
    for name in ("conformance", "defects", "design", "drills", "faults", "sources")
}


def leave_out(app: Sphinx, _doctree: object) -> None:
    """Allow a page for contributors to be in no table of contents."""
    if app.env.docname in CONTRIBUTORS:
        app.env.metadata[app.env.docname]["orphan"] = True


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.connect("doctree-read", leave_out)
    app.connect("build-finished", llms.write)
