"""The hooks of MkDocs (mkdocs.yml): pages of the site that are not in docs/, places in the navigation, links.

The pages README.md, ARCHITECTURE.md and so on are read where they are, so the site has no copies that can drift. A link
to another file of the repository becomes a link to that file in the site; a link to a folder becomes its text.
"""

import argparse
import posixpath
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "tests/README.md": "tests.md",
    "bench/README.md": "benchmarks.md",
    "findings/README.md": "findings.md",
}
"""Page of the repository -> page of the site. A page that does not exist is left out."""

FILES = "source"
"""The folder of the site with the files of the repository that pages link to."""

BOOSTS = {
    **dict.fromkeys(("options.md", "schema.md", "errors.md"), 3.0),  # whoever searches a name looks for its reference
    **dict.fromkeys(("guarantees.md", "security.md"), 2.0),
    **dict.fromkeys(
        (
            "architecture.md",
            "contributing.md",
            "changelog.md",
            "tests.md",
            "findings.md",
            "fault-matrix.md",
            "benchmarks.md",
        ),
        0.3,
    ),
    "internals.md": 0.3,
}
"""What the search multiplies the score of a page with: guides before what contributors read."""

DIARIES = "notebook/"
"""Pages that the search does not find: guides link to them."""

_FENCE = re.compile(r"^( *```.*?^ *```[ \t]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<before>!?\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\()(?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_STATES = re.compile(r"^```mermaid\nstateDiagram-v2\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_MOVE = re.compile(r"^ *(?P<start>\w+) --> (?P<end>\w+): (?P<event>.+)$", re.MULTILINE)
_TEXT = re.compile(r'(?<=<div class="language-text highlight"><pre)>(?P<body>.*?)</pre>', re.DOTALL)
_COLUMNS = re.compile(r"\S {2,}\S|[+│├└─]")
"""What the lines of a printed table or of a tree have, and sentences do not."""
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_TITLE = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<td\b")
_FIELD = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_FEWEST_COLUMNS = 3
_FITS = 48
"""Characters of a row that a phone shows beside each other; a table with longer rows is shown cell by cell there."""
_UNBROKEN = 48
"""Characters beside each other that a phone shows of words that are not broken, with the edges of their cells."""
_EDGES = 3
_CODE = re.compile(r"<code>(?P<text>[^<]*)</code>")
_LONG_CODE = re.compile(r"<code data-long>[^<]*</code>")
_NAME = 28
"""Characters of a code that stays on one line of a table. A longer one is broken, or it would hide columns."""
_FEW_COLUMNS = 7
"""A table with more columns has upright titles where it is not shown cell by cell."""
_ROLE = re.compile(r":(?:mod|func|class|meth|attr):(?=<code>)")
_COMMENT = re.compile(r"^ *%% (?P<text>.+)$", re.MULTILINE)


def outside_fences(change: Callable[[str], str], markdown: str) -> str:
    """Apply the change to the text between the fenced code blocks."""
    parts = _FENCE.split(markdown)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def linked(page: str, target: str) -> str:
    """The path in the repository that a link of the page names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def place(path: str, root: Path = ROOT) -> str | None:
    """The path in the site of a page or file of the repository; None for a folder, or a file that does not exist."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    return f"{FILES}/{path}" if (root / path).is_file() else None


def links_rewritten(page: str, markdown: str, root: Path = ROOT) -> str:
    """The text of the page with the links of the site. A link that leads nowhere stays: the build reports it."""
    here = posixpath.dirname(place(page, root) or "")

    def rewrite(match: re.Match[str]) -> str:
        path = linked(page, match["target"])
        there = place(path, root)
        if there is None:
            return match["text"] if (root / path).is_dir() else match[0]
        return f"{match['before']}{posixpath.relpath(there, here or '.')}{match['anchor'] or ''})"

    return outside_fences(lambda part: _LINK.sub(rewrite, part), markdown)


def links_absolute(page: str, markdown: str, base: str, root: Path = ROOT) -> str:
    """The text of the page with links to the published site: the package index resolves no relative links."""

    def rewrite(match: re.Match[str]) -> str:
        there = place(linked(page, match["target"]), root)
        if there is None:
            return match["text"]
        address = f"{there.removesuffix('index.md').removesuffix('.md')}/" if there.endswith(".md") else there
        return f"{match['before']}{base.rstrip('/')}/{address.lstrip('/')}{match['anchor'] or ''})"

    return outside_fences(lambda part: _LINK.sub(rewrite, part), markdown)


def linked_files(page: str, markdown: str, root: Path = ROOT) -> Iterator[str]:
    """The files of the repository that the page links to and that are not pages of the site."""
    for number, part in enumerate(_FENCE.split(markdown)):
        for match in () if number % 2 else _LINK.finditer(part):
            path = linked(page, match["target"])
            if (place(path, root) or "").startswith(f"{FILES}/"):
                yield path


def states_as_tables(markdown: str) -> str:
    """State diagrams as tables: a browser would need a script from the internet to draw them."""

    def table(match: re.Match[str]) -> str:
        title = _COMMENT.search(match["body"])
        state = f"state ({title['text']})" if title else "state"
        rows = [f"| {move['start']} | {move['event']} | {move['end']} |" for move in _MOVE.finditer(match["body"])]
        return "\n".join([f"| {state} | event | next state |", "|---|---|---|", *rows])

    return _STATES.sub(table, markdown)


def navigation(nav: list[Any], pages: list[str]) -> list[Any]:
    """The navigation without pages that do not exist, and with the pages that ``*`` and ``folder/*`` stand for."""
    free = [page for page in pages if page not in set(_named(nav))]
    folders = [pattern.removesuffix("*") for pattern in _named(nav) if pattern.endswith("/*")]

    def pages_of(pattern: str) -> list[str]:
        if pattern == "*":
            return [page for page in free if not page.startswith(tuple(folders))]
        if pattern.endswith("/*"):
            found = [page for page in free if page.startswith(pattern.removesuffix("*"))]
            return sorted(found, key=lambda page: not page.endswith("/index.md"))
        return [pattern] if pattern in pages else []

    def filled(entries: list[Any]) -> Iterator[Any]:
        for entry in entries:
            if isinstance(entry, str):
                yield from pages_of(entry)
                continue
            ((title, content),) = entry.items()
            found = list(filled(content)) if isinstance(content, list) else pages_of(content)
            if found:
                single = isinstance(content, str) and not content.endswith("*")
                yield {title: found[0] if single else found}

    return list(filled(nav))


def _named(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for content in entry.values() if isinstance(entry, dict) else (entry,):
            yield from _named(content) if isinstance(content, list) else (content,)


# --- the hooks -------------------------------------------------------------------------------


def _root_pages() -> dict[str, str]:
    return {page: uri for page, uri in PAGES.items() if (ROOT / page).is_file()}


def _docs_pages() -> list[str]:
    return sorted(path.relative_to(ROOT / DOCS).as_posix() for path in (ROOT / DOCS).rglob("*.md"))


def on_config(config: Any) -> Any:
    pages = [*_root_pages().values(), *_docs_pages()]
    config.nav = navigation(config.nav, [page for page in pages if not config.not_in_nav.match_file(page)])
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    wanted: dict[str, str] = {}
    for page, uri in _root_pages().items():
        files.append(File.generated(config, uri, content=(ROOT / page).read_text(encoding="utf-8")))
    for page in (*_root_pages(), *(f"{DOCS}/{name}" for name in _docs_pages())):
        for path in linked_files(page, (ROOT / page).read_text(encoding="utf-8")):
            wanted[f"{FILES}/{path}"] = path
    for uri, path in wanted.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def search_of(uri: str) -> dict[str, object]:
    """Return how the search treats the page: it leaves it out, or multiplies its score."""
    return {"exclude": True} if uri.startswith(DIARIES) else {"boost": BOOSTS.get(uri, 1.0)}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    origins = {uri: origin for origin, uri in PAGES.items()}
    uri = page.file.src_uri
    page.meta["search"] = search_of(uri)
    return states_as_tables(links_rewritten(origins.get(uri, f"{DOCS}/{uri}"), markdown))


def tables_that_fit(html: str) -> str:
    """Mark long codes in tables, and give each cell of a wide table the title of its column.

    assets/site.css shows such a table on a phone as one block for each row: a table that scrolls hides columns.
    """

    def code(match: re.Match[str]) -> str:
        return match[0].replace("<code>", "<code data-long>") if len(unescape(match["text"])) > _NAME else match[0]

    def marked(match: re.Match[str]) -> str:
        table = _CODE.sub(code, match[0])
        titles = [_TAG.sub("", title).strip() for title in _TITLE.findall(table)]
        longest = max((len(_TAG.sub("", row).replace("\n", "")) for row in _ROW.findall(table)), default=0)
        if (len(titles) < _FEWEST_COLUMNS or longest <= _FITS) and _unbroken(table) <= _UNBROKEN:
            return table

        def row(found: re.Match[str]) -> str:
            left = iter(titles)
            return _CELL.sub(lambda _: _titled(next(left, "")), found[0])

        many = " data-many" if len(titles) > _FEW_COLUMNS else ""
        return _ROW.sub(row, table).replace("<table>", f"<table data-wide{many}>", 1)

    return _TABLE.sub(marked, html)


def _unbroken(table: str) -> int:
    """How many characters wide the table is when each column is as wide as its longest word.

    A short code in the first column is a word. All other codes can be broken.
    """

    def longest(field: str, *, is_first: bool) -> int:
        text = _CODE.sub(lambda code: code["text"].replace(" ", "_") if is_first else "", _LONG_CODE.sub("", field))
        return max(map(len, unescape(_TAG.sub("", text)).split()), default=0) + _EDGES

    columns = zip(*(_FIELD.findall(row) for row in _ROW.findall(table)), strict=False)
    return sum(max(longest(field, is_first=n == 0) for field in fields) for n, fields in enumerate(columns))


def _titled(title: str) -> str:
    escaped = title.replace('"', "&quot;")
    return f'<td data-title="{escaped}"'


def texts_that_fit(html: str) -> str:
    """Mark text blocks whose lines have columns: assets/site.css wraps the lines of all other blocks."""

    def marked(match: re.Match[str]) -> str:
        lines = unescape(_TAG.sub("", match["body"])).splitlines()
        with_columns = sum(_COLUMNS.search(line) is not None for line in lines)
        return f" data-columns{match[0]}" if len(lines) > 1 and 2 * with_columns > len(lines) else match[0]

    return _TEXT.sub(marked, html)


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings name functions as Sphinx does; Markdown knows no roles."""
    return texts_that_fit(tables_that_fit(_ROLE.sub("", html)))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Print README.md with links to the published site, for the index.")
    arguments.add_argument("url", help="where the site is published")
    print(links_absolute("README.md", (ROOT / "README.md").read_text(encoding="utf-8"), arguments.parse_args().url))
