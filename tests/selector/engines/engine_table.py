"""Run the selector engines, and write what they decide into the library and its page. CI does not run this.

``python tests/selector/engines/engine_table.py [--java JDK] [--check]`` downloads what is missing with the resolver of
Spark. OpenMQ needs a JDK of Java 21 or newer.
"""

import argparse
import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from engine_cases import CASES
from random_selectors import SCHEMA, RandomSelectors
from selector_engines import ENGINES, REFUSED, SELECTED, THROWN, NotRunError

from jms_selector import Message, evaluate, parse, portable
from jms_selector.errors import EvaluationError
from jms_selector.portability import DATA, DIFFERENCES, Difference
from pyspark_jms.columns.sql_selectors import selector_text
from pyspark_jms.errors import UnsupportedConditionError

PAGE = Path(__file__).parents[3] / "docs" / "selectors.md"
BEGIN, END = "<!-- written by tests/selector/engines/engine_table.py: begin -->\n", "<!-- end -->"
IBM = "IBM MQ JMS"
TEXTS, MESSAGES = 1000, 16
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
    data = {"versions": {}, "not run": [], "classes": {key: {} for key in CASES}, "random": {}}
    common = [portable_sample("portable", 1, calculations=True), portable_sample("headers", 4, headers=True)]
    common, of_dialects = [*common, translated_sample()], list(dialect_samples())
    for engine in ENGINES:
        samples = [*common, *of_dialects] if engine.title == IBM else common
        try:
            groups = [*CASES.values(), *((sample.texts, sample.messages) for sample in samples)]
            found = engine.verdicts(groups, java)
        except NotRunError as error:
            print(f"{engine.title} {engine.version} was not run: {error}", file=sys.stderr)
            data["not run"].append(engine.title)
            continue
        data["versions"][engine.title] = engine.version
        for (key, (selectors, messages)), verdicts in zip(CASES.items(), found, strict=False):
            if words := sorted(set().union(*map(differences, selectors, verdicts, [messages] * len(selectors)))):
                data["classes"][key][engine.title] = ", ".join(words)
        otherwise = {DIFFERENCES[key] for key, engines in data["classes"].items() if engine.title in engines}
        for sample, verdicts in zip(samples, found[len(CASES) :], strict=True):
            data["random"].setdefault(sample.title, {})[engine.title] = sample.count(otherwise, verdicts)
    return data


@dataclass(frozen=True)
class Sample:
    """Random selectors, with what the library says of them."""

    title: str
    texts: list[str]
    messages: list[Message]
    expected: list[str]
    """For each text, a letter a message."""

    remaining: list[tuple[Difference, ...]]
    """For each text, what :func:`portable` still warns of."""

    def count(self, decided_otherwise, verdicts):
        tried = [place for place, found in enumerate(self.remaining) if decided_otherwise.isdisjoint(found)]
        equal = [place for place in tried if verdicts[place] == self.expected[place]]
        return {"tried": len(tried), "equal": len(equal), "refused": sum(REFUSED in letters for letters in verdicts)}


def portable_sample(title, seed, **kinds):
    """What ``portable`` writes of random selectors."""
    source = RandomSelectors(seed, **kinds)
    given = [source.text() for _ in range(TEXTS)]
    messages, found = [source.message() for _ in range(MESSAGES)], [portable(text) for text in given]
    texts, remaining = [each.text for each in found], [each.remaining for each in found]
    return Sample(title, texts, messages, expected(given, messages), remaining)


def translated_sample():
    """What ``selector_for`` writes of random SQL conditions."""
    source, found = RandomSelectors(2), []
    while len(found) < TEXTS:
        with contextlib.suppress(UnsupportedConditionError):
            found.append(selector_text(source.text(), SCHEMA))
    messages = [source.message() for _ in range(MESSAGES)]
    return Sample("selector_for", found, messages, expected(found, messages), [()] * TEXTS)


def dialect_samples():
    source = RandomSelectors(3, calculations=True)
    texts, messages = [source.text() for _ in range(TEXTS)], [source.message() for _ in range(MESSAGES)]
    for dialect in ("spec", "ibm"):
        yield Sample(dialect, texts, messages, expected(texts, messages, dialect), [()] * TEXTS)


def expected(texts, messages, dialect="spec"):
    trees = map(parse, texts)
    return ["".join("T" if selects(tree, each, dialect) else "F" for each in messages) for tree in trees]


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
    return f"{_lines(rows)}\n{_lines(count_rows(data))}\n{dialect_sentence(data)}\n"


def dialect_sentence(data):
    """How far IBM's Java client is from the two dialects."""
    spec, ibm = (data["random"].get(dialect, {}).get(IBM) for dialect in ("spec", "ibm"))
    if spec is None:
        return "IBM's Java client was not run."
    accepted = spec["tried"] - spec["refused"]
    return (
        f"Of {accepted:,} random selectors in no portable form, IBM's Java client decided {accepted - spec['equal']:,} "
        f"otherwise than `spec` for\nsome message, and {accepted - ibm['equal']:,} otherwise than the dialect `ibm`."
    )


def _lines(rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def count_rows(data):
    """For each engine, of how many random selectors it selected all the messages that it should."""
    written = "written by `portable`, not warned of"
    titles = {"portable": written, "headers": f"with headers, {written}", "selector_for": "written by `selector_for`"}
    yield "engine", *titles.values()
    yield ("---",) * (1 + len(titles))
    for engine in ENGINES:
        counts = (data["random"].get(title, {}).get(engine.title) for title in titles)
        yield (
            f"{engine.title} {engine.version}",
            *(f"{n['equal']:,} of {n['tried']:,}" if n else "not run" for n in counts),
        )


def _cell(title, found, data):
    return "not run" if title in data["not run"] else found.get(title, "")


if __name__ == "__main__":
    sys.exit(main())
