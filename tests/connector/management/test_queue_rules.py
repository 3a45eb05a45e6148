"""The table of queue facts, fact by fact and feature by feature."""

import logging
from dataclasses import replace

import pytest

from pyspark_jms.amqp.link.commit_ledger import MISSING_SECONDS
from pyspark_jms.amqp.reading import _IDLE_SECONDS, _MARGIN_SECONDS
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.queue_facts import QueueFacts
from pyspark_jms.management.queue_rules import PATIENCE, RULES, Effect, judge, require_usable

ORDINARY = QueueFacts(
    name="q",
    exists=True,
    address="q",
    non_destructive=False,
    purge_on_no_consumers=False,
    last_value=False,
    exclusive=False,
    consumers_before_dispatch=0,
    paused=False,
    full_policy="PAGE",
    max_delivery_attempts=4,
    redelivery_delay=29.9,
)
UNKNOWN = QueueFacts(name="q", exists=True)

# Features: at-least-once read, connections, journal, register, batch read, write, exactly-once write, dead letters,
# staging queue, commit ledger. R is refused, w a warning.
TABLE = {
    "address": ({"address": "a"}, ". . . . . R R R . ."),
    "non-destructive": ({"non_destructive": True}, "w R R R . . . . R R"),
    "purge-on-no-consumers": ({"purge_on_no_consumers": True}, "w . R R . w w w R R"),
    "ring-size": ({"ring_size": 1_000}, "w . w w . w w w R R"),
    "last-value": ({"last_value": True}, "w . w w . . . . w w"),
    "exclusive": ({"exclusive": True}, ". w . . . . . . . ."),
    "exclusive, in use": ({"exclusive": True, "consumers": 1}, "w w w w . . . . . ."),
    "max-consumers 0": ({"max_consumers": 0}, "R . R R . . . . R R"),
    "max-consumers": ({"max_consumers": 1}, ". R . w . . . . . ."),
    "consumers-before-dispatch": ({"consumers_before_dispatch": 3}, "w . w w . . . . R R"),
    "paused": ({"paused": True}, "w . w w . . . . w w"),
    "address-full-policy": ({"full_policy": "DROP"}, ". . . . . w w w R R"),
    "page-full-policy": ({"page_full_policy": "DROP"}, ". . . . . w w w R R"),
    "max-expiry-delay": ({"max_expiry_delay": 5.0}, ". . . . . . . . R R"),
    "max-delivery-attempts": ({"max_delivery_attempts": 3}, ". . . . . . . . R R"),
    "redelivery-delay": ({"redelivery_delay": 70.0}, ". . . . . . . . R R"),
}
FEATURES = tuple(Feature)[:10]
"""Those that depend on a queue; the others depend on the broker alone."""

LETTERS = {None: ".", Effect.REFUSE: "R", Effect.WARN: "w"}


def effects(facts):
    found = [next((each.effect for each in judge(facts, feature, 2)), None) for feature in FEATURES]
    return " ".join(LETTERS[effect] for effect in found)


def test_every_rule_is_in_the_table():
    assert [rule.name for rule in RULES] == [*TABLE]


@pytest.mark.parametrize("name", TABLE)
def test_a_fact_and_the_features(name):
    change, expected = TABLE[name]
    assert effects(replace(ORDINARY, **change)) == effects(replace(UNKNOWN, **change)) == expected
    judged = [each for feature in Feature for each in judge(replace(ORDINARY, **change), feature, 2)]
    assert {each.rule.name for each in judged} == {name}
    assert not [each.sentence for each in judged if "{" in each.sentence + each.remedy or not each.remedy]


@pytest.mark.parametrize("facts", [ORDINARY, UNKNOWN, replace(ORDINARY, max_consumers=2, consumers_before_dispatch=2)])
def test_an_ordinary_queue_and_one_of_which_nothing_is_known(facts):
    assert effects(facts) == " ".join("." * len(FEATURES))


def test_the_patience_of_the_table_is_that_of_the_registers():
    staging = 2 * _IDLE_SECONDS + _MARGIN_SECONDS
    assert {Feature.COMMIT_LEDGER: MISSING_SECONDS, Feature.STAGING_QUEUE: staging} == PATIENCE


@pytest.mark.parametrize(
    ("feature", "patience", "delay", "refused"),
    [
        (Feature.STAGING_QUEUE, None, 69.0, False),
        (Feature.STAGING_QUEUE, 130.0, 129.0, False),
        (Feature.STAGING_QUEUE, 30.0, 31.0, True),
        (Feature.COMMIT_LEDGER, None, 29.0, False),
        (Feature.COMMIT_LEDGER, None, 30.0, True),
    ],
)
def test_a_late_token_is_one_that_comes_after_the_patience_of_the_connection(feature, patience, delay, refused):
    found = list(judge(replace(ORDINARY, redelivery_delay=delay), feature, patience=patience))
    assert [each.effect for each in found] == [Effect.REFUSE] * refused


def test_a_refusal_comes_before_any_warning(caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms")
    facts = replace(ORDINARY, ring_size=5, non_destructive=True)
    with pytest.raises(UnsupportedError, match=r"Queue q is non-destructive: .*, so each batch .* again\. Read an"):
        require_usable([(facts, Feature.REGISTER, 1)])
    assert not caplog.messages
    require_usable([(facts, Feature.AT_LEAST_ONCE_READ, 1)])
    assert [message[:30] for message in caplog.messages] == [
        "! queue q is non-destructive: ",
        "! queue q keeps the newest 5 m",
    ]
