from pathlib import Path

import pytest
import selector_strategies
from generated import examples
from hypothesis import HealthCheck, given, settings

from jms_selector import evaluate, parse
from jms_selector.portability import DIFFERENCES, ENGINES, portable


def keys(found):
    names = {difference: key for key, difference in DIFFERENCES.items()}
    return {names[each] for each in found}


@pytest.mark.parametrize("key", DIFFERENCES)
def test_each_class_is_found_in_its_example(key):
    found = portable(DIFFERENCES[key].example)
    assert key in keys(found.differences)
    assert set(DIFFERENCES[key].engines) <= ENGINES.keys()


PORTABLE = [
    ("NOT a = 1", "a IS NOT NULL AND NOT (a = 1)"),
    ("NOT NOT b", "b"),
    ("m <> 'a' AND n = 1", "m IS NOT NULL AND m <> 'a' AND n = 1"),
    ("NOT (m IN ('a') OR n > 1)", "m IS NOT NULL AND NOT (m IN ('a')) AND n IS NOT NULL AND NOT (n > 1)"),
    ("5 = x", "x = 5"),
    ("t > -0.5 AND s = '-0.5'", "t > - 0.5 AND s = '-0.5'"),
    ("i = 010 OR i = 0x10", "i = 8 OR i = 16"),
    ("JMSPriority <> 4", "JMSPriority <> 4"),
    ("i = 5 /* c */", "i = 5"),
]


@pytest.mark.parametrize(("text", "wanted"), PORTABLE)
def test_the_portable_text(text, wanted):
    found = portable(text)
    assert found.text == wanted
    assert not keys(found.remaining) & {"not", "not-not", "small-minus", "number", "comment"}


@pytest.mark.parametrize("text", ["color = 'red' AND weight > 2500.5", "x IS NOT NULL", "flag", "JMSPriority > 4", ""])
def test_nothing_is_found_in_a_portable_text(text):
    assert portable(text).differences == ()


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(selector_strategies.selectors(), selector_strategies.messages(20))
def test_the_portable_text_selects_the_same_messages(text, messages):
    written = portable(text).text
    for message in messages:
        assert (evaluate(written, message) is True) == (evaluate(parse(text), message) is True), written


def test_what_a_text_cannot_avoid_remains():
    assert keys(portable("NOT a / 2 = 3").differences) >= {"not", "division", "calculation", "missing"}
    assert keys(portable("NOT a / 2 = 3").remaining) == {"division", "calculation"}


def test_the_page_has_the_table():
    page = (Path(__file__).parents[2] / "docs" / "selectors.md").read_text()
    for each in DIFFERENCES.values():
        assert f"| {each.what} | `{each.example}` | {', '.join(each.engines)} |" in page
    assert all(f"{engine} {version}" in page for engine, version in ENGINES.items())
