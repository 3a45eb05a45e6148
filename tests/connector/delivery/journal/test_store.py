import contextlib
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import chain, combinations
from pathlib import Path

import model_broker
import pytest
from model_broker import block_of

from pyspark_jms.delivery.journal.contents import LOCK_NAME, META_NAME
from pyspark_jms.delivery.journal.journal_log import Position
from pyspark_jms.delivery.journal.pending_receipts import UnacknowledgedMessage
from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.errors import (
    CorruptJournalError,
    IllegalStateError,
    InvalidOptionError,
    JournalError,
    JournalLockedError,
)

GOLDEN = Path(__file__).parent / "data" / "journal-1"
NOW = 1_750_000_000.0
IMPORTS = [str(Path(file).parent) for file in (__file__, model_broker.__file__)]  # of processes of their own
QUEUE, OTHER = "queue://orders", "queue://invoices"


def opened(path, now=NOW):
    return JournalStore.open(
        path, query="test", wait_seconds=0, pause=never, clock=lambda: now, fingerprints=fingerprints
    )


def fingerprints(segment):
    """Those of ``messages``; of the golden journal whatever is as long."""
    return [b"%016d" % n for n in range(segment.first, segment.last)]


def never(seconds):
    raise AssertionError(seconds)


def messages(first, last, source=QUEUE, size=0):
    """A segment whose content follows from its sequences."""
    contents = [b"%d:" % n + bytes([n % 251]) * size for n in range(first, last)]
    block = block_of([b"id%d" % n for n in range(first, last)], contents)
    return Segment(source=source, dialect="artemis", first=first, block=block)


def known(first, last, source=QUEUE):
    return {UnacknowledgedMessage(source, b"id%d" % n, b"%016d" % n) for n in range(first, last)}


def view(store):
    """Everything that a store promises to remember."""
    segments = {}
    for info in store.segments():
        value = store.read(info.first)
        segments[info.first] = (info.last, info.source, bytes(value.block.data), tuple(value.ids))
    return store.position, segments, dict(store._log.batches), set(store.receipts.unacknowledged())


def view_at(path):
    with contextlib.closing(opened(path)) as store:
        return view(store)


@pytest.fixture
def store(tmp_path):
    store = opened(tmp_path / "journal")
    yield store
    store.close()


@pytest.fixture
def again(store, tmp_path):
    """Open the journal once more, as the next process does."""

    def reopen(now=NOW):
        store.close()
        reopened.append(opened(tmp_path / "journal", now))
        return reopened[-1]

    reopened = []
    yield reopen
    for one in reopened:
        one.close()


# --- one operation after the other -------------------------------------------------------------


def test_a_new_journal(store, tmp_path):
    assert stat.S_IMODE((tmp_path / "journal").stat().st_mode) == 0o700
    assert store.position == Position(0, 0)
    assert store.segments() == []
    assert store.bytes_used == 0
    assert list(store.receipts.unacknowledged()) == []


def test_what_was_appended_is_there_for_the_next_process(store, again):
    store.append(messages(0, 3))
    store.append(messages(3, 5, OTHER))
    before = view(store)
    later = again()
    assert view(later) == before
    assert later.meta == store.meta
    assert later.position == Position(0, 5)
    assert [(i.first, i.last, i.source, i.dialect) for i in later.segments()] == [
        (0, 3, QUEUE, "artemis"),
        (3, 5, OTHER, "artemis"),
    ]
    assert later.bytes_used == sum(Path(info.path).stat().st_size for info in later.segments())


def test_segments_of_a_range(store):
    for first in range(0, 9, 3):
        store.append(messages(first, first + 3))
    assert [info.first for info in store.segments(3, 6)] == [3]
    assert [info.first for info in store.segments(2, 7)] == [0, 3, 6]
    assert [info.first for info in store.segments(8)] == [6]


def test_receipts(store, again):
    store.append(messages(0, 3))
    store.append(messages(3, 5))
    store.mark_acknowledged(0)
    store.mark_acknowledged(0)
    assert [info.first for info in store.segments() if not store.receipts.fingerprints_from(info.first)] == [0]
    assert set(store.receipts.unacknowledged()) == known(3, 5)
    assert set(again().receipts.unacknowledged()) == known(3, 5)


