"""Finds whether exactly-once queries can keep their state on a broker over AMQP: staging queue and commit ledger.

The permissions are tried with a staging queue and a ledger of the check's own, which are empty or deleted afterwards.
In a staging queue that queries use, nothing is changed.
The settings of their addresses are read with management: a broker with a harmful setting confirms every request, and
deletes or withholds messages later.
"""

import contextlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark_jms.amqp.link.commit_ledger import ledger_register
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.read_register import DEFAULT_PREFIX, RegisterName
from pyspark_jms.amqp.link.register import Register
from pyspark_jms.amqp.link.subscriptions import end_subscription
from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.delivery.commit_token import LEDGER_PREFIX, CommitToken, LedgerOwner
from pyspark_jms.delivery.register.token import Token
from pyspark_jms.errors import (
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    ReceiptTimeoutError,
    SubscriptionInUseError,
    UnsupportedError,
)
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.queue_facts import QueueFacts, queue_facts, with_settings
from pyspark_jms.management.queue_rules import Effect, judge, patience_for
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.tools.check.findings import Finding, Verdict, note, problem

__all__ = ["AddressNeeds", "ExactlyOnce", "settings_finding"]

_NAME = "check"
"""All runs use one name, because the broker may keep an auto-created address for ever."""
_STAGING, _OWNER = RegisterName(f"{DEFAULT_PREFIX}{_NAME}", 0), LedgerOwner("query", _NAME)
_LEDGER = _OWNER.queue
_TOKEN_SECONDS = 5.0
_UNDETECTING_ACCEPTORS = "undetectingAcceptors"
"""A key beside those of Artemis: the acceptors that ignore duplicate ids."""


@dataclass(frozen=True, slots=True)
class AddressNeeds:
    """What is kept in addresses of one prefix, and what it needs of their settings."""

    name: str
    """The name of the finding."""

    feature: Feature
    """What they are to the table of queue facts."""

    match: str
    """The addresses, as in the broker's configuration."""

    patience: float | None = None
    """Seconds that a query waits for its token; None: those of ``queue_rules.PATIENCE``."""

    has_first_token: bool = False
    """True: the broker must drop a second first token, by its duplicate id."""


class ExactlyOnce:
    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._needs: list[tuple[AddressNeeds, Sequence[str]]] = []
        """What the broker can keep, and in which queues."""

    def reading(self) -> Finding:
        name = "reading, staging"
        try:
            self._try_staging()
        except JMSError as error:
            return _refused(name, error, f"{DEFAULT_PREFIX}#", "reads")
        return Finding(name, "exactly-once, with deliveryGuarantee=exactly-once")

    def staging_queue(self, address: str) -> Finding:
        """Try the user's own queue. As a query does, create it if it does not exist."""
        name = "staging queue"
        try:
            self._look_at_staging(address)
        except SubscriptionInUseError:
            return note(name, f"a query uses {address} now: it was not tried")
        except JMSSecurityError as error:
            address, _, queue = _register_of(address).queue.partition("::")
            remedy = (
                f"Create the address {address} with the multicast queue {queue} and max-consumers 1, and grant consume,"
                " browse and send there."
            )
            return Finding.of_error(name, error, Verdict.PROBLEM, remedy)
        except JMSError as error:
            return Finding.of_error(name, error, Verdict.PROBLEM)
        return Finding(name, f"{address} has the lock of one query, and this user may use it")

    def writing(self) -> Finding:
        name = "writing, ledger"
        try:
            trial = self._try_ledger()
        except JMSError as error:
            return _refused(name, error, f"{LEDGER_PREFIX}#", "writes")
        value = "exactly-once, with deliveryGuarantee=exactly-once"
        if not trial.drops_duplicates:
            return problem(
                name,
                f"{value}; but a batch whose token is lost is written again: the broker does not drop a second"
                " message with the same duplicate id",
                "Remove amqpDuplicateDetection=false from the broker's acceptor, and set id-cache-size to 20000,"
                " the default.",
            )
        if trial.unseen is None:
            return Finding(name, value)
        return note(
            name,
            f"{value}; {trial.unseen.fact}",
            "Without browse, each look-up after a crash costs the token a delivery attempt."
            f" Grant browse on {LEDGER_PREFIX}#.",
        )

    def settings(self, management: ManagementLink | None) -> Iterator[Finding]:
        """Judge the settings of addresses. Yield nothing if the broker cannot keep the state anyway."""
        if not self._needs:
            return
        if management is None or not management.words.inspects:
            yield _NOT_READ
            return
        for needs, queues in self._needs:
            shown = [_shown(management, needs, each.partition("::")[0]) for each in queues]
            found = [facts for facts in queue_facts(management, queues).values() if facts.exists]
            yield settings_finding(needs, shown, found)

    # --- trying --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self, register: RegisterName, name: str, match: str, queue: str) -> Iterator[ReaderLink]:
        """Lock a staging queue. ``name`` and ``match``: the finding, and the addresses, of its settings."""
        with contextlib.closing(ReaderLink(self._settings, register, StateCondition())) as link:
            self._needs.append((AddressNeeds(name, Feature.STAGING_QUEUE, match, link.patience_seconds), (queue,)))
            link.require_same_topic(self._settings)
            link.lock()
            yield link

    def _try_staging(self) -> None:
        """Do what a read does, with a token only."""
        with self._locked(_STAGING, "staging settings", f"{DEFAULT_PREFIX}#", _STAGING.address) as link:
            try:
                link.require_lock()
                link.peek()
                link.create(Token(stream=_NAME, name=_NAME, reader=_STAGING.reader, batch=0))
                _take_token(link)
            finally:
                with contextlib.suppress(JMSError):
                    link.release(closed=True)

    def _look_at_staging(self, address: str) -> None:
        name = _register_of(address)
        with self._locked(name, "its settings", name.address, name.queue) as link:
            link.require_lock()
            link.peek()
            link.open()

    def _try_ledger(self) -> "_LedgerTrial":
        """Do what a write does, with tokens only."""
        own = replace(self._settings, client_id=_LEDGER)
        with closing(connect(own)) as connection:
            connection.dialect.require(Feature.EXACTLY_ONCE_WRITE)
            self._needs.append((_LEDGER_NEEDS, (ledger_register(connection, _OWNER).place.queue,)))
            trial = _replace_token(connection, own)
        with contextlib.suppress(JMSError):  # without the permission to delete it, the subscription stays
            topic = Destination(DestinationKind.TOPIC, _OWNER.address)
            end_subscription(own, topic, DurableSubscription("token", client_id=_LEDGER))
        return trial


