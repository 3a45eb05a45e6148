"""The token of a commit ledger on the real broker: races, what a new owner finds, a lost token and a renewed one."""

import random
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field

import pytest
from amqp_messages import TRUE, block_of, list_, section, string
from rawstomp import RawStomp
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.link import commit_ledger
from pyspark_jms.amqp.link.commit_ledger import TokenLedger, ledger_register
from pyspark_jms.amqp.link.commit_ledger import opened as opened_ledger
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.delivery.commit_token import CommitToken, LedgerEntry, LedgerOwner, is_finished
from pyspark_jms.delivery.register import committer
from pyspark_jms.errors import (
    JMSError,
    JMSSecurityError,
    MaxConsumersError,
    NotDeliveredError,
    SinkFencedError,
    TokenMissingError,
    TransactionRolledBackError,
    UnsupportedError,
)


def entry(task, batch=0, *, digest="d", execution="e"):
    return LedgerEntry(task=task, batch=batch, rows=1, digest=digest, execution=execution)


class Committing:
    """A connection with rows in its transaction and the ledger."""

    def __init__(self, settings, owner, queue, *texts):
        self.owner = owner
        self.producer = Producer(settings, container_id=owner.queue)
        self.producer.open(Target(address=queue, capabilities=("queue",)))
        if texts:
            self.producer.send(block_of([section(0x70, list_(TRUE)) + section(0x77, string(text)) for text in texts]))
        self.connection, self.transactions = self.producer.connection, self.producer.transactions
        self.ledger = TokenLedger(self.connection, self.transactions, settings, owner)

    def commit(self, entry, admit=lambda known: True):
        committed = self.ledger.commit(entry, admit)
        if not committed:
            self.transactions.roll_back()
        return committed

    def close(self):
        self.producer.__exit__(None, None, None)


@pytest.fixture
def owner():
    return LedgerOwner("query", uuid.uuid4().hex)


@pytest.fixture
def name(owner):
    """Of the ledger."""
    return owner.queue


@pytest.fixture
def settings(broker, settings_for):
    return settings_for(broker)


@pytest.fixture
def committing(settings, owner, queue, opened):
    return lambda *texts, owner=owner: opened(Committing(settings, owner, queue, *texts))


def find_token(settings, owner):
    with opened_ledger(settings, owner) as ledger:
        return ledger.find()


def tasks(settings, owner):
    return sorted(each.task for each in find_token(settings, owner).entries)


def test_without_a_ledger_there_are_no_entries_and_nothing_is_created(broker, settings, owner, name):
    assert find_token(settings, owner) == CommitToken(owner=str(owner))
    assert not broker.has_queue(f"{name}.token")


def test_rows_and_token_are_committed_together(broker, queue, settings, owner, committing):
    seen = []
    for number in range(3):
        assert committing("row").commit(entry(f"q/0/{number}"), lambda known: seen.append(known) or True)
    assert [[each.task for each in known] for known in seen] == [[], ["q/0/0"], ["q/0/0", "q/0/1"]]
    assert tasks(settings, owner) == ["q/0/0", "q/0/1", "q/0/2"]
    await_count(broker, queue, 3)


@pytest.mark.parametrize("raises", [False, True])
def test_what_is_not_admitted_is_not_sent_and_the_token_stays(broker, queue, settings, owner, committing, raises):
    committing("row").commit(entry("q/0/0"))

    def admit(_):
        if raises:
            raise UnsupportedError("fact.", "remedy.")
        return False

    refused = committing("other")
    if raises:
        with pytest.raises(UnsupportedError):
            refused.commit(entry("q/0/1"), admit)
    else:
        assert not refused.commit(entry("q/0/1"), admit)
    assert tasks(settings, owner) == ["q/0/0"]
    refused.close()
    await_count(broker, queue, 1)


