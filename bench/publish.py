"""The JSON document → docs/performance.md and its chart; ``python -m bench.publish`` does it from the file."""

import json
import re
from pathlib import Path
from typing import Any

from bench.chart import draw
from bench.table import as_text

__all__ = ["between_marks", "publish"]

CHART = "performance.png"
_ROOT = Path(__file__).resolve().parent.parent


def publish(document: dict[str, Any], docs: Path) -> None:
    draw(document, docs / CHART)
    page = docs / "performance.md"
    machine = document["machine"]
    told = (
        f"{machine['date'][:10]}, {machine['cores']} cores ({machine['cpu']}), {machine['memory_gib']:.0f} GiB, Python"
        f" {machine['python']}, Spark {machine['spark']}, Java {machine['java']}, Artemis {machine['artemis']}:"
    )
    text = "\n".join(line.rstrip() for line in as_text(document).splitlines())
    block = f"{told}\n\n![rates and CPU by process]({CHART})\n\n```\n{text}\n```"
    page.write_text(between_marks(page.read_text(), "figures", block))


def between_marks(page: str, name: str, block: str) -> str:
    """The page with ``block`` between its two comments of that name."""
    found = re.compile(rf"(<!-- {name}: begin.*?-->\n).*?(\n<!-- {name}: end -->)", re.DOTALL)
    if not found.search(page):
        raise ValueError(f"the page has no marks named {name}")
    return found.sub(lambda marks: f"{marks[1]}\n{block}\n{marks[2]}", page, count=1)


if __name__ == "__main__":
    publish(json.loads((_ROOT / "bench" / "latest.json").read_text()), _ROOT / "docs")
