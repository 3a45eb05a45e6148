import pickle
import shutil
from pathlib import Path

import pytest
from model_broker import block_of

from pyspark_jms.delivery.journal.contents import (
    JournalIdentity,
    StoredBlock,
    load_segments,
    require_consecutive,
    require_ours,
    segment_name,
)
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import JournalLog, Position
from pyspark_jms.delivery.journal.lines import write_line
from pyspark_jms.delivery.journal.pending_receipts import load_tombstones
from pyspark_jms.delivery.journal.segment import Segment, encode
from pyspark_jms.errors import (
    CorruptJournalError,
    IllegalStateError,
    InvalidOptionError,
    JournalError,
    UnsupportedError,
)

GOLDEN = Path(__file__).parent / "data" / "journal-1"


@pytest.fixture
def folder(tmp_path):
    return Folder(Path(shutil.copytree(GOLDEN, tmp_path / "journal")))


def put(folder, first, last):
    """A segment of such sequences."""
    count = last - first
    messages = Segment(
        source="queue://q",
        dialect="artemis",
        first=first,
        block=block_of([b"%d" % n for n in range(count)], [b"ab"] * count),
    )
    folder.write(segment_name(first), encode(messages))


def goes_on_at(folder):
    log = JournalLog.load(folder)
    log.close()
    return require_consecutive(folder.path, log, [info for _, info in load_segments(folder)])


# --- whose folder ------------------------------------------------------------------------------


def test_a_folder_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "report.csv").touch()
    with pytest.raises(InvalidOptionError, match=r"journalLocation .*report\.csv"):
        require_ours(tmp_path)
    with pytest.raises(InvalidOptionError, match="folder"):
        require_ours(tmp_path / "report.csv")


@pytest.mark.parametrize("name", ["lost+found", ".snapshot", "lock", "log", "log.tmp"])
def test_a_folder_that_only_looks_used_is_taken(tmp_path, name):
    (tmp_path / name).touch()
    require_ours(tmp_path)
    require_ours(tmp_path / "new")


def test_a_strange_file_in_a_journal_is_left_alone(folder):
    for name in ("notes.txt", "notes.tmp", "segment-1", "segment-1.tmp"):
        (folder.path / name).write_bytes(b"mine")
    require_ours(folder.path)
    JournalIdentity.load(folder, 0)
    assert [info.first for _, info in load_segments(folder)] == [3, 7]
    assert (folder.path / "notes.tmp").read_bytes() == b"mine"
    assert (folder.path / "segment-1.tmp").read_bytes() == b"mine"


# --- which journal -----------------------------------------------------------------------------


def test_a_new_journal_has_an_id_of_its_own(tmp_path):
    one, two = (JournalIdentity.load(Folder(tmp_path / name), 0.0) for name in "ab")
    assert one.id != two.id
    assert one.created == "1970-01-01T00:00:00+00:00"
    assert JournalIdentity.load(Folder(tmp_path / "a"), 99.0) == one


def test_what_was_half_written_is_swept(folder):
    for name in ("log.tmp", "journal.tmp", segment_name(9) + ".tmp", f"tombstone-{3:019d}.tmp"):
        (folder.path / name).write_bytes(b"half")
    JournalIdentity.load(folder, 0)
    assert [name for name in folder.names() if name.endswith(".tmp")] == []


def test_a_journal_of_a_newer_format_is_refused_by_its_number(folder):
    folder.write("journal", [write_line({"format": 2, "id": "x", "created": "y"})])
    with pytest.raises(UnsupportedError, match=r"format 2\b.*\b1\b"):
        JournalIdentity.load(folder, 0)


def test_a_journal_that_lost_its_name_is_no_new_one(folder):
    folder.delete("journal")
    with pytest.raises(CorruptJournalError, match=f"file journal.*{segment_name(3)}"):
        JournalIdentity.load(folder, 0)


# --- what is missing or twice ------------------------------------------------------------------


