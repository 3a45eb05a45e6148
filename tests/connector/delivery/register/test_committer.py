"""What a write does at its commit ledger, step by step. Its worlds: ``tests/integration/test_commit_model.py``."""

import pytest

from pyspark_jms.delivery.commit_token import CommitToken, LedgerEntry, LedgerOwner
from pyspark_jms.delivery.register.committer import (
    COMMITTER,
    Commit,
    Committer,
    Done,
    Failed,
    Find,
    Finish,
    LaterBatch,
    NoToken,
    OtherOwner,
)
from pyspark_jms.delivery.register.outcomes import Phase, Stop
from pyspark_jms.delivery.register.steps import (
    AcceptValue,
    Admit,
    Admitted,
    Create,
    Created,
    Declined,
    Lock,
    Locked,
    Lost,
    Make,
    NoRegister,
    Peek,
    Peeked,
    Renew,
    Renewed,
    Replace,
    Replaced,
    Take,
    Taken,
    ValueAccepted,
)
from pyspark_jms.delivery.register.token import MAX_VALUE_DELIVERIES, StoredToken
from pyspark_jms.errors import SinkFencedError, TokenMissingError, WriteIdentityError

QUERY, JOB = LedgerOwner("query", "q"), LedgerOwner("job", "j")
EMPTY = CommitToken(owner="query:q")
ENTRY = LedgerEntry(task="q/4/0", batch=4, rows=1, digest="d", execution="e")
OTHER = LedgerEntry(task="q/4/1", batch=4, rows=1, digest="f", execution="e")
FIRST = LedgerEntry(task="q/0/0", batch=0, rows=1, digest="d", execution="e")


def seen(*tokens, deliveries=0):
    return tuple(StoredToken(token, deliveries) for token in tokens)


def commands(request, *events, owner=QUERY):
    """What the machine answers to the request and to each event."""
    machine = Committer(owner)
    return [machine.next(event) for event in (request, *events)]


def last(request, *events, owner=QUERY):
    return commands(request, *events, owner=owner)[-1]


def taken(*tokens, deliveries=0):
    return Locked(), Taken(seen(*tokens, deliveries=deliveries))


def test_a_commit_accepts_the_token_before_it_sends_the_next_one():
    token = EMPTY.with_entry(OTHER)
    admitted = (Admitted(), ValueAccepted(), Replaced())
    assert commands(Commit(ENTRY), *taken(token), *admitted) == [
        Lock(create=False),
        Take(patient=False),
        Admit((OTHER,)),
        AcceptValue(),
        Replace(token.with_entry(ENTRY)),
        Done(token.with_entry(ENTRY), committed=True),
    ]


def test_rows_that_are_not_admitted_change_nothing():
    token = EMPTY.with_entry(OTHER)
    assert last(Commit(ENTRY), *taken(token), Declined()) == Done(token)


def test_the_entries_of_an_earlier_batch_are_not_asked_about():
    assert last(Commit(ENTRY), *taken(EMPTY.with_entry(FIRST))) == Admit(())


@pytest.mark.parametrize(
    ("token", "reason", "error"),
    [
        (EMPTY.with_entry(ENTRY), LaterBatch(FIRST, 4), SinkFencedError),
        (CommitToken(owner="job:q"), OtherOwner(QUERY, "job:q"), WriteIdentityError),
    ],
)
def test_a_token_that_answers_for_something_else_stops_the_write(token, reason, error):
    assert last(Commit(FIRST), *taken(token)) == Stop(reason)
    assert isinstance(reason.error(), error)


# --- a register or a token that is not there ----------------------------------------------------------


FIRST_TOKEN = Create(EMPTY, once=True)


def test_a_register_is_made_on_a_second_connection():
    events = (NoRegister(), Locked(), Created())
    made = [Lock(create=False), Make(), FIRST_TOKEN, Lock(create=False)]
    assert commands(Commit(ENTRY), *events) == made
    assert last(Commit(ENTRY), *events, *taken(EMPTY)) == Admit(())


def test_the_second_connection_may_be_lost_once():
    again = (NoRegister(), Lost())
    assert last(Commit(ENTRY), *again) == Lock(create=False)
    assert last(Commit(ENTRY), *again, NoRegister(), Lost()) == Failed(in_doubt=False)


