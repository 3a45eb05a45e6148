"""The rules of a task that receives: in a model of brokers and Spark, whose worlds are explored, and one by one."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from exploring import explore, walk
from register_mutants import NeverRenews
from register_world import BROKER_LIMIT, Budget, RegisterWorld
from register_worlds import LARGER, READER_MUTANTS, READERS
from state_diagrams import arrows, mermaid

from pyspark_jms.delivery.register.outcomes import (
    KEEPER,
    READER,
    Answer,
    BlocksMissing,
    Fenced,
    PoisonLoop,
    Read,
    SetBack,
    SharedRegister,
    Stop,
    TokenMissing,
)
from pyspark_jms.delivery.register.reader import FEWER_SUSPECTS, MAX_SUSPECTS, ReaderTask
from pyspark_jms.delivery.register.steps import (
    AcceptValue,
    BlocksSeen,
    Browse,
    Drop,
    Dropped,
    GiveBack,
    GivenBack,
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
    Receive,
    Received,
    Renew,
    Renewed,
    Replace,
    Replaced,
    Take,
    Taken,
    ValueAccepted,
)
from pyspark_jms.delivery.register.token import MAX_VALUE_DELIVERIES, LoneMessage, StoredToken, Token

PAGE = Path(__file__).parents[4] / "tests" / "models.md"
WALKS, PARTS = 3_000, 10


@cache
def explored_world(name):
    """What was found in a world of the table, and the moves of the machines that were taken in it."""
    world = READERS[name]()
    return explore(world), frozenset(world.arrows)


# --- worlds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_nothing_is_lost_twice_different_or_falsely_reported(name):
    found, _ = explored_world(name)
    assert found.violation is None
    assert f"| {name} | {found.states:,} | {found.depth} |" in PAGE.read_text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LARGER)
def test_nor_in_larger_worlds(name):
    found = explore(LARGER[name]())
    assert found.violation is None
    assert f"| {name} | {found.states:,} | {found.depth} |" in PAGE.read_text()


@pytest.mark.parametrize("rule", READER_MUTANTS)
def test_without_a_rule_something_is(rule):
    name, how = READER_MUTANTS[rule]
    found = explore({**READERS, **LARGER}[name](**how))
    assert f"| {rule} | {found.violation}, {len(found.path)} moves |" in PAGE.read_text()


@pytest.mark.parametrize("table", [READER, KEEPER], ids=lambda table: table.name)
def test_the_page_has_the_diagrams(table):
    assert f"```mermaid\n{mermaid(table)}\n```" in PAGE.read_text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_walks(part):
    """Larger worlds: many deaths, second attempts, closed connections, lost answers, readers that vary."""
    world = RegisterWorld(
        messages=6,
        late=2,
        readers=1 + part % 3,
        vary=part % 2 == 1,
        drivers=1 + part % 2,
        quota=2,
        batches=5,
        budget=Budget(deaths=8, closed=4, answers=3, extra=3, restarts=1),
    )
    for seed in range(part, WALKS, PARTS):
        what, path = walk(world, seed)
        assert what is None, f"seed {seed}: {what}: {' | '.join(path)}"


@pytest.mark.parametrize(
    ("reader", "violation", "times"), [(ReaderTask, None, 25), (NeverRenews, "A dead letter", BROKER_LIMIT)]
)
def test_l11_25_deaths_in_a_row_with_the_value_leave_no_dead_letter(reader, violation, times):
    """The source is empty by then, so that each death costs the value a delivery, and nothing else."""
    world = RegisterWorld(messages=1, late=1, counts=True, budget=Budget(deaths=25), reader=reader)
    now, deaths = world.first, 0
    for _ in range(2_000):
        moves = list(world.moves(now))
        death = next((after for label, after in moves if label.startswith("! 1/0 dies at Receive")), None)
        steps = [after for label, after in moves if not label.startswith("!") and label != "a message is sent"]
        plans = [after for label, after in moves if label == "a message is sent" and not now.logs[0].offsets]
        if now.violation or not (death or steps or plans):
            break
        deaths += death is not None
        now = death or (plans or steps)[-1]
        now = now._replace(source=()) if now.logs[0].offsets else now
    assert (now.violation, deaths) == (violation, times)


# --- rule by rule -------------------------------------------------------------------------------------

TOKEN = Token(stream="s", name="t", reader=0, batch=4, blocks=2, first=10, next=20)
READ = Read(stream="s", name="t", reader=0, batch=5, since=4)
OWN = replace(TOKEN, batch=5)


def seen(*tokens):
    return tuple(map(StoredToken, tokens))


def looking(*tokens, read=READ, deliveries=0, **how):
    """A task that holds the lock, and its command after it has seen these tokens."""
    task = ReaderTask(**how)
    assert task.next(read) == Lock()
    assert task.next(Locked()) == Peek("t")
    return task, task.next(Peeked(tuple(StoredToken(token, deliveries) for token in tokens)))


def receiving(token=TOKEN, **how):
    task, command = looking(token, **how)
    assert command == Open()
    assert task.next(Opened()) == Take(1 + token.blocks)
    assert task.next(Taken(seen(token), (("s", token.batch),))) == AcceptValue()
    return task, task.next(ValueAccepted())


def test_a_lock_that_another_task_has_is_asked_for_again():
    task = ReaderTask()
    task.next(READ)
    assert task.next(LockHeld()) == Lock()


def test_l2_a_later_token_fences():
    assert looking(replace(TOKEN, batch=6))[1] == Stop(Fenced(5, 0, 6))
    assert looking(OWN, replace(TOKEN, name="u", batch=6))[1] == Stop(Fenced(5, 0, 6)), "whatever its name"


def test_l3_a_move_is_one_transaction_after_the_value_is_in_it():
    task, command = receiving()
    assert command == Receive(5, 20)
    after = replace(TOKEN, batch=5, blocks=1, first=20, next=23, drained=True, metrics=(("bytes", 9),))
    assert task.next(Received(3, 1, drained=True, metrics=(("bytes", 9),))) == Replace(after)
    assert task.next(Replaced()) == Answer(after)


@pytest.mark.parametrize("taken", [(), (replace(TOKEN, next=21),)])
def test_l4_another_token_than_the_one_that_was_read_is_a_reason_to_lock_again(taken):
    task, _ = looking(TOKEN)
    task.next(Opened())
    assert task.next(Taken(seen(*taken))) == Drop()
    assert task.next(Dropped()) == Lock()


@pytest.mark.parametrize("fails", [True, False])
def test_l7_missing_blocks_are_a_loss_with_the_lock_only(fails):
    task, _ = looking(OWN, fail_on_data_loss=fails)
    assert task.next(BlocksSeen(1)) == ProveLink()
    lost = Stop(BlocksMissing(0, 5, 1, 2)) if fails else Answer(replace(OWN, blocks=1))
    assert task.next(Proven()) == lost


@pytest.mark.parametrize("fails", [True, False])
def test_l8_a_missing_token_is_a_loss_with_the_lock_only(fails):
    task, command = looking(fail_on_data_loss=fails)
    assert command == ProveLink()
    if fails:
        assert task.next(Proven()) == Stop(TokenMissing(0, "t"))
        return
    assert task.next(Proven()) == Browse("s", 5, None)
    assert task.next(BlocksSeen(3)) == Answer(Token(stream="s", name="t", reader=0, batch=5, blocks=3))


def test_l9_a_token_that_the_log_does_not_name_does_not_count():
    assert looking(replace(TOKEN, name="u"))[1] == ProveLink()
    assert looking(replace(TOKEN, batch=3), TOKEN)[1] == Open(), "of two, the later one"


@pytest.mark.parametrize("phase", [phase for phase, row in READER.moves.items() if Lost in row])
def test_l6_after_a_loss_everything_is_read_again(phase):
    task = ReaderTask()
    task.next(READ)
    task.state = replace(
        task.state, phase=phase, token=TOKEN, renewed=TOKEN, found=1, note=LoneMessage(message="m", deliveries=5)
    )
    assert task.next(Lost()) == Lock()
    fresh = ReaderTask()
    fresh.next(READ)
    assert replace(task.state, messages=0) == fresh.state


def test_l11_a_value_that_was_delivered_too_often_is_replaced_first():
    task, _ = looking(TOKEN, deliveries=MAX_VALUE_DELIVERIES)
    task.next(Opened())
    task.next(Taken(seen(TOKEN)))
    renewed = replace(TOKEN, blocks=0, first=20)
    assert task.next(ValueAccepted()) == Renew(renewed)
    assert task.next(Renewed()) == Open()
    assert task.next(Opened()) == Take(1)
    task.next(Taken(seen(renewed)))
    assert task.next(ValueAccepted()) == Receive(5, 20)


def test_l13_of_many_suspected_messages_fewer_are_tried_after_a_death():
    task, _ = receiving()
    assert task.next(Received(40, 1, 5, "m", 40)) == GiveBack()
    assert task.state.note == LoneMessage(message="m", deliveries=5, many=40, limit=MAX_SUSPECTS)
    noted = replace(TOKEN, blocks=0, first=20, alone=task.state.note)
    task, command = receiving(noted)
    assert command == Receive(5, 20, noted.alone)
    assert task.next(Received(40, 1, 6, "m", 40)) == GiveBack()
    assert task.state.note == LoneMessage(message="m", deliveries=5, many=2, limit=2)
    fewer = replace(noted, alone=task.state.note)
    task, _ = receiving(fewer)
    assert task.next(Received(2, 1, 7, "m", 2)) == GiveBack()
    assert task.state.note == LoneMessage(message="m", deliveries=5, many=1)


def test_l13_after_a_death_the_next_suspected_messages_are_as_few():
    few = replace(TOKEN, blocks=0, alone=LoneMessage(message="", deliveries=0, many=2, limit=2))
    task, command = receiving(few)
    assert command == Receive(5, 20)
    assert task.next(Received(9, 1, 5, "n", 9)) == GiveBack()
    assert task.state.note == LoneMessage(message="n", deliveries=5, many=2, limit=2)


def test_l13_when_as_many_have_passed_as_died_together_more_are_tried_again():
    """Another cause has ended that attempt: a query does not go on with a few messages a batch for ever."""
    limits, token = [], replace(TOKEN, blocks=0, first=20, alone=LoneMessage(message="", deliveries=0))
    while token.alone is not None:
        limits.append(token.alone.limit)
        task, _ = receiving(token)
        task.next(Received(token.alone.limit, 1, 5, "m", token.alone.limit))
        for event in (GivenBack(), Locked(), Peeked((StoredToken(token),)), Opened(), Taken(seen(token))):
            task.next(event)
        noted = task.next(ValueAccepted()).token
        for event in (Renewed(), Opened(), Taken(seen(noted)), ValueAccepted()):
            task.next(event)
        kept = task.next(Received(noted.alone.many, 1, 5, "m", noted.alone.many)).token
        token = replace(token, alone=kept.alone)
    assert limits == [each for each in (1, FEWER_SUSPECTS, FEWER_SUSPECTS**2) for _ in range(FEWER_SUSPECTS)]


@pytest.mark.parametrize("deliveries", [1, 5])
def test_l13_the_count_of_a_message_that_was_received_alone_is_judged_only_where_an_attempt_has_died(deliveries):
    """Of a message whose producer wrote a count, the broker may show its own count later."""
    task, _ = receiving(replace(TOKEN, blocks=0, alone=LoneMessage(message="m", deliveries=5)))
    command = task.next(Received(1, 1, deliveries, "m"))
    assert command == Stop(PoisonLoop("m", 1)) if deliveries == 1 else isinstance(command, Replace)


@pytest.mark.parametrize("suspect", ["m", "n"])
def test_l13_another_suspect_is_noted_too(suspect):
    task, _ = receiving(replace(TOKEN, blocks=0, alone=LoneMessage(message="m", deliveries=5)))
    assert task.next(Received(2 - (suspect == "n"), 1, 5, suspect)) == GiveBack()


def test_l14_a_register_of_another_stream_is_refused():
    other = replace(TOKEN, stream="z")
    assert looking(TOKEN, other)[1] == Stop(SharedRegister("z"))
    assert looking(TOKEN, replace(other, batch=0, next=0))[1] == Open(), "it has received nothing, and gives way"
    task, _ = looking(TOKEN)
    task.next(Opened())
    assert task.next(Taken(seen(TOKEN), (("z", 1),))) == Stop(SharedRegister("z"))


@pytest.mark.parametrize("fails", [True, False])
def test_l15_a_broker_that_knows_less_than_the_log_is_a_loss(fails):
    read = replace(READ, batch=9, since=8)
    command = looking(TOKEN, read=read, fail_on_data_loss=fails)[1]
    assert command == (Stop(SetBack(0, 4, 8)) if fails else Open())
    task, _ = looking(TOKEN, fail_on_data_loss=fails)
    task.next(Opened())
    command = task.next(Taken(seen(TOKEN), (("s", 5),)))
    assert command == (Stop(SetBack(0, 4, 5)) if fails else AcceptValue())


# --- the tables ---------------------------------------------------------------------------------------


@pytest.mark.deep
def test_the_worlds_take_every_move_of_the_tables_that_can_be_taken_there():
    """And no other: a machine refuses what its table does not have."""
    taken = set().union(*(explored_world(name)[1] for name in READERS))
    for is_task, table in ((True, READER), (False, KEEPER)):
        moves = {arrow[1:] for arrow in taken if arrow[0] is is_task}
        assert moves <= set(arrows(table))
        outside = {(before, event) for before, event, _ in set(arrows(table)) - moves}
        assert {each for each in outside if each[1] not in {"Lost", "LockHeld"}} <= {
            ("looking", "Peeked"),  # a value of another stream, an older one
            ("taking", "Taken"),  # the same
            ("dropping", "Dropped"),
            ("proving", "Proven"),
            ("peeking", "Peeked"),
        }
