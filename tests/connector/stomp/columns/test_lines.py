from itertools import pairwise

import numpy as np
import pytest
from plain_decoder import block_of, message

from pyspark_jms.errors import IllegalStateError
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.lines import Fault, split_lines

UNDEFINED = "holds an escape that STOMP 1.2 does not define"


def split(*frames):
    """Per frame its headers, and what was at fault: the same whatever stands beside them."""
    headers, faults = split_as_they_are(*frames)
    beside, same = split_as_they_are(*frames, message("of a layout of its own:1"))
    assert (beside[:-1], same) == (headers, faults)
    return headers, faults


def split_as_they_are(*frames):
    lines = split_lines(FrameBounds.of(block_of(frames)))
    every = np.arange(len(lines))
    names, values = lines.names(every), lines.values(every)
    for column in (names, values):
        column.validate(full=True)
    pairs = list(zip(names.to_pylist(), values.to_pylist(), strict=True))
    return [pairs[a:b] for a, b in pairwise(lines.first)], lines.faults


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("a:b", "a", "b"),
        ("a:", "a", ""),
        (":b", "", "b"),
        (":", "", ""),
        ("a:b:c", "a", "b:c"),
        ("a::", "a", ":"),
        ("a: b ", "a", " b "),
        ("a*:*b", "a*", "*b"),
        ("a:\x1a", "a", "\x1a"),
        ("a\0:\0b", "a\0", "\0b"),
        ("a:b\r", "a", "b"),
        ("a:b\r\r", "a", "b\r"),
        ("a:\r", "a", ""),
        ("a:b\rc", "a", "b\rc"),
        (r"a:\c\n\r\\", "a", ":\n\r\\"),
        (r"\c\n\r\\:b", ":\n\r\\", "b"),
        (r"a:\\c", "a", r"\c"),
        (r"a:\\\c", "a", "\\:"),
        (r"a:\\\\n", "a", r"\\n"),
        (r"a\\:\\b", "a\\", "\\b"),
        ("é:世", "é", "世"),
    ],
)
def test_a_line_is_a_name_and_a_value(line, name, value):
    assert split(message(line)) == ([[(name, value)]], [])
    around = [message("x:y", "z:0"), message(line, "x:y"), message("x:y", line)]
    assert split(*around) == ([[("x", "y"), ("z", "0")], [(name, value), ("x", "y")], [("x", "y"), (name, value)]], [])


@pytest.mark.parametrize(
    ("line", "name", "value", "reason"),
    [
        (rb"a:\t", "a", r"\t", UNDEFINED),
        (b"a:b\\", "a", "b\\", UNDEFINED),
        (b"a:b\\\r", "a", "b\\", UNDEFINED),
        (rb"a:\\\tb", "a", "\\\\tb", UNDEFINED),
        (b"a\\:c", "a\\", "c", UNDEFINED),
        (rb"a\x\c:\c\y", r"a\x:", r":\y", UNDEFINED),
        (b"a:\xff", "a", "�", "is not valid UTF-8"),
        (b"\xff:\\c", "�", ":", "is not valid UTF-8"),
        (b"a:\xe4\xb8", "a", "�", "is not valid UTF-8"),
    ],
)
def test_a_line_at_fault_stays_readable_and_is_named(line, name, value, reason):
    expected = [[("x", "y")], [("k", ":"), (name, value), ("世", "z")]]
    frames = [message("x:y"), message(rb"k:\c", line, "世:z")]
    named = "'a'" if name == "a" else "number 2"
    assert split(*frames) == (expected, [Fault(1, 2, f"header {named} {reason}")])


def test_a_line_without_a_colon_is_left_out_and_named():
    pairs, faults = split(message("a:1"), message("b", "c:1", b"\xff\\"), message(), message("d"))
    assert pairs == [[("a", "1")], [("c", "1")], [], []]
    assert [(row, reason) for row, _, reason in faults] == [
        (1, "header line 1 has no colon"),
        (1, "header line 3 has no colon"),
        (3, "header line 1 has no colon"),
    ]


@pytest.mark.parametrize("body", ["\n\n", "a:1\n\n", "\n\n\n"])
@pytest.mark.parametrize("header", ["a:1", "no colon"])
def test_a_blank_line_before_the_one_of_the_index_is_a_wrong_index(header, body):
    block = block_of([message("x:y"), message(header, body=body), message()])
    block.heads[1] = block.data.rindex(b"\n\n", 0, block.ends[1])
    with pytest.raises(IllegalStateError, match="does not fit"):
        split_lines(FrameBounds.of(block))


def test_frames_without_headers():
    assert split(message(), message(body="a:b\n")) == ([[], []], [])


def test_a_long_name_is_counted():
    _, faults = split(message("n" * 1000 + r":\x"))
    assert faults == [Fault(0, 0, f"header number 1 {UNDEFINED}")]


def test_more_bytes_than_are_looked_at_in_one_go():
    frames = [message(f"a{i}:{'x' * 1000}", r"b:\c" if i % 2 else "b:c") for i in range(400)]
    pairs, faults = split(*frames)
    assert pairs == [[(f"a{i}", "x" * 1000), ("b", ":" if i % 2 else "c")] for i in range(400)]
    assert faults == []
