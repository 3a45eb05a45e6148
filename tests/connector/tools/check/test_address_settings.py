"""Settings of addresses, as Artemis 2.44 and 2.55 show them: without those that are not set."""

from dataclasses import replace

import pytest

from pyspark_jms.jms.features import Feature
from pyspark_jms.tools.check.address_settings import AddressNeeds, settings_finding
from pyspark_jms.tools.check.findings import Verdict

NEEDS = AddressNeeds("state", Feature.COMMIT_LEDGER, "state.#")
DEFAULT = {"addressFullMessagePolicy": "PAGE", "maxDeliveryAttempts": 10, "deadLetterAddress": "DLQ"}


def finding_of(*changes):
    return settings_finding(NEEDS, [DEFAULT | change for change in changes])


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"addressFullMessagePolicy": "BLOCK"},
        {"maxExpiryDelay": -1},
        {"pageFullMessagePolicy": "DROP"},
        {"pageFullMessagePolicy": "DROP", "pageLimitBytes": -1},
        {"defaultRingSize": -1, "defaultMaxConsumers": 1, "defaultConsumersBeforeDispatch": 1},
        {"expiryDelay": 1},
        {"maxDeliveryAttempts": 4},
        {"maxDeliveryAttempts": -1, "deadLetterAddress": ""},
        {"redeliveryDelay": 0, "redeliveryMultiplier": 2.0},
        {"redeliveryDelay": 0, "redeliveryMultiplier": 2.0, "maxRedeliveryDelay": 60_000},
    ],
)
def test_harmless_settings(change):
    found = finding_of(change)
    assert (found.verdict, found.advice) == (Verdict.FINE, "")
    assert found.details["settings"] == [DEFAULT | change]


@pytest.mark.parametrize(
    ("change", "verdict", "fact"),
    [
        ({"addressFullMessagePolicy": "DROP"}, Verdict.PROBLEM, "address-full-policy is DROP"),
        ({"pageFullMessagePolicy": "DROP", "pageLimitBytes": 1_000}, Verdict.PROBLEM, "page-full-policy is DROP"),
        ({"pageFullMessagePolicy": "DROP", "pageLimitMessages": 1}, Verdict.PROBLEM, "page-full-policy is DROP"),
        ({"defaultRingSize": 1}, Verdict.PROBLEM, "keeps the newest 1 messages only"),
        ({"defaultNonDestructive": True}, Verdict.PROBLEM, "is non-destructive"),
        ({"defaultPurgeOnNoConsumers": True}, Verdict.PROBLEM, "keeps nothing without a consumer"),
        ({"defaultMaxConsumers": 0}, Verdict.PROBLEM, "has max-consumers 0"),
        ({"defaultConsumersBeforeDispatch": 2}, Verdict.PROBLEM, "delivers nothing before it has 2 consumers"),
        ({"defaultLastValueQueue": True}, Verdict.NOTE, "replaces a message"),
        ({"defaultLastValueKey": "k"}, Verdict.NOTE, "replaces a message"),
        ({"maxExpiryDelay": 0}, Verdict.PROBLEM, "expire after 0 s (max-expiry-delay)"),
        ({"maxExpiryDelay": 70_000}, Verdict.PROBLEM, "expire after 70 s (max-expiry-delay)"),
        ({"maxDeliveryAttempts": 3}, Verdict.PROBLEM, "max-delivery-attempts 3"),
        ({"deadLetterAddress": ""}, Verdict.NOTE, "no dead-letter-address"),
        ({"redeliveryDelay": 29_999}, Verdict.NOTE, "up to 29.999 s"),
        ({"redeliveryDelay": 30_000}, Verdict.PROBLEM, "take its token for lost"),
        ({"redeliveryDelay": 3_000, "redeliveryMultiplier": 2.0}, Verdict.PROBLEM, "up to 30 s"),
        (
            {"redeliveryDelay": 3_000, "redeliveryMultiplier": 2.0, "maxRedeliveryDelay": 9_000},
            Verdict.NOTE,
            "up to 9 s",
        ),
        ({"redeliveryDelay": 40_000, "maxRedeliveryDelay": 20_000}, Verdict.NOTE, "up to 20 s"),
    ],
)
def test_harmful_settings(change, verdict, fact):
    found = finding_of(change)
    assert found.verdict is verdict
    assert fact in found.value
    assert found.advice.startswith("In the address-setting of state.#: set ")


@pytest.mark.parametrize("change", [{"idCacheSize": 0}, {"persistIDCache": False}, {"idCacheSize": 1}])
def test_only_a_first_token_needs_the_cache_of_duplicate_ids(change):
    assert finding_of(change).verdict is Verdict.FINE
    found = settings_finding(replace(NEEDS, has_first_token=True), [DEFAULT | change])
    assert found.verdict is (Verdict.FINE if change == {"idCacheSize": 1} else Verdict.PROBLEM)
    assert ("is written again" in found.value) == (found.verdict is Verdict.PROBLEM)


def test_a_setting_of_one_of_two_addresses_counts():
    assert finding_of({}, {"addressFullMessagePolicy": "DROP"}).verdict is Verdict.PROBLEM


def test_the_same_setting_of_two_addresses_is_reported_once():
    dropping = {"addressFullMessagePolicy": "DROP"}
    assert finding_of(dropping, dropping).value.count("DROP") == 1


def test_the_worst_of_several_settings_is_the_verdict():
    found = finding_of({"deadLetterAddress": "", "maxExpiryDelay": 5})
    assert found.verdict is Verdict.PROBLEM
    assert "dead-letter-address" in found.value
    assert "max-expiry-delay" in found.value
