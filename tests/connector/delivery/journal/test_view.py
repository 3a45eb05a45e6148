"""Reading an open journal. ``JournalView`` alone has no segments: ``JournalStore`` fills it."""

import shutil
from pathlib import Path

import pytest

from pyspark_jms.delivery.journal.journal_log import Position
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journal.view import JournalView
from pyspark_jms.errors import IllegalStateError

GOLDEN = Path(__file__).parent / "data" / "journal-1"


@pytest.fixture
def view(tmp_path):
    """Segments 3 to 7 (acknowledged) and 7 to 9, one batch of both, three tombstones."""
    store = JournalStore.open(
        shutil.copytree(GOLDEN, tmp_path / "journal"),
        query="test",
        wait_seconds=0,
        pause=lambda _: None,
        clock=lambda: 4e9,
        fingerprints=lambda segment: [b"%016d" % n for n in range(segment.first, segment.last)],
    )
    yield store
    store.close()


def test_a_store_is_a_view(view):
    assert isinstance(view, JournalView)
    assert view.ids == (view.meta.id,)
    assert (view.is_new, view.position) == (False, Position(3, 9))


def test_segments_by_sequence(view):
    assert [(info.first, info.last, info.acknowledged) for info in view.segments()] == [(3, 7, True), (7, 9, False)]
    assert [info.first for info in view.segments(7)] == [7]
    assert [info.first for info in view.segments(3, 7)] == [3]
    assert (view.read(7).first, view.read(7).last) == (7, 9)
    with pytest.raises(IllegalStateError, match=r"Event read\(4\)"):
        view.read(4)


def test_bytes_of_segments_and_tombstones(view):
    sizes = {path.name: path.stat().st_size for path in view.path.iterdir()}
    segments = sum(size for name, size in sizes.items() if name.startswith("segment"))
    tombstones = sum(size for name, size in sizes.items() if name.startswith("tombstone"))
    assert (view.segment_bytes, view.bytes_used) == (segments, segments + tombstones)


def test_the_age_is_that_of_the_first_message_from_there_on(view):
    first, second = (info.stored for info in view.segments())
    assert (view.age_of(3), view.age_of(7), view.age_of(9)) == (4e9 - first, 4e9 - second, None)


def test_messages_without_a_receipt(view):
    assert view.unconfirmed_messages == len(list(view.unacknowledged())) == 5
    assert view.known(3) == {}
    assert sorted(view.known(7)) == [b"11", b"12"]


def test_recorded_batches(view):
    assert (view.batch(3, 9), view.batch(3, 7)) == ([5, 7], None)
    assert (view.batch_ending(9), view.batch_ending(7)) == ((3, [5, 7]), None)