def test_an_earlier_batch_is_fenced(broker, queue, settings, owner, committing):
    for batch in (4, 5):
        committing("row").commit(entry(f"q/{batch}/0", batch))
    with pytest.raises(SinkFencedError, match=r"\[JMS_SINK_FENCED\].*written batch 5.*q/4/1 is of batch 4"):
        committing("late").commit(entry("q/4/1", 4))
    assert tasks(settings, owner) == ["q/5/0"]
    await_count(broker, queue, 2)


def test_of_two_owners_that_have_read_the_same_token_one_commits(broker, queue, settings, committing):
    """The second one waits for the lock, and then reads the token of the first one."""
    committing("row").commit(entry("q/0/0"))
    first, second, seen = committing("1"), committing("2"), []
    entered, go_on = threading.Event(), threading.Event()
    waits = threading.Thread(target=second.commit, args=(entry("q/0/2"), lambda known: seen.append(len(known)) or True))

    def admit(known):
        seen.append(len(known))
        entered.set()
        waits.start()
        assert not go_on.wait(0.3)
        return True

    first.commit(entry("q/0/1"), admit)
    assert entered.is_set()
    waits.join(60)
    assert seen == [1, 2]
    await_count(broker, queue, 3)


def test_a_refused_row_refuses_the_token_too(restricted, queue, settings_for, owner):
    settings, address = settings_for(restricted), f"full.{queue}"
    for each in (owner, *(LedgerOwner("query", uuid.uuid4().hex) for _ in range(7))):
        many = Committing(settings, each, address, *map(str, range(20)))
        with pytest.raises(TransactionRolledBackError, match="is full"):
            many.commit(entry("q/0/0"))
        many.close()
        await_count(restricted, f"{each.queue}.token", 1)
        await_value(lambda each=each: restricted.delivering_count(f"{each.queue}.token"), 0)
    assert tasks(settings, owner) == []
    few = Committing(settings, owner, address, "1")
    assert few.commit(entry("q/0/0"))
    few.close()
    await_count(restricted, address, 1)
    await_count(restricted, f"{owner.queue}.token", 1)


def test_without_permission_nothing_is_sent(restricted, queue, settings_for, owner):
    settings = settings_for(restricted, user="no-ledger", password="pw")
    task = Committing(settings, owner, queue, "row")
    with pytest.raises((TransactionRolledBackError, JMSSecurityError), match="AMQ229"):
        task.commit(entry("q/0/0"))
    task.close()
    await_count(restricted, queue, 0)


# --- a token that is missing, foreign or to be renewed ---------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(commit_ledger, "MISSING_SECONDS", 0.3)


@pytest.fixture
def patient(monkeypatch):
    """Who waits for a token that nobody sends would not return."""
    monkeypatch.setattr(commit_ledger, "MISSING_SECONDS", 3600.0)


@pytest.mark.parametrize(("kind", "batch"), [("query", 4), ("query", 0), ("job", 0)])
def test_a_lost_token_is_an_error_and_no_new_beginning(broker, queue, committing, impatient, kind, batch):
    """The broker drops a second first token, so that one that is lost is not taken for one that was never made."""
    owner, mine = LedgerOwner(kind, uuid.uuid4().hex), entry(f"w/{batch}/0", batch)
    committing("row", owner=owner).commit(mine)
    broker.purge(f"{owner.queue}.token")
    for _ in range(2):
        with pytest.raises(TokenMissingError, match=r"\[JMS_TOKEN_MISSING\] .* has no token.*dead-letter"):
            committing("row", owner=owner).commit(mine)
    await_count(broker, queue, 1)


@pytest.mark.parametrize("batch", [0, 5])
def test_a_query_begins_where_an_owner_died_before_its_token_was_made(settings, owner, committing, patient, batch):
    """Batch 5: earlier batches had no rows, or were written at-least-once."""
    die_before_the_token(committing())
    assert committing("row").commit(entry(f"q/{batch}/0", batch))
    assert tasks(settings, owner) == [f"q/{batch}/0"]


