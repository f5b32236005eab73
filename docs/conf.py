"""How `make site` builds the documents into a site: Sphinx, MyST and Furo."""

project = "jobq"
author = "the jobq authors"
copyright = "the jobq authors"  # noqa: A001 - Sphinx's own name for it
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["*.py", "*.toml", "*.sql"]
# psql's own commands and arrows are no SQL that a highlighter knows.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = "jobq"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# psql's prompt is no part of what a reader copies.
copybutton_prompt_text = r"=> |\$ "
copybutton_prompt_is_regexp = True
