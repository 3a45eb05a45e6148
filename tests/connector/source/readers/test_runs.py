from pyspark_jms.blocks.block import block_of
from pyspark_jms.source.readers.runs import Run, joined


def run(first, *messages, source="queue://q"):
    return Run(first, source, "artemis", block_of(*(each.encode() for each in messages)))


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