def test_a_job_begins_with_a_queue_of_an_administrator(broker, settings, job, committing, patient):
    address = f"{job.queue}.token"
    broker.server.getActiveMQServerControl().createQueue(address, "MULTICAST", address, None, True, 1, False, True)
    assert committing("row", owner=job).commit(entry("w/0"))
    assert tasks(settings, job) == ["w/0"]


def die_before_the_token(began):
    """The owner has made the subscription, and no token."""
    ledger_register(began.connection, began.owner).lock(wait_seconds=10)
    began.connection.drop()


def test_a_ledger_that_an_administrator_deletes_begins_anew(
    broker, queue, settings, owner, name, committing, impatient
):
    """With the queue, the broker forgets that it had a first token."""
    committing("row").commit(entry("q/3/0", 3))
    broker.server.getActiveMQServerControl().destroyQueue(f"{name}.token", True)
    assert committing("row").commit(entry("q/0/0"))
    assert tasks(settings, owner) == ["q/0/0"]


def test_the_broker_knows_after_a_restart_that_there_was_a_first_token(killable, queue, settings_for, owner, impatient):
    broker = killable
    settings = settings_for(broker)
    first = Committing(settings, owner, queue, "row")
    first.commit(entry("q/0/0"))
    first.close()
    broker.purge(f"{owner.queue}.token")
    broker.kill()
    broker.start()
    again = Committing(settings, owner, queue, "row")
    with pytest.raises(TokenMissingError):
        again.commit(entry("q/0/0"))
    again.close()
    await_count(broker, queue, 1)


def test_a_task_that_stands_still_before_it_makes_the_ledger_sends_no_second_token(
    broker, queue, settings, owner, name, committing
):
    """Meanwhile another attempt makes the ledger and commits; its transaction has the token when its lock is free."""
    mine, other = committing("row"), committing("row")
    make = mine.ledger._make

    def making():
        other.commit(entry("q/0/0"))
        return make()

    mine.ledger._make = making
    assert not mine.commit(entry("q/0/0"), lambda known: not known)
    await_count(broker, queue, 1)
    await_count(broker, f"{name}.token", 1)


def test_a_token_that_is_shown_and_not_delivered_is_not_lost(broker, queue, owner, name, committing, impatient):
    committing("row").commit(entry("q/4/0", 4))
    with broker._queue(f"{name}.token") as found:
        found.pause()
        with pytest.raises(NotDeliveredError, match=r"It is paused\. Nothing was read or sent"):
            committing("row").commit(entry("q/5/0", 5))
        found.resume()
    committing("row").commit(entry("q/5/0", 5))


@pytest.fixture
def job():
    return LedgerOwner("job", uuid.uuid4().hex)


def test_who_found_no_ledger_makes_the_token_when_its_maker_dies(broker, queue, job, committing, impatient):
    """Of two first tasks, one makes the subscription and dies."""
    mine = committing("row", owner=job)
    register, lock = mine.ledger._register, mine.ledger._register.lock

    def locked(*given, **named):
        found = lock(*given, **named)
        if not found:
            die_before_the_token(committing(owner=job))
        return found

    register.lock = locked
    assert mine.commit(entry("w/0"))
    await_count(broker, queue, 1)


def test_a_queue_of_an_administrator_without_a_limit_of_consumers_is_no_ledger(
    broker, settings, owner, name, committing
):
    control = broker.server.getActiveMQServerControl()
    address = f"{name}.token"
    control.createQueue(address, "MULTICAST", address, None, True, -1, False, True)
    with pytest.raises(MaxConsumersError, match=f"{address}::{address}, so this queue is no lock"):
        find_token(settings, owner)


