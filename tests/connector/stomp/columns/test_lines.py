from itertools import pairwise

import numpy as np
import pytest
from generated import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_decoder import block_of, message

from pyspark_jms.columns.schema import WantedColumns
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns import decode as decode_module
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.lines import Fault, split_lines, wanted_lines
from pyspark_jms.stomp.dialects import ARTEMIS

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
    return [pairs[a:b] for a, b in pairwise(lines.first)], list(lines.faults)


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


# --- the lines with some names ----------------------------------------------------------------------

LINES = ["type:order", "x:1", "priority:4", "note:path 1", "content-length:4"]


def frame(*lines, body=b"text"):
    return message(*lines, body=body)


def located(frames, *wanted):
    """By frame, the values of the wanted lines; None if they were not located."""
    lines = wanted_lines(FrameBounds.of(block_of(frames)), wanted)
    if lines is None:
        return None
    names = [name and name[:-1].decode() for name in lines.names_of_first]
    places = [(column, name) for column, name in enumerate(names) if name]
    return [
        {name: lines.values(lines.first[row : row + 1] + column)[0].as_py() for column, name in places}
        for row in range(len(frames))
    ]


def check(frames, fixed=("text", "JMSType", "JMSPriority"), properties=("n",)):
    """The columns are those of a read of all columns."""
    how = {"dialect": ARTEMIS, "source": Destination.parse("queue://q"), "first_sequence": 0, "body_type": "auto"}
    few = decode(block_of(frames), **how, wanted=WantedColumns.of(fixed, properties))
    few.validate(full=True)
    every = decode(block_of(frames), **how).to_pylist()
    for got, row in zip(few.to_pylist(), every, strict=True):
        assert {name: got[name] for name in fixed} == {name: row[name] for name in fixed}
        for name in properties:
            assert got[f"properties.{name}"] == dict(row["properties"] or ()).get(name)


@pytest.mark.parametrize("body", [b"text", b"a\nb\n\n", b"x" * 2_000, b"MESSAGE\na:b\n\n", "世".encode()])
def test_wanted_lines_are_located(body):
    last = f"content-length:{len(body)}"
    frames = [frame(f"type:{'t' * n}", "x:1", f"priority:{n}", last, body=body) for n in range(4)]
    ends = {"content-length": str(len(body))}
    assert located(frames, "type", "priority") == [{"type": "t" * n, "priority": str(n)} | ends for n in range(4)]
    check(frames)


@pytest.mark.parametrize(
    "lines",
    [
        ["x:1", "type:order", "priority:4", "note:path 1", "content-length:4"],
        ["type:order", "type:2", "priority:4", "note:path 1", "content-length:4"],
        ["type:order", "x:1", "priority:4", "type:path 1", "content-length:4"],
        ["type:order", "x:1", "priority:4", "n:1", "content-length:4"],
        ["type:order", "x:1", "priority:4", "note:path 1", "no colon"],
        ["typ:order", "x:1", "priority:4", "note:path 1", "content-length:4"],
        ["type:order", "x:1", "priority:4", "note:path 1"],
        ["type:order", "x:1", "priority:4", "content-length:4", "note:path 1"],
        ["a:", "b:", "c:", "d:", "e:"],
    ],
)
@pytest.mark.parametrize("body", [b"text", b"a\nb\n\n"])
def test_a_frame_with_other_wanted_lines(lines, body):
    usual, other = frame(*LINES, body=body), frame(*lines, body=body)
    for frames in ([usual, other], [usual, other, usual], [usual, usual, other], [other, usual, usual]):
        assert located(frames, "type", "priority", "n") is None
        check(frames)


def test_a_last_frame_that_is_shorter_than_the_names_of_the_first():
    check([frame("spark_jms_x:1", "y:1", body=b"a\nb"), frame("a:1", "b:23", body=b"a\nb")])


@pytest.mark.parametrize("line", ["y:1", "xx:1", "x", "", "x:\\c", "x:1\r", "x:é", "\\c:1"])
def test_a_line_that_is_not_wanted_may_be_anything(line):
    frames = [frame(*LINES), frame(*LINES[:3], line or "z:", LINES[4]), frame(*LINES)]
    check(frames)
    check([frame(LINES[0], "note:1", *LINES[2:]), frame(LINES[0], f"n{line}", *LINES[2:])], properties=())


@pytest.mark.parametrize("value", ["\\c", "a\r", "é", "a\\pb", "\\\\", "\r"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_wanted_value_that_is_not_plain(value, number, monkeypatch):
    frames = [frame(*LINES) for _ in range(3)]
    frames[number] = frame(f"type:{value}", *LINES[1:])
    check(frames)
    monkeypatch.setattr(decode_module, "split_lines", None)
    with pytest.raises(TypeError):
        check(frames, properties=())


def test_a_value_that_is_not_wanted_may_be_anything(monkeypatch):
    frames = [frame(LINES[0], f"x:{value}", *LINES[2:]) for value in ("1", "\\c", "é", "a\r", "a\\p")]
    check(frames)
    monkeypatch.setattr(decode_module, "split_lines", None)
    how = {"dialect": ARTEMIS, "source": Destination.parse("queue://q"), "first_sequence": 0, "body_type": "auto"}
    batch = decode(block_of(frames), **how, wanted=WantedColumns.of({"JMSType"}, []))
    assert batch.column("JMSType").to_pylist() == ["order"] * 5


NAMES = ["type", "typ", "types", "t", "priority", "prior", "content-length", "n", "nn", "x", "spark_jms_body"]
VALUES = ["", "4", "order", "text", "\\c", "a\r", "é", ":", "a:b"]
A_LINE = st.one_of(
    st.builds("{}:{}".format, st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.sampled_from(["type", "no colon", "t"]),
)


@st.composite
def similar_frames(draw):
    """Frames with as many lines as the first one, of which a few differ."""
    lines = draw(st.lists(A_LINE, min_size=1, max_size=6))
    frames = []
    for _ in range(draw(st.integers(1, 4))):
        own = list(lines)
        for _ in range(draw(st.integers(0, 2))):
            own[draw(st.integers(0, len(own) - 1))] = draw(A_LINE)
        frames.append(frame(*own, body=draw(st.sampled_from([b"", b"text", b"a\nb", b"x" * 300, b"\xff"]))))
    return frames


@settings(max_examples=examples(300))
@given(
    frames=similar_frames(),
    fixed=st.sets(st.sampled_from(["text", "body_type", "JMSType", "JMSPriority", "JMSMessageID", "map"])),
    properties=st.lists(st.sampled_from(["n", "x", "type", "nn"]), unique=True),
)
@example([frame("n:1", "x:2"), frame("n:1", "n:2")], set(), ["n"])
def test_the_columns_of_similar_frames(frames, fixed, properties):
    if fixed or properties:
        check(frames, tuple(fixed), tuple(properties))
