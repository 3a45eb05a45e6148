"""The code blocks of a documentation page, with the comments that say how a test runs them.

A comment before a block belongs to that block, a comment ``check`` or ``output`` to the block before it::

    <!-- setup: Python that runs before the block -->        <!-- check: Python that runs after the block -->
    <!-- not run: the reason -->                            <!-- output --> before the fence with the printed text
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
LANGUAGES = ("python", "sh")

_PART = re.compile(
    r"^<!-- (?P<word>setup|check|not run|output)\b:?(?P<text>.*?)-->"
    r"|^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^ *```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Block:
    page: str
    line: int
    language: str
    code: str
    setup: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    not_run: str | None = None
    output: str | None = None

    def __str__(self):
        return f"{self.page}:{self.line}"


def pages(root=ROOT):
    """README.md and the pages of docs/, as paths below the root."""
    return ["README.md", *sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))]


def blocks(page, root=ROOT):
    return parse(page, (root / page).read_text(encoding="utf-8"))


def parse(page, text):
    """The Python and shell blocks of the page, in order."""
    found, waiting, is_output = [], {}, False
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        match part["word"]:
            case "setup":
                waiting.setdefault("setup", []).append(_python(part["text"]))
            case "not run":
                waiting["not_run"] = part["text"].strip()
            case "check":
                _last(found, page, line).checks.append(_python(part["text"]))
            case "output":
                is_output = True
            case None if is_output:
                _last(found, page, line).output = dedent(part["code"])
                is_output = False
            case None if part["language"] in LANGUAGES:
                found.append(Block(page, line + 1, part["language"], dedent(part["code"]), **waiting))
                waiting = {}
            case None if waiting:
                raise ValueError(f"{page}:{line}: a comment that belongs to a block stands before another fence")
    if waiting or is_output:
        raise ValueError(f"{page}: a comment at the end belongs to no block")
    return found


def _python(text):
    return dedent(text).strip() if text.startswith("\n") else text.strip()


def _last(found, page, line):
    if not found:
        raise ValueError(f"{page}:{line}: no block before this comment")
    return found[-1]


def matches(expected, printed):
    """Whether the lines are the same; ``…`` in an expected line stands for any text, as a line for any lines."""
    lines = expected.rstrip("\n").splitlines()
    pattern = "\n".join("(?s:.*)" if line == "…" else _line(line) for line in lines)
    shown = "\n".join(line.rstrip() for line in printed.rstrip("\n").splitlines())
    return re.fullmatch(pattern, shown) is not None


def _line(expected):
    return ".*".join(re.escape(part) for part in expected.rstrip().split("…"))
