import pytest

from pyspark_jms.delivery.journal.lines import read_line, read_log, write_line
from pyspark_jms.errors import CorruptJournalError

ENTRIES = [{"position": [0, 5]}, {"batch": [0, 5], "partitions": []}, {"text": "ü\n\0"}]


def log_of(entries):
    lines, last = [], b""
    for entry in entries:
        last = write_line(entry, last)
        lines.append(last)
    return lines


def test_a_file_of_one_line():
    assert read_line(write_line({"a": [1, "x"]}), "meta") == {"a": [1, "x"]}


def test_any_change_of_a_file_of_one_line_is_found():
    line = write_line({"a": 1})
    changed = [line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :] for at in range(len(line))]
    for data in [*changed, *(line[:size] for size in range(len(line))), line + b"\n", line + line]:
        with pytest.raises(CorruptJournalError, match=r"\bmeta\b"):
            read_line(data, "meta")


def test_a_log_says_what_was_written():
    lines = log_of(ENTRIES)
    log = read_log(b"".join(lines), "log")
    assert log.entries == ENTRIES
    assert log.length == len(b"".join(lines))
    assert write_line({"next": 1}, log.last) == write_line({"next": 1}, lines[-1])


def test_a_write_that_a_crash_cut_short_did_not_happen():
    *before, last = log_of(ENTRIES)
    for size in range(len(last)):
        log = read_log(b"".join(before) + last[:size], "log")
        assert log.entries == ENTRIES[:-1]
        assert log.length == len(b"".join(before))
    assert read_log(b"".join(before) + bytes(100), "log").entries == ENTRIES[:-1]


def test_any_altered_byte_of_a_log_is_found():
    data = b"".join(log_of(ENTRIES))
    for at in range(len(data)):
        with pytest.raises(CorruptJournalError, match=r"\blog\b"):
            read_log(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "log")


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2), (1, 2), (0, 0, 1, 2), (0, 1, 1, 2)])
def test_a_line_that_was_moved_taken_out_or_repeated_is_found(order):
    lines = log_of(ENTRIES)
    with pytest.raises(CorruptJournalError):
        read_log(b"".join(lines[at] for at in order), "log")