def test_a_message_that_is_no_token_is_an_error(broker, queue, settings, owner, name, committing):
    committing("row").commit(entry("q/0/0"))
    with Producer(settings) as other:
        other.open(Target(address=f"{name}.token", capabilities=("topic",)))
        other.send(block_of([section(0x77, string("hello"))]))
        other.commit()
    with pytest.raises(TokenMissingError, match="not a token of a commit ledger in a format"):
        committing("row").commit(entry("q/0/1"))
    with pytest.raises(TokenMissingError):
        find_token(settings, owner)
    await_count(broker, queue, 1)


def test_owners_that_die_with_the_token_do_not_wear_it_out(restricted, queue, settings_for, owner, name):
    """The broker's limit of deliveries is 5 here, and every death counts one."""
    settings = settings_for(restricted)
    first = Committing(settings, owner, queue, "row")
    first.commit(entry("q/0/0"))
    first.close()
    for number in range(12):
        dying = Committing(settings, owner, queue, "lost")

        def die(known, dying=dying):
            dying.ledger._register.accept()
            dying.connection.drop()
            return True

        with pytest.raises(JMSError):
            dying.commit(entry(f"q/0/{number}", digest="other"), die)
        if number % 3 == 2:
            alive = Committing(settings, owner, queue, "row")
            assert alive.commit(entry(f"q/0/{number}"))
            alive.close()
    await_count(restricted, queue, 5)
    await_count(restricted, f"{name}.token", 1)
    assert [letter for letter in restricted.dead_letters() if name in str(letter)] == []


def close_consumers(broker, queue):
    """As an administrator does: the connections stay."""
    with broker._queue(queue) as found:
        for consumer in list(found.getConsumers()):
            consumer.disconnect()


def test_an_owner_whose_consumer_an_administrator_closes_commits_nothing(
    broker, queue, settings, owner, name, committing
):
    """Artemis ignores the acceptance of a token that it has taken back, and would commit the rows."""
    committing("row").commit(entry("q/0/0"))

    def admit(_):
        close_consumers(broker, f"{name}.token")
        return True

    with pytest.raises(TransactionRolledBackError, match="No row of this attempt was sent"):
        committing("lost").commit(entry("q/0/1"), admit)
    await_value(lambda: tasks(settings, owner), ["q/0/0"])
    await_count(broker, queue, 1)
    assert committing("row").commit(entry("q/0/1"))
    await_count(broker, f"{name}.token", 1)


# --- deaths -------------------------------------------------------------------------------------------------


class DiedError(Exception):
    pass


def die_at(task, point):
    """Make the attempt die at this point: its connection is closed without a goodbye."""
    register = task.ledger._register

    def die(*_, **__):
        task.connection.drop()
        raise DiedError

    def after(act):
        def acting(*given, **named):
            act(*given, **named)
            die()

        return acting

    accept = register.accept

    def accepted(own=None):
        """A token that was delivered often is replaced before, in a transaction of its own."""
        accept(own)
        if own is None:
            die()

    make = task.ledger._make

    def made():
        """The register is made on a second connection."""
        locked, second = make(), task.ledger._second
        second.create = after(second.create)
        return locked

    changes = {
        "rows sent": (register, "lock", die),
        "locked": (register, "lock", after(register.lock)),
        "read": (register, "take", after(register.take)),
        "created": (task.ledger, "_make", made),
        "accepted": (register, "accept", accepted),
        "sent": (register, "send", after(register.send)),
    }
    setattr(*changes[point])


