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
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, User
from pyspark_jms.tools.check.exactly_once import ExactlyOnce
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