def test_segments_follow_each_other(folder):
    assert goes_on_at(folder) == 9
    put(folder, 9, 12)
    assert goes_on_at(folder) == 12


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(lambda folder: put(folder, 10, 12), f"{segment_name(7)} .*{segment_name(10)} .*gap", id="a gap"),
        pytest.param(
            lambda folder: put(folder, 8, 12), f"{segment_name(7)} .*{segment_name(8)} .*overlap", id="overlap"
        ),
        pytest.param(lambda folder: folder.delete(segment_name(3)), f"log .*{segment_name(7)} .*gap", id="first"),
        pytest.param(lambda folder: folder.delete(segment_name(7)), rf"{segment_name(3)}\b.*sequence 7\b", id="last"),
    ],
)
def test_a_gap_or_an_overlap_is_named_by_both_its_sides(folder, change, named):
    change(folder)
    with pytest.raises(CorruptJournalError, match=named):
        goes_on_at(folder)


@pytest.mark.parametrize("entry", ["batch", "acknowledged"])
def test_a_missing_segment_that_only_the_log_refers_to(folder, entry):
    log = JournalLog.load(folder)
    put(folder, 9, 12)
    if entry == "batch":
        log.record_batch(9, 12, [])
    else:
        log.record_acknowledged(9)
    log.close()
    folder.delete(segment_name(9))
    with pytest.raises(CorruptJournalError, match=f"missing .*{segment_name(7)}"):
        goes_on_at(folder)


def test_the_oldest_segment_may_begin_before_what_is_not_done(folder):
    log = JournalLog.load(folder)
    log.record_position(Position(5, 9))
    log.close()
    assert goes_on_at(folder) == 9


def test_a_renamed_segment_is_named(folder):
    (folder.path / segment_name(7)).rename(folder.path / segment_name(9))
    with pytest.raises(CorruptJournalError, match=rf"{segment_name(9)}\b.*\b7\b"):
        goes_on_at(folder)


def test_an_altered_segment_is_named(folder):
    path = folder.path / segment_name(7)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptJournalError, match=segment_name(7)):
        goes_on_at(folder)


def test_a_tombstone_of_a_release_that_did_not_happen_goes(folder):
    assert list(load_tombstones(folder, Position(3, 9))) == [0]
    assert load_tombstones(folder, Position(2, 9)) == {}
    assert folder.names() == ["journal", "log", segment_name(3), segment_name(7)]


# --- messages that lie in a journal ------------------------------------------------------------------

CONTENTS = [b"%d:" % n + bytes([n]) * 10_000 for n in range(100)]


@pytest.fixture
def stored(tmp_path):
    """``stored(40, 43)``: these sequences of a segment of a hundred messages."""
    block = block_of([b"id%d" % n for n in range(100)], CONTENTS)
    encoded = encode(Segment(source="queue://q", dialect="artemis", first=0, block=block))
    Folder(tmp_path / "j").write(segment_name(0), encoded)
    return lambda first, last: StoredBlock(str(tmp_path / "j" / segment_name(0)), encoded.digest, first, last)


def test_a_part_is_read_wherever_the_folder_is_seen(stored):
    part = pickle.loads(pickle.dumps(stored(40, 43)))
    block = part.load()
    assert len(part) == len(block) == 3
    assert [block.message(index) for index in range(3)] == CONTENTS[40:43]


def test_what_was_read_outlives_the_file(stored, tmp_path):
    block = stored(0, 100).load()
    shutil.rmtree(tmp_path / "j")
    assert block.data == b"".join(CONTENTS)


def test_another_segment_of_that_name_is_refused(stored):
    other = StoredBlock(stored(0, 3).path, bytes(32), 0, 3)
    with pytest.raises(CorruptJournalError, match="/segment-"):
        other.load()


def test_sequences_that_the_segment_does_not_hold(stored):
    with pytest.raises(IllegalStateError, match=r"\[0, 100\)"):
        stored(99, 101).load()


def test_messages_that_are_done_or_out_of_sight(stored, tmp_path):
    shutil.rmtree(tmp_path / "j")
    with pytest.raises(JournalError, match="No such file"):
        stored(0, 3).load()
