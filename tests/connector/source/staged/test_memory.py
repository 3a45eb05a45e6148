import numpy as np
import pytest

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.source.staged.memory import Run, StagedMemory, joined


def run(first, *messages, source="queue://q", moved_ms=1):
    data = [each.encode() for each in messages]
    return Run(
        first,
        source,
        "artemis",
        MessageBlock(b"".join(data), ends=index_of(np.cumsum([len(each) for each in data]))),
        moved_ms,
    )


def texts(parts):
    return [part.place.message(index).decode() for part in parts for index in range(len(part))]


@pytest.fixture
def memory():
    memory = StagedMemory()
    memory.add([run(10, "a", "b", "c"), run(13, "d", source="queue://r"), run(14, "e", "f", moved_ms=5)])
    return memory


def test_tasks_read_their_numbers(memory):
    tasks = list(memory.tasks((11, 14), 16, None))
    assert [texts(task) for task in tasks] == [["b", "c", "d"], ["e", "f"]]
    assert [[(part.source, part.first_sequence) for part in task] for task in tasks] == [
        [("queue://q", 11), ("queue://r", 13)],
        [("queue://q", 14)],
    ]


@pytest.mark.parametrize(("size", "cuts"), [(1, (11, 12, 13, 14, 15)), (2, (12, 14)), (4, (14,)), (100, ())])
def test_where_parts_of_a_size_begin(memory, size, cuts):
    assert memory.cuts(10, 16, size) == cuts


def test_numbers_that_nobody_has_are_no_rows(memory):
    memory.forget_below(13)
    assert [texts(task) for task in memory.tasks((10, 12), 15, None)] == [["d", "e"]]
    assert memory.cuts(0, 10, 1) == ()
    assert memory.oldest_ms == 1
    memory.forget_below(14)
    assert memory.oldest_ms == 5


def test_neighbours_of_one_source_are_joined():
    runs = [run(0, "a"), run(1, "b", "c"), run(3, "d", source="queue://r"), run(4, "e"), run(6, "g"), run(7, "h")]
    found = list(joined(runs))
    assert [(each.first, each.end, bytes(each.messages.data)) for each in found] == [
        (0, 3, b"abc"),
        (3, 4, b"d"),
        (4, 5, b"e"),
        (6, 8, b"gh"),
    ]
    assert [found[0].messages.message(index) for index in range(3)] == [b"a", b"b", b"c"]
