"""The tables of the reference pages, written from the code: options from ``OPTIONS``, errors from the error tree.

``python tools/reference.py`` rewrites them between their markers; ``--check`` only says what is out of date.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark_jms.errors import JMSError
from pyspark_jms.options import OPTIONS, Option

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- written by tools/reference.py: begin -->", "<!-- end -->"

_SCOPES = {"source": "read", "sink": "write", "both": "both"}
_JMS_NAME = re.compile(r"``(?P<name>\w+)``: ")


def options_table() -> str:
    return _table(("option", "for", "default", "meaning"), [_option_row(option) for option in OPTIONS])


def _option_row(option: Option) -> tuple[str, ...]:
    default = "" if option.default is None else f"`{option.default}`"
    return f"`{option.name}`", _SCOPES[option.scope], default, option.meaning


def errors_table() -> str:
    return _table(("code", "JMS name", "transient", "meaning"), [_error_row(error) for error in _raised(JMSError)])


def _raised(group: type[JMSError]) -> Iterator[type[JMSError]]:
    """What a user can meet, in the order of the file: not a class that only stands for others and says no more."""
    for error in group.__subclasses__():
        if error.__doc__ or not error.__subclasses__():
            yield error
        yield from _raised(error)


def _error_row(error: type[JMSError]) -> tuple[str, ...]:
    text = (error.__doc__ or "").partition("\n\n")[0]
    name = _JMS_NAME.match(text)
    meaning = " ".join(text[name.end() if name else 0 :].split())
    shown = f"`{name['name']}`" if name else ""
    return f"`{error.code}`", shown, "yes" if error.transient else "", meaning[:1].upper() + meaning[1:]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


PAGES = {"docs/options.md": options_table, "docs/errors.md": errors_table}


def rewritten(page: str, table: str) -> str:
    """The page with the table between its markers; a ``ValueError`` when it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Write the tables of the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, table in PAGES.items():
        old = (root / name).read_text(encoding="utf-8")
        new = rewritten(old, table())
        if new != old:
            stale.append(name)
            if not check:
                (root / name).write_text(new, encoding="utf-8")
    if check and stale:
        print(f"out of date: {', '.join(stale)}. Run python tools/reference.py.")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
