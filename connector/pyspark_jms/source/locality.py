"""Do tasks run on the runner's machine? A task finds out and posts its answer to the runner's mailbox."""

import functools

from pyspark_jms.source.mailbox import MailAddress, Mailbox, post

__all__ = ["LocalityProbe", "answer"]

_HERE = b"1"


class LocalityProbe:
    """In the runner. ``question`` is for the tasks of the next batch, until a task has answered."""

    def __init__(self) -> None:
        self.here = False
        self._mailbox = Mailbox()

    def question(self) -> MailAddress | None:
        """None when the answer is known, or when no task could answer."""
        return None if self.here else self._mailbox.address()

    def tasks_run_here(self) -> bool:
        """Whether a task has answered by now."""
        self.here = self.here or bool(self._mailbox.take())
        return self.here

    def close(self) -> None:
        self._mailbox.close()


@functools.cache
def answer(question: MailAddress) -> bool:
    """In a task: post an answer if it runs on the runner's machine. Each process answers once."""
    return post(question, _HERE)
