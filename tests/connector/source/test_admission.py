"""What waits, how long, and what becomes of it. Time is a list of numbers here."""

import pytest

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.admission import Admission, Verdict, Waiting


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def begun(clock, *, draining=False, **more):
    raw = {"brokerUrl": "stomp://h", "queue": "q"} | {key: str(value) for key, value in more.items()}
    admission = Admission(SourceOptions.parse(raw), clock, draining=draining)
    admission.begin(0)
    return admission


def verdicts(admission, clock, *looks):
    """Of each look: the time, what waits, and whether there is no room for more."""
    found = []
    for now, messages, size, full in looks:
        clock.now = now
        found.append(admission.verdict(Waiting(messages, size, size, no_room=full), messages))
    return found


def test_nothing_waits():
    clock = Clock()
    admission = begun(clock)
    assert verdicts(admission, clock, (1.0, 0, 0, False)) == [Verdict.NOTHING]
    assert (admission.waited, admission.quiet) == (1.0, 1.0)


def test_arrival_ends_the_quiet():
    clock = Clock()
    admission = begun(clock)
    verdicts(admission, clock, (1.0, 1, 10, False), (3.0, 1, 10, False))
    assert (admission.waited, admission.quiet) == (3.0, 2.0)


def test_a_few_messages_are_cut_when_nothing_follows():
    clock = Clock()
    looks = [(0.0, 1, 10, False), (0.003, 1, 10, False), (0.02, 1, 10, False)]
    assert verdicts(begun(clock), clock, *looks) == [Verdict.WAIT, Verdict.WAIT, Verdict.CUT]


@pytest.mark.parametrize(
    ("options", "messages", "size"),
    [({"maxMessagesPerTrigger": 5}, 5, 10), ({"maxBytesPerTrigger": "1k"}, 2, 1024), ({"windowBytes": "1k"}, 2, 1024)],
)
def test_a_full_batch_or_window_is_cut_at_once(options, messages, size):
    clock = Clock()
    assert verdicts(begun(clock, **options), clock, (0.0, messages, size, False)) == [Verdict.CUT]


def test_a_full_journal_is_cut_at_once():
    clock = Clock()
    assert verdicts(begun(clock), clock, (0.0, 1, 10, True)) == [Verdict.CUT]


@pytest.mark.parametrize(
    ("more", "draining", "now", "verdict"),
    [
        ({}, False, 0.1, Verdict.WAIT),
        ({}, False, 0.6, Verdict.NONE_YET),
        ({"maxTriggerDelay": "1s"}, False, 1.1, Verdict.CUT),
        ({"windowBytes": "10b"}, False, 0.6, Verdict.CUT),
        ({}, True, 0.6, Verdict.CUT),
    ],
)
def test_fewer_than_the_minimum_wait_for_the_delay_a_full_window_or_the_end(more, draining, now, verdict):
    clock = Clock()
    admission = begun(clock, draining=draining, minMessagesPerTrigger=10, **({"maxTriggerDelay": "1h"} | more))
    assert verdicts(admission, clock, (0.0, 3, 30, False), (now, 3, 30, False))[-1] is verdict


def test_the_delay_counts_from_the_last_batch():
    clock = Clock()
    admission = begun(clock, minMessagesPerTrigger=10, maxTriggerDelay="10s")
    clock.now = 9.0
    admission.note_batch()
    admission.begin(0)
    looks = [(11.0, 3, 30, False), (18.9, 3, 30, False), (19.1, 3, 30, False)]
    assert verdicts(admission, clock, *looks) == [Verdict.NONE_YET, Verdict.NONE_YET, Verdict.CUT]


@pytest.mark.parametrize(("since", "verdict"), [(1.0, Verdict.ASK), (3.0, Verdict.CUT)])
def test_a_flood_counts_from_the_last_batch(since, verdict):
    clock = Clock()
    admission = begun(clock)
    clock.now = 5.0
    admission.note_batch()
    clock.now = at = 5.0 + since
    admission.begin(0)
    assert verdicts(admission, clock, (at, 20_000, 200, False), (at + 0.02, 20_000, 200, False))[-1] is verdict


def test_redelivered_messages_begin_the_wait_anew():
    clock = Clock()
    admission = begun(clock)
    assert verdicts(admission, clock, (0.0, 1, 10, False), (0.02, 1, 10, False))[-1] is Verdict.CUT
    admission.restart()
    assert verdicts(admission, clock, (0.03, 1, 20, False)) == [Verdict.WAIT]


def test_one_connection_with_a_full_window_ends_the_wait_for_more():
    """All messages of a group go to one connection."""
    clock = Clock()
    admission = begun(clock, minMessagesPerTrigger=10, maxTriggerDelay="1h", connections=2)
    verdicts(admission, clock, (0.0, 3, 30, False))
    clock.now = 0.6
    assert admission.verdict(Waiting(3, 30, 30, no_room=False), 3) is Verdict.NONE_YET
    assert admission.verdict(Waiting(3, 30, 30, no_room=False, one_is_full=True), 3) is Verdict.CUT