@pytest.mark.parametrize("owner", [QUERY, JOB])
def test_who_found_no_register_makes_the_token_that_its_maker_did_not(owner):
    events = (NoRegister(), Lost(), *taken())
    assert last(Commit(ENTRY), *events, owner=owner) == Create(CommitToken(owner=str(owner)), once=True)
    assert last(Commit(ENTRY), *events, Created(), owner=owner) == Take()


@pytest.mark.parametrize(
    ("entry", "events"),
    [(ENTRY, (NoRegister(), Locked())), (ENTRY, (NoRegister(), Lost(), *taken()))],
)
def test_a_first_token_that_does_not_come_was_dropped_because_an_earlier_one_is_lost(entry, events):
    machine = Committer(QUERY)
    for event in (Commit(entry), *events, Created()):
        command = machine.next(event)
    if command == Lock(create=False):
        command = machine.next(Locked())
    assert command == Take()
    assert machine.next(Taken(())) == Stop(NoToken(QUERY, entry.task))


@pytest.mark.parametrize(("owner", "entry"), [(QUERY, FIRST), (QUERY, ENTRY), (JOB, FIRST)])
def test_a_register_without_a_token_gets_a_first_one_which_the_broker_drops_if_there_was_one(owner, entry):
    first = Create(CommitToken(owner=str(owner)), once=True)
    assert commands(Commit(entry), *taken(), owner=owner) == [Lock(create=False), Take(patient=False), first]
    assert last(Commit(entry), *taken(), Created(), owner=owner) == Take()
    assert last(Commit(entry), *taken(), Created(), Taken(()), owner=owner) == Stop(NoToken(owner, entry.task))
    assert isinstance(NoToken(owner, entry.task).error(), TokenMissingError)


# --- the renewal of a token -------------------------------------------------------------------------------------


def test_a_token_that_was_delivered_often_is_renewed_first_and_once():
    often = taken(EMPTY, deliveries=MAX_VALUE_DELIVERIES)
    assert last(Commit(ENTRY), *often) == Renew(EMPTY)
    assert last(Commit(ENTRY), *often, Renewed()) == Take()
    assert last(Commit(ENTRY), *often, Renewed(), often[1]) == Admit(())


# --- the other requests -------------------------------------------------------------------------------


def test_a_look_browses_and_takes_the_token_only_if_it_must():
    assert commands(Find(), Locked(), Peeked(seen(EMPTY))) == [Lock(create=False), Peek(patient=False), Done(EMPTY)]
    assert last(Find(), Locked(), Peeked(())) == Take(patient=False)
    assert last(Find(), Locked(), Peeked(()), Taken(())) == Done(EMPTY)
    often = seen(EMPTY, deliveries=MAX_VALUE_DELIVERIES)
    assert last(Find(), Locked(), Peeked(often)) == Take()
    assert last(Find(), Locked(), Peeked(often), Taken(often), Renewed()) == Done(EMPTY)
    assert last(Find(), Locked(), Peeked(seen(CommitToken(owner="x")))) == Stop(OtherOwner(QUERY, "x"))


@pytest.mark.parametrize("request_", [Find(), Finish("w")])
def test_a_look_and_an_end_make_no_register(request_):
    assert last(request_, NoRegister()) == Done(EMPTY)


def test_a_finished_write_gets_one_entry():
    token = CommitToken(owner="job:j").with_entry(FIRST)
    events = (*taken(token), ValueAccepted())
    shorter = token.with_finished("q/0")
    assert last(Finish("q/0"), *events, owner=JOB) == Replace(shorter)
    assert last(Finish("q/0"), *taken(shorter), owner=JOB) == Done(shorter)
    assert last(Finish("q/0"), Locked(), Taken(()), owner=JOB) == Done(CommitToken(owner="job:j"))


# --- the table ----------------------------------------------------------------------------------------


def test_every_phase_that_asks_the_broker_bears_the_loss_of_the_connection():
    without = {phase for phase, row in COMMITTER.moves.items() if Lost not in row}
    assert without == {Phase.BEGINNING, Phase.ADMITTING, Phase.ENDED}
