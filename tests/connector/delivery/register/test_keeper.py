"""The planner's part at a register, rule by rule; ``test_reader.py`` explores both parts together."""

from dataclasses import replace

import pytest

from pyspark_jms.delivery.register.keeper import TokenKeeper
from pyspark_jms.delivery.register.outcomes import Fenced, Keep, Kept, SetBack, SharedRegister, Stop, TokenMissing
from pyspark_jms.delivery.register.steps import (
    AcceptValue,
    Create,
    Lock,
    Locked,
    LockHeld,
    Lost,
    Open,
    Opened,
    Peek,
    Peeked,
    ProveLink,
    Proven,
    Renew,
    Renewed,
    Take,
    Taken,
    ValueAccepted,
)
from pyspark_jms.delivery.register.token import StoredToken, Token

TOKEN = Token(stream="s", name="t", reader=0, batch=4, blocks=2, first=10, next=20)
KEEP = Keep(stream="s", name="t", reader=0, batch=4, used=4)
NEW = replace(KEEP, name=None)


def keeper(**how):
    return TokenKeeper(iter(("a", "b")).__next__, **how)


def seen(*tokens):
    return Peeked(tuple(map(StoredToken, tokens)))


def with_lock(keep, *tokens, **how):
    """A keeper that has looked without the lock and with it, and its command."""
    machine = keeper(**how)
    if keep.name is not None:
        assert machine.next(keep) == Peek("t", patient=False)
        machine.next(seen(*tokens))
    else:
        assert machine.next(keep) == Lock()
    assert machine.next(Locked()) == Peek(keep.name, patient=keep.name is not None)
    return machine, machine.next(seen(*tokens))


def test_l9_a_token_of_another_plan_is_not_used():
    assert with_lock(NEW, replace(TOKEN, batch=4))[1] == Create(Token(stream="s", name="a", reader=0, batch=4))


def test_l6_after_a_lost_answer_another_token_is_made():
    machine, _ = with_lock(NEW)
    assert machine.next(Lost()) == Lock()
    assert machine.next(LockHeld()) == Lock()
    machine.next(Locked())
    assert machine.next(seen()) == Create(Token(stream="s", name="b", reader=0, batch=4))


@pytest.mark.parametrize("fails", [True, False])
def test_l8_a_token_that_the_log_names_is_a_loss_if_it_is_missing(fails):
    machine, command = with_lock(KEEP, fail_on_data_loss=fails)
    assert command == ProveLink()
    first = 1 << 32  # how many messages batch 4 had is not known
    made = Create(Token(stream="s", name="a", reader=0, batch=4, first=first, next=first))
    assert machine.next(Proven()) == (Stop(TokenMissing(0, "t")) if fails else made)


def test_the_numbers_of_a_lost_token_do_not_come_again():
    machine, _ = with_lock(replace(KEEP, batch=6, used=5, next=30), fail_on_data_loss=False)
    made = Create(Token(stream="s", name="a", reader=0, batch=5, first=30, next=30))
    assert machine.next(Proven()) == made, "the offset knows what followed batch 5"
    keep = replace(KEEP, batch=6, used=6, next=30)  # the broker's store is an older copy
    machine, _ = with_lock(keep, TOKEN, fail_on_data_loss=False)
    machine.next(Opened())
    machine.next(Taken((StoredToken(TOKEN),), (("s", 4),)))
    first = 30 + (1 << 32)
    assert machine.next(ValueAccepted()) == Renew(replace(TOKEN, batch=6, blocks=0, first=first, next=first))


def test_l10_a_reader_that_nobody_read_is_closed():
    machine, command = with_lock(replace(KEEP, batch=6, used=6), TOKEN)
    assert command == Open()
    assert machine.next(Opened()) == Take(3)
    assert machine.next(Taken((StoredToken(TOKEN),), (("s", 4),))) == AcceptValue()
    closed = replace(TOKEN, batch=6, blocks=0, first=20)
    assert machine.next(ValueAccepted()) == Renew(closed)
    assert machine.next(Renewed()) == Kept(closed, closed=True)


def test_l2_a_later_token_fences():
    machine = keeper()
    machine.next(KEEP)
    assert machine.next(seen(replace(TOKEN, batch=5))) == Stop(Fenced(4, 0, 5))
    assert with_lock(NEW, replace(TOKEN, batch=5))[1] == Stop(Fenced(4, 0, 5))


def test_l14_a_register_of_another_stream_is_refused():
    assert with_lock(NEW, replace(TOKEN, stream="z"))[1] == Stop(SharedRegister("z"))


@pytest.mark.parametrize("fails", [True, False])
def test_l15_a_broker_that_knows_less_than_the_log_is_a_loss(fails):
    keep = replace(KEEP, batch=9, used=7)
    assert with_lock(keep, TOKEN, fail_on_data_loss=fails)[1] == (Stop(SetBack(0, 4, 7)) if fails else Open())
