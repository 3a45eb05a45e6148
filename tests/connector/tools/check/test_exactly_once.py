"""What exactly-once queries over AMQP depend on: brokers with good and with bad settings, and restricted users."""

import contextlib
from contextlib import closing
from dataclasses import replace

import pytest
from configured_artemis import ConfiguredArtemis
from old_brokers import EmbeddedArtemis244
from waiting import await_value

from pyspark_jms.amqp.link.commit_ledger import ledger_register
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName
from pyspark_jms.delivery.commit_token import CommitToken, LedgerOwner
from pyspark_jms.jms.features import Feature
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, User
from pyspark_jms.tools.check.exactly_once import AddressNeeds, ExactlyOnce, settings_finding
from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.run import Check, run_checks

NEEDED = frozenset({"createAddress", "createDurableQueue", "consume", "browse", "send"})
LIMITED = NEEDED - {"createAddress", "createDurableQueue"}
USERS = [
    User("limited", "pw", permissions=LIMITED),
    User("reader", "pw", permissions=LIMITED - {"send"}),
    User("exact", "pw", permissions=NEEDED),
    *(User(f"no-{each}", "pw", permissions=NEEDED - {each}) for each in sorted(NEEDED)),
]
BAD = (
    AddressSettings(
        match="pyspark-jms.staging.#",
        address_full_policy="DROP",
        max_expiry_delay=600_000,
        max_delivery_attempts=3,
        redelivery_delay=7_000,
        redelivery_delay_multiplier=2.0,
    ),
    AddressSettings(match="pyspark-jms.commits.#", redelivery_delay=30_000, expiry_delay=1),
)
TIGHT = (
    AddressSettings(
        match="pyspark-jms.staging.*.0", max_delivery_attempts=-1, dead_letter_address="", redelivery_delay=69_000
    ),
    AddressSettings(match="pyspark-jms.commits.#", redelivery_delay=69_000, max_redelivery_delay=29_000),
)


@pytest.fixture(scope="module")
def strict():
    """A broker whose addresses of exactly-once queries have bad settings, and users with one permission less."""
    with EmbeddedArtemis(users=USERS, address_settings=BAD) as broker:
        yield broker


@pytest.fixture
def amqp_settings(settings_for):
    def amqp_settings(broker, user=None):
        return settings_for(broker, "amqp", user=user)

    return amqp_settings


@pytest.fixture
def findings_of(named):
    """``findings_of(settings)``: all findings of exactly-once queries, settings of addresses included."""

    def findings_of(settings):
        state = ExactlyOnce(settings)
        found = [state.reading(), state.writing()]
        with open_amqp_management(settings) as management:
            return named([*found, *state.settings(management)])

    return findings_of


def test_the_check_leaves_no_subscription_and_no_message(broker, amqp_settings, findings_of):
    for _ in range(2):
        findings_of(amqp_settings(broker))
        await_value(lambda: broker.has_queue("pyspark-jms.staging.check.0"), False)
        assert not broker.has_queue("pyspark-jms.commits.check.token")


def test_bad_settings_are_problems(strict, amqp_settings, findings_of):
    found = findings_of(amqp_settings(strict))
    staging, ledger = found["staging settings"], found["ledger settings"]
    assert staging.verdict is ledger.verdict is Verdict.PROBLEM
    for fact in ("policy is DROP", "expire after 600 s", "attempts 3", "up to 70 s", "take its token for lost"):
        assert fact in staging.value
    assert "redelivery-delay is up to 30 s" in ledger.value
    assert "which waits 30 s, may take its token for lost and stop" in ledger.value
    assert "DROP" not in ledger.value


@pytest.mark.deep
def test_settings_of_one_level_of_names_and_on_an_older_release(amqp_settings, findings_of):
    with EmbeddedArtemis244(address_settings=TIGHT) as broker:
        found = findings_of(amqp_settings(broker))
    assert {found[name].verdict for name in ("staging settings", "ledger settings")} == {Verdict.NOTE}
    assert "up to 69 s" in found["staging settings"].value
    assert "up to 29 s" in found["ledger settings"].value


