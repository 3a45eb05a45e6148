"""Run the selector engines, and write what they decide into the library and its page. CI does not run this.

``python tests/selector/engines/engine_table.py [--java JDK] [--check]`` downloads what is missing with the resolver of
Spark. OpenMQ needs a JDK of Java 21 or newer.
"""

import argparse
import json
import sys
from pathlib import Path

from engine_cases import CASES
from selector_engines import ENGINES, REFUSED, SELECTED, THROWN, NotRunError

from jms_selector import evaluate, parse
from jms_selector.errors import EvaluationError
from jms_selector.portability import DATA, DIFFERENCES

PAGE = Path(__file__).parents[3] / "docs" / "selectors.md"
BEGIN, END = "<!-- written by tests/selector/engines/engine_table.py: begin -->\n", "<!-- end -->"
WORDS = {REFUSED: "refused", THROWN: "exception"}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--java", metavar="JDK", help="the folder of a JDK; default: the one on the PATH")
    parser.add_argument("--check", action="store_true", help="compare with the files, and write nothing")
    options = parser.parse_args(arguments)
    data = measured(options.java)
    files = {DATA: json.dumps(data, indent=1) + "\n", PAGE: with_table(PAGE.read_text(), data)}
    stale = [path for path, text in files.items() if path.read_text() != text]
    print("\n".join(f"{'stale' if options.check else 'written'}: {path}" for path in stale) or "up to date")
    for path in [] if options.check else stale:
        path.write_text(files[path])
    return 1 if options.check and stale else 0


def measured(java):
    """What each engine decides, as far as it can be had."""
    data = {"versions": {}, "not run": [], "classes": {key: {} for key in CASES}}
    for engine in ENGINES:
        try:
            found = engine.verdicts(list(CASES.values()), java)
        except NotRunError as error:
            print(f"{engine.title} {engine.version} was not run: {error}", file=sys.stderr)
            data["not run"].append(engine.title)
            continue
        data["versions"][engine.title] = engine.version
        for (key, (selectors, messages)), verdicts in zip(CASES.items(), found, strict=True):
            if words := sorted(set().union(*map(differences, selectors, verdicts, [messages] * len(selectors)))):
                data["classes"][key][engine.title] = ", ".join(words)
    return data


def differences(selector, letters, messages):
    """How an engine differs from the specification: ``refused``, ``exception`` or ``otherwise``."""
    tree = parse(selector)
    for letter, message in zip(letters, messages, strict=True):
        if letter in WORDS:
            yield WORDS[letter]
        elif (letter == SELECTED) is not selects(tree, message):
            yield "otherwise"


def selects(tree, message, dialect="spec"):
    try:
        return evaluate(tree, message, dialect) is True
    except EvaluationError:
        return False


def with_table(page, data):
    """The page with the tables made of the data."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{tables(data)}{END}{after}"


def tables(data):
    titles = [f"{engine.title} {engine.version}" for engine in ENGINES]
    rows = [("in a selector", "for example", *titles), ("---",) * (2 + len(titles))]
    for key, each in DIFFERENCES.items():
        cells = (_cell(engine.title, data["classes"][key], data) for engine in ENGINES)
        rows.append((each.what, f"`{each.example}`", *cells))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(title, found, data):
    return "not run" if title in data["not run"] else found.get(title, "")


if __name__ == "__main__":
    sys.exit(main())