class _LedgerTrial(NamedTuple):
    unseen: JMSError | None
    """Why the token cannot be browsed."""

    drops_duplicates: bool


def _register_of(address: str) -> RegisterName:
    """The queue of a reader ends in its number. Without a number it is that of the first reader."""
    return RegisterName.of(address) or RegisterName(address, 0)


def _replace_token(connection: Connection, settings: ConnectionSettings) -> _LedgerTrial:
    register, token = ledger_register(connection, _OWNER), CommitToken(owner=str(_OWNER))
    register.require_same_topic(settings)
    register.lock(wait_seconds=_TOKEN_SECONDS)
    try:
        if not register.take():
            register.create(token)
        _take_token(register)
        register.accept()
        register.send(token)
        register.transactions.discharge()
        unseen = _browse_error(register)
        return _LedgerTrial(unseen, _drops_duplicates(register, token))
    finally:
        register.release()


def _take_token(register: Register[Any]) -> None:
    if register.take(wait_seconds=_TOKEN_SECONDS):
        return
    address, _, queue = register.queue.partition("::")
    raise ReceiptTimeoutError(
        f"The broker has confirmed a message for {queue}, and has not delivered it within {_TOKEN_SECONDS:g} s.",
        f"In the address-setting of {address}: remove default-consumers-before-dispatch and"
        f" default-delay-before-dispatch. If the queue {queue} is paused, resume it.",
    )


def _browse_error(register: Register[Any]) -> JMSError | None:
    try:
        register.peek()
    except JMSError as error:
        return error
    return None


def _drops_duplicates(register: Register[CommitToken], token: CommitToken) -> bool:
    """Send a duplicate id twice, as two first tokens are sent: no other id ever comes to a ledger's address, so an id
    cache of one entry is enough.

    The id is new for each run, because the broker may remember that of an earlier run.
    """
    before = len(register.take(wait_seconds=_TOKEN_SECONDS))
    identifier = uuid.uuid4().hex
    for _ in range(2):
        register.create(token, once=True, duplicate_id=identifier)
    return len(register.take()) - before == 1


# --- the settings of addresses -----------------------------------------------------------------------


def _shown(management: ManagementLink, needs: AddressNeeds, address: str) -> dict[str, Any]:
    """Return the settings of the address. If it has first tokens, add those of the broker's cache of duplicate ids."""
    broker, shown = management.words.broker_resource, management.settings_of(address)
    if not needs.has_first_token:
        return shown
    cache = {
        "idCacheSize": management.attribute(broker, "IDCacheSize"),
        "persistIDCache": management.attribute(broker, "persistIDCache"),
    }
    return cache | shown | {_UNDETECTING_ACCEPTORS: _undetecting_acceptors(management)}


