import io
import os
import pty
import time

from pyspark_jms.cli.progress import ProgressLine, counted


def test_a_pipe_gets_no_progress():
    stream = io.StringIO()
    with ProgressLine("sent", stream) as progress:
        progress._shown_at = 0.0
        progress.show(5)
    assert stream.getvalue() == ""


def _read(terminal, end):
    """What is written to a terminal up to and including ``end``."""
    shown = ""
    while end not in shown:
        shown += os.read(terminal, 1000).decode()
    return shown


def test_a_terminal_gets_one_line_that_is_removed_at_the_end():
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal:  # noqa: PTH123 - a file descriptor
        with ProgressLine("sent", terminal) as progress:
            assert terminal.isatty()
            progress.show(1)  # too early
            for messages in (12_345, 2):
                progress._shown_at = time.monotonic() - 1
                progress.show(messages)
        shown = _read(ours, " \r")
    os.close(ours)
    first, second, blanks, end = shown.split("\r")[1:]
    assert first.startswith("12,345 messages sent, ")
    assert second.startswith("2 messages sent, ")
    assert len(second) >= len(first)  # nothing of a longer line stays
    assert (blanks, end) == (" " * len(blanks), "")
    assert len(blanks) >= len(second.rstrip())


def test_one_is_singular():
    assert [counted(n) for n in (0, 1, 1_000)] == ["0 messages", "1 message", "1,000 messages"]