def test_a_segment_is_acknowledged_when_each_of_its_messages_came_again(store, again):
    store.append(messages(0, 3))
    store.append(messages(3, 5, OTHER))
    store.confirm(QUEUE.__eq__, [b"id0", b"id2", b"id4", b"unknown"])
    assert set(store.receipts.unacknowledged()) == known(1, 2) | known(3, 5, OTHER)
    store.confirm(QUEUE.__eq__, [b"id1"])
    assert [info.first for info in store.segments() if not store.receipts.fingerprints_from(info.first)] == [0]
    assert set(again().receipts.unacknowledged()) == known(3, 5, OTHER)


def test_batches(store, again):
    store.append(messages(0, 6))
    store.record_batch(0, 4, [1, 3])
    store.record_batch(0, 4, [1, 3])
    store.record_batch(4, 6, [])
    with pytest.raises(IllegalStateError, match="other partitions"):
        store.record_batch(0, 4, [2])
    later = again()
    assert (later.batch(0, 4), later.batch(4, 6), later.batch(0, 6)) == ([1, 3], [], None)
    later.release(4)
    assert (later.batch(0, 4), later.batch(4, 6)) == (None, [])


def test_release_forgets_what_is_done_and_counts_on(store, again):
    for first in (0, 3, 6):
        store.append(messages(first, first + 3))
        store.mark_acknowledged(first)
    store.release(5)
    assert [info.first for info in store.segments()] == [3, 6]
    assert store.position == Position(5, 9)
    store.release(4)
    assert store.position == Position(5, 9)
    store.release(9)
    assert store.bytes_used == 0
    later = again()
    assert later.position == Position(9, 9)
    assert later.segments() == list(later.receipts.unacknowledged()) == []
    later.append(messages(9, 10))
    assert later._folder.names() == ["journal", "lock", "log", "segment-0000000000000000009"]


def test_what_has_no_receipt_outlives_its_segment(store, again):
    store.append(messages(0, 3))
    store.confirm(QUEUE.__eq__, [b"id1"])
    store.release(3)
    remaining = known(0, 1) | known(2, 3)
    assert store.segments() == []
    assert set(store.receipts.unacknowledged()) == remaining
    assert store.bytes_used > 0
    later = again()
    assert set(later.receipts.unacknowledged()) == remaining
    later.confirm(QUEUE.__eq__, [b"id0"])
    later.confirm(QUEUE.__eq__, [b"id2"])
    assert (list(later.receipts.unacknowledged()), later.bytes_used) == ([], 0)


def test_a_late_receipt_for_a_released_segment(store, again):
    store.append(messages(0, 3))
    store.release(3)
    store.mark_acknowledged(0)
    assert list(again().receipts.unacknowledged()) == []


def test_tombstones_last_for_a_day_of_being_subscribed(store, again):
    store.append(messages(0, 3))
    store.note_subscribed(59)
    store.release(3)
    store.note_subscribed(24 * 3600 - 2)
    later = again(NOW + 30 * 24 * 3600)
    assert set(later.receipts.unacknowledged()) == known(0, 3)
    later.note_subscribed(3)  # written when it is closed
    later.close()
    assert list(again().receipts.unacknowledged()) == []


def test_a_process_that_dies_forgets_a_minute_of_being_subscribed_at_most(store, tmp_path):
    store.append(messages(0, 3))
    store.release(3)
    for _ in range(24 * 60 + 4):
        store.note_subscribed(59.9)
    store._lock.release()  # as kill -9 does
    later = opened(tmp_path / "journal")
    assert list(later.receipts.unacknowledged()) == []
    later.close()


def test_counting_on_after_a_loss(store, again):
    store.append(messages(0, 3))
    with pytest.raises(IllegalStateError, match="1 segments"):
        store.skip_to(100)
    store.release(3)
    with pytest.raises(IllegalStateError):
        store.skip_to(2)
    store.skip_to(100)
    assert again().position == Position(100, 100)


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("append", (messages(4, 6),)),
        ("append", (messages(2, 6),)),
        ("mark_acknowledged", (3,)),
        ("record_batch", (0, 4, [])),
        ("record_batch", (2, 2, [])),
        ("record_batch", (0, 3, [2, 1])),
        ("record_batch", (1, 3, [0])),
        ("release", (4,)),
        ("read", (1,)),
    ],
)
def test_an_illegal_move_names_the_event_and_changes_nothing(store, event, arguments):
    store.append(messages(0, 3))
    before = view(store)
    with pytest.raises(IllegalStateError, match=f"Event {event}"):
        getattr(store, event)(*arguments)
    assert view(store) == before