def _undetecting_acceptors(management: ManagementLink) -> list[str]:
    """Return the names of the acceptors that ignore duplicate ids over AMQP."""
    try:
        acceptors = json.loads(management.attribute(management.words.broker_resource, "acceptorsAsJSON"))
    except InvalidDestinationError:
        return []
    options = {each["name"]: {**each.get("params", {}), **each.get("extraProps", {})} for each in acceptors}
    return [
        name
        for name, each in options.items()
        if "AMQP" in str(each.get("protocols", "AMQP")).upper()
        and str(each.get("amqpDuplicateDetection", "true")).lower() == "false"
    ]


def settings_finding(
    needs: AddressNeeds, shown: Iterable[Mapping[str, Any]], found: Iterable[QueueFacts] = ()
) -> Finding:
    """``shown``: the settings of each address, as the broker's management shows them, and those of the broker's cache
    of duplicate ids. ``found``: the queues that are there.
    """
    every = list(shown)
    would_be = [with_settings(QueueFacts(name=needs.match, exists=False), each) for each in every]
    of_queues = [fault for facts in [*would_be, *found] for fault in _faults_of_queue(needs, facts)]
    others = [fault for facts, each in zip(would_be, every, strict=True) for fault in _others(needs, facts, each)]
    faults = list(dict.fromkeys([*of_queues, *others]))
    details = {"addresses": needs.match, "settings": every}
    if not faults:
        return Finding(needs.name, f"the broker keeps what queries store in {needs.match}", details=details)
    value = f"{needs.match}: {'; '.join(fault.value for fault in faults)}"
    advice = f"In the address-setting of {needs.match}: {'; '.join(fault.advice for fault in faults)}."
    is_problem = any(fault.verdict is Verdict.PROBLEM for fault in faults)
    return (problem if is_problem else note)(needs.name, value, advice, details)


def _faults_of_queue(needs: AddressNeeds, facts: QueueFacts) -> Iterator[Finding]:
    for each in judge(facts, needs.feature, patience=needs.patience):
        fault = problem if each.effect is Effect.REFUSE else note
        yield fault(needs.name, f"a queue there {each.sentence}", each.remedy)


def _others(needs: AddressNeeds, facts: QueueFacts, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what no query refuses."""
    if facts.max_delivery_attempts and not facts.dead_letter_address:
        yield note(
            needs.name,
            f"there is no dead-letter-address, so a token is deleted after {facts.max_delivery_attempts} deliveries",
            "set a dead-letter-address, from which the token can be moved back",
        )
    if 0 < (facts.redelivery_delay or 0) < patience_for(needs.feature, needs.patience):
        yield note(
            needs.name,
            f"redelivery-delay is up to {facts.redelivery_delay:g} s, for which a restart after a crash may wait",
            "set redelivery-delay to 0",
        )
    if needs.has_first_token:
        yield from _id_cache(needs, settings)


def _id_cache(needs: AddressNeeds, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """One id is enough: only first tokens have one. A negative size is no limit."""
    harm = "so a batch whose token is lost is written again"
    if acceptors := ", ".join(settings.get(_UNDETECTING_ACCEPTORS, ())):
        yield note(
            needs.name,  # whether the query uses such an acceptor, the trial of the ledger finds out
            f"amqpDuplicateDetection is false at acceptor {acceptors}, {harm} by clients of this acceptor",
            "remove amqpDuplicateDetection from the acceptor in broker.xml",
        )
    if int(settings.get("idCacheSize", 1)) == 0:
        yield problem(needs.name, f"id-cache-size is 0, {harm}", "set id-cache-size to 20000, the broker's default")
    elif not settings.get("persistIDCache", True):
        yield problem(
            needs.name,
            f"persist-id-cache is false, {harm} after a restart of the broker",
            "remove persist-id-cache from the core element of broker.xml",
        )


_LEDGER_NEEDS = AddressNeeds("ledger settings", Feature.COMMIT_LEDGER, f"{LEDGER_PREFIX}#", has_first_token=True)
_NOT_READ = note(
    "exactly-once",
    f"the settings of {DEFAULT_PREFIX}# and {LEDGER_PREFIX}# were not read: the broker did not answer this user's"
    " management requests",
    "Run the check as an administrator, too: an address-full-policy DROP, a max-expiry-delay or a long"
    " redelivery-delay breaks the exactly-once guarantee without an error.",
)


def _refused(name: str, error: JMSError, addresses: str, what: str) -> Finding:
    if isinstance(error, UnsupportedError):
        return note(name, f"at-least-once only: {error.fact}")
    if isinstance(error, ReceiptTimeoutError):
        return Finding.of_error(name, error, Verdict.PROBLEM)
    if not isinstance(error, JMSSecurityError):
        return Finding.of_error(name, error)
    needed = "createAddress, createDurableQueue, consume, browse and send"
    remedy = f"Exactly-once {what} over AMQP need {needed} on {addresses}, or queues that an administrator has created."
    return Finding.of_error(name, error, remedy=remedy)