@pytest.mark.slow
@pytest.mark.parametrize("point", ["rows sent", "locked", "read", "created", "accepted", "sent"])
def test_25_deaths_in_a_row_cost_nothing(broker, queue, settings, owner, name, point, report):
    """With the broker's default of ten deliveries."""
    if point != "created":
        first = Committing(settings, owner, queue, "0")
        first.commit(entry("q/0/0"))
        first.close()
    died, most = 0, 0
    for _ in range(25):
        find_token(settings, owner)  # as each attempt does that follows a failed one
        task = Committing(settings, owner, queue, "1")
        die_at(task, point)
        try:
            task.commit(entry("q/1/0", 1), lambda known: not known)
        except (DiedError, JMSError):
            died += 1
        task.close()
        counts = broker.delivery_counts(f"{name}.token") if broker.has_queue(f"{name}.token") else []
        most = max([most, *counts])
    last = Committing(settings, owner, queue, "1")
    last.commit(entry("q/1/0", 1), lambda known: not known)
    last.close()
    report(f"{died} deaths at {point}: at most {most} deliveries of the token")
    assert died == (1 if point == "created" else 25)  # after the first one there is a token
    assert tasks(settings, owner) == ["q/1/0"]
    wait_until(lambda: broker.message_count(queue) == (1 if point == "created" else 2))
    assert [letter for letter in broker.dead_letters() if name in str(letter)] == []
    await_count(broker, f"{name}.token", 1)


# --- the ledger of a job --------------------------------------------------------------------------------


def test_a_finished_run_keeps_one_entry_and_old_ones_leave_by_their_number(settings, job, committing, monkeypatch):
    monkeypatch.setattr(committer, "KEPT_RUNS", 2)
    for number in range(3):
        committing("row", owner=job).commit(entry(f"w/{number}"))
    with opened_ledger(settings, job) as ledger:
        ledger.finish("w")
    (only,) = find_token(settings, job).entries
    assert (is_finished(only), only.rows) == (True, 3)
    committing("row", owner=job).commit(entry("x/0"))
    assert len(tasks(settings, job)) == 2
    committing("row", owner=job).commit(entry("y/0"))
    assert tasks(settings, job) == ["x/0", "y/0"]


# --- races ---------------------------------------------------------------------------------------------


@dataclass
class Race:
    """Pairs of attempts of the same task at the same time, of which some die at a random step."""

    settings: object
    owner: LedgerOwner
    queue: str
    seed: int
    counts: Counter = field(default_factory=Counter)

    def pair(self, number):
        plan = random.Random(f"{self.seed}-{number}")
        todo = [threading.Thread(target=self.attempt, args=(number, plan.random(), plan.random())) for _ in range(2)]
        for each in todo:
            each.start()
        for each in todo:
            each.join()
        while not self.attempt(number, 1.0, 0.0):
            pass

    def attempt(self, number, fate, delay):
        """Whether the task is known to be committed. ``fate``: below 0.45 the attempt dies."""
        mine = entry(f"q/{number}/0", number, execution=f"{fate}")
        try:
            task = Committing(self.settings, self.owner, self.queue, str(number))
        except JMSError:
            return False
        killer = None

        def admit(known):
            nonlocal killer
            if any(each.task == mine.task for each in known):
                self.counts["already"] += 1
                return False
            if fate < 0.15:
                task.connection.drop()
            elif fate < 0.45:
                killer = threading.Timer(delay * 0.01, task.connection.drop)
                killer.start()
            return True

        try:
            committed = task.commit(mine, admit)
            self.counts["committed"] += committed
        except JMSError as error:
            self.counts[type(error).__name__] += 1
            return False
        finally:
            if killer is not None:
                killer.join()
            task.close()
        return True


def run_race(broker, settings, owner, queue, pairs, seed):
    race = Race(settings, owner, queue, seed)
    for number in range(pairs):
        race.pair(number)
    wait_until(lambda: broker.message_count(queue) >= pairs)
    with RawStomp(broker) as client:
        found = Counter(message.body.decode() for message in client.read(queue, quiet=0.5))
    assert found == Counter({str(number): 1 for number in range(pairs)}), (seed, race.counts)
    return race.counts


def test_racing_attempts_with_deaths_send_every_row_once(broker, queue, settings, owner, report):
    counts = run_race(broker, settings, owner, queue, pairs=40, seed=7)
    report(f"40 pairs of attempts: {dict(counts)}")
