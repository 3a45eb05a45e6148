import pickle
import shutil

import pytest
from model_broker import block_of

from pyspark_jms.delivery.journal.contents import segment_name
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.segment import Segment, encode
from pyspark_jms.delivery.journal.stored_block import StoredBlock
from pyspark_jms.errors import CorruptJournalError, IllegalStateError, JournalError

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
