"""The hooks of the documentation site: links between pages, reserved places of the navigation, state diagrams."""

import re
from pathlib import Path

import pytest

from tools import docs_site as site

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path):
    for name in ("docs/a.md", "docs/deep/b.md", "jobs/job.py", "README.md", "tests/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("page", "markdown", "expected"),
    [
        ("README.md", "[a](docs/a.md#x)", "[a](a.md#x)"),
        ("README.md", "![flow](docs/flow.svg)", "![flow](flow.svg)"),
        ("README.md", "[`a` [1]](docs/deep/b.md)", "[`a` [1]](deep/b.md)"),
        ("tests/README.md", "[r](../README.md)", "[r](index.md)"),
        ("docs/a.md", "[r](../README.md#y)", "[r](index.md#y)"),
        ("docs/a.md", "[b](deep/b.md)", "[b](deep/b.md)"),
        ("docs/a.md", "[here](#x), [there](https://example.org/x.md)", "[here](#x), [there](https://example.org/x.md)"),
        ("docs/deep/b.md", "[a](../a.md)", "[a](../a.md)"),
        ("docs/deep/b.md", "[j](../../jobs/job.py)", "[j](../source/jobs/job.py)"),
        ("docs/a.md", "see [the jobs](../jobs)", "see the jobs"),
        ("docs/a.md", "[gone](../gone.md)", "[gone](../gone.md)"),
        ("docs/a.md", "```\n[j](../jobs/job.py)\n```\n", "```\n[j](../jobs/job.py)\n```\n"),
    ],
)
def test_links(repository, page, markdown, expected):
    assert site.links_rewritten(page, markdown, repository) == expected


def test_links_for_the_package_index_are_absolute(repository):
    page = (
        "[a](docs/a.md#x) ![p](docs/p.svg) [r](README.md) [j](jobs/job.py) [jobs](jobs) [there](https://example.org/)"
    )
    assert site.links_absolute("README.md", page, "https://site.example/", repository) == (
        "[a](https://site.example/a/#x) ![p](https://site.example/p.svg) [r](https://site.example/)"
        " [j](https://site.example/source/jobs/job.py) jobs [there](https://example.org/)"
    )


def test_files_of_the_repository_that_a_page_links_to(repository):
    page = "[j](../jobs/job.py) [a](a.md) [r](../README.md) [f](../jobs) [g](../gone.py)\n```\n[x](../LICENSE)\n```\n"
    assert list(site.linked_files("docs/a.md", page, repository)) == ["jobs/job.py"]


def test_a_state_diagram_is_a_table():
    diagram = "x\n```mermaid\nstateDiagram-v2\n    %% in a journal\n    a --> b: offer it\n    b --> c: end\n```\ny"
    assert site.states_as_tables(diagram) == (
        "x\n| state (in a journal) | event | next state |\n|---|---|---|\n| a | offer it | b |\n| b | end | c |\ny"
    )


def test_the_navigation_has_every_page_once_and_no_page_that_does_not_exist():
    nav = [
        {"Start": ["index.md", {"Later": "planned.md"}, {"A": "a.md"}]},
        {"Guides": [{"Recipes": "recipes/*"}, "*", {"None yet": ["planned2.md"]}]},
        {"Notes": ["notes/first.md", "notes/*"]},
    ]
    pages = ["index.md", "a.md", "b.md", "recipes/a.md", "recipes/index.md", "notes/first.md", "notes/second.md"]
    assert site.navigation(nav, pages) == [
        {"Start": ["index.md", {"A": "a.md"}]},
        {"Guides": [{"Recipes": ["recipes/index.md", "recipes/a.md"]}, "b.md"]},
        {"Notes": ["notes/first.md", "notes/second.md"]},
    ]


def test_the_search_leaves_diaries_out_and_finds_guides_before_what_contributors_read():
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    diaries = {page for page in pages if site.search_of(page) == {"exclude": True}}
    assert diaries == {page for page in pages if page.startswith("notebook/")} != set()
    guides = {page: site.search_of(page)["boost"] for page in pages if page not in diaries | site.BOOSTS.keys()}
    assert set(guides.values()) == {1.0}
    assert site.BOOSTS.keys() <= {*pages, *site.PAGES.values()}, "pages that do not exist"
    assert site.search_of("internals.md")["boost"] < 1.0 < site.search_of("guarantees.md")["boost"]