def test_a_closed_journal_takes_nothing(store):
    store.append(messages(0, 3))
    store.close()
    store.close()
    for event in (
        lambda: store.append(messages(3, 4)),
        lambda: store.mark_acknowledged(0),
        lambda: store.confirm(QUEUE.__eq__, [b"id0"]),
        lambda: store.record_batch(0, 3, []),
        lambda: store.release(3),
        lambda: store.skip_to(3),
    ):
        with pytest.raises(IllegalStateError, match="closed"):
            event()


def test_one_writer(store, tmp_path):
    with pytest.raises(JournalLockedError, match=rf"process {os.getpid()} on host .* \(query test\)"):
        opened(tmp_path / "journal")


def test_an_open_that_fails_keeps_no_lock(store, tmp_path):
    info = store.append(messages(0, 3))
    store.close()
    whole = Path(info.path).read_bytes()
    Path(info.path).write_bytes(whole[:-1])
    with pytest.raises(CorruptJournalError, match=r"segment-0{19}"):
        opened(tmp_path / "journal")
    Path(info.path).write_bytes(whole)
    opened(tmp_path / "journal").close()


def test_somebody_else_s_folder_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InvalidOptionError, match=r"thesis\.tex"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_golden_journal_of_format_1(tmp_path):
    store = opened(shutil.copytree(GOLDEN, tmp_path / "journal"))
    assert store.meta.id == "55f7199fa11ceb750517ab69c8f66af9"
    assert (store.ids, store.is_new, store.position) == ((store.meta.id,), False, Position(3, 9))
    assert [(info.first, info.last) for info in store.segments()] == [(3, 7), (7, 9)]
    assert store.batch(3, 9) == [5, 7]
    assert list(store.receipts.unacknowledged()) == [
        (QUEUE, b"1", b"\0" * 16),
        (QUEUE, b"2", b"\1" * 16),
        (QUEUE, b"3", b"\2" * 16),
        (QUEUE, b"11", b"%016d" % 7),
        (QUEUE, b"12", b"%016d" % 8),
    ]
    store.append(messages(9, 10))
    store.release(10)
    store.close()


# --- a full disk -------------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=False).returncode:
        pytest.skip("a file system can be mounted by root only")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def fill_disk(store):
    for first in range(100):
        store.append(messages(first, first + 1, size=100_000))


def test_a_full_disk_loses_nothing_and_release_makes_room(tiny_disk):
    store = opened(tiny_disk / "journal")
    with pytest.raises(JournalError, match=r"\[JMS_JOURNAL_IO\] .*No space left") as refused:
        fill_disk(store)
    assert type(refused.value) is JournalError
    following = store.position.next
    assert 5 <= following <= 10
    assert not list((tiny_disk / "journal").glob("*.tmp"))
    before = view(store)
    store.close()
    assert view_at(tiny_disk / "journal") == before
    store = opened(tiny_disk / "journal")
    for info in store.segments():
        store.mark_acknowledged(info.first)
    store.release(3)
    store.append(messages(following, following + 1, size=100_000))
    store.close()


# --- a crash between any two steps of the operating system --------------------------------------

STEPS = f"""
import shutil, sys
from pathlib import Path
sys.path[:0] = {IMPORTS!r}
from test_store import QUEUE, OTHER, messages, opened

folder, snapshots = Path(sys.argv[1]), Path(sys.argv[2])
operation, step, copying = None, 0, False
EVENTS = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate")

def snapshot(event, arguments):
    "Copy the folder before each call that may change it."
    global step, copying
    if operation is None or copying or event not in EVENTS:
        return
    if str(folder) in str(arguments[0]) and folder.exists():
        copying = True
        shutil.copytree(folder, snapshots / operation / f"{{step:03d}}")
        step += 1
        copying = False

def perform(name, call, *arguments):
    global operation, step
    if folder.exists():
        shutil.copytree(folder, snapshots / name / "before")
    operation, step = name, 0
    result = call(*arguments)
    operation = None
    shutil.copytree(folder, snapshots / name / "after")
    return result

sys.addaudithook(snapshot)
store = perform("00 open", opened, folder)
if not store.position.next:
    perform("01 append", store.append, messages(0, 3))
    perform("02 append", store.append, messages(3, 7))
    perform("03 mark", store.mark_acknowledged, 0)
    perform("04 batch", store.record_batch, 0, 5, [3])
    perform("05 append", store.append, messages(7, 9, OTHER))
    perform("06 append", store.append, messages(9, 12))
    perform("07 batch", store.record_batch, 5, 12, [])
    perform("08 release nothing", store.release, 2)
    perform("09 confirm a part", store.confirm, QUEUE.__eq__, [b"id4", b"id5"])
    perform("10 release three", store.release, 10)
    perform("11 confirm a tombstone", store.confirm, OTHER.__eq__, [b"id7", b"id8"])
    perform("12 release all", store.release, 12)
    perform("13 late receipt", store.mark_acknowledged, 9)
    perform("14 skip", store.skip_to, 20)
    perform("15 append", store.append, messages(20, 21))
store.close()
"""


