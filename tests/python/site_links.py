"""The links of a built site: which lead nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pathlib import Path

LINKS: Final = frozenset({"href", "src"})


@dataclass
class Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in LINKS:
                self.links.append(value or "")
            elif name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value or "")


def broken_links(site: Path) -> list[str]:
    """Return each link of a site's pages that leads nowhere, after the page that has it.

    Of links to elsewhere only the form is looked at.
    """
    pages = {path.resolve(): read(path) for path in site.rglob("*.html")}
    return [
        f"{path.relative_to(site.resolve())}: {link}"
        for path, page in sorted(pages.items())
        for link in page.links
        if not leads_somewhere(link, path, pages)
    ]


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    page.close()
    return page


def leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    url = urlsplit(link)
    if url.scheme in ("http", "https") or url.netloc:
        return is_elsewhere(link)
    if url.scheme:
        return url.scheme in ("mailto", "data") and bool(url.path)
    target = (path.parent / unquote(url.path)).resolve() if url.path else path
    if not target.is_file():
        return False
    page = pages.get(target)
    return page is None or url.fragment in ("", "top") or unquote(url.fragment) in page.anchors


def is_elsewhere(link: str) -> bool:
    """Tell whether a link has the form of one to another site."""
    url = urlsplit(link)
    host = url.hostname or ""
    return (
        url.scheme in ("http", "https")
        and ("." in host.strip(".") or host == "localhost")
        and not any(character.isspace() for character in link)
    )