@pytest.mark.broker
@pytest.mark.parametrize(
    ("core", "addresses", "fact"),
    [
        ("<id-cache-size>0</id-cache-size>", (), "id-cache-size is 0"),
        pytest.param(
            "<persist-id-cache>false</persist-id-cache>", (), "persist-id-cache is false", marks=pytest.mark.deep
        ),
        pytest.param(
            "",
            (AddressSettings(match="pyspark-jms.commits.#", id_cache_size=0),),
            "id-cache-size is 0",
            marks=pytest.mark.deep,
        ),
        ("<id-cache-size>0</id-cache-size>", (AddressSettings(match="pyspark-jms.commits.#", id_cache_size=1),), None),
    ],
)
def test_a_broker_that_remembers_no_duplicate_id(amqp_settings, findings_of, core, addresses, fact):
    with ConfiguredArtemis(core=core, address_settings=addresses) as broker:
        settings = amqp_settings(broker)
        every = findings_of(settings)
        found, trial = every["ledger settings"], every["writing, ledger"]
        sent = _first_tokens(settings)
    assert (sent == 2) == (trial.verdict is Verdict.PROBLEM)
    assert found.verdict is (Verdict.PROBLEM if fact else Verdict.FINE)
    assert (fact or "the broker keeps") in found.value
    assert (sent == 2) == (fact == "id-cache-size is 0")  # what the finding is about


@pytest.mark.broker
def test_an_acceptor_that_ignores_duplicate_ids(amqp_settings, findings_of):
    with EmbeddedArtemis(acceptor_options={"amqpDuplicateDetection": "false"}) as broker:
        settings = amqp_settings(broker)
        found = findings_of(settings)
        assert _first_tokens(settings) == 2
    trial, named = found["writing, ledger"], found["ledger settings"]
    assert trial.verdict is Verdict.PROBLEM
    assert "a batch whose token is lost is written again" in trial.value
    assert named.verdict is Verdict.NOTE
    assert "amqpDuplicateDetection is false at acceptor stomp" in named.value


_WITHHOLDING = (
    '<address-setting match="pyspark-jms.#">'
    "<default-consumers-before-dispatch>2</default-consumers-before-dispatch></address-setting>"
)
"""The broker delivers nothing to the first consumer of the connector's own queues."""


@pytest.mark.broker
@pytest.mark.deep
def test_a_broker_that_withholds_tokens_is_a_problem_with_its_cause(amqp_settings):
    with ConfiguredArtemis(replaced=[("</address-settings>", f"{_WITHHOLDING}</address-settings>")]) as broker:
        state = ExactlyOnce(amqp_settings(broker))
        for found in (state.reading(), state.writing()):
            assert found.verdict is Verdict.PROBLEM
            assert "has confirmed a message for pyspark-jms." in found.value
            assert "remove default-consumers-before-dispatch" in found.advice
            assert "Report this" not in found.advice


def _first_tokens(settings):
    """How many there are after two were sent."""
    owner = LedgerOwner("query", "twice")
    with closing(connect(replace(settings, client_id=owner.queue))) as connection:
        register = ledger_register(connection, owner)
        register.lock()
        for _ in range(2):
            register.create(CommitToken(owner=str(owner)), once=True)
        return len(register.peek())


def test_without_the_permission_for_management_the_settings_are_skipped(strict, amqp_settings, named):
    found = named(run_checks(Check(settings=amqp_settings(strict, "exact"))))
    assert found["reading, staging"].verdict is found["writing, ledger"].verdict is Verdict.FINE
    assert found["exactly-once"].verdict is Verdict.NOTE
    assert "were not read" in found["exactly-once"].value
    assert "staging settings" not in found


@pytest.mark.parametrize("permission", sorted(NEEDED))
def test_a_missing_permission_is_named(strict, amqp_settings, permission):
    _delete_what_checks_left(strict)
    state = ExactlyOnce(amqp_settings(strict, f"no-{permission}"))
    reading, writing = state.reading(), state.writing()
    assert reading.verdict is writing.verdict is Verdict.NOTE
    assert permission in reading.advice
    assert permission in writing.advice


