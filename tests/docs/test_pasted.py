"""The Python of the pages, pasted into an interactive Python as a reader does."""

import codeop
import contextlib
import os
import pty
import select
import subprocess
import sys
import time

import page_blocks
import pytest
from page_runner import PageRunner
from session import kill_session

from pyspark_jms.testing import User

PYTHON = [block for page in page_blocks.pages() for block in page_blocks.blocks(page) if block.language == "python"]
PASSWORD = "artemis"
SECONDS = 240


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_an_interactive_python_takes_the_block_line_by_line(block):
    """A blank line ends what is indented, and only a blank line does."""
    compiled, left = codeop.CommandCompiler(), []
    for line in [*block.code.splitlines(), ""]:
        left.append(line)
        if compiled("\n".join(left), str(block), "single") is not None:
            left.clear()
    assert not "".join(left).strip()


class Terminal:
    """``python -i`` on a pseudo-terminal."""

    def __init__(self, folder, environment):
        self._here, there = pty.openpty()
        command = [sys.executable, "-q", "-i"]
        inherited = os.environ | environment | {"TERM": "dumb", "PYTHON_BASIC_REPL": "1"}
        self._python = subprocess.Popen(
            command, stdin=there, stdout=there, stderr=there, cwd=folder, env=inherited, start_new_session=True
        )
        os.close(there)
        self._number = 0

    def paste(self, code):
        """Return what the terminal shows until the code has run."""
        self._number += 1
        mark = f"pasted {self._number}"
        for line in [*code.splitlines(), "", f"print('pasted', {self._number})"]:
            os.write(self._here, f"{line}\n".encode())
        shown, until = "", time.monotonic() + SECONDS
        while f"\n{mark}\r\n" not in shown:
            assert time.monotonic() < until, shown
            if select.select([self._here], [], [], 1)[0]:
                shown += os.read(self._here, 1 << 16).decode(errors="replace")
        return shown

    def close(self):
        kill_session(self._python.pid)
        self._python.wait(30)
        os.close(self._here)


class Pasting(PageRunner):
    """Runs the Python of a page in a terminal, whose Spark is its own. Setup, checks and shells are here."""

    def __init__(self, broker, folder, terminal):
        super().__init__(None, broker, folder)
        self._terminal = terminal

    def _python(self, code, name, line=1, more=()):
        if more:
            return super()._python(code, name, line, more)
        shown = self._terminal.paste(self._replaced(code))
        assert not [error for error in ("SyntaxError", "IndentationError", "NameError") if error in shown], shown
        return shown

    def _is_expected(self, output, printed):
        """What the code has printed stands between the prompts and what was pasted."""
        return all(part in printed for line in output.splitlines() for part in line.split("…") if part.strip())

    def _remember_queries(self):
        """They are the terminal's."""


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("page", "count"), [("README.md", 2), pytest.param("docs/tutorial.md", None, marks=pytest.mark.slow)]
)
def test_the_page_is_followed_in_a_terminal(page, count, fresh_broker, tmp_path):
    """The first blocks of the README: the others need names that the page's reader has."""
    broker = fresh_broker(users=[User("spark", PASSWORD)])
    with contextlib.closing(
        Terminal(tmp_path, {"PYSPARK_PYTHON": sys.executable, "JMS_PASSWORD": PASSWORD})
    ) as terminal:
        Pasting(broker, tmp_path, terminal).run(page_blocks.blocks(page)[:count])
