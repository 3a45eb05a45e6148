from collections import Counter

import pytest

from pyspark_jms.check.census import Kind, census_finding, counted, kinds_of, lost
from pyspark_jms.check.findings import Verdict
from pyspark_jms.jms.model import BODY_MARKER
from pyspark_jms.stomp.dialects.management import ARTEMIS_MANAGEMENT as WORDS


def listed(*codes):
    return [{"type": code} for code in codes]


def test_codes_become_body_types():
    assert kinds_of(listed(0, 2, 3, 3, 4, 5, 6), WORDS) == Counter(
        {Kind("message"): 1, Kind("object"): 1, Kind("text"): 2, Kind("bytes"): 1, Kind("map"): 1, Kind("stream"): 1}
    )
    assert kinds_of([*listed(1, 7, -1, "3", None), {}], WORDS) == Counter({Kind("other"): 6})


def test_an_envelope_is_what_its_marker_says():
    messages = [{"type": 3, BODY_MARKER: "map"}, {"type": 4, BODY_MARKER: "object"}, {"type": 3, BODY_MARKER: "secret"}]
    assert kinds_of(messages, WORDS) == Counter({Kind("map", True): 1, Kind("object", True): 1, Kind("text"): 1})
    assert counted(kinds_of(messages, WORDS)) == "map (envelope) 1, object (envelope) 1, text 1"


@pytest.mark.parametrize("kind", ["map", "object", "stream"])
def test_what_is_lost_and_what_an_envelope_saves(kind):
    (sentence,) = lost([Kind(kind), Kind("text")], WORDS)
    assert sentence.startswith(f"{kind.capitalize()} bodies arrive ")
    assert lost([Kind(kind, True), Kind("text"), Kind("bytes"), Kind("message"), Kind("other")], WORDS) == []


def test_findings():
    fine = census_finding(Counter({Kind("text"): 1_500}), 1_500, WORDS)
    assert (fine.verdict, fine.value, fine.advice) == (Verdict.FINE, "text 1,500 (all 1,500)", "")
    part = census_finding(Counter({Kind("text"): 200}), 5_000, WORDS)
    assert (part.verdict, part.value) == (Verdict.NOTE, "text 200 (the first 200 of 5,000)")
    assert "--receive" in part.advice
    bad = census_finding(Counter({Kind("text"): 2, Kind("map"): 1}), 5_000, WORDS)
    assert bad.verdict is Verdict.PROBLEM
    assert bad.advice.startswith("Map bodies arrive as an empty or garbled text. Agree on")
    assert bad.figures == {"seen": 3, "bodyTypes": {"text": 2, "map": 1}}


def test_nothing_to_look_at():
    assert census_finding(Counter(), 0, WORDS).value == "the queue is empty"
    assert census_finding(Counter(), 0, WORDS).verdict is Verdict.FINE
    assert census_finding(Counter(), 3, WORDS).verdict is Verdict.NOTE