def _create_staging(broker, address, max_consumers=1):
    control = broker.server.getActiveMQServerControl()
    control.createQueue(f"{address}.0", "MULTICAST", f"{address}.0", None, True, max_consumers, False, True)


def test_a_staging_queue_of_an_administrator(strict, queue, amqp_settings, named):
    _create_staging(strict, queue)
    found = ExactlyOnce(amqp_settings(strict, "limited")).staging_queue(queue)
    assert (found.verdict, found.value) == (
        Verdict.FINE,
        f"{queue} has the lock of one query, and this user may use it",
    )
    for user, fact in (("reader", "permission='SEND'"), ("no-browse", "permission='BROWSE'")):
        await_value(lambda: strict.consumer_count(f"{queue}.0"), 0)
        refused = ExactlyOnce(amqp_settings(strict, user)).staging_queue(queue)
        assert refused.verdict is Verdict.PROBLEM
        assert fact in refused.value
    await_value(lambda: strict.consumer_count(f"{queue}.0"), 0)
    request = Check(settings=amqp_settings(strict), staging_queue=queue)
    every = named(run_checks(request))
    assert [every[name].verdict for name in ("staging queue", "its settings")] == [Verdict.FINE, Verdict.FINE]


def test_a_staging_queue_that_is_missing_or_no_lock_or_in_use(strict, queue, amqp_settings):
    state = ExactlyOnce(amqp_settings(strict, "limited"))
    missing = state.staging_queue(queue)
    assert missing.verdict is Verdict.PROBLEM
    assert f"Create the address {queue}.0 with the multicast queue {queue}.0" in missing.advice
    no_reader = state.staging_queue(f"{queue}.07")
    assert f"Create the address {queue}.07.0 with the multicast queue {queue}.07.0" in no_reader.advice
    _create_staging(strict, f"{queue}.shared", max_consumers=-1)
    shared = state.staging_queue(f"{queue}.shared")
    assert shared.verdict is Verdict.PROBLEM
    assert "is no lock" in shared.value
    _create_staging(strict, f"{queue}.used")
    with contextlib.closing(ReadRegister(amqp_settings(strict), RegisterName(f"{queue}.used", 0))) as owner:
        owner.lock()
        used = state.staging_queue(f"{queue}.used")
    assert used.verdict is Verdict.NOTE
    assert "a query uses" in used.value


def _delete_what_checks_left(broker):
    """So that the next check must create the addresses and queues again."""
    control = broker.server.getActiveMQServerControl()
    for address in list(control.getAddressNames()):
        if address.startswith(("pyspark-jms.staging.check", "pyspark-jms.commits.check")):
            control.deleteAddress(address, True)


def test_a_second_check_does_not_wait(broker, amqp_settings):
    settings = amqp_settings(broker)
    other = ReadRegister(settings, RegisterName("pyspark-jms.staging.check", 0))
    try:
        other.lock()
        found = ExactlyOnce(settings).reading()
    finally:
        other.release(closed=True)
        other.close()
    assert found.verdict is Verdict.NOTE
    assert "createAddress" not in found.advice


def test_a_broker_that_cannot_keep_the_state_says_why(broker, amqp_settings):
    state = ExactlyOnce(replace(amqp_settings(broker), broker="amqp"))
    reading, writing = state.reading(), state.writing()
    assert reading.verdict is writing.verdict is Verdict.NOTE
    assert "staging queue needs" in reading.value
    assert "is no lock" in writing.value
    assert [*state.settings(None)] == []


# --- settings of addresses, as Artemis 2.44 and 2.55 show them: without those that are not set ---

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


def test_a_setting_of_one_of_two_addresses_counts_and_that_of_both_is_reported_once():
    dropping = {"addressFullMessagePolicy": "DROP"}
    assert finding_of({}, dropping).verdict is Verdict.PROBLEM
    assert finding_of(dropping, dropping).value.count("DROP") == 1


def test_the_worst_of_several_settings_is_the_verdict():
    found = finding_of({"deadLetterAddress": "", "maxExpiryDelay": 5})
    assert found.verdict is Verdict.PROBLEM
    assert "dead-letter-address" in found.value
    assert "max-expiry-delay" in found.value