@pytest.fixture(scope="module")
def memory():
    """Synced in no time, where the system has such a file system."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as path:
        yield Path(path)


def perform_steps(folder, snapshots):
    subprocess.run([sys.executable, "-c", STEPS, folder, snapshots], check=True)
    return sorted(snapshots.iterdir())


@pytest.fixture(scope="module")
def snapshots(memory):
    return perform_steps(memory / "journal", memory / "snapshots")


def test_a_crash_leaves_the_state_before_the_operation_or_the_one_after(snapshots):
    assert len(snapshots) == 16
    seen = Counter()
    for operation in snapshots:
        bounds = [view_at(operation / name) for name in ("before", "after") if (operation / name).exists()]
        for step in sorted(set(operation.iterdir()) - {operation / "before", operation / "after"}):
            found = view_at(step)
            assert found in bounds, step
            assert view_at(step) == found, f"{step} opened again"
            seen[operation.name] += 1
    assert seen["01 append"] >= 3
    assert seen["10 release three"] >= 8


@pytest.mark.deep
def test_a_crash_while_a_crash_is_cleared_up(snapshots, memory):
    (release,) = [operation for operation in snapshots if operation.name == "10 release three"]
    bounds = [view_at(release / name) for name in ("before", "after")]
    for number, step in enumerate(sorted(release.glob("0*"))):
        crashed = memory / f"crashed-{number}"
        shutil.copytree(step, crashed)
        (operation,) = perform_steps(crashed, memory / f"nested-{number}")
        for nested in operation.glob("0*"):
            assert view_at(nested) in bounds, nested


def test_deletions_that_a_power_failure_undid(memory):
    """Deletions are not synced: any of them may be undone."""
    store = opened(memory / "power")
    for first in (0, 3, 6):
        store.append(messages(first, first + 3))
    store.mark_acknowledged(3)
    deleted = [Path(info.path) for info in store.segments()]
    contents = {path: path.read_bytes() for path in deleted}
    store.release(9)
    after = view(store)
    assert after[3] == known(0, 3) | known(6, 9)
    store.close()
    for back in chain.from_iterable(combinations(deleted, size) for size in (1, 2, 3)):
        for path in back:
            path.write_bytes(contents[path])
        assert view_at(memory / "power") == after
        assert not any(path.exists() for path in deleted)


def test_marks_that_a_power_failure_undid(store, again):
    """Marks are not synced: without them the messages are waited for, and that is all."""
    store.append(messages(0, 3))
    log = store._folder.path / "log"
    before = log.read_bytes()
    store.mark_acknowledged(0)
    log.write_bytes(before)
    assert set(again().receipts.unacknowledged()) == known(0, 3)


# --- killed at any time ------------------------------------------------------------------------

WORK = f"""
import random, sys
sys.path[:0] = {IMPORTS!r}
from test_store import QUEUE, messages, opened

random.seed(int(sys.argv[2]))
store = opened(sys.argv[1])

def report(*words):
    print(*words, flush=True)

report("opened")
while True:
    oldest, following = store.position.oldest, store.position.next
    match random.choice(["append", "append", "mark", "batch", "release"]):
        case "append":
            store.append(messages(following, following + random.randint(1, 50), size=random.choice([0, 5000])))
            report("next", store.position.next)
        case "mark":
            for info in store.segments():
                if random.random() < 0.5:
                    report("marking", info.first, info.last)
                    store.mark_acknowledged(info.first)
        case "batch" if oldest < following:
            cuts = sorted(random.sample(range(oldest, following), min(3, following - oldest)))
            store.record_batch(oldest, following, cuts) if store.batch(oldest, following) is None else None
            report("batch", oldest, following, *store.batch(oldest, following))
        case "release":
            upto = random.randint(oldest, following)
            report("releasing", upto)
            store.release(upto)
            report("released", upto)
