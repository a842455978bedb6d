"""A self-contained HTML page of texts, tables and pictures.

The page needs no other file and no network, and contains nothing that a browser would execute.
Every text, such as an id or a path of the user, becomes a node of an element tree, which escapes
it.
"""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from user_dgl.output.report.figures import png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 25  # a table with more rows scrolls
_CSS = """
body { margin: 0; background: #fff; color: #1a1a1a; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #ccc; }
p, li, figcaption, summary { overflow-wrap: anywhere; }
.notice { border-left: .3rem solid #b34700; background: #fff4e8; padding: .5rem .8rem; }
.pictures, .tables { display: flex; flex-wrap: wrap; gap: 1.2rem; align-items: flex-start;
  margin-bottom: 1.2rem; }
figure { margin: 0; flex: 1 1 20rem; max-width: 30rem; min-width: 0; }
figure img { display: block; width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #444; }
.scroll { overflow: auto; max-width: 100%; margin-bottom: 1rem; }
.long { max-height: 32rem; border: 1px solid #ccc; padding: 0 .5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #ddd; text-align: left;
  vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
thead th { position: sticky; top: 0; background: #fff; }
tbody th { font-weight: 400; }
td:nth-child(n+4):not(.number) { min-width: 12rem; }
pre { overflow: auto; background: #f5f5f5; padding: .8rem; font-size: .85rem; }
summary { cursor: pointer; padding: .3rem 0; }
"""


class Page:
    """An HTML page under construction.

    Attributes
    ----------
    pictures : dict of str to bytes
        The PNGs in the page, by name.
    """

    def __init__(self, title: str):
        self.pictures: dict[str, bytes] = {}
        self._root = ElementTree.Element("html", lang="en")
        head = _add(self._root, "head")
        _add(head, "meta", charset="utf-8")
        _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
        policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
        _add(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy})
        _add(head, "title", text=title)
        _add(head, "style", text=_CSS)
        self._main = self._place = _add(_add(self._root, "body"), "main")
        _add(self._main, "h1", text=title)

    def section(self, title: str) -> None:
        """Add a heading. Further content is placed below it."""
        _add(self._main, "h2", text=title)
        self._place = self._main

    def beside(self, kind: str) -> None:
        """Place further content, ``pictures`` or ``tables``, side by side where space allows."""
        self._place = _add(self._main, "div", {"class": kind})

    def below(self) -> None:
        """Place further content below the previous one again."""
        self._place = self._main

    def text(self, text: str) -> None:
        """Add a paragraph."""
        _add(self._main, "p", text=text)

    def notice(self, text: str) -> None:
        """Add a highlighted paragraph."""
        _add(self._main, "p", {"class": "notice"}, text)

    def items(self, texts: list[str]) -> None:
        """Add a list."""
        listing = _add(self._main, "ul")
        for text in texts:
            _add(listing, "li", text=text)

    def table(self, caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table in a scrolling region, unless it has no rows. Numbers are right-aligned."""
        if not rows:
            return
        region = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption}
        if len(rows) > _MOST_ROWS:
            region["class"] += " long"
        table = _add(_add(self._place, "div", region), "table")
        _add(table, "caption", text=caption)
        numbers = [
            column > 0 and all(_is_number(row[column]) for row in rows)
            for column in range(len(header))
        ]
        kinds = [{"class": "number"} if number else {} for number in numbers]
        line = _add(_add(table, "thead"), "tr")
        for text, kind in zip(header, kinds, strict=True):
            _add(line, "th", {"scope": "col", **kind}, text)
        body = _add(table, "tbody")
        for row in rows:
            line = _add(body, "tr")
            _add(line, "th", {"scope": "row"}, _shown(row[0]))
            for value, kind in zip(row[1:], kinds[1:], strict=True):
                _add(line, "td", kind, _shown(value))

    def picture(self, name: str, figure: "Figure", alt: str, caption: str) -> None:
        """Add a matplotlib figure with a caption; ``alt`` says what it shows to blind readers."""
        self.pictures[name] = data = png(figure)
        frame = _add(self._place, "figure")
        source = "data:image/png;base64," + base64.b64encode(data).decode()
        width, height = (figure.get_size_inches() * 100).astype(int).astype(str)
        _add(frame, "img", {"src": source, "alt": alt, "width": width, "height": height})
        _add(frame, "figcaption", text=caption)

    def folded(self, summary: str, text: str) -> None:
        """Add preformatted text that a click on the summary line opens."""
        details = _add(self._main, "details")
        _add(details, "summary", text=summary)
        _add(details, "pre", {"tabindex": "0"}, text)

    def html(self) -> bytes:
        """Return the page in UTF-8."""
        text = ElementTree.tostring(self._root, encoding="unicode", method="html")
        return f"<!DOCTYPE html>\n{text}\n".encode(errors="replace")


def _add(
    parent: ElementTree.Element,
    tag: str,
    attributes: dict[str, str] | None = None,
    text: str | None = None,
    **more: str,
) -> ElementTree.Element:
    """Append an element with attributes and text to another one."""
    element = ElementTree.SubElement(parent, tag, attributes or {}, **more)
    element.text = text
    return element


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float | np.number)


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float | np.floating):
        number = float(value)
        if abs(number) >= 1:
            return f"{number:,.2f}"
        return f"{number:.4f}" if abs(number) >= 0.001 or number == 0 else f"{number:.3g}"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
