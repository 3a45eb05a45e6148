from collections import Counter

import pytest

from pyspark_jms.jms.model import BODY_MARKER
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT
from pyspark_jms.tools.check.body_type_counts import (
    BodyKind,
    body_types_finding,
    count_kinds,
    describe_counts,
    describe_losses,
)
from pyspark_jms.tools.check.findings import Verdict

WORDS = ARTEMIS_MANAGEMENT.inspection


def listed(*codes):
    return [{"type": code} for code in codes]


def test_codes_become_body_types():
    assert count_kinds(listed(0, 2, 3, 3, 4, 5, 6), WORDS) == Counter(
        {
            BodyKind("message"): 1,
            BodyKind("object"): 1,
            BodyKind("text"): 2,
            BodyKind("bytes"): 1,
            BodyKind("map"): 1,
            BodyKind("stream"): 1,
        }
    )
    assert count_kinds([*listed(1, 7, -1, "3", None), {}], WORDS) == Counter({BodyKind("other"): 6})


def test_messages_of_amqp_clients_have_an_annotation():
    messages = [{"x-opt-jms-msg-type": code} for code in (0, 1, 2, 3, 4, 5, 5, 6)]
    assert describe_counts(count_kinds(messages, WORDS)) == (
        "bytes 1, map 1, message 1, object 1, other 1, stream 1, text 2"
    )


def test_the_marker_is_the_body_type_of_an_envelope():
    messages = [{"type": 3, BODY_MARKER: "map"}, {"type": 4, BODY_MARKER: "object"}, {"type": 3, BODY_MARKER: "secret"}]
    assert count_kinds(messages, WORDS) == Counter(
        {BodyKind("map", True): 1, BodyKind("object", True): 1, BodyKind("text"): 1}
    )
    assert describe_counts(count_kinds(messages, WORDS)) == "map (envelope) 1, object (envelope) 1, text 1"


@pytest.mark.parametrize("kind", ["map", "object", "stream"])
def test_bodies_that_are_lost_unless_in_an_envelope(kind):
    (sentence,) = describe_losses([BodyKind(kind), BodyKind("text")], WORDS)
    assert sentence.startswith(f"{kind.capitalize()} bodies ")
    assert (
        describe_losses(
            [BodyKind(kind, True), BodyKind("text"), BodyKind("bytes"), BodyKind("message"), BodyKind("other")], WORDS
        )
        == []
    )


def test_findings():
    fine = body_types_finding(Counter({BodyKind("text"): 1_500}), 1_500, WORDS)
    assert (fine.verdict, fine.value, fine.advice) == (Verdict.FINE, "text 1,500 (all 1,500)", "")
    part = body_types_finding(Counter({BodyKind("text"): 200}), 5_000, WORDS)
    assert (part.verdict, part.value) == (Verdict.NOTE, "text 200 (the first 200 of 5,000)")
    assert "--receive" in part.advice
    bad = body_types_finding(Counter({BodyKind("text"): 2, BodyKind("map"): 1}), 5_000, WORDS)
    assert bad.verdict is Verdict.PROBLEM
    assert bad.advice.startswith("Map bodies ")
    assert bad.details == {"seen": 3, "bodyTypes": {"text": 2, "map": 1}}


def test_no_listed_message():
    assert "empty" in body_types_finding(Counter(), 0, WORDS).value
    assert body_types_finding(Counter(), 0, WORDS).verdict is Verdict.FINE
    assert body_types_finding(Counter(), 3, WORDS).verdict is Verdict.NOTE
