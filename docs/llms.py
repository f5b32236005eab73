"""Write llms.txt and llms-full.txt beside a built site, for programs that read documents.

The form of llms.txt is that of https://llmstxt.org: a title, a summary, and a list of links.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def summary(text: str) -> tuple[str, str]:
    """Return the title and the first paragraph of a page in Markdown; code is none."""
    title, _, rest = text.partition("\n")
    prose = re.sub(r"^(```|:::).*?^\1$", "", rest, flags=re.DOTALL | re.MULTILINE)
    paragraphs = (" ".join(paragraph.split()) for paragraph in prose.split("\n\n"))
    first = next((p for p in paragraphs if p and p[0] not in "#|-<"), "")
    return title.removeprefix("# ").strip(), first


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write both files when all pages have been built.

    Args:
        app: the builder, which knows the pages.
        failure: why the build failed, if it did; then nothing is written.
    """
    if failure is not None or app.builder.format != "html":
        return
    source, target = Path(app.srcdir), Path(app.outdir)
    names = sorted(app.env.found_docs - {"index"})
    pages = {
        name: path.read_text()
        for name in ("index", *names)
        if (path := source / f"{name}.md").is_file()
    }
    title, first = summary(pages["index"])
    links = (
        f"- [{heading}]({name}.html): {paragraph}"
        for name, text in pages.items()
        if name != "index"
        for heading, paragraph in [summary(text)]
    )
    target.joinpath("llms.txt").write_text(
        "\n".join([f"# {title}", "", f"> {first}", "", *links, ""])
    )
    target.joinpath("llms-full.txt").write_text("\n\n".join(pages.values()))