def test_the_site_reads_markdown_inside_of_folded_parts():
    folded = [path for path in (ROOT / "docs").rglob("*.md") if '<details markdown="1">' in path.read_text()]
    assert folded
    assert "\n  - md_in_html" in (ROOT / "mkdocs.yml").read_text()


def test_every_state_diagram_of_the_pages_becomes_a_table():
    for name in (*site.PAGES, "docs/internals.md"):
        if (ROOT / name).exists():
            assert "```mermaid" not in site.states_as_tables((ROOT / name).read_text())


def test_a_wide_table_names_the_column_in_each_cell():
    text = "a sentence that is longer than the screen of a phone is wide"
    head = '<table>\n<thead>\n<tr>\n<th></th>\n<th>with a <a href="x">"journal"</a></th>\n<th>c</th>\n</tr>\n</thead>\n'
    body = f'<tbody>\n<tr>\n<td>order</td>\n<td style="x">{text}</td>\n<td>1</td>\n</tr>\n</tbody>\n</table>'
    marked = site.tables_that_fit(head + body)
    assert marked.startswith("<table data-wide>")
    assert '<td data-title="with a &quot;journal&quot;" style="x">a sentence' in marked
    assert '<td data-title="">order</td>' in marked
    assert '<td data-title="c">1</td>' in marked


def test_a_table_of_many_columns_is_marked_and_so_is_a_long_code():
    cells = ["<td><code>a &lt; b</code></td>", f"<td><code>{'x' * 40}</code></td>", *["<td>a sentence</td>"] * 6]
    titles = "".join(f"<th>{number}</th>" for number in range(8))
    marked = site.tables_that_fit(f"<table><tr>{titles}</tr><tr>{''.join(cells)}</tr></table>")
    assert marked.startswith("<table data-wide data-many>")
    assert re.findall(r"<code( data-long)?>(.)", marked) == [("", "a"), (" data-long", "x")]


NAME, LONG = "x" * 25, "y" * 40


@pytest.mark.parametrize(
    ("cells", "is_wide"),
    [
        ((f"<code>{NAME}</code>", f"see {NAME}"), True),
        ((f"<code>{NAME}</code>", f"see <code>{NAME}</code>"), False),
        ((f"<code>{LONG}</code>", f"see {NAME}"), False),
        (("<code>make check ARGS=all</code>", f"see {NAME}"), True),
        (("make check ARGS=all", f"see {NAME}"), False),
        (("x",) * 18, True),
    ],
    ids=["words", "a code breaks", "a long name breaks", "one code", "words of a text", "edges of cells"],
)
def test_a_table_whose_words_do_not_fit_beside_each_other_is_wide(cells, is_wide):
    titles, row = ("".join(f"<{tag}>{cell}</{tag}>" for cell in cells) for tag in ("th", "td"))
    table = f"<table><thead><tr>{titles}</tr></thead><tbody><tr>{row}</tr></tbody></table>"
    assert ("data-wide" in site.tables_that_fit(table)) is is_wide


@pytest.mark.parametrize(
    "row", ["<td>1</td><td>2</td><td>3</td>", f"<td>{'long ' * 20}</td><td>2</td>"], ids=["short", "two columns"]
)
def test_other_tables_stay(row):
    titles = row.replace("td>", "th>").replace("long ", "")
    table = f"<table><thead><tr>{titles}</tr></thead><tbody><tr>{row}</tr></tbody></table>"
    assert site.tables_that_fit(table) == table


@pytest.mark.parametrize(
    ("lines", "scrolls"),
    [
        ("name      value\norders    12", True),
        ("+---+\n| a |\n+---+", True),
        ("[JMS_SECURITY] stomp://broker refused: it is invalid. Check user\nand password", False),
        ("one line  with two columns", False),
    ],
)
def test_a_text_block_is_wrapped_unless_its_lines_have_columns(lines, scrolls):
    block = f'<div class="language-text highlight"><pre><span></span><code>{lines}\n</code></pre></div>'
    python = block.replace("text", "python", 1)
    assert site.texts_that_fit(python + block) == python + block.replace(
        "<pre>", "<pre data-columns>" if scrolls else "<pre>"
    )