"""


def work_and_die(folder, seed, chance):
    """What the process printed before it was killed."""
    process = subprocess.Popen([sys.executable, "-c", WORK, folder, str(seed)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "opened\n"
    time.sleep(chance.uniform(0.0, 0.3))
    process.kill()
    reason, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    return [line.split() for line in reason.splitlines(keepends=True) if line.endswith("\n")]


def test_killed_at_any_time_nothing_is_lost_that_was_promised(examples, tmp_path):
    chance = random.Random(random.randrange(1 << 30))
    marked, following, released, releasing = set(), 0, 0, 0
    for _ in range(examples(8)):
        batches = {}
        for what, *numbers in work_and_die(tmp_path / "journal", chance.randrange(1 << 30), chance):
            values = [int(number) for number in numbers]
            match what:
                case "next":
                    following = values[0]
                case "marking":
                    marked |= set(range(*values))
                case "batch":
                    batches[values[0], values[1]] = values[2:]
                case "releasing":
                    releasing = values[0]
                case "released":
                    released = values[0]
        store = opened(tmp_path / "journal")
        position = store.position
        assert position.next >= following
        assert position.oldest in {released, releasing}
        for info in store.segments():
            value = store.read(info.first)
            assert facts_of(value) in {facts_of(messages(info.first, info.last, size=size)) for size in (0, 5000)}
        for (start, end), starts in batches.items():
            assert store.batch(start, end) == starts or end <= position.oldest
        unacknowledged = {int(found.id[2:]) for found in store.receipts.unacknowledged()}
        assert unacknowledged >= set(range(position.next)) - marked
        following, released = position.next, position.oldest
        store.close()


def facts_of(value):
    return value.first, bytes(value.block.data), tuple(value.ids), tuple(value.block.ends)


# --- reading an open journal -------------------------------------------------------------------------


@pytest.fixture
def viewed(tmp_path):
    """Segments 3 to 7 (acknowledged) and 7 to 9, one batch of both, three tombstones."""
    with contextlib.closing(opened(shutil.copytree(GOLDEN, tmp_path / "journal"), now=4e9)) as store:
        yield store


def test_bytes_of_segments_and_tombstones(viewed):
    sizes = {path.name: path.stat().st_size for path in viewed.path.iterdir()}
    segments = sum(size for name, size in sizes.items() if name.startswith("segment"))
    tombstones = sum(size for name, size in sizes.items() if name.startswith("tombstone"))
    assert (viewed.segment_bytes, viewed.bytes_used) == (segments, segments + tombstones)


def test_the_age_is_that_of_the_first_message_from_there_on(viewed):
    first, second = (info.stored for info in viewed.segments())
    assert (viewed.age_of(3), viewed.age_of(7), viewed.age_of(9)) == (4e9 - first, 4e9 - second, None)


def test_messages_without_a_receipt(viewed):
    assert viewed.receipts.messages == len(list(viewed.receipts.unacknowledged())) == 5
    assert viewed.receipts.fingerprints_from(3) == {}
    assert sorted(viewed.receipts.fingerprints_from(7)) == [b"11", b"12"]


def test_recorded_batches(viewed):
    assert (viewed.batch(3, 9), viewed.batch(3, 7)) == ([5, 7], None)
    assert (viewed.batch_ending(9), viewed.batch_ending(7)) == ((3, [5, 7]), None)


# --- whether this process is still the only writer ----------------------------------------------------


def test_a_replaced_journal_is_another_one_unless_its_writer_replaced_it(store):
    store.replace("lost")
    store.require_writer()
    shutil.copy2(store.path / META_NAME, store.path / ".copy")
    (store.path / ".copy").replace(store.path / META_NAME)
    with pytest.raises(JournalLockedError, match=f"{META_NAME} .*removed or replaced"):
        store.require_writer()


@pytest.mark.parametrize("name", [META_NAME, LOCK_NAME])
def test_a_removed_file_ends_the_right_to_write(store, name):
    (store.path / name).unlink()
    with pytest.raises(JournalLockedError, match="removed or replaced"):
        store.append(messages(0, 3))


def test_a_closed_journal_names_the_event(store):
    store.close()
    with pytest.raises(IllegalStateError, match=r"append .*closed"):
        store.append(messages(0, 3))
